"""Reading BFCL's prompt format, a Python list of calls ``[f(x=1), g.h(y='a')]``.

Nothing is evaluated, and the text does not go through Python's own parser, whose time and stack depend on
what it is given: a small reader takes literals (texts, numbers with a sign, True, False, None, lists, tuples
and dicts of them) and leaves everything else unreadable.
"""

from __future__ import annotations

import keyword
import math
import re
import unicodedata
from collections.abc import Iterator
from typing import Any

from creditlib.types import Span
from verifiers.toolcall.calls import MAX_DEPTH, MAX_PIECES, Block, Call, UnreadableError, check_room
from verifiers.toolcall.values import named

_MOST_VALUES = 10_000  # those inside lists too, so that no text takes long

_SPACE = re.compile(r"(?:[ \t\f\r\n]+|#[^\n]*|\\\r?\n)*")
_BEGINS_SPACE = " \t\f\r\n#\\"
_NAME = re.compile(r"[^\W\d]\w*")
_FUNCTION = re.compile(r"[^\W\d]\w*(?:\s*\.\s*[^\W\d]\w*)*")
_NUMBER = re.compile(r"(?=[.\d])(?:[eE][+-](?=\d)|[\w.])*", re.ASCII)
_TEXT = re.compile(
    r"([rRuU]?)(?:\"\"\"([^\"\\]*(?:(?:\\.|\"{1,2}(?!\"))[^\"\\]*)*)\"\"\""
    r"|'''([^'\\]*(?:(?:\\.|'{1,2}(?!'))[^'\\]*)*)'''"
    r"|\"([^\"\\\n]*(?:\\.[^\"\\\n]*)*)\"|'([^'\\\n]*(?:\\.[^'\\\n]*)*)')",
    re.DOTALL,
)
_ESCAPE = re.compile(
    r"\\(?:\r?\n|([0-7]{1,3})|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|N\{([^{}]*)\}|(.))",
    re.DOTALL,
)
_SIMPLE = dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True))
_CONSTANTS = {"True": True, "False": False, "None": None}


def read_list(text: str, start: int, end: int, *, official: bool) -> Block:
    """Read calls separated by commas from `start` to `end`; square brackets around them may be missing.

    Args:
        text: the response.
        start: where the list begins.
        end: where it must end.
        official: read like BFCL's decoder, as far as it evaluates nothing: a bare name is a text, arguments
            without a name are dropped, of two with the same name the last counts, `+` is taken for `-`, and
            names must be none of Python's keywords.
    """
    block = Block()
    cursor = _Cursor(text, start, end, official)
    try:
        if (at := text.find("\0", start, end)) >= 0:
            raise UnreadableError("a NUL character", at)
        cursor.at += text.startswith("[", start)
        while cursor.next() not in ("]", ""):
            block.calls.append(_read_call(cursor, block.spans))
            if not cursor.take(","):
                break
        cursor.take("]")
        if cursor.next():
            raise UnreadableError(cursor.found("the end of the list of calls"), cursor.at)
    except UnreadableError as problem:
        block.problem = f"call {len(block.calls) + 1}: {problem}"
    block.end = cursor.at
    return block


def _read_call(cursor: _Cursor, spans: list[Span]) -> Call:
    first = len(spans)
    check_room(spans, MAX_PIECES, cursor.at)
    name, span = cursor.name(_FUNCTION, "name")
    spans.append(span)
    arguments: dict[str, Any] = {}
    cursor.expect("(")
    while not cursor.take(")"):
        check_room(spans, MAX_PIECES, cursor.at)
        argument = cursor.argument_name()
        if argument is None:
            value = cursor.value(0)
            if not cursor.official or arguments:
                raise UnreadableError(f"argument {value!r:.40} of {named(name)} has no name", cursor.at)
        else:
            key, span = argument
            if key in arguments and not cursor.official:
                raise UnreadableError(f"the argument {named(key)} is given twice", span.start)
            spans.append(span)
            cursor.skip()
            begin = cursor.at
            arguments[key] = cursor.value(0)
            spans.append(Span(begin, cursor.at, "value"))
        if not cursor.take(","):
            cursor.expect(")")
            break
    return Call(name, arguments, tuple(spans[first:]))


class _Cursor:
    """A place in a text, moved over one piece of Python at a time; white space before a piece is skipped."""

    def __init__(self, text: str, at: int, end: int, official: bool) -> None:
        self.text = text
        self.at = at
        self.end = end
        self.official = official
        self.values = 0  # read so far

    def skip(self) -> None:
        if self.text[self.at : self.at + 1] in _BEGINS_SPACE:
            self.at = _SPACE.match(self.text, self.at, self.end).end()  # type: ignore[union-attr]

    def next(self) -> str:
        """The character that stands here; "" at the end."""
        self.skip()
        return self.text[self.at] if self.at < self.end else ""

    def take(self, symbol: str) -> bool:
        """Move over `symbol`, one character, if it stands here."""
        if self.next() != symbol:
            return False
        self.at += 1
        return True

    def expect(self, symbol: str) -> None:
        if not self.take(symbol):
            raise UnreadableError(self.found(f"{symbol!r}"), self.at)

    def found(self, expected: str) -> str:
        found = self.text[self.at : min(self.at + 20, self.end)]
        return f"expected {expected}, found {found!r}" if found else f"expected {expected}, found the end"

    def name(self, pattern: re.Pattern[str], part: str) -> tuple[str, Span]:
        self.skip()
        match = pattern.match(self.text, self.at, self.end)
        if match is None:
            raise UnreadableError(self.found("a name"), self.at)
        words = [word.strip() for word in match[0].split(".")]
        if self.official and any(map(keyword.iskeyword, words)):
            raise UnreadableError(f"{match[0]!r:.60} is a word of Python", self.at)
        self.at = match.end()
        return unicodedata.normalize("NFKC", ".".join(words)), Span(*match.span(), part)

    def argument_name(self) -> tuple[str, Span] | None:
        """Move over ``name=``, if that stands here."""
        self.skip()
        start = self.at
        word = _NAME.match(self.text, start, self.end)
        if word and word[0] not in _CONSTANTS:
            found = self.name(_NAME, "argument")
            if self.take("="):
                return found
        self.at = start
        return None

    def value(self, depth: int) -> Any:
        """The literal that begins here.

        Raises:
            UnreadableError: it is none, or nested too deeply.
        """
        self.values += 1
        if self.values > _MOST_VALUES:
            raise UnreadableError(f"more than {_MOST_VALUES} values", self.at)
        if depth > MAX_DEPTH:
            raise UnreadableError(f"a value is nested more than {MAX_DEPTH} deep", self.at)
        begins = self.next()
        if begins == "[":
            return self._items("[", "]", depth)[0]
        if begins == "{":
            return self._dict(depth)
        if begins == "(":
            items, comma = self._items("(", ")", depth)
            return items[0] if len(items) == 1 and not comma else tuple(items)
        if begins in ("-", "+"):
            self.at += 1
            return self._signed(begins)
        if texts := list(self._texts()):
            return "".join(texts)
        if (word := _NAME.match(self.text, self.at, self.end)) is not None:
            return self._word(word)
        return self._number()

    def _items(self, opening: str, closing: str, depth: int) -> tuple[list[Any], bool]:
        """Values separated by commas, and whether a comma ends them."""
        self.expect(opening)
        items: list[Any] = []
        while not self.take(closing):
            items.append(self.value(depth + 1))
            if not self.take(","):
                self.expect(closing)
                return items, False
        return items, bool(items)

    def _dict(self, depth: int) -> dict[Any, Any]:
        self.expect("{")
        found: dict[Any, Any] = {}
        while not self.take("}"):
            start = self.at
            key = self.value(depth + 1)
            self.expect(":")
            if isinstance(key, list | dict | tuple):
                raise UnreadableError("a key of a dict is no simple value", start)
            if key in found and not self.official:
                raise UnreadableError(f"the key {key!r:.60} is given twice", start)
            found[key] = self.value(depth + 1)
            if not self.take(","):
                self.expect("}")
                break
        return found

    def _signed(self, sign: str) -> int | float:
        self.skip()
        number = self._number()
        return -number if sign == "-" or self.official else number

    def _word(self, match: re.Match[str]) -> Any:
        word = match[0]
        if word in _CONSTANTS:
            self.at = match.end()
            return _CONSTANTS[word]
        if not self.official:
            raise UnreadableError(f"{word!r:.60} is no literal", self.at)
        return self.name(_NAME, "")[0]

    def _number(self) -> int | float:
        match = _NUMBER.match(self.text, self.at, self.end)
        if match is None:
            raise UnreadableError(self.found("a literal"), self.at)
        digits = match[0]
        whole = digits.isdecimal() or digits[:2].lower() in ("0x", "0o", "0b") or "_" in digits
        try:
            number = int(digits, 0) if whole and "." not in digits else float(digits)
        except ValueError:
            raise UnreadableError(f"{digits!r:.60} is no number", self.at) from None
        if math.isinf(number):
            raise UnreadableError(f"{digits:.20} is too large", self.at)
        self.at = match.end()
        return number

    def _texts(self) -> Iterator[str]:
        """Texts in quotes; those that follow each other are one."""
        while match := _TEXT.match(self.text, self.at, self.end):
            body = match[match.lastindex]  # type: ignore[index]  # of four kinds of quotes, one matched
            yield body if match[1] in ("r", "R") else self._unescaped(body)
            self.at = match.end()
            self.skip()

    def _unescaped(self, body: str) -> str:
        return _ESCAPE.sub(self._escaped, body) if "\\" in body else body

    def _escaped(self, match: re.Match[str]) -> str:
        octal, *codes, name, other = match.groups()
        try:
            if octal:
                return chr(int(octal, 8))
            if code := next((code for code in codes if code), None):
                return chr(int(code, 16))
            if name is not None:
                return unicodedata.lookup(name)
        except (ValueError, KeyError, OverflowError):
            raise UnreadableError(f"{match[0]!r:.60} is no character", self.at) from None
        if other is None:
            return ""  # a line that is continued
        if other in "\\'\"":
            return str(other)
        if other in "xuUN":
            raise UnreadableError(f"{match[0]!r} is no character", self.at)
        return _SIMPLE.get(other, match[0])
