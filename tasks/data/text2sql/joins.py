"""Shapes of question about a table and its parent, over the foreign key."""

from __future__ import annotations

from tasks.data.text2sql.draw import Condition, Draw, Pair, UnfitError, after, joined, singular, where
from tasks.data.text2sql.model import Table, plural
from tasks.sql_schema import literal


def _named(draw: Draw, table: Table) -> Condition:
    """The row of `table` with a certain label."""
    who = draw.value(table, table.label)
    return Condition(f"the {table.noun} {who}", f"{table.name}.{table.label} = {literal(who)}")


def children_of(draw: Draw) -> Pair:
    child, parent = draw.link()
    owner = _named(draw, parent)
    rows = f"FROM {joined(child, parent)}{where(owner)}"
    if draw.chance(0.4):
        question = draw.one(
            (
                f"how many {child.nouns} does {owner.words} have?",
                f"count the {child.nouns} of {owner.words}.",
                f"what is the number of {child.nouns} of {owner.words}?",
            )
        )
        return Pair(question, f"SELECT count(*) {rows}")
    tail = draw.one((f"of {owner.words}", f"that belong to {owner.words}"))
    return Pair(draw.listing(child.label, child, tail), f"SELECT {child.name}.{child.label} {rows}")


def children_of_some(draw: Draw) -> Pair:
    child, parent = draw.link()
    condition = draw.condition(parent, qualified=True)
    tail = f"of {parent.nouns} {condition.words}"
    rows = f"FROM {joined(child, parent)}{where(condition)}"
    if draw.chance(0.35):
        return Pair(draw.counting(child, tail), f"SELECT count(*) {rows}")
    return Pair(draw.listing(child.label, child, tail), f"SELECT {child.name}.{child.label} {rows}")


def parents_with(draw: Draw) -> Pair:
    child, parent = draw.link()
    condition = draw.condition(child, qualified=True)
    question = draw.one(
        (
            f"which {parent.nouns} have {child.nouns} {condition.words}?",
            draw.listing(parent.label, parent, f"that have {child.nouns} {condition.words}"),
            draw.listing(parent.label, parent, f"with at least one {child.noun} {singular(condition.words)}"),
        )
    )
    select = f"SELECT DISTINCT {parent.name}.{parent.label}"
    return Pair(question, f"{select} FROM {joined(child, parent)}{where(condition)}")


def parent_lookup(draw: Draw) -> Pair:
    child, parent = draw.link()
    owned = _named(draw, child)
    column, noun = draw.wanted(parent)
    question = draw.one(
        (
            f"what is the {noun} of the {parent.noun} of {owned.words}?",
            f"show the {noun} of the {parent.noun} that has {owned.words}.",
            f"find the {noun} of the {parent.noun} to which {owned.words} belongs.",
        )
    )
    return Pair(question, f"SELECT {parent.name}.{column} FROM {joined(child, parent)}{where(owned)}")


def both_labels(draw: Draw) -> Pair:
    child, parent = draw.link()
    condition = draw.maybe(0.5, child, qualified=True)
    row = after(child.noun, singular(condition.words))
    rows = after(child.nouns, condition.words)
    names, owners = plural(child.label), plural(parent.label)
    question = draw.one(
        (
            f"show the {child.label} of each {row} and the {parent.label} of {child.its} {parent.noun}.",
            f"list the {names} of the {rows} with the {owners} of their {parent.nouns}.",
        )
    )
    select = f"SELECT {child.name}.{child.label} , {parent.name}.{parent.label}"
    return Pair(question, f"{select} FROM {joined(child, parent)}{where(condition)}")


def children_aggregate(draw: Draw) -> Pair:
    child, parent = draw.link()
    if not child.numbers:
        raise UnfitError
    attribute = draw.rng.choice(child.numbers)
    function, word = draw.aggregate()
    if draw.chance(0.5):
        owner = _named(draw, parent)
    else:
        some = draw.condition(parent, qualified=True)
        owner = Condition(f"{parent.nouns} {some.words}", some.sql)
    question = draw.one(
        (
            f"what is the {word} {attribute.noun} of the {child.nouns} of {owner.words}?",
            f"find the {word} {attribute.noun} of all {child.nouns} of {owner.words}.",
        )
    )
    select = f"SELECT {function}({child.name}.{attribute.column})"
    return Pair(question, f"{select} FROM {joined(child, parent)}{where(owner)}")


def children_per_parent(draw: Draw) -> Pair:
    child, parent = draw.link()
    what, value = f"number of {parent.its} {child.nouns}", "count(*)"
    if child.numbers and draw.chance(0.5):
        attribute = draw.rng.choice(child.numbers)
        function, word = draw.aggregate()
        what = f"{word} {attribute.noun} of {parent.its} {child.nouns}"
        value = f"{function}({child.name}.{attribute.column})"
    question = draw.one(
        (
            f"for each {parent.noun} that has {child.nouns}, show the {parent.label} and the {what}.",
            f"show the {parent.label} of every {parent.noun} with {child.nouns} and the {what}.",
        )
    )
    select = f"SELECT {parent.name}.{parent.label} , {value}"
    return Pair(question, f"{select} FROM {joined(child, parent)} GROUP BY {parent.name}.id")


def parents_having(draw: Draw) -> Pair:
    child, parent = draw.link()
    words, sign, least = draw.rng.choice((("more than", ">", 1), ("at least", ">=", 2)))
    count = draw.rng.randint(least, least + 2)
    question = draw.one(
        (
            f"which {parent.nouns} have {words} {count} {child.nouns}?",
            draw.listing(parent.label, parent, f"with {words} {count} {child.nouns}"),
            draw.listing(parent.label, parent, f"that have {words} {count} {child.nouns}"),
        )
    )
    select = f"SELECT {parent.name}.{parent.label} FROM {joined(child, parent)}"
    return Pair(question, f"{select} GROUP BY {parent.name}.id HAVING count(*) {sign} {count}")


def parent_top(draw: Draw) -> Pair:
    child, parent = draw.link()
    column, noun = draw.wanted(parent)
    question = draw.one(
        (
            f"what is the {noun} of the {parent.noun} with the most {child.nouns}?",
            f"show the {noun} of the {parent.noun} that has the largest number of {child.nouns}.",
            f"find the {noun} of the {parent.noun} with the highest number of {child.nouns}.",
        )
    )
    select = f"SELECT {parent.name}.{column} FROM {joined(child, parent)}"
    return Pair(question, f"{select} GROUP BY {parent.name}.id ORDER BY count(*) DESC LIMIT 1")
