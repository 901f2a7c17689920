"""Forms that can be seen: titles, lists, emphasis, sections, JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from creditlib.types import Span
from verifiers.instructions.answer import NOT_AFTER_WORD, NOT_BEFORE_WORD, Answer
from verifiers.instructions.constraint import (
    Finding,
    Positive,
    Text,
    UnverifiableError,
    compare,
    constraint,
    spans,
)
from verifiers.instructions.ifeval._official import official_pattern
from verifiers.instructions.marks import bullets

# Asterisks hug what they mark, and stand outside of words: "2*3*4" and "* a * b" mark nothing.
_EMPHASIS = re.compile(
    rf"{NOT_AFTER_WORD}(?<!\*)(\*{{1,3}})(?![\s*])([^\n*]++)(?<!\s)\1(?!\*){NOT_BEFORE_WORD}"
)
_TITLE = re.compile(r"<<([^<>\n]+)>>")
_OPTIONS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
_BEFORE_OPTION, _STOPS = 24, ".!?:;…。！？：>-–—\n\r"  # a sentence or an introduction ends so
_OPENING = "\"'“”‘’«»*_`#([ \t"
_GOES_ON = re.compile(r"[\"'”’»*_`)\]]*+(?:[^\s\"'”’»*_`)\]]|[^\S\r\n]++[^\W\d_A-Z]|[^\S\r\n]*+[,;:])")
_LETTER_OR_DIGIT = re.compile(r"[^\W_]")
_HEADER = re.compile(r"[\s#>*_\"“'‘(\[-]*")  # markup and quotes before a header


@constraint(
    "detectable_format:number_highlighted_sections",
    "Highlight at least {num_highlights} parts with asterisks, like *this*.",
)
def number_highlighted_sections(answer: Answer, num_highlights: Positive) -> Finding:
    found = [
        Span(*match.span(), "highlight")
        for match in _EMPHASIS.finditer(answer.text)
        if any(map(str.isalnum, match[2]))
    ]
    return _highlights(answer, found, num_highlights)


@number_highlighted_sections.official
def _(answer: Answer, num_highlights: Positive) -> Finding:
    found = [
        Span(*match.span(), "highlight")
        for pattern in (r"\*[^\n*]*\*", r"\*\*[^\n*]*\*\*")
        for match in re.finditer(pattern, answer.text)
        if match[0].strip("*").strip()
    ]
    return _highlights(answer, sorted(found), num_highlights)


@constraint("detectable_format:title", "Give your answer a title in double angular brackets, like <<title>>.")
def title(answer: Answer) -> Finding:
    """Shifted numbers (`x = 1 << 3 >> 1`) are no title."""
    found = [
        Span(*match.span(), "title")
        for match in _TITLE.finditer(answer.text)
        if any(map(str.isalnum, match[1])) and not _is_operator(answer.text, match)
    ]
    return _title(answer, found)


@title.official
def _(answer: Answer) -> Finding:
    """From the first two opening brackets of a line that enclose something to its last two closing ones."""
    found = []
    for line in answer.text.split("\n"):
        start, end = line.find("<<"), line.rfind(">>")
        if 0 <= start <= end - 3 and line[start : end + 2].lstrip("<").rstrip(">").strip():
            found.append(line)
    return Finding(bool(found), f"{len(found)} lines with a title", answer.whole)


@constraint(
    "detectable_format:number_bullet_lists", "Write exactly {num_bullets} bullet points, like * this."
)
def number_bullet_lists(answer: Answer, num_bullets: Positive) -> Finding:
    """Those of `marks.bullets`: rules ("---", "* * *") and code are none."""
    return _bullets(answer, spans(bullets(answer), "bullet"), num_bullets)


@number_bullet_lists.official
def _(answer: Answer, num_bullets: Positive) -> Finding:
    """Lines that begin with "-" or with one "*" and any character behind it. A line break is one, too: the
    next line then belongs to the same point, but may count as one with "-".
    """
    found = []
    at, taken = 0, False
    for line in answer.text.split("\n"):
        said = line.lstrip()
        start, at = at + len(line) - len(said), at + len(line) + 1
        star = not taken and said.startswith("*") and answer.text[start + 1 : start + 2] not in ("", "*")
        taken = star and said == "*"
        if star or said.startswith("-"):
            found.append(Span(start, at - 1, "bullet"))
    return _bullets(answer, found, num_bullets)


@constraint(
    "detectable_format:multiple_sections",
    "Write {num_sections} sections; begin each with {section_spliter} and its number: {section_spliter} 1.",
)
def multiple_sections(answer: Answer, num_sections: Positive, section_spliter: Text) -> Finding:
    """Headers begin a line and have a word behind them; those with the same number count once."""
    if not section_spliter.strip():
        raise UnverifiableError("argument section_spliter is blank")
    header = re.compile(rf"{re.escape(section_spliter.strip())}[^\S\r\n]?#?(\d+)")
    headers = []
    for line in answer.lines:
        start = line.start + _HEADER.match(line.text).end()  # type: ignore[union-attr]
        if match := header.match(answer.text, start):
            headers.append(match)
    ends = [match.start() for match in headers[1:]] + [len(answer.text)]
    found: dict[int, Span] = {}
    for match, end in zip(headers, ends, strict=False):  # no header: one end too many
        if _LETTER_OR_DIGIT.search(answer.text, match.end(), end):
            found.setdefault(int(match[1][:9]), Span(*match.span(), "header"))
    return _sections(answer, list(found.values()), num_sections)


@multiple_sections.official
def _(answer: Answer, num_sections: Positive, section_spliter: Text) -> Finding:
    header = official_pattern(section_spliter, rf"\s?{section_spliter.strip()}\s?\d+\s?")
    found = [Span(*match.span(), "header") for match in header.finditer(answer.text)]
    return _sections(answer, found, num_sections)


@constraint(
    "detectable_format:json_format", "Write all of your answer as JSON; a code fence around it is allowed."
)
def json_format(answer: Answer) -> Finding:
    """An object or an array with something in it, as the standard has it: without NaN and Infinity."""
    return _json(answer, _unfenced(answer.text.strip()), strict=True)


@json_format.official
def _(answer: Answer) -> Finding:
    """Any value, NaN and Infinity too. Where the public checker ends with a RecursionError: not kept."""
    text = answer.text.strip()
    for fence in ("```json", "```Json", "```JSON", "```"):
        text = text.removeprefix(fence)
    return _json(answer, text.removesuffix("```").strip(), strict=False)


@constraint(
    "detectable_format:constrained_response",
    f"Answer with exactly one of these sentences: {' / '.join(_OPTIONS)}",
)
def constrained_response(answer: Answer) -> Finding:
    """The sentence stands for itself: quoted or with an introduction, but in no longer sentence."""
    found = [option for option in _OPTIONS if option in answer.text]
    passed = len(found) == 1 and any(
        _stands_alone(answer.text, *match.span()) for match in re.finditer(re.escape(found[0]), answer.text)
    )
    return _chosen(answer, found, passed)


@constrained_response.official
def _(answer: Answer) -> Finding:
    found = [option for option in _OPTIONS if option in answer.text]
    return _chosen(answer, found, bool(found))


# --------------------------------------------------------------------------- what they share


def _highlights(answer: Answer, found: Sequence[Span], wanted: int) -> Finding:
    passed, reason = compare(len(found), "at least", wanted, "highlighted parts")
    return Finding(passed, reason, tuple(found) or answer.whole)


def _is_operator(text: str, title: re.Match[str]) -> bool:
    before = text[max(0, title.start() - 20) : title.start()]
    if title[1][0].isspace():
        before = before.rstrip(" \t")
    return before[-1:].isalnum() or before[-1:] in tuple(")]_")


def _title(answer: Answer, found: Sequence[Span]) -> Finding:
    return Finding(bool(found), f"{len(found)} titles", tuple(found) or answer.whole)


def _bullets(answer: Answer, found: Sequence[Span], wanted: int) -> Finding:
    reason = f"{len(found)} bullet points, exactly {wanted} wanted"
    return Finding(len(found) == wanted, reason, tuple(found) or answer.whole)


def _sections(answer: Answer, found: Sequence[Span], wanted: int) -> Finding:
    passed, reason = compare(len(found), "at least", wanted, "section headers")
    return Finding(passed, reason, tuple(found) or answer.whole)


def _unfenced(text: str) -> str:
    """What stands between the code fences that `text` may be in."""
    for fence in ("```", "~~~"):
        if len(text) >= 2 * len(fence) and text.startswith(fence) and text.endswith(fence):
            inside = text[len(fence) : -len(fence)].lstrip(" \t")
            return inside[4:] if inside[:4].lower() == "json" else inside
    return text


def _json(answer: Answer, text: str, *, strict: bool) -> Finding:
    def refuse(name: str) -> None:
        raise ValueError(f"{name} is not JSON")

    try:
        value = json.loads(text, parse_constant=refuse, parse_int=float) if strict else json.loads(text)
    except ValueError as error:
        return Finding(False, f"no JSON: {error}", answer.whole)
    except RecursionError:
        return Finding(False, "no JSON: nested too deeply", answer.whole)
    if strict and not isinstance(value, dict | list):
        return Finding(False, "JSON, but neither an object nor an array", answer.whole)
    if strict and not value:
        return Finding(False, "JSON without anything in it", answer.whole)
    return Finding(True, "JSON", answer.whole)


def _stands_alone(text: str, start: int, end: int) -> bool:
    before = text[max(0, start - _BEFORE_OPTION) : start].rstrip(_OPENING)
    return (not before or before[-1] in _STOPS) and not _GOES_ON.match(text, end)


def _chosen(answer: Answer, options: Sequence[str], passed: bool) -> Finding:
    marks = sorted(
        Span(match.start(), match.end(), "option")
        for option in options
        for match in re.finditer(re.escape(option), answer.text)
    )
    return Finding(passed, f"says {len(options)} of the sentences", tuple(marks) or answer.whole)
