"""What a bullet point is: one notion for all constraints that ask for some."""

from __future__ import annotations

import re
from collections.abc import Iterator

from verifiers.instructions.answer import Answer, Piece

BULLETS = "-*+•"
_BULLET = re.compile(rf"[{BULLETS}]\s[\W_]*[^\W_]")
_ITEM = re.compile(rf"(?:[{BULLETS}◦‣▪]|\d{{1,9}}[.)])\s+(?=\S)")
_FENCE = re.compile(r"(`{3,}|~{3,})([^`]*)")


def bullets(answer: Answer, marks: str = BULLETS) -> list[Piece]:
    """Lines that are bullet points with one of these marks: outside of blocks of code a mark, white space and
    a text with a letter or digit in it. Emphasis ("*so*"), rules ("* * *") and "*so" are none.
    """
    return [line for line in outside_code(answer) if line.text[0] in marks and _BULLET.match(line.text)]


def items(answer: Answer) -> list[tuple[Piece, int]]:
    """Lines that are items of any list, also numbered ones ("1.", "1)"), and where their texts begin."""
    found = ((line, _ITEM.match(line.text)) for line in outside_code(answer))
    return [(line, line.start + mark.end()) for line, mark in found if mark]


def outside_code(answer: Answer) -> Iterator[Piece]:
    """Lines that are neither in a block of code nor its fences; a fence that is never closed is none."""
    if "```" not in answer.text and "~~~" not in answer.text:
        yield from answer.lines
        return
    opened = ""
    held: list[Piece] = []  # what stands behind the fence that is open
    for line in answer.lines:
        fence = _FENCE.fullmatch(line.text)
        if opened:
            held.append(line)
            if fence and not fence[2] and fence[1][0] == opened[0] and len(fence[1]) >= len(opened):
                opened = ""
                held.clear()
        elif fence:
            opened = fence[1]
        else:
            yield line
    yield from held
