"""How many of something an answer has: words, names, numbers, punctuation marks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from creditlib.types import Span
from verifiers.instructions.answer import Answer, Piece
from verifiers.instructions.constraint import (
    Count,
    Finding,
    Positive,
    Text,
    UnverifiableError,
    compare,
    constraint,
    spans,
)
from verifiers.instructions.ifbench._official import bare
from verifiers.instructions.ifbench._shared import EDGES, key, keyword_words, ordinal, white_space_words

CONJUNCTIONS = frozenset("and but for nor or so yet".split())
NAMES = (  # the list in IFBench's prompts
    "Emma Liam Sophia Jackson Olivia Noah Ava Lucas Isabella Mason Mia Ethan Charlotte Alexander Amelia "
    "Benjamin Harper Leo Zoe Daniel Chloe Samuel Lily Matthew Grace Owen Abigail Gabriel Ella Jacob "
    "Scarlett Nathan Victoria Elijah Layla Nicholas Audrey David Hannah Christopher Penelope Thomas Nora "
    "Andrew Aria Joseph Claire Ryan Stella Jonathan"
).split()
_PERSONAL = frozenset(
    "i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself "
    "she her hers herself it its itself they them their theirs themselves".split()
)
# "This", "which" or "some" are missing: they are often no pronouns.
_PRONOUNS = _PERSONAL | frozenset(
    "themself oneself thou thee thy thine thyself who whom whose whoever whomever anybody anyone anything "
    "everybody everyone everything nobody nothing somebody someone something".split()
)
_ABBREVIATIONS = frozenset(("IT", "US"))
_TIMES = {1: "once", 2: "twice", 3: "three times", 5: "five times", 7: "seven times"}  # for the five keywords
_MARKS = frozenset(".,;:!?")
_WIDE_MARKS = str.maketrans("。，；：！？", ".,;:!?")
_LOUD = re.compile(r"[?!]+|[‽⁈⁉]")  # an interrobang, if both marks are in it
_MARK = re.compile(r"(?<!\d)[.,:]|[.,:](?!\d)|;")  # not those of 3.14 and 10:30
_NAME = re.compile(rf"\b(?:{'|'.join((*NAMES, *map(str.upper, NAMES)))})\b")
# Words that begin with a letter come first, so that the digits of "B12" are none of their own.
_NUMBER = re.compile(r"[^\W\d_]\w*(?:[.,:/]\d+)*|(?P<number>\d+(?:[.,:/]\d+)*)\w*")
_JAPANESE = re.compile(r"[\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f]+")
_PUBLIC_JAPANESE = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")


@constraint("count:word_count_range", "Use between {min_words} and {max_words} words.")
def word_count_range(answer: Answer, min_words: Count, max_words: Count) -> Finding:
    if max_words == 0:
        raise UnverifiableError("no answer has 0 words")
    return _in_range(answer, len(answer.words), min_words, max_words)


@word_count_range.official
def _(answer: Answer, min_words: Count, max_words: Count) -> Finding:
    return _in_range(answer, len(re.findall(r"\w+", answer.text)), min_words, max_words)


@constraint("count:unique_word_count", "Use at least {N} different words.")
def unique_word_count(answer: Answer, N: Positive) -> Finding:
    return _at_least(answer, len({key(word) for word in answer.words}), N, "different words")


@unique_word_count.official
def _(answer: Answer, N: Positive) -> Finding:
    found = {word.strip(EDGES) for word in answer.text.lower().split()}
    return _at_least(answer, len(found), N, "different words")


@constraint(
    "count:conjunctions",
    "Use at least {small_n} different coordinating conjunctions (for, and, nor, but, or, yet, so).",
)
def conjunctions(answer: Answer, small_n: Annotated[int, Field(ge=1, le=7)]) -> Finding:
    """Wherever they stand: whether "for" is a preposition is not asked."""
    found = CONJUNCTIONS & {key(word) for word in answer.words}
    return _at_least(answer, len(found), small_n, "coordinating conjunctions")


@conjunctions.official
def _(answer: Answer, small_n: int) -> Finding:
    found = {word for word in answer.text.split() if word.strip(EDGES).lower() in CONJUNCTIONS}
    return _at_least(answer, len(found), small_n, "spellings of coordinating conjunctions")


@constraint(
    "count:person_names", lambda N: f"Mention at least {N} different persons, named as in {', '.join(NAMES)}."
)
def person_names(answer: Answer, N: Annotated[int, Field(ge=1, le=50)]) -> Finding:
    """As words of their own, with a capital first letter or all in capitals."""
    found = {match[0].capitalize() for match in _NAME.finditer(answer.text)}
    return _at_least(answer, len(found), N, "names of the list")


@person_names.official
def _(answer: Answer, N: int) -> Finding:
    return _at_least(answer, sum(name in answer.text for name in NAMES), N, "names of the list")


@constraint("count:numbers", "Include exactly {N} numbers, written in digits.")
def numbers(answer: Answer, N: Count) -> Finding:
    """1,000.5, 10:30, 1/2 and 3rd are one number each, 10-20 is two, B12 is none."""
    found = sum(match["number"] is not None for match in _NUMBER.finditer(answer.text))
    return Finding(bool(answer.words) and found == N, f"{found} numbers, exactly {N} wanted", answer.whole)


@numbers.official
def _(answer: Answer, N: Count) -> Finding:
    found = len(re.findall(r"\d+", bare(answer.text)))
    return Finding(found == N, f"{found} numbers, exactly {N} wanted", answer.whole)


@constraint(
    "count:punctuation",
    "Use each of these punctuation marks: full stop, comma, semicolon, colon, exclamation mark, question "
    "mark, and an interrobang (?!).",
)
def punctuation(answer: Answer) -> Finding:
    """The marks within an interrobang or a number do not count."""
    text = answer.text.translate(_WIDE_MARKS)
    loud = {match[0] for match in _LOUD.finditer(text)}
    interrobangs = {run for run in loud if run in "‽⁈⁉" or {"?", "!"} <= set(run)}
    alone = {run[0] for run in loud - interrobangs}
    return _all_marks(answer, bool(interrobangs), frozenset(_MARK.findall(text)) | alone)


@punctuation.official
def _(answer: Answer) -> Finding:
    text = answer.text
    first = next((mark for mark in ("?!", "!?") if mark in text), None)
    rest = text.replace(first, "", 1) if first else text
    return _all_marks(answer, first is not None or "‽" in text, _MARKS & set(rest))


@constraint("count:words_japanese", lambda N: f"Write every {ordinal(N)} word in Japanese.")
def words_japanese(answer: Answer, N: Positive) -> Finding:
    """In kana or kanji, which Chinese shares. Without spaces a word ends where the script changes. An answer
    that is too short for an N-th word must be all Japanese.
    """
    words = _words_by_script(answer)
    asked = words[N - 1 :: N] or words
    wrong = sum(_JAPANESE.fullmatch(answer.text, start, end) is None for start, end in asked)
    reason = f"{wrong} of {len(asked)} words that should be Japanese are not"
    marked = tuple(Span(start, end, "word") for start, end in asked)
    return Finding(bool(words) and not wrong, reason, marked or answer.whole)


@words_japanese.official
def _(answer: Answer, N: Positive) -> Finding:
    asked = white_space_words(answer.text)[N - 1 :: N]
    wrong = 0
    for word in asked:
        inner = word.text.strip(EDGES)
        wrong += bool(inner) and not inner.isdigit() and not _PUBLIC_JAPANESE.search(inner)
    reason = f"{wrong} of {len(asked)} words that should be Japanese are not"
    return Finding(not wrong, reason, spans(asked, "word") or answer.whole)


@constraint("count:pronouns", "Use at least {N} pronouns.")
def pronouns(answer: Answer, N: Positive) -> Finding:
    """Personal, possessive and reflexive ones, and those like "who" and "everyone" that are never anything
    else; also in "I'm". US and IT are countries and technologies, unless all is in capitals.
    """
    in_capitals = answer.text.isupper()
    found = sum(
        key(word).partition("'")[0] in _PRONOUNS
        for word in answer.words
        if in_capitals or word.text not in _ABBREVIATIONS
    )
    return _at_least(answer, found, N, "pronouns")


@pronouns.official
def _(answer: Answer, N: Positive) -> Finding:
    words = bare(answer.text.replace("/", " ").lower()).split()
    return _at_least(answer, sum(word in _PERSONAL for word in words), N, "pronouns")


def _keyword_wording(**keywords: str) -> str:
    wanted = (f"{word} {often}" for word, often in zip(keywords.values(), _TIMES.values(), strict=True))
    return f"Use the word {', '.join(wanted)}; no more and no less."


@constraint("count:keywords_multiple", _keyword_wording)
def keywords_multiple(
    answer: Answer, keyword1: Text, keyword2: Text, keyword3: Text, keyword4: Text, keyword5: Text
) -> Finding:
    """As words of their own: "art" is not in "start"."""
    keywords = _stripped(keyword1, keyword2, keyword3, keyword4, keyword5)
    found = [answer.occurrences(keyword) for keyword in keywords]
    return _as_often_as_wanted(answer, keywords, [len(each) for each in found], found)


@keywords_multiple.official
def _(
    answer: Answer, keyword1: Text, keyword2: Text, keyword3: Text, keyword4: Text, keyword5: Text
) -> Finding:
    keywords = _stripped(keyword1, keyword2, keyword3, keyword4, keyword5)
    text = answer.text.lower()
    counts = [text.count(keyword.lower()) for keyword in keywords]
    found = [
        [Piece(*match.span(), match[0]) for match in re.finditer(re.escape(keyword.lower()), answer.folded)]
        for keyword in keywords
    ]
    return _as_often_as_wanted(answer, keywords, counts, found)


# --------------------------------------------------------------------------- what they share


def _at_least(answer: Answer, found: int, wanted: int, what: str) -> Finding:
    return Finding(*compare(found, "at least", wanted, what), answer.whole)


def _in_range(answer: Answer, found: int, low: int, high: int) -> Finding:
    if low > high:
        raise UnverifiableError(f"min_words is {low}, more than max_words, which is {high}")
    return Finding(low <= found <= high, f"{found} words, {low} to {high} wanted", answer.whole)


def _all_marks(answer: Answer, interrobang: bool, found: frozenset[str]) -> Finding:
    missing = sorted(_MARKS - found) + ([] if interrobang else ["?!"])
    return Finding(not missing, f"missing: {' '.join(missing)}" if missing else "all are used", answer.whole)


def _words_by_script(answer: Answer) -> list[tuple[int, int]]:
    """Where the answer's words start and end, Japanese characters in a row as one."""
    places: list[tuple[int, int]] = []
    japanese = False  # is the last word
    for word in answer.words:
        before, japanese = japanese, _JAPANESE.fullmatch(word.text) is not None
        if before and japanese and places[-1][1] == word.start:
            places[-1] = places[-1][0], word.end
        else:
            places.append((word.start, word.end))
    return places


def _stripped(*keywords: str) -> list[str]:
    found = [keyword.strip() for keyword in keywords if keyword_words(keyword)]
    if len({own.lower() for own in found}) < len(found):
        raise UnverifiableError("two keywords are the same, but wanted a different number of times")
    return found


def _as_often_as_wanted(
    answer: Answer, keywords: Sequence[str], counts: Sequence[int], found: Sequence[Sequence[Piece]]
) -> Finding:
    wrong = [
        f"{keyword} {count} times, {times} wanted"
        for keyword, count, times in zip(keywords, counts, _TIMES, strict=True)
        if count != times
    ]
    marked = tuple(span for each in found for span in spans(each, "keyword"))
    return Finding(not wrong, "; ".join(wrong) or "each as often as wanted", marked or answer.whole)
