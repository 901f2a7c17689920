"""Makes the embedded text-to-SQL sample, and an endless stream of pairs to pre-train a small policy on.

``python -m tasks.data.text2sql.generate`` writes, beside this file and in Spider's layout,
``database/<id>/<id>.sqlite``, ``tables.json``, ``train.json``, ``new_questions.json`` (on the databases of
training) and ``new_databases.json`` (on databases that training never sees). The same seed gives the same
sample.

No leak: no query and no question about a database is in two splits. Every gold query runs, returns something
(no empty result, no count of 0, no NULL) and has one right answer (no two rows tie in its order).
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from tasks.data.text2sql import databases, words
from tasks.data.text2sql.model import Attribute, Database, Table, fill, number, text
from tasks.data.text2sql.questions import ask
from tasks.sql_schema import RESERVED, Schema

SEED = 20
ROWS = 12
NEW_QUESTIONS = 0.2  # share of the queries on training databases that go to `new_questions`
QUERIES = 180  # different queries a training database
NEW_DATABASE_QUESTIONS = 100
WORDINGS = 2  # at most so many questions of one query


@dataclass(frozen=True)
class Example:
    """A synthetic pair with the schema it is about; `Text2SQL.compose` makes a prompt of it."""

    schema: Schema
    question: str
    sql: str


# ------------------------------------------------------------------ the endless stream


def stream(seed: int, *, invented: float = 0.6, questions: int = 6) -> Iterator[Example]:
    """Endless question/SQL pairs on random schemas, `questions` a schema.

    Schemas recombine entities and attributes from `words`; none of their tables occurs in `new_databases`. A
    share `invented` of the tables and half that of the columns have nonsense for a name, which can only be
    copied out of the schema. Queries aren't run, so a few have no result.
    """
    rng = Random(seed)
    while True:
        database = random_database(rng, invented)
        schema = database.schema
        for _ in range(questions):
            pair = ask(database, rng)
            yield Example(schema, pair.question, pair.sql)


def random_database(rng: Random, invented: float) -> Database:
    """Two or three linked tables with one to three attributes each, and a few rows."""
    tables: list[Table] = []
    for name, kind in rng.sample(words.ENTITIES, rng.choice((2, 3, 3, 3))):
        if rng.random() < invented:
            name = nonsense(rng)
        if any(table.name == name for table in tables):
            continue
        attributes = rng.sample(words.ATTRIBUTES[kind], rng.choice((1, 2, 2, 3, 3)))
        attributes = [
            _invented(rng) if rng.random() < invented / 2 else attribute for attribute in attributes
        ]
        parents = tuple(table.name for table in tables if rng.random() < 0.7)
        if tables and not parents:
            parents = (rng.choice(tables).name,)
        unique = {attribute.column: attribute for attribute in attributes}
        tables.append(Table(name, kind, tuple(unique.values()), parents))
    rows = fill(tables, rng, words.NAMES, 6)
    rng.shuffle(tables)
    return Database("synthetic", tuple(tables), rows)


def nonsense(rng: Random) -> str:
    """A word that nobody knows, and that SQL does not know either."""
    syllables = [rng.choice(words.ONSETS) + rng.choice(words.VOWELS) for _ in range(rng.choice((1, 2, 2, 3)))]
    word = "".join(syllables) + rng.choice(words.CODAS)
    return nonsense(rng) if word in RESERVED else word


def _invented(rng: Random) -> Attribute:
    if rng.random() < 0.5:
        return text(nonsense(rng), [nonsense(rng) for _ in range(5)])
    low = rng.choice((1, 10, 100, 1000))
    return number(nonsense(rng), low, low * 10, max(1, low // 10))


# ------------------------------------------------------------------ the embedded sample


def build(seed: int = SEED) -> tuple[list[Database], dict[str, list[dict[str, str]]]]:
    """The databases, and the rows of each split."""
    splits: dict[str, list[dict[str, str]]] = {"train": [], "new_questions": [], "new_databases": []}
    made = []
    for db_id, tables in {**databases.TRAINING, **databases.NEW}.items():
        rng = Random(f"{seed} {db_id}")
        database = Database(db_id, tables, fill(tables, rng, words.NAMES, ROWS))
        made.append(database)
        if db_id in databases.NEW:
            wordings = answerable(database, rng, NEW_DATABASE_QUESTIONS)
            splits["new_databases"] += [_row(db_id, questions[0], sql) for sql, questions in wordings.items()]
            continue
        for sql, questions in answerable(database, rng, QUERIES).items():
            if rng.random() < NEW_QUESTIONS:
                splits["new_questions"].append(_row(db_id, questions[0], sql))
            else:
                splits["train"] += [_row(db_id, question, sql) for question in questions]
    return made, splits


def _row(db_id: str, question: str, sql: str) -> dict[str, str]:
    return {"db_id": db_id, "question": question, "query": sql}


def answerable(database: Database, rng: Random, count: int) -> dict[str, list[str]]:
    """`count` different queries that `has_one_answer` accepts, each with up to `WORDINGS` questions.

    No question occurs twice.
    """
    wordings: dict[str, list[str]] = {}
    asked: set[str] = set()
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(script(database))
        while len(wordings) < count:
            question, sql = ask(database, rng)
            if question in asked or len(wordings.get(sql, ())) == WORDINGS:
                continue
            if sql in wordings or has_one_answer(connection, sql):
                asked.add(question)
                wordings.setdefault(sql, []).append(question)
    return wordings


def has_one_answer(connection: sqlite3.Connection, sql: str) -> bool:
    """Does the query return something, and would every right query return the same?"""
    rows = connection.execute(sql).fetchall()
    if not rows or any(value is None for row in rows for value in row) or rows == [(0,)]:
        return False
    if not (
        ordered := re.fullmatch(r"SELECT (.+?) (FROM .+ ORDER BY (.+?)(?: DESC)?)(?: LIMIT (\d+))?", sql)
    ):
        return True
    _, rest, key, limit = ordered.groups()
    keys = connection.execute(f"SELECT {key} {rest}").fetchall()
    if limit:
        keys = keys[: int(limit) + 1]
        if len(keys) <= int(limit):
            return False  # the limit would change nothing
    return len(set(keys)) == len(keys) > 1


def script(database: Database) -> str:
    """The statements that make the database."""
    statements = []
    for table in database.schema.tables:
        columns = [
            f"{c.name} {'TEXT' if c.type == 'text' else 'INTEGER'}"
            + (" PRIMARY KEY" if c.primary_key else "")
            + (f" REFERENCES {c.references[0]}({c.references[1]})" if c.references else "")
            for c in table.columns
        ]
        statements.append(f"CREATE TABLE {table.name} ({', '.join(columns)});")
        for row in zip(*database.rows[table.name].values(), strict=True):
            values = ", ".join(f"'{value}'" if isinstance(value, str) else str(value) for value in row)
            statements.append(f"INSERT INTO {table.name} VALUES ({values});")
    return "\n".join(statements)


def tables_entry(database: Database) -> dict[str, Any]:
    """The database's entry in Spider's tables.json."""
    columns = [(i, column) for i, table in enumerate(database.schema.tables) for column in table.columns]
    names = [table.name for table in database.tables]
    index = {(names[table], column.name): i for i, (table, column) in enumerate(columns, start=1)}
    return {
        "db_id": database.id,
        "table_names_original": names,
        "table_names": [table.noun for table in database.tables],
        "column_names_original": [[-1, "*"], *([table, column.name] for table, column in columns)],
        "column_names": [[-1, "*"], *([table, column.name.replace("_", " ")] for table, column in columns)],
        "column_types": ["text", *(column.type for _, column in columns)],
        "primary_keys": [i for i, (_, column) in enumerate(columns, start=1) if column.primary_key],
        "foreign_keys": [
            [i, index[column.references]]
            for i, (_, column) in enumerate(columns, start=1)
            if column.references
        ],
    }


def write(folder: Path, seed: int = SEED) -> None:
    """Write the sample into `folder`."""
    made, splits = build(seed)
    for database in made:
        path = folder / "database" / database.id / f"{database.id}.sqlite"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA page_size = 512")
            connection.execute("PRAGMA synchronous = OFF")
            connection.executescript(f"BEGIN; {script(database)} COMMIT;")
            connection.execute("VACUUM")
    _write_rows(folder / "tables.json", [tables_entry(database) for database in made])
    for split, rows in splits.items():
        _write_rows(folder / f"{split}.json", rows)


def _write_rows(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """One row a line, so that a change of the sample reads well in a diff."""
    path.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    write(Path(__file__).parent)
