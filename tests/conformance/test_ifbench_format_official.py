"""Our official reading of IFBench's format, sentence, repeat and custom constraints against the public one.

The public verdicts are frozen in ifbench_format_verdicts.json (ifbench_format_answers.py tells how). One
difference is meant, and the generated answers stay clear of it: for repeat:repeat_span with place 0 the
public code draws a place at random.
"""

from __future__ import annotations

import json
import os
import runpy
from pathlib import Path
from typing import Any

import pytest

from verifiers.instructions import Job
from verifiers.instructions.verifier import Judge

HERE = Path(__file__).parent
ANSWERS = runpy.run_path(str(HERE / "ifbench_format_answers.py"))
FROZEN = json.loads((HERE / "ifbench_format_verdicts.json").read_text())["verdicts"]
OFFICIAL = Judge("official")


def official(text: str, id: str, kwargs: dict[str, Any]) -> float:
    return OFFICIAL(Job(text, [{"id": id, "kwargs": kwargs}]))[0].score


@pytest.mark.parametrize("id", ANSWERS["MAKERS"])
def test_verdicts_are_the_public_ones(id: str) -> None:
    cases = [ANSWERS["answer"](id, index) for index in range(ANSWERS["COUNT"])]
    assert ANSWERS["checksum"](cases) == FROZEN[id]["answers"], "the answers are not those that were frozen"
    expected = [int(bit) for bit in f"{int(FROZEN[id]['bits'], 16):0{len(cases)}b}"]
    found = [official(text, id, kwargs) for kwargs, text in cases]
    different = [cases[at] for at in range(len(cases)) if found[at] != expected[at]]
    assert different == []
    assert 0.1 < sum(expected) / len(cases) < 0.9  # the answers tell right from wrong
    # Where the public checker stops with an error, the answer keeps nothing.
    assert all(found[at] == 0 for at in FROZEN[id]["errors"])


def test_verdicts_on_the_published_answers() -> None:
    folder = os.environ.get("CREDITLIB_DATA")
    if not folder:
        pytest.skip("CREDITLIB_DATA is not set: the folder above instructions/ifbench")
    data = Path(folder) / "instructions" / "ifbench"
    prompts = {row["prompt"]: row for row in _rows(data / "IFBench_test.jsonl")}
    compared, different = 0, []
    for row in _rows(data / "eval_results_strict.jsonl"):
        # Four prompts are worded otherwise in the answers' version of the data, which holds no arguments.
        asked = prompts.get(row["prompt"], {"kwargs": [{}] * len(row["instruction_id_list"])})
        ids = row["instruction_id_list"]
        for id, kwargs, expected in zip(ids, asked["kwargs"], row["follow_instruction_list"], strict=True):
            if id in ANSWERS["MAKERS"]:
                compared += 1
                if official(row["response"], id, kwargs) != expected:
                    different.append((id, row["response"]))
    assert different == []
    assert compared == 145


def test_every_constraint_of_the_public_prompts_can_be_checked() -> None:
    folder = os.environ.get("CREDITLIB_DATA")
    if not folder:
        pytest.skip("CREDITLIB_DATA is not set: the folder above instructions/ifbench")
    sound, seen = Judge("sound"), set()
    for row in _rows(Path(folder) / "instructions" / "ifbench" / "IFBench_test.jsonl"):
        for id, kwargs in zip(row["instruction_id_list"], row["kwargs"], strict=True):
            if id in ANSWERS["MAKERS"]:
                seen.add(id)
                found = sound(Job("One answer.", [{"id": id, "kwargs": kwargs}]))[0]
                assert found.score in (0, 1), found.reason
    assert seen == set(ANSWERS["MAKERS"])


def _rows(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]
