"""What a bullet point, a heading and a block of code are: one notion for all sound readings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from verifiers.instructions.answer import Answer, Piece

BULLETS = "-*+•◦‣▪"
_MARK = r"(?:[-*+]\s|[•◦‣▪])"  # those that are nothing else need no space
_BULLET = re.compile(rf"{_MARK}[\W_]*[^\W_]")
_ITEM = re.compile(rf"(?:{_MARK}\s*|\d{{1,9}}[.)]\s+)(?=\S)")
_FENCE = re.compile(r"(`{3,}|~{3,})\s*([^`]*)")
HEADING = re.compile(r"(#{1,6})\s+(\S.*)")  # Markdown's, with its level and its text
_TITLE = re.compile(
    rf"{HEADING.pattern}|<h[1-6]\b|\*\*[^*]+\*\*:?$|__[^_]+__:?$|Section\s+\w+\b[^.!?]{{0,80}}$"
)
_TITLE_MARKS = ("#", "**", "__", "<h", "Section")


def bullets(answer: Answer, marks: str = BULLETS) -> list[Piece]:
    """Lines that are bullet points with one of these marks: outside of blocks of code a mark, white space and
    a text with a letter or digit in it; "•" and its like need no white space. Emphasis ("*so*"), rules
    ("* * *") and "*so" are none.
    """
    return [line for line in outside_code(answer) if line.text[0] in marks and _BULLET.match(line.text)]


def items(answer: Answer) -> list[tuple[Piece, int]]:
    """Lines that are items of any list, also numbered ones ("1.", "1)"), and where their texts begin."""
    found = ((line, _ITEM.match(line.text)) for line in outside_code(answer) if not line.text[0].isalpha())
    return [(line, line.start + mark.end()) for line, mark in found if mark]


def headings(answer: Answer) -> list[Piece]:
    """Lines outside of blocks of code that are headings: "# …", HTML's, a line in bold, "Section 2"."""
    if not any(mark in answer.text for mark in _TITLE_MARKS):
        return []
    return [line for line in outside_code(answer) if _TITLE.match(line.text)]


def outside_code(answer: Answer) -> Iterator[Piece]:
    """Lines that are neither in a block of code nor its fences."""
    return (line for line, what in zip(answer.lines, code(answer), strict=True) if not what)


def code(answer: Answer) -> list[Literal["", "fence", "code"]]:
    """What each line is. A fence that is never closed opens no block; one that says "markdown" is wrapped
    around text.
    """
    if "```" not in answer.text and "~~~" not in answer.text:
        return [""] * len(answer.lines)
    found: list[Literal["", "fence", "code"]] = []
    opened = wrapped = ""
    begin = 0  # of the block that is open
    for line in answer.lines:
        mark = _FENCE.fullmatch(line.text)
        if opened:
            found.append("fence" if mark and _closes(mark, opened) else "code")
            opened = "" if found[-1] == "fence" else opened
        elif mark is None:
            found.append("")
        else:
            found.append("fence")
            if mark[2].lower() in ("markdown", "md"):
                wrapped = mark[1]
            elif wrapped and _closes(mark, wrapped):
                wrapped = ""
            else:
                opened, begin = mark[1], len(found)
    if opened:
        found[begin:] = [""] * (len(found) - begin)
    return found


def fence(line: Piece) -> bool:
    """Whether a line may begin or end a block of code."""
    return _FENCE.fullmatch(line.text) is not None


def _closes(mark: re.Match[str], opened: str) -> bool:
    return not mark[2] and mark[1].startswith(opened)
