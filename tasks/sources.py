"""Rows of files and of `datasets` ids.

A source is the name of a file (.jsonl, .json, .parquet; .gz on top of the first two) or ``owner/name:split``
of the Hugging Face hub. A .json file holds a list, or an object a line.
"""

from __future__ import annotations

import codecs
import gzip
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, TypeVar

from creditlib.types import MissingDataError

Row = Mapping[str, Any]
RowT = TypeVar("RowT")

_FORMS = (".jsonl", ".json", ".jsonl.gz", ".json.gz", ".parquet")
_HUB = re.compile(r"[\w.-]+/[\w.-]+:[\w\[\]:%+-]+$")


def read_rows(source: str, data: str | None = None) -> Iterator[tuple[str, Row | None]]:
    """The rows of a file or hub data set, each with its place in it ("line 7", "row 3"); None for what is no
    JSON object in UTF-8.

    Raises:
        MissingDataError: it is not there or cannot be read.
    """
    path = find_source(source, data)
    yield from _numbered(_read_hub(source)) if path is None else _read_file(path)


def find_source(source: str, data: str | None = None) -> Path | None:
    """The file that a source is; None for a data set of the hub.

    Raises:
        MissingDataError: it is neither.
    """
    path = Path(data or ".", source).expanduser()
    if path.is_file() and path.name.endswith(_FORMS):
        return path
    if path.is_file():
        raise MissingDataError(f"{path} is of no form that is read: expected {', '.join(_FORMS)}")
    if names_hub(source):
        return None
    raise MissingDataError(
        f"{path} is not there. A source is a file ({', '.join(_FORMS)}) or the id and split of a data set on "
        "the hub, owner/name:split"
    )


def names_hub(source: str) -> bool:
    """Whether a source that is no file is the id and split of a data set on the hub."""
    return _HUB.match(source) is not None and not source.endswith((".json", ".jsonl"))


def read_object(text: str | bytes) -> Row | None:
    """The JSON object that a text is; None if it is none, or not in UTF-8."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):  # too many brackets for the parser
        return None
    return found if isinstance(found, dict) else None


def _read_file(path: Path) -> Iterator[tuple[str, Row | None]]:
    try:
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            yield from _numbered(pq.read_table(path).to_pylist())
            return
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rb") as file:
            if path.name.removesuffix(".gz").endswith(".json") and _begins_list(file):
                rows = json.load(file)
                yield from _numbered(row if isinstance(row, dict) else None for row in rows)
                return
            for number, line in enumerate(file, start=1):
                if number == 1 and line.strip() in (b"{", b"["):
                    raise ValueError("expected an object a line, or in a .json file a list of objects")
                if line.strip():
                    yield f"line {number}", read_object(line)
    except (OSError, ValueError, EOFError, RecursionError) as error:
        raise MissingDataError(f"{path} cannot be read: {error}") from error


def _begins_list(file: IO[bytes] | gzip.GzipFile) -> bool:
    """Whether a file that has not been read begins with a bracket."""
    beginning = file.read(4096).removeprefix(codecs.BOM_UTF8)
    file.seek(0)
    return beginning.lstrip().startswith(b"[")


def _numbered(rows: Iterable[RowT]) -> Iterator[tuple[str, RowT]]:
    return ((f"row {number}", row) for number, row in enumerate(rows, start=1))


def _read_hub(source: str) -> Iterator[Row]:
    from datasets import load_dataset

    name, _, split = source.partition(":")
    try:
        rows = load_dataset(name, split=split)
    except Exception as error:  # the hub's client raises all sorts
        raise MissingDataError(f"cannot load {name}, split {split}, from the hub: {error}") from error
    yield from rows
