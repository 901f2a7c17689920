"""The frame of the instruction verifiers: arguments, modes, the loose reading, worker processes."""

from __future__ import annotations

import math
from typing import Any

import pytest

from creditlib.types import CreditlibError
from verifiers.instructions import InstructionVerifier, Job, check

NO_COMMA = {"id": "punctuation:no_comma"}


def one(response: str, wanted: dict[str, Any], **settings: Any) -> Any:
    return check(response, constraints=[wanted], **settings)["0"]


def test_a_check_says_whether_why_where_and_what() -> None:
    found = one("Red, green, blue", NO_COMMA)
    assert (found.score, found.reason, found.info) == (0.0, "2 commas", "Do not use any commas.")
    assert [tuple(span) for span in found.spans] == [(3, 4, "comma"), (10, 11, "comma")]
    assert one("Red and blue", NO_COMMA).score == 1.0


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ({"id": "keywords:nonsense"}, "there is no constraint 'keywords:nonsense'"),
        ({"id": None}, "there is no constraint None"),
        ({}, "there is no constraint None"),
        ({"id": ["a"]}, "there is no constraint ['a']"),
        ({**NO_COMMA, "kwargs": {"most": 3}}, "there is no argument most"),
        (
            {**NO_COMMA, "kwargs": [3]},
            "kwargs of punctuation:no_comma: expected arguments by name, found [3]",
        ),
    ],
)
def test_what_cannot_be_checked_is_neither_kept_nor_broken(wanted: dict[str, Any], reason: str) -> None:
    for mode in ("sound", "official"):
        found = one("anything", wanted, mode=mode)
        assert math.isnan(found.score)
        assert found.reason == f"cannot be checked: {reason}"
        assert found.flags == ("data:constraint",)


def test_arguments_without_a_value_count_as_not_given() -> None:
    assert one("fine", {**NO_COMMA, "kwargs": {"num_words": None}}).score == 1.0
    assert one("fine", {**NO_COMMA, "kwargs": None}).score == 1.0


def test_the_sound_mode_reads_the_answer_behind_the_thinking() -> None:
    response = "<think>one, two</think>\nthree, four"
    found = one(response, NO_COMMA)
    assert [response[span.start : span.end] for span in found.spans] == [","]
    assert found.spans[0].start == response.rindex(",")
    assert one("<think>one, two</think> three", NO_COMMA).score == 1.0
    assert one("<think>one, two</think> three", NO_COMMA, mode="official").score == 0.0
    assert one("<think>one, two", NO_COMMA).spans == ()  # thinking that never ends: no answer


def test_the_loose_reading_leaves_out_lines_and_asterisks() -> None:
    assert one("Sure, here it is:\nred\nblue", NO_COMMA, loose=True).score == 1.0
    assert one("red\nblue\nThat, I hope, helps.", NO_COMMA, loose=True).score == 1.0
    assert one("one, two", NO_COMMA, loose=True).score == 0.0  # the other readings are empty
    assert one("a\nb, c\nd", NO_COMMA, loose=True).score == 0.0
    strict, loose = (one("Sure, yes:\nred", NO_COMMA, loose=flag) for flag in (False, True))
    assert loose.spans == strict.spans


def test_workers_say_what_this_process_says() -> None:
    jobs = [Job("a, b", [NO_COMMA, {"id": "no:such"}]), Job("a b", [NO_COMMA]), Job("a", [])]
    with InstructionVerifier(workers=2) as verifier:
        found = verifier.check_many(jobs)
    assert [[own.reason for own in each] for each in found] == [
        [own.reason for own in check(job.response, constraints=job.constraints).values()] for job in jobs
    ]


def test_an_unknown_mode_is_refused_before_work() -> None:
    with pytest.raises(CreditlibError, match="unknown mode 'strict': expected one of sound, official"):
        InstructionVerifier(mode="strict")  # type: ignore[arg-type]
