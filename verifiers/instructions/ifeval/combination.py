"""Answers of two parts."""

from __future__ import annotations

import re
from itertools import pairwise

from creditlib.types import Span
from verifiers.instructions.answer import NOT_AFTER_WORD, NOT_BEFORE_WORD, Answer
from verifiers.instructions.constraint import Finding, Text, UnverifiableError, constraint

_SIX = re.compile(r"(?<!\*)\*{6}(?!\*)")
# What may be written above each of two answers, and makes no other answer of it: "**Answer B**:"
_LABEL = re.compile(
    r"\W*(?:(?:first|second|1st|2nd)\s+)?(?:response|answer|option|version|alternative)\b"
    r"(?:\s*#?(?:\d|one|two|[ab])\b)?\W*"
)
_BEFORE = re.compile(r"[\s\"'“”‘*_>#`]*")  # quotes and markup that may stand before a repeated request

_WORD_EDGE = re.compile(f"{NOT_AFTER_WORD}|{NOT_BEFORE_WORD}")


@constraint(
    "combination:two_responses", "Give two different answers with ****** (six asterisks) between them."
)
def two_responses(answer: Answer) -> Finding:
    """Answers that differ in nothing but case, white space, punctuation and a label ("Response 1:") are the
    same.
    """
    parts, marks = _parts(answer, _SIX)
    said = [_said(answer.folded[part.start : part.end]) for part in parts]
    answers = [words for words in said if words]
    return _two(len(answers), len(answers) == 2 and answers[0] != answers[1], marks or answer.whole)


@two_responses.official
def _(answer: Answer) -> Finding:
    parts, marks = _parts(answer, re.compile(r"\*{6}"))
    said = [answer.text[part.start : part.end].strip() for part in parts]
    answers = [text for text in said if text]
    passed = all(said[1:-1]) and len(answers) == 2 and answers[0] != answers[1]
    return _two(len(answers), passed, marks or answer.whole)


@constraint(
    "combination:repeat_prompt",
    'First repeat this request word for word, with nothing before it, then answer it: "{prompt_to_repeat}"',
)
def repeat_prompt(answer: Answer, prompt_to_repeat: Text) -> Finding:
    wanted = Answer(prompt_to_repeat).folded.split()
    if not wanted:
        raise UnverifiableError("argument prompt_to_repeat is blank")
    text = answer.folded
    # The request may be quoted, unless it begins with a quote itself.
    start = 0 if text.lstrip().startswith(wanted[0]) else _BEFORE.match(text).end()  # type: ignore[union-attr]
    end = _end_of(wanted, text, start)
    if end is None:
        return _repeated(answer, prompt_to_repeat, False, "the request is not repeated")
    answered = any(map(str.isalnum, text[end:]))
    return _repeated(answer, prompt_to_repeat, answered, f"repeated, then answered: {answered}")


@repeat_prompt.official
def _(answer: Answer, prompt_to_repeat: Text) -> Finding:
    passed = answer.text.strip().lower().startswith(prompt_to_repeat.strip().lower())
    return _repeated(answer, prompt_to_repeat, passed, f"repeated: {passed}")


# --------------------------------------------------------------------------- what they share


def _parts(answer: Answer, divider: re.Pattern[str]) -> tuple[list[Span], tuple[Span, ...]]:
    """What stands between the dividers, blank or not; and the parts that are not blank with the dividers."""
    dividers = [Span(*match.span(), "divider") for match in divider.finditer(answer.text)]
    ends = [Span(0, 0, ""), *dividers, Span(len(answer.text), len(answer.text), "")]
    parts = [Span(before.end, after.start, "answer") for before, after in pairwise(ends)]
    filled = [part for part in parts if answer.text[part.start : part.end].strip()]
    return parts, tuple(sorted(dividers + filled)) if dividers else ()


def _said(text: str) -> list[str]:
    """The words of an answer, without its label where there is more."""
    label = _LABEL.match(text)
    words = [word.text for word in Answer(text[label.end() :] if label else text).words]
    return words or [word.text for word in Answer(text).words]


def _two(count: int, passed: bool, marks: tuple[Span, ...]) -> Finding:
    return Finding(passed, f"{count} answers, two different ones wanted", marks)


def _end_of(words: list[str], text: str, start: int) -> int | None:
    """Where `text` has said all of `words` from `start` on, with any white space between them and no more
    letters behind the last.
    """
    for index, word in enumerate(words):
        before = start
        while start < len(text) and text[start].isspace():
            start += 1
        if (index and start == before) or not text.startswith(word, start):
            return None
        start += len(word)
    return start if _WORD_EDGE.match(text, start) else None


def _repeated(answer: Answer, prompt: str, passed: bool, reason: str) -> Finding:
    """The span is as long as the request."""
    start = len(answer.text) - len(answer.text.lstrip())
    end = min(len(answer.text), start + len(prompt.strip()))
    return Finding(passed, reason, (Span(start, end, "request"),) if end > start else answer.whole)
