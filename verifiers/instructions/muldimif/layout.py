"""How an answer is laid out: headings, tables, lists, what stands between, JSON and XML in it."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

from verifiers.instructions import marks
from verifiers.instructions.answer import Answer, Piece

_RULE = re.compile(r"(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,}")
_UNDERLINE = re.compile(r"=+|--+")
_MARGINS = ("", " ", "  ", "   ")  # with more spaces before it a line is code
_RULES = frozenset("*-_")
_SPECIAL = frozenset("#>") | _RULES  # with which headings, quotes and rules begin
_ENDS = ("\n", "\r")  # of lines
_UNDERLINES = frozenset("=-")
_DASHES = re.compile(r":?-+:?")
_ELEMENT = re.compile(r"<([A-Za-z_][\w.:-]*)((?:[^<>\"']|\"[^\"<]*\"|'[^'<]*')*)>")
_ATTRIBUTE = re.compile(r"(?<!\S)[A-Za-z_:][\w.:-]*\s{0,9}=\s{0,9}(?:\"[^\"]*\"|'[^']*')")
_STOPS = ".!?。！？"
_STOP = re.compile(rf"[{_STOPS}]")
_WITHIN = re.compile(r"[^\w ,;:-](?!$)")  # what may end a sentence within a text
_OPENING = re.compile(r"[{\[]")  # of JSON's objects and lists
_JSON_TRIES = 20  # places in an answer where JSON may begin and does not


class Heading(NamedTuple):
    """A Markdown heading: its level, its line, its words without markup; where it and its underline end."""

    level: int
    line: Piece
    title: str
    end: int


class Table(NamedTuple):
    """A Markdown table: cells of its header and of each row below it."""

    whole: Piece
    header: tuple[Piece, ...]
    rows: tuple[tuple[Piece, ...], ...]

    @property
    def cells(self) -> tuple[Piece, ...]:
        """Cells below the header that are not empty."""
        return tuple(cell for row in self.rows for cell in row if cell.text)


class Layout:
    """The parts of one answer, each found once; `layout_of` has the one that all its constraints share."""

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
        """Between blank lines, headings, tables, code and rules."""
        prose = self._not_prose.without(self.answer.lines)
        if len(prose) == len(self.answer.lines):
            return self.answer.paragraphs
        firsts = {own.start for own in self.answer.paragraphs}
        places = {line.start for line in prose}
        found: list[tuple[int, int]] = []
        goes_on = False
        for line in self.answer.lines:
            if line.start not in places:
                goes_on = False
            elif goes_on and line.start not in firsts:
                found[-1] = found[-1][0], line.end
            else:
                found.append((line.start, line.end))
                goes_on = True
        return tuple(Piece(start, end, self.answer.text[start:end]) for start, end in found)

    @cached_property
    def sentences(self) -> tuple[Piece, ...]:
        """Without headings and code; of tables, what ends with a full stop, question or exclamation mark."""
        of_cells = [
            own
            for table in self.tables
            for cell in table.cells
            if _STOP.search(cell.text)  # most say no sentences
            for own in _sentences_of(cell)
            if own.text.rstrip("\"'”’)]*_")[-1:] in _STOPS
        ]
        others = self._not_prose.without(self.answer.sentences)
        return tuple(sorted((*others, *of_cells))) if of_cells else others

    @cached_property
    def sections(self) -> tuple[Piece, ...]:
        """What stands below each heading, where something does."""
        found: list[Piece] = []
        ends = [own.line.start for own in self.headings[1:]] + [len(self.answer.text)]
        for heading, end in zip(self.headings, ends, strict=False):
            below = self.answer.text[heading.end : end]
            if inner := below.strip():
                start = heading.end + below.find(inner)
                found.append(Piece(start, start + len(inner), inner))
        return tuple(found)

    @property
    def cells(self) -> tuple[Piece, ...]:
        return tuple(cell for table in self.tables for cell in table.cells)

    @cached_property
    def items(self) -> tuple[Piece, ...]:
        """Items of lists, the outermost; what is indented below belongs to them."""
        return tuple(Piece(start, end, self.answer.text[start:end]) for start, end in self._lines.items)

    @property
    def entries(self) -> tuple[Piece, ...]:
        """What a list lists: a table's rows, or a list's items."""
        return self.rows or self.items

    @cached_property
    def rows(self) -> tuple[Piece, ...]:
        """Rows of tables below their headers."""
        text = self.answer.text
        return tuple(
            Piece(row[0].start, row[-1].end, text[row[0].start : row[-1].end])
            for table in self.tables
            for row in table.rows
        )

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

    @cached_property
    def _not_prose(self) -> Stretches:
        lines = [own.line for own in self.headings] + [own.whole for own in self.tables]
        return Stretches([*lines, *self._lines.code, *self._lines.other])

    @cached_property
    def _lines(self) -> _Lines:
        return _Lines(self.answer)


@lru_cache(maxsize=8)
def layout_of(answer: Answer) -> Layout:
    """Of the last answers, so that it is read once for all constraints of one."""
    return Layout(answer)


class _Lines:
    """What the lines of a text are in Markdown."""

    def __init__(self, answer: Answer) -> None:
        self.headings: list[Heading] = []
        self.tables: list[Table] = []
        self.items: list[tuple[int, int]] = []  # where outermost items of lists start and end
        self.quotes: list[Piece] = []
        self.code: list[Piece] = []  # lines between fences
        self.other: list[Piece] = []  # lines that are no text: rules, fences and what underlines a heading
        self._text = answer.text
        self._lines = answer.lines
        self._in_item = False
        self._items = {line.start for line, _ in marks.items(answer)}
        self._apart = {own.start for own in answer.paragraphs}  # lines with a blank one before them
        self._read(marks.code(answer))

    def _read(self, code: Sequence[str]) -> None:
        """
        Args:
            code: what each line is by `marks.code`.
        """
        after_table = 0
        bars = "|" in self._text
        firsts = [line.text[0] for line in self._lines]
        for index, (line, first, what, below) in enumerate(
            zip(self._lines, firsts, code, [*firsts, ""][1:], strict=True)
        ):
            if index < after_table:
                continue
            if what:
                (self.other if what == "fence" else self.code).append(line)
            elif bars and (table := self._table(index)):
                self.tables.append(table)
                after_table = index + 2 + len(table.rows)
            elif first in _SPECIAL or below in _UNDERLINES or line.start in self._items:
                self._read_line(index, first)  # others, which are most, are text of a paragraph
            elif self._in_item:
                self._go_on(index)

    def _read_line(self, index: int, first: str) -> None:
        line = self._lines[index]
        if first == "#" and (heading := marks.HEADING.match(line.text)):
            self._in_item = False
            self._add_heading(len(heading[1]), line, heading[2].rstrip("#"), line.end)
        elif first in _RULES and _RULE.fullmatch(line.text) and self._indent(index) in _MARGINS:
            self._in_item = False
            self.other.append(line)
        elif first == ">":
            if line.text.strip(" \t>"):
                self.quotes.append(line)
        elif line.start in self._items and not self._indent(index).startswith(("   ", "\t")):
            self.items.append((line.start, line.end))
            self._in_item = True
        elif level := 0 if line.start in self._items else self._underlined(index):
            below = self._lines[index + 1]
            self.other.append(below)
            self._add_heading(level, line, line.text, below.end)
        elif self._in_item:
            self._go_on(index)

    def _go_on(self, index: int) -> None:
        """A list's item goes on until a line that is not indented follows a blank one."""
        line = self._lines[index]
        if line.start in self._apart and not self._indent(index).startswith((" ", "\t")):
            self._in_item = False
        else:
            self.items[-1] = self.items[-1][0], line.end

    def _add_heading(self, level: int, line: Piece, title: str, end: int) -> None:
        if words := plain_words(title):
            self.headings.append(Heading(level, line, words, end))

    def _underlined(self, index: int) -> int:
        """The level of the heading that the next line makes of this one: 1 by ===, 2 by ---, 0 for none."""
        if index + 1 == len(self._lines):
            return 0
        below = self._lines[index + 1]
        if (
            "|" in self._lines[index].text
            or not _UNDERLINE.fullmatch(below.text)
            or below.start in self._apart
            or self._indent(index + 1) not in _MARGINS
        ):
            return 0
        return 1 if below.text[0] == "=" else 2

    def _indent(self, index: int) -> str:
        """White space before a line."""
        start = self._lines[index].start
        if self._text[start - 1 : start] in _ENDS:
            return ""
        gap = self._text[self._lines[index - 1].end if index else 0 : start]
        return gap[max(gap.rfind("\n"), gap.rfind("\r")) + 1 :]

    def _table(self, first: int) -> Table | None:
        """The table that begins with a line, if one does."""
        lines = self._lines
        if first + 1 >= len(lines) or "|" not in lines[first].text or "|" not in lines[first + 1].text:
            return None
        if "-" not in lines[first + 1].text or lines[first + 1].start in self._apart:
            return None
        header, dashes = _cells(lines[first]), _cells(lines[first + 1])
        if len(header) != len(dashes) or not all(_DASHES.fullmatch(own.text) for own in dashes):
            return None
        end = first + 2
        while end < len(lines) and "|" in lines[end].text and lines[end].start not in self._apart:
            end += 1
        start, last = lines[first].start, lines[end - 1].end
        whole = Piece(start, last, self._text[start:last])
        return Table(whole, header, tuple(_cells(own) for own in lines[first + 2 : end]))


_NOWHERE = (sys.maxsize, sys.maxsize)


class Stretches:
    """Stretches of a text that do not overlap."""

    def __init__(self, pieces: Iterable[Piece]) -> None:
        self._stretches = sorted({own.start: own.end for own in pieces}.items())

    def without(self, pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
        """Those of some pieces that do not begin within a stretch. The pieces are in order."""
        if not self._stretches:
            return pieces
        found: list[Piece] = []
        stretches = iter(self._stretches)
        start, end = next(stretches)
        for own in pieces:
            while own[0] >= end:
                start, end = next(stretches, _NOWHERE)
            if own[0] < start:
                found.append(own)
        return tuple(found)


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


def _cells(line: Piece) -> tuple[Piece, ...]:
    """Cells of a table's line; bars at its ends stand around them."""
    start, cells = line.start, _bars_apart(line.text)
    if len(cells) > 1 and not cells[0]:
        del cells[0]
        start += 1
    if len(cells) > 1 and not cells[-1]:
        del cells[-1]
    found: list[Piece] = []
    for cell in cells:
        inner = cell.strip()
        begin = start + cell.find(inner)
        found.append(Piece(begin, begin + len(inner), inner))
        start += len(cell) + 1
    return tuple(found)


def _sentences_of(cell: Piece) -> Iterable[Piece]:
    if cell.text[0].isalpha() and not _WITHIN.search(cell.text):
        return (cell,)
    return (own.moved(cell.start) for own in Answer(cell.text).sentences)


def _bars_apart(text: str) -> list[str]:
    """What stands between vertical lines; one behind a backslash does not part."""
    if "\\" not in text:
        return text.split("|")
    bars = [own.start() for own in re.finditer(r"\\.|\|", text) if own[0] == "|"]
    return [text[start + 1 : end] for start, end in pairwise([-1, *bars, len(text)])]
