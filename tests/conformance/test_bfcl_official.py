"""Our verdicts against the official checker's, frozen in bfcl_verdicts.json, on BFCL's questions about Python
functions.

The official verdicts come from the public code (bfcl_mutations.py tells how). There are no disagreements on
these texts; where the rules differ elsewhere is listed in docs/verifiers/toolcall.md.
"""

from __future__ import annotations

import json
import os
import runpy
from pathlib import Path
from typing import Any

import pytest

from verifiers.toolcall import check
from verifiers.toolcall.bfcl_official import decode

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def frozen() -> Any:
    return json.loads((HERE / "bfcl_verdicts.json").read_text())


@pytest.fixture(scope="module")
def mutations() -> Any:
    return runpy.run_path(str(HERE / "bfcl_mutations.py"))


@pytest.fixture(scope="module")
def questions(mutations: Any) -> Any:
    folder = os.environ.get("CREDITLIB_DATA")
    if not folder:
        pytest.skip("CREDITLIB_DATA is not set: the folder above toolcall/bfcl")
    return mutations["questions"](Path(folder) / "toolcall" / "bfcl")


def valid(question: Any, response: str) -> bool:
    found = check(
        response, functions=question["function"], answers=question["ground_truth"], mode="official"
    )["correctness"]
    assert found.score in (-3, 3)
    return found.score == 3


def test_answer_keys(frozen: Any, mutations: Any, questions: Any) -> None:
    """Calls with the first or the last of the possible values, and with as few arguments as allowed."""
    keys = {
        f"{question['id']} {kind}": (question, mutations["answer_key"](question, kind))
        for question in questions
        for kind in mutations["KEYS"]
    }
    assert len(keys) == frozen["answer keys"]["count"] == 7053
    for written in (mutations["as_list"], mutations["as_block"]):
        wrong = [key for key, (question, calls) in keys.items() if not valid(question, written(calls))]
        assert sorted(wrong) == frozen["answer keys"]["not valid"]


def test_mutations(frozen: Any, mutations: Any, questions: Any) -> None:
    """10,000 calls with one of 36 kinds of change."""
    chosen = list(mutations["choose"](questions, 10_000))
    texts = [mutations["as_list"](calls) for _, _, _, calls in chosen]
    lines = [line.split() for line in frozen["mutations"]]
    for number, (checksum, _) in enumerate(lines):
        own = texts[100 * number : 100 * (number + 1)]
        assert mutations["checksum"](own) == checksum, "the mutator or the data is not what was frozen"
    expected = "".join(verdicts for _, verdicts in lines)
    assert 2000 < expected.count("1") < 8000  # the sample tells right from wrong
    different = [
        (question["id"], kind, text, verdict)
        for (question, kind, _, _), text, verdict in zip(chosen, texts, expected, strict=True)
        if valid(question, text) != (verdict == "1")
    ]
    assert different == []


def test_mutations_as_json(frozen: Any, mutations: Any, questions: Any) -> None:
    """The same calls in RLLA's format, which the public decoder does not read: same verdicts, but for tuples,
    which JSON does not have.
    """
    expected = "".join(line.split()[1] for line in frozen["mutations"])
    for (question, kind, _, calls), verdict in zip(
        mutations["choose"](questions, 10_000), expected, strict=True
    ):
        if kind != "as_tuple":
            assert valid(question, mutations["as_block"](calls)) == (verdict == "1"), (question["id"], calls)


def test_decoder(frozen: Any, mutations: Any) -> None:
    """What is read from texts in BFCL's prompt format, malformed ones too."""
    for text, official in zip(mutations["TEXTS"], frozen["decoded"], strict=True):
        calls, _ = decode(text)
        found = "fails" if calls is None else repr([{call.name: call.arguments} for call in calls])
        assert found == official, text
