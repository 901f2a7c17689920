"""What a call is, and reading the JSON of RLLA's ``<tool_call>`` blocks with the place of each of its pieces.

Nothing is repaired: what JSON forbids or leaves open (a key given twice, NaN, a number beyond floats) makes a
call unreadable, with a reason.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from json.decoder import scanstring  # type: ignore[attr-defined]  # as JSONDecoder uses it
from typing import Any

from creditlib.types import Span

MAX_DEPTH = 64  # of lists and objects within a value
MAX_PIECES = 5000  # names, arguments and values of a response's calls, so that none takes long

_BEGINS_SPACE = " \t\n\r"
_SPACE = re.compile(f"[{_BEGINS_SPACE}]*")


class UnreadableError(Exception):
    """A text that is no call; the message says why, `at` where."""

    def __init__(self, reason: str, at: int) -> None:
        super().__init__(reason)
        self.at = at


@dataclass(frozen=True)
class Call:
    """One call of a response.

    Attributes:
        name: of the function.
        arguments: values by name.
        spans: what it is made of, in order: ``name``, and for each argument ``argument`` (its name) and
            ``value``. An empty name has none.
    """

    name: str
    arguments: Mapping[str, Any]
    spans: tuple[Span, ...] = ()


@dataclass
class Block:
    """Calls read up to `end`.

    Attributes:
        calls: those that are complete.
        spans: of all that was read, an unfinished call too.
        end: where reading stopped.
        problem: why the block is not calls and nothing else; "" if it is.
    """

    calls: list[Call] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    end: int = 0
    problem: str = ""


def read_objects(text: str, start: int, closing: str, room: int = MAX_PIECES) -> Block:
    """Read JSON objects, each beginning on a line of its own, from `start` up to the tag `closing`.

    The tag inside a string of an object is part of that string. `Block.end` is where `closing` begins, unless
    there is a problem. More than `room` pieces are one.
    """
    block = Block()
    cursor = Cursor(text, start)
    try:
        while True:
            before = cursor.at
            cursor.skip()
            block.end = cursor.at
            if text.startswith(closing, cursor.at):
                break
            if cursor.at == len(text):
                raise UnreadableError(f"{closing} is missing", cursor.at)
            if block.calls and "\n" not in text[before : cursor.at]:
                raise UnreadableError(
                    f"something stands behind call {len(block.calls)} on its line", cursor.at
                )
            block.calls.append(_read_call(cursor, block.spans, room))
    except UnreadableError as problem:
        block.problem = f"{problem} (call {len(block.calls) + 1})" if block.calls else str(problem)
        block.end = max(block.end, problem.at)
        return block
    if not block.calls:
        block.problem = "there is no call between the tags"
    return block


def check_room(spans: Sequence[Span], room: int, at: int) -> None:
    """Raise where a response has too many pieces to go on."""
    if len(spans) >= room:
        raise UnreadableError(f"more than {MAX_PIECES} names and values", at)


def _read_call(cursor: Cursor, spans: list[Span], room: int) -> Call:
    first = len(spans)
    found: dict[str, Any] = {}
    for key, start, _ in cursor.members():
        check_room(spans, room, start)
        if key in found:
            raise UnreadableError(f"the key {key!r} is given twice", start)
        if key == "name":
            begin = cursor.at
            found[key] = cursor.value()
            if not isinstance(found[key], str):
                raise UnreadableError("the name is not a text", begin)
            if cursor.at - begin > 2:
                spans.append(Span(begin + 1, cursor.at - 1, "name"))
        elif key == "parameters":
            found[key] = _read_arguments(cursor, spans, room)
        else:
            raise UnreadableError(f"a call has the keys 'name' and 'parameters', not {key!r:.60}", start)
    for key in ("name", "parameters"):
        if key not in found:
            raise UnreadableError(f"a call without the key {key!r}", cursor.at)
    own = sorted(spans[first:])  # the parameters may come first
    return Call(found["name"], found["parameters"], tuple(own))


def _read_arguments(cursor: Cursor, spans: list[Span], room: int) -> dict[str, Any]:
    if not cursor.stands_at("{"):
        raise UnreadableError("the parameters are not a JSON object", cursor.at)
    arguments: dict[str, Any] = {}
    for name, start, end in cursor.members():
        check_room(spans, room, start)
        if name in arguments:
            raise UnreadableError(f"the parameter {name!r:.60} is given twice", start)
        if name:
            spans.append(Span(start + 1, end - 1, "argument"))
        begin = cursor.at
        arguments[name] = cursor.value()
        spans.append(Span(begin, cursor.at, "value"))
    return arguments


class Cursor:
    """A place in a text, moved over one piece of JSON at a time."""

    def __init__(self, text: str, at: int) -> None:
        self.text = text
        self.at = at

    def skip(self) -> None:
        """Over white space."""
        if self.text[self.at : self.at + 1] in _BEGINS_SPACE:
            self.at = _SPACE.match(self.text, self.at).end()  # type: ignore[union-attr]

    def stands_at(self, symbol: str) -> bool:
        return self.text.startswith(symbol, self.at)

    def members(self) -> Iterator[tuple[str, int, int]]:
        """Each key of an object with its place, quotes included. The cursor stands before its value; the
        caller moves it over that.
        """
        self._expect("{", "a JSON object")
        self.skip()
        if self.stands_at("}"):
            self.at += 1
            return
        while True:
            self.skip()
            start = self.at
            if not self.stands_at('"'):
                raise UnreadableError(self._found("a key in double quotes"), start)
            key = self.value()
            end = self.at
            self.skip()
            self._expect(":", "':' behind a key")
            self.skip()
            yield key, start, end
            self.skip()
            if self.stands_at("}"):
                self.at += 1
                return
            self._expect(",", "',' or '}'")

    def value(self) -> Any:
        """The value that begins here.

        Raises:
            UnreadableError: it is no JSON, holds a key twice or a number that is none, or is too deep.
        """
        start = self.at
        try:
            if self.stands_at('"'):
                value, self.at = scanstring(self.text, start + 1, True)
                return value
            value, self.at = _DECODER.raw_decode(self.text, start)
        except json.JSONDecodeError as problem:
            raise UnreadableError(f"no JSON: {problem.msg}", problem.pos) from None
        except ValueError as problem:  # from the hooks, and from numbers of thousands of digits
            raise UnreadableError(f"no JSON: {problem}", start) from None
        except RecursionError:
            raise UnreadableError(_TOO_DEEP, start) from None
        brackets = self.text.count("[", start, self.at) + self.text.count("{", start, self.at)
        if brackets > MAX_DEPTH and _depth(value) > MAX_DEPTH:
            raise UnreadableError(_TOO_DEEP, start)
        return value

    def _expect(self, symbol: str, what: str) -> None:
        if not self.stands_at(symbol):
            raise UnreadableError(self._found(what), self.at)
        self.at += 1

    def _found(self, expected: str) -> str:
        found = self.text[self.at : self.at + 20]
        return f"expected {expected}, found {found!r}" if found else f"expected {expected}, found the end"


_TOO_DEEP = f"a value is nested more than {MAX_DEPTH} deep"


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is no number")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{digits:.20} is too large")
    return number


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is given twice")
    return found


_DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite, object_pairs_hook=_unique)


def _depth(value: Any) -> int:
    """How deep lists and dicts are nested, without recursion."""
    depth, level = 0, [value]
    while level := [own for own in level if isinstance(own, list | dict)]:
        depth += 1
        level = [inner for own in level for inner in (own.values() if isinstance(own, dict) else own)]
    return depth
