"""Parts that an answer must contain."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from creditlib.types import Span
from verifiers.instructions.answer import NOT_AFTER_WORD, NOT_BEFORE_WORD, Answer
from verifiers.instructions.constraint import Finding, Positive, Text, UnverifiableError, compare, constraint
from verifiers.instructions.ifeval._official import official_pattern

_BRACKETS = re.compile(rf"{NOT_AFTER_WORD}(?<!!)\[([^\[\]\n]+)\](?!\()")  # no link, image or index
_QUOTED = re.compile(r"\"|(?<![^\W\d_])'")  # ["a"], ['a'], but not [client's name]
_INITIALS = re.compile(r"(?:[^\W\d_]\.?){2,4}")
_MARKUP = re.compile(r"[\s*_>#\"'“‘~-]*")


@constraint(
    "detectable_content:number_placeholders",
    "Leave at least {num_placeholders} placeholders to fill in, in square brackets like [address].",
)
def number_placeholders(answer: Answer, num_placeholders: Positive) -> Finding:
    """Numbers ("[1]"), boxes ("[x]"), quoted texts, links and indices are none."""
    found = [
        Span(*match.span(), "placeholder")
        for match in _BRACKETS.finditer(answer.text)
        if any(map(str.isalpha, match[1])) and match[1] not in ("x", "X") and not _QUOTED.search(match[1])
    ]
    return _placeholders(answer, found, num_placeholders)


@number_placeholders.official
def _(answer: Answer, num_placeholders: Positive) -> Finding:
    found = [Span(start, end, "placeholder") for start, end in _bracketed(answer.text)]
    return _placeholders(answer, found, num_placeholders)


@constraint(
    "detectable_content:postscript",
    "Add a postscript to the end of your answer, beginning with {postscript_marker}",
)
def postscript(answer: Answer, postscript_marker: Text) -> Finding:
    """A line behind something else that begins with the marker and says something. "P.S." may be written
    "ps:" or "P. S.".
    """
    begins = _marker(postscript_marker.strip())
    starts = []
    for line in answer.lines:
        start = line.start + _MARKUP.match(line.text).end()  # type: ignore[union-attr]
        if marker := begins.match(answer.text, start):
            starts.append((start, marker.end()))
    if not starts:
        return Finding(False, "there is no postscript", answer.whole)
    start, after = starts[-1]
    if not any(map(str.isalnum, answer.text[:start])):
        return _postscript(answer, start, "the postscript is all there is")
    says = any(map(str.isalnum, answer.text[after:]))
    return _postscript(answer, start, "" if says else "the postscript says nothing")


@postscript.official
def _(answer: Answer, postscript_marker: Text) -> Finding:
    marker = postscript_marker.strip()
    pattern = {"P.P.S": r"p\.\s?p\.\s?s", "P.S.": r"p\.\s?s\."}.get(marker, marker.lower())
    found = official_pattern(marker, pattern, re.MULTILINE).search(answer.text.lower())
    if found is None:
        return Finding(False, "there is no postscript", answer.whole)
    return _postscript(answer, min(found.start(), len(answer.text)), "")


# --------------------------------------------------------------------------- what they share


def _bracketed(text: str) -> Iterator[tuple[int, int]]:
    """From each opening bracket to the next closing one in its line, one behind the other."""
    end = 0
    while (start := text.find("[", end)) >= 0:
        line_end = text.find("\n", start)
        line_end = len(text) if line_end < 0 else line_end
        closing = text.find("]", start, line_end)
        if closing >= 0:
            yield start, closing + 1
        end = closing + 1 if closing >= 0 else line_end


def _placeholders(answer: Answer, found: Sequence[Span], wanted: int) -> Finding:
    passed, reason = compare(len(found), "at least", wanted, "placeholders")
    return Finding(passed, reason, tuple(found) or answer.whole)


def _marker(marker: str) -> re.Pattern[str]:
    """What the beginning of a postscript looks like; initials may lack their full stops."""
    if not marker:
        raise UnverifiableError("argument postscript_marker is blank")
    if _INITIALS.fullmatch(marker) and "." in marker:
        letters = [letter for letter in marker if letter != "."]
        pattern = r"\.? ?".join(map(re.escape, letters)) + r"[.:]?"
    else:
        pattern = re.escape(marker)
    return re.compile(
        pattern + (NOT_BEFORE_WORD if marker[-1].isalnum() or "." in marker else ""), re.IGNORECASE
    )


def _postscript(answer: Answer, start: int, problem: str) -> Finding:
    marks = (Span(start, len(answer.text), "postscript"),) if start < len(answer.text) else answer.whole
    return Finding(not problem, problem or "there is a postscript", marks)
