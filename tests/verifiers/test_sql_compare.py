"""The comparison rules, against cases worked out by hand and against a search through all permutations."""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifiers.sql import Limits
from verifiers.sql.compare import Comparison, Mode, compare

Rows = list[tuple[Any, ...]]


def equal(gold: Rows, rows: Rows, mode: Mode = "spider", ordered: bool = False) -> bool:
    return compare(gold, rows, mode=mode, ordered=ordered, budget=10**7).equal


@pytest.mark.parametrize(
    ("gold", "rows", "spider", "bird"),
    [
        ([(1, "a")], [("a", 1)], True, False),  # columns swapped
        ([(1,), (1,)], [(1,)], False, True),  # a duplicate row missing
        ([(1,), (2,)], [(2,), (1,)], True, True),  # row order, no ORDER BY
        ([(1,)], [(1.0,)], True, True),
        ([(1,)], [(True,)], True, True),
        ([(1,)], [("1",)], False, False),
        ([("a",)], [(b"a",)], False, False),
        ([(0.3,)], [(0.1 + 0.2,)], True, True),
        ([(0.0,)], [(0.3 - 0.1 - 0.2,)], True, True),
        ([(3,)], [(2.9999999999,)], True, True),
        ([(1e6,)], [(1000001,)], False, False),  # whole numbers are exact
        ([(1.0,)], [(1.00001,)], False, False),
        ([(None,)], [(0,)], False, False),
        ([(None,)], [], False, False),
        ([(None,)], [(None,)], True, True),
        ([(math.inf,)], [(math.inf,)], True, True),
        ([(math.inf,)], [(1e308,)], False, False),
        ([(2**63 - 1,)], [(float(2**63),)], False, False),
        ([], [], True, True),
        ([], [(1,)], False, False),
        ([(1, 2)], [(1,)], False, False),
        ([(1, 1), (2, 1)], [(1, 1), (1, 2)], True, False),
        ([("a", "b"), ("c", "d")], [("a", "d"), ("c", "b")], False, False),  # each column right, rows wrong
        ([("x", "x")], [("x", "y")], False, False),
    ],
)
def test_rules(gold: Rows, rows: Rows, spider: bool, bird: bool) -> None:
    assert equal(gold, rows) is spider
    assert equal(rows, gold) is spider
    assert equal(gold, rows, "bird") is bird


def test_order_counts_where_the_gold_orders() -> None:
    gold, rows = [(1, "a"), (2, "b")], [(2, "b"), (1, "a")]
    assert not equal(gold, rows, ordered=True)
    assert equal(gold, [("a", 1), ("b", 2)], ordered=True)
    assert compare(gold, rows, mode="spider", ordered=True, budget=1000).reason == (
        "the rows are right, their order is not"
    )


@pytest.mark.parametrize(
    ("gold", "rows", "reason"),
    [
        ([(1,)], [(1,), (2,)], "the result has 2 rows, the gold's has 1"),
        ([(1, 2)], [(1,)], "the result has 1 column, the gold's has 2"),
        ([(1,), (2,)], [(1,), (3,)], "the gold's row (2,) is missing"),
        ([(1,), (2,), (2,)], [(1,), (1,), (2,)], "rows repeat differently than in the gold"),
        ([("x" * 100,)], [("y",)], "..."),
        ([(0.5,)], [(0.5 + 1e-12,)], "up to rounding"),
    ],
)
def test_reasons(gold: Rows, rows: Rows, reason: str) -> None:
    assert reason in compare(gold, rows, mode="spider", ordered=False, budget=1000).reason


def test_reasons_of_sets() -> None:
    assert compare([(1,)], [(1,), (2,)], mode="bird", ordered=False, budget=1) == Comparison(
        False, "the row (2,) is not in the gold's result"
    )
    assert not compare([(1,)], [], mode="bird", ordered=False, budget=1).equal


cells = st.sampled_from([None, 0, 1, "a"])


@st.composite
def results(draw: st.DrawFn) -> tuple[Rows, Rows]:
    """Two small results: unrelated, or the second is the first shuffled, perhaps with one cell changed."""
    columns = draw(st.integers(1, 4))
    row = st.tuples(*[cells] * columns)
    gold = draw(st.lists(row, min_size=1, max_size=6))
    if draw(st.booleans()):
        return gold, draw(st.lists(row, min_size=len(gold), max_size=len(gold)))
    order = draw(st.permutations(range(columns)))
    rows = [tuple(r[i] for i in order) for r in draw(st.permutations(gold))]
    if draw(st.booleans()):
        rows[0] = (draw(cells), *rows[0][1:])
    return gold, rows


@given(results(), st.booleans())
def test_search_agrees_with_trying_every_permutation(pair: tuple[Rows, Rows], ordered: bool) -> None:
    gold, rows = pair
    key = list if ordered else Counter
    expected = any(
        key(gold) == key([tuple(row[i] for i in order) for row in rows])
        for order in permutations(range(len(gold[0])))
    )
    assert equal(gold, rows, ordered=ordered) is expected


@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=20), st.randoms(use_true_random=False))
def test_a_result_equals_itself_shuffled(values: list[float], rng: random.Random) -> None:
    gold = [(value, value * 3) for value in values]
    rows = [(b, a) for a, b in rng.sample(gold, len(gold))]
    assert equal(gold, rows)


@pytest.mark.parametrize("columns", [8, 10, 30])
def test_binary_columns_are_no_trap(columns: int) -> None:
    """The official search tries the product of all candidates: seconds for 8 such columns, minutes for 10."""
    rng = random.Random(columns)
    gold = [tuple(rng.randint(0, 1) for _ in range(columns)) for _ in range(200)]
    order = rng.sample(range(columns), columns)
    rows = [tuple(row[i] for i in order) for row in rng.sample(gold, len(gold))]
    start = time.perf_counter()
    assert equal(gold, rows)
    wrong = [*rows[:-1], tuple(1 - value for value in rows[-1])]
    assert not equal(gold, wrong)
    assert time.perf_counter() - start < 1


def test_equal_columns_are_tried_once() -> None:
    gold = [(i % 2,) * 12 + (i,) for i in range(50)]
    assert equal(gold, [row[::-1] for row in gold])
    assert not equal(gold, [(*row[:11], 1 - row[0], row[12]) for row in gold])


def cycles(*lengths: int) -> Rows:
    """Incidence rows of a graph of cycles: refinement cannot tell 6 from 3 + 3, so the search has to try."""
    rows, start, size = [], 0, sum(lengths)
    for length in lengths:
        for i in range(length):
            row = [0] * size
            row[start + i] = row[start + (i + 1) % length] = 1
            rows.append(tuple(row))
        start += length
    return rows


def test_search_beyond_refinement() -> None:
    assert not equal(cycles(6), cycles(3, 3))
    rng = random.Random(0)
    order = rng.sample(range(12), 12)
    gold = cycles(5, 4, 3)
    assert equal(gold, [tuple(row[i] for i in order) for row in rng.sample(gold, 12)])


def test_over_budget_is_a_mismatch_with_its_own_reason() -> None:
    gold = cycles(40)
    rows = cycles(20, 20)
    start = time.perf_counter()
    result = compare(gold, rows, mode="spider", ordered=False, budget=50_000)
    assert time.perf_counter() - start < 1
    assert result.flags == ("compare:budget",) and not result.equal
    assert "undecided" in result.reason
    assert result == compare(gold, rows, mode="spider", ordered=False, budget=50_000)


def test_default_budget_keeps_the_time_limit() -> None:
    start = time.perf_counter()
    compare(cycles(200), cycles(100, 100), mode="spider", ordered=False, budget=Limits().comparisons)
    assert time.perf_counter() - start < 2
