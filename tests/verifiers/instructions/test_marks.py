"""What a bullet point is."""

from __future__ import annotations

import pytest

from verifiers.instructions import marks
from verifiers.instructions.answer import Answer


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("- a\n* b\n  + c\n• d", ["- a", "* b", "+ c", "• d"]),
        ("-a\n*b*\n**c**\n* * *\n---\n-\n- !\n1. a", []),
        ("* *a*\n- **b**\n-\t中", ["* *a*", "- **b**", "-\t中"]),
        ("- a\n```py\n- b\n~~~\n- c\n```\n- d", ["- a", "- d"]),
        ("````\n- a\n```\n- b\n````\n- c", ["- c"]),
        ("- a\n```\n- b", ["- a", "- b"]),
        ("``` so ```\n- a\n``` so ```", ["- a"]),
        ("•a\n◦ b\n▪ c\n‣", ["•a", "◦ b", "▪ c"]),
        ("```markdown\n- a\n```\n- b\n```\n- c\n```\n- d", ["- a", "- b", "- d"]),
    ],
)
def test_bullets(text: str, found: list[str]) -> None:
    assert [line.text for line in marks.bullets(Answer(text))] == found


def test_only_those_with_the_marks_that_were_asked_for() -> None:
    assert [line.text for line in marks.bullets(Answer("- a\n* b\n+ c"), "*+")] == ["* b", "+ c"]


def test_headings_stand_outside_of_code() -> None:
    text = "# a\n```\n# b\n```\n**c**\n~~~\n# d"
    assert [line.text for line in marks.headings(Answer(text))] == ["# a", "**c**", "# d"]


def test_what_lines_are() -> None:
    assert marks.code(Answer("a\n```\nb\n```\nc\n~~~\nd")) == ["", "fence", "code", "fence", "", "fence", ""]


def test_items_are_numbered_too() -> None:
    text = "- a\n1. b\n2)  c\n◦ d\n1984 was\n3.5 km"
    assert [text[start : line.end] for line, start in marks.items(Answer(text))] == ["a", "b", "c", "d"]
