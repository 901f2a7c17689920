"""What the text of responses and queries says, before SQLite is asked."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifiers.sql.response import read_response
from verifiers.sql.tokens import (
    is_single_statement,
    orders_rows,
    strict_identifiers,
    tie_breaks,
    tokenize,
    without_distinct,
    without_spare_semicolons,
)

TAGS = ("<sql>", "</sql>")
FENCED = "```sql\nSELECT 1\n```"


@pytest.mark.parametrize(
    "text",
    [
        "<sql>SELECT 1</sql>",
        "  <sql>\n SELECT 1 \n</sql>\n",
        "<think>first, I count</think><sql>SELECT 1</sql>",
        "<think></think>\n\n<sql>SELECT 1</sql>",  # some chat templates write this
        "<think>maybe <sql>SELECT 2</sql>, no</think><sql>SELECT 1</sql>",
        f"<sql>{FENCED}</sql>",
        "<sql>```sql SELECT 1```</sql>",
        "<sql>\n```\nSELECT 1```\n</sql>",
        "<sql>```SQLite\nSELECT 1\n```</sql>",
    ],
)
def test_right_format(text: str) -> None:
    response = read_response(text, TAGS)
    assert response.format.score == 1, response.format.reason
    assert response.query == "SELECT 1"
    (span,) = response.query_span
    assert text[span.start : span.end] == "SELECT 1" and span.part == "query"
    assert [text[s.start : s.end] for s in response.format.spans] == ["<sql>", "</sql>"]
    assert response.format.info == "the query between <sql> and </sql>"


@pytest.mark.parametrize(
    ("text", "query", "reason"),
    [
        ("", None, "the response is empty"),
        (" \n", None, "the response is empty"),
        ("SELECT 1", None, "there is no <sql>"),
        ("<sql>SELECT 1", None, "<sql> is never closed"),
        ("SELECT 1</sql>", None, "there is no <sql>"),
        ("</sql>SELECT 1<sql>", None, "<sql> is never closed"),
        ("<think>hm <sql>SELECT 1</sql>", None, "<think> is never closed"),
        ("<sql>SELECT 1</sql><sql>SELECT 2</sql>", "SELECT 1", "there is a second <sql>"),
        ("<sql>SELECT <sql>SELECT 1</sql>", "SELECT 1", "<sql> is opened twice"),
        ("Here: <sql>SELECT 1</sql>", "SELECT 1", "there is text before <sql>"),
        ("<sql>SELECT 1</sql> done", "SELECT 1", "there is text behind </sql>"),
        ("<sql></sql>", "", "there is no query between the tags"),
        ("<sql> ``` ``` </sql>", "", "there is no query between the tags"),
        ("well <think>x</think><sql>SELECT 1</sql>", "SELECT 1", "<think> is not at the start"),
        ("x</think><sql>SELECT 1</sql>", "SELECT 1", "</think> without <think>"),
        ("<think>a</think><think>b</think><sql>SELECT 1</sql>", "SELECT 1", "there is text before <sql>"),
    ],
)
def test_wrong_format_but_perhaps_a_query(text: str, query: str | None, reason: str) -> None:
    response = read_response(text, TAGS)
    assert response.format.score == 0
    assert reason in response.format.reason
    assert response.query == query
    assert all(0 <= span.start < span.end <= len(text) for span in response.format.spans)


def test_text_outside_is_marked() -> None:
    text = "Here: <sql>SELECT 1</sql>"
    spans = read_response(text, TAGS).format.spans
    assert [(text[s.start : s.end], s.part) for s in spans] == [
        ("<sql>", "tag"),
        ("</sql>", "tag"),
        ("Here:", "outside"),
    ]


@pytest.mark.parametrize("tags", [("```sql", "```"), ("<answer>", "</answer>"), ("[[", "]]")])
def test_other_tags(tags: tuple[str, str]) -> None:
    response = read_response(f"{tags[0]}\nSELECT 1\n{tags[1]}", tags)
    assert (response.format.score, response.query) == (1, "SELECT 1")
    assert read_response("<sql>SELECT 1</sql>", tags).format.score == 0


def test_a_word_of_the_query_is_not_the_fences_language() -> None:
    assert read_response("<sql>```SELECT 1```</sql>", TAGS).query == "SELECT 1"
    assert read_response("<sql>```sqlite_x```</sql>", TAGS).query == "sqlite_x"


@given(st.lists(st.sampled_from([*TAGS, "<think>", "</think>", "```", "sql", "SELECT 1", " ", "\n", "x"])))
def test_any_mixture_of_parts_has_a_verdict(parts: list[str]) -> None:
    text = "".join(parts)
    response = read_response(text, TAGS)
    assert response.format.score in (0, 1)
    for span in (*response.format.spans, *response.query_span):
        assert 0 <= span.start < span.end <= len(text)
    if response.format.score == 1:
        assert response.query and text.rstrip().endswith("</sql>")


@given(st.text(st.sampled_from("'\"`[]()-*/;\n aA1.,=<>|")))
def test_tokens_cover_the_text(sql: str) -> None:
    tokens = tokenize(sql)
    assert all(a.end <= b.start for a, b in pairwise(tokens))
    assert all(sql[token.start : token.end].lower() == token.text.lower() for token in tokens)
    strict_identifiers(sql, tokens)
    tie_breaks(sql, 2)


def test_comments_and_strings_hide_what_they_hold() -> None:
    texts = [token.text for token in tokenize("SELECT ';' /* ; */ , \"a\"\"b\", [c d] -- ;\n, 'it''s'")]
    assert texts == ["select", "';'", ",", '"a""b"', ",", "[c d]", ",", "'it''s'"]


@pytest.mark.parametrize(
    ("sql", "single"),
    [
        ("SELECT 1", True),
        ("SELECT 1; -- done", True),
        ("SELECT 1;;", True),
        ("SELECT ';'", True),
        ("SELECT 1; SELECT 2", False),
        ("SELECT 1; DROP TABLE t", False),
    ],
)
def test_single_statement(sql: str, single: bool) -> None:
    assert is_single_statement(tokenize(sql)) is single


@pytest.mark.parametrize(
    ("sql", "run"),
    [
        ("SELECT 1", "SELECT 1"),
        ("SELECT 1; -- done", "SELECT 1;"),
        ("SELECT ';';; -- done\n ;", "SELECT ';';"),
        ("SELECT 1;; SELECT 2;;", "SELECT 1;; SELECT 2;;"),
        (";;", ";"),
    ],
)
def test_spare_semicolons_go(sql: str, run: str) -> None:
    assert without_spare_semicolons(sql) == run


@pytest.mark.parametrize(
    ("sql", "ordered"),
    [
        ("SELECT a FROM t ORDER BY a", True),
        ("SELECT a FROM t UNION SELECT b FROM t order\n by 1", True),
        ("SELECT a FROM t WHERE a = (SELECT b FROM t ORDER BY b LIMIT 1)", False),
        ("SELECT row_number() OVER (ORDER BY a) FROM t", False),
        ("SELECT 'order by' FROM t", False),
        ("SELECT order_by FROM t", False),
    ],
)
def test_only_the_outermost_order_counts(sql: str, ordered: bool) -> None:
    assert orders_rows(tokenize(sql)) is ordered


@pytest.mark.parametrize(
    ("sql", "strict"),
    [
        ('SELECT "x", a FROM t', "SELECT `x`, a FROM t"),
        ('SELECT DISTINCT "x" AS y FROM t', "SELECT DISTINCT `x` AS y FROM t"),
        ('SELECT a FROM t ORDER BY "x" DESC', "SELECT a FROM t ORDER BY `x` DESC"),
        ('SELECT a FROM t GROUP BY "x"', "SELECT a FROM t GROUP BY `x`"),
        ('SELECT count(DISTINCT "x") FROM t', "SELECT count(DISTINCT `x`) FROM t"),
        ('SELECT a FROM t WHERE "x" > 3 AND "y" IN (1)', "SELECT a FROM t WHERE `x` > 3 AND `y` IN (1)"),
        ('SELECT a FROM t WHERE b = (SELECT "x" FROM u)', "SELECT a FROM t WHERE b = (SELECT `x` FROM u)"),
        ('SELECT "odd""name`" FROM t', 'SELECT `odd"name``` FROM t'),
    ],
)
def test_quoted_names_become_strict(sql: str, strict: str) -> None:
    assert strict_identifiers(sql, tokenize(sql)) == strict


@pytest.mark.parametrize(
    "sql",
    [
        'SELECT a FROM t WHERE country = "France"',
        'SELECT a FROM t WHERE country IN ("France", "Spain")',
        'SELECT a FROM t WHERE name LIKE "%x%" AND b != "y"',
        'SELECT a FROM t WHERE d BETWEEN "2001" AND "2002"',
        'SELECT strftime("%Y", d) FROM t',
        'SELECT t."x" FROM t',
        "SELECT '\"x\"' FROM t",
        'SELECT CASE WHEN a = 1 THEN "one" ELSE "more" END FROM t',
    ],
)
def test_double_quoted_strings_stay(sql: str) -> None:
    assert strict_identifiers(sql, tokenize(sql)) == sql


def test_without_distinct() -> None:
    assert without_distinct("SELECT DISTINCT a, count(distinct b), 'distinct' FROM t") == (
        "SELECT  a, count( b), 'distinct' FROM t"
    )


def test_tie_breaks() -> None:
    assert tie_breaks("SELECT a, b FROM t", 2) is None
    up, down = tie_breaks("SELECT a, b FROM t ORDER BY a LIMIT 3; -- end", 2) or ("", "")
    assert " ".join(up.split()) == "SELECT a, b FROM t ORDER BY a , 1 ASC, 2 ASC LIMIT 3; -- end"
    assert down == up.replace("ASC", "DESC")
    up, _ = tie_breaks("SELECT a FROM t WHERE b = (SELECT c FROM u LIMIT 1) ORDER BY a", 1) or ("", "")
    assert " ".join(up.split()) == (
        "SELECT a FROM t WHERE b = (SELECT c FROM u ORDER BY 1 ASC LIMIT 1) ORDER BY a , 1 ASC"
    )
    up, _ = tie_breaks("SELECT a FROM t ORDER BY a -- last", 1) or ("", "")
    assert up.endswith("-- last\n, 1 ASC ")
