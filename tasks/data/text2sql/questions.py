"""Questions and their SQL: one function a shape of query, each with several wordings.

Conventions, the same in every shape, so that a question has one answer:

- an entity is answered with its label (name or title), not with its id;
- "which countries" (values of a text column) and "which singers have a concert that ..." (parents found
  through their children) are answered without duplicates, lists of entities with them;
- a value that is asked for stands in the question as it stands in the database.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tasks.data.text2sql import joins, nested, one_table
from tasks.data.text2sql.draw import Draw, Pair, UnfitError
from tasks.data.text2sql.model import Database

# How often a shape is asked, relative to the others.
SHAPES: dict[Callable[[Draw], Pair], int] = {
    one_table.list_column: 2,
    one_table.list_two_columns: 2,
    one_table.lookup: 4,
    one_table.labels_where: 6,
    one_table.count_where: 4,
    one_table.column_where: 4,
    one_table.at_least: 3,
    one_table.between: 3,
    one_table.like: 3,
    one_table.either: 3,
    one_table.other_than: 3,
    one_table.and_or: 5,
    one_table.count_all: 1,
    one_table.count_distinct: 2,
    one_table.distinct: 2,
    one_table.aggregate: 5,
    one_table.two_aggregates: 2,
    one_table.group_count: 3,
    one_table.group_aggregate: 4,
    one_table.group_having: 3,
    one_table.group_top: 3,
    one_table.order: 4,
    one_table.top: 6,
    nested.than_average: 2,
    nested.than_another: 3,
    nested.extreme: 2,
    nested.without_children: 4,
    nested.values_without: 3,
    nested.values_with_both: 3,
    joins.children_of: 4,
    joins.children_of_some: 5,
    joins.parents_with: 4,
    joins.parent_lookup: 4,
    joins.both_labels: 3,
    joins.children_aggregate: 4,
    joins.children_per_parent: 4,
    joins.parents_having: 3,
    joins.parent_top: 3,
}
_FUNCTIONS, _WEIGHTS = tuple(SHAPES), tuple(SHAPES.values())


def ask(database: Database, rng: Random) -> Pair:
    """A random question about `database`, with its query."""
    draw = Draw(rng, database)
    while True:
        shape = rng.choices(_FUNCTIONS, _WEIGHTS)[0]
        try:
            return shape(draw)
        except UnfitError:
            continue
