"""Reads a response: where its query is, and whether it keeps to the format."""

from __future__ import annotations

from dataclasses import dataclass

from creditlib.types import Check, Span

Tags = tuple[str, str]

THINK: Tags = ("<think>", "</think>")
_FENCE = "```"
_FENCE_LANGUAGES = ("sqlite3", "sqlite", "sql")  # the longer name first


@dataclass(frozen=True)
class Response:
    """A response taken apart: `query`, None without a complete pair of tags, begins at character `start`."""

    format: Check
    query: str | None = None
    start: int = 0

    @property
    def query_span(self) -> tuple[Span, ...]:
        return (Span(self.start, self.start + len(self.query), "query"),) if self.query else ()


def read_response(text: str, tags: Tags) -> Response:
    """Find the query and judge the format.

    The format is: an optional ``<think>...</think>`` at the start, then one pair of tags with a query between
    them, and nothing else but white space. The query is what stands between the first complete pair of tags
    behind the thinking, with or without the format, so that the other rewards can be earned before the format
    is learnt; a code fence around it is not part of it.
    """
    opening, closing = tags
    before_think = text.find(THINK[0])
    after_think = text.find(THINK[1])
    start = after_think + len(THINK[1]) if after_think >= 0 else len(text) if before_think >= 0 else 0
    first = text.find(opening, start)
    close = text.find(closing, first + len(opening)) if first >= 0 else -1
    if close < 0:
        return Response(_malformed(_why_no_query(text, tags, start), tags, _stray_tags(text, tags, start)))
    last = text.rfind(opening, first + len(opening), close)
    open_ = max(first, last)  # of several openings, the one that the closing tag belongs to
    body = open_ + len(opening)
    end = close + len(closing)
    spans = (Span(open_, body, "tag"), Span(close, end, "tag"))
    query_start, query_end = _strip(text, body, close)
    query = text[query_start:query_end]

    problem = ""
    outside: tuple[Span, ...] = ()
    if before_think >= 0 and (text[:before_think].strip() or before_think > after_think):
        problem = f"{THINK[0]} is not at the start of the response"
    elif before_think < 0 <= after_think:
        problem = f"{THINK[1]} without {THINK[0]}"
    elif open_ != first:
        problem = f"{opening} is opened twice"
    elif text[start:open_].strip():
        problem, outside = f"there is text before {opening}", (_trimmed(text, start, open_),)
    elif text[end:].strip():
        problem = (
            f"there is a second {opening}" if opening in text[end:] else f"there is text behind {closing}"
        )
        outside = (_trimmed(text, end, len(text)),)
    elif not query:
        problem = "there is no query between the tags"
    if problem:
        return Response(_malformed(problem, tags, spans + outside), query, query_start)
    return Response(Check(1.0, "the format is right", _describe(tags), spans), query, query_start)


def _malformed(problem: str, tags: Tags, spans: tuple[Span, ...]) -> Check:
    return Check(0.0, problem, _describe(tags), spans)


def _describe(tags: Tags) -> str:
    return f"the query between {tags[0]} and {tags[1]}"


def _why_no_query(text: str, tags: Tags, start: int) -> str:
    if not text.strip():
        return "the response is empty"
    if start == len(text) and THINK[1] not in text:
        return f"{THINK[0]} is never closed"
    return f"{tags[0]} is never closed" if tags[0] in text[start:] else f"there is no {tags[0]}"


def _stray_tags(text: str, tags: Tags, start: int) -> tuple[Span, ...]:
    return tuple(Span(at, at + len(tag), "tag") for tag in tags if (at := text.find(tag, start)) >= 0)


def _strip(text: str, start: int, end: int) -> tuple[int, int]:
    """Narrow `start:end` to what stands inside white space and a code fence."""
    span = _trimmed(text, start, end)
    inner = text[span.start : span.end]
    if len(inner) < 2 * len(_FENCE) or not inner.startswith(_FENCE) or not inner.endswith(_FENCE):
        return span.start, span.end
    start, end = span.start + len(_FENCE), span.end - len(_FENCE)
    for language in _FENCE_LANGUAGES:
        after = start + len(language)
        if text[start:after].lower() == language and (after >= end or text[after].isspace()):
            start = after
            break
    span = _trimmed(text, start, end)
    return span.start, span.end


def _trimmed(text: str, start: int, end: int) -> Span:
    body = text[start:end]
    stripped = body.strip()
    start += len(body) - len(body.lstrip()) if stripped else 0
    return Span(start, start + len(stripped), "outside")
