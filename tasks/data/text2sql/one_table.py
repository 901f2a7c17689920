"""Shapes of question about one table, without subqueries."""

from __future__ import annotations

from tasks.data.text2sql.draw import AGGREGATES, Draw, Pair, UnfitError, after, singular, where
from tasks.data.text2sql.model import article, plural
from tasks.sql_schema import literal


def list_column(draw: Draw) -> Pair:
    table = draw.table()
    column, noun = draw.wanted(table)
    return Pair(draw.listing(noun, table), f"SELECT {column} FROM {table.name}")


def list_two_columns(draw: Draw) -> Pair:
    table = draw.table(attributes=1)
    attribute = draw.rng.choice(table.attributes)
    question = draw.listing(f"{table.label} and {attribute.noun}", table)
    return Pair(question, f"SELECT {table.label} , {attribute.column} FROM {table.name}")


def lookup(draw: Draw) -> Pair:
    table = draw.table(attributes=1)
    attribute, who = draw.rng.choice(table.attributes), draw.value(table, table.label)
    question = draw.one(
        (
            f"what is the {attribute.noun} of the {table.noun} {who}?",
            f"show the {attribute.noun} of {table.noun} {who}.",
            f"find the {attribute.noun} of the {table.noun} named {who}.",
            f"which {attribute.noun} does the {table.noun} {who} have?",
        )
    )
    return Pair(question, f"SELECT {attribute.column} FROM {table.name} WHERE {table.label} = {literal(who)}")


def labels_where(draw: Draw) -> Pair:
    table = draw.table()
    condition = draw.condition(table)
    return draw.labels_or_count(table, condition.words, condition.sql)


def count_where(draw: Draw) -> Pair:
    table = draw.table()
    condition = draw.condition(table)
    return draw.labels_or_count(table, condition.words, condition.sql, count=1.0)


def column_where(draw: Draw) -> Pair:
    table = draw.table(attributes=2)
    wanted = draw.rng.choice(table.attributes)
    condition = draw.condition(table, avoid=wanted.column)
    return Pair(
        draw.listing(wanted.noun, table, condition.words),
        f"SELECT {wanted.column} FROM {table.name}{where(condition)}",
    )


def at_least(draw: Draw) -> Pair:
    table = draw.table(numbers=1)
    attribute = draw.rng.choice(table.numbers)
    number = draw.inner(table, attribute.column)
    words, sign = draw.rng.choice(
        (("at least", ">="), ("at most", "<="), ("not below", ">="), ("not above", "<="))
    )
    tail = f"whose {attribute.noun} is {words} {number}"
    return draw.labels_or_count(table, tail, f"{attribute.column} {sign} {number}", count=0.2)


def between(draw: Draw) -> Pair:
    table = draw.table(numbers=1)
    attribute = draw.rng.choice(table.numbers)
    low, high = sorted((draw.inner(table, attribute.column), draw.inner(table, attribute.column)))
    if low == high:
        raise UnfitError
    tail = draw.one(attribute.between).format(low, high)
    return draw.labels_or_count(table, tail, f"{attribute.column} BETWEEN {low} AND {high}", count=0.2)


def like(draw: Draw) -> Pair:
    table = draw.table()
    label = table.label
    first, _, last = str(draw.value(table, label)).partition(" ")
    tail, pattern = draw.rng.choice(
        (
            (f"whose {label} starts with {first}", f"{first}%"),
            (f"whose {label} begins with the letter {first[0]}", f"{first[0]}%"),
            (f"whose {label} ends with {last}", f"%{last}"),
            (f"with {last} in their {label}", f"%{last}%"),
            (f"whose {label} contains {first}", f"%{first}%"),
        )
    )
    return draw.labels_or_count(table, tail, f"{label} LIKE {literal(pattern)}", count=0.3)


def either(draw: Draw) -> Pair:
    table = draw.table(texts=1)
    attribute = draw.rng.choice(table.texts)
    a, b = draw.two_values(table, attribute.column)
    tail = draw.one(attribute.equal).format(draw.one((f"{a} or {b}", f"either {a} or {b}")))
    return draw.labels_or_count(table, tail, f"{attribute.column} IN ({literal(a)}, {literal(b)})", count=0.2)


def other_than(draw: Draw) -> Pair:
    table = draw.table(texts=1)
    attribute = draw.rng.choice(table.texts)
    value = draw.value(table, attribute.column)
    tail = draw.one(
        (
            f"whose {attribute.noun} is not {value}",
            f"with {article(attribute.noun)} other than {value}",
        )
    )
    return draw.labels_or_count(table, tail, f"{attribute.column} != {literal(value)}", count=0.4)


def and_or(draw: Draw) -> Pair:
    table = draw.table(attributes=2)
    a, b = (draw.condition_on(table, attribute) for attribute in draw.rng.sample(table.attributes, 2))
    glue = draw.one(("and", "and", "or"))
    tail, test = f"{a.words} {glue} {b.words}", f"{a.sql} {glue.upper()} {b.sql}"
    return draw.labels_or_count(table, tail, test, count=0.3)


def count_all(draw: Draw) -> Pair:
    table = draw.table()
    return Pair(draw.counting(table), f"SELECT count(*) FROM {table.name}")


def count_distinct(draw: Draw) -> Pair:
    table = draw.table(texts=1)
    attribute = draw.rng.choice(table.texts)
    many = plural(attribute.noun)
    question = draw.one(
        (
            f"how many different {many} do the {table.nouns} have?",
            f"count the distinct {many} of the {table.nouns}.",
            f"how many {many} are there among the {table.nouns}?",
        )
    )
    return Pair(question, f"SELECT count(DISTINCT {attribute.column}) FROM {table.name}")


def distinct(draw: Draw) -> Pair:
    table = draw.table(texts=1)
    attribute = draw.rng.choice(table.texts)
    many = plural(attribute.noun)
    question = draw.one(
        (
            f"what are the different {many} of the {table.nouns}?",
            f"list the distinct {many} of {table.nouns}.",
            f"which {many} do the {table.nouns} have, without repeats?",
            f"show every {attribute.noun} of the {table.nouns} once.",
        )
    )
    return Pair(question, f"SELECT DISTINCT {attribute.column} FROM {table.name}")


def aggregate(draw: Draw) -> Pair:
    table = draw.table(numbers=1)
    attribute = draw.rng.choice(table.numbers)
    function, word = draw.aggregate()
    condition = draw.maybe(0.6, table, avoid=attribute.column)
    rows = after(draw.one(("the", "all")), table.nouns, condition.words)
    question = draw.one(
        (
            f"what is the {word} {attribute.noun} of {rows}?",
            f"find the {word} {attribute.noun} of {rows}.",
            f"show the {word} {attribute.noun} of {rows}.",
        )
    )
    return Pair(question, f"SELECT {function}({attribute.column}) FROM {table.name}{where(condition)}")


def two_aggregates(draw: Draw) -> Pair:
    table = draw.table(numbers=1)
    column, noun = (attribute := draw.rng.choice(table.numbers)).column, attribute.noun
    first, second = draw.rng.sample(sorted(AGGREGATES), 2)
    words = f"{AGGREGATES[first][0]} and {AGGREGATES[second][0]} {noun} of the {table.nouns}"
    question = draw.one((f"what are the {words}?", f"show the {words}.", f"find the {words}."))
    return Pair(question, f"SELECT {first}({column}) , {second}({column}) FROM {table.name}")


def group_count(draw: Draw) -> Pair:
    table = draw.table(texts=1)
    key = draw.rng.choice(table.texts)
    question = draw.one(
        (
            f"how many {table.nouns} are there for each {key.noun}?",
            f"show each {key.noun} and the number of {table.nouns} with it.",
            f"count the {table.nouns} per {key.noun}.",
            f"for every {key.noun}, how many {table.nouns} are there?",
        )
    )
    return Pair(question, f"SELECT {key.column} , count(*) FROM {table.name} GROUP BY {key.column}")


def group_aggregate(draw: Draw) -> Pair:
    table = draw.table(texts=1, numbers=1)
    key, attribute = draw.rng.choice(table.texts), draw.rng.choice(table.numbers)
    function, word = draw.aggregate()
    question = draw.one(
        (
            f"what is the {word} {attribute.noun} of the {table.nouns} for each {key.noun}?",
            f"show each {key.noun} and the {word} {attribute.noun} of its {table.nouns}.",
            f"for every {key.noun}, find the {word} {attribute.noun} of the {table.nouns}.",
        )
    )
    select = f"SELECT {key.column} , {function}({attribute.column})"
    return Pair(question, f"{select} FROM {table.name} GROUP BY {key.column}")


def group_having(draw: Draw) -> Pair:
    table = draw.table(texts=1)
    key = draw.rng.choice(table.texts)
    count = draw.rng.randint(2, 4)
    words, sign = draw.rng.choice((("more than", ">"), ("at least", ">="), ("fewer than", "<")))
    many = plural(key.noun)
    question = draw.one(
        (
            f"which {many} have {words} {count} {table.nouns}?",
            f"list the {many} with {words} {count} {table.nouns}.",
            f"find the {many} that {words} {count} {table.nouns} have.",
        )
    )
    select = f"SELECT {key.column} FROM {table.name} GROUP BY {key.column}"
    return Pair(question, f"{select} HAVING count(*) {sign} {count}")


def group_top(draw: Draw) -> Pair:
    table = draw.table(texts=1)
    key = draw.rng.choice(table.texts)
    down = draw.chance(0.6)
    word = "most" if down else "least"
    question = draw.one(
        (
            f"what is the {word} common {key.noun} of the {table.nouns}?",
            f"which {key.noun} has the {'most' if down else 'fewest'} {table.nouns}?",
            f"find the {key.noun} that is {word} frequent among {table.nouns}.",
        )
    )
    select = f"SELECT {key.column} FROM {table.name} GROUP BY {key.column}"
    return Pair(question, f"{select} ORDER BY count(*){' DESC' if down else ''} LIMIT 1")


def order(draw: Draw) -> Pair:
    table = draw.table(numbers=1)
    attribute = draw.rng.choice(table.numbers)
    down = draw.chance(0.5)
    condition = draw.maybe(0.35, table, avoid=attribute.column)
    names, rows = plural(table.label), after(table.nouns, condition.words)
    row = after(table.noun, singular(condition.words))
    way, going = ("descending", "decreasing") if down else ("ascending", "increasing")
    run = "high to low" if down else "low to high"
    question = draw.one(
        (
            f"list the {names} of the {rows} in {way} order of {attribute.noun}.",
            f"show the {table.label} of each {row}, sorted by {attribute.noun} from {run}.",
            f"what are the {names} of {rows} ordered by {going} {attribute.noun}?",
        )
    )
    select = f"SELECT {table.label} FROM {table.name}{where(condition)}"
    return Pair(question, f"{select} ORDER BY {attribute.column}{' DESC' if down else ''}")


def top(draw: Draw) -> Pair:
    """The first one or few of an order, in the superlative: "the 3 oldest singers"."""
    table = draw.table(numbers=1)
    attribute = draw.rng.choice(table.numbers)
    down = draw.chance(0.5)
    before, behind = draw.rng.choice(attribute.most if down else attribute.least)
    count = draw.rng.choice((1, 1, 1, 2, 3, 5))
    condition = draw.maybe(0.3, table, avoid=attribute.column)
    column, noun = table.label, plural(table.label)
    if count == 1:
        noun = table.label
        if draw.chance(0.3):
            column, noun = draw.wanted(table)
        rows = after("the", before, table.noun, singular(condition.words), behind)
    else:
        rows = after("the", str(count), before, table.nouns, condition.words, behind)
    question = draw.one(
        (
            f"what {'is' if count == 1 else 'are'} the {noun} of {rows}?",
            f"show the {noun} of {rows}.",
            f"find the {noun} of {rows}.",
            f"give the {noun} of {rows}.",
        )
    )
    select = f"SELECT {column} FROM {table.name}{where(condition)}"
    return Pair(question, f"{select} ORDER BY {attribute.column}{' DESC' if down else ''} LIMIT {count}")
