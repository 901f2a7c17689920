"""What may not be used."""

from __future__ import annotations

import re

from creditlib.types import Span
from verifiers.instructions.answer import Answer
from verifiers.instructions.constraint import Finding, constraint

_COMMA = re.compile("[,，、﹐﹑､،]")  # full-width, ideographic, small, half-width, Arabic


@constraint("punctuation:no_comma", "Do not use any commas.")
def no_comma(answer: Answer) -> Finding:
    return _none(answer, _COMMA)


@no_comma.official
def _(answer: Answer) -> Finding:
    return _none(answer, re.compile(","))


def _none(answer: Answer, comma: re.Pattern[str]) -> Finding:
    starts = [match.start() for match in comma.finditer(answer.text)]
    found = tuple(Span(start, start + 1, "comma") for start in starts)
    return Finding(not found, f"{len(found)} commas", found or answer.whole)
