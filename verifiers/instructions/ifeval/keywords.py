"""Words and letters that must, may not, or may only so often be there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from string import ascii_lowercase
from typing import Annotated

from pydantic import Field

from creditlib.types import Span
from verifiers.instructions.answer import Answer, Piece
from verifiers.instructions.constraint import (
    Finding,
    Positive,
    Relation,
    Text,
    Texts,
    UnverifiableError,
    compare,
    constraint,
    spans,
)
from verifiers.instructions.ifeval._official import official_pattern

Letter = Annotated[str, Field(min_length=1, max_length=1)]


@constraint("keywords:existence", "Use each of these words at least once: {keywords}.")
def existence(answer: Answer, keywords: Texts) -> Finding:
    return _all_there(answer, [_occurrences(answer, word) for word in keywords], keywords)


@existence.official
def _(answer: Answer, keywords: Texts) -> Finding:
    return _all_there(answer, [_matches(answer, word) for word in keywords], keywords)


@constraint("keywords:frequency", 'Use the word "{keyword}" {relation} {frequency} times.')
def frequency(answer: Answer, keyword: Text, frequency: Positive, relation: Relation) -> Finding:
    return _so_often(answer, _occurrences(answer, keyword), frequency, relation, keyword)


@frequency.official
def _(answer: Answer, keyword: Text, frequency: Positive, relation: Relation) -> Finding:
    return _so_often(answer, _matches(answer, keyword.strip()), frequency, relation, keyword)


@constraint("keywords:forbidden_words", "Do not use any of these words: {forbidden_words}.")
def forbidden_words(answer: Answer, forbidden_words: Texts) -> Finding:
    return _none_there(answer, [_occurrences(answer, word) for word in forbidden_words])


@forbidden_words.official
def _(answer: Answer, forbidden_words: Texts) -> Finding:
    return _none_there(answer, [_matches(answer, rf"\b{word}\b") for word in forbidden_words])


@constraint("keywords:letter_frequency", 'Use the letter "{letter}" {let_relation} {let_frequency} times.')
def letter_frequency(
    answer: Answer, letter: Letter, let_frequency: Positive, let_relation: Relation
) -> Finding:
    if letter.isspace():
        raise UnverifiableError(f"argument letter: expected a letter or sign, found {letter!r}")
    wanted = Answer(letter).folded
    found = [match.start() for match in re.finditer(re.escape(wanted), answer.folded)]
    passed, reason = compare(len(found), let_relation, let_frequency, f'times "{letter}"')
    return Finding(passed, reason, tuple(Span(index, index + 1, "letter") for index in found) or answer.whole)


@letter_frequency.official
def _(answer: Answer, letter: Letter, let_frequency: Positive, let_relation: Relation) -> Finding:
    """For a sign that is none of a to z the public checker draws one of these letters at random; here the
    verdict is the one that most letters give.
    """
    counts = Counter(answer.text.lower())
    letters = letter.lower() if letter.lower() in ascii_lowercase else ascii_lowercase
    kept = sum(compare(counts[own], let_relation, let_frequency, "")[0] for own in letters)
    reason = f"kept by {kept} of the {len(letters)} letters that may be meant, {let_relation} {let_frequency}"
    return Finding(2 * kept >= len(letters), reason, answer.whole)


# --------------------------------------------------------------------------- what they share


def _occurrences(answer: Answer, phrase: str) -> tuple[Piece, ...]:
    if not phrase.strip():
        raise UnverifiableError("a keyword is blank")
    return answer.occurrences(phrase)


def _matches(answer: Answer, pattern: str) -> list[Piece]:
    """Public checkers take keywords for regular expressions, anywhere in the text."""
    found = official_pattern(pattern, pattern, re.IGNORECASE).finditer(answer.text)
    return [Piece(*match.span(), match[0]) for match in found]


def _all_there(answer: Answer, found: Sequence[Iterable[Piece]], words: Texts) -> Finding:
    missing = [word for word, pieces in zip(words, found, strict=True) if not pieces]
    reason = f"missing: {', '.join(missing)}" if missing else "all words are there"
    return Finding(not missing, reason, _keywords(found) or answer.whole)


def _none_there(answer: Answer, found: Sequence[Iterable[Piece]]) -> Finding:
    marks = _keywords(found)
    used = sorted({answer.text[mark.start : mark.end] for mark in marks})
    return Finding(not marks, f"used: {', '.join(used)}" if marks else "none is used", marks or answer.whole)


def _so_often(answer: Answer, found: Sequence[Piece], wanted: int, relation: Relation, word: str) -> Finding:
    passed, reason = compare(len(found), relation, wanted, f'times "{word}"')
    return Finding(passed, reason, spans(found, "keyword") or answer.whole)


def _keywords(found: Sequence[Iterable[Piece]]) -> tuple[Span, ...]:
    return tuple(sorted({piece.span("keyword") for pieces in found for piece in pieces}))
