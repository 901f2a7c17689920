"""How a schema reads in a prompt, and that its length is bounded."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creditlib.types import MissingDataError
from tasks.sql_schema import (
    Column,
    Schema,
    Table,
    identifier,
    literal,
    parse_tables,
    serialise,
    with_examples,
)

SINGERS = Schema(
    "music",
    (
        Table(
            "singer",
            (
                Column("id", "number", primary_key=True),
                Column("name", "text", examples=("ana bell", "tom o'reed", "eva")),
                Column("Song Name", "text"),
                Column("age", "number", examples=(23.0, 41, 30)),
            ),
        ),
        Table("order", (Column("singer_id", "number", references=("singer", "id")),)),
    ),
)


def test_types_keys_and_examples_are_written_as_sql_writes_them() -> None:
    assert serialise(SINGERS, example_values=2) == (
        " singer(id number primary key, name text 'ana bell' 'tom o''reed', \"Song Name\" text, "
        "age number 23 41)\n"
        ' "order"(singer_id number -> singer.id)'
    )


def test_a_longer_schema_loses_examples_then_types_then_columns_but_no_key() -> None:
    order = '\n "order"(singer_id -> singer.id)'
    full = serialise(SINGERS)
    fewer = serialise(SINGERS, max_chars=len(full) - 1)
    assert "'ana bell'" in fewer and "reed" not in fewer
    bare = serialise(SINGERS, max_chars=90)
    assert bare == ' singer(id primary key, name, "Song Name", age)' + order
    cut = serialise(SINGERS, max_chars=len(bare) - 1)
    assert cut == " singer(id primary key, name, ...)" + order
    assert serialise(SINGERS, max_chars=len(cut) - 1) == " singer(id primary key, ...)" + order
    assert serialise(SINGERS, max_chars=11) == " singer(id "


names = st.text(min_size=1, max_size=12)
columns = st.builds(
    Column,
    names,
    st.sampled_from(["text", "number"]),
    st.booleans(),
    st.none() | st.tuples(names, names),
    st.lists(st.text(max_size=40) | st.integers() | st.floats(allow_nan=False), max_size=3).map(tuple),
)
schemas = st.builds(
    Schema,
    names,
    st.lists(st.builds(Table, names, st.lists(columns, max_size=6).map(tuple)), max_size=4).map(tuple),
)


@given(schemas, st.integers(1, 300), st.integers(0, 3))
def test_the_bound_holds_for_every_schema(schema: Schema, max_chars: int, example_values: int) -> None:
    assert len(serialise(schema, example_values=example_values, max_chars=max_chars)) <= max_chars


@given(st.text(min_size=1).filter(lambda name: "\x00" not in name and name.isprintable()))
def test_identifiers_and_literals_survive_sqlite(name: str) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        cursor = connection.execute(f"SELECT {literal(name)} AS {identifier(name)}")
        assert cursor.description[0][0] == name
        assert cursor.fetchone() == (name,)


@pytest.mark.parametrize("name", ["order", "Group", "a b", "2nd", 'say "x"', "é"])
def test_names_that_are_no_plain_words_are_quoted(name: str) -> None:
    assert identifier(name).startswith('"')


def test_tables_json_is_read_with_composite_keys_and_without_the_star() -> None:
    schema = parse_tables(
        {
            "db_id": "d",
            "table_names_original": ["a", "b"],
            "column_names_original": [[-1, "*"], [0, "x"], [0, "y"], [1, "z"]],
            "column_types": ["text", "number", "text", "number"],
            "primary_keys": [[1, 2]],
            "foreign_keys": [[3, 1]],
        }
    )
    assert schema == Schema(
        "d",
        (
            Table("a", (Column("x", "number", True), Column("y", "text", True))),
            Table("b", (Column("z", "number", False, ("a", "x")),)),
        ),
    )


def _database(path: Path, script: str) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
    return path


def test_examples_are_distinct_short_and_never_of_keys(tmp_path: Path) -> None:
    long = "x" * 50
    path = _database(
        tmp_path / "a #1.sqlite",  # a name that a URI must escape
        "CREATE TABLE Singer(ID INT, NAME TEXT, AGE INT);"
        f"INSERT INTO Singer VALUES (1,'b',NULL),(2,'{long}',3),(3,'b',3),(4,'',4),(5,'c',5);",
    )
    schema = Schema(
        "music",
        (
            Table("singer", (Column("id", "number", True), Column("name", "text"), Column("age", "number"))),
            Table("absent", (Column("x", "text"),)),
        ),
    )
    found = with_examples(schema, path, 2)
    assert [column.examples for column in found.tables[0].columns] == [(), ("b", "c"), (3, 4)]
    assert found.tables[1] == schema.tables[1]
    assert list(tmp_path.iterdir()) == [path]


def test_a_locked_database_can_be_read(tmp_path: Path) -> None:
    path = _database(tmp_path / "a.sqlite", "CREATE TABLE t(x); INSERT INTO t VALUES ('v');")
    schema = Schema("a", (Table("t", (Column("x", "text"),)),))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert with_examples(schema, path, 1).tables[0].columns[0].examples == ("v",)


@pytest.mark.parametrize("content", [b"", b"this is no database" * 100])
@pytest.mark.parametrize("count", [0, 2])
def test_a_corrupt_or_empty_database_is_named(tmp_path: Path, content: bytes, count: int) -> None:
    path = tmp_path / "broken.sqlite"
    path.write_bytes(content)
    with pytest.raises(MissingDataError, match=r"broken\.sqlite.*task\.databases"):
        with_examples(Schema("a", (Table("t", (Column("x", "text"),)),)), path, count)
