"""The frame of the instruction verifiers: arguments, modes, the loose reading, worker processes."""

from __future__ import annotations

import math
from typing import Any

import pytest

from creditlib.types import CreditlibError
from verifiers.instructions import InstructionVerifier, Job, check
from verifiers.instructions.constraint import Constraint
from verifiers.instructions.verifier import answer_start
from verifiers.pool import Failure

NO_COMMA = {"id": "punctuation:no_comma"}
UNKNOWN = {"id": "no:such"}


def one(response: str, wanted: Any, **settings: Any) -> Any:
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
        ("punctuation:no_comma", 'expected {"id": ..., "kwargs": {...}}, found \'punctuation:no_comma\''),
        (
            {"id": "keywords:existence", "kwargs": {"keywords": "river"}},
            "argument keywords: input should be a list (found 'river')",
        ),
        (
            {"id": "punctuation:no_comas"},
            "there is no constraint 'punctuation:no_comas'. Did you mean 'punctuation:no_comma'?",
        ),
        ({"id": "no_comma"}, "there is no constraint 'no_comma'. Did you mean 'punctuation:no_comma'?"),
        ({"id": None}, "there is no constraint None"),
        ({}, "there is no constraint None"),
        ({"id": ["a"]}, "there is no constraint ['a']"),
        ({**NO_COMMA, "kwargs": {"most": 3}}, "there is no argument most, only none"),
        (
            {"id": "count:numbers", "kwargs": {"N": True}},
            "argument N: expected a number or a text, found True",
        ),
        (
            {"id": "count:numbers", "kwargs": {"N": 2**70}},
            f"argument N: input should be less than or equal to 1000000 (found {2**70})",
        ),
        (
            {**NO_COMMA, "kwargs": [3]},
            "kwargs of punctuation:no_comma: expected arguments by name, found [3]",
        ),
    ],
)
def test_what_cannot_be_checked_is_neither_kept_nor_broken(wanted: Any, reason: str) -> None:
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


@pytest.mark.parametrize("lead", ["one, two", "\n", "", "one <b>, two\n\n"])
def test_the_prompt_may_have_begun_the_thinking(lead: str) -> None:
    response = f"{lead}</think>\n\nthree, four"
    assert response[answer_start(response) :] == "three, four"
    found = one(response, NO_COMMA)
    assert [(span.start, response[span.start]) for span in found.spans] == [(response.rindex(","), ",")]
    assert one(f"{lead}</think>three", NO_COMMA).score == 1.0
    assert one(f"{lead}</think>", NO_COMMA).score == 0.0
    assert answer_start(f"Well: <think>{lead}</think>") == 0  # an answer that speaks of thinking


@pytest.mark.parametrize("mode", ["sound", "official"])
@pytest.mark.parametrize("loose", [False, True])
@pytest.mark.parametrize("answer", ["", " \n\t", "\r\n\r\n"])
def test_silence_keeps_nothing(answer: str, loose: bool, mode: str) -> None:
    found = check(answer, constraints=[NO_COMMA, UNKNOWN], mode=mode, loose=loose)  # type: ignore[arg-type]
    assert (found["0"].score, found["0"].reason) == (0.0, "the answer is empty")
    assert math.isnan(found["1"].score)


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        *(
            (answer, False)
            for answer in ("<think>plan forever", "<think>a</think>\n", "\u200b\ufeff", "\x00")
        ),
        *((answer, False) for answer in ("...", "**", "``", '" "', "\u3164", "\u2800", "\ud800", "\u0301")),
        *((answer, True) for answer in ("a", "7", "好", "😀", "-", "€", "<think>a</think>b")),
    ],
)
def test_an_answer_has_something_to_see(answer: str, kept: bool) -> None:
    assert one(answer, NO_COMMA).score == kept


def test_no_loose_reading_is_empty() -> None:
    assert one("a, b\n...", NO_COMMA, loose=True).score == 0.0
    assert one("a, b\nc", NO_COMMA, loose=True).score == 1.0


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


def test_what_was_given_up_is_broken_save_what_cannot_be_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = {"id": "keywords:existence"}
    with InstructionVerifier() as verifier:
        monkeypatch.setattr(
            verifier._pool, "map", lambda jobs, **_: [Failure("cpu", "too long") for _ in jobs]
        )
        (found,) = verifier.check_many([Job("a b", [NO_COMMA, UNKNOWN, missing])])
    assert (found[0].score, found[0].flags, found[0].info) == (
        0.0,
        ("timeout:cpu",),
        "Do not use any commas.",
    )
    assert [own.flags for own in found[1:]] == [("data:constraint",)] * 2
    assert all(math.isnan(own.score) for own in found[1:])


def test_an_unknown_mode_is_refused_before_work() -> None:
    with pytest.raises(CreditlibError, match="unknown mode 'strict': expected one of sound, official"):
        InstructionVerifier(mode="strict")  # type: ignore[arg-type]


def test_true_and_false_are_taken_where_they_are_asked_for() -> None:
    def strictly(answer: Any, strict: bool = False) -> Any: ...

    own = Constraint("mine:strictly", "Be {strict}.", strictly)
    assert own.arguments({"strict": True}) == {"strict": True}
    assert own.arguments({}) == {"strict": False}
