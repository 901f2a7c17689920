"""MulDimIF's constraints of free text: verdicts, what cannot be read, hostile inputs, and the public data."""

from __future__ import annotations

import json
import math
import os
import random
import runpy
import time
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.long_answers import slow
from verifiers.instructions import check
from verifiers.instructions.answer import Answer
from verifiers.instructions.constraint import CONSTRAINTS, UnverifiableError
from verifiers.instructions.muldimif import constraint_id, constraint_of
from verifiers.instructions.muldimif.families import rules_of
from verifiers.instructions.muldimif.ids import PAIRS
from verifiers.instructions.muldimif.layout import Layout
from verifiers.instructions.muldimif.reading import read
from verifiers.instructions.muldimif.wording import Wording

_HERE = runpy.run_path(str(Path(__file__).with_name("muldimif_rows.py")))
ROWS: list[tuple[str, str, str, bool]] = _HERE["ROWS"]
UNREAD: list[tuple[str, str, str]] = _HERE["UNREAD"]
WORDS = "muldimif:length:words"
DATA = os.environ.get("CREDITLIB_DATA")
HOSTILE = ["", " \n\t\r\n", "\x00", "\ud800 lone", "مرحبا بالعالم", "👩\u200d👩\u200d👧 🎉", "a\r\nb\rc"]
TEXTS_OF_EACH_RULE = [
    "At most 3 words and 2 sentences and 2 paragraphs",
    "Each sentence must contain at most 3 words",
    "Each section must contain at least two sentences",
    "Each paragraph must end with a period",
    "Each cell in the table must contain at most 1 word",
    "Each item in the list is described in no more than 2 words",
    "The list should not exceed 2 entries",
    "The answer must use capitalized letters for each word",
    "The answer must be in all uppercase letters",
    "The answer must be in English",
    "The answer must be in Simplified Chinese",
    "Must include the keyword 'tea pot' in each sentence",
    "avoids the keyword 'a'",
    "The essay should avoid using exclamation marks",
    "The answer must end with a period",
    "The answer must start with the identifier 'List:'",
    "The answer must be in full sentences",
    "Include a table with exactly 2 rows",
    "must begin with a level 1 heading titled 'a'",
    "at least two heading levels",
    "Use block quotes, bullet points, and bold",
    "Object nesting levels must not exceed 3",
    "Each XML element must have no more than 1 attribute",
]


def score(id: str, text: str, answer: str) -> float:
    return check(answer, constraints=[{"id": id, "kwargs": {"text": text}}])["0"].score


@pytest.mark.parametrize(("id", "text", "answer", "kept"), ROWS)
def test_verdicts(id: str, text: str, answer: str, kept: bool) -> None:
    found = check(answer, constraints=[{"id": id, "kwargs": {"text": text}}])["0"]
    assert found.score == float(kept), found.reason
    assert found.info == text
    assert all(0 <= own.start < own.end <= len(answer) for own in found.spans)
    assert found.spans or not answer


def test_every_family_has_rows_of_both_verdicts() -> None:
    seen = {(id, kept) for id, _, _, kept in ROWS}
    families = {id: family for pair, family in PAIRS.items() for id in [constraint_id(*pair)]}
    assert {(families[id], kept) for id, kept in seen} == {
        (family, kept) for family in PAIRS.values() for kept in (True, False)
    }
    assert min(Counter(families[id] for id, *_ in ROWS).values()) >= 6


@pytest.mark.parametrize(("id", "text", "reason"), UNREAD)
def test_what_nobody_understands_has_no_verdict(id: str, text: str, reason: str) -> None:
    found = check("Anything.", constraints=[{"id": id, "kwargs": {"text": text}}])["0"]
    assert math.isnan(found.score)
    assert found.flags == ("data:constraint",)
    assert "cannot be read as a rule: " in found.reason
    assert reason in found.reason


def test_ids_of_rows() -> None:
    assert constraint_id("Content", "Keywords: Must include") == "muldimif:content:keywords_must_include"
    assert constraint_id(" json", "OBJECT  nesting levels") == "muldimif:json:object_nesting_levels"
    assert constraint_of(["Length", "Words", "At most 5 words"]) == {
        "id": "muldimif:length:words",
        "kwargs": {"text": "At most 5 words"},
    }
    check("", constraints=[])  # loads the constraints
    assert len(PAIRS) == 36
    assert {constraint_id(*pair) for pair in PAIRS} == {
        id for id in CONSTRAINTS if id.startswith("muldimif:")
    }


def test_there_is_no_official_reading() -> None:
    wanted = {"id": WORDS, "kwargs": {"text": "At most 5 words"}}
    found = check("one", constraints=[wanted], mode="official")["0"]
    assert math.isnan(found.score)
    assert "use mode='sound'" in found.reason


@pytest.mark.parametrize("kwargs", [{}, {"text": ""}, {"text": 3}, {"text": "At most 5 words", "more": 1}])
def test_arguments_must_be_a_text(kwargs: dict[str, object]) -> None:
    assert math.isnan(check("one", constraints=[{"id": WORDS, "kwargs": kwargs}])["0"].score)


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("no more than 5 rows", (None, 5)),
        ("not more than five rows", (None, 5)),
        ("a maximum of 5 rows", (None, 5)),
        ("does not exceed a maximum of 5 rows", (None, 5)),
        ("limited to 5 rows", (None, 5)),
        ("limited to exactly 5 rows", (5, 5)),
        ("a row limit of 5", (None, 5)),
        ("with 5 rows", (5, 5)),
        ("up to 5 rows", (None, 5)),
        ("5 rows or less", (None, 5)),
        ("at least 5 rows", (5, None)),
        ("no fewer than 5 rows", (5, None)),
        ("a minimum of five rows", (5, None)),
        ("5 or more rows", None),
        ("5 rows or more", (5, None)),
        ("more than 5 rows", (6, None)),
        ("exceeding 5 rows", (6, None)),
        ("less than 5 rows", (None, 4)),
        ("between 5 and 10 rows", (5, 10)),
        ("5-10 rows", (5, 10)),
        ("ten to twenty-five rows", (10, 25)),
        ("a range of one hundred to two hundred fifty rows", (100, 250)),
        ("two or three rows", (2, 3)),
        ("about 5 rows", None),
        ("about 5 to 10 rows", None),
        ("at least no more than 5 rows", None),
        ("half of 5 rows", (5, 5)),
        ("a single row", (1, 1)),
    ],
)
def test_counts(text: str, bounds: tuple[int | None, int | None] | None) -> None:
    found = [(own.bounds.low, own.bounds.high) for own in Wording(text).counts]
    assert found == ([] if bounds is None else [bounds])


@pytest.mark.parametrize("text", TEXTS_OF_EACH_RULE)
@pytest.mark.parametrize("answer", HOSTILE, ids=repr)
def test_hostile_answers_are_judged(answer: str, text: str) -> None:
    layout = Layout(Answer(answer))
    for found in [rule.find(layout) for rule in read(text)]:
        assert isinstance(found.passed, bool)
        assert all(0 <= start < end <= len(answer) for start, end, _ in found.spans)


@pytest.mark.usefixtures("no_garbage_collection")
@pytest.mark.parametrize("text", TEXTS_OF_EACH_RULE)
def test_long_answers_are_judged_at_once(text: str) -> None:
    kinds = {rule.kind for rule in read(text)}
    id = next(constraint_id(*pair) for pair, family in PAIRS.items() if family in kinds)
    assert slow({"id": id, "kwargs": {"text": text}}) == []


@pytest.mark.parametrize("answer", ["", " \n\t\r\n"])
def test_an_empty_answer_keeps_nothing(answer: str) -> None:
    for id, text, _, _ in ROWS:
        assert score(id, text, answer) == 0.0, text


def test_random_texts_of_constraints_raise_nothing_else() -> None:
    draw = random.Random(0)
    pieces = [piece for _, text, _, _ in ROWS for piece in text.split()] + [
        "'",
        '"',
        "#",
        "¤",
        "\n",
        ",",
    ]
    for _ in range(1000):
        text = " ".join(draw.choices(pieces, k=draw.randint(1, 30)))
        for family in ("words", "table"):
            try:
                rules = rules_of(family, text)
            except UnverifiableError as problem:
                assert "cannot be read as a rule" in str(problem)
            else:
                assert rules


def test_long_texts_of_constraints_are_read_at_once() -> None:
    for piece in (
        "at most ",
        "1 ",
        "'",
        "' a",
        "of ",
        "each a ",
        "to be ",
        "level 1 ",
        "the a ",
        "1 and ",
        "if a ",
    ):
        start = time.process_time()
        with pytest.raises(UnverifiableError):
            rules_of("words", (piece * 1000)[:1000])
        assert time.process_time() - start < 1.0, piece


@pytest.mark.skipif(DATA is None, reason="CREDITLIB_DATA is not set: MulDimIF's test.json is not at hand")
def test_of_the_public_data_most_is_understood() -> None:
    assert DATA is not None
    data = json.loads((Path(DATA) / "instructions/muldimif/test.json").read_text(encoding="utf-8"))
    wanted = [constraint for row in data for constraint in row["constraints"]]
    assert {(category, subtype) for category, subtype, _ in wanted} == set(PAIRS)
    read: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for category, subtype, text in wanted:
        family = PAIRS[category, subtype]
        total[family] += 1
        try:
            rules_of(family, text)
            read[family] += 1
        except UnverifiableError:
            pass
    assert sum(total.values()) == 4180
    assert sum(read.values()) >= 3770
    least = {"keywords": 0.90, "punctuation": 0.92, "markdown": 0.84, "table": 0.86, "english": 0.91}
    least |= {"words": 0.92, "sentences": 0.93, "paragraphs": 0.87, "json": 0.76, "chinese": 0.9}
    assert {family for family, share in least.items() if read[family] < share * total[family]} == set()
