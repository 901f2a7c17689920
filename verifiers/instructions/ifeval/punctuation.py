"""What may not be used."""

from __future__ import annotations

import re

from creditlib.types import Span
from verifiers.instructions.answer import Answer
from verifiers.instructions.constraint import Finding, constraint

_COMMA = re.compile("[,，、؛،]")  # full-width, ideographic, Arabic


@constraint("punctuation:no_comma", "Do not use any commas.")
def no_comma(answer: Answer) -> Finding:
    found = tuple(Span(*match.span(), "comma") for match in _COMMA.finditer(answer.text))
    return Finding(not found, f"{len(found)} commas", found or answer.whole)


@no_comma.official
def _(answer: Answer) -> Finding:
    found = tuple(Span(*match.span(), "comma") for match in re.finditer(",", answer.text))
    return Finding(not found, f"{len(found)} commas", found or answer.whole)
