"""IFBench's counts, ratios and words, as a person reads them; hostile texts in both readings."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pytest

from benchmarks.long_answers import slow
from creditlib.types import Check
from verifiers.instructions.constraint import CONSTRAINTS, Mode
from verifiers.instructions.ifbench._syllables import syllables
from verifiers.instructions.verifier import Job, Judge

KEYWORDS = {
    "keyword1": "one",
    "keyword2": "two",
    "keyword3": "three",
    "keyword4": "five",
    "keyword5": "seven",
}
ARGUMENTS: dict[str, dict[str, Any]] = {  # of each constraint, some that can be checked
    "count:word_count_range": {"min_words": 2.0, "max_words": 5.0},
    "count:unique_word_count": {"N": 2.0},
    "count:conjunctions": {"small_n": 2},
    "count:person_names": {"N": 2},
    "count:numbers": {"N": 2},
    "count:punctuation": {},
    "count:words_japanese": {"N": 2},
    "count:pronouns": {"N": 2},
    "count:keywords_multiple": KEYWORDS,
    "ratio:stop_words": {"percentage": 50},
    "ratio:sentence_type": {},
    "ratio:sentence_balance": {},
    "ratio:overlap": {"reference_text": "a cat sat", "percentage": 50},
    "ratio:sentence_words": {},
    "words:alphabet": {},
    "words:vowel": {},
    "words:consonants": {},
    "words:palindrome": {},
    "words:prime_lengths": {},
    "words:start_verb": {},
    "words:repeats": {"small_n": 2},
    "words:odd_even_syllables": {},
    "words:last_first": {},
    "words:paragraph_last_first": {},
    "words:no_consecutive": {},
    "words:keywords_specific_position": {"keyword": "cat", "n": 2, "m": 2},
    "words:words_position": {"keyword": "cat"},
}
JUDGES: dict[Mode, Judge] = {"sound": Judge("sound")}


def judge(answer: str, id: str, arguments: dict[str, Any] | None = None, mode: Mode = "sound") -> Check:
    given = ARGUMENTS[id] if arguments is None else arguments
    if mode not in JUDGES:
        JUDGES[mode] = Judge(mode)
    return JUDGES[mode](Job(answer, [{"id": id, "kwargs": given}]))[0]


def test_every_constraint_of_the_three_families_is_here() -> None:
    assert set(ARGUMENTS) == {id for id in CONSTRAINTS if id.startswith(("count:", "ratio:", "words:"))}


@pytest.mark.parametrize("id", ARGUMENTS)
@pytest.mark.parametrize("answer", ["", " \n\t ", "...", "!!!", "— — —"])
def test_an_answer_without_a_word_keeps_nothing(id: str, answer: str) -> None:
    assert judge(answer, id).score == 0


KEPT: list[tuple[str, dict[str, Any], str]] = [
    ("count:word_count_range", {"min_words": 0, "max_words": 3}, "one"),
    ("count:word_count_range", {"min_words": 4, "max_words": 4}, "It costs 1,000.50 euros."),
    ("count:unique_word_count", {"N": 3}, "Don't stop, don’t go"),
    ("count:conjunctions", {"small_n": 7}, "For, and, nor... BUT *or* (yet) so!"),
    ("count:person_names", {"N": 3}, "Emma's friend, Mia-Marie and LEO"),
    ("count:numbers", {"N": 6}, "1,000.5 km at 10:30, 1/2 of the 3rd; 10-20, B12, v2.0"),
    ("count:punctuation", {}, "One, two; three: four. Five! Six? Seven?!"),
    ("count:punctuation", {}, "一，二；三：四。五！六？七！？"),
    ("count:words_japanese", {"N": 2}, "I 食べます rice 日々, (very) 学校の!"),
    ("count:words_japanese", {"N": 9}, "今日は学校"),
    ("count:pronouns", {"N": 6}, "I'm sure she/her likes it; everyone's fine, themselves"),
    ("count:pronouns", {"N": 1}, "TELL US NOW"),
    (
        "count:keywords_multiple",
        KEYWORDS,
        "One two-two three three's “three” " + "five. " * 5 + "_seven_ " * 7 + "alone network",
    ),
    ("ratio:stop_words", {"percentage": 50}, "It's late; dogs can't sleep tonight"),
    ("ratio:sentence_type", {}, 'Dr. Who came. "He left." (Did he?)'),
    ("ratio:sentence_type", {}, "他来了。他走了。为什么？"),
    ("ratio:sentence_balance", {}, "# A title\nYes. No! Why?!\nWait… Stop!! What?"),
    ("ratio:overlap", {"reference_text": "abcdef", "percentage": 50}, "abcx"),
    ("ratio:sentence_words", {}, "Dogs run! Cats nap? Owls fly."),
    ("words:alphabet", {}, "Yes, **zebras** are “big-boned”: clearly."),
    ("words:vowel", {}, "See the red\nbird sing on"),
    ("words:consonants", {}, "Strong *myths*, well-known: apt ñandts"),
    (
        "words:palindrome",
        {},
        "level Radar civic; rotor-kayak… kayak refer madam stats, tenet “reviver” “rotor” noon deified",
    ),
    ("words:prime_lengths", {}, "He **saw** it’s café1 — state-of-the-art"),
    ("words:repeats", {"small_n": 2}, "Cat, cat's, CAT; the * the * a *"),
    ("words:odd_even_syllables", {}, "The water **froze**, 2024 maybe"),
    ("words:last_first", {}, "I like “tea.” Tea is *hot!* Hot days end..."),
    ("words:paragraph_last_first", {}, "“Love,” she said, is love!\n\n---\nWar is *war*.\r\n# Word\nThe the"),
    ("words:no_consecutive", {}, "# Big news\nNever go back; éclairs — a treat\nSo"),
    ("words:no_consecutive", {}, "Buy:\n- fresh eggs\n- eggplants\n1. one book\n2) big\nrolls"),
    ("words:keywords_specific_position", {"keyword": " Cat ", "n": 2, "m": 2}, "Hi, Mr. Fox. The *cat* sat."),
    ("words:keywords_specific_position", {"keyword": "in fact", "n": 1, "m": 2}, "It, in fact, is."),
    ("words:words_position", {"keyword": "cat"}, "A “Cat” is no cat... sir!"),
    ("words:words_position", {"keyword": "in fact"}, "So, in fact, I was in fact right."),
]
BROKEN: list[tuple[str, dict[str, Any], str]] = [
    ("count:word_count_range", {"min_words": 0, "max_words": 3}, ""),
    ("count:word_count_range", {"min_words": 3, "max_words": 4}, "one two"),
    ("count:unique_word_count", {"N": 2}, "Cat cat CAT, cat!"),
    ("count:conjunctions", {"small_n": 2}, "android, force, and — andiron"),
    ("count:person_names", {"N": 1}, "grace and stella, Jonathans"),
    ("count:numbers", {"N": 1}, "none, or twenty"),
    ("count:punctuation", {}, "One, two; three: four. Five! Six? Seven!"),
    ("count:punctuation", {}, "It is 3.14, yes; no: why? Go! What?!"),
    ("count:words_japanese", {"N": 2}, "I 学校 go school"),
    ("count:pronouns", {"N": 1}, "The US and IT this which"),
    ("count:keywords_multiple", KEYWORDS, "One two two three three three " + "five " * 5 + "seven " * 6),
    ("ratio:stop_words", {"percentage": 49}, "It's late; dogs can't sleep, isn't"),
    ("ratio:sentence_type", {}, "One. Two. Three. Why?"),
    ("ratio:sentence_balance", {}, "Yes! Why?"),
    ("ratio:overlap", {"reference_text": "abcdef", "percentage": 50}, "abcd"),
    ("ratio:sentence_words", {}, "Dogs run! Cats nap? Dogs fly."),
    ("ratio:sentence_words", {}, "Dogs run! Cats nap? Owls flew."),
    ("words:alphabet", {}, "Apple bear dog"),
    ("words:alphabet", {}, "a"),
    ("words:vowel", {}, "me"),
    ("words:consonants", {}, "strong"),
    ("words:prime_lengths", {}, "aa"),
    ("words:last_first", {}, "Only one sentence."),
    ("words:paragraph_last_first", {}, "word"),
    ("words:paragraph_last_first", {}, "apple\nbear\ncat"),
    ("words:paragraph_last_first", {}, "# apple\n# bear"),
    ("words:vowel", {}, "A big red dog"),
    ("words:vowel", {}, "One.\n\nTwo."),
    ("words:consonants", {}, "strong co-op"),
    ("words:palindrome", {}, "aaaaa bbbbb ccccc ddddd eeeee fffff ggggg hhhhh iiiii jjjjj"),
    ("words:prime_lengths", {}, "it a"),
    ("words:start_verb", {}, "Certainly! Write it."),
    ("words:repeats", {"small_n": 2}, "don't don’t Don't"),
    ("words:odd_even_syllables", {}, "cat dog"),
    ("words:last_first", {}, "I like tea. Coffee is hot."),
    ("words:paragraph_last_first", {}, "Love is love\nWar is peace"),
    ("words:no_consecutive", {}, "Éclairs every day"),
    ("words:no_consecutive", {}, "- tall\ntrees grow"),
    ("words:no_consecutive", {}, "- apple\n- ant\n- art"),
    ("words:no_consecutive", {}, "1. apple\n2. ant\n3. art"),
    ("words:no_consecutive", {}, "apple"),
    ("words:keywords_specific_position", {"keyword": "cat", "n": 3, "m": 1}, "One. Cat cat cat."),
    ("words:keywords_specific_position", {"keyword": "cat", "n": 1, "m": 4}, "One cat sat."),
    ("words:words_position", {"keyword": "cat"}, "The cat sat on the cat."),
    ("words:words_position", {"keyword": "cat"}, "cat"),
]


@pytest.mark.parametrize(("id", "arguments", "answer"), KEPT)
def test_kept(id: str, arguments: dict[str, Any], answer: str) -> None:
    found = judge(answer, id, arguments)
    assert found.score == 1, found.reason


@pytest.mark.parametrize(("id", "arguments", "answer"), BROKEN)
def test_broken(id: str, arguments: dict[str, Any], answer: str) -> None:
    found = judge(answer, id, arguments)
    assert found.score == 0, found.reason


@pytest.mark.parametrize(
    ("answer", "passed"),
    [
        ("Write a poem.", True),
        ("**Imagine** that", True),
        ("Don't worry.", True),
        ("Let's go", True),
        ("Writing helps.", True),
        ("Studies show it", False),
        ("Water the plants.", True),
        ("Water is wet.", False),
        ("Answer: 42", False),
        ("Is it so?", True),
        ("The cat ran.", False),
        ("Sure, here it is", False),
        ("Will Smith is an actor.", False),
        ("Will you come?", True),
        ("May is a month.", False),
        ("May I come?", True),
        ("Left of the house is a tree.", False),
        ("Left the house.", True),
        ("Rose petals fell.", False),
        ("Drew Barrymore acts.", False),
        ("Run is a word.", False),
        ("Running is fun.", True),
    ],
)
def test_a_verb_begins_the_answer(answer: str, passed: bool) -> None:
    assert judge(answer, "words:start_verb").score == passed


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (1, "a the cat strengths made makes asked friend league don't we'll"),
        (
            2,
            "table tables wanted lion being create people's lovely careful isn't it'll would've maybe rhythm",
        ),
        (3, "banana beautiful idea influence area understand state-of-art"),
        (4, "society reality scientific information mechanisms well-intentioned"),
        (5, "communicative continuity imagination"),
    ],
)
def test_syllables(count: int, words: str) -> None:
    assert {word: syllables(word) for word in words.split()} == dict.fromkeys(words.split(), count)


@pytest.mark.parametrize(
    ("id", "arguments", "reason"),
    [
        (
            "count:word_count_range",
            {"min_words": 5, "max_words": 4},
            "min_words is 5, more than max_words, which is 4",
        ),
        ("count:word_count_range", {"min_words": 5}, "argument max_words is missing"),
        (
            "count:conjunctions",
            {"small_n": 8},
            "argument small_n: input should be less than or equal to 7 (found 8)",
        ),
        ("count:person_names", {"N": 51}, "argument N: input should be less than or equal to 50 (found 51)"),
        (
            "count:words_japanese",
            {"N": 0},
            "argument N: input should be greater than or equal to 1 (found 0)",
        ),
        ("count:keywords_multiple", {**KEYWORDS, "keyword2": " "}, "a keyword has no word in it: ' '"),
        (
            "ratio:overlap",
            {"reference_text": "ab", "percentage": 3},
            "reference_text is too short for a trigram",
        ),
        (
            "count:keywords_multiple",
            {"keyword1": "a", "keyword2": "b", "keyword3": "c", "keyword4": "d", "keyword5": "A "},
            "two keywords are the same",
        ),
        ("words:words_position", {"keyword": "?!"}, "a keyword has no word in it: '?!'"),
        (
            "words:keywords_specific_position",
            {"keyword": "a", "n": 0, "m": 1},
            "argument n: input should be greater",
        ),
    ],
)
@pytest.mark.parametrize("mode", ["sound", "official"])
def test_impossible_arguments(id: str, arguments: dict[str, Any], reason: str, mode: Mode) -> None:
    found = judge("anything at all", id, arguments, mode)
    assert math.isnan(found.score)
    assert found.reason.startswith(f"cannot be checked: {reason}")


@pytest.mark.parametrize(
    ("id", "arguments", "answer", "parts"),
    [
        ("count:numbers", {"N": 1}, "It is 3.", ["It is 3."]),
        ("count:keywords_multiple", KEYWORDS, "One Five", ["One", "Five"]),
        ("count:words_japanese", {"N": 2}, "I 食べます rice 日々", ["食べます", "日々"]),
        ("words:palindrome", {}, "a level “radar”", ["level", "radar"]),
        ("words:start_verb", {}, " *Write* it", ["Write"]),
        ("words:last_first", {}, "I like tea. Tea is hot. Bye", ["tea", "Tea", "hot", "Bye"]),
        ("words:paragraph_last_first", {}, "Love is love\nWord", ["Love", "love", "Word"]),
        (
            "words:keywords_specific_position",
            {"keyword": "in fact", "n": 2, "m": 1},
            "No. In fact no.",
            ["In", "fact"],
        ),
        ("words:keywords_specific_position", {"keyword": "a", "n": 2, "m": 9}, "No. In fact.", ["In fact."]),
        ("words:words_position", {"keyword": "cat"}, "A cat is no cat, sir", ["cat", "cat"]),
        ("words:words_position", {"keyword": "cat"}, "A cat sat", ["cat"]),
    ],
)
def test_spans(id: str, arguments: dict[str, Any], answer: str, parts: list[str]) -> None:
    assert [answer[span.start : span.end] for span in judge(answer, id, arguments).spans] == parts


def test_wording() -> None:
    position = {"keyword": "cat", "n": 22, "m": 33}
    told = judge("x", "words:keywords_specific_position", position).info
    assert told == "The 33rd word of the 22nd sentence must be cat."
    assert judge("x", "count:words_japanese", {"N": 11}).info == "Write every 11th word in Japanese."
    assert judge("x", "count:keywords_multiple").info == (
        "Use the word one once, two twice, three three times, five five times, seven seven times; no "
        "more and no less."
    )


def test_the_public_tagger_decides_where_its_data_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from nltk import data
    from nltk.tag.perceptron import PerceptronTagger

    monkeypatch.setattr(data, "path", [str(tmp_path)])
    missing = judge("Write it.", "words:start_verb", mode="official")
    assert math.isnan(missing.score)
    assert "averaged_perceptron_tagger_eng" in missing.reason

    tagger = PerceptronTagger(load=False)
    sentences = [[("Write", "VB"), ("it", "PRP"), (".", ".")], [("Cats", "NNS"), ("run", "VBP"), (".", ".")]]
    tagger.train(sentences * 5, nr_iter=5)
    tagger.save_to_json(lang="eng", loc=str(tmp_path / "taggers" / "averaged_perceptron_tagger_eng"))
    assert judge("Write it.", "words:start_verb", mode="official").score == 1
    assert judge("Cats run.", "words:start_verb", mode="official").score == 0


HOSTILE = (
    "[ ( * _ # . ? ! ?! , ; : - ' \" ’ “ ” … — \n \r \r\n \t \x00 \x1c \x85 \u2028 \ud800 \u200b "
    "\u0301 \u202e a A I é É ß İ ſ ﬁ ² ٣ 1 12 1,0 the and cat isn't Dr. U.S. http://a.b/c 学 々 カ ﾊ 🙂 "
    "👩‍👩‍👧 שלום <think> </think> <stop>"
).split(" ")


def texts() -> list[str]:
    rng = random.Random(7)
    return [
        "".join(rng.choice(HOSTILE) + rng.choice(("", " ")) for _ in range(rng.randint(1, 40)))
        for _ in range(150)
    ]


@pytest.mark.parametrize("mode", ["sound", "official"])
@pytest.mark.parametrize("id", ARGUMENTS)
def test_no_text_breaks_a_checker(id: str, mode: Mode) -> None:
    for answer in texts():
        found = judge(answer, id, mode=mode)
        assert all(0 <= span.start < span.end <= len(answer) for span in found.spans)
        assert found == judge(answer, id, mode=mode) or math.isnan(found.score)


@pytest.mark.usefixtures("no_garbage_collection")
@pytest.mark.parametrize("id", ARGUMENTS)
def test_long_answers_are_judged_at_once(id: str) -> None:
    assert slow({"id": id, "kwargs": ARGUMENTS[id]}) == []


def test_a_limit_of_no_words_is_none() -> None:
    """The official reading says that no answer keeps it, which comes to the same as the public one."""
    found = judge("anything at all", "count:word_count_range", {"min_words": 0, "max_words": 0}, "sound")
    assert math.isnan(found.score) and found.reason == "cannot be checked: no answer has 0 words"
