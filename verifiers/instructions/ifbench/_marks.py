"""Marks that a person sees in an answer: quotation marks, emoji, a code fence around all of it."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from verifiers.instructions.answer import Answer, Piece
from verifiers.instructions.marks import fence

_DOUBLE = '"“”„«»'
_QUOTE = re.compile(f"[{_DOUBLE}]|(?<![^\\W_])['‘’]|['‘’](?![^\\W_])")  # no apostrophe within a word
_OUTER = "\"'“”‘’«»„`*_ \t\r\n"

# Emoji by the blocks and ranges that hold them: the standard library does not know Unicode's property of that
# name. The sign that makes a key of a digit is one, too.
_EMOJI = re.compile(
    "[\u20e3\u231a\u231b\u23cf\u23e9-\u23fa\u2600-\u27bf\u2934\u2935\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55\u3030\u303d"
    "\u3297\u3299\U0001f000-\U0001faff]"
)
_EMOJI_PARTS = frozenset("\u200d\ufe0f") | {chr(code) for code in range(0xE0020, 0xE0080)}


def within(piece: Piece, lines: Sequence[Piece]) -> bool:
    """Whether a piece of a text lies in one of these lines, which are in order."""
    before = bisect_left(lines, Piece(piece.start + 1, 0, "")) - 1
    return before >= 0 and piece.start < lines[before].end


def unfenced(answer: Answer) -> Piece:
    """An answer without the fences of a block of code around all of it, or without white space there."""
    text, lines = answer.text, answer.lines
    if len(lines) > 2 and fence(lines[0]) and fence(lines[-1]):
        start, end = lines[0].end, lines[-1].start
    else:
        start, end = 0, len(text)
    inner = text[start:end]
    start += len(inner) - len(inner.lstrip())
    return Piece(start, start + len(inner.strip()), inner.strip())


def unquoted(text: str) -> str:
    """Without quotation marks, emphasis and white space around all of it."""
    return text.strip(_OUTER)


# --------------------------------------------------------------------------- emoji


def is_emoji(letter: str) -> bool:
    """Whether a character is one by the block it is in: pictographs, dingbats, weather and game signs, flags'
    letters. Digits, "©" and "™", which Unicode counts too, are none; "✓", which it does not count, is one.
    """
    return letter >= "\u20e3" and _EMOJI.match(letter) is not None


def emoji_before(text: str, start: int, end: int) -> Piece | None:
    """The emoji that `text[start:end]` ends with, but for punctuation and white space behind it."""
    while end > start and not text[end - 1].isalnum():
        if is_emoji(text[end - 1]):
            first = end
            while first > start and (text[first - 1] in _EMOJI_PARTS or is_emoji(text[first - 1])):
                first -= 1
            return Piece(first, end, text[first:end])
        end -= 1
    return None


def emoji_after(text: str, start: int) -> Piece | None:
    """The emoji that stands at `start`, but for spaces before it."""
    while start < len(text) and text[start] in " \t\u00a0":
        start += 1
    end = start
    while end < len(text) and (is_emoji(text[end]) or (end > start and text[end] in _EMOJI_PARTS)):
        end += 1
    return Piece(start, end, text[start:end]) if end > start else None


# --------------------------------------------------------------------------- quotations


class Quotation(NamedTuple):
    """Characters `start:end` of a text, quotation marks included.

    `depth` is the number of quotations within quotations that alternate between double and single marks, this
    one included.
    """

    start: int
    end: int
    double: bool
    depth: int


_quotation = tuple.__new__  # makes one in half the time


def quotations(text: str) -> list[Quotation]:
    """Quotations that are opened and closed, each behind those that it holds. Apostrophes and the signs for
    feet and inches open none.
    """
    found: list[Quotation] = []
    opened: list[tuple[int, bool]] = []  # where, and whether a double mark
    waiting = [0, 0]  # of `opened`, single and double ones
    inside = [(0, 0)]  # the deepest single and double quotation in the text, and in each of `opened`
    for match in _QUOTE.finditer(text):
        at = match.start()
        mark = text[at]
        double = mark in _DOUBLE
        before, after = text[at - 1 : at] or " ", text[at + 1 : at + 2] or " "
        if waiting[double] and _closes(mark, before, after):
            while (last := opened.pop())[1] != double:  # never closed: what it holds is the outer one's
                waiting[last[1]] -= 1
                inside[-2:] = [_deeper(*inside[-2:])]
            waiting[double] -= 1
            held = inside.pop()
            depth = 1 + held[not double]
            if depth > held[double]:  # so that it is the deepest of its kind
                held = (held[0], depth) if double else (depth, held[1])
            if held != inside[-1]:
                inside[-1] = _deeper(inside[-1], held)
            found.append(_quotation(Quotation, (last[0], at + 1, double, depth)))
        elif _opens(mark, before, after):
            opened.append((at, double))
            inside.append((0, 0))
            waiting[double] += 1
    return found


def _deeper(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    return (one[0] if one[0] > other[0] else other[0], one[1] if one[1] > other[1] else other[1])


def _opens(mark: str, before: str, after: str) -> bool:
    if mark in "\"'":
        return not before.isalnum() and not after.isspace()
    return mark in "“‘„«"


def _closes(mark: str, before: str, after: str) -> bool:
    if mark in "\"'":
        return not before.isspace() and not after.isalnum()
    return mark in "”’»"
