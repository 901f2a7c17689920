"""Reads a response: its thinking, its calls, its reply, and whether it keeps to the format.

Tags are looked for outside the thinking and outside the JSON of a call only, so that naming a tag there
changes nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from creditlib.types import Check, Span
from verifiers.toolcall.calls import MAX_PIECES, Call, read_objects
from verifiers.toolcall.literals import read_list

THINK = ("<think>", "</think>")
CALLS = ("<tool_call>", "</tool_call>")
REPLY = ("<response>", "</response>")

_OPENING = re.compile("|".join((CALLS[0], REPLY[0])))
_TAG = re.compile("|".join((*THINK, *CALLS, *REPLY)))
# What chat templates write between turns. A response that writes it pretends to be another turn.
_MARKUP = re.compile(r"<\|(?:im_start|im_end|start_header_id|end_header_id|eot_id|endoftext)\|>")
_MOST_BLOCKS = 50  # further ones are text outside
_CALL_FORM = '{"name": ..., "parameters": {...}}'


@dataclass(frozen=True)
class Wanted:
    """The blocks that a right response has."""

    calls: bool
    reply: bool

    def describe(self, think: bool) -> str:
        """The form of such a response, for people and replays."""
        parts = [
            *(["<think> ... </think>"] if think else []),
            *([f"{CALLS[0]}\n{_CALL_FORM}\n{CALLS[1]}"] if self.calls else []),
            *([f"{REPLY[0]} ... {REPLY[1]}"] if self.reply else []),
        ]
        return "\n".join(parts)


@dataclass
class Part:
    """A block of calls or a reply: what stands from `start` to `end`, without its tags."""

    kind: Literal["calls", "reply"]
    start: int
    end: int
    closed: bool = True
    spans: list[Span] = field(default_factory=list)  # of its calls


@dataclass
class Reading:
    """A response taken apart. Positions are those of characters in `text`.

    Attributes:
        text: the response.
        thinking: what stands between the first pair of tags, None without.
        thinking_problem: what is wrong with its tags.
        parts: blocks of calls and replies in order.
        calls: of all blocks.
        tags: of thinking and of `parts`.
        outside: text that stands in none of them, behind the thinking or before it.
        listed: whether the calls are a list in BFCL's prompt format, without tags.
        problem: why the calls cannot be read, or are not all that the response does; "" if they are.
    """

    text: str
    thinking: Span | None = None
    thinking_problem: str = ""
    parts: list[Part] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    tags: list[Span] = field(default_factory=list)
    outside: list[Span] = field(default_factory=list)
    listed: bool = False
    problem: str = ""
    markup: Span | None = None

    def blocks(self, kind: str) -> list[Part]:
        return [part for part in self.parts if part.kind == kind]

    @property
    def tries_calls(self) -> bool:
        """Is there a block of calls, however broken and wherever, which a parser of tags might run?"""
        pieces: list[Span | Part] = [*self.outside, *self.blocks("reply")]
        return bool(self.blocks("calls")) or any(self.opens_calls(own) for own in pieces)

    def opens_calls(self, piece: Span | Part) -> bool:
        """Does the opening tag of calls stand in this piece of the response?"""
        return CALLS[0] in self.text[piece.start : piece.end]

    @property
    def replies(self) -> bool:
        """Is there a complete reply with text in it?"""
        return any(part.closed and self.text[part.start : part.end].strip() for part in self.blocks("reply"))

    @property
    def call_spans(self) -> tuple[Span, ...]:
        """The names, arguments and values of all calls, also of one that is unfinished."""
        return tuple(span for part in self.parts for span in part.spans)


def read_response(text: str, *, lists: bool = True) -> Reading:
    """Take a response apart; it never fails.

    Args:
        text: the response.
        lists: whether calls may be a list in BFCL's prompt format, if there are no tags.
    """
    reading = Reading(text)
    start = _read_thinking(reading)
    if _OPENING.search(text, start):
        _read_blocks(reading, start)
    elif lists and text.startswith("[", _first_letter(text, start)):
        _read_list(reading, start)
    else:
        _add_outside(reading, start, len(text))
        reading.problem = reading.problem or f"there is no {CALLS[0]}"
    reading.markup = _find_markup(reading)
    if reading.markup:
        reading.problem = f"chat markup {_named(text, reading.markup)} stands in the response"
    return reading


def judge_format(reading: Reading, wanted: Wanted, think: bool) -> Check:
    """1 where the response is the wanted blocks in order and nothing else but white space.

    Args:
        reading: the response.
        wanted: its blocks. A list of calls without tags will do for a block of calls.
        think: whether it must begin with thinking; if not, it may.
    """
    problem = _format_problem(reading, wanted, think)
    form = wanted.describe(think)
    spans = tuple(sorted([*reading.tags, *reading.outside]))
    return Check(float(not problem), problem or "the format is right", form, spans)


def parts(response: str) -> list[Span]:
    """Label everything in a response that is not white space. Linear in the length of the text.

    Parts are ``tag``, ``thinking``, ``reply`` (what stands between their tags), ``name``, ``argument`` (its
    name), ``value``, and ``other``: JSON's keys and punctuation, and all that stands outside.

    Returns:
        Spans in order, without overlap.
    """
    reading = read_response(response)
    spans = [*reading.tags, *reading.call_spans]
    if reading.thinking:
        spans += _trimmed(response, reading.thinking.start, reading.thinking.end, "thinking")
    for part in reading.blocks("reply"):
        spans += _trimmed(response, part.start, part.end, "reply")
    for outside in reading.outside:
        spans += [Span(*match.span(), "tag") for match in _TAG.finditer(response, outside.start, outside.end)]
    spans.sort()
    ends = [0, *(span.end for span in spans)]
    starts = [*(span.start for span in spans), len(response)]
    for end, start in zip(ends, starts, strict=True):
        spans += _trimmed(response, end, start, "other")
    return sorted(spans)


def calls_in(response: str) -> list[Call]:
    """The calls of a response that can be read, each with the spans of its pieces."""
    return read_response(response).calls


# --------------------------------------------------------------------------- reading


def _read_thinking(reading: Reading) -> int:
    """Find the thinking; returns where the rest begins."""
    text = reading.text
    opening, closing = THINK
    begin = _first_letter(text, 0)
    close = text.find(closing)
    if text.startswith(opening, begin):
        inner = begin + len(opening)
        reading.tags.append(Span(begin, inner, "tag"))
        if close < 0:
            reading.thinking = Span(inner, len(text), "thinking")
            reading.thinking_problem = reading.problem = f"{opening} is never closed"
            return len(text)
    else:
        first = _OPENING.search(text)
        if close < 0 or (first and first.start() < close):
            return 0
        inner = text.find(opening, 0, close)
        reading.thinking_problem = f"{closing} without {opening}"
        if inner >= 0:
            reading.thinking_problem = f"{opening} is not at the start of the response"
            _add_outside(reading, 0, inner)
            reading.tags.append(Span(inner, inner + len(opening), "tag"))
            inner += len(opening)
        inner = max(inner, 0)
    reading.thinking = Span(inner, close, "thinking")
    reading.tags.append(Span(close, close + len(closing), "tag"))
    return close + len(closing)


def _read_blocks(reading: Reading, start: int) -> None:
    text, pieces = reading.text, 0
    while len(reading.parts) < _MOST_BLOCKS and (match := _OPENING.search(text, start)):
        _add_outside(reading, start, match.start())
        reading.tags.append(Span(*match.span(), "tag"))
        part = Part("calls" if match[0] == CALLS[0] else "reply", match.end(), len(text))
        reading.parts.append(part)
        _, closing = CALLS if part.kind == "calls" else REPLY
        end = match.end()
        if part.kind == "calls":
            block = read_objects(text, end, closing, MAX_PIECES - pieces)
            pieces += len(block.spans)
            reading.calls += block.calls
            reading.problem = reading.problem or block.problem
            part.spans, end = block.spans, block.end
        close = text.find(closing, end)
        if close < 0:
            part.closed, start = False, len(text)
            break
        part.end, start = close, close + len(closing)
        reading.tags.append(Span(close, start, "tag"))
    _add_outside(reading, start, len(text))
    if not reading.blocks("calls"):
        reading.problem = reading.problem or f"there is no {CALLS[0]}"
    elif any(span.start > reading.blocks("calls")[0].end for span in reading.outside):
        reading.problem = reading.problem or "the response goes on behind its calls"


def _read_list(reading: Reading, start: int) -> None:
    text = reading.text
    end = len(text.rstrip())
    block = read_list(text, start, end, official=False)
    reading.listed = True
    reading.calls, reading.problem = block.calls, block.problem
    reading.parts.append(Part("calls", _first_letter(text, start), end, not block.problem, block.spans))
    if not block.problem and not text.endswith("]", start, end):
        reading.problem = "the list of calls is never closed"
    elif not block.problem and not block.calls:
        reading.problem = "the list of calls is empty"


def _find_markup(reading: Reading) -> Span | None:
    """Chat markup outside the names and values of calls."""
    values = sorted(reading.call_spans)
    at = 0
    for match in _MARKUP.finditer(reading.text):
        while at < len(values) and values[at].end <= match.start():
            at += 1
        if at == len(values) or match.start() < values[at].start:
            return Span(*match.span(), "outside")
    return None


# --------------------------------------------------------------------------- the format


def _format_problem(reading: Reading, wanted: Wanted, think: bool) -> str:
    """What is wrong with the format; "" if nothing is."""
    text = reading.text
    if not text.strip():
        return "the response is empty"
    if reading.markup:
        return reading.problem
    if reading.thinking_problem:
        return reading.thinking_problem
    if think and reading.thinking is None:
        return f"there is no {THINK[0]} at the start"
    if think and reading.thinking and not text[reading.thinking.start : reading.thinking.end].strip():
        return "the thinking is empty"
    for kind, (opening, closing), is_wanted in (
        ("calls", CALLS, wanted.calls),
        ("reply", REPLY, wanted.reply),
    ):
        own = reading.blocks(kind)
        if len(own) > 1:
            return f"there is a second {opening}"
        if is_wanted and not own:
            return f"there is no {opening}"
        if own and not is_wanted:
            return f"there is a {opening}, where none is wanted"
        if own and not own[0].closed:
            return reading.problem if reading.listed else f"{opening} is never closed"
        if own and not text[own[0].start : own[0].end].strip():
            return f"there is nothing between {opening} and {closing}"
    if any(map(reading.opens_calls, reading.blocks("reply"))):
        return f"there is a {CALLS[0]} within the reply"
    if wanted.calls and wanted.reply and reading.parts[0].kind == "reply":
        return f"{REPLY[0]} stands before {CALLS[0]}"
    if reading.listed and reading.problem:
        return reading.problem
    if reading.outside:
        return f"text outside the tags: {_named(text, reading.outside[0])}"
    return ""


def _named(text: str, span: Span) -> str:
    return repr(text[span.start : min(span.end, span.start + 40)])


def _add_outside(reading: Reading, start: int, end: int) -> None:
    reading.outside += _trimmed(reading.text, start, end, "outside")


def _trimmed(text: str, start: int, end: int, part: str) -> list[Span]:
    """What lies between without the white space around it; nothing, if that is all."""
    inner = text[start:end]
    if not (stripped := inner.strip()):
        return []
    start += len(inner) - len(inner.lstrip())
    return [Span(start, start + len(stripped), part)]


def _first_letter(text: str, start: int) -> int:
    """Where the first character that is no white space stands, or the end."""
    return len(text) - len(text[start:].lstrip()) if start < len(text) else len(text)
