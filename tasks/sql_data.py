"""Reads text-to-SQL data in the layouts of Spider (and Syn, Realistic, DK) and BIRD.

What is wrong with a file is said with the file's name and the row's number.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from creditlib.types import MissingDataError
from tasks.sql_schema import Schema, is_text, parse_tables

Layout = Literal["spider", "bird"]

# Keys of a row. Spider-Syn keeps Spider's question beside its own rewording.
_QUESTION: Mapping[str, tuple[str, ...]] = {
    "spider": ("SpiderSynQuestion", "question"),
    "bird": ("question",),
}
_QUERY: Mapping[str, str] = {"spider": "query", "bird": "SQL"}


@dataclass(frozen=True)
class Row:
    """One question with its reference query."""

    db_id: str
    question: str
    sql: str
    evidence: str = ""  # BIRD's hint


def read_rows(path: Path, layout: Layout) -> list[Row]:
    """Read one split.

    Raises:
        MissingDataError: no such file, not JSON, or a row without a database, a question or a query.
    """
    return [_row(item, index, path, layout) for index, item in enumerate(_read_list(path))]


def _row(item: Any, index: int, path: Path, layout: Layout) -> Row:
    if not isinstance(item, Mapping):
        raise MissingDataError(f"{path}, row {index}: expected an object, found {type(item).__name__}")
    question_key = next((key for key in _QUESTION[layout] if key in item), "question")

    def text(key: str, *, needed: bool = True) -> str:
        value = item.get(key) if needed else item.get(key) or ""
        if not is_text(value) or (needed and not value.strip()):
            raise MissingDataError(
                f"{path}, row {index}: expected a text under {key!r}, found {value!r}. "
                f"Mend or remove the row; if the file's layout is not task.layout={layout}, change that."
            )
        return value.strip()

    return Row(text("db_id"), text(question_key), text(_QUERY[layout]), text("evidence", needed=False))


def read_schemas(paths: Iterable[Path]) -> dict[str, Schema]:
    """Read one or more `tables.json`; where two describe a database, the first one counts.

    Raises:
        MissingDataError: no such file, not JSON, or an entry that isn't of the format.
    """
    schemas: dict[str, Schema] = {}
    for path in paths:
        for index, entry in enumerate(_read_list(path)):
            try:
                schema = parse_tables(entry)
            except (KeyError, IndexError, TypeError, ValueError) as error:
                raise MissingDataError(
                    f"{path}, entry {index}: expected a schema in the format of Spider's tables.json, but "
                    f"reading it gave {type(error).__name__}: {error}. Mend the entry or change task.tables."
                ) from error
            schemas.setdefault(schema.db_id, schema)
    return schemas


def find_databases(db_ids: Iterable[str], folders: Sequence[Path]) -> dict[str, Path]:
    """Where each database's file is: the first ``<folder>/<db_id>/<db_id>.sqlite`` that exists.

    Raises:
        MissingDataError: some have none; the message names them.
    """
    found: dict[str, Path] = {}
    missing = []
    for db_id in sorted(set(db_ids)):
        files = [folder / db_id / f"{db_id}.sqlite" for folder in folders]
        path = next((file for file in files if file.is_file()), None)
        if path is None:
            missing.append(db_id)
        else:
            found[db_id] = path
    if missing:
        names = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        raise MissingDataError(
            f"no database for {names}: expected <db_id>/<db_id>.sqlite in {' or '.join(map(str, folders))}. "
            "Put the files there, or change task.databases."
        )
    return found


def spread(size: int, limit: int | None) -> range | list[int]:
    """The indices of all rows, or of `limit` spread evenly over the file, which is sorted by database."""
    if limit is None or limit >= size:
        return range(size)
    return [index * size // limit for index in range(limit)]


def _read_list(path: Path) -> list[Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise MissingDataError(
            f"can't read {path}: {error.strerror}. Set task.data to the folder that holds it, or change the "
            "file's name in task.train, task.evaluation or task.tables."
        ) from error
    except (ValueError, RecursionError) as error:  # JSON or UTF-8; JSON nested without end
        raise MissingDataError(f"{path} is no valid JSON: {error}") from error
    if not isinstance(data, list) or not data:
        raise MissingDataError(
            f"{path}: expected a JSON list with at least one row, found {str(data)[:40]!r}"
        )
    return data
