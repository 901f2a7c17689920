"""Queries that mean or cause harm: each has its verdict and leaves no file and no process."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from creditlib.types import Check
from verifiers.sql import Job, Limits, SqlVerifier, check

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT {} FROM n"
LONG_TEXT = (
    "WITH RECURSIVE n(i, s) AS (SELECT 1, 'ab' UNION ALL SELECT i + 1, s || s FROM n LIMIT 17), "
    "t AS (SELECT s FROM n ORDER BY i DESC LIMIT 1) "
)
SLOW_STEPS = LONG_TEXT + "SELECT count(instr(t.s, substr(t.s, 1, 60000) || 'x' || ID)) FROM t, city"
SLOW_LIKE = (
    LONG_TEXT + "SELECT count(*) FROM t, city WHERE t.s LIKE '%' || substr(t.s, 1, 900) || 'x' || ID || '%'"
)
SLOW_REPLACE = LONG_TEXT + "SELECT sum(length(replace(t.s, substr(t.s, 1, 60000) || ID, 'x'))) FROM t, city"

# name: (query, does it count as executable, part of the reason or of a flag)
QUERIES: dict[str, tuple[str, int, str]] = {
    "second statement": ("SELECT 1; DROP TABLE city", 0, "more than one statement"),
    "comment behind": ("SELECT 1; -- done", 1, "runs"),
    "comment only": ("-- SELECT 1", 0, "no statement"),
    "block comment only": ("/* SELECT 1 */", 0, "no statement"),
    "semicolon": (";", 0, "only SELECT"),
    "drop": ("DROP TABLE city", 0, "only SELECT"),
    "delete": ("DELETE FROM city", 0, "only SELECT"),
    "update": ("UPDATE city SET Name = 'x' RETURNING Name", 0, "only SELECT"),
    "alter": ("ALTER TABLE city ADD COLUMN x", 0, "only SELECT"),
    "create": ("CREATE TABLE x (y)", 0, "only SELECT"),
    "insert behind with": (
        "WITH x AS (SELECT 1) INSERT INTO city SELECT 1, 'a', 'b', 2 FROM x",
        0,
        "only reading",
    ),
    "delete behind with": ("WITH x AS (SELECT 1) DELETE FROM city", 0, "only reading"),
    "replace": ("REPLACE INTO city VALUES (1, 'a', 'b', 2)", 0, "only SELECT"),
    "vacuum into": ("VACUUM INTO 'escape.db'", 0, "only SELECT"),
    "attach": ("ATTACH 'escape.db' AS e", 0, "only SELECT"),
    "begin": ("BEGIN EXCLUSIVE", 0, "only SELECT"),
    "pragma": ("PRAGMA user_version = 9", 0, "only SELECT"),
    "pragma table": ("SELECT * FROM pragma_table_info('city')", 0, "only reading"),
    "pragma count": ("SELECT count(*) FROM pragma_function_list", 0, "only reading"),
    "engine internals": ("SELECT * FROM dbstat", 0, "only reading"),
    "explain": ("EXPLAIN SELECT 1", 0, "only SELECT"),
    "load extension": ("SELECT load_extension('escape.so')", 0, "not allowed"),
    "write file": ("SELECT writefile('escape.db', 'x')", 0, "no such function"),
    "endless count": (ENDLESS.format("count(*)"), 0, "timeout:steps"),
    "endless rows": (ENDLESS.format("i"), 0, "timeout:steps"),
    "endless sort": (ENDLESS.format("i") + " ORDER BY i DESC", 0, "timeout:"),
    "cartesian count": ("SELECT count(*) FROM city a, city b, city c, city d", 0, "timeout:steps"),
    "cartesian rows": ("SELECT a.ID FROM city a, city b LIMIT 30000", 1, "runs"),
    "random blob": ("SELECT length(randomblob(1000000000))", 0, "not allowed"),
    "random blob in hex": ("SELECT hex(randomblob(400000000))", 0, "not allowed"),
    "zero blob": ("SELECT zeroblob(1000000000)", 0, "not allowed"),
    "long printf": ("SELECT printf('%*d', 900000000, 1)", 1, "runs"),  # SQLite gives NULL
    "doubling text": (
        ENDLESS.replace("SELECT 1 ", "SELECT 'ab' ").replace("i + 1", "i || i").format("i"),
        0,
        "",
    ),
    "wide rows": ("SELECT " + ", ".join(["*"] * 300) + " FROM city", 0, "too many columns"),
    "slow steps": (SLOW_STEPS, 0, "timeout:cpu"),
    "slow like": (SLOW_LIKE, 0, "timeout:cpu"),
    "slow replace": (SLOW_REPLACE, 0, "timeout:cpu"),
    "parentheses": ("SELECT " + "(" * 5000 + "1" + ")" * 5000, 0, "stack overflow"),
    "nots": ("SELECT " + "NOT " * 5000 + "1", 0, ""),
    "subqueries": ("SELECT * FROM (" * 500 + "SELECT 1" + ")" * 500, 0, ""),
    "sum": ("SELECT 1" + " + 1" * 20000, 0, ""),
    "unions": ("SELECT 1" + " UNION SELECT 1" * 600, 0, "too many terms"),
    "too long": ("SELECT " + " " * 200_000 + "1", 0, "longer than"),
    "nul": ("SELECT 'a\0b'", 0, "NUL"),
    "surrogate": ("SELECT '\ud800'", 0, "surrogate"),
    "infinity": ("SELECT 1e999", 1, "runs"),
    "inf minus inf": ("SELECT 9e999 - 9e999", 1, "runs"),
    "integer to float": ("SELECT 9223372036854775807 + 1", 1, "runs"),
    "sum overflow": (
        "SELECT sum(x) FROM (SELECT 9223372036854775807 AS x UNION ALL SELECT 1)",
        0,
        "overflow",
    ),
    "division by zero": ("SELECT 1 / 0", 1, "runs"),
    "open comment": ("SELECT 1 /* x", 1, "runs"),
    "open string": ("SELECT 'x", 0, "unrecognized token"),
    "random": ("SELECT random()", 0, "not allowed"),
    "order by random": ("SELECT ID FROM city ORDER BY random()", 0, "not allowed"),
    "today": ("SELECT date('now'), CURRENT_TIMESTAMP", 1, "runs"),
    "invented column": ('SELECT "nosuchcol" FROM city', 0, "no such column: nosuchcol"),
    "text in double quotes": ('SELECT Name FROM city WHERE Country = "C1"', 1, "runs"),
    "nothing": ("SELECT 1 WHERE 0", 1, "runs"),
    "values": ("VALUES (1), (2)", 1, "runs"),
    "comment before": ("/* hm */ -- and\n SELECT 1", 1, "runs"),
    "schema": ("SELECT name FROM sqlite_master", 1, "runs"),
    "not sql": ("How many cities are there?", 0, "only SELECT"),
    "unicode": ("SELECT '漢字 🙂'", 1, "runs"),
    "bytes": ("SELECT x'ff00'", 1, "runs"),
    "broken text": ("SELECT CAST(x'ff' AS TEXT)", 1, "runs"),
    "placeholder": ("SELECT ?", 0, "binding"),
}


def make_city(path: Path, rows: int = 400) -> str:
    with sqlite3.connect(path) as connection:
        connection.execute(
            "CREATE TABLE city (ID INTEGER PRIMARY KEY, Name TEXT, Country TEXT, Population INTEGER)"
        )
        connection.executemany(
            "INSERT INTO city VALUES (?, ?, ?, ?)",
            [(i, f"N{i}", f"C{i % 7}", i * 37 % 1000) for i in range(rows)],
        )
    connection.close()
    return str(path)


@pytest.fixture(scope="module")
def city(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_city(tmp_path_factory.mktemp("database") / "city.sqlite")


@pytest.fixture(scope="module")
def verifier() -> Iterator[SqlVerifier]:
    with SqlVerifier(workers=1) as verifier:
        yield verifier


def judge(verifier: SqlVerifier, city: str, sql: str, gold: str = "SELECT 1") -> dict[str, Check]:
    return verifier.check_many([Job(f"<sql>{sql}</sql>", city, gold)])[0]


@pytest.mark.parametrize("name", QUERIES)
def test_verdict(
    name: str, verifier: SqlVerifier, city: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql, executable, why = QUERIES[name]
    before = hashlib.sha256(Path(city).read_bytes()).digest()
    monkeypatch.chdir(tmp_path)
    checks = judge(verifier, city, sql)
    assert checks["executable"].score == executable, checks
    assert why in " ".join((checks["executable"].reason, *checks["executable"].flags))
    assert checks["format"].score == 1
    assert checks["execution"].reason
    assert hashlib.sha256(Path(city).read_bytes()).digest() == before
    assert os.listdir(tmp_path) == [] and os.listdir(Path(city).parent) == ["city.sqlite"]


def test_files_escape_nowhere(city: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker started in an empty folder leaves it empty."""
    monkeypatch.chdir(tmp_path)
    attacks = [
        QUERIES[name][0] for name in ("vacuum into", "attach", "write file", "load extension", "create")
    ]
    with SqlVerifier(workers=1) as verifier:
        verifier.check_many([Job(f"<sql>{sql}</sql>", city, "SELECT 1") for sql in attacks])
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("sql", "gold", "execution"),
    [
        ("SELECT 1e999", "SELECT 2e999", 1),
        ("SELECT 9e999 - 9e999", "SELECT NULL", 1),
        ("SELECT 1 / 0", "SELECT 0", 0),
        ("SELECT 1 WHERE 0", "SELECT Name FROM city WHERE 0", 1),
        ("SELECT Country FROM city", "SELECT DISTINCT Country FROM city", 0),
        ("SELECT avg(ID) FROM city", "SELECT sum(ID) * 1.0 / count(*) FROM city", 1),
        ("SELECT date('now')", "SELECT substr(CURRENT_TIMESTAMP, 1, 10)", 1),
        ("SELECT strftime('%Y', 'now'), time('now')", "SELECT strftime('%Y'), CURRENT_TIME", 1),
        ("SELECT unixepoch() - unixepoch('now', '-1 day')", "SELECT 86400", 1),
        ("SELECT date('2020-02-28', '+1 day')", "SELECT '2020-02-29'", 1),
        ("SELECT date()", "SELECT '2025-01-01'", 1),
    ],
)
def test_execution(verifier: SqlVerifier, city: str, sql: str, gold: str, execution: int) -> None:
    assert judge(verifier, city, sql, gold)["execution"].score == execution


def test_too_many_rows_to_compare(verifier: SqlVerifier, city: str) -> None:
    checks = judge(verifier, city, "SELECT a.ID FROM city a, city b LIMIT 30000")
    assert checks["execution"].score == 0
    assert checks["execution"].flags == ("result:rows",)


def test_wide_results_are_bounded(city: str) -> None:
    """Rows beyond the memory budget are counted, not kept."""
    sql = LONG_TEXT + "SELECT " + ", ".join(["t.s"] * 50) + " FROM t, city"
    with SqlVerifier(workers=1, limits=Limits(seconds=5)) as verifier:
        checks = judge(verifier, city, sql)
    assert checks["execution"].score == 0
    assert checks["execution"].flags in [("result:rows",), ("timeout:cpu",), ("limit:memory",)]


def test_the_step_limit_is_deterministic(city: str) -> None:
    """The same number of steps ends a query, whatever ran before it and however busy the machine is."""
    sql = "SELECT count(*) FROM city a, city b WHERE a.ID < {}"

    def largest(verifier: SqlVerifier) -> int:
        jobs = [Job(f"<sql>{sql.format(i)}</sql>", city, "SELECT 1") for i in range(0, 400, 5)]
        scores = [checks["executable"].score for checks in verifier.check_many(jobs)]
        assert scores == sorted(scores, reverse=True)
        return sum(score == 1 for score in scores)

    found = set()
    for workers in (1, 2):
        with SqlVerifier(workers=workers, limits=Limits(steps=200_000, seconds=30)) as verifier:
            found |= {largest(verifier), largest(verifier)}
    assert len(found) == 1 and 0 < found.pop() < 80


def test_check_keeps_a_second_within_two_and_leaves_no_process(city: str) -> None:
    before = children()
    for sql in (SLOW_STEPS, ENDLESS.format("count(*)")):
        busy, start = cpu_seconds(), time.monotonic()
        checks = check(f"<sql>{sql}</sql>", database=city, gold="SELECT 1")
        # On an idle machine the clock shows what the CPU does; on a busy one only CPU time can be promised.
        assert min(cpu_seconds() - busy, time.monotonic() - start) < 2
        assert checks["executable"].score == checks["execution"].score == 0
    assert children() == before


def cpu_seconds() -> float:
    """CPU time of this process and of the children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def children() -> set[str]:
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


WORDS = (
    "SELECT FROM WHERE city Name ID count( ) * , ( = 1 'x' \" ' ; -- /* */ UNION ORDER BY LIMIT WITH AS JOIN",
    "<sql> </sql> <think> </think> ``` GROUP HAVING DISTINCT é 1e999 NULL CASE WHEN x'ff' ` [ || OVER",
)
FRAGMENTS = st.lists(
    st.one_of(st.sampled_from([*" ".join(WORDS).split(), "\0", "\ud800", "\n"]), st.text(max_size=4)),
    max_size=15,
).map(" ".join)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(bodies=st.lists(FRAGMENTS, min_size=1, max_size=20))
def test_garbage_has_verdicts(verifier: SqlVerifier, city: str, bodies: list[str]) -> None:
    jobs = [Job(text, city, "SELECT 1") for body in bodies for text in (body, f"<sql>SELECT {body}</sql>")]
    for job, checks in zip(jobs, verifier.check_many(jobs), strict=True):
        assert set(checks) == {"format", "executable", "execution"}
        for result in checks.values():
            assert result.score in (0, 1) and result.reason
            assert "worker:died" not in result.flags
            assert all(0 <= span.start < span.end <= len(job.response) for span in result.spans)
        assert checks["execution"].score <= checks["executable"].score
