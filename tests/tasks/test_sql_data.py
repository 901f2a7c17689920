"""Reading the files of Spider and BIRD, and what is said where they are wrong."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from creditlib.types import MissingDataError
from tasks.sql_data import Row, find_databases, read_rows, read_schemas, spread

GOOD = {"db_id": "music", "question": "how many?", "query": "SELECT 1"}


def _write(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_both_layouts(tmp_path: Path) -> None:
    spider = _write(tmp_path / "a.json", [GOOD, {**GOOD, "SpiderSynQuestion": "what count?"}])
    assert [row.question for row in read_rows(spider, "spider")] == ["how many?", "what count?"]
    bird = _write(
        tmp_path / "b.json", [{"db_id": "d", "question": "q", "SQL": " SELECT 2 ", "evidence": "two"}]
    )
    assert read_rows(bird, "bird") == [Row("d", "q", "SELECT 2", "two")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "no valid JSON"),
        ("[]", "at least one row"),
        ('{"a": 1}', "expected a JSON list"),
        ([GOOD, "row"], "row 1: expected an object, found str"),
        (
            [GOOD, {**GOOD, "query": ""}],
            r"row 1: expected a text under 'query', found ''.*task\.layout=spider",
        ),
        (
            [{"db_id": "d", "question": "q", "SQL": "SELECT 1"}],
            "row 0: expected a text under 'query', found None",
        ),
        ([{**GOOD, "db_id": 3}], "row 0: expected a text under 'db_id', found 3"),
        ([{"db_id": "d", "query": "SELECT 1"}], "row 0: expected a text under 'question'"),
        ([{**GOOD, "question": "\ud800"}], "row 0: expected a text under 'question', found '.ud800'"),
        ([{**GOOD, "evidence": ["a"]}], r"row 0: expected a text under 'evidence', found \['a'\]"),
        ("[" * 100_000 + "]" * 100_000, "no valid JSON"),
    ],
)
def test_a_bad_file_is_named_with_its_row(tmp_path: Path, content: Any, message: str) -> None:
    path = _write(tmp_path / "train.json", content)
    with pytest.raises(MissingDataError, match=message) as caught:
        read_rows(path, "spider")
    assert str(path) in str(caught.value)


def test_a_missing_file_and_one_that_is_no_text(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match=r"nowhere\.json: No such file.*task\.train"):
        read_rows(tmp_path / "nowhere.json", "spider")
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(MissingDataError, match="no valid JSON"):
        read_rows(tmp_path / "bytes.json", "spider")


def test_a_bad_schema_entry_is_named(tmp_path: Path) -> None:
    path = _write(tmp_path / "tables.json", [{"db_id": "d"}])
    with pytest.raises(MissingDataError, match=r"tables\.json, entry 0:.*KeyError"):
        read_schemas([path])


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"db_id": ["d"]}, r"\['d'\]"),
        ({"table_names_original": [7]}, "7"),
        ({"column_names_original": [[-1, "*"], [0, None]]}, "None"),
        ({"column_types": ["text", None]}, "None"),
        ({"column_names_original": [[-1, "*"], [0, "\ud800"]]}, "'.ud800'"),
    ],
)
def test_a_schema_entry_is_made_of_texts(tmp_path: Path, change: dict[str, Any], found: str) -> None:
    good = {
        "db_id": "d",
        "table_names_original": ["t"],
        "column_names_original": [[-1, "*"], [0, "a"]],
        "column_types": ["text", "text"],
        "primary_keys": [],
        "foreign_keys": [],
    }
    assert set(read_schemas([_write(tmp_path / "tables.json", [good])])) == {"d"}
    path = _write(tmp_path / "tables.json", [good, {**good, **change}])
    with pytest.raises(MissingDataError, match=rf"tables\.json, entry 1:.*to be texts, found {found}"):
        read_schemas([path])


def test_missing_databases_are_listed_at_once(tmp_path: Path) -> None:
    (tmp_path / "one" / "a").mkdir(parents=True)
    (tmp_path / "two" / "b").mkdir(parents=True)
    (tmp_path / "one" / "a" / "a.sqlite").touch()
    (tmp_path / "two" / "b" / "b.sqlite").touch()
    folders = [tmp_path / "one", tmp_path / "two"]
    assert set(find_databases(["a", "b", "a"], folders)) == {"a", "b"}
    with pytest.raises(MissingDataError, match=r"no database for c, d: .*task\.databases"):
        find_databases(["a", "d", "c"], folders)
    with pytest.raises(MissingDataError, match="and 2 more"):
        find_databases("cdefghi", folders)


def test_a_limit_spreads_over_the_file() -> None:
    assert list(spread(10, None)) == list(spread(10, 99)) == list(range(10))
    assert list(spread(10, 4)) == [0, 2, 5, 7]


DATA = os.environ.get("CREDITLIB_DATA")


@pytest.mark.skipif(not DATA, reason="CREDITLIB_DATA is not set")
def test_bird_mini_dev_is_read() -> None:
    rows = read_rows(Path(str(DATA)) / "text2sql" / "bird_minidev" / "bird_mini_dev_sqlite.json", "bird")
    assert len(rows) == 500
    assert all(row.sql.upper().startswith(("SELECT", "WITH")) for row in rows)
    assert sum(bool(row.evidence) for row in rows) > 400
