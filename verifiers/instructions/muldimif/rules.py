"""What a constraint can ask for: small typed rules that find their answer's verdict."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, chain, pairwise
from typing import Literal, Protocol

from creditlib.types import Span
from verifiers.instructions.answer import Answer, Piece
from verifiers.instructions.constraint import Finding, spans
from verifiers.instructions.language import is_in
from verifiers.instructions.muldimif.layout import Heading, Layout, Stretches, Table, depth, plain_words
from verifiers.instructions.muldimif.wording import ANY, SOME, Bounds

Scope = Literal["whole", "sentence", "paragraph", "section", "cell", "entry", "heading", "table"]
Case = Literal["capitalized", "upper", "lower"]

_CLOSING = " \t\r\n\"'”’»)*_~`|」』）"  # what may stand behind the mark that ends a text
_ADDRESS = re.compile(r"(?:https?://|www\.)[^\s)\]>]+|(?<![\w.+-])[\w.+-]++@[\w-]{1,64}\.[\w.]{1,64}")
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_NOT_LATIN = re.compile(r"[^\W\d_\u0000-\u024f]")
_KANA = re.compile("[\u3040-\u30ff]")
_FULL_STOP = "。"  # always ends a sentence; behind "5." white space would make that the number of a list
_FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)


class Rule(Protocol):
    """One demand. `kind` says to which families it belongs."""

    @property
    def kind(self) -> str: ...

    def find(self, layout: Layout) -> Finding: ...


@dataclass(frozen=True)
class Size:
    """So many words, sentences or paragraphs, in all or in each part."""

    bounds: Bounds
    unit: str  # words, sentences, paragraphs or entries
    scope: Scope = "whole"

    @property
    def kind(self) -> str:
        return "table" if self.unit == "entries" else self.unit

    def find(self, layout: Layout) -> Finding:
        if self.scope == "whole":
            count = len(self._units(layout))
            return Finding(
                self.bounds.hold(count), f"{count} {self.unit}, {self.bounds} wanted", layout.answer.whole
            )
        parts = parts_of(layout, self.scope)
        if not parts:
            return Finding(False, f"no {self.scope}", layout.answer.whole)
        counts = self._counts(layout, parts)
        kept = {count: self.bounds.hold(count) for count in set(counts)}
        wrong = [(part, count) for part, count in zip(parts, counts, strict=True) if not kept[count]]
        reason = f"{self.bounds} {self.unit} in each of {len(parts)}"
        if wrong:
            reason = f"a {self.scope} has {wrong[0][1]} {self.unit}, {self.bounds} wanted in each"
        return Finding(not wrong, reason, spans([part for part, _ in wrong] or parts, self.scope))

    def _counts(self, layout: Layout, parts: Sequence[Piece]) -> list[int]:
        """How many units each part has."""
        if self.unit == "words":
            return list(map(len, layout.answer.words_of(parts)))
        if self.scope in ("section", "paragraph", "sentence", "table"):
            if self.unit == "entries":  # of this part, whatever stands in others
                found = zip(_starting_in(parts, layout.rows), _starting_in(parts, layout.items), strict=True)
                return [rows or items for rows, items in found]
            return _starting_in(parts, self._units(layout))
        if self.unit == "sentences":
            if self.scope == "entry" and not layout.rows:
                return _starting_in(parts, layout.sentences)
            return _sentences_of_each(parts)
        return [len(self._units(Layout(Answer(own.text)))) for own in parts]

    def _units(self, layout: Layout) -> Sequence[Piece]:
        if self.unit == "words":
            return layout.answer.words
        if self.unit == "sentences":
            return layout.sentences
        return layout.paragraphs if self.unit == "paragraphs" else layout.entries


@dataclass(frozen=True)
class LetterCase:
    """Words that begin with a capital letter, or letters that are all large or all small."""

    case: Case
    scope: Scope = "whole"
    kind: str = "english"

    def find(self, layout: Layout) -> Finding:
        words = _words(layout.answer, parts_of(layout, self.scope))
        cased = [word for word in words if word.text.lower() != word.text.upper()]
        if self.case == "capitalized":
            wrong = [word for word in cased if word.text[0].islower()]
        elif self.case == "upper":
            wrong = [word for word in cased if any(map(str.islower, word.text))]
        else:
            wrong = [word for word in cased if any(map(str.isupper, word.text))]
        wanted = {
            "capitalized": "with a capital letter",
            "upper": "in capital letters",
            "lower": "in small letters",
        }
        reason = f"{len(cased) - len(wrong)} of {len(cased)} words {wanted[self.case]}"
        return Finding(bool(cased) and not wrong, reason, spans(wrong, "word") or layout.answer.whole)


@dataclass(frozen=True)
class English:
    """Written in English: Latin letters, and what stands outside of code blocks reads like English."""

    kind: str = "english"

    def find(self, layout: Layout) -> Finding:
        text = layout.answer.text
        letters = sum(map(str.isalpha, text))
        if 5 * len(_NOT_LATIN.findall(text)) > letters or not letters:
            return Finding(False, "not in Latin letters", layout.answer.whole)
        english = is_in(_FENCED.sub(" ", text), "en") or is_in(text, "en")
        return Finding(english, f"it reads {'' if english else 'un'}like English", layout.answer.whole)


@dataclass(frozen=True)
class Chinese:
    """Written in Chinese, at least half of the words; with characters of one variety, if the text names it.

    A character that only GB 2312 has is simplified, one that only Big5 has is traditional; one in fifty may
    be of the other kind (names).
    """

    variety: str  # simplified, traditional or any
    kind: str = "chinese"

    def find(self, layout: Layout) -> Finding:
        text, words = layout.answer.text, layout.answer.words
        han = [word for word in words if _UNSPACED.match(word.text) and not _KANA.match(word.text)]
        kana = len(_KANA.findall(text))
        if not han or 2 * len(han) < len(words) or 10 * kana > len(han):
            return Finding(
                False, f"{len(han)} of {len(words)} words are Chinese characters", layout.answer.whole
            )
        only = {"simplified": ("big5", "gb2312"), "traditional": ("gb2312", "big5")}
        if self.variety == "any":
            return Finding(True, f"{len(han)} Chinese characters", layout.answer.whole)
        there, absent = only[self.variety]
        wrong = [word for word in han if _has(word.text, there) and not _has(word.text, absent)]
        reason = f"{len(wrong)} of {len(han)} characters are not {self.variety}"
        return Finding(50 * len(wrong) <= len(han), reason, spans(wrong, "character") or layout.answer.whole)


@dataclass(frozen=True)
class Ending:
    """The answer, or each part of it, ends with one of some marks."""

    marks: str
    scope: Scope = "whole"
    kind: str = "punctuation"

    def find(self, layout: Layout) -> Finding:
        parts = parts_of(layout, self.scope)
        last = [_last(part) for part in parts]
        marks = frozenset(self.marks)
        # Three full stops are an ellipsis, which leaves the sentence open.
        text = layout.answer.text
        wrong = [own for own in last if own.text not in marks or text[own.start - 2 : own.end] == "..."]
        reason = f"{len(parts) - len(wrong)} of {len(parts)} end with {' or '.join(self.marks[::2])}"
        if self.scope == "whole" and wrong:
            reason = f"ends with {wrong[0].text!r}, {' or '.join(self.marks[::2])} wanted"
        return Finding(
            bool(parts) and not wrong, reason, spans(wrong or last, "ending") or layout.answer.whole
        )


@dataclass(frozen=True)
class NoMark:
    """A mark is not used."""

    marks: str
    kind: str = "punctuation"

    def find(self, layout: Layout) -> Finding:
        found = [
            Span(index, index + 1, "mark")
            for index, letter in enumerate(layout.answer.text)
            if letter in self.marks
        ]
        return Finding(not found, f"{len(found)} {self.marks[0]}", tuple(found) or layout.answer.whole)


@dataclass(frozen=True)
class Keywords:
    """Each of some words occurs so often, in all or in each part."""

    words: tuple[str, ...]
    times: Bounds = SOME
    scope: Scope = "whole"
    kind: str = "keywords"

    def find(self, layout: Layout) -> Finding:
        parts = parts_of(layout, self.scope)
        if not parts:
            return Finding(False, f"no {self.scope}", layout.answer.whole)
        found: list[Span] = []
        wrong: list[tuple[str, int]] = []
        for word in self.words:
            pattern = whole_word(word)
            there = pattern.search(layout.answer.text) is not None
            for part in parts:
                places = [own.span() for own in pattern.finditer(part.text)] if there else []
                found += [Span(part.start + start, part.start + end, "keyword") for start, end in places]
                if not self.times.hold(len(places)):
                    wrong.append((word, len(places)))
        reason = f"{len(found)} places of {len(self.words)} keywords"
        if wrong:
            where = "" if self.scope == "whole" else f" in a {self.scope}"
            reason = f"{wrong[0][0]!r} {wrong[0][1]} times, {self.times} wanted{where}"
        return Finding(not wrong, reason, tuple(found) or layout.answer.whole)


@dataclass(frozen=True)
class Tables:
    """Tables of a size, with a header of some names.

    Args:
        required: whether there must be one.
        rows, columns: of each; the header is no row, unless `with_header`.
        names: what the header's cells must say, in any order.
    """

    required: bool
    rows: Bounds = ANY
    columns: Bounds = ANY
    names: tuple[str, ...] = ()
    with_header: bool = False
    kind: str = "table"

    def find(self, layout: Layout) -> Finding:
        if not layout.tables:
            return Finding(not self.required, "no table", layout.answer.whole)
        wrong = [(own, why) for own in layout.tables if (why := self._wrong(own))]
        reason = wrong[0][1] if wrong else f"{len(layout.tables)} tables as wanted"
        marked = [own for own, _ in wrong] or layout.tables
        return Finding(not wrong, reason, spans((own.whole for own in marked), "table"))

    def _wrong(self, table: Table) -> str:
        rows = len(table.rows) + self.with_header
        columns = max(len(own) for own in (table.header, *table.rows))
        header = {_folded(cell.text) for cell in table.header}
        if not self.rows.hold(rows):
            return f"a table of {rows} rows, {self.rows} wanted"
        if not self.columns.hold(columns):
            return f"a table of {columns} columns, {self.columns} wanted"
        missing = [name for name in self.names if _folded(name) not in header]
        return f"a table without the column {missing[0]!r}" if missing else ""


@dataclass(frozen=True)
class HeadingAt:
    """So many headings of a level; with a title, if one is given; or the first line is one."""

    level: int | None
    bounds: Bounds = SOME
    title: str | None = None
    first: bool = False
    kind: str = "markdown"

    def find(self, layout: Layout) -> Finding:
        title = whole_word(words) if self.title and (words := _folded(self.title)) else None
        found = [
            own
            for own in layout.headings
            if (self.level is None or own.level == self.level)
            and (title is None or title.search(_folded(own.title)))
        ]
        if self.first:
            begin = len(layout.answer.text) - len(layout.answer.text.lstrip())
            found = [own for own in found if own.line.start == begin]
        what = "headings" if self.level is None else f"level {self.level} headings"
        what += f" with the title {self.title!r}" if self.title else ""
        what += " at the beginning" if self.first else ""
        return Finding(
            self.bounds.hold(len(found)),
            f"{len(found)} {what}, {self.bounds} wanted",
            _headings(found or layout.headings) or layout.answer.whole,
        )


@dataclass(frozen=True)
class HeadingLevels:
    """How many different levels the headings have; the levels among them; the deepest one."""

    bounds: Bounds = ANY
    levels: tuple[int, ...] = ()
    only: bool = False
    deepest: int | None = None
    kind: str = "markdown"

    def find(self, layout: Layout) -> Finding:
        there = sorted({own.level for own in layout.headings})
        said = f"headings of levels {', '.join(map(str, there))}" if there else "no headings"
        passed = self.bounds.hold(len(there)) and set(self.levels) <= set(there)
        passed = passed and not (self.only and set(there) - set(self.levels))
        passed = passed and all(self.deepest is None or level <= self.deepest for level in there)
        return Finding(
            passed, f"{said}; {self._wanted()} wanted", _headings(layout.headings) or layout.answer.whole
        )

    def _wanted(self) -> str:
        parts = [f"{self.bounds} levels"] if self.bounds != ANY else []
        parts += (
            [f"{'only ' if self.only else ''}levels {', '.join(map(str, self.levels))}"]
            if self.levels
            else []
        )
        return " and ".join(parts + ([f"none below {self.deepest}"] if self.deepest is not None else []))


@dataclass(frozen=True)
class Marked:
    """So many lines of a kind that Markdown marks."""

    what: Literal["block quotes", "bullet points", "bold"]
    bounds: Bounds = SOME
    kind: str = "markdown"

    def find(self, layout: Layout) -> Finding:
        if self.what == "bold":
            found = [
                Piece(*own.span(), own[0])
                for own in re.finditer(r"\*\*(?=\S)[^*\n]+\*\*", layout.answer.text)
            ]
        else:
            found = list(layout.quotes if self.what == "block quotes" else layout.bullets)
        return Finding(
            self.bounds.hold(len(found)),
            f"{len(found)} {self.what}, {self.bounds} wanted",
            spans(found, self.what) or layout.answer.whole,
        )


@dataclass(frozen=True)
class JsonDepth:
    """A JSON object with so many levels of objects within objects (1: none within another).

    Args:
        alone: nothing but spaces and a code fence may stand around it.
    """

    bounds: Bounds
    alone: bool = False
    kind: str = "json"

    def find(self, layout: Layout) -> Finding:
        if layout.json is None:
            return Finding(False, "no JSON", layout.answer.whole)
        value, where = layout.json
        levels = depth(value)
        if self.alone and not _alone(layout.answer.text, where):
            return Finding(False, "more than JSON", layout.answer.whole)
        return Finding(
            levels > 0 and self.bounds.hold(levels),
            f"JSON of {levels} levels, {self.bounds} wanted",
            (where.span("json"),),
        )


@dataclass(frozen=True)
class XmlAttributes:
    """Each XML element has so many attributes, or all together; an answer may have none."""

    bounds: Bounds
    each: bool
    required: bool
    kind: str = "xml"

    def find(self, layout: Layout) -> Finding:
        if not layout.elements:
            return Finding(not self.required, "no XML elements", layout.answer.whole)
        if not self.each:
            total = sum(count for _, count in layout.elements)
            return Finding(
                self.bounds.hold(total),
                f"{total} attributes, {self.bounds} wanted",
                spans((own for own, _ in layout.elements), "element"),
            )
        wrong = [(own, count) for own, count in layout.elements if not self.bounds.hold(count)]
        reason = (
            f"an element with {wrong[0][1]} attributes, {self.bounds} wanted"
            if wrong
            else (f"{self.bounds} attributes in each of {len(layout.elements)} elements")
        )
        return Finding(not wrong, reason, spans((own for own, _ in wrong or layout.elements), "element"))


@dataclass(frozen=True)
class StartsWith:
    """The answer begins with a text; Markdown's marks before it do not count."""

    text: str
    kind: str = "identifiers"

    def find(self, layout: Layout) -> Finding:
        text = layout.answer.text
        start = len(text) - len(text.lstrip(" \t\r\n#*_>\"'“‘"))
        begin = text[start : start + len(self.text)]
        passed = _folded(begin) == _folded(self.text)
        return Finding(
            passed,
            f"begins with {begin!r:.40}, {self.text!r} wanted",
            (Span(start, start + len(begin), "beginning"),) if begin else layout.answer.whole,
        )


@dataclass(frozen=True)
class FullSentences:
    """Every sentence ends with a full stop, a question or an exclamation mark."""

    kind: str = "identifiers"

    def find(self, layout: Layout) -> Finding:
        return Ending(".。?？!！", "sentence").find(layout)


# --------------------------------------------------------------------------- what rules share


def parts_of(layout: Layout, scope: Scope) -> Sequence[Piece]:
    """The parts of an answer of which something holds; none of an empty one."""
    if scope == "whole":
        return [Piece(0, len(layout.answer.text), layout.answer.text)] if layout.answer.text.strip() else []
    if scope == "heading":
        return [own.line for own in layout.headings]
    if scope == "table":
        return [own.whole for own in layout.tables]
    if scope == "sentence":
        return layout.sentences
    if scope == "paragraph":
        return layout.paragraphs
    if scope == "section":
        return layout.sections
    return layout.cells if scope == "cell" else layout.entries


def _alone(text: str, where: Piece) -> bool:
    """Whether a part of the answer is all of it, but for a code fence."""
    before, after = text[: where.start].strip(), text[where.end :].strip()
    return (before, after) == ("", "") or (
        re.fullmatch(r"```(?:json)?", before, re.IGNORECASE) is not None and after == "```"
    )


def whole_word(word: str) -> re.Pattern[str]:
    """Finds a word or phrase on its own: in any case, over line breaks, with any apostrophe and dash."""
    bare = word.rstrip(".,;") or word
    pieces = [
        "".join("['’‘]" if own in "'’‘" else "[-‐‑–]" if own in "-‐‑–" else re.escape(own) for own in part)
        for part in bare.split()
    ]
    before = "" if _UNSPACED.match(bare[0]) or not bare[0].isalnum() else r"(?<![^\W_])"
    after = "" if _UNSPACED.match(bare[-1]) or not bare[-1].isalnum() else r"(?![^\W_])"
    return re.compile(before + r"\s{1,20}".join(pieces) + after, re.IGNORECASE)


def _starting_in(parts: Sequence[Piece], pieces: Sequence[Piece]) -> list[int]:
    """How many pieces start in each part."""
    starts = [own[0] for own in pieces]
    firsts = [bisect_left(starts, own[0]) for own in parts]
    return [bisect_left(starts, own[1]) - first for own, first in zip(parts, firsts, strict=True)]


def _sentences_of_each(parts: Sequence[Piece]) -> list[int]:
    """How many sentences each part has by itself, where also counts what ends in no full stop."""
    text = "".join([own.text + _FULL_STOP for own in parts])
    ends = accumulate([len(own.text) + 1 for own in parts])
    return _starting_in([Piece(*own, "") for own in pairwise([0, *ends])], Answer(text).sentences)


def _words(answer: Answer, parts: Sequence[Piece]) -> Sequence[Piece]:
    """Words of parts; addresses of the web are no words."""
    words = tuple(chain.from_iterable(answer.words_of(parts)))
    if not _ADDRESS.search(answer.text):
        return words
    addresses = Stretches(
        Piece(*own.span(), own[0]).moved(part.start) for part in parts for own in _ADDRESS.finditer(part.text)
    )
    return addresses.without(words)


def _last(part: Piece) -> Piece:
    """The last character that is no closing quotation mark, bracket or markup."""
    end = len(part.text.rstrip(_CLOSING)) or len(part.text)
    return Piece(part.start + end - 1, part.start + end, part.text[end - 1 : end])


def _headings(headings: Iterable[Heading]) -> tuple[Span, ...]:
    return spans((own.line for own in headings), "heading")


def _folded(text: str) -> str:
    """For comparison: small letters, straight apostrophes, single spaces, no marks around."""
    text = plain_words(text).replace("’", "'").casefold()
    return " ".join(text.split()).strip(" .,:;\"'")


@lru_cache(maxsize=100_000)  # of all that there are
def _has(character: str, codec: str) -> bool:
    try:
        character.encode(codec)
    except UnicodeEncodeError:
        return False
    return True
