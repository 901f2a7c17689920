"""The embedded sample and the endless stream: what is shipped is what the script makes, and it is sound."""

from __future__ import annotations

import itertools
import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from tasks.data.text2sql import databases, generate
from tasks.data.text2sql.draw import Draw
from tasks.data.text2sql.model import plural
from tasks.data.text2sql.questions import SHAPES, ask
from tasks.sql_schema import parse_tables, serialise, with_examples
from tasks.text2sql import EMBEDDED, Text2SQL

SPLITS = ("train", "new_questions", "new_databases")


@pytest.fixture(scope="module")
def rows() -> dict[str, list[dict[str, str]]]:
    return {split: json.loads((EMBEDDED / f"{split}.json").read_text()) for split in SPLITS}


def _dump(path: Path) -> list[str]:
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        return list(connection.iterdump())


def test_the_script_makes_what_is_shipped(tmp_path: Path) -> None:
    generate.write(tmp_path)
    for path in (*tmp_path.glob("*.json"), *tmp_path.rglob("*.sqlite")):
        shipped = EMBEDDED / path.relative_to(tmp_path)
        if path.suffix == ".json":
            assert path.read_bytes() == shipped.read_bytes(), path.name
        else:  # SQLite writes its own version into the file, so bytes may differ
            assert _dump(path) == _dump(shipped), path.name
    made = {path.relative_to(tmp_path) for path in tmp_path.rglob("*.sqlite")}
    assert made == {path.relative_to(EMBEDDED) for path in EMBEDDED.rglob("*.sqlite")}


def test_sizes(rows: dict[str, list[dict[str, str]]]) -> None:
    used = {split: {row["db_id"] for row in rows[split]} for split in SPLITS}
    assert len(used["train"]) == 16 and len(rows["train"]) >= 1500
    assert len(rows["new_questions"]) + len(rows["new_databases"]) >= 800
    assert used["new_questions"] == used["train"]
    assert len(used["new_databases"]) == 4 and not used["new_databases"] & used["train"]
    files = [*EMBEDDED.glob("*.json"), *EMBEDDED.rglob("*.sqlite")]
    assert sum(file.stat().st_size for file in files) < 1_500_000


def test_nothing_leaks(rows: dict[str, list[dict[str, str]]]) -> None:
    for field in ("question", "query"):
        seen = [{(r["db_id"], " ".join(r[field].lower().split())) for r in rows[split]} for split in SPLITS]
        assert not seen[0] & seen[1] and not seen[0] & seen[2]
    training_tables = {table.name for tables in databases.TRAINING.values() for table in tables}
    assert not training_tables & {table.name for tables in databases.NEW.values() for table in tables}


def test_what_a_query_compares_with_stands_in_its_question(rows: dict[str, list[dict[str, str]]]) -> None:
    for row in itertools.chain(*rows.values()):
        values = [value.strip("%") for value in re.findall(r"'([^']*)'", row["query"])]
        values += re.findall(r"(?:[<>=] |BETWEEN |AND |LIMIT )(\d+)", row["query"].removesuffix(" LIMIT 1"))
        for value in values:
            assert re.search(rf"\b{value}\b", row["question"]), row


def test_every_kind_of_query_occurs_in_every_split(rows: dict[str, list[dict[str, str]]]) -> None:
    kinds = (
        "WHERE", " = ", " > ", " < ", ">=", "<=", "!=", "LIKE", "BETWEEN", " IN (", " AND ", " OR ", "count(",
        "avg(", "sum(", "min(", "max(", "GROUP BY", "HAVING", "ORDER BY", " DESC", "LIMIT", "SELECT DISTINCT",
        "count(DISTINCT", "JOIN", "(SELECT", "NOT IN", "EXCEPT", "INTERSECT",
    )  # fmt: skip
    for split in SPLITS:
        for kind in kinds:
            assert any(kind in row["query"] for row in rows[split]), (split, kind)


def test_every_gold_earns_every_reward_without_a_flag() -> None:
    """The verifier looks for empty results and ties by itself, so this also checks `has_one_answer`."""
    task = Text2SQL(workers=2)
    try:
        for split in SPLITS:
            prompts = task.prompts(split)
            checks = task.verify(prompts, [task.target(prompt) for prompt in prompts])
            for prompt, found in zip(prompts, checks, strict=True):
                for reward, check in found.items():
                    assert (check.score, check.flags) == (1.0, ()), (prompt.reference["gold"], reward, check)
    finally:
        task.close()


def test_the_stream_writes_schemas_as_the_task_reads_them() -> None:
    """A policy trained on the stream must meet the same text in the sample."""
    entries = {entry["db_id"]: entry for entry in json.loads((EMBEDDED / "tables.json").read_text())}
    made, _ = generate.build()
    for database in made:
        path = EMBEDDED / "database" / database.id / f"{database.id}.sqlite"
        read = with_examples(parse_tables(entries[database.id]), path, 2)
        assert serialise(database.schema, example_values=2) == serialise(read, example_values=2)


def test_the_stream_is_a_function_of_its_seed() -> None:
    first, again, other = (list(itertools.islice(generate.stream(seed), 200)) for seed in (7, 7, 8))
    assert first == again != other


def test_the_stream_asks_nothing_about_held_out_tables() -> None:
    held_out = {table.name for tables in databases.NEW.values() for table in tables}
    for example in itertools.islice(generate.stream(1), 3000):
        assert not held_out & {table.name for table in example.schema.tables}


def test_queries_of_the_stream_run_on_their_databases() -> None:
    rng, ran = Random(3), 0
    while ran < 1500:
        database = generate.random_database(rng, invented=0.3)
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.executescript(generate.script(database))
            for _ in range(15):
                connection.execute(ask(database, rng).sql).fetchall()
                ran += 1


def test_every_shape_is_asked() -> None:
    music = generate.build()[0][0]
    for shape in SHAPES:
        assert shape(Draw(Random(0), music)).sql.startswith("SELECT"), shape


@pytest.mark.parametrize(
    ("sql", "good"),
    [
        ("SELECT name FROM t", True),
        ("SELECT name FROM t WHERE n > 9", False),
        ("SELECT count(*) FROM t WHERE n > 9", False),
        ("SELECT max(n) FROM t WHERE n > 9", False),
        ("SELECT name FROM t ORDER BY n", False),
        ("SELECT name FROM t ORDER BY n LIMIT 1", True),
        ("SELECT name FROM t ORDER BY n DESC LIMIT 1", False),
        ("SELECT name FROM t ORDER BY id DESC LIMIT 2", True),
        ("SELECT name FROM t ORDER BY id LIMIT 3", False),
    ],
)
def test_golds_without_one_right_answer_are_rejected(sql: str, good: bool) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(
            "CREATE TABLE t(id, name, n); INSERT INTO t VALUES (1,'a',1),(2,'b',2),(3,'c',2);"
        )
        assert generate.has_one_answer(connection, sql) is good


def test_plurals() -> None:
    words = ["singer", "city", "dish", "box", "day", "home city", "species", "shelf", "bus", "child"]
    many = [
        "singers",
        "cities",
        "dishes",
        "boxes",
        "days",
        "home cities",
        "species",
        "shelves",
        "buses",
        "children",
    ]
    assert [plural(word) for word in words] == many
