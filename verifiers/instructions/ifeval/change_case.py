"""Capital and small letters."""

from __future__ import annotations

import re

from verifiers.instructions import nltk_text
from verifiers.instructions.answer import Answer
from verifiers.instructions.constraint import Finding, Positive, Relation, compare, constraint, spans
from verifiers.instructions.language import detect, is_in

_POSSESSIVE = re.compile(r"['’]s$")


@constraint("change_case:english_capital", "Write in English and in capital letters only.")
def english_capital(answer: Answer) -> Finding:
    return _english(answer, [letter for letter in answer.text if letter.islower()], "small")


@english_capital.official
def _(answer: Answer) -> Finding:
    return _detected_english(answer, answer.text.isupper())


@constraint("change_case:english_lowercase", "Write in English and in small letters only, without capitals.")
def english_lowercase(answer: Answer) -> Finding:
    return _english(
        answer, [letter for letter in answer.text if letter.isupper() or letter.istitle()], "capital"
    )


@english_lowercase.official
def _(answer: Answer) -> Finding:
    return _detected_english(answer, answer.text.islower())


def _capital_words(capital_frequency: int, capital_relation: str) -> str:
    return f"Write {capital_relation} {capital_frequency} words in capital letters only."


@constraint("change_case:capital_word_frequency", _capital_words)
def capital_word_frequency(
    answer: Answer, capital_frequency: Positive, capital_relation: Relation
) -> Finding:
    """Words of two letters or more: "I" and "A" are written so anyway."""
    found = [
        word
        for word in answer.words
        if (plain := _POSSESSIVE.sub("", word.text)).isupper() and sum(map(str.isalpha, plain)) > 1
    ]
    passed, reason = compare(len(found), capital_relation, capital_frequency, "words in capitals")
    return Finding(passed, reason, spans(found, "capital word") or answer.whole)


@capital_word_frequency.official
def _(answer: Answer, capital_frequency: Positive, capital_relation: Relation) -> Finding:
    found = sum(word.isupper() for word in nltk_text.words(answer.text))
    passed, reason = compare(found, capital_relation, capital_frequency, "words in capitals")
    return Finding(passed, reason, answer.whole)


def _english(answer: Answer, wrong: list[str], kind: str) -> Finding:
    if wrong:
        return Finding(False, f"{len(wrong)} {kind} letters", answer.whole)
    passed = is_in(answer.text, "en")
    return Finding(passed, f"no {kind} letters, {'' if passed else 'not '}in English", answer.whole)


def _detected_english(answer: Answer, cased: bool) -> Finding:
    """In the public checker a text of which no language can be told counts as English."""
    found = detect(answer.text) if cased else None
    return Finding(cased and found in ("en", None), f"right case: {cased}, reads as {found}", answer.whole)
