"""How many words, sentences and paragraphs."""

from __future__ import annotations

import re
from itertools import pairwise

from creditlib.types import Span
from verifiers.instructions import nltk_text
from verifiers.instructions.answer import Answer
from verifiers.instructions.constraint import (
    Finding,
    Positive,
    Relation,
    Text,
    UnverifiableError,
    compare,
    constraint,
)

# A row of asterisks is a divider on a line of its own, and three of them are one between words.
_DIVIDER = re.compile(r"(?<![^\r\n])[^\S\r\n]*+\*{3,}+[^\S\r\n]*+(?![^\r\n])|(?<!\S)\*\*\*(?!\S)")
_WORD = re.compile(r"\w+")


@constraint("length_constraints:number_words", "Answer with {relation} {num_words} words.")
def number_words(answer: Answer, num_words: Positive, relation: Relation) -> Finding:
    _expect_some(relation, num_words, "words")
    return _count(answer, len(answer.words), relation, num_words, "words")


@number_words.official
def _(answer: Answer, num_words: Positive, relation: Relation) -> Finding:
    return _count(answer, len(_WORD.findall(answer.text)), relation, num_words, "words")


@constraint("length_constraints:number_sentences", "Answer with {relation} {num_sentences} sentences.")
def number_sentences(answer: Answer, num_sentences: Positive, relation: Relation) -> Finding:
    _expect_some(relation, num_sentences, "sentences")
    return _count(answer, len(answer.sentences), relation, num_sentences, "sentences")


@number_sentences.official
def _(answer: Answer, num_sentences: Positive, relation: Relation) -> Finding:
    return _count(answer, len(nltk_text.sentences(answer.text)), relation, num_sentences, "sentences")


@constraint(
    "length_constraints:number_paragraphs",
    "Write {num_paragraphs} paragraphs, divided by lines that say ***.",
)
def number_paragraphs(answer: Answer, num_paragraphs: Positive) -> Finding:
    return _divided(answer, _DIVIDER, num_paragraphs, may_be_empty=True)


@number_paragraphs.official
def _(answer: Answer, num_paragraphs: Positive) -> Finding:
    return _divided(answer, re.compile(r"\s?\*\*\*\s?"), num_paragraphs, may_be_empty=False)


@constraint(
    "length_constraints:nth_paragraph_first_word",
    "Write {num_paragraphs} paragraphs with a blank line between them; paragraph {nth_paragraph} begins with "
    'the word "{first_word}".',
)
def nth_paragraph_first_word(
    answer: Answer, num_paragraphs: Positive, nth_paragraph: Positive, first_word: Text
) -> Finding:
    wanted = _folded_words(first_word)
    if not wanted:
        raise UnverifiableError(f"argument first_word: expected a word, found {first_word!r}")
    _possible(nth_paragraph, num_paragraphs)
    paragraphs = answer.paragraphs
    gaps = tuple(Span(before.end, after.start, "divider") for before, after in pairwise(paragraphs))
    if nth_paragraph > len(paragraphs):
        return Finding(False, f"{len(paragraphs)} paragraphs, {num_paragraphs} wanted", gaps or answer.whole)
    paragraph = paragraphs[nth_paragraph - 1]
    begins = Answer(paragraph.text).words[: len(wanted)]
    first = tuple(
        Span(paragraph.start + word.start, paragraph.start + word.end, "first word") for word in begins
    )
    said = " ".join(word.text for word in begins)
    return Finding(
        len(paragraphs) == num_paragraphs and _folded(said) == " ".join(wanted),
        f'{len(paragraphs)} paragraphs, {num_paragraphs} wanted; number {nth_paragraph} begins with "{said}"',
        tuple(sorted(gaps + first)) or answer.whole,
    )


@nth_paragraph_first_word.official
def _(answer: Answer, num_paragraphs: Positive, nth_paragraph: Positive, first_word: Text) -> Finding:
    """Blank paragraphs are not counted, but the n-th is looked for among all of them."""
    _possible(nth_paragraph, num_paragraphs)
    paragraphs = [paragraph.strip() for paragraph in answer.text.split("\n\n")]
    count = sum(map(bool, paragraphs))
    paragraph = paragraphs[nth_paragraph - 1] if nth_paragraph <= count else ""
    # At a first character that is one of these the word is over; opening quotes are passed over before.
    word = paragraph.split()[0].lstrip("'").lstrip('"') if paragraph else ""
    word = re.split(r"[.,?!'\"]", word)[0]
    said = "".join(letter.lower() for letter in word)
    passed = bool(paragraph) and count == num_paragraphs and said == first_word.lower()
    return Finding(passed, f'{count} paragraphs; number {nth_paragraph} begins with "{said}"', answer.whole)


# --------------------------------------------------------------------------- what they share


def _expect_some(relation: Relation, wanted: int, what: str) -> None:
    """An empty answer keeps nothing, so a limit of none is one that no answer keeps."""
    if relation == "less than" and wanted == 1:
        raise UnverifiableError(f"no answer has less than 1 {what}")


def _count(answer: Answer, found: int, relation: Relation, wanted: int, what: str) -> Finding:
    passed, reason = compare(found, relation, wanted, what)
    return Finding(passed, reason, answer.whole)


def _divided(answer: Answer, divider: re.Pattern[str], wanted: int, *, may_be_empty: bool) -> Finding:
    matches = list(divider.finditer(answer.text))
    ends = [0, *(end for match in matches for end in match.span()), len(answer.text)]
    filled = [bool(answer.text[start:end].strip()) for start, end in zip(ends[::2], ends[1::2], strict=True)]
    passed = sum(filled) == wanted and (may_be_empty or all(filled[1:-1]))
    marks = tuple(Span(*match.span(), "divider") for match in matches)
    return Finding(passed, f"{sum(filled)} paragraphs, exactly {wanted} wanted", marks or answer.whole)


def _possible(nth: int, count: int) -> None:
    if nth > count:
        raise UnverifiableError(f"there is no paragraph {nth} among {count}")


def _folded_words(text: str) -> list[str]:
    return [_folded(word.text) for word in Answer(text).words]


def _folded(text: str) -> str:
    return text.lower().replace("’", "'")
