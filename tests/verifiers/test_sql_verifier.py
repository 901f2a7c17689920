"""The verifier as its users meet it: checks, reasons, spans, flags, and databases that cannot be used."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from creditlib.types import Check, CreditlibError, MissingDataError
from verifiers.sql import Job, Limits, SqlVerifier, check

SCHEMA = """
CREATE TABLE singer (id INTEGER PRIMARY KEY, name TEXT, country TEXT, age INTEGER);
INSERT INTO singer VALUES (1, 'Ana', 'France', 30), (2, 'Bo', 'France', 25), (3, 'Cy', 'Spain', 30);
"""


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_database(tmp_path_factory.mktemp("data") / "singer.sqlite")


def make_database(path: Path) -> str:
    connection = sqlite3.connect(path)
    connection.executescript(SCHEMA)
    connection.close()
    return str(path)


@pytest.fixture(scope="module")
def verifier() -> Iterator[SqlVerifier]:
    with SqlVerifier(workers=1) as verifier:
        yield verifier


def judge(verifier: SqlVerifier, database: str, sql: str, gold: str) -> dict[str, Check]:
    return verifier.check_many([Job(f"<sql>{sql}</sql>", database, gold)])[0]


def test_check(database: str) -> None:
    checks = check("<sql>SELECT count(*) FROM singer</sql>", database=database, gold="SELECT 3")
    assert {name: c.score for name, c in checks.items()} == {"format": 1, "executable": 1, "execution": 1}
    assert checks["executable"].info == "the query runs"
    assert checks["execution"].info == "SELECT 3"
    assert checks["execution"].reason == "the result is the gold's"


def test_modes_and_tags_of_check(database: str) -> None:
    response, gold = "[SQL]SELECT country FROM singer[/SQL]", "SELECT DISTINCT country FROM singer"
    tags = ("[SQL]", "[/SQL]")
    assert check(response, database=database, gold=gold, tags=tags)["execution"].score == 0
    assert check(response, database=database, gold=gold, tags=tags, mode="bird")["execution"].score == 1


def test_semicolons_at_the_end(verifier: SqlVerifier, database: str) -> None:
    checks = judge(verifier, database, "SELECT 3;; -- done", "SELECT 3 ; ;")
    assert (checks["executable"].score, checks["execution"].score) == (1, 1)


def test_the_rewards_are_separate(verifier: SqlVerifier, database: str) -> None:
    """A right query in a wrong format still earns the other rewards; without a query there are none."""
    jobs = [
        Job("Sure! <sql>SELECT 3</sql>", database, "SELECT 3"),
        Job("<sql>SELECT 4</sql>", database, "SELECT 3"),
        Job("<sql>SELECT x</sql>", database, "SELECT 3"),
        Job("SELECT 3", database, "SELECT 3"),
        Job("", database, "SELECT 3"),
    ]
    scores = [tuple(c.score for c in checks.values()) for checks in verifier.check_many(jobs)]
    assert scores == [(0, 1, 1), (1, 1, 0), (1, 0, 0), (0, 0, 0), (0, 0, 0)]
    no_query = verifier.check_many(jobs[3:4])[0]
    assert no_query["executable"].reason == "no SQL found: there is no <sql>"
    assert no_query["execution"].spans == ()


@pytest.mark.parametrize(
    ("sql", "named", "part"),
    [
        ("SELECT nme FROM singer", ["nme"], "identifier"),
        ("SELECT s.nme, s.NME FROM singer s", ["nme", "NME"], "identifier"),
        ("SELECT name FROM singers", ["singers"], "identifier"),
        ("SELECT foo(name) FROM singer", ["foo"], "identifier"),
        ('SELECT "nme" FROM singer', ['"nme"'], "identifier"),
        ("SELECT name FROM singer a JOIN singer b", ["name"], "identifier"),
        ("SELECT name FORM singer WHERE", ["singer"], "syntax"),
    ],
)
def test_spans_mark_what_the_engine_complains_about(
    verifier: SqlVerifier, database: str, sql: str, named: list[str], part: str
) -> None:
    response = f"<think>hm</think> <sql> {sql}</sql>"
    checks = verifier.check_many([Job(response, database, "SELECT 3")])[0]
    query, *finer = checks["executable"].spans
    assert response[query.start : query.end] == sql and query.part == "query"
    assert [response[span.start : span.end] for span in finer] == named
    assert {span.part for span in finer} == {part}
    assert checks["executable"].info == checks["executable"].reason
    assert checks["execution"].spans == (query,)


@pytest.mark.parametrize(
    ("gold", "flags"),
    [
        ("SELECT name FROM singer", ()),
        ("SELECT name FROM singer WHERE age > 99", ("data:empty_gold",)),
        ("SELECT country FROM singer GROUP BY country ORDER BY count(*) DESC LIMIT 1", ()),
        ("SELECT age FROM singer GROUP BY age ORDER BY count(*) DESC LIMIT 1", ()),
        ("SELECT name FROM singer ORDER BY age DESC LIMIT 1", ("data:gold_tie",)),
        ("SELECT age FROM singer ORDER BY age DESC LIMIT 1", ()),  # a tie between equal rows decides nothing
        ("SELECT name FROM singer LIMIT 2", ("data:gold_tie",)),
        (
            "SELECT age FROM singer WHERE name = (SELECT name FROM singer WHERE id < 3 LIMIT 1)",
            ("data:gold_tie",),
        ),
        ("SELECT name FROM singer ORDER BY country LIMIT 2", ("data:order_tie",)),
        ("SELECT name FROM singer ORDER BY country", ("data:order_tie",)),
        ("SELECT name FROM singer ORDER BY name;", ()),
        ('SELECT name FROM singer WHERE country = "France" ORDER BY name', ()),
        ('SELECT "yes", id FROM singer', ("data:gold_quotes",)),
        ('SELECT id FROM singer WHERE "abc" = "abd"', ("data:empty_gold", "data:gold_quotes")),
        ("SELECT nme FROM singer", ("data:gold_fails",)),
        ("SELECT random()", ("data:gold_fails",)),
        ("", ("data:gold_fails",)),
    ],
)
def test_flags_of_golds(verifier: SqlVerifier, database: str, gold: str, flags: tuple[str, ...]) -> None:
    assert verifier.gold_flags([(database, gold)]) == [flags]


def test_flags_reach_the_check(verifier: SqlVerifier, database: str) -> None:
    checks = judge(
        verifier, database, "SELECT name FROM singer WHERE 0", "SELECT id FROM singer WHERE age > 99"
    )
    assert checks["execution"].score == 1
    assert checks["execution"].flags == ("data:empty_gold",)
    assert checks["execution"].reason == "both results are empty"


@pytest.mark.parametrize("response", ["<sql>SELECT 3</sql>", "no query"])
def test_a_gold_that_fails_is_not_the_policys_fault(
    verifier: SqlVerifier, database: str, response: str
) -> None:
    checks = verifier.check_many([Job(response, database, "SELECT nme FROM singer")])[0]
    assert math.isnan(checks["execution"].score)
    assert checks["execution"].flags == ("data:gold_fails",)
    assert "no such column: nme" in checks["execution"].reason
    assert checks["executable"].score == ("<sql>" in response)


def test_golds_have_their_own_limits(database: str) -> None:
    slow = "SELECT count(*) FROM singer a, singer b, singer c, singer d, singer e, singer f"
    few = Limits(steps=2_000)
    with SqlVerifier(workers=1, limits=few) as verifier:
        checks = judge(verifier, database, slow, slow)
        assert checks["executable"].flags == ("timeout:steps",)
        assert checks["execution"].flags == ("timeout:steps",) and checks["execution"].score == 0
    with SqlVerifier(workers=1, gold_limits=few) as verifier:
        checks = judge(verifier, database, slow, slow)
        assert checks["executable"].score == 1
        assert checks["execution"].flags == ("data:gold_timeout",) and math.isnan(checks["execution"].score)
    with SqlVerifier(workers=1, gold_limits=Limits(rows=2)) as verifier:
        assert verifier.gold_flags([(database, "SELECT id FROM singer")]) == [("data:gold_rows",)]


def test_a_gold_that_kills_its_worker_is_a_data_problem(database: str) -> None:
    """Its steps are slow in themselves, so it is the CPU limit that ends it."""
    slow = (
        "WITH RECURSIVE n(i, s) AS (SELECT 1, 'ab' UNION ALL SELECT i + 1, s || s FROM n LIMIT 17), "
        "t AS (SELECT s FROM n ORDER BY i DESC LIMIT 1) SELECT "
        + " + ".join(f"instr(t.s, substr(t.s, 1, 60000) || 'x{i}')" for i in range(30))
        + " FROM t"
    )
    with SqlVerifier(workers=1, gold_limits=Limits(seconds=0.05)) as verifier:
        checks = judge(verifier, database, "SELECT 1", slow)
    assert checks["execution"].flags == ("data:gold_timeout",) and math.isnan(checks["execution"].score)
    assert checks["executable"].score == 1


def test_distinct_may_be_ignored(database: str) -> None:
    with SqlVerifier(workers=1, keep_distinct=False) as verifier:
        gold = "SELECT DISTINCT country FROM singer"
        assert judge(verifier, database, "SELECT country FROM singer", gold)["execution"].score == 1


def test_only_the_golds_outermost_order_counts(verifier: SqlVerifier, database: str) -> None:
    """The official script compares in order if the gold's text says 'order by' anywhere."""
    gold = "SELECT name FROM singer WHERE age >= (SELECT age FROM singer ORDER BY age LIMIT 1)"
    assert judge(verifier, database, "SELECT name FROM singer ORDER BY id DESC", gold)["execution"].score == 1
    gold = "SELECT name FROM singer ORDER BY id"
    checks = judge(verifier, database, "SELECT name FROM singer ORDER BY id DESC", gold)
    assert checks["execution"].score == 0 and "order" in checks["execution"].reason


def test_equal_jobs_get_equal_checks_at_their_own_places(verifier: SqlVerifier, database: str) -> None:
    sql = "<sql>SELECT 3</sql>"
    first, second = verifier.check_many(
        [Job(sql, database, "SELECT 3"), Job("<think/>" + sql, database, "SELECT 3")]
    )
    assert first["execution"].score == second["execution"].score == 1
    assert second["execution"].spans[0].start == first["execution"].spans[0].start + len("<think/>")


def test_no_jobs_no_workers(database: str) -> None:
    with SqlVerifier() as verifier:
        assert verifier.check_many([]) == []
        assert verifier._pool.pids == ()


# --------------------------------------------------------------------------- databases


def test_a_missing_database_is_an_error(verifier: SqlVerifier, tmp_path: Path) -> None:
    missing = str(tmp_path / "none.sqlite")
    with pytest.raises(MissingDataError, match="check the data folder"):
        check("<sql>SELECT 1</sql>", database=missing, gold="SELECT 1")
    with pytest.raises(MissingDataError, match="check the data folder"):
        verifier.check_many([Job("no query", missing, "SELECT 1")])
    assert os.listdir(tmp_path) == []


def assert_unusable(checks: dict[str, Check]) -> None:
    assert checks["format"].score == 1
    for name in ("executable", "execution"):
        assert math.isnan(checks[name].score) and checks[name].flags == ("data:database",), checks[name]


def test_a_corrupt_database_is_a_data_problem(verifier: SqlVerifier, database: str, tmp_path: Path) -> None:
    noise = tmp_path / "noise.sqlite"
    noise.write_bytes(b"this is no database" * 500)
    assert_unusable(judge(verifier, str(noise), "SELECT 1", "SELECT 1"))
    torn = tmp_path / "torn.sqlite"
    data = bytearray(Path(database).read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)  # the schema is intact, the table is not
    torn.write_bytes(data)
    assert_unusable(judge(verifier, str(torn), "SELECT name FROM singer", "SELECT name FROM singer"))
    folder = tmp_path / "folder.sqlite"
    folder.mkdir()
    assert_unusable(judge(verifier, str(folder), "SELECT 1", "SELECT 1"))
    empty = tmp_path / "empty.sqlite"
    empty.touch()
    checks = judge(verifier, str(empty), "SELECT name FROM singer", "SELECT name FROM singer")
    assert checks["execution"].flags == ("data:gold_fails",)
    assert sorted(os.listdir(tmp_path)) == ["empty.sqlite", "folder.sqlite", "noise.sqlite", "torn.sqlite"]


def test_a_locked_database_can_be_read(verifier: SqlVerifier, tmp_path: Path) -> None:
    path = make_database(tmp_path / "locked.sqlite")
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("BEGIN EXCLUSIVE")
    assert judge(verifier, path, "SELECT count(*) FROM singer", "SELECT 3")["execution"].score == 1
    writer.close()


def test_changes_outside_the_file_are_a_data_problem(tmp_path: Path) -> None:
    path = make_database(tmp_path / "wal.sqlite")
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("DELETE FROM singer")
    with SqlVerifier(workers=1) as verifier:
        checks = judge(verifier, path, "SELECT count(*) FROM singer", "SELECT 0")
    assert_unusable(checks)
    assert "wal_checkpoint" in checks["executable"].reason
    writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    writer.close()  # the file stays in WAL mode, without a log beside it
    with SqlVerifier(workers=1) as verifier:
        assert judge(verifier, path, "SELECT count(*) FROM singer", "SELECT 0")["execution"].score == 1
    assert os.listdir(tmp_path) == ["wal.sqlite"]


def test_a_changed_database_is_read_again(verifier: SqlVerifier, tmp_path: Path) -> None:
    path = make_database(tmp_path / "changing.sqlite")
    count = "SELECT count(*) FROM singer"
    assert judge(verifier, path, "SELECT 3", count)["execution"].score == 1
    with sqlite3.connect(path) as writer:
        writer.execute("DELETE FROM singer WHERE id = 1")
    writer.close()
    assert judge(verifier, path, "SELECT 2", count)["execution"].score == 1
    assert judge(verifier, path, count, "SELECT 2")["execution"].score == 1


def test_odd_paths_and_many_databases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More databases than connections are kept, relative paths, names that mean something in a URI."""
    folder = tmp_path / "a b?c#d%20"
    folder.mkdir()
    names = [f"db {i}?mode=rw.sqlite" for i in range(40)]
    for name in names:
        make_database(folder / name)
    monkeypatch.chdir(folder)
    with SqlVerifier(workers=1) as verifier:
        for _ in range(2):
            results = verifier.check_many(
                [Job("<sql>SELECT max(id) FROM singer</sql>", n, "SELECT 3") for n in names]
            )
            assert {checks["execution"].score for checks in results} == {1}


# --------------------------------------------------------------------------- processes


def test_a_worker_killed_in_the_middle_changes_no_verdict(database: str) -> None:
    slow = "SELECT count(*) FROM " + ", ".join(f"singer s{i}" for i in range(13))
    jobs = [Job(f"<sql>{slow} WHERE s0.id <> {i}</sql>", database, "SELECT 3") for i in range(8)]
    with SqlVerifier(workers=2, limits=Limits(steps=10_000_000, seconds=20)) as verifier:
        expected = verifier.check_many(jobs)
        for pid in verifier._pool.pids:
            threading.Timer(0.1, os.kill, (pid, signal.SIGKILL)).start()
        assert verifier.check_many(jobs) == expected
        time.sleep(0.2)


def test_importing_the_verifier_leaves_torch_out() -> None:
    code = "import sys, verifiers.sql, verifiers.pool; sys.exit('torch' in sys.modules)"
    root = Path(__file__).parents[2]
    assert subprocess.run([sys.executable, "-c", code], cwd=root).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mode": "spidr"}, "expected one of spider, bird"),
        ({"tags": ("<sql>", "<sql>")}, "two different texts"),
        ({"tags": ("", "</sql>")}, "two different texts"),
        ({"workers": 0}, "workers=0"),
    ],
)
def test_wrong_settings(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(CreditlibError, match=message):
        SqlVerifier(**arguments)  # type: ignore[arg-type]
    with pytest.raises(CreditlibError, match="rows must be positive"):
        Limits(rows=0)


@pytest.mark.parametrize("gold", ['SELECT "yes" FROM singer', 'SELECT id FROM singer WHERE "abc" = "abc"'])
def test_a_prediction_may_quote_as_its_gold_does(verifier: SqlVerifier, database: str, gold: str) -> None:
    assert {name: c.score for name, c in judge(verifier, database, gold, gold).items()} == {
        "format": 1,
        "executable": 1,
        "execution": 1,
    }
    # With any other gold an unknown name in quotes stays an error.
    assert judge(verifier, database, gold, "SELECT 3")["executable"].score == 0


def test_a_gold_larger_than_a_prediction_may_be_can_be_matched(tmp_path: Path) -> None:
    database = make_database(tmp_path / "large.sqlite")
    with contextlib.closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE TABLE text (id INTEGER, body TEXT)")
        rows = [(n, chr(65 + n) * 100_000) for n in range(24)]
        connection.executemany("INSERT INTO text VALUES (?, ?)", rows)
        connection.commit()
    gold = "SELECT body FROM text"
    with SqlVerifier(workers=1, limits=Limits(megabytes=1, rows=2)) as verifier:
        assert judge(verifier, database, gold, gold)["execution"].score == 1
        other = judge(verifier, database, gold, "SELECT 3")["execution"]
        assert other.score == 0 and "too many to compare" in other.reason
