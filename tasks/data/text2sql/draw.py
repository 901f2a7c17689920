"""Random choices about a database, and the phrases that all shapes of question share."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from tasks.data.text2sql.model import Attribute, Database, Table, Value, plural
from tasks.sql_schema import literal

AGGREGATES = {
    "avg": ("average", "mean"),
    "sum": ("total", "sum of the"),
    "min": ("lowest", "minimum"),
    "max": ("highest", "maximum"),
}

# Phrases are written for a plural noun; after a singular one their verb changes.
_SINGULAR = {
    "that have": "that has",
    "that do": "that does",
    "that reach": "that reaches",
    "that belong": "that belongs",
    "that earn": "that earns",
    "that cost": "that costs",
}
_VERBS = re.compile(r"\b(" + "|".join(_SINGULAR) + r")\b")


class UnfitError(Exception):
    """The database has nothing that this shape of question could ask about."""


class Pair(NamedTuple):
    question: str
    sql: str


class Condition(NamedTuple):
    words: str  # follows a plural noun: "older than 30"
    sql: str  # "age > 30"


NO_CONDITION = Condition("", "")


def singular(tail: str) -> str:
    """`tail`, a phrase after a plural noun, as it stands after a singular one."""
    return _VERBS.sub(lambda match: _SINGULAR[match[0]], tail)


def joined(child: Table, parent: Table) -> str:
    """The two tables of a FROM clause."""
    return f"{child.name} JOIN {parent.name} ON {child.name}.{parent.name}_id = {parent.name}.id"


def where(condition: Condition) -> str:
    """The WHERE clause with a space before it, or nothing."""
    return f" WHERE {condition.sql}" if condition.sql else ""


def after(noun: str, *phrases: str) -> str:
    """`noun` followed by those phrases that aren't empty."""
    return " ".join([noun, *filter(None, phrases)])


@dataclass(frozen=True)
class Draw:
    """A random source and the database that it chooses from."""

    rng: Random
    database: Database

    def one(self, options: Sequence[str]) -> str:
        return options[int(self.rng.random() * len(options))]

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    # ------------------------------------------------------------------ tables, columns, values

    def table(self, *, numbers: int = 0, texts: int = 0, attributes: int = 0) -> Table:
        """A table with at least so many number columns, text columns, and attributes of either kind."""
        fits = [
            table
            for table in self.database.tables
            if len(table.numbers) >= numbers
            and len(table.texts) >= texts
            and len(table.attributes) >= attributes
        ]
        if not fits:
            raise UnfitError
        return self.rng.choice(fits)

    def link(self) -> tuple[Table, Table]:
        """A child and its parent."""
        if not self.database.links:
            raise UnfitError
        return self.rng.choice(self.database.links)

    def value(self, table: Table, column: str) -> Value:
        return self.rng.choice(self.database.rows[table.name][column])

    def two_values(self, table: Table, column: str) -> tuple[Value, Value]:
        first, second = self.value(table, column), self.value(table, column)
        if first == second:
            raise UnfitError
        return first, second

    def inner(self, table: Table, column: str) -> int:
        """A number that leaves rows on both sides."""
        values = sorted({value for value in self.database.rows[table.name][column] if isinstance(value, int)})
        return self.rng.choice(values[len(values) // 5 : len(values) - len(values) // 5] or values)

    def wanted(self, table: Table) -> tuple[str, str]:
        """A column to ask for, and its noun."""
        return self.rng.choice([(table.label, table.label), *((a.column, a.noun) for a in table.attributes)])

    def aggregate(self) -> tuple[str, str]:
        """An SQL function and a word for it."""
        function = self.one(tuple(AGGREGATES))
        return function, self.one(AGGREGATES[function])

    # ------------------------------------------------------------------ conditions

    def condition(self, table: Table, *, qualified: bool = False, avoid: str = "") -> Condition:
        """A condition on an attribute of `table` other than `avoid`."""
        attributes = [attribute for attribute in table.attributes if attribute.column != avoid]
        if not attributes:
            raise UnfitError
        return self.condition_on(table, self.rng.choice(attributes), qualified=qualified)

    def maybe(self, chance: float, table: Table, *, qualified: bool = False, avoid: str = "") -> Condition:
        """A condition, or none."""
        if not self.chance(chance):
            return NO_CONDITION
        return self.condition(table, qualified=qualified, avoid=avoid)

    def condition_on(self, table: Table, attribute: Attribute, *, qualified: bool = False) -> Condition:
        column = f"{table.name}.{attribute.column}" if qualified else attribute.column
        if attribute.is_number:
            number = self.inner(table, attribute.column)
            phrases, sign = self.rng.choice(((attribute.over, ">"), (attribute.under, "<")))
            return Condition(self.one(phrases).format(number), f"{column} {sign} {number}")
        value = self.value(table, attribute.column)
        return Condition(self.one(attribute.equal).format(value), f"{column} = {literal(value)}")

    # ------------------------------------------------------------------ requests

    def listing(self, wanted: str, table: Table, tail: str = "") -> str:
        """A request for column `wanted` (its noun) of those rows of `table` that `tail` describes."""
        many = wanted if " of " in wanted or " and " in wanted else plural(wanted)
        rows, row = after(table.nouns, tail), after(table.noun, singular(tail))
        return self.one(
            (
                f"list the {many} of all {rows}.",
                f"what are the {many} of the {rows}?",
                f"show the {wanted} of every {row}.",
                f"find the {many} of {rows}.",
                f"give the {many} of the {rows}.",
                f"i want the {wanted} of each {row}.",
            )
        )

    def counting(self, table: Table, tail: str = "") -> str:
        rows = after(table.nouns, tail)
        return self.one(
            (
                f"how many {rows} are there?",
                f"count the {rows}.",
                f"what is the number of {rows}?",
                f"how many {rows} do we have?",
            )
        )

    def labels_or_count(self, table: Table, tail: str, test: str, count: float = 0.0) -> Pair:
        """Labels of the rows that `tail` describes and `test` selects; with chance `count`, their number."""
        if self.chance(count):
            return Pair(self.counting(table, tail), f"SELECT count(*) FROM {table.name} WHERE {test}")
        return Pair(
            self.listing(table.label, table, tail), f"SELECT {table.label} FROM {table.name} WHERE {test}"
        )
