"""A stopped clock for SQLite, so that ``date('now')`` gives the same answer in the gold, the prediction and
next year.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

Value = str | int | float | bytes | None

NOW = "2025-01-01 12:00:00"  # UTC; the moment at which every query runs

_FORMAT_ARGUMENTS = {"date": 0, "time": 0, "datetime": 0, "julianday": 0, "unixepoch": 0, "strftime": 1}
_CONSTANTS = {"current_date": NOW[:10], "current_time": NOW[11:], "current_timestamp": NOW}


def stop_clock(connection: sqlite3.Connection, engine: sqlite3.Connection) -> None:
    """Replace SQLite's date functions on `connection` by ones that take `NOW` for the present.

    `engine` is another connection, with SQLite's own functions, that does the work.
    """
    for name, formats in _FORMAT_ARGUMENTS.items():
        connection.create_function(name, -1, _stopped(engine, name, formats), deterministic=True)
    for name, value in _CONSTANTS.items():
        connection.create_function(name, 0, _constant(value), deterministic=True)


def _constant(value: str) -> Callable[[], str]:
    return lambda: value


def _stopped(engine: sqlite3.Connection, name: str, formats: int) -> Callable[..., Value]:
    def call(*arguments: Value) -> Value:
        values = [
            NOW if isinstance(value, str) and value.strip().lower() == "now" else value for value in arguments
        ]
        if len(values) == formats:
            values.append(NOW)
        (result,) = engine.execute(f"SELECT {name}({', '.join('?' * len(values))})", values).fetchone()
        return result  # type: ignore[no-any-return]

    return call
