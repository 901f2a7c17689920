"""Our official verdicts against those of IFEval's public checker, frozen in ifeval_verdicts.json.

`ifeval_answers.py` makes the answers and tells how the verdicts were frozen. Left out, because the public
code has no verdict of its own there:

- a letter that is none of a to z (keys 1122 and 1129 of the data), a missing argument, 0, or a paragraph
  beyond the last: it draws one at random;
- a keyword, marker or splitter that is no regular expression, JSON nested some thousand deep: it ends with an
  exception;
- langdetect without a seed: the verdicts are those of seed 0.
"""

from __future__ import annotations

import json
import os
import runpy
from pathlib import Path
from typing import Any

import pytest

from verifiers.instructions.verifier import Job, Judge

HERE = Path(__file__).parent
ANSWERS = runpy.run_path(str(HERE / "ifeval_answers.py"))
FROZEN: dict[str, Any] = json.loads((HERE / "ifeval_verdicts.json").read_text())


@pytest.mark.slow
@pytest.mark.parametrize("family", ANSWERS["FAMILIES"])
def test_verdicts_are_the_official_ones(family: str) -> None:
    made = [ANSWERS["answer"](family, index) for index in range(ANSWERS["COUNT"])]
    assert len(made) == 2000
    assert ANSWERS["checksum"]([str(own) for own in made]) == FROZEN[family]["checksum"], (
        "the generator is not what was frozen"
    )
    for reading, every in (("strict", 1), ("loose", ANSWERS["LOOSE"])):
        judge = Judge("official", loose=reading == "loose")
        expected = ANSWERS["unpack"](FROZEN[family][reading])
        different = [
            (id, arguments, text, kept)
            for (id, arguments, text), kept in zip(made[::every], expected, strict=True)
            if judge(Job(text, [{"id": id, "kwargs": arguments}]))[0].score != kept
        ]
        assert different == []
    kept = sum(ANSWERS["unpack"](FROZEN[family]["strict"]))
    assert 500 < kept < 1500, "the answers tell right from wrong"


def test_each_constraint_passes_and_fails() -> None:
    told: dict[str, set[bool]] = {}
    for family in ANSWERS["FAMILIES"]:
        for index, kept in enumerate(ANSWERS["unpack"](FROZEN[family]["strict"])):
            told.setdefault(ANSWERS["answer"](family, index)[0], set()).add(kept)
    assert len(told) == 25
    assert all(kept == {True, False} for kept in told.values())


@pytest.mark.slow
@pytest.mark.parametrize("reading", ["strict", "loose"])
def test_public_prompts_are_judged_as_officially(reading: str) -> None:
    folder = os.environ.get("CREDITLIB_DATA")
    if not folder:
        pytest.skip("CREDITLIB_DATA is not set: the folder above instructions/ifeval")
    rows = ANSWERS["shipped"](Path(folder) / "instructions")
    assert len(rows) == 2 * 539
    judge = Judge("official", loose=reading == "loose")
    found = [
        check.score == 1
        for ids, arguments, text in rows
        for check in judge(
            Job(text, [{"id": id, "kwargs": own} for id, own in zip(ids, arguments, strict=True)])
        )
    ]
    assert found == ANSWERS["unpack"](FROZEN["shipped"][reading])
