"""Shapes of question that need a query inside a query, or two queries side by side."""

from __future__ import annotations

from tasks.data.text2sql.draw import Draw, Pair, after, singular, where
from tasks.data.text2sql.model import plural
from tasks.sql_schema import literal


def than_average(draw: Draw) -> Pair:
    table = draw.table(numbers=1)
    attribute = draw.rng.choice(table.numbers)
    words, sign = draw.rng.choice((("above", ">"), ("higher than", ">"), ("below", "<"), ("lower than", "<")))
    tail = f"whose {attribute.noun} is {words} the average"
    inside = f"(SELECT avg({attribute.column}) FROM {table.name})"
    return draw.labels_or_count(table, tail, f"{attribute.column} {sign} {inside}", count=0.25)


def than_another(draw: Draw) -> Pair:
    """Compared with one row that is named."""
    table = draw.table(numbers=1)
    attribute = draw.rng.choice(table.numbers)
    word, sign = draw.rng.choice((("higher", ">"), ("lower", "<")))
    who = draw.value(table, table.label)
    tail = draw.one(
        (
            f"with a {word} {attribute.noun} than {who}",
            f"whose {attribute.noun} is {word} than that of {who}",
        )
    )
    inside = f"(SELECT {attribute.column} FROM {table.name} WHERE {table.label} = {literal(who)})"
    return draw.labels_or_count(table, tail, f"{attribute.column} {sign} {inside}", count=0.15)


def extreme(draw: Draw) -> Pair:
    """All rows that reach the maximum or the minimum."""
    table = draw.table(numbers=1)
    attribute = draw.rng.choice(table.numbers)
    word, function = draw.rng.choice((("maximum", "max"), ("minimum", "min")))
    tail = draw.one(
        (
            f"whose {attribute.noun} equals the {word}",
            f"that reach the {word} {attribute.noun} of all {table.nouns}",
        )
    )
    inside = f"(SELECT {function}({attribute.column}) FROM {table.name})"
    return draw.labels_or_count(table, tail, f"{attribute.column} = {inside}")


def without_children(draw: Draw) -> Pair:
    child, parent = draw.link()
    condition = draw.maybe(0.4, child)
    children = after(child.nouns, condition.words)
    test = f"id NOT IN (SELECT {parent.name}_id FROM {child.name}{where(condition)})"
    if draw.chance(0.3):
        question = f"which {parent.nouns} have no {children}?"
        return Pair(question, f"SELECT {parent.label} FROM {parent.name} WHERE {test}")
    tail = draw.one((f"without any {children}", f"that do not have {children}"))
    return draw.labels_or_count(parent, tail, test, count=0.25)


def values_without(draw: Draw) -> Pair:
    table = draw.table(texts=1, attributes=2)
    key = draw.rng.choice(table.texts)
    condition = draw.condition(table, avoid=key.column)
    many, rows = plural(key.noun), after(table.nouns, condition.words)
    row = after(table.noun, singular(condition.words))
    question = draw.one(
        (
            f"which {many} have no {rows}?",
            f"list the {many} without {rows}.",
            f"find the {many} that do not have any {row}.",
        )
    )
    select = f"SELECT {key.column} FROM {table.name}"
    return Pair(question, f"{select} EXCEPT {select}{where(condition)}")


def values_with_both(draw: Draw) -> Pair:
    table = draw.table(texts=1, numbers=1)
    key, attribute = draw.rng.choice(table.texts), draw.rng.choice(table.numbers)
    low, high = sorted((draw.inner(table, attribute.column), draw.inner(table, attribute.column)))
    over, under = draw.one(attribute.over).format(high), draw.one(attribute.under).format(low)
    many = plural(key.noun)
    question = draw.one(
        (
            f"which {many} have both {table.nouns} {over} and {table.nouns} {under}?",
            f"list the {many} with {table.nouns} {over} as well as {table.nouns} {under}.",
        )
    )
    select = f"SELECT {key.column} FROM {table.name} WHERE {attribute.column}"
    return Pair(question, f"{select} > {high} INTERSECT {select} < {low}")
