"""A response as constraints read it: its words, sentences, lines and paragraphs, each found once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from creditlib.types import Span

# Scripts that are written without spaces: each of their characters counts as a word.
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+(?:[-'’.][^\W{_UNSPACED}]+)*")
_LINE = re.compile(r"[^\r\n]+|\r\n?|\n")
_SENTENCE_END = re.compile(r"[.!?…]+[\"'”’)\]*_]*(?=\s|$)|[。！？]+[”’」』）]*|\r?\n|\r")
_NO_END = frozenset(
    "mr mrs ms dr prof sr jr st vs etc e.g i.e cf al fig no vol approx inc ltd co corp dept est gen gov hon "
    "rep sen rev mt jan feb mar apr jun jul aug sep sept oct nov dec a.m p.m u.s u.k".split()
)
_MARKUP = re.compile(r"[\s#>*_+~`|-]*(?:\d+[.)]\s+)?")


class Piece(NamedTuple):
    """A stretch of an answer: characters `start:end` and what they say."""

    start: int
    end: int
    text: str

    def span(self, part: str) -> Span:
        return Span(self.start, self.end, part)


@dataclass(frozen=True)
class Answer:
    """What a constraint is checked on. Positions are those of characters in `text`."""

    text: str

    @cached_property
    def folded(self) -> str:
        """In lower case, each character still where it was."""
        folded = self.text.lower()
        if len(folded) == len(self.text):
            return folded
        return "".join(low if len(low := letter.lower()) == 1 else letter for letter in self.text)

    @cached_property
    def words(self) -> tuple[Piece, ...]:
        """As a person counts them: "state-of-the-art", "isn't" and "3.14" are one each, so is each character
        of Chinese and Japanese; punctuation is none.
        """
        return tuple(Piece(*match.span(), match[0]) for match in _WORD.finditer(self.text))

    @cached_property
    def lines(self) -> tuple[Piece, ...]:
        """Lines that are not blank, without the white space around them."""
        return tuple(
            piece
            for match in _LINE.finditer(self.text)
            if (piece := _stripped(self.text, *match.span())) is not None
        )

    @cached_property
    def paragraphs(self) -> tuple[Piece, ...]:
        """What stands between blank lines, without the white space around it."""
        found: list[Piece] = []
        start = end = -1
        for begin, finish in self._whole_lines():
            if self.text[begin:finish].strip():
                start, end = (begin if start < 0 else start), finish
            elif start >= 0:
                found.append(_present(self.text, start, end))
                start = -1
        if start >= 0:
            found.append(_present(self.text, start, end))
        return tuple(found)

    @cached_property
    def sentences(self) -> tuple[Piece, ...]:
        """Stretches with a word in them that end with a full stop, a question or exclamation mark, or their
        line. Abbreviations, initials, decimals and the numbers of a list end none.
        """
        found: list[Piece] = []
        start = 0
        for match in _SENTENCE_END.finditer(self.text):
            if self.text[match.start()] == "." and not self._ends_here(start, match):
                continue
            self._add_sentence(found, start, match.end())
            start = match.end()
        self._add_sentence(found, start, len(self.text))
        return tuple(found)

    @property
    def whole(self) -> tuple[Span, ...]:
        """All of it as one span; none of an empty answer."""
        return (Span(0, len(self.text), "whole"),) if self.text else ()

    def _whole_lines(self) -> Iterator[tuple[int, int]]:
        start = 0
        for match in re.finditer(r"\r\n?|\n", self.text):
            yield start, match.start()
            start = match.end()
        yield start, len(self.text)

    def _ends_here(self, start: int, match: re.Match[str]) -> bool:
        """Whether a full stop ends its sentence."""
        if match[0].startswith("..") or match.end() == len(self.text):
            return True
        window = self.text[max(start, match.start() - 12) : match.start()]
        before = re.split(r"[\s(\[\"'“‘*_]", window)[-1]
        if before.lower() in _NO_END or (len(before) == 1 and before.isalpha() and before.isupper()):
            return False
        # "1." at the beginning of a line numbers it.
        return not (before.isdigit() and not self.text[start : match.start() - len(before)].strip(" \t#>*_-"))

    def _add_sentence(self, found: list[Piece], start: int, end: int) -> None:
        start += _MARKUP.match(self.text, start, end).end() - start  # type: ignore[union-attr]
        piece = _stripped(self.text, start, end)
        if piece is not None and any(letter.isalnum() for letter in piece.text):
            found.append(piece)


def _stripped(text: str, start: int, end: int) -> Piece | None:
    inner = text[start:end].strip()
    if not inner:
        return None
    start += len(text[start:end]) - len(text[start:end].lstrip())
    return Piece(start, start + len(inner), inner)


def _present(text: str, start: int, end: int) -> Piece:
    piece = _stripped(text, start, end)
    assert piece is not None  # the caller has seen a letter in it
    return piece
