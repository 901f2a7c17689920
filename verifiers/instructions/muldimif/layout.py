"""How an answer is laid out: headings, tables, lists, what stands between, JSON and XML in it."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from verifiers.instructions import marks
from verifiers.instructions.answer import Answer, Piece

_LINE = re.compile(r"[^\r\n]+")
_RULE = re.compile(r"[ ]{0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$")
_UNDERLINE = re.compile(r"[ ]{0,3}(?:=+|-+)[ \t]*$")
_DASHES = re.compile(r":?-+:?")
_ELEMENT = re.compile(r"<([A-Za-z_][\w.:-]*)((?:[^<>\"']|\"[^\"<]*\"|'[^'<]*')*)>")
_ATTRIBUTE = re.compile(r"(?<!\S)[A-Za-z_:][\w.:-]*\s{0,9}=\s{0,9}(?:\"[^\"]*\"|'[^']*')")
_OPENING = re.compile(r"[{\[]")  # of JSON's objects and lists
_JSON_TRIES = 20  # places in an answer where JSON may begin and does not


_Line = Piece  # a line with its white space, without its end


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

    @property
    def headings(self) -> Sequence[Heading]:
        return self._lines.headings

    @property
    def tables(self) -> Sequence[Table]:
        return self._lines.tables

    @cached_property
    def bullets(self) -> Sequence[Piece]:
        """Lines of lists that are not numbered."""
        return marks.bullets(self.answer)

    @property
    def quotes(self) -> Sequence[Piece]:
        """Lines of block quotes."""
        return self._lines.quotes

    @cached_property
    def paragraphs(self) -> tuple[Piece, ...]:
        """Between blank lines, without headings, tables, code and rules."""
        return tuple(own for own in self.answer.paragraphs if self._prose(own))

    @cached_property
    def sentences(self) -> tuple[Piece, ...]:
        """Without headings and code; of tables, what ends with a full stop, question or exclamation mark."""
        headings = _Cover(own.line for own in self.headings)
        apart = _Cover([*(own.whole for own in self.tables), *self._lines.code, *self._lines.other])
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
        starts = [own.line.end for own in self.headings]
        ends = [own.line.start for own in self.headings[1:]] + [len(self.answer.text)]
        pieces = (_inner(self.answer.text, *own) for own in zip(starts, ends, strict=False))
        return tuple(own for own in pieces if own.text)

    @property
    def cells(self) -> tuple[Piece, ...]:
        return tuple(cell for table in self.tables for cell in table.cells)

    @property
    def items(self) -> tuple[Piece, ...]:
        """Items of lists, the outermost; what is indented below belongs to them."""
        return tuple(Piece(start, end, self.answer.text[start:end]) for start, end in self._lines.items)

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
        text, end, failed = self.answer.text, 0, 0
        decoder = json.JSONDecoder(parse_constant=_refuse)
        while failed < _JSON_TRIES and (opening := _OPENING.search(text, end)):
            start = opening.start()
            try:
                value, end = decoder.raw_decode(text, start)
            except (ValueError, RecursionError):
                end, failed = start + 1, failed + 1
                continue
            if found is None or end - start > len(found[1].text):
                found = value, Piece(start, end, text[start:end])
        return found

    @cached_property
    def elements(self) -> tuple[tuple[Piece, int], ...]:
        """Opening tags of XML and how many attributes each has."""
        return tuple(
            (Piece(*own.span(), own[0]), len(_ATTRIBUTE.findall(own[2])))
            for own in _ELEMENT.finditer(self.answer.text)
        )

    def _prose(self, block: Piece) -> bool:
        """Whether a line of a block is text of a paragraph."""
        return any(not self._not_prose.holds(start) for start in _line_starts(block))

    @cached_property
    def _not_prose(self) -> _Cover:
        lines = [own.line for own in self.headings] + [own.whole for own in self.tables]
        return _Cover([*lines, *self._lines.code, *self._lines.other])

    @cached_property
    def _lines(self) -> _Lines:
        return _Lines(self.answer)


class _Lines:
    """What the lines of a text are in Markdown."""

    def __init__(self, answer: Answer) -> None:
        text = answer.text
        self.headings: list[Heading] = []
        self.tables: list[Table] = []
        self.items: list[tuple[int, int]] = []  # where outermost items of lists start and end
        self.quotes: list[Piece] = []
        self.code: list[Piece] = []  # lines between fences
        self.other: list[Piece] = []  # lines that are no text: rules, fences and what underlines a heading
        self._text = text
        self._in_item = False
        self._items = {line.start for line, _ in marks.items(answer)}
        lines = [_Line(*own.span(), own[0]) for own in _LINE.finditer(text) if not own[0].isspace()]
        self._read(lines, marks.code(answer))

    def _read(self, lines: list[_Line], code: Sequence[str]) -> None:
        """
        Args:
            code: what each line is by `marks.code`, which reads the same lines without white space around.
        """
        index = 0
        while index < len(lines):
            line = lines[index]
            below = lines[index + 1] if index + 1 < len(lines) else None
            index += 1
            if what := code[index - 1]:
                (self.other if what == "fence" else self.code).append(line)
            elif table := self._table(lines, index - 1):
                self.tables.append(table)
                index += 1 + len(table.rows)
            else:
                self._read_line(line, below, apart=index > 1 and self._apart(lines[index - 2], line))

    def _read_line(self, line: _Line, below: _Line | None, apart: bool) -> None:
        """
        Args:
            below: the next line that is not blank.
            apart: whether a blank line stands before this one.
        """
        stripped = line.text.strip()
        if heading := marks.HEADING.match(stripped):
            self._in_item = False
            self._add_heading(len(heading[1]), line, heading[2].rstrip().rstrip("#"))
        elif _RULE.match(line.text):
            self._in_item = False
            self.other.append(line)
        elif stripped.startswith(">"):
            if line.text.strip(" \t>"):
                self.quotes.append(line)
        elif line.end - len(line.text.lstrip()) in self._items:
            self._add_to_list(line, new=not line.text.startswith(("   ", "\t")), apart=apart)
        elif below is not None and self._underlines(line, below):
            self.other.append(below)
            self._add_heading(1 if below.text.lstrip()[0] == "=" else 2, line, line.text)
        else:
            self._add_to_list(line, new=False, apart=apart)

    def _add_heading(self, level: int, line: _Line, title: str) -> None:
        if plain_words(title):
            self.headings.append(Heading(level, _inner(self._text, line.start, line.end), plain_words(title)))

    def _underlines(self, line: _Line, below: _Line) -> bool:
        """Whether a line of === or --- makes a heading of the one above it."""
        mark = below.text.strip()
        return (
            "|" not in line.text
            and _UNDERLINE.match(below.text) is not None
            and (mark[0] == "=" or len(mark) > 1)
            and not self._apart(line, below)
        )

    def _apart(self, line: _Line, below: _Line) -> bool:
        between = self._text[line.end : below.start].replace("\r\n", "\n")
        return sum(map(between.count, "\r\n")) > 1

    def _add_to_list(self, line: _Line, new: bool, apart: bool) -> None:
        """A list's item goes on until a line that is not indented follows a blank one."""
        inner = _inner(self._text, line.start, line.end)
        if new:
            self.items.append((inner.start, inner.end))
            self._in_item = True
        elif self._in_item and (line.text.startswith((" ", "\t")) or not apart):
            self.items[-1] = self.items[-1][0], inner.end
        else:
            self._in_item = False

    def _table(self, lines: list[_Line], first: int) -> Table | None:
        """The table that begins with a line, if one does."""
        if first + 1 >= len(lines) or "|" not in lines[first].text or "|" not in lines[first + 1].text:
            return None
        if "-" not in lines[first + 1].text or self._apart(lines[first], lines[first + 1]):
            return None
        header, dashes = _cells(lines[first]), _cells(lines[first + 1])
        if len(header) != len(dashes) or not all(_DASHES.fullmatch(own.text) for own in dashes):
            return None
        last = first + 1
        while (
            last + 1 < len(lines)
            and "|" in lines[last + 1].text
            and not self._apart(lines[last], lines[last + 1])
        ):
            last += 1
        whole = _inner(self._text, lines[first].start, lines[last].end)
        return Table(whole, header, tuple(_cells(own) for own in lines[first + 2 : last + 1]))


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


def _inner(text: str, start: int, end: int) -> Piece:
    """A stretch without the white space around it."""
    inner = text[start:end]
    start += len(inner) - len(inner.lstrip())
    inner = inner.strip()
    return Piece(start, start + len(inner), inner)


def _cells(line: _Line) -> tuple[Piece, ...]:
    """Cells of a table's line; a vertical line behind a backslash does not part them."""
    bars = [own.start() for own in re.finditer(r"\\.|\|", line.text) if own[0] == "|"]
    cells = [_inner(line.text, start + 1, end) for start, end in pairwise([-1, *bars, len(line.text)])]
    if bars and not cells[0].text:
        del cells[0]
    if bars and len(cells) > 1 and not cells[-1].text:
        del cells[-1]
    return tuple(Piece(line.start + own.start, line.start + own.end, own.text) for own in cells)


def _line_starts(block: Piece) -> Iterator[int]:
    for match in _LINE.finditer(block.text):
        if not match[0].isspace():
            yield block.start + match.start()
