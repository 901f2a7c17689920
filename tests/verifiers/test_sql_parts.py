"""Parts of a response, and where a query differs from the gold."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.text2sql import Text2SQL
from verifiers.sql.parts import difference, parts

TAGS = ("<sql>", "</sql>")
LETTERS = {
    "t": "tag",
    "k": "keyword",
    "T": "table",
    "c": "column",
    "v": "value",
    "o": "operator",
    ".": "other",
}


def labels(query: str, tables: tuple[str, ...] = (), columns: tuple[str, ...] = ()) -> str:
    """A letter of `LETTERS` for each token of a query."""
    letter = {part: letter for letter, part in LETTERS.items()}
    found = parts(f"<sql>{query}</sql>", TAGS, tables, columns)
    assert [found[0].part, found[-1].part] == ["tag", "tag"]
    return "".join(letter[span.part] for span in found[1:-1])


def written(text: str, tags: tuple[str, str] = TAGS) -> list[tuple[str, str]]:
    return [(text[span.start : span.end], span.part) for span in parts(text, tags)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT name FROM singer", "kckT"),
        ("select count(*) , max ( age ) from singer", "kk.c..k.c.kT"),
        ("SELECT T1.name, T2.* FROM a AS T1 JOIN b T2 ON T1.id == T2.id", "kT.c.T.ckTkTkTTkT.coT.c"),
        ("SELECT a FROM x, y z WHERE b >= 30 AND c != -1.5", "kckT.TTkcovocoov"),
        ("SELECT a*b + c || 'x' FROM t", "kcococovkT"),
        ("SELECT a FROM t WHERE b NOT IN (1, 'x') OR c IS NULL", "kckTkcoo.v.v.ocov"),
        ("SELECT a FROM t WHERE b LIKE '%x%' AND c BETWEEN 1 AND 2", "kckTkcovocovov"),
        ("SELECT a FROM t WHERE b = (SELECT max(b) FROM u)", "kckTkco.kk.c.kT."),
        ("SELECT a FROM (SELECT b FROM t) x, (u JOIN v USING (k)) LIMIT 3", "kck.kckT.T.." + "TkTk.c..kv"),
        ("SELECT avg(a) AS m FROM t GROUP BY b HAVING m > 1 ORDER BY a DESC", "kk.c.kckTkkckcovkkck"),
        ("SELECT a FROM t UNION SELECT b FROM u EXCEPT SELECT c FROM v", "kckTkkckTkkckT"),
        ("WITH q AS (SELECT a FROM t), r(b) AS (SELECT 1) SELECT b FROM q", "kTk.kckT..T.c.k.kv.kckT"),
        ("SELECT CAST(a AS real), CASE WHEN b THEN 1 ELSE 2 END FROM t", "kk.ckk..kkckvkvkkT"),
        ("INSERT INTO t (a, b) VALUES (1, 'x')", "kkT.c.c.k.v.v."),
        ("UPDATE t SET a = 1 WHERE b = 2", "kTkcovkcov"),
        ("SELECT `order`, [a b] FROM `my table`", "kc.ckT"),
        ("SELECT T1.order, T1.end FROM t", "kT.c.T.ckT"),
        ("SELECT T1.join, a FROM t", "kT.c.ckT"),
        ("SELECT 歌手 FROM 表", "kckT"),
        ("SELECT a -- FROM t", "kc."),
        ("SELECT a /* b */ FROM t;", "kc.kT."),
        ("SELECT a FROM telefone", "kckT"),
        ("''", "v"),
        (")) ( ) 'open", "....v"),
    ],
)
def test_what_stands_where(query: str, expected: str) -> None:
    assert labels(query) == expected


def test_text_in_double_quotes() -> None:
    """Without a schema it depends on where it stands; with one, what is no name is a string."""
    query = 'SELECT "a" FROM "t" WHERE b = "France" AND c IN ("x", "y") AND "u"."d" LIKE "z"'
    assert labels(query) == "kckTkcovoco.v.v.oT.cov"
    assert labels('SELECT "France" FROM t', columns=("name",)) == "kvkT"
    assert labels('SELECT "Name" FROM t WHERE b = "name"', columns=("NAME",)) == "kckTkcoc"


def test_a_schema_decides_what_the_place_leaves_open() -> None:
    assert labels("SELECT count(singer), end, first FROM t") == "kk.c..k.kkT"
    schema = ("singer",), ("end",)
    assert labels("SELECT count(singer), end, first FROM t", *schema) == "kk.T..c.kkT"
    assert labels("SELECT singer FROM t", ("singer",), ("singer",)) == "kckT"
    assert labels("SELECT a FROM end", *schema) == "kckT"
    assert labels("SELECT T1.singer FROM t", *schema) == "kT.ckT"


def test_around_the_query() -> None:
    text = "<think> is it <sql>? </think>\n Sure: <sql>```sql\nSELECT a\n```</sql> and </sql> bye "
    assert written(text) == [
        ("<think>", "tag"),
        ("is it", "other"),
        ("<sql>", "tag"),
        ("?", "other"),
        ("</think>", "tag"),
        ("Sure:", "other"),
        ("<sql>", "tag"),
        ("```sql", "other"),
        ("SELECT", "keyword"),
        ("a", "column"),
        ("```", "other"),
        ("</sql>", "tag"),
        ("and", "other"),
        ("</sql>", "tag"),
        ("bye", "other"),
    ]


def test_without_a_whole_query() -> None:
    assert written("") == []
    assert written(" SELECT a ") == [("SELECT a", "other")]
    assert written("so <sql> SELECT a FR") == [
        ("so", "other"),
        ("<sql>", "tag"),
        ("SELECT", "keyword"),
        ("a", "column"),
        ("FR", "column"),
    ]
    assert written("<sql></sql>") == [("<sql>", "tag"), ("</sql>", "tag")]
    assert written("<think>SELECT a") == [("<think>", "tag"), ("SELECT a", "other")]
    assert written("a</sql>b<sql>") == [("a", "other"), ("</sql>", "tag"), ("b", "other"), ("<sql>", "tag")]


def test_other_tags() -> None:
    assert written("```sql\nSELECT 1```", ("```sql", "```")) == [
        ("```sql", "tag"),
        ("SELECT", "keyword"),
        ("1", "value"),
        ("```", "tag"),
    ]


PIECES = [
    *TAGS,
    "<think>",
    "</think>",
    "```",
    "SELECT",
    "FROM",
    "a",
    "T.",
    "(",
    ")",
    "'",
    '"',
    "--",
    "*",
    " ",
    "é",
]


@given(st.lists(st.sampled_from(PIECES), max_size=40), st.booleans())
def test_everything_but_white_space_has_exactly_one_part(pieces: list[str], schema: bool) -> None:
    text = "".join(pieces)
    found = parts(text, TAGS, ["T"] * schema, ["a"] * schema)
    covered = [i for span in found for i in range(span.start, span.end)]
    assert covered == sorted(set(covered))
    assert all(letter.isspace() for i, letter in enumerate(text) if i not in set(covered))
    assert all(span.start < span.end and span.part in LETTERS.values() for span in found)


def test_the_time_is_linear() -> None:
    for piece in ("(", "<sql>", "'a", "/* ", "a.", "<think>"):
        start = time.perf_counter()
        parts("<sql>" + piece * 20_000 + "</sql>", TAGS)
        assert time.perf_counter() - start < 10  # quadratic would be minutes


def test_the_task_labels_its_responses() -> None:
    text = "[q]SELECT a FROM t[/q]"
    spans = Text2SQL(tags=("[q]", "[/q]")).parts(text)
    assert [span.part for span in spans] == ["tag", "keyword", "column", "keyword", "table", "tag"]
    assert [text[span.start : span.end] for span in spans] == ["[q]", "SELECT", "a", "FROM", "t", "[/q]"]


# --------------------------------------------------------------------------- against the gold


@pytest.mark.parametrize(
    ("query", "gold", "expected"),
    [
        ("SELECT a FROM t WHERE b >= 30", "SELECT a FROM t WHERE b > 30", [(">=", "changed")]),
        ("SELECT a FROM t", "SELECT b, c FROM t", [("a", "changed")]),
        ("SELECT a, b FROM t", "SELECT a FROM t", [(",", "added"), ("b", "added")]),
        ("SELECT a FROM t ORDER BY a", "SELECT a FROM t WHERE b ORDER BY a", [("ORDER", "missing")]),
        ("SELECT a FROM t", "SELECT a FROM t WHERE b", []),  # what is missing has no token
        ("select A  from `T` ; ;", "SELECT a FROM t", []),
        ('SELECT a FROM t WHERE b == "it\'s" -- why', "SELECT a FROM t WHERE b = 'it''s'", []),
        (
            "SELECT a FROM t WHERE b <> 'France'",
            "SELECT a FROM t WHERE b != 'france'",
            [("'France'", "changed")],
        ),
        ("SELECT a FROM t WHERE a = 'a'", "SELECT a FROM t WHERE a = a", [("'a'", "changed")]),
        ("", "SELECT 1", []),
        ("SELECT 1", "", [("SELECT", "added"), ("1", "added")]),
        ("'", "'", []),
    ],
)
def test_what_differs(query: str, gold: str, expected: list[tuple[str, str]]) -> None:
    assert [(query[span.start : span.end], span.part) for span in difference(query, gold)] == expected


WORDS = st.lists(st.sampled_from(["a", "b", ",", "SELECT", "'x'", "(", ")", "="]), max_size=15)


@given(WORDS, WORDS)
def test_what_does_not_differ_is_a_part_of_the_gold(mine: list[str], gold: list[str]) -> None:
    """In the gold's order: the tokens that are left are a subsequence of the gold's."""
    query = " ".join(mine)
    starts = {span.start for span in difference(query, " ".join(gold)) if span.part != "missing"}
    at = [sum(len(word) + 1 for word in mine[:i]) for i in range(len(mine))]
    rest = iter(gold)
    assert all(word in rest for word, start in zip(mine, at, strict=True) if start not in starts)
    assert difference(query, query) == []


def test_one_difference_among_many_equal_tokens() -> None:
    query = "c, " + "a, " * 199
    assert [query[span.start : span.end] for span in difference(query, "a, " * 200)] == ["c"]


def test_a_long_repetition_takes_no_long_time() -> None:
    start = time.perf_counter()
    found = difference("( " * 4000, "SELECT count(*) FROM t WHERE a IN (SELECT b FROM u)")
    assert len(found) >= 3998
    assert time.perf_counter() - start < 10
