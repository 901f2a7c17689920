"""Runs one untrusted query on one SQLite file, read-only, within limits.

Layers, since each alone has been got round: the file is opened read-only and immutable; an authorizer lets
only reading through (`VACUUM INTO` and `ATTACH` write files even on a read-only connection); a deny list
takes functions that write, load code or throw dice; SQLite's own size limits keep single steps short; a
progress handler counts steps. A step that is slow in itself escapes the last, so all of this runs in a
process whose CPU time, memory and wall clock are limited from outside (`verifiers.pool`).
"""

from __future__ import annotations

import os
import sqlite3
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verifiers.sql.clock import stop_clock
from verifiers.sql.limits import Limits
from verifiers.sql.tokens import first_word, is_single_statement, tokenize

Row = tuple[Any, ...]

_TICK = 1000  # steps between two looks at the meter
_ROW_STEPS = 100  # what handing a row to Python costs, in steps
_OPEN_DATABASES = 32
_HEAP_MB = 256

_SIZE_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: 200_000,  # of one string or row, which bounds the time of one step
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 100_000,
    sqlite3.SQLITE_LIMIT_COLUMN: 500,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 200,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 50,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1000,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 100,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
_SQLITE_RECURSIVE = 33  # not named in Python's sqlite3
_ALLOWED = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, _SQLITE_RECURSIVE})
_DENIED_FUNCTIONS = frozenset(
    {"load_extension", "fts3_tokenizer", "edit", "readfile", "writefile", "random", "randomblob", "zeroblob"}
)
_BROKEN_FILE = frozenset(
    {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR}
)


class DatabaseError(Exception):
    """The database file cannot be used; no query is to blame."""


@dataclass(frozen=True)
class Outcome:
    """What came of a query. `error` is None if it ran to its end; `flags` say which limit was met."""

    rows: list[Row]
    columns: int = 0
    total: int = 0  # rows returned, of which `rows` keeps the first
    error: str | None = None
    flags: tuple[str, ...] = ()

    @property
    def truncated(self) -> bool:
        return self.total > len(self.rows)


class Sandbox:
    """Hardened connections to the databases used last."""

    def __init__(self) -> None:
        self._engine = sqlite3.connect(":memory:")
        self._engine.execute(f"PRAGMA hard_heap_limit = {_HEAP_MB << 20}")  # for the whole process
        self._open: OrderedDict[tuple[str, Stamp], _Database] = OrderedDict()

    def run(self, database: str, sql: str, limits: Limits, *, keep_rows: int) -> Outcome:
        """Run `sql` to its end and keep its first `keep_rows` rows.

        Raises:
            DatabaseError: the file is missing, corrupt, not a database, or has changes outside the file.
        """
        refusal = _refuse(sql)
        if refusal is not None:
            return Outcome([], error=refusal)
        return self._database(database).run(sql, limits, keep_rows)

    def _database(self, path: str) -> _Database:
        key = (path, stamp(path))
        if key not in self._open:
            self._open[key] = _Database(path, self._engine)
            if len(self._open) > _OPEN_DATABASES:
                self._open.popitem(last=False)[1].close()
        self._open.move_to_end(key)
        return self._open[key]


Stamp = tuple[int, int, int]


def stamp(path: str) -> Stamp:
    """Changes when the file does: inode, size and time of the last change.

    Raises:
        DatabaseError: there is no such file.
    """
    try:
        status = os.stat(path)
    except OSError as error:
        raise DatabaseError(f"{path}: {error.strerror}") from error
    return status.st_ino, status.st_size, status.st_mtime_ns


def _refuse(sql: str) -> str | None:
    """Why the text is no query that may run, found without running it."""
    if "\0" in sql:
        return "the query contains a NUL character"
    if any("\ud800" <= character <= "\udfff" for character in sql):
        return "the query contains half of a surrogate pair, which is no text"
    if len(sql) > _SIZE_LIMITS[sqlite3.SQLITE_LIMIT_SQL_LENGTH]:
        return f"the query is longer than {_SIZE_LIMITS[sqlite3.SQLITE_LIMIT_SQL_LENGTH]} characters"
    tokens = tokenize(sql)
    if not tokens:
        return "there is no statement"
    if first_word(tokens) not in ("select", "with", "values"):
        start = sql[tokens[0].start : tokens[0].end][:20]
        return f"only SELECT, WITH and VALUES may run, this starts with {start!r}"
    if not is_single_statement(tokens):
        return "there is more than one statement"
    return None


class _Meter:
    """Counts steps down; deterministic, unlike any clock."""

    def __init__(self, steps: int) -> None:
        self._left = steps

    def spend(self, steps: int = _TICK) -> bool:
        """Called by SQLite each `_TICK` steps; True stops the query."""
        self._left -= steps
        return self.exceeded

    @property
    def exceeded(self) -> bool:
        return self._left < 0


class _Database:
    def __init__(self, path: str, engine: sqlite3.Connection) -> None:
        for suffix in ("-wal", "-journal"):
            side = Path(path + suffix)
            if side.is_file() and side.stat().st_size:
                raise DatabaseError(
                    f"{path} has changes that are not in the file yet ({side.name}): close the writer, "
                    "then run `PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode = DELETE;` on it"
                )
        self._path = path
        self._denied = ""
        uri = Path(path).absolute().as_uri() + "?mode=ro&immutable=1"
        try:
            self._connection = sqlite3.connect(uri, uri=True, isolation_level=None, cached_statements=0)
        except sqlite3.Error as error:
            raise DatabaseError(f"{path}: {error}") from error
        self._connection.text_factory = _decode
        stop_clock(self._connection, engine)
        try:
            self._connection.execute("PRAGMA temp_store = MEMORY")
            self._connection.execute("PRAGMA trusted_schema = OFF")
            # The first statement loads the schema, whose steps no query should pay for.
            self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.Error as error:
            self._connection.close()
            raise DatabaseError(f"{path}: {error}") from error
        for limit, value in _SIZE_LIMITS.items():
            self._connection.setlimit(limit, value)
        self._connection.set_authorizer(self._authorize)

    def close(self) -> None:
        self._connection.close()

    def run(self, sql: str, limits: Limits, keep_rows: int) -> Outcome:
        meter = _Meter(limits.steps)
        self._denied = ""
        self._connection.set_progress_handler(meter.spend, _TICK)
        cursor = self._connection.cursor()
        rows: list[Row] = []
        columns = total = 0
        error: str | None = None
        flags: tuple[str, ...] = ()
        room = limits.megabytes << 20
        try:
            cursor.execute(sql)
            columns = len(cursor.description)
            for row in cursor:
                if total == len(rows) < keep_rows and room >= 0:
                    rows.append(row)
                    room -= sum(len(value) for value in row if isinstance(value, (str, bytes)))
                total += 1
                if meter.spend(_ROW_STEPS):
                    break
        except (sqlite3.Error, sqlite3.Warning) as problem:
            code = getattr(problem, "sqlite_errorcode", None)
            if code is not None and code & 0xFF in _BROKEN_FILE:
                raise DatabaseError(f"{self._path}: {problem}") from problem
            error = self._denied or str(problem)
        except MemoryError:
            error, flags = "the query needs more memory than it may have", ("limit:memory",)
        finally:
            cursor.close()
        if meter.exceeded:
            error, flags = f"the query did not end within {limits.steps:,} steps", ("timeout:steps",)
        return Outcome(rows, columns, total) if error is None else Outcome([], error=error, flags=flags)

    def _authorize(
        self, action: int, first: str | None, second: str | None, _database: str | None, _via: str | None
    ) -> int:
        if action not in _ALLOWED:
            self._denied = self._denied or "only reading is allowed"
            return sqlite3.SQLITE_DENY
        if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in _DENIED_FUNCTIONS:
            self._denied = f"the function {second}() is not allowed"
            return sqlite3.SQLITE_DENY
        return sqlite3.SQLITE_OK


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "replace")
