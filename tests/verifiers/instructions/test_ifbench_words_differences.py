"""Where a person and IFBench's public code differ on counts, ratios and words: one row, one test. The
same rows stand in docs/verifiers/instructions-ifbench-words.md.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from verifiers.instructions import check
from verifiers.instructions.constraint import CONSTRAINTS

DOC = Path(__file__).parents[3] / "docs" / "verifiers" / "instructions-ifbench-words.md"
KEYWORDS = {"keyword1": "art", "keyword2": "b", "keyword3": "c", "keyword4": "d", "keyword5": "e"}


class Row(NamedTuple):
    id: str
    arguments: dict[str, Any]
    answer: str
    official: bool
    sound: bool
    why: str


ROWS = [
    Row(
        "count:word_count_range",
        {"min_words": 3, "max_words": 3},
        "State-of-the-art isn't hard.",
        False,
        True,
        "hyphens and apostrophes cut words: 7",
    ),
    Row(
        "count:word_count_range",
        {"min_words": 4, "max_words": 4},
        "你好世界",
        False,
        True,
        "a text without spaces is one word",
    ),
    Row("count:unique_word_count", {"N": 3}, "one — two", True, False, "a dash counts as a word"),
    Row("count:unique_word_count", {"N": 2}, "it “it”", True, False, "curly quotes make another word"),
    Row(
        "count:conjunctions",
        {"small_n": 3},
        "and And and,",
        True,
        False,
        "three spellings of one conjunction",
    ),
    Row("count:person_names", {"N": 1}, "We flew to Miami.", True, False, "Mia is in Miami"),
    Row("count:person_names", {"N": 2}, "Leonard likes Avalon.", True, False, "Leo and Ava are in them"),
    Row("count:person_names", {"N": 1}, "EMMA came.", False, True, "all in capitals"),
    Row("count:numbers", {"N": 2}, "Pages 10-20.", False, True, "punctuation is dropped: 1020 is one number"),
    Row("count:numbers", {"N": 0}, "Vitamin B12 helps.", False, True, "part of a name"),
    Row(
        "count:punctuation",
        {},
        "Well, really?! Yes: no?! It; is.",
        True,
        False,
        "a second interrobang counts as ? and !",
    ),
    Row("count:punctuation", {}, "⁉ a. b, c! d? e; f:", False, True, "an interrobang in one character"),
    Row("count:words_japanese", {"N": 5}, "Only three words.", True, False, "there is no fifth word"),
    Row("count:words_japanese", {"N": 2}, "one 2", True, False, "a number passes for Japanese"),
    Row(
        "count:words_japanese",
        {"N": 1},
        "学校abc",
        True,
        False,
        "one Japanese character is enough",
    ),
    Row("count:words_japanese", {"N": 2}, "I — 学校", False, True, "a dash counts as a word"),
    Row("count:pronouns", {"N": 1}, "I'm here.", False, True, "I'm becomes im"),
    Row("count:pronouns", {"N": 1}, "The US won.", True, False, "US becomes us"),
    Row("count:pronouns", {"N": 1}, "Everyone won.", False, True, "only personal pronouns are listed"),
    Row(
        "count:keywords_multiple",
        KEYWORDS,
        "start b b c c c d d d d d e e e e e e e",
        True,
        False,
        "art is found in start",
    ),
    Row(
        "count:keywords_multiple",
        KEYWORDS,
        "art b b c c c d d d d d e e e e e e e and",
        False,
        True,
        "d is found in and",
    ),
    Row(
        "ratio:stop_words",
        {"percentage": 40},
        "Cats aren't dogs.",
        False,
        True,
        "aren't is two stop words, aren and t",
    ),
    Row("ratio:sentence_type", {}, "Hello there", True, False, "no question and no statement: 0 = 2 x 0"),
    Row(
        "ratio:sentence_type",
        {},
        "See a.co/b.html now. Fine. Why?",
        False,
        True,
        "full stops within an address end sentences",
    ),
    Row("ratio:sentence_balance", {}, "Hello there", True, False, "none of each: 0 = 0 = 0"),
    Row("ratio:sentence_balance", {}, "Really?! Stop! Yes.", False, True, "?! ends two sentences"),
    Row("ratio:sentence_words", {}, "Cat. Cat. Cat.", True, False, "repeated words are not looked for"),
    Row("ratio:sentence_words", {}, "Go on\nDo it\nBe ok", False, True, "lines do not end sentences"),
    Row("words:alphabet", {}, "“Apple bear”", False, True, "a curly quote is the first letter"),
    Row("words:alphabet", {}, "Apple — bear", False, True, "a dash counts as a word"),
    Row("words:alphabet", {}, "Été fig", False, True, "É is no letter"),
    Row("words:vowel", {}, "Ten men\nmet.", False, True, "each line is a paragraph"),
    Row("words:alphabet", {}, "a", True, False, "one word is in order"),
    Row("words:vowel", {}, "me", True, False, "one word is a paragraph"),
    Row("words:vowel", {}, "!!!", True, False, "no words"),
    Row("words:vowel", {}, "é a i o", True, False, "é is no e"),
    Row("words:consonants", {}, "strong", True, False, "one word is enough"),
    Row("words:consonants", {}, "strong — myth", False, True, "a dash counts as a word"),
    Row(
        "words:palindrome",
        {},
        "level level level level level level level level level level",
        True,
        False,
        "one palindrome, ten times",
    ),
    Row(
        "words:palindrome",
        {},
        "10101 20202 30303 40404 50505 60606 70707 80808 90909 11011",
        True,
        False,
        "numbers are no words",
    ),
    Row(
        "words:palindrome",
        {},
        "“level” “radar” “civic” “rotor” “kayak” “refer” “madam” “stats” “tenet” “reviver”",
        False,
        True,
        "curly quotes are parts of words",
    ),
    Row("words:prime_lengths", {}, "don’t run", True, False, "a curly apostrophe is a letter"),
    Row("words:prime_lengths", {}, "an — ox", False, True, "a dash counts as a word"),
    Row("words:prime_lengths", {}, "aa", True, False, "one word is enough"),
    Row("words:prime_lengths", {}, "!!!", True, False, "no words"),
    Row("words:repeats", {"small_n": 2}, "a — b — c — d", False, True, "a dash counts as a word"),
    Row("words:repeats", {"small_n": 1}, "day “day”", True, False, "curly quotes make another word"),
    Row("words:repeats", {"small_n": 1}, "!!!", True, False, "no words"),
    Row("words:repeats", {"small_n": 2}, "Tea.", True, False, "one word repeats none"),
    Row("words:odd_even_syllables", {}, "using trees", False, True, "syllapy gives using one syllable"),
    Row("words:odd_even_syllables", {}, "cat 2024 dog", True, False, "numbers have no syllables"),
    Row("words:odd_even_syllables", {}, "cat", True, False, "one word does not alternate"),
    Row(
        "words:last_first",
        {},
        "Love is all!! All is well.",
        False,
        True,
        "!! makes a sentence without a word: IndexError",
    ),
    Row("words:last_first", {}, "I like tea\nMilk is hot.", True, False, "lines do not end sentences"),
    Row("words:last_first", {}, "Only one sentence.", True, False, "one sentence has none before it"),
    Row("words:last_first", {}, "...", True, False, "no words"),
    Row(
        "words:paragraph_last_first", {}, "Love, and more love.", False, True, "the comma is part of the word"
    ),
    Row("words:paragraph_last_first", {}, "word", True, False, "one word begins and ends it"),
    Row(
        "words:paragraph_last_first",
        {},
        "Love is love\n***\nWar is war",
        False,
        True,
        "a dividing line is a paragraph",
    ),
    Row(
        "words:no_consecutive",
        {},
        "# Cats\nCold days",
        False,
        True,
        "a heading and the text below it are read as one",
    ),
    Row(
        "words:no_consecutive", {}, "# Big cats\n# Cold days", False, False, "nothing but headings is a text"
    ),
    Row("words:no_consecutive", {}, "**Big dogs eat**", True, True, "as is a sentence in bold"),
    Row("words:no_consecutive", {}, "apple", True, False, "one word follows no other"),
    Row("words:no_consecutive", {}, "1. Art deco\n2. Ants", True, True, "numbers stand between the words"),
    Row("words:no_consecutive", {}, "“apple “box", False, True, "the quotes are their first letters"),
    Row("words:no_consecutive", {}, "!!!", True, False, "no words"),
    Row(
        "words:keywords_specific_position",
        {"keyword": "giggle", "n": 1, "m": 2},
        "Well, giggle.",
        False,
        True,
        "the comma is a word",
    ),
    Row(
        "words:keywords_specific_position",
        {"keyword": "giggle", "n": 1, "m": 1},
        "Giggle now.",
        False,
        True,
        "case counts",
    ),
    Row(
        "words:words_position",
        {"keyword": "vibrant"},
        "A vibrant and vibrant end.",
        False,
        True,
        "the full stop is a word",
    ),
    Row(
        "words:words_position",
        {"keyword": "vibrant"},
        "A vibrant vibrant big vibrant.",
        True,
        False,
        "likewise",
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.id}-{row.answer[:20]!r}")
def test_each_row_is_as_written(row: Row) -> None:
    wanted = [{"id": row.id, "kwargs": row.arguments}]
    assert check(row.answer, constraints=wanted)["0"].score == row.sound
    if row.id == "words:odd_even_syllables":
        pytest.importorskip("syllapy", reason="not installed: pip install 'creditlib[instructions]'")
    assert check(row.answer, constraints=wanted, mode="official")["0"].score == row.official


def test_each_official_reading_has_a_row() -> None:
    differing = {
        id for id, own in CONSTRAINTS.items() if own.differs and id.startswith(("count:", "ratio:", "words:"))
    }
    assert {row.id for row in ROWS} == differing - {
        "words:start_verb"
    }  # whose official reading lacks its data


def line(row: Row) -> str:
    """A row of the document's table."""
    arguments = ", ".join(f"{name}={value}" for name, value in row.arguments.items()) or " "
    shown = repr(row.answer)[1:-1].replace("\\'", "'").replace("|", "\\|")
    verdicts = ("yes" if passed else "no" for passed in (row.official, row.sound))
    return f"| {row.id} | {arguments} | `{shown}` | {' | '.join(verdicts)} | {row.why} |"


def test_the_document_has_these_rows() -> None:
    _, _, section = DOC.read_text(encoding="utf-8").partition("## Where a person says something else")
    table = [text for text in section.splitlines() if text.startswith("|")][2:]
    assert table == [line(row) for row in ROWS]
