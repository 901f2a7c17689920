"""How a response falls into words, sentences, lines and paragraphs."""

from __future__ import annotations

import pytest

from verifiers.instructions.answer import Answer


def texts(pieces: object) -> list[str]:
    return [piece.text for piece in pieces]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("state-of-the-art isn't 3.14", ["state-of-the-art", "isn't", "3.14"]),
        ("The end.", ["The", "end"]),
        ("你好 world", ["你", "好", "world"]),
        ("** — * !", []),
        ("", []),
        ("naïve café", ["naïve", "café"]),
        ("snake_case", ["snake_case"]),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert texts(Answer(text).words) == words


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        (
            "Dr. Smith paid $3.50 to J. Doe. Then he left.",
            ["Dr. Smith paid $3.50 to J. Doe.", "Then he left."],
        ),
        ("Wait... what?! Yes", ["Wait...", "what?!", "Yes"]),
        ('He said "Go." Then left.', ['He said "Go."', "Then left."]),
        ("# Title\n1. First point\n2. Second.", ["Title", "First point", "Second."]),
        ("一。二！三", ["一。", "二！", "三"]),
        ("...\n---\n***", []),
        ("", []),
    ],
)
def test_sentences(text: str, sentences: list[str]) -> None:
    assert texts(Answer(text).sentences) == sentences


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_lines_and_paragraphs(newline: str) -> None:
    text = newline.join(["", " one ", "two", "", "  ", "three", ""])
    answer = Answer(text)
    assert texts(answer.lines) == ["one", "two", "three"]
    assert texts(answer.paragraphs) == [f"one {newline}two", "three"]
    for piece in (*answer.lines, *answer.paragraphs):
        assert text[piece.start : piece.end] == piece.text


def test_folding_moves_no_character() -> None:
    answer = Answer("İstanbul ABC")  # the first letter becomes two in lower case
    assert len(answer.folded) == len(answer.text)
    assert answer.folded.endswith("abc")
