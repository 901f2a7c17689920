"""What the generator knows about a database: tables, columns, rows, and how English speaks of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

from tasks import sql_schema

Kind = Literal["person", "place", "thing", "work"]
Value = str | int
Rows = Mapping[str, Mapping[str, list[Value]]]  # table -> column -> values, one a row

_IRREGULAR = {
    "child": "children",
    "person": "people",
    "sheep": "sheep",
    "species": "species",
    "series": "series",
    "shelf": "shelves",
}


def plural(noun: str) -> str:
    """The plural of an English noun phrase (its last word)."""
    *before, last = noun.split(" ")
    if last in _IRREGULAR:
        last = _IRREGULAR[last]
    elif last.endswith(("s", "x", "ch", "sh", "z")):
        last += "es"
    elif last.endswith("y") and last[-2] not in "aeiou":
        last = last[:-1] + "ies"
    else:
        last += "s"
    return " ".join([*before, last])


def article(noun: str) -> str:
    """`noun` with "a" or "an" before it."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


@dataclass(frozen=True)
class Attribute:
    """A column other than keys and labels, with its phrases.

    All phrases follow the noun ("singers older than 30"), except superlatives, which are (before, after)
    pairs: ("oldest", "") or ("", "with the highest rating").
    """

    column: str
    noun: str
    pool: tuple[str, ...] = ()  # values of a text column; empty for a number column
    low: int = 0
    high: int = 0
    step: int = 1
    equal: tuple[str, ...] = ()
    over: tuple[str, ...] = ()
    under: tuple[str, ...] = ()
    between: tuple[str, ...] = ()
    most: tuple[tuple[str, str], ...] = ()
    least: tuple[tuple[str, str], ...] = ()

    @property
    def is_number(self) -> bool:
        return not self.pool


def text(column: str, pool: str | Sequence[str], *says: str) -> Attribute:
    """A text column; `says` are phrases such as ``"from {}"`` for "equals"."""
    noun = column.replace("_", " ")
    values = tuple(pool.split(" ")) if isinstance(pool, str) else tuple(pool)
    equal = (*says, *says, f"whose {noun} is {{}}", f"with {noun} {{}}")
    return Attribute(column, noun, pool=values, equal=equal)


def number(
    column: str,
    low: int,
    high: int,
    step: int = 1,
    *,
    more: str = "",
    less: str = "",
    most: str = "",
    least: str = "",
) -> Attribute:
    """A number column; `more` and the others say "older than" or "oldest" where English has a word."""
    noun = column.replace("_", " ")
    over = (
        f"with {noun} above {{}}",
        f"whose {noun} is greater than {{}}",
        f"with {article(noun)} of more than {{}}",
    )
    under = (
        f"with {noun} below {{}}",
        f"whose {noun} is less than {{}}",
        f"with {article(noun)} of less than {{}}",
    )
    return Attribute(
        column,
        noun,
        low=low,
        high=high,
        step=step,
        equal=(f"with {noun} {{}}", f"whose {noun} is {{}}"),
        over=(*[f"{more} {{}}"] * 2, *over) if more else over,
        under=(*[f"{less} {{}}"] * 2, *under) if less else under,
        between=(f"with {noun} between {{}} and {{}}", f"whose {noun} is between {{}} and {{}}"),
        most=(*[(most, "")] * bool(most), ("", f"with the highest {noun}"), ("", f"with the largest {noun}")),
        least=(
            *[(least, "")] * bool(least),
            ("", f"with the lowest {noun}"),
            ("", f"with the smallest {noun}"),
        ),
    )


def amount(column: str, low: int, high: int, step: int = 1) -> Attribute:
    """A number column that counts things, its name a plural: "with more than 300 seats"."""
    noun = column.replace("_", " ")
    return Attribute(
        column,
        f"number of {noun}",
        low=low,
        high=high,
        step=step,
        equal=(f"with {{}} {noun}", f"that have {{}} {noun}"),
        over=(f"with more than {{}} {noun}", f"that have more than {{}} {noun}", f"with over {{}} {noun}"),
        under=(f"with fewer than {{}} {noun}", f"that have less than {{}} {noun}", f"with under {{}} {noun}"),
        between=(f"with between {{}} and {{}} {noun}", f"that have between {{}} and {{}} {noun}"),
        most=(("", f"with the most {noun}"),),
        least=(("", f"with the fewest {noun}"),),
    )


def year(column: str, verb: str, low: int = 1950, high: int = 2023) -> Attribute:
    """A year, with the participle that English uses for it: "founded after 1990"."""
    noun = column.replace("_", " ")
    return Attribute(
        column,
        noun,
        low=low,
        high=high,
        equal=(f"{verb} in {{}}", f"whose {noun} is {{}}"),
        over=(f"{verb} after {{}}", f"{verb} later than {{}}", f"whose {noun} is after {{}}"),
        under=(f"{verb} before {{}}", f"{verb} earlier than {{}}", f"whose {noun} is before {{}}"),
        between=(f"{verb} between {{}} and {{}}", f"whose {noun} is between {{}} and {{}}"),
        most=((f"most recently {verb}", ""), ("", f"with the latest {noun}")),
        least=(("", f"{verb} first"), ("", f"with the earliest {noun}")),
    )


@dataclass(frozen=True)
class Table:
    """A table `id, <label>, <attributes>, <parent>_id ...`, its name being the entity's noun."""

    name: str
    kind: Kind
    attributes: tuple[Attribute, ...]
    parents: tuple[str, ...] = ()

    @property
    def noun(self) -> str:
        return self.name.replace("_", " ")

    @property
    def nouns(self) -> str:
        return plural(self.noun)

    @property
    def its(self) -> str:
        return "their" if self.kind == "person" else "its"

    @property
    def label(self) -> str:
        """The column that names a row."""
        return "title" if self.kind == "work" else "name"

    @property
    def columns(self) -> tuple[str, ...]:
        return (
            "id",
            self.label,
            *(a.column for a in self.attributes),
            *(f"{parent}_id" for parent in self.parents),
        )

    @property
    def numbers(self) -> tuple[Attribute, ...]:
        return tuple(a for a in self.attributes if a.is_number)

    @property
    def texts(self) -> tuple[Attribute, ...]:
        return tuple(a for a in self.attributes if not a.is_number)


@dataclass(frozen=True)
class Database:
    id: str
    tables: tuple[Table, ...]
    rows: Rows

    def table(self, name: str) -> Table:
        return next(table for table in self.tables if table.name == name)

    @property
    def links(self) -> tuple[tuple[Table, Table], ...]:
        """(child, parent) for every foreign key."""
        return tuple((child, self.table(parent)) for child in self.tables for parent in child.parents)

    @property
    def schema(self) -> sql_schema.Schema:
        """As `Text2SQL` reads it from the files, examples included."""
        return sql_schema.Schema(self.id, tuple(self._schema_table(table) for table in self.tables))

    def _schema_table(self, table: Table) -> sql_schema.Table:
        columns = []
        for name in table.columns:
            parent = name.removesuffix("_id")
            references = (parent, "id") if parent in table.parents else None
            values = self.rows[table.name][name]
            kind = "text" if isinstance(values[0], str) else "number"
            is_key = name == "id" or references is not None
            examples = () if is_key else tuple(dict.fromkeys(values))
            columns.append(sql_schema.Column(name, kind, name == "id", references, examples))
        return sql_schema.Table(table.name, tuple(columns))


def fill(
    tables: Sequence[Table], rng: Random, names: Mapping[Kind, tuple[Sequence[str], Sequence[str]]], rows: int
) -> Rows:
    """Make up rows: `rows` for a table without parents, half as many again for one with.

    Labels are unique in a table, numbers too where their range allows it (no ties in an order), a text column
    keeps to five values (so that groups form), and about a quarter of the parents have no child.
    """
    filled: dict[str, dict[str, list[Value]]] = {}
    for table in tables:
        size = rows * 3 // 2 if table.parents else rows
        columns: dict[str, list[Value]] = {
            "id": list(range(1, size + 1)),
            table.label: _labels(names[table.kind], size, rng),
        }
        for attribute in table.attributes:
            columns[attribute.column] = _values(attribute, size, rng)
        for parent in table.parents:
            chosen = rng.sample(
                range(1, rows + 1), rows * 3 // 4
            )  # a parent that is itself a child has more rows: fine
            columns[f"{parent}_id"] = [chosen[int(len(chosen) * rng.random() ** 1.7)] for _ in range(size)]
        filled[table.name] = columns
    return filled


def _labels(names: tuple[Sequence[str], Sequence[str]], size: int, rng: Random) -> list[Value]:
    first, last = names
    labels: dict[Value, None] = {}
    while len(labels) < size:
        labels[f"{rng.choice(first)} {rng.choice(last)}"] = None
    return list(labels)


def _values(attribute: Attribute, size: int, rng: Random) -> list[Value]:
    if not attribute.is_number:
        pool = rng.sample(attribute.pool, min(5, len(attribute.pool)))
        return [rng.choice(pool) for _ in range(size)]
    span = range(attribute.low, attribute.high + 1, attribute.step)
    return list(rng.sample(span, size)) if len(span) >= size else [rng.choice(span) for _ in range(size)]
