"""What single sentences hold, and how their lengths grow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from verifiers.instructions.answer import Answer, Piece
from verifiers.instructions.constraint import (
    Count,
    Finding,
    Positive,
    Text,
    UnverifiableError,
    constraint,
    spans,
)
from verifiers.instructions.ifbench._official import bare, sentences
from verifiers.instructions.ifbench._shared import EDGES


@constraint("sentence:keyword", "Use the keyword {word} in sentence number {N}.")
def keyword(answer: Answer, word: Text, N: Positive) -> Finding:
    """As a word of its own, in any case."""
    if not word.strip():
        raise UnverifiableError("argument word: expected a word, found white space")
    if len(answer.sentences) < N:
        return Finding(False, f"{len(answer.sentences)} sentences, {N} wanted", answer.whole)
    own = answer.sentences[N - 1]
    found = any(own.start <= match.start < own.end for match in answer.occurrences(word))
    return Finding(found, f"sentence {N} is {own.text!r:.60}", (own.span("sentence"),))


@keyword.official
def _(answer: Answer, word: str, N: int) -> Finding:
    found = sentences(answer.text)
    if len(found) < N:
        return Finding(False, f"{len(found)} sentences, {N} wanted", answer.whole)
    passed = word.lower() in found[N - 1].lower()
    return Finding(passed, f"sentence {N} is {found[N - 1]!r:.60}", answer.whole)


@constraint("sentence:increment", "Make each sentence exactly {small_n} words longer than the one before.")
def increment(answer: Answer, small_n: Count) -> Finding:
    """At least two sentences."""
    counts = map(len, answer.words_of(answer.sentences))
    return _grow(answer, counts, lambda before, after: after == before + small_n, "words")


@increment.official
def _(answer: Answer, small_n: int) -> Finding:
    counts = [len(bare(own).split()) for own in sentences(answer.text)]
    if not counts:
        return Finding(False, "no sentence, which stops the public checker", answer.whole)
    grown = all(after == before + small_n for before, after in pairwise(counts))
    return Finding(grown, f"sentences of {_few(counts)} words, {small_n} more each wanted", answer.whole)


@constraint(
    "sentence:alliteration_increment",
    "Let each sentence hold a longer run of words with the same first letter than the sentence before.",
)
def alliteration_increment(answer: Answer) -> Finding:
    """The longest run counts; one word is no run. At least two sentences."""
    runs = map(_longest_run, answer.words_of(answer.sentences))
    return _grow(answer, runs, lambda before, after: after > before, "longest runs")


@alliteration_increment.official
def _(answer: Answer) -> Finding:
    """All runs of a sentence are added up."""
    totals = []
    for own in sentences(answer.text):
        firsts = [start[0] for word in own.lower().split() if (start := word.lstrip(EDGES))]
        same = [before == after for before, after in pairwise(firsts)]
        runs = sum(now and not last for last, now in pairwise([False, *same]))
        totals.append(sum(same) + runs)
    passed = all(before < after for before, after in pairwise(totals))
    return Finding(passed, f"{_few(totals)} words in runs", answer.whole)


def _longest_run(words: Sequence[Piece]) -> int:
    """The number of neighbours with the same first letter, 0 without any."""
    longest = run = 1
    for before, after in pairwise(word.text[0].casefold() for word in words):
        run = run + 1 if before == after else 1
        longest = max(longest, run)
    return longest if longest > 1 else 0


def _grow(answer: Answer, counts: Iterable[int], right: Callable[[int, int], bool], what: str) -> Finding:
    """Whether there are at least two sentences, and each is right after the one before. What stands behind
    the first that is not is not read.
    """
    read: list[int] = []
    grown = True
    for count in counts:
        grown = not read or right(read[-1], count)
        read.append(count)
        if not grown:
            break
    where = spans(answer.sentences[: len(read)], "sentence") or answer.whole
    return Finding(grown and len(read) > 1, f"{what} of the sentences: {_few(read)}", where)


def _few(counts: list[int]) -> str:
    return ", ".join(map(str, counts[:12])) + (", ..." if len(counts) > 12 else "") or "none"
