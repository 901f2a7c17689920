"""Which predicted call stands for which reference call: the best assignment, not the first that fits."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence


def best_assignment(weights: Sequence[Sequence[float]]) -> list[int | None]:
    """The column of each row, each used once, with the largest sum of weights (none negative).

    The Hungarian method with potentials, O(a^2 b) for a <= b of the two counts. Rows are left without a
    column only where there are fewer columns.
    """
    rows, columns = len(weights), len(weights[0]) if weights else 0
    if not rows or not columns:
        return [None] * rows
    if rows > columns:
        turned = best_assignment([list(column) for column in zip(*weights, strict=True)])
        found: list[int | None] = [None] * rows
        for column, row in enumerate(turned):
            if row is not None:
                found[row] = column
        return found
    # Shortest augmenting paths on costs -weight; index 0 stands for "none yet".
    row_price, column_price = [0.0] * (rows + 1), [0.0] * (columns + 1)
    row_of = [0] * (columns + 1)
    for row in range(1, rows + 1):
        row_of[0] = row
        column = 0
        distance = [float("inf")] * (columns + 1)
        came_from = [0] * (columns + 1)
        done = [False] * (columns + 1)
        while row_of[column]:
            done[column] = True
            own = row_of[column]
            nearest, step = 0, float("inf")
            for other in range(1, columns + 1):
                if done[other]:
                    continue
                cost = -weights[own - 1][other - 1] - row_price[own] - column_price[other]
                if cost < distance[other]:
                    distance[other], came_from[other] = cost, column
                if distance[other] < step:
                    nearest, step = other, distance[other]
            for other in range(columns + 1):
                if done[other]:
                    row_price[row_of[other]] += step
                    column_price[other] -= step
                else:
                    distance[other] -= step
            column = nearest
        while column:
            row_of[column] = row_of[came_from[column]]
            column = came_from[column]
    chosen: list[int | None] = [None] * rows
    for column in range(1, columns + 1):
        if row_of[column]:
            chosen[row_of[column] - 1] = column - 1
    return chosen


def perfect_matching(count: int, fits: Callable[[int, int], bool]) -> list[int | None]:
    """The largest matching of `count` rows with as many columns, the column of each row.

    Each row tries the column with its own number first, then the others; `fits(row, column)` is asked at
    most once for a pair. Rows that have no column in any largest matching stay None.
    """
    known: dict[tuple[int, int], bool] = {}

    def fit(row: int, column: int) -> bool:
        if (row, column) not in known:
            known[row, column] = fits(row, column)
        return known[row, column]

    column_of: list[int | None] = [None] * count
    row_of: list[int | None] = [None] * count
    for first in range(count):
        came_from: dict[int, int] = {}  # column -> the row that reached it
        queue = deque([first])
        while queue:
            row = queue.popleft()
            free = None
            for column in (row, *range(row), *range(row + 1, count)):
                if column not in came_from and fit(row, column):
                    came_from[column] = row
                    owner = row_of[column]
                    if owner is None:
                        free = column
                        break
                    queue.append(owner)
            if free is None:
                continue
            while free is not None:  # give each row on the path the column it reached
                row = came_from[free]
                given_up = column_of[row]
                column_of[row], row_of[free] = free, row
                free = given_up
            break
    return column_of
