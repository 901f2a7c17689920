"""Our official verdicts on IFBench's constraints of counts, ratios and words against the public ones: on
2,000 generated answers each, frozen in ifbench_words_verdicts.json, and on the sample answers of IFBench.

`words:start_verb` asks a part-of-speech tagger whose data no package has, so it is not compared. Where the
public code raises an exception (the fixture counts them), it gives no verdict and ours is that the constraint
is not kept. No generated answer has superscripts or combining marks: whether they are parts of words differs
among releases of NLTK.
"""

from __future__ import annotations

import json
import os
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from verifiers.instructions.verifier import Job, Judge

HERE = Path(__file__).parent
FAMILIES = ("count:", "ratio:", "words:")
UNCOMPARED = "words:start_verb"
ANSWERS = runpy.run_path(str(HERE / "ifbench_words_answers.py"))
FROZEN = json.loads((HERE / "ifbench_words_verdicts.json").read_text())
Official = Callable[[str, str, dict[str, Any]], float]
SYLLABLES = "words:odd_even_syllables"  # asks syllapy


def need_syllapy() -> None:
    pytest.importorskip("syllapy", reason="not installed: pip install 'creditlib[instructions]'")


@pytest.fixture(scope="module")
def official() -> Official:
    judge = Judge("official")
    return lambda answer, id, arguments: judge(Job(answer, [{"id": id, "kwargs": arguments}]))[0].score


@pytest.mark.parametrize("id", ANSWERS["MAKERS"])
def test_verdicts_are_the_official_ones(id: str, official: Official) -> None:
    if id == SYLLABLES:
        need_syllapy()
    frozen, count = FROZEN["verdicts"][id], ANSWERS["CASES"]
    assert ANSWERS["checksum"](id) == frozen["cases"], "the generator is not what was frozen"
    expected = f"{int(frozen['bits'], 16):0{count}b}"
    cases = [ANSWERS["case"](id, index) for index in range(count)]
    found = "".join(str(int(official(answer, id, arguments))) for arguments, answer in cases)
    different = [cases[i] for i in range(count) if found[i] != expected[i]]
    assert different == []
    assert 0.2 < expected.count("1") / count < 0.85  # the sample tells right from wrong


@pytest.fixture(scope="module")
def ifbench() -> Path:
    folder = os.environ.get("CREDITLIB_DATA")
    if not folder:
        pytest.skip("CREDITLIB_DATA is not set: the folder above instructions/ifbench")
    return Path(folder) / "instructions" / "ifbench"


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_verdicts_on_the_sample_answers(ifbench: Path, official: Official) -> None:
    need_syllapy()
    prompts = {row["prompt"].strip(): row for row in read(ifbench / "IFBench_test.jsonl")}
    different, compared = [], 0
    for row in read(ifbench / "eval_results_strict.jsonl"):
        prompt = prompts.get(row["prompt"].strip())
        if prompt is None:
            continue  # one was reworded after these results were made
        for id, arguments, passed in zip(
            row["instruction_id_list"], prompt["kwargs"], row["follow_instruction_list"], strict=True
        ):
            if id.startswith(FAMILIES) and id != UNCOMPARED:
                compared += 1
                if official(row["response"], id, arguments) != passed:
                    different.append((id, row["prompt"]))
    assert different == []
    assert compared == 184


def test_all_public_arguments_can_be_checked(ifbench: Path) -> None:
    judge, checked = Judge(), 0
    for row in read(ifbench / "IFBench_test.jsonl"):
        for id, arguments in zip(row["instruction_id_list"], row["kwargs"], strict=True):
            if id.startswith(FAMILIES):
                found = judge(Job("Some answer.", [{"id": id, "kwargs": arguments}]))[0]
                assert found.score in (0, 1), (id, arguments, found.reason)
                checked += 1
    assert checked == 198
