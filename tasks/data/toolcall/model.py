"""What the generator knows about a tool: its parameters, and how English asks for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Literal

Kind = Literal["string", "integer", "number", "boolean", "array"]
Item = str | int | float
Value = Item | list[Item]
Call = dict[str, Any]  # {"name": tool, "parameters": {name: value}}


@dataclass(frozen=True)
class Parameter:
    """A parameter with the values that questions ask for.

    A required one stands in every wording of its tool (`Tool.asks`); an optional one has phrases of its own,
    and a call leaves it out where its question does.
    """

    name: str
    kind: Kind
    pool: tuple[Item, ...]  # of an array: of its items
    listed: bool = False  # the schema lists the pool (enum)
    default: Item | None = None
    says: tuple[str, ...] = ()  # of an optional one: "for the next {} days"

    @property
    def required(self) -> bool:
        return not self.says

    @property
    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        if self.kind == "array":
            whole = isinstance(self.pool[0], int)
            return {"type": "array", "items": {"type": "integer" if whole else "string"}}
        schema: dict[str, Any] = {"type": self.kind}
        if self.listed:
            schema["enum"] = list(self.pool)
        if self.default is not None:
            schema["default"] = self.default
        return schema

    def draw(self, rng: Random, taken: Sequence[Value] = ()) -> Value:
        """A value to ask for: never the default, which goes without saying, and if possible no text that the
        call has already (from rome to rome).
        """
        if self.kind == "array":
            return rng.sample(self.pool, rng.choice((2, 2, 3)))
        values = [value for value in self.pool if value != self.default]
        if self.kind == "string":
            values = [value for value in values if value not in taken] or values
        return rng.choice(values)


def text(name: str, pool: str | Sequence[str], *says: str) -> Parameter:
    """A text; `pool` may be words with spaces between them."""
    return Parameter(name, "string", _pool(pool), says=says)


def whole(name: str, low: int, high: int, *says: str, step: int = 1, default: int | None = None) -> Parameter:
    """A whole number."""
    return Parameter(name, "integer", tuple(range(low, high + 1, step)), default=default, says=says)


def decimal(name: str, low: int, high: int, *says: str) -> Parameter:
    """A number with one digit behind the point, so that it is written in one way only."""
    tenths = [tenth for tenth in range(10 * low, 10 * high) if tenth % 10]
    return Parameter(name, "number", tuple(tenth / 10 for tenth in tenths), says=says)


def choice(name: str, pool: str, *says: str, default: str | None = None) -> Parameter:
    """One of a few words, which the schema lists."""
    return Parameter(name, "string", _pool(pool), listed=True, default=default, says=says)


def flag(name: str, *says: str, default: bool = False) -> Parameter:
    """On or off; the phrases ask for what is not the default."""
    return Parameter(name, "boolean", (False, True), default=default, says=says)


def several(name: str, pool: str | Sequence[str] | range) -> Parameter:
    """A list of two or three of these."""
    items: tuple[Item, ...] = tuple(pool) if isinstance(pool, range) else _pool(pool)
    return Parameter(name, "array", items)


def _pool(pool: str | Sequence[str]) -> tuple[str, ...]:
    return tuple(pool.split()) if isinstance(pool, str) else tuple(pool)


@dataclass(frozen=True)
class Tool:
    """A tool with its wordings, in which required parameters stand in braces.

    What stands behind the bar of a wording is said once a call: "book a table |at {place} for {guests}"
    becomes "book a table at ada's for 2 and at bo's for 4".
    """

    name: str
    parameters: tuple[Parameter, ...]
    asks: tuple[str, ...]

    @property
    def function(self) -> dict[str, Any]:
        """The tool as JSON Schema describes it."""
        return {
            "name": self.name,
            "parameters": {
                "type": "object",
                "properties": {own.name: own.schema for own in self.parameters},
                "required": [own.name for own in self.parameters if own.required],
            },
        }


def said(value: Value) -> str:
    """A value as a question says it."""
    if isinstance(value, list):
        *before, last = map(str, value)
        return f"{', '.join(before)} and {last}"
    return str(value)


def filled(wording: str, parameters: Mapping[str, Value]) -> str:
    """A wording of required parameters with these values."""
    return wording.format(**{name: said(value) for name, value in parameters.items()})
