"""The assignment of predicted to reference calls."""

from __future__ import annotations

import itertools
import random

import pytest

from verifiers.toolcall.assign import best_assignment, perfect_matching


def total(weights: list[list[float]], chosen: list[int | None]) -> float:
    used = [column for column in chosen if column is not None]
    assert len(used) == len(set(used)) == min(len(weights), len(weights[0]))
    return sum(weights[row][column] for row, column in enumerate(chosen) if column is not None)


@pytest.mark.parametrize("seed", range(300))
def test_best_of_all_assignments(seed: int) -> None:
    rng = random.Random(seed)
    rows, columns = rng.randint(1, 5), rng.randint(1, 5)
    weights = [[rng.choice((0.0, 0.5, 1.0, 2.0, rng.random())) for _ in range(columns)] for _ in range(rows)]
    small, large = sorted((rows, columns))
    table = weights if rows <= columns else [list(column) for column in zip(*weights, strict=True)]
    best = max(
        sum(table[row][column] for row, column in enumerate(order))
        for order in itertools.permutations(range(large), small)
    )
    assert total(weights, best_assignment(weights)) == pytest.approx(best)


def test_nothing_to_assign() -> None:
    assert best_assignment([]) == []
    assert best_assignment([[], []]) == [None, None]


@pytest.mark.parametrize("seed", range(300))
def test_largest_of_all_matchings(seed: int) -> None:
    rng = random.Random(seed)
    count, density = rng.randint(1, 6), rng.random()
    fits = [[rng.random() < density for _ in range(count)] for _ in range(count)]
    best = max(
        sum(fits[row][column] for row, column in enumerate(order))
        for order in itertools.permutations(range(count))
    )
    chosen = perfect_matching(count, lambda row, column: fits[row][column])
    pairs = [(row, column) for row, column in enumerate(chosen) if column is not None]
    assert len(pairs) == len({column for _, column in pairs}) == best
    assert all(fits[row][column] for row, column in pairs)
