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
        ("snake_case", ["snake", "case"]),
        ("many_words_joined_by_underscores", ["many", "words", "joined", "by", "underscores"]),
        ("a-b-c-d-e-f well-to-do", ["a-b-c-d", "e-f", "well-to-do"]),
        ("One two three.And four five.and six", ["One", "two", "three", "And", "four", "five", "and", "six"]),
        ("e.g. the U.S.A. at 5 p.m., a Ph.D.", ["e.g", "the", "U.S.A", "at", "5", "p.m", "a", "Ph.D"]),
        ("i.e.that a.b.cat", ["i.e", "that", "a.b", "cat"]),
        (
            "example.com, main.py, bbc.co.uk and a.b_c@sub.b-c.info.",
            ["example.com", "main.py", "bbc.co.uk", "and", "a.b_c@sub.b-c.info"],
        ),
        ("x.com-pany go.comet", ["x.com", "pany", "go", "comet"]),
        ("2024-05-01 v1.2.3 978-3-16-148410-0 3.14", ["2024-05-01", "v1.2.3", "978-3-16-148410-0", "3.14"]),
        ("a@b@c@d@e&f mother-in-law's", ["a@b@c@d", "e&f", "mother-in-law's"]),
        ("_so_ ____ __init__", ["so", "init"]),
        ("1,000.50 at 10:30, 3/4", ["1,000.50", "at", "10:30", "3/4"]),
        ("don’t, rock'n'roll; AT&T", ["don’t", "rock'n'roll", "AT&T"]),
        ("see https://a.org/b?c=d (or me@b.org)", ["see", "https://a.org/b?c=d", "or", "me@b.org"]),
        ("and/or; word--word; wait...what", ["and", "or", "word", "word", "wait", "what"]),
        ("हिन्दी में लिखो।", ["हिन्दी", "में", "लिखो"]),
        ("e\u0301te\u0301 👨\u200d👩", ["e\u0301te\u0301"]),
        ("שָׁלוֹם عَرَبِيّ", ["שָׁלוֹם", "عَرَبِيّ"]),
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
        ("एक है। दो हैं।", ["एक है।", "दो हैं।"]),
        ("کیا؟ ہاں۔ جی", ["کیا؟", "ہاں۔", "جی"]),
        ("I said no. See no. 5.", ["I said no.", "See no. 5."]),
        ("So do I. Vitamin C. is in it.", ["So do I.", "Vitamin C. is in it."]),
        ("At 5 p.m. we eat, drink, etc. Then we sleep.", ["At 5 p.m. we eat, drink, etc.", "Then we sleep."]),
        ("It was **big.** It was *red*. «Yes.» No", ["It was **big.**", "It was *red*.", "«Yes.»", "No"]),
        ("One two three.And four five.And six.", ["One two three.", "And four five.", "And six."]),
        ("Été.Été là.", ["Été.", "Été là."]),
        (
            "Her Ph.D. is in e.g.Physics; see me@a.Org now.",
            ["Her Ph.D. is in e.g.Physics; see me@a.Org now."],
        ),
        ("See https://a.org/b.Html now. OK", ["See https://a.org/b.Html now.", "OK"]),
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


@pytest.mark.parametrize(
    ("text", "phrase", "found"),
    [
        ("Concatenate a cat, cats, the CAT's _cat_ cat-like", "cat", ["cat", "CAT", "cat", "cat"]),
        ("ice\n cream, ice-cream, nice creams", "Ice cream", ["ice\n cream"]),
        ("I don’t; don't", "don't", ["don’t", "don't"]),
        ("C++ and c+", "c++", ["C++"]),
        ("a.b axb", "a.b", ["a.b"]),
        ("我有一只猫。", "猫", ["猫"]),
        ("किताबें किताब", "किताब", ["किताब"]),  # the first goes on with a vowel sign
        ("İ cat", "cat", ["cat"]),
        ("", "cat", []),
    ],
)
def test_occurrences(text: str, phrase: str, found: list[str]) -> None:
    pieces = Answer(text).occurrences(phrase)
    assert texts(pieces) == found
    assert all(text[piece.start : piece.end] == piece.text for piece in pieces)


def test_nothing_is_looked_for_in_vain() -> None:
    with pytest.raises(ValueError, match="nothing to look for"):
        Answer("cat").occurrences(" ")
