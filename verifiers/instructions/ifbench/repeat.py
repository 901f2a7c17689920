"""What to copy, and from where."""

from __future__ import annotations

from creditlib.types import Span
from verifiers.instructions.answer import Answer
from verifiers.instructions.constraint import Count, Finding, Text, UnverifiableError, constraint
from verifiers.instructions.ifbench._marks import unquoted

_SENTENCE = "Only output this sentence here, ignore all other requests."
_AROUND = ('""', "''", "“”", "‘’", "«»", "``")


@constraint(
    "repeat:repeat_change",
    "Repeat this request with another first word and do not answer it: {prompt_to_repeat}",
)
def repeat_change(answer: Answer, prompt_to_repeat: Text) -> Finding:
    """Word for word but for the first, which must be another word: with letters in it, and not the same in
    another case or between other marks. Quotation marks around all of it don't matter.
    """
    wanted, given = _words(prompt_to_repeat), _words(answer.text)
    if not wanted:
        raise UnverifiableError("argument prompt_to_repeat: expected words, found white space")
    if len(given) != len(wanted) or given[1:] != wanted[1:]:
        return Finding(False, "not the request behind its first word", answer.whole)
    before, now = ("".join(filter(str.isalnum, word)).casefold() for word in (wanted[0], given[0]))
    start = answer.text.index(given[0])
    parts = (Span(start, end := start + len(given[0]), "first word"), Span(end, len(answer.text), "copy"))
    where = tuple(own for own in parts if own.end > own.start)
    passed = before != now and any(map(str.isalpha, now))
    return Finding(passed, f"the first word is {given[0]!r:.40}", where)


@repeat_change.official
def _(answer: Answer, prompt_to_repeat: str) -> Finding:
    """The first word may stay if anything else, a space say, is different."""
    same_behind = prompt_to_repeat.split()[1:] == answer.text.split()[1:]
    passed = same_behind and prompt_to_repeat != answer.text
    return Finding(passed, "the request behind its first word" if same_behind else "not that", answer.whole)


@constraint("repeat:repeat_simple", f"Write this sentence and nothing else: {_SENTENCE}")
def repeat_simple(answer: Answer) -> Finding:
    """In any case; quotation marks around it don't matter."""
    same = " ".join(unquoted(answer.text).split()).casefold() == _SENTENCE.casefold()
    return Finding(same, "the sentence" if same else "something else", answer.whole)


@repeat_simple.official
def _(answer: Answer) -> Finding:
    same = answer.text.strip().lower() == _SENTENCE.lower()
    return Finding(same, "the sentence" if same else "something else", answer.whole)


@constraint(
    "repeat:repeat_span",
    "Copy words {n_start} to {n_end}, both included and counted from 0, of this text and write nothing else: "
    "{prompt_to_repeat}",
)
def repeat_span(answer: Answer, prompt_to_repeat: Text, n_start: Count, n_end: Count) -> Finding:
    """Words are what stands between white space. Case, and quotation marks around all of it, don't matter."""
    words = prompt_to_repeat.split()
    if not n_start <= n_end < len(words):
        raise UnverifiableError(
            f"arguments n_start and n_end: expected places of words between 0 and {len(words) - 1}, in "
            f"order, found {n_start} and {n_end}"
        )
    wanted = " ".join(words[n_start : n_end + 1])
    same = _plain(answer.text) == _plain(wanted)
    return Finding(same, f"wanted: {wanted:.80}", answer.whole)


@repeat_span.official
def _(answer: Answer, prompt_to_repeat: str, n_start: int, n_end: int) -> Finding:
    """Without the last of the words. For place 0 the public code draws a random place; here it is 0."""
    wanted = prompt_to_repeat.lower().split()[n_start:n_end]
    return Finding(answer.text.lower().split() == wanted, f"wanted: {' '.join(wanted):.80}", answer.whole)


def _words(text: str) -> list[str]:
    """A text's words, without a pair of quotation marks around all of it."""
    text = text.strip()
    return (text[1:-1] if text[:1] + text[1:][-1:] in _AROUND else text).split()


def _plain(text: str) -> str:
    return " ".join(_words(text)).casefold()
