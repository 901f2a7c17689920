"""Where IFEval's public checker says something else than a person: a test a row.

The rows stand in docs/verifiers/instructions-ifeval.md, too; `python <this file>` prints them for it.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from verifiers.instructions import check
from verifiers.instructions.constraint import CONSTRAINTS

DOCS = Path(__file__).parents[3] / "docs" / "verifiers" / "instructions-ifeval.md"


class Row(NamedTuple):
    id: str
    arguments: dict[str, Any]
    answer: str
    official: bool | None  # None: no verdict, the public code ends with an exception
    sound: bool
    why: str


CAT = {"keywords": ["cat"]}
TWO = {"num_bullets": 2}
ONE = {"num_placeholders": 1}
ROWS = [
    Row("punctuation:no_comma", {}, "红，绿", True, False, "other scripts have commas, too"),
    # keywords
    Row("keywords:existence", CAT, "Concatenate them.", True, False, "part of another word"),
    Row(
        "keywords:existence", {"keywords": ["a.b"]}, "axb", True, False, "a keyword is no regular expression"
    ),
    Row(
        "keywords:existence",
        {"keywords": ["c++"]},
        "I like cats.",
        True,
        False,
        "c++ as an expression is any c",
    ),
    Row(
        "keywords:existence",
        {"keywords": ["(a"]},
        "see (a",
        None,
        True,
        "no regular expression: an exception",
    ),
    Row("keywords:existence", {"keywords": ["don't"]}, "I don’t.", False, True, "another apostrophe"),
    Row(
        "keywords:existence",
        {"keywords": ["ice cream"]},
        "ice\ncream",
        False,
        True,
        "a line break is white space",
    ),
    Row(
        "keywords:frequency",
        {"keyword": "war", "frequency": 2, "relation": "at least"},
        "forward reward",
        True,
        False,
        "parts of other words",
    ),
    Row(
        "keywords:forbidden_words", {"forbidden_words": ["("]}, "a (b)", None, False, "no regular expression"
    ),
    Row(
        "keywords:forbidden_words",
        {"forbidden_words": ["a.c"]},
        "abc",
        False,
        True,
        "no regular expression meant",
    ),
    Row(
        "keywords:forbidden_words", {"forbidden_words": ["cat"]}, "a _cat_", True, False, "emphasis hides it"
    ),
    Row(
        "keywords:letter_frequency",
        {"letter": "#", "let_frequency": 4, "let_relation": "at least"},
        "#a #b #c #d",
        False,
        True,
        "officially a random letter, here what most letters say (keys 1122, 1129)",
    ),
    # language
    Row("language:response_language", {"language": "fr"}, "12345", True, False, "no language at all"),
    Row(
        "language:response_language",
        {"language": "en"},
        "THIS IS GREAT NEWS FOR ALL OF US TODAY",
        False,
        True,
        "langdetect skips words in capitals",
    ),
    Row(
        "language:response_language",
        {"language": "zh"},
        "今天天气很好。",
        False,
        True,
        "langdetect says zh-cn",
    ),
    # length
    Row(
        "length_constraints:number_words",
        {"num_words": 3, "relation": "less than"},
        "state-of-the-art isn't",
        False,
        True,
        "two words, not six",
    ),
    Row(
        "length_constraints:number_words",
        {"num_words": 3, "relation": "less than"},
        "many_words_joined_by_underscores",
        True,
        False,
        "underscores join no words",
    ),
    Row(
        "length_constraints:number_words",
        {"num_words": 5, "relation": "at least"},
        "今天天气很好。",
        False,
        True,
        "Chinese has no spaces: a character counts as a word",
    ),
    Row(
        "length_constraints:number_words",
        {"num_words": 4, "relation": "less than"},
        "हिन्दी में",
        False,
        True,
        "vowel signs end no word",
    ),
    Row(
        "length_constraints:number_sentences",
        {"num_sentences": 3, "relation": "at least"},
        "One\n\nTwo\n\nThree",
        False,
        True,
        "headings and points end with their line",
    ),
    Row(
        "length_constraints:number_sentences",
        {"num_sentences": 2, "relation": "less than"},
        "One two three.And four five.And six.",
        True,
        False,
        "no space behind the full stop",
    ),
    Row(
        "length_constraints:number_sentences",
        {"num_sentences": 2, "relation": "at least"},
        "एक है। दो हैं।",
        False,
        True,
        "other scripts' full stops",
    ),
    Row(
        "length_constraints:number_paragraphs",
        {"num_paragraphs": 1},
        "a ***bold*** word",
        False,
        True,
        "emphasis is no divider",
    ),
    Row(
        "length_constraints:number_paragraphs",
        {"num_paragraphs": 3},
        "a ***bold*** word",
        True,
        False,
        "emphasis is no divider",
    ),
    Row(
        "length_constraints:number_paragraphs",
        {"num_paragraphs": 2},
        "a\n*****\n*****\nb",
        False,
        True,
        "two dividers in a row are one",
    ),
    Row(
        "length_constraints:nth_paragraph_first_word",
        {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "hello"},
        "one\n\n\n\nHello",
        False,
        True,
        "counted without blank paragraphs, looked for among all",
    ),
    Row(
        "length_constraints:nth_paragraph_first_word",
        {"num_paragraphs": 1, "nth_paragraph": 1, "first_word": "it"},
        "It's late.",
        True,
        False,
        'its first word is "it\'s"',
    ),
    Row(
        "length_constraints:nth_paragraph_first_word",
        {"num_paragraphs": 1, "nth_paragraph": 1, "first_word": "it"},
        "**It** is late.",
        False,
        True,
        "markup is no word",
    ),
    Row(
        "length_constraints:nth_paragraph_first_word",
        {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "b"},
        "a\r\n\r\nb",
        False,
        True,
        "CRLF",
    ),
    # content
    Row("detectable_content:number_placeholders", ONE, "see [1]", True, False, "a footnote"),
    Row("detectable_content:number_placeholders", ONE, "see [text](url)", True, False, "a link"),
    Row("detectable_content:number_placeholders", ONE, "x = ['a', 'b']", True, False, "a list of texts"),
    Row("detectable_content:number_placeholders", ONE, "- [ ] milk\n- [x] tea", True, False, "boxes to tick"),
    Row(
        "detectable_content:postscript",
        {"postscript_marker": "P.S."},
        "P.S. hi\nThe answer.",
        True,
        False,
        "it comes after nothing",
    ),
    Row(
        "detectable_content:postscript",
        {"postscript_marker": "P.S."},
        "Hello.\nps: hi",
        False,
        True,
        "a postscript all the same",
    ),
    Row(
        "detectable_content:postscript",
        {"postscript_marker": "P.S."},
        "Hello.\nP.P.S. hi",
        True,
        False,
        "the second one without the first",
    ),
    Row(
        "detectable_content:postscript",
        {"postscript_marker": "P.S."},
        "We sell caps p.s. and hats",
        True,
        False,
        "in the middle of a line",
    ),
    Row(
        "detectable_content:postscript",
        {"postscript_marker": "P.S."},
        "Hello.\nP.S.",
        True,
        False,
        "it says nothing",
    ),
    # format
    Row(
        "detectable_format:number_bullet_lists", TWO, "* a\n* b\n---\nend", False, True, "a rule is no point"
    ),
    Row(
        "detectable_format:number_bullet_lists",
        TWO,
        "* a\n* b\n```\n-x\n```",
        False,
        True,
        "code is no point",
    ),
    Row("detectable_format:number_bullet_lists", TWO, "*Hm* well\n- a", True, False, "emphasis is no point"),
    Row("detectable_format:number_bullet_lists", TWO, "+ a\n+ b", False, True, "markdown's third bullet"),
    Row("detectable_format:number_bullet_lists", TWO, "•a\n• b", False, True, "a bullet as it is printed"),
    Row(
        "detectable_format:number_highlighted_sections",
        {"num_highlights": 1},
        "2*3*4",
        True,
        False,
        "a product",
    ),
    Row(
        "detectable_format:number_highlighted_sections",
        {"num_highlights": 1},
        "* a * b",
        True,
        False,
        "bullets",
    ),
    Row("detectable_format:title", {}, "x = 1 << 3 >> 1", True, False, "shifted numbers"),
    Row("detectable_format:json_format", {}, "42", True, False, "neither an object nor an array"),
    Row("detectable_format:json_format", {}, '{"a": NaN}', True, False, "not JSON"),
    Row("detectable_format:json_format", {}, "```json\n{}\n```", True, False, "nothing in it"),
    Row("detectable_format:json_format", {}, "~~~\n[1]\n~~~", False, True, "another fence"),
    Row(
        "detectable_format:multiple_sections",
        {"section_spliter": "Section", "num_sections": 2},
        "As Section 1 says and Section 2 too",
        True,
        False,
        "no headers",
    ),
    Row(
        "detectable_format:multiple_sections",
        {"section_spliter": "Section", "num_sections": 2},
        "Section 1\na\nSection 1\nb",
        True,
        False,
        "the same section twice",
    ),
    Row(
        "detectable_format:multiple_sections",
        {"section_spliter": "Section", "num_sections": 2},
        "Section 1\n\nSection 2\n",
        True,
        False,
        "headers without a text",
    ),
    Row(
        "detectable_format:constrained_response",
        {},
        "The sentence 'My answer is no.' is false.",
        True,
        False,
        "part of a longer sentence",
    ),
    Row(
        "detectable_format:constrained_response",
        {},
        "My answer is yes. And no, My answer is no.",
        True,
        False,
        "two answers",
    ),
    # combination, start and end
    Row("combination:two_responses", {}, "Yes.\n******\nyes", True, False, "the same answer"),
    Row(
        "combination:two_responses",
        {},
        "Response 1: Yes.\n******\nResponse 2: Yes.",
        True,
        False,
        "the same answer with another label",
    ),
    Row("combination:two_responses", {}, "a\n*******\nb", True, False, "seven asterisks"),
    Row("combination:repeat_prompt", {"prompt_to_repeat": "Say hi."}, '"Say hi." Hi!', False, True, "quoted"),
    Row(
        "combination:repeat_prompt",
        {"prompt_to_repeat": "Say hi."},
        "Say\nhi. Hi!",
        False,
        True,
        "a line break is white space",
    ),
    Row(
        "combination:repeat_prompt",
        {"prompt_to_repeat": "Say hi."},
        "Say hi.",
        True,
        False,
        "no answer behind it",
    ),
    Row(
        "combination:repeat_prompt",
        {"prompt_to_repeat": "Write a poem now"},
        "Write a poem nowadays",
        True,
        False,
        "another word",
    ),
    Row("startend:end_checker", {"end_phrase": "The end"}, "So it was. The end.", False, True, "a full stop"),
    Row("startend:end_checker", {"end_phrase": "The end."}, "So it was. **The end.**", False, True, "markup"),
    Row("startend:end_checker", {"end_phrase": "end"}, "my friend", True, False, "part of another word"),
    Row("startend:quotation", {}, '"a" and "b"', True, False, "two quotes, not one"),
    Row("startend:quotation", {}, '" "', True, False, "nothing in the quotes"),
    Row("startend:quotation", {}, "“All of it.”", False, True, "curly quotes"),
    # case
    Row(
        "change_case:english_capital",
        {},
        "THIS IS GREAT NEWS FOR ALL OF US TODAY",
        False,
        True,
        "langdetect skips words in capitals",
    ),
    Row("change_case:english_lowercase", {}, "i love you", False, True, "too short for langdetect"),
    Row(
        "change_case:capital_word_frequency",
        {"capital_frequency": 1, "capital_relation": "at least"},
        "I know.",
        True,
        False,
        '"I" is written so anyway',
    ),
    Row(
        "change_case:capital_word_frequency",
        {"capital_frequency": 2, "capital_relation": "less than"},
        "NASA/ESA is fine",
        True,
        False,
        "nltk does not cut at a slash",
    ),
]
AGREEING = [  # what both get right, and hostile texts
    ("language:response_language", {"language": "fr"}, "", False),
    ("keywords:existence", CAT, "A cat's eye.", True),
    ("keywords:existence", {"keywords": ["hsm"]}, "", False),
    ("startend:quotation", {}, '"He said "hi" to me."', True),
    ("detectable_format:title", {}, "Here it is:\n<<Poem of Joy>>\nRoses", True),
    ("combination:repeat_prompt", {"prompt_to_repeat": "Write a poem now"}, "Writeapoemnow ok", False),
    ("combination:repeat_prompt", {"prompt_to_repeat": "写一首诗"}, "写一首诗。月亮", True),
    ("combination:repeat_prompt", {"prompt_to_repeat": "Say hi."}, "Say hi.Hi!", True),
    *(
        ("detectable_format:constrained_response", {}, answer, True)
        for answer in (
            "My answer is yes.",
            '"My answer is yes." I am sure.',
            "Well. **My answer is no.**\n",
            "Here it is: 'My answer is no.'",
            "Yes\n\nMy answer is yes.\nbecause",
        )
    ),
    ("combination:two_responses", {}, "one way\n******\nanother", True),
    ("combination:two_responses", {}, "**Answer 1:** one way\n******\n**Answer 2:** another", True),
    ("combination:two_responses", {}, "Option A\n******\nOption B", True),
    ("detectable_format:json_format", {}, "[" * 100_000, False),  # the public code: RecursionError
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "a\n****\nb\n", True),
    ("detectable_format:json_format", {}, '```json\n{"a": [1]}\n```', True),
    ("detectable_format:number_highlighted_sections", {"num_highlights": 2}, "**One:** *two* 3", True),
    ("change_case:english_lowercase", {}, "the quick brown fox went home.", True),
    ("change_case:english_lowercase", {}, "der schnelle braune fuchs ging nach hause.", False),
    ("detectable_content:number_placeholders", {"num_placeholders": 2}, "Dear [First][Last]: hello", True),
    ("detectable_content:number_placeholders", ONE, "Dear [client's name]: hello", True),
]


def verdict(id: str, arguments: dict[str, Any], answer: str, mode: Any) -> bool | None:
    found = check(answer, constraints=[{"id": id, "kwargs": arguments}], mode=mode)["0"]
    return None if math.isnan(found.score) else found.score == 1


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.id}-{row.answer[:30]}")
def test_where_they_differ(row: Row) -> None:
    assert row.official is not row.sound
    assert verdict(row.id, row.arguments, row.answer, "official") is row.official
    assert verdict(row.id, row.arguments, row.answer, "sound") is row.sound


@pytest.mark.parametrize(("id", "arguments", "answer", "kept"), AGREEING)
def test_where_they_agree(id: str, arguments: dict[str, Any], answer: str, kept: bool) -> None:
    assert verdict(id, arguments, answer, "official") is kept
    assert verdict(id, arguments, answer, "sound") is kept


def test_each_constraint_that_differs_has_a_row() -> None:
    check("", constraints=[])  # loads them
    ifeval = {
        id
        for id, own in CONSTRAINTS.items()
        if own.differs and own.sound.__module__.startswith("verifiers.instructions.ifeval")
    }
    assert {row.id for row in ROWS} == ifeval


def table() -> str:
    def cell(value: Any) -> str:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        text = text if len(text) <= 100 else f"{text[:20]}… ({len(text):,} characters)"
        escaped = text.replace("\n", "\\n").replace("\r", "\\r").replace("|", "\\|")
        return f"`` {escaped} ``" if escaped != "{}" else ""

    says = {True: "kept", False: "broken", None: "fails"}
    lines = ["| constraint | arguments | answer | official | sound | why |", "|---|---|---|---|---|---|"]
    for row in ROWS:
        cells = [row.id, cell(row.arguments), cell(row.answer), says[row.official], says[row.sound], row.why]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def test_the_docs_have_these_rows() -> None:
    assert table() in DOCS.read_text()


if __name__ == "__main__":
    print(table())
