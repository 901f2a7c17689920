"""What the characters of a response are, and where its query differs from the gold.

For analysis: no verdict rests on it. Like the tokenizer beneath it, it takes whatever a policy writes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from difflib import SequenceMatcher

from creditlib.types import Span
from verifiers.sql.response import THINK, Tags, read_response
from verifiers.sql.tokens import Token, name_of, tokenize

_OPERATOR_WORDS = frozenset(
    "and or not is in like glob match regexp between isnull notnull collate escape".split()
)
_SYMBOLS = frozenset("= == <> != < > <= >= + - / % || | & ~".split())
_LITERALS = frozenset("null true false current_date current_time current_timestamp".split())
_KEYWORDS = frozenset(
    "all as create cross delete distinct drop else except exists from full group having inner insert "
    "intersect into join left limit natural on order outer right select set table then union unique update "
    "using values when where".split()
)
_PERHAPS_KEYWORDS = frozenset(  # SQLite takes them as names too
    "asc by case cast current desc end filter first following last nulls offset over partition preceding "
    "range recursive replace row rows ties unbounded window with".split()
)
_TABLES_FOLLOW = frozenset("from join into table update with".split())
_OTHERS_FOLLOW = frozenset("by having limit on select set using values where window".split())
_TABLE_LISTS = frozenset("from join , (".split())  # a parenthesis behind these holds tables again
_VALUE_FOLLOWS = _SYMBOLS | {"like", "glob", "match", "regexp", "between", "is", "not"}
_SAME = {"==": "=", "<>": "!="}


def parts(text: str, tags: Tags, tables: Collection[str] = (), columns: Collection[str] = ()) -> list[Span]:
    """Label everything in a response that is not white space. Linear in the length of the text.

    Parts are ``tag`` (those of the query and of thinking), ``keyword`` (function names as well), ``table``,
    ``column``, ``value``, ``operator`` (those that are words as well) and ``other``: punctuation, comments
    and all text outside the query. A query that is never closed goes on to the end.

    Args:
        text: the response.
        tags: what its query stands between.
        tables: names in the database. What a name is follows from where it stands, so an invented one is what
            it was meant to be; the schema decides where that leaves it open.
        columns: names in the database.

    Returns:
        Spans in order, without overlap.
    """
    start, end = _query(text, tags)
    words = sorted((re.escape(tag) for tag in (*tags, *THINK)), key=len, reverse=True)
    tag = re.compile("|".join(words))
    spans = [Span(*match.span(), "tag") for match in tag.finditer(text, 0, start)]
    tokens = tokenize(text[start:end])
    names = frozenset(map(str.lower, tables)), frozenset(map(str.lower, columns))
    for token, part in zip(tokens, _labels(tokens, text[start:end], *names), strict=True):
        spans.append(Span(start + token.start, start + token.end, part))
    spans += [Span(*match.span(), "tag") for match in tag.finditer(text, end)]
    return sorted([*spans, *_between(text, spans)])


def difference(query: str, gold: str) -> list[Span]:
    """The tokens of `query` in which it differs from `gold`, by a diff of their tokens.

    Case (outside strings), quotes, white space, comments and closing semicolons make no difference; a text in
    double quotes counts as a string.

    Returns:
        Spans of `query` in order. Their part is ``changed`` (the gold says something else there), ``added``
        (it says nothing there) or ``missing`` (it says something more before this token; what is missing at
        the end has no token).
    """
    tokens, keys = _comparable(query)
    _, gold_keys = _comparable(gold)
    spans: list[Span] = []
    for change, first, last, _, _ in SequenceMatcher(None, keys, gold_keys, autojunk=False).get_opcodes():
        if change == "insert":
            spans += [Span(token.start, token.end, "missing") for token in tokens[first : first + 1]]
        elif change != "equal":
            part = "changed" if change == "replace" else "added"
            spans += [Span(token.start, token.end, part) for token in tokens[first:last]]
    return spans


def _query(text: str, tags: Tags) -> tuple[int, int]:
    """Where the query is, finished or not; nowhere, at the end, if there is none."""
    response = read_response(text, tags)
    if response.query is not None:
        return response.start, response.start + len(response.query)
    for span in response.format.spans:
        if text[span.start : span.end] == tags[0]:
            return span.end, len(text)
    return len(text), len(text)


def _between(text: str, spans: Sequence[Span]) -> Iterator[Span]:
    """What lies between the spans, without the white space around it."""
    ends = [0, *(span.end for span in spans)]
    starts = [*(span.start for span in spans), len(text)]
    for start, end in zip(ends, starts, strict=True):
        gap = text[start:end]
        if stripped := gap.strip():
            start += len(gap) - len(gap.lstrip())
            yield Span(start, start + len(stripped), "other")


def _labels(
    tokens: Sequence[Token], sql: str, tables: frozenset[str], columns: frozenset[str]
) -> Iterator[str]:
    """The part of each token."""
    part = ""  # of the token before
    openers = [""]  # what stands before each open parenthesis
    lists_tables = [False]  # are we, in each of them, where tables are named
    for i, token in enumerate(tokens):
        before = tokens[i - 1].text if i else ""
        after = tokens[i + 1].text if i + 1 < len(tokens) else ""
        if token.text == "(":
            openers.append(before)
            lists_tables.append(lists_tables[-1] and before in _TABLE_LISTS)
        elif token.text == ")" and len(openers) > 1:
            openers.pop()
            lists_tables.pop()
        elif token.kind == "word" and before != "." and token.text in _TABLES_FOLLOW | _OTHERS_FOLLOW:
            lists_tables[-1] = token.text in _TABLES_FOLLOW

        name = name_of(token, sql)
        known = name in tables or name in columns
        if token.kind in ("string", "number"):
            part = "value"
        elif token.kind == "op":
            part = _operator(token.text, before == ")" or part in ("table", "column", "value"))
        elif "." in (before, after):
            part = "column" if before == "." else "table"
        elif token.kind == "word" and (word := _word(token.text, known)):
            part = word
        elif lists_tables[-1]:
            part = "table"
        elif token.kind == "word" and (after == "(" or (before == "as" and openers[-1] == "cast")):
            part = "keyword"
        elif token.kind == "double" and not known and _is_value(before, openers[-1], bool(tables or columns)):
            part = "value"
        else:
            part = "table" if name in tables and name not in columns else "column"
        yield part


def _operator(text: str, after_operand: bool) -> str:
    if text == "*":
        return "operator" if after_operand else "column"  # or it stands for all columns
    return "operator" if text in _SYMBOLS else "other"


def _word(text: str, known: bool) -> str:
    """The part of a word that is not a name."""
    if text in _OPERATOR_WORDS:
        return "operator"
    if text in _LITERALS:
        return "value"
    return "keyword" if text in _KEYWORDS or (text in _PERHAPS_KEYWORDS and not known) else ""


def _is_value(before: str, opener: str, schema: bool) -> bool:
    """Is a text in double quotes a string? With a schema, all that are no names of it are."""
    return schema or before in _VALUE_FOLLOWS or opener in ("in", "values")


def _comparable(sql: str) -> tuple[list[Token], list[str]]:
    """The tokens of a query, and a key for each that is equal where it means the same."""
    tokens = tokenize(sql)
    while tokens and tokens[-1].text == ";":
        tokens.pop()
    return tokens, [_key(token, sql) for token in tokens]


def _key(token: Token, sql: str) -> str:
    if token.kind in ("string", "double"):
        quote = token.text[0]
        inner = token.text[1:-1] if token.text.endswith(quote) else token.text[1:]
        return "'" + inner.replace(quote * 2, quote)
    return name_of(token, sql) if token.kind == "quoted" else _SAME.get(token.text, token.text)
