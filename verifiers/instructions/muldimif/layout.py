"""How an answer is laid out: headings, tables, lists, what stands between, JSON and XML in it."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from verifiers.instructions.answer import Answer, Piece

_ANY_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n|$)")
_HEADING = re.compile(r"[ ]{0,3}(#{1,6})[ \t]+(\S[^\r\n]*)")
_FENCE = re.compile(r"[ ]{0,3}(```+|~~~+)[ \t]*(\w*)")
_LIST_ITEM = re.compile(r"([ \t]*)(?:[-*+•‣◦]|\d{1,3}[.)])[ \t]+\S")
_BULLET = re.compile(r"[ \t]*(?:[-*+](?=[ \t]+\S)|[•‣◦])")
_RULE = re.compile(r"[ ]{0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$")
_UNDERLINE = re.compile(r"[ ]{0,3}(?:=+|-+)[ \t]*$")
_DASHES = re.compile(r":?-+:?")
_ELEMENT = re.compile(r"<([A-Za-z_][\w.:-]*)((?:[^<>\"']|\"[^\"<]*\"|'[^'<]*')*)>")
_ATTRIBUTE = re.compile(r"(?<!\S)[A-Za-z_:][\w.:-]*\s{0,9}=\s{0,9}(?:\"[^\"]*\"|'[^']*')")
_DEEPEST = 200  # levels of brackets in JSON that is read at all
_JSON_TRIES = 20  # places in an answer where JSON may begin


@dataclass(frozen=True)
class Heading:
    """A Markdown heading: its level, its line, its words without markup."""

    level: int
    line: Piece
    title: str


@dataclass(frozen=True)
class Table:
    """A Markdown table: cells of its header and of each row below it."""

    whole: Piece
    header: tuple[Piece, ...]
    rows: tuple[tuple[Piece, ...], ...]

    @property
    def cells(self) -> tuple[Piece, ...]:
        """Cells below the header that are not empty."""
        return tuple(cell for row in self.rows for cell in row if cell.text)


class Layout:
    """The parts of one answer."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.headings: list[Heading] = []
        self.tables: list[Table] = []
        self._items: list[tuple[int, int]] = []
        self.bullets: list[Piece] = []
        self.quotes: list[Piece] = []  # lines of block quotes
        self.code: list[Piece] = []  # what stands between fences
        self._other: list[Piece] = []  # lines that are no text: rules and fences
        self._in_item = self._blank = False  # while lines are read
        self._read([Piece(*own.span(), own[0].rstrip("\r\n")) for own in _ANY_LINE.finditer(answer.text)])

    @cached_property
    def paragraphs(self) -> tuple[Piece, ...]:
        """Between blank lines, without headings, tables, code and rules."""
        return tuple(own for own in self.answer.paragraphs if self._prose(own))

    @cached_property
    def sentences(self) -> tuple[Piece, ...]:
        """Without headings; of tables and code, only what ends with a full stop, question or exclamation mark."""
        headings = _Cover(own.line for own in self.headings)
        apart = _Cover([*(own.whole for own in self.tables), *self.code, *self._other])
        return tuple(
            own
            for own in self.answer.sentences
            if not headings.holds(own.start) and not apart.holds(own.start)
        ) + tuple(
            Piece(cell.start + own.start, cell.start + own.end, own.text)
            for table in self.tables
            for cell in table.cells
            for own in Answer(cell.text).sentences
            if own.text.rstrip("\"'”’)]*_").endswith((".", "!", "?", "。", "！", "？"))
        )

    @cached_property
    def sections(self) -> tuple[Piece, ...]:
        """What stands below each heading, where something does."""
        ends = [own.line.start for own in self.headings[1:]] + [len(self.answer.text)]
        pieces = (
            _inner(self.answer.text, own.line.end, end)
            for own, end in zip(self.headings, ends, strict=True)
        )
        return tuple(own for own in pieces if own.text)

    @property
    def cells(self) -> tuple[Piece, ...]:
        return tuple(cell for table in self.tables for cell in table.cells)

    @property
    def items(self) -> tuple[Piece, ...]:
        """Items of lists, the outermost; what is indented below belongs to them."""
        return tuple(Piece(start, end, self.answer.text[start:end]) for start, end in self._items)

    @property
    def entries(self) -> tuple[Piece, ...]:
        """What a list lists: a table's rows, or a list's items."""
        rows = (row for table in self.tables for row in table.rows)
        found = tuple(
            Piece(row[0].start, row[-1].end, self.answer.text[row[0].start : row[-1].end]) for row in rows
        )
        return found or self.items

    @cached_property
    def json(self) -> tuple[Any, Piece] | None:
        """The largest JSON object or list in the answer, and where."""
        found: tuple[Any, Piece] | None = None
        position, decoder = 0, json.JSONDecoder(parse_constant=_refuse)
        for _ in range(_JSON_TRIES):
            start = _opening(self.answer.text, position)
            if start is None:
                break
            try:
                value, end = decoder.raw_decode(self.answer.text, start)
            except (ValueError, RecursionError):
                position = start + 1
                continue
            if isinstance(value, dict | list) and (found is None or end - start > len(found[1].text)):
                found = value, Piece(start, end, self.answer.text[start:end])
            position = end
        return found

    @cached_property
    def elements(self) -> tuple[tuple[Piece, int], ...]:
        """Opening tags of XML and how many attributes each has."""
        return tuple(
            (Piece(*own.span(), own[0]), len(_ATTRIBUTE.findall(own[2])))
            for own in _ELEMENT.finditer(self.answer.text)
        )

    # ----------------------------------------------------------------------- reading lines

    def _read(self, lines: list[Piece]) -> None:
        fence = ""
        index = 0
        while index < len(lines):
            line = lines[index]
            index += 1
            opening = _FENCE.match(line.text)
            if fence:
                if opening and opening[1].startswith(fence) and not opening[2]:
                    fence = ""
                    self._other.append(line)
                else:
                    self.code.append(line)
            elif opening:
                self._other.append(line)
                # An answer wrapped as Markdown is Markdown; other code is not.
                fence = "" if opening[2] in ("markdown", "md") else opening[1]
            elif table := self._table(lines, index - 1):
                self.tables.append(table)
                index += 1 + len(table.rows)
            else:
                self._read_line(line, lines[index] if index < len(lines) else None)

    def _read_line(self, line: Piece, below: Piece | None) -> None:
        if heading := _HEADING.match(line.text):
            title = plain_words(heading[2].rstrip().rstrip("#"))
            self._in_item = False
            if title:
                self.headings.append(Heading(len(heading[1]), _inner(self.answer.text, *line[:2]), title))
            return
        if not line.text.strip():
            self._blank = True
            return
        if _RULE.match(line.text):
            self._other.append(line)
        elif line.text.lstrip().startswith(">"):
            if line.text.strip(" \t>"):
                self.quotes.append(line)
        elif _LIST_ITEM.match(line.text) or _BULLET.match(line.text):
            if _BULLET.match(line.text):
                self.bullets.append(line)
            self._extend_item(line, new=not line.text.startswith(("   ", "\t")))
            return
        elif below is not None and _UNDERLINE.match(below.text) and "|" not in line.text:
            mark = below.text.strip()
            if mark.startswith("=") or len(mark) >= 2:
                self._other.append(below)
                title = plain_words(line.text)
                self.headings.append(
                    Heading(1 if mark[0] == "=" else 2, _inner(self.answer.text, *line[:2]), title)
                )
                return
        self._extend_item(line, new=False)

    def _extend_item(self, line: Piece, new: bool) -> None:
        """A list's item goes on until a line that is not indented follows a blank one."""
        indented = line.text.startswith((" ", "\t"))
        inner = _inner(self.answer.text, *line[:2])
        if new:
            self._items.append((inner.start, inner.end))
            self._in_item = True
        elif self._in_item and (indented or not self._blank):
            self._items[-1] = self._items[-1][0], inner.end
        else:
            self._in_item = False
        self._blank = False

    def _table(self, lines: list[Piece], first: int) -> Table | None:
        if "|" not in lines[first].text or first + 1 >= len(lines) or "-" not in lines[first + 1].text:
            return None
        dashes = _cells(lines[first + 1])
        if "|" not in lines[first + 1].text or not all(_DASHES.fullmatch(own.text) for own in dashes):
            return None
        header, rows, last = _cells(lines[first]), [], first + 1
        if len(header) != len(dashes):
            return None
        while last + 1 < len(lines) and "|" in lines[last + 1].text:
            last += 1
            rows.append(_cells(lines[last]))
        whole = _inner(self.answer.text, lines[first].start, lines[last].end)
        return Table(whole, header, tuple(rows))

    def _prose(self, block: Piece) -> bool:
        """Whether a line of a block is text of a paragraph."""
        return any(not self._not_prose.holds(start) for start in _line_starts(block))

    @cached_property
    def _not_prose(self) -> _Cover:
        lines = [own.line for own in self.headings] + [own.whole for own in self.tables]
        return _Cover([*lines, *self.code, *self._other])


class _Cover:
    """Stretches of a text that do not overlap."""

    def __init__(self, pieces: Iterable[Piece]) -> None:
        self._ends = {own.start: own.end for own in pieces}
        self._starts = sorted(self._ends)

    def holds(self, position: int) -> bool:
        index = bisect_right(self._starts, position)
        return index > 0 and position < self._ends[self._starts[index - 1]]


def plain_words(text: str) -> str:
    """Without Markdown's marks and the white space around."""
    return text.strip(" \t*_`~#:").strip()


def depth(value: Any) -> int:
    """Levels of JSON objects within objects: 1 for one without another in it; lists are no level."""
    deepest, todo = 0, [(value, 0)]
    while todo:
        own, level = todo.pop()
        if isinstance(own, dict):
            level += 1
            deepest = max(deepest, level)
        if isinstance(own, dict | list):
            todo.extend((below, level) for below in (own.values() if isinstance(own, dict) else own))
    return deepest


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")


def _opening(text: str, position: int) -> int | None:
    """Where the next object or list may begin."""
    found = [start for mark in "{[" if (start := text.find(mark, position)) >= 0]
    return min(found) if found else None


def _inner(text: str, start: int, end: int) -> Piece:
    """A stretch without the white space around it."""
    inner = text[start:end]
    start += len(inner) - len(inner.lstrip())
    inner = inner.strip()
    return Piece(start, start + len(inner), inner)


def _cells(line: Piece) -> tuple[Piece, ...]:
    """Cells of a table's line; a vertical line behind a backslash does not part them."""
    bars = [own.start() for own in re.finditer(r"\\.|\|", line.text) if own[0] == "|"]
    cells = [_inner(line.text, start + 1, end) for start, end in pairwise([-1, *bars, len(line.text)])]
    if bars and not cells[0].text:
        del cells[0]
    if bars and not cells[-1].text:
        del cells[-1]
    return tuple(Piece(line.start + own.start, line.start + own.end, own.text) for own in cells)


def _line_starts(block: Piece) -> Iterator[int]:
    for match in _ANY_LINE.finditer(block.text):
        if match[0].strip():
            yield block.start + match.start()
