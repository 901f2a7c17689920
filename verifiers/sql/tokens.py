"""A small SQLite tokenizer, and the questions that only the text of a query can answer.

It never fails and takes linear time, so it may read anything a policy writes. It does not parse: what a query
means is for SQLite to say.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

_TOKEN = re.compile(
    r"""(?P<skip>\s++|--[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z))
    |(?P<string>'(?:[^']|'')*+'?)
    |(?P<double>"(?:[^"]|"")*+"?)
    |(?P<quoted>`(?:[^`]|``)*+`?|\[[^\]]*+\]?)
    |(?P<number>\d[\w.]*+)
    |(?P<word>\w[\w$]*+)
    |(?P<op>\|\||<=|>=|<>|!=|==|.)""",
    re.VERBOSE | re.DOTALL,
)
_COMPARISONS = frozenset("= == <> != < > <= >= like glob in between is not".split())
_AGGREGATES = frozenset("count sum avg min max total group_concat".split())
_CLAUSES = frozenset("select by from where having limit on set values over window".split())
_BEFORE_OPERAND = frozenset("where and or on having not when (".split())
_ITEM_STARTS = frozenset("select distinct all by ,".split())
_ITEM_ENDS = frozenset(", ) ; as from asc desc collate having limit order union except intersect".split()) | {
    ""
}


class Token(NamedTuple):
    """One token: `text` is lower-cased for words and as written for the rest; `level` counts the open
    parentheses around it.
    """

    kind: str  # word, string ('...'), double ("..."), quoted (`...` or [...]), number or op
    text: str
    start: int
    end: int
    level: int


def tokenize(sql: str) -> list[Token]:
    """The tokens of `sql` without white space and comments."""
    tokens: list[Token] = []
    level = 0
    for match in _TOKEN.finditer(sql):
        kind = match.lastgroup or "op"
        if kind == "skip":
            continue
        text = match.group().lower() if kind == "word" else match.group()
        if text == ")":
            level = max(0, level - 1)
        tokens.append(Token(kind, text, match.start(), match.end(), level))
        if text == "(":
            level += 1
    return tokens


def name_of(token: Token, sql: str) -> str:
    """The identifier a token names, without its quotes and in lower case."""
    text = sql[token.start : token.end]
    if token.kind == "double" or text.startswith("`"):
        return text[1:-1].replace(text[0] * 2, text[0]).lower()
    if token.kind == "quoted":
        return text[1:-1].lower()
    return text.lower()


def first_word(tokens: Sequence[Token]) -> str:
    return tokens[0].text if tokens and tokens[0].kind == "word" else ""


def is_single_statement(tokens: Sequence[Token]) -> bool:
    """At most one statement: nothing but comments and semicolons follows the first semicolon."""
    texts = [token.text for token in tokens]
    return ";" not in texts or all(text == ";" for text in texts[texts.index(";") :])


def without_spare_semicolons(sql: str) -> str:
    """A single statement up to its first semicolon: SQLite's driver takes a second one for a statement."""
    tokens = tokenize(sql)
    end = next((token.end for token in tokens if token.text == ";"), len(sql))
    return sql[:end] if is_single_statement(tokens) else sql


def orders_rows(tokens: Sequence[Token]) -> bool:
    """Does the outermost query say ORDER BY? One inside a subquery or a window does not order the result."""
    return any(
        token.level == 0 and token.text == "order" and following.text == "by"
        for token, following in pairwise(tokens)
    )


def without_distinct(sql: str) -> str:
    """The query with each keyword DISTINCT taken out."""
    return _replace(
        sql, [(token.start, token.end, "") for token in tokenize(sql) if token.text == "distinct"]
    )


def strict_identifiers(sql: str, tokens: Sequence[Token]) -> str:
    """Write double-quoted names that stand where only a column makes sense in backticks, which are strict.

    SQLite takes ``"nosuchcol"`` for a string when there is no such column, so a query on an invented column
    runs. Yet ``country = "France"`` is how Spider writes its strings. Hence only these places are strict: a
    whole item of SELECT, GROUP BY or ORDER BY, the only argument of an aggregate, and the left side of a
    comparison. SQLite itself then says whether the column exists. (Python 3.12 could switch the fallback off
    for all places, which would forbid Spider's own golds.)
    """
    edits: list[tuple[int, int, str]] = []
    clauses = [""]  # the clause we are in, for each open parenthesis
    for i, token in enumerate(tokens):
        before = tokens[i - 1].text if i else ""
        after = tokens[i + 1].text if i + 1 < len(tokens) else ""
        if token.text == "(":
            clauses.append("")
        elif token.text == ")" and len(clauses) > 1:
            clauses.pop()
        elif token.kind == "word" and token.text in _CLAUSES:
            clauses[-1] = token.text
        elif token.kind == "double" and "." not in (before, after):
            is_item = clauses[-1] in ("select", "by") and before in _ITEM_STARTS and after in _ITEM_ENDS
            is_operand = before in _BEFORE_OPERAND and after in _COMPARISONS
            if is_item or is_operand or (after == ")" and _opens_aggregate(tokens, i - 1)):
                name = sql[token.start + 1 : token.end - 1].replace('""', '"').replace("`", "``")
                edits.append((token.start, token.end, f"`{name}`"))
    return _replace(sql, edits)


def tie_breaks(sql: str, columns: int) -> tuple[str, str] | None:
    """Two variants of a query whose results differ if a tie decides what it returns; None: nothing can tie.

    Each ORDER BY that is cut by LIMIT (and the outermost one in any case) gets all output columns as further
    keys, upwards in one variant and downwards in the other; a LIMIT without ORDER BY gets one. In a subquery
    the first column must do.
    """
    edits: list[tuple[int, str]] = []
    ordered = [False]  # has the query at this depth said ORDER BY
    tokens = tokenize(sql)
    end = next((token.start for token in tokens if token.text == ";"), len(sql))
    for i, token in enumerate(tokens):
        if token.text == "(":
            ordered.append(False)
        elif token.text == ")" and len(ordered) > 1:
            ordered.pop()
        elif token.text == "by" and i and tokens[i - 1].text == "order":
            ordered[-1] = True
        elif token.text == "limit":
            edits.append((token.start, _extra_keys(ordered[-1], columns if len(ordered) == 1 else 1)))
            ordered[-1] = False
    if ordered[0]:
        edits.append((end, _extra_keys(True, columns)))
    if not edits:
        return None
    up, down = (
        [(at, at, keys.replace("?", direction)) for at, keys in edits] for direction in ("ASC", "DESC")
    )
    # A trailing comment would swallow what is put behind it; a line break ends it.
    return _replace(sql, up), _replace(sql, down)


def _extra_keys(ordered: bool, columns: int) -> str:
    keys = ", ".join(f"{i} ?" for i in range(1, columns + 1))
    return f"\n, {keys} " if ordered else f"\nORDER BY {keys} "


def _opens_aggregate(tokens: Sequence[Token], i: int) -> bool:
    """Is token i, perhaps a DISTINCT, the opening of an aggregate's arguments?"""
    if tokens[i].text == "distinct":
        i -= 1
    return i >= 1 and tokens[i].text == "(" and tokens[i - 1].text in _AGGREGATES


def _replace(sql: str, edits: Sequence[tuple[int, int, str]]) -> str:
    parts: list[str] = []
    position = 0
    for start, end, text in edits:
        parts += (sql[position:start], text)
        position = end
    return "".join(parts) + sql[position:]
