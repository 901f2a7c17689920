"""Are two query results the same?

`spider`: the same bag of rows under some permutation of the columns, and the same sequence if the gold orders
its rows. `bird`: the same set of rows, columns in the gold's order.

Values are equal if SQL's kinds agree (NULL, number, text, blob) and they are; 1 is 1.0. Numbers that differ
by rounding (1e-6 of the larger, or 1e-9) are equal if at least one of them is not whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import isclose
from typing import Any, Literal, NamedTuple, get_args

Mode = Literal["spider", "bird"]
MODES: tuple[str, ...] = get_args(Mode)

Row = tuple[Any, ...]

RELATIVE_TOLERANCE = 1e-6
ABSOLUTE_TOLERANCE = 1e-9


class Comparison(NamedTuple):
    equal: bool
    reason: str
    flags: tuple[str, ...] = ()


class _OverBudgetError(Exception):
    """The search for a column permutation costs more than it may."""


def compare(
    gold: Sequence[Row], rows: Sequence[Row], *, mode: Mode, ordered: bool, budget: int
) -> Comparison:
    """Compare the rows of a prediction with the gold's.

    Args:
        ordered: the gold's outermost query says ORDER BY (only `spider` asks).
        budget: cells the search for a column permutation may visit; beyond it the results count as different.
    """
    if not gold and not rows:
        return Comparison(True, "both results are empty")
    if mode == "spider" and len(gold) != len(rows):
        return Comparison(False, f"the result has {_count(len(rows), 'row')}, the gold's has {len(gold)}")
    if not gold or not rows:
        return Comparison(
            False,
            "the result is empty, the gold's is not"
            if gold
            else "the gold's result is empty, this one is not",
        )
    if len(gold[0]) != len(rows[0]):
        return Comparison(
            False, f"the result has {_count(len(rows[0]), 'column')}, the gold's has {len(gold[0])}"
        )
    if mode == "bird":
        return _compare_sets(gold, rows)
    try:
        if _same(gold, rows, ordered, budget):
            return Comparison(True, "the result is the gold's")
        rounded = _round_together(gold, rows)
        if rounded is not None:
            gold, rows = rounded
            if _same(gold, rows, ordered, budget):
                return Comparison(True, "the result is the gold's up to rounding")
        if ordered and _same(gold, rows, False, budget):
            return Comparison(False, "the rows are right, their order is not")
    except _OverBudgetError:
        return Comparison(
            False, "undecided: the search for matching columns exceeds its budget", ("compare:budget",)
        )
    return Comparison(False, _first_difference(gold, rows))


def _compare_sets(gold: Sequence[Row], rows: Sequence[Row]) -> Comparison:
    if set(gold) == set(rows):
        return Comparison(True, "the result is the gold's")
    rounded = _round_together(gold, rows)
    if rounded is not None:
        gold, rows = rounded
        if set(gold) == set(rows):
            return Comparison(True, "the result is the gold's up to rounding")
    return Comparison(False, _first_difference(gold, rows))


def _first_difference(gold: Sequence[Row], rows: Sequence[Row]) -> str:
    expected, found = set(gold), set(rows)
    missing = next((row for row in gold if row not in found), None)
    if missing is not None:
        return f"the gold's row {_show(missing)} is missing"
    extra = next((row for row in rows if row not in expected), None)
    return (
        f"the row {_show(extra)} is not in the gold's result"
        if extra is not None
        else "rows repeat differently than in the gold"
    )


def _show(row: Row) -> str:
    text = repr(row)
    return text if len(text) <= 80 else text[:77] + "..."


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + "s" * (number != 1)


# --------------------------------------------------------------------------- rounding


def _round_together(gold: Sequence[Row], rows: Sequence[Row]) -> tuple[list[Row], list[Row]] | None:
    """Replace numbers that are equal up to rounding, in either result, by one of them. None: there are none.

    Neighbours in the sorted list of all numbers are linked if they are close, but no link joins two whole
    numbers. Linking makes equality transitive, so that results can still be hashed; a chain of close numbers
    counts as one number.
    """
    numbers = sorted(
        {
            value
            for result in (gold, rows)
            for row in result
            for value in row
            if isinstance(value, (int, float))
        }
    )
    head: dict[float, float] = {}  # of the chain a number belongs to
    has_whole = False  # does the current chain contain a whole number
    for previous, number in zip([None, *numbers], numbers, strict=False):
        whole = isinstance(number, int) or number.is_integer()
        if previous is None or (whole and has_whole) or not _close(previous, number):
            head[number], has_whole = number, whole
        else:
            head[number], has_whole = head[previous], has_whole or whole
    if all(number == first for number, first in head.items()):
        return None
    first, second = (
        [tuple(_head_of(value, head) for value in row) for row in result] for result in (gold, rows)
    )
    return first, second


def _close(a: float, b: float) -> bool:
    return isclose(a, b, rel_tol=RELATIVE_TOLERANCE, abs_tol=ABSOLUTE_TOLERANCE)


def _head_of(value: Any, head: dict[float, float]) -> Any:
    return head[value] if isinstance(value, (int, float)) else value


# --------------------------------------------------------------------------- columns in any order


def _same(gold: Sequence[Row], rows: Sequence[Row], ordered: bool, budget: int) -> bool:
    """Is there a permutation of the columns (and, unless `ordered`, of the rows) that makes them equal?"""
    if ordered:  # then a column is a sequence, and permuting columns is comparing bags of sequences
        return Counter(zip(*gold, strict=True)) == Counter(zip(*rows, strict=True))
    if Counter(gold) == Counter(rows):
        return True
    return len(gold[0]) > 1 and _PermutationSearch(gold, rows, budget).succeeds()


Colours = list[int]  # one a column (or row); columns that may be matched have the same colour


class _PermutationSearch:
    """Finds a column permutation under which two bags of rows are equal, as one decides graph isomorphism.

    Columns get colours by what they contain, rows by the colours and values of their cells, columns by the
    colours of their rows, and so on until nothing changes. Where columns still share a colour, one of the
    gold's is matched with each candidate in turn. Different colour counts mean that there is no permutation.
    """

    def __init__(self, gold: Sequence[Row], rows: Sequence[Row], budget: int) -> None:
        number = {
            value: i
            for i, value in enumerate({value for result in (gold, rows) for row in result for value in row})
        }
        self._values = len(number)
        self._tables = [[[number[value] for value in row] for row in result] for result in (gold, rows)]
        self._columns = [[tuple(column) for column in zip(*table, strict=True)] for table in self._tables]
        self._cells = 2 * len(gold) * len(gold[0])
        self._budget = budget

    def succeeds(self) -> bool:
        self._spend()
        colours = _paint([[sorted(column) for column in columns] for columns in self._columns])
        return self._match(colours)

    def _match(self, colours: list[Colours]) -> bool:
        refined = self._refine(colours)
        if refined is None:
            return False
        gold, other = refined
        shared = next((i for i, colour in enumerate(gold) if gold.count(colour) > 1), None)
        if shared is None:
            self._spend()
            order = [other.index(colour) for colour in gold]
            return Counter(map(tuple, self._tables[0])) == Counter(
                tuple(row[i] for i in order) for row in self._tables[1]
            )
        fresh = len(gold)
        tried: set[tuple[int, ...]] = set()
        for i, colour in enumerate(other):
            if colour == gold[shared] and self._columns[1][i] not in tried:  # equal columns need one try
                tried.add(self._columns[1][i])
                if self._match([_recolour(gold, shared, fresh), _recolour(other, i, fresh)]):
                    return True
        return False

    def _refine(self, colours: list[Colours]) -> list[Colours] | None:
        """Split colours until stable, or None if the two sides come apart."""
        while Counter(colours[0]) == Counter(colours[1]):
            kinds = len(set(colours[0]))
            if kinds == len(colours[0]):
                return colours
            self._spend()
            rows = _paint(
                [
                    [
                        sorted(colour * self._values + value for colour, value in zip(side, row, strict=True))
                        for row in table
                    ]
                    for side, table in zip(colours, self._tables, strict=True)
                ]
            )
            if Counter(rows[0]) != Counter(rows[1]):
                return None
            colours = _paint(
                [
                    [
                        [
                            colour,
                            *sorted(
                                r * self._values + value for r, value in zip(side_rows, column, strict=True)
                            ),
                        ]
                        for colour, column in zip(side, columns, strict=True)
                    ]
                    for side, side_rows, columns in zip(colours, rows, self._columns, strict=True)
                ]
            )
            if len(set(colours[0])) == kinds and Counter(colours[0]) == Counter(colours[1]):
                return colours
        return None

    def _spend(self) -> None:
        self._budget -= self._cells
        if self._budget < 0:
            raise _OverBudgetError


def _paint(signatures: list[list[list[int]]]) -> list[Colours]:
    """Number equal signatures equally on both sides."""
    numbers: dict[tuple[int, ...], int] = {}
    return [[numbers.setdefault(tuple(signature), len(numbers)) for signature in side] for side in signatures]


def _recolour(colours: Colours, i: int, colour: int) -> Colours:
    return [*colours[:i], colour, *colours[i + 1 :]]
