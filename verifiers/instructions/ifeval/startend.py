"""How an answer begins and ends."""

from __future__ import annotations

import re

from creditlib.types import Span
from verifiers.instructions.answer import NOT_AFTER_WORD, Answer
from verifiers.instructions.constraint import Finding, Text, UnverifiableError, constraint

_PAIRS = {'"': '"', "“": "”", "„": "“”", "＂": "＂", "「": "」", "『": "』"}
_AROUND = '"”“*_` \t\r\n\f\v'  # quotes, markup and white space that may stand around what is said
_END_OF_PHRASE = re.compile(rf"{NOT_AFTER_WORD}$")


@constraint("startend:quotation", "Put your whole answer in double quotation marks.")
def quotation(answer: Answer) -> Finding:
    text = answer.text.strip()
    start = answer.text.find(text)
    passed = len(text) > 2 and text[-1] in _PAIRS.get(text[0], "") and not _closes_before_end(text)
    return _edges(answer, start, len(text), passed)


@quotation.official
def _(answer: Answer) -> Finding:
    text = answer.text.strip()
    passed = len(text) > 1 and text[0] == text[-1] == '"'
    return _edges(answer, answer.text.find(text), len(text), passed)


@constraint(
    "startend:end_checker", 'End your answer with exactly these words and nothing behind them: "{end_phrase}"'
)
def end_checker(answer: Answer, end_phrase: Text) -> Finding:
    """Quotes and markup around the phrase do not matter, nor a full stop that it lacks."""
    wanted = _plain(end_phrase).strip(_AROUND)
    if not wanted:
        raise UnverifiableError(f"argument end_phrase: expected words, found {end_phrase!r}")
    said = answer.text.rstrip(_AROUND)
    if wanted[-1].isalnum():
        said = said.rstrip(_AROUND + ".!")
    said = _plain(said)
    before = said.removesuffix(wanted)
    passed = before != said and (not wanted[0].isalnum() or _ends_no_word(before))
    return _ending(answer, end_phrase, passed)


@end_checker.official
def _(answer: Answer, end_phrase: Text) -> Finding:
    said = answer.text.strip().strip('"').lower()
    return _ending(answer, end_phrase, said.endswith(end_phrase.strip().lower()))


# --------------------------------------------------------------------------- what they share


def _closes_before_end(text: str) -> bool:
    """Whether the opening quote is closed before the end, as in `"a" and "b"`. A quote behind a word or sign
    with none following closes; other ones before a word open.
    """
    closing = _PAIRS[text[0]]
    depth = 1
    for index in (match.start() for match in re.finditer(f"[{text[0]}{closing}]", text[1:-1])):
        own, before, after = text[index + 1], text[index], text[index + 2]
        if own in closing and not before.isspace() and not after.isalnum():
            depth -= 1
        elif own == text[0] and not before.isalnum():
            depth += 1
        if depth == 0:
            return True
    return False


def _edges(answer: Answer, start: int, length: int, passed: bool) -> Finding:
    marks = tuple(Span(at, at + 1, "quote") for at in sorted({start, start + length - 1}) if length)
    return Finding(passed, f"in quotation marks: {passed}", marks or answer.whole)


def _ending(answer: Answer, phrase: str, passed: bool) -> Finding:
    """The span is as many words as the phrase has, from the end."""
    words = answer.words[-max(1, len(Answer(phrase).words)) :]
    end = len(answer.text.rstrip())
    marks = (Span(words[0].start, end, "end"),) if words else answer.whole
    said = answer.text[words[0].start : end] if words else ""
    return Finding(passed, f'it ends with "{said}"', marks)


def _plain(text: str) -> str:
    return " ".join(text.lower().replace("’", "'").split())


def _ends_no_word(text: str) -> bool:
    return _END_OF_PHRASE.search(text) is not None
