"""A database schema as a prompt shows it: one line a table, bounded in length.

::

    singer(id number primary key, name text 'ana bell' 'tom reed', age number 23 41)
    concert(id number primary key, singer_id number -> singer.id, venue text 'old mill' 'city hall')

Identifiers and example values are written as SQL writes them, so that a policy can copy both. The space
before a table's name is part of that: most vocabularies have another token for a word at the start of a line.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeGuard

from creditlib.types import MissingDataError

Value = str | int | float

MAX_VALUE_CHARS = 32  # a longer text says little about its column for the tokens that it costs
ROWS_READ = (
    100  # example values come from the first rows, so that a big database costs no more than a small one
)

# Words that SQLite does not take as a bare identifier.
RESERVED = frozenset(
    "add all alter and as autoincrement between case check collate commit constraint create default "
    "deferrable delete distinct drop else escape except exists foreign from group having in index insert "
    "intersect into is isnull join limit not notnull null on or order primary references returning select "
    "set table then to transaction union unique update using values when where".split()
)


@dataclass(frozen=True)
class Column:
    name: str
    type: str
    primary_key: bool = False
    references: tuple[str, str] | None = None  # (table, column) of a foreign key
    examples: tuple[Value, ...] = ()


@dataclass(frozen=True)
class Table:
    name: str
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class Schema:
    db_id: str
    tables: tuple[Table, ...]


def identifier(name: str) -> str:
    """`name` as SQL must write it: quoted if it isn't a plain word or if it is a reserved one."""
    if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) and name.lower() not in RESERVED:
        return name
    return '"' + name.replace('"', '""') + '"'


def literal(value: Value) -> str:
    """`value` as SQL writes it; a whole number without its ``.0``."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def serialise(schema: Schema, *, example_values: int = 2, max_chars: int = 6000) -> str:
    """Write `schema` in at most `max_chars` characters.

    What costs most and says least goes first: example values one by one, then types, then the last columns of
    the widest tables. Keys stay longest, for without them no table can be joined.
    """
    for examples in range(example_values, -1, -1):
        text = _lines(schema, examples=examples)
        if len(text) <= max_chars:
            return text
    for width in range(max((len(table.columns) for table in schema.tables), default=0), -1, -1):
        text = _lines(schema, examples=0, types=False, width=width)
        if len(text) <= max_chars:
            return text
    return text[:max_chars]


def _lines(schema: Schema, *, examples: int, types: bool = True, width: int | None = None) -> str:
    lines = []
    for table in schema.tables:
        kept = [
            c
            for i, c in enumerate(table.columns)
            if width is None or i < width or c.primary_key or c.references
        ]
        cells = [_cell(column, examples, types) for column in kept] + ["..."] * (
            len(kept) < len(table.columns)
        )
        lines.append(f" {identifier(table.name)}({', '.join(cells)})")
    return "\n".join(lines)


def _cell(column: Column, examples: int, types: bool) -> str:
    words = [identifier(column.name)]
    if types:
        words.append(column.type)
    if column.primary_key:
        words.append("primary key")
    if column.references:
        words.append("-> " + ".".join(map(identifier, column.references)))
    words += [literal(value) for value in column.examples[:examples]]
    return " ".join(words)


def is_text(value: object) -> TypeGuard[str]:
    """Is it a text that files and tokenizers take? JSON can write half of a surrogate pair, which is none."""
    return isinstance(value, str) and not any("\ud800" <= character <= "\udfff" for character in value)


def parse_tables(entry: Mapping[str, Any]) -> Schema:
    """Read one entry of a `tables.json` (Spider's and BIRD's format).

    Raises:
        KeyError, IndexError, TypeError, ValueError: the entry isn't of that format.
    """
    names: Sequence[tuple[int, str]] = entry["column_names_original"]
    tables: Sequence[str] = entry["table_names_original"]
    kinds: Sequence[str] = entry["column_types"]
    for text in (entry["db_id"], *tables, *(name for _, name in names), *kinds):
        if not is_text(text):
            raise TypeError(f"expected db_id, names and types to be texts, found {text!r}")
    primary: set[int] = set()
    for key in entry["primary_keys"]:  # BIRD writes a composite key as a list
        primary.update(key if isinstance(key, list) else [key])
    references = {
        source: (tables[names[target][0]], names[target][1]) for source, target in entry["foreign_keys"]
    }
    columns: list[list[Column]] = [[] for _ in tables]
    for index, ((table, name), kind) in enumerate(zip(names, kinds, strict=True)):
        if table >= 0:  # the first entry is "*"
            columns[table].append(Column(name, kind, index in primary, references.get(index)))
    return Schema(
        entry["db_id"], tuple(Table(name, tuple(rows)) for name, rows in zip(tables, columns, strict=True))
    )


def with_examples(schema: Schema, database: Path, count: int) -> Schema:
    """Add up to `count` example values to every column that isn't a key (a key's values say nothing).

    Raises:
        MissingDataError: the file is no SQLite database, or one without these tables.
    """
    # immutable: reads a database that another process has locked, and leaves no journal beside it.
    uri = f"{database.absolute().as_uri()}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            connection.text_factory = lambda data: data.decode("utf-8", "replace")
            present = {str(name).lower() for (name,) in connection.execute("SELECT name FROM sqlite_master")}
            if not any(table.name.lower() in present for table in schema.tables):
                raise MissingDataError(
                    f"database {database} has none of the tables that the schema of {schema.db_id} names. "
                    "Replace the file, or change task.databases or task.tables."
                )
            tables = [
                _table_with_examples(table, connection, count) if table.name.lower() in present else table
                for table in schema.tables
            ]
    except sqlite3.DatabaseError as error:
        raise MissingDataError(
            f"database {database} can't be read: {error}. Replace the file, or change task.databases."
        ) from error
    return replace(schema, tables=tuple(tables))


def _table_with_examples(table: Table, connection: sqlite3.Connection, count: int) -> Table:
    # Columns are matched by the cursor's own names: tables.json and the file may differ.
    cursor = connection.execute(f"SELECT * FROM {identifier(table.name)} LIMIT {ROWS_READ}")
    position = {item[0].lower(): i for i, item in enumerate(cursor.description)}
    rows = cursor.fetchall() if count else []

    def examples(column: Column) -> tuple[Value, ...]:
        if column.primary_key or column.references or column.name.lower() not in position:
            return ()
        values = (row[position[column.name.lower()]] for row in rows)
        return tuple(dict.fromkeys(value for value in values if _shows_well(value)))[:count]

    return replace(
        table, columns=tuple(replace(column, examples=examples(column)) for column in table.columns)
    )


def _shows_well(value: object) -> bool:
    if isinstance(value, str):
        return 0 < len(value) <= MAX_VALUE_CHARS and value.isprintable()
    return isinstance(value, int | float)
