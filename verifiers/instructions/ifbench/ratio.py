"""Shares: of kinds of sentences, of stop words, of another text's trigrams."""

from __future__ import annotations

import re
from collections import Counter
from typing import Annotated

from pydantic import Field

from verifiers.instructions.answer import Answer, Piece
from verifiers.instructions.constraint import Finding, Text, UnverifiableError, constraint
from verifiers.instructions.ifbench._official import sentences
from verifiers.instructions.ifbench._shared import key

Percent = Annotated[int, Field(ge=0, le=100)]

# NLTK's English list: its words, and what the public code cuts words like "isn't" into.
_STOP_WORDS = frozenset(
    "a about above after again against all am an and any are as at be because been before being below "
    "between both but by can did do does doing down during each few for from further had has have having "
    "he her here hers herself him himself his how i if in into is it its itself just me more most my "
    "myself no nor not now of off on once only or other our ours ourselves out over own same she should "
    "so some such than that the their theirs them themselves then there these they this those through to "
    "too under until up very was we were what when where which while who whom why will with you your "
    "yours yourself yourselves".split()
)
_FRAGMENTS = frozenset(
    "ain aren couldn d didn doesn don hadn hasn haven isn ll m ma mightn mustn needn o re s shan shouldn "
    "t ve wasn weren won wouldn y".split()
)
_CLOSERS = "\"'”’)]*_»」』）"
_MARKS = ".!?…。！？"
_KINDS = {"?": "interrogative", "!": "exclamatory", ".": "declarative"}


@constraint("ratio:stop_words", "At most {percentage}% of the words may be stop words (the, of, is, ...).")
def stop_words(answer: Answer, percentage: Percent) -> Finding:
    """English ones, among them "it's" and "isn't"."""
    words = map(key, answer.words)
    found = sum(word.partition("'")[0] in _STOP_WORDS or word.endswith("n't") for word in words)
    return _share(answer, found, len(answer.words), percentage)


@stop_words.official
def _(answer: Answer, percentage: Percent) -> Finding:
    words = re.findall(r"\w+", answer.text)
    found = sum(word.lower() in _STOP_WORDS or word.lower() in _FRAGMENTS for word in words)
    return _share(answer, found, len(words), percentage)


@constraint("ratio:sentence_type", "Write exactly two declarative sentences for each question.")
def sentence_type(answer: Answer) -> Finding:
    kinds = Counter(map(_kind, answer.sentences))
    return _two_to_one(answer, kinds, kinds["?"] > 0)


@sentence_type.official
def _(answer: Answer) -> Finding:
    return _two_to_one(answer, Counter(sentence[-1:] for sentence in sentences(answer.text)), True)


@constraint("ratio:sentence_balance", "Write as many declarative sentences as questions and as exclamations.")
def sentence_balance(answer: Answer) -> Finding:
    kinds = Counter(map(_kind, answer.sentences))
    return _balanced(answer, kinds, kinds["?"] > 0)


@sentence_balance.official
def _(answer: Answer) -> Finding:
    return _balanced(answer, Counter(sentence[-1:] for sentence in sentences(answer.text)), True)


@constraint(
    "ratio:overlap",
    "Of the different trigrams (three characters in a row) in the answer, {percentage}% (±2%) must also "
    'stand in this text: "{reference_text}"',
)
def overlap(answer: Answer, reference_text: Text, percentage: Percent) -> Finding:
    """Trigrams of characters, case, white space and all, as the public code has them. It divides by zero
    where the answer has none; here that is not kept.
    """
    wanted = _trigrams(reference_text)
    if not wanted:
        raise UnverifiableError("reference_text is too short for a trigram")
    found = _trigrams(answer.text)
    if not found:
        return Finding(False, "too short for a trigram", answer.whole)
    share = len(found & wanted) / len(found)
    return Finding(
        percentage - 2 <= share * 100 <= percentage + 2,
        f"{share:.1%} of the trigrams are the reference's, {percentage}% wanted",
        answer.whole,
    )


@constraint(
    "ratio:sentence_words",
    "Write exactly three sentences that all have the same number of characters, and use no word twice.",
)
def sentence_words(answer: Answer) -> Finding:
    lengths = [len(sentence.text) for sentence in answer.sentences]
    repeated = len(answer.words) - len({key(word) for word in answer.words})
    finding = _three_alike(answer, lengths)
    if repeated:
        return Finding(False, f"{finding.reason}, {repeated} words are repetitions", answer.whole)
    return finding


@sentence_words.official
def _(answer: Answer) -> Finding:
    return _three_alike(answer, [len(sentence) for sentence in sentences(answer.text)])


# --------------------------------------------------------------------------- what they share


def _share(answer: Answer, found: int, words: int, percentage: int) -> Finding:
    if not words:
        return Finding(False, "no words", answer.whole)
    share = (found / words) * 100
    return Finding(
        share <= percentage, f"{share:.1f}% stop words, at most {percentage}% allowed", answer.whole
    )


def _kind(sentence: Piece) -> str:
    """ "?", "!" or "." for what ends it, whatever quotes and brackets close behind; "" for nothing."""
    body = sentence.text.rstrip(_CLOSERS)
    marks = body[len(body.rstrip(_MARKS)) :]
    if "?" in marks or "？" in marks:
        return "?"
    if "!" in marks or "！" in marks:
        return "!"
    return "." if marks else ""


def _two_to_one(answer: Answer, kinds: Counter[str], enough: bool) -> Finding:
    reason = f"{kinds['.']} declarative and {kinds['?']} interrogative sentences"
    return Finding(enough and kinds["."] == 2 * kinds["?"], reason, answer.whole)


def _balanced(answer: Answer, kinds: Counter[str], enough: bool) -> Finding:
    counts = {name: kinds[mark] for mark, name in _KINDS.items()}
    reason = ", ".join(f"{count} {name}" for name, count in counts.items())
    return Finding(enough and len(set(counts.values())) == 1, reason, answer.whole)


def _trigrams(text: str) -> set[str]:
    return {text[start : start + 3] for start in range(len(text) - 2)}


def _three_alike(answer: Answer, lengths: list[int]) -> Finding:
    reason = f"{len(lengths)} sentences of {', '.join(map(str, lengths[:4]))} characters"
    return Finding(len(lengths) == 3 and len(set(lengths)) == 1, reason, answer.whole)
