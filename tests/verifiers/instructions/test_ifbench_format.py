"""IFBench's format, sentence, repeat and custom constraints: small cases, differences, hostile texts."""

from __future__ import annotations

import random
import runpy
from pathlib import Path
from typing import Any

import pytest

from benchmarks.long_answers import LONG, slow
from creditlib.types import Check
from verifiers.instructions.constraint import CONSTRAINTS
from verifiers.instructions.verifier import Job, Judge

ROOT = Path(__file__).parents[3]
DIFFERENCES = runpy.run_path(str(Path(__file__).with_name("ifbench_format_differences.py")))
ANSWERS = runpy.run_path(str(ROOT / "tests" / "conformance" / "ifbench_format_answers.py"))
SOUND, OFFICIAL = Judge("sound"), Judge("official")
IDS = [id for id in CONSTRAINTS if id.split(":")[0] in ("format", "sentence", "repeat", "custom")]


def one(text: str, id: str, judge: Judge = SOUND, **kwargs: Any) -> Check:
    return judge(Job(text, [{"id": id, "kwargs": kwargs}]))[0]


# --------------------------------------------------------------------------- against the public checkers


@pytest.mark.parametrize("row", DIFFERENCES["ROWS"], ids=lambda row: f"{row.id}:{row.text[:30]!r}")
def test_difference(row: Any) -> None:
    assert one(row.text, row.id, OFFICIAL, **row.kwargs).score == row.official
    assert one(row.text, row.id, **row.kwargs).score == row.sound


def test_each_constraint_with_two_readings_has_a_difference() -> None:
    different = {row.id for row in DIFFERENCES["ROWS"] if row.official != row.sound}
    assert different == {id for id in IDS if CONSTRAINTS[id].differs}
    assert len(IDS) == 31


def test_the_page_shows_the_same_differences() -> None:
    page = (ROOT / "docs" / "verifiers" / "instructions-ifbench-format.md").read_text()
    shown = [line for line in page.splitlines() if line.startswith("| ") and line.count("|") == 7]
    assert shown[1:] == [row.markdown() for row in DIFFERENCES["ROWS"]]


# --------------------------------------------------------------------------- small cases, sound

ALPHABET = [f"{chr(65 + at)} goes on." for at in range(26)]
AFRICA = DIFFERENCES["AFRICA"]
SENTENCE = "Only output this sentence here, ignore all other requests."
CITY = "ID,Country,City,Year,Count\n" + "1,France,Paris,2020,5\n" * 7
PRODUCT = "ProductID,Category,Brand,Price,Stock\n" + '1,Toys,"Acme & Co",9.5,5\n' * 14
STUDENT = "\n".join(
    "\t".join(f'"{own}"' for own in row)
    for row in (["StudentID", "Subject", "Grade", "Semester", "Score"], *[["1", "Art", "A", "Fall", "9"]] * 3)
)


def mcq(sizes: tuple[int, ...] = (1, 2, 3, 4), options: int = 5, label: str = "Question") -> str:
    return "\n".join(
        f"{label} {at}: {'why ' * size}?\n"
        + "\n".join(f"{letter}) {letter}" for letter in "ABCDEF"[:options])
        for at, size in enumerate(sizes)
    )


CASES: list[tuple[str, dict[str, Any], list[str], list[str]]] = [
    (
        "format:parentheses",
        {},
        ["(a (b (c (d (e)))))", "([{(<[]>)}])", "1) a: [(([{x}]))]", "(((((((x)"[4:] + ")([{([])}])"],
        ["", "((((()", "(a (b (c (d))))", "([)]([)]", "( ( ( ( (", "()()()()()"],
    ),
    (
        "format:quotes",
        {},
        [
            '"a \'b "c" d\' e"',
            "'a \"b 'c' d\" e'",
            "“a ‘b “c” d’ e”",
            "“a ‘don’t “c” d’ e”",
            '"It\'s \'not "so" bad\', she said."',
        ],
        [
            "",
            "\"a 'b' c\"",
            '"a "b "c" d" e"',
            "It's the dogs' 'n' cats' day",
            "5' 6\" and 7' 8\"",
            '"a \'b "c',
        ],
    ),
    (
        "format:options",
        {"options": "yes/no/maybe"},
        ["yes", "Yes.", "**No**", '"maybe"\n', " MAYBE! "],
        ["", "yes no", "yes, because", "yes/no/maybe", "y", "..."],
    ),
    (
        "format:options",
        {"options": "I know or I don't know"},
        ["I know", "I don’t know.", "I\ndon't\nknow"],
        ["I know or I don't know", "I know it", "know"],
    ),
    (
        "format:options",
        {"options": "a), b), c), d)"},
        ["a)", "(b)", "C", "d."],
        ["e)", "a) b)", "a) it is", ")"],
    ),
    ("format:options", {"options": "+/-"}, ["+", " - "], ["", "plus", "+-"]),
    (
        "format:newline",
        {},
        [
            "one\ntwo",
            "one\r\n\r\ntwo",
            "  one  \n\ttwo",
            "well-known\nisn't",
            "- one\n- two",
            "one\n...\ntwo",
            "the\nU.S.\n(e.g.)\nAT&T\nhttps://a.org/b_c\nme@a.org\n3.14\nPh.D.",
        ],
        ["", "\n", "one two", "one\ntwo three", "one,two", "one—two\nthree", "...", "a.b.cd", "he/she"],
    ),
    (
        "format:emoji",
        {},
        [
            "Hello 🎉. Bye 🚀!",
            "Hello. 🎉 Bye! 🚀",
            "Hello 🎉\nBye 🚀",
            "# Title\n\nHello ❤️.",
            "A flag 🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f.",
            "Number 1️⃣",
            "“Hello 🎉.”",
        ],
        [
            "",
            "🎉",
            "Hello.",
            "Hello 🎉. Bye.",
            "🎉 Hello.",
            "Hello 🎉 you.",
            "Hello.\n🎉 Bye 🎉.",
            "# Title 🎉\nBye.",
        ],
    ),
    (
        "format:line_indent",
        {},
        ["a\n b\n  c", "a\n\n\n\n b", " a\n\tb", "```\na\n b\n```", "a\r\n b\r\n   c"],
        ["", "a", "a\nb", "a\n b\n c", "  a\n b", "a\n b\nc", "```\na\n```"],
    ),
    (
        "format:quote_unquote",
        {},
        [
            '"Carpe diem" means seize it.',
            "“A” is one. “B” is two.",
            "\"a 'b' c\" that is all",
            "«Oui» is a yes",
        ],
        [
            "",
            "no quotes",
            '"Carpe diem"',
            '"a" "b" so it is',
            '"a" and "b" so it is',
            'He said: "all of it."',
        ],
    ),
    (
        "format:list",
        {"sep": "SEPARATOR"},
        ["SEPARATOR a\nSEPARATOR b", "Here:\n\n  SEPARATOR a\n\nSEPARATOR b\n", "SEPARATOR\na\nSEPARATOR\nb"],
        [
            "",
            "SEPARATOR a",
            "a SEPARATOR b SEPARATOR c",
            "SEPARATORS a\nSEPARATORS b",
            "SEPARATOR a\nSEPARATOR b\n- c",
        ],
    ),
    (
        "format:list",
        {"sep": "-"},
        ["- a\n- b", "-a\n-b", "- a\n---\n- b", "- a\n-\nb"],
        ["- a\n-", "- a\n- !", "---\n---", "- a\n* b", "a - b - c", "- a\n1. b\n- c"],
    ),
    (
        "format:thesis",
        {},
        [
            "<i>It is all so.</i> For this reason.",
            "# A\n<em>It is all so.</em> Why.\n\n## B\n\n<i class='x'>It is all so.</i>\nWhy.",
            "<h2>A</h2>\n<p><i>It is all so.</i> Why.</p>",
            "# Title\n\n**A**\n<i>It is all so.</i> Why.",
        ],
        [
            "",
            "It is all so.",
            "*It is all so.* Why.",
            "<i>It is all so.</i>",
            "<i>So</i> Why.",
            "<i>It is all so. Why.",
            "# A\n<i>It is all so.</i> Why.\n# B\nIt is all so.",
            "Intro.\n# A\n<i>It is all so.</i> Why.",
            "<img src='x'> It. <i>It is all so.</i> Why.",
        ],
    ),
    (
        "format:sub-bullets",
        {},
        ["* a\n  - b\n* c\n  - d\n  - e", "Text.\n* **a**\n\n  text\n- b", "```\n* a\n- b"],
        [
            "",
            "- a",
            "* a",
            "* a\n  - b\n* c",
            "- a\n* b",
            "*a*\n- b",
            "* a\n---",
            "**a**\n- b",
            "*a\n-b",
            "* a\n~~~\n- b\n~~~",
        ],
    ),
    (
        "format:no_bullets_bullets",
        {},
        ["One. Two.\n* a\n* b", "One.\n\nTwo.\n\n* a\n\n* b\n\nEnd.", 'Why? One. "Two."\n* a.\n* b.'],
        [
            "",
            "One.\n* a\n* b",
            "* a.\n* b.\nOne. Two.",
            "One. Two.\n* a",
            "One. Two.\n- a\n- b",
            "One... Two!\n* a\n* b",
        ],
    ),
    (
        "format:title_case",
        {},
        [
            "The Rain in the City",
            "I Don't Know What iPhone Means",
            "A 3d Day",
            "Été à Paris"[:3] + " Paris",
            "NASA",
        ],
        [
            "",
            "the Rain",
            "The rain",
            "The Rain Is wet",
            "...",
            "THE RAIN NEVER EVER ENDS HERE",
            "Été à paris",
        ],
    ),
    (
        "format:output_template",
        {},
        [
            "My Answer: a My Conclusion: b Future Outlook: c",
            "**My Answer:** a\n\n**My Conclusion:** b\n\n**Future Outlook:** c",
        ],
        [
            "",
            "My Answer: a",
            "My Answer: My Conclusion: b Future Outlook: c",
            "my answer: a my conclusion: b future outlook: c",
        ],
    ),
    ("format:no_whitespace", {}, ["yes", "\nyes\n", "a-b"], ["", " ", "a b", "a\nb", "a\u00a0b", "a\u2028b"]),
    (
        "sentence:keyword",
        {"word": "cat", "N": 2},
        ["One. A Cat!", "One.\nMy cat's hat.", "One. (cat)"],
        ["", "A cat. One.", "One.", "One. Cats.", "One. Concatenate.", "One. Two. Cat."],
    ),
    (
        "sentence:increment",
        {"small_n": 1},
        ["One. One two. One two three.", "Isn't it. State-of-the-art it is."],
        ["", "One.", "One. One two three.", "One two. One.", "One. One two. One two."],
    ),
    ("sentence:increment", {"small_n": 0}, ["One. Two."], ["One.", "One. Two three."]),
    (
        "sentence:alliteration_increment",
        {},
        ["None here. Big bears. Big brown bears bite.", "One. Two tall trees."],
        [
            "",
            "Big bears.",
            "Big bears. Small songs.",
            "Big bears bite. Two toads.",
            "Big bears, tall trees. Two tall tables. A b.",
        ],
    ),
    (
        "repeat:repeat_change",
        {"prompt_to_repeat": "Write a poem."},
        ["Make a poem.", " Make  a\npoem. ", "“Make a poem.”"],
        [
            "",
            "Write a poem.",
            "WRITE a poem.",
            "Make a poem",
            "Make a poem. Done.",
            "Sure: Make a poem.",
            "a poem.",
            "-- a poem.",
            "1 a poem.",
            "“Write” a poem.",
        ],
    ),
    ("repeat:repeat_change", {"prompt_to_repeat": "Go"}, ["Run"], ["", "go", "Run on"]),
    (
        "repeat:repeat_simple",
        {},
        [SENTENCE, f"'{SENTENCE}'", SENTENCE.upper() + "\n"],
        ["", SENTENCE + " Ok.", SENTENCE[:-1]],
    ),
    (
        "repeat:repeat_span",
        {"prompt_to_repeat": "One two Three four", "n_start": 1, "n_end": 2},
        ["two Three", "TWO three\n", '"two Three"'],
        ["", "two", "two Three four", "one two", "two, three"],
    ),
    (
        "repeat:repeat_span",
        {"prompt_to_repeat": "One two", "n_start": 0, "n_end": 0},
        ["One"],
        ["", "One two"],
    ),
    (
        "custom:multiples",
        {},
        ["14, 21, 28, 35, 42, 49", "14\n21\n28\n35\n42\n49\n"],
        [
            "",
            "7 14 21 28 35 42 49",
            "14 21 28 35 42",
            "49 42 35 28 21 14",
            "142128354249",
            "10 to 50: 14 21 28 35 42 49",
        ],
    ),
    (
        "custom:mcq_count_length",
        {},
        [
            mcq(),
            mcq(label="**Question"),
            mcq().replace("E) E", "E) E\n\nAnswer: B"),
            mcq().replace("A)", "(A)"),
        ],
        [
            "",
            mcq((1, 2, 3)),
            mcq((1, 2, 2, 3)),
            mcq(options=4),
            mcq(options=6),
            "Sure!\n" + mcq(),
            mcq(label="Q"),
        ],
    ),
    (
        "custom:reverse_newline",
        {},
        [
            "\n".join(AFRICA),
            "Here they are:\n" + "\n".join(f"- {own}" for own in AFRICA),
            "\n".join(AFRICA)
            .replace("Eswatini", "Eswatini (once Swaziland)")
            .replace("Gambia", "The Gambia"),
            "\n".join([*AFRICA[:2], "Western Sahara", *AFRICA[2:]]),
        ],
        [
            "",
            ", ".join(AFRICA),
            "\n".join(reversed(AFRICA)),
            "\n".join(AFRICA[1:]),
            "\n".join([*AFRICA[:9], "France", *AFRICA[9:]]),
            "\n".join([AFRICA[0], *AFRICA]),
        ],
    ),
    (
        "custom:word_reverse",
        {},
        [
            "US the of symbol national the is eagle bald The",
            ".America of bird national the is Eagle Bald the",
        ],
        ["", "eagle bald", "The bald eagle is the national symbol", "symbol national the is eagle The"],
    ),
    (
        "custom:character_reverse",
        {},
        [".SU eht fo lobmys lanoitan eht si elgae dlab ehT", "elgae dlab ehT"],
        ["", "eagle bald the", "dlab elgae", "elgae dlab is the national symbol", "xelgae dlab"],
    ),
    (
        "custom:sentence_alphabet",
        {},
        [
            " ".join(ALPHABET),
            "\n".join(ALPHABET),
            "# A Title\n\n" + " ".join(ALPHABET).replace("E goes", "É goes"),
        ],
        ["", " ".join(ALPHABET[:-1]), " ".join(reversed(ALPHABET)), " ".join([*ALPHABET, "A."])],
    ),
    (
        "custom:csv_city",
        {},
        [
            CITY,
            CITY + "\n",
            CITY.replace("\n", "\r\n"),
            f"```\n{CITY}```",
            CITY.replace("Paris", '"Paris, ""old"""'),
        ],
        [
            "",
            CITY + "8,a,b,1,2",
            CITY[:-5],
            "Here:\n" + CITY,
            CITY.replace("Paris", ""),
            CITY.replace("Paris", "a,b"),
            CITY.lower(),
        ],
    ),
    (
        "custom:csv_special_character",
        {},
        [PRODUCT, PRODUCT.replace('"Acme & Co"', "Acme", 13), PRODUCT.replace(",", ", ")],
        [
            "",
            PRODUCT.replace('"', ""),
            PRODUCT.replace(" & ", " "),
            PRODUCT + "1,a,b,2,3",
            PRODUCT.replace('"Acme & Co"', '"9.5"'),
        ],
    ),
    (
        "custom:csv_quotes",
        {},
        [STUDENT, STUDENT + "\n\n", f"```csv\n{STUDENT}\n```"],
        [
            "",
            STUDENT.replace("\t", ","),
            STUDENT.replace('"Art"', "Art", 1),
            STUDENT.replace('"Grade"', "Grade"),
            STUDENT[:-9],
        ],
    ),
    (
        "custom:date_format_list",
        {},
        ["1805-12-02, 1815-06-18", "1796-04-12,1796-02-29,\n1800-06-14"],
        [
            "",
            "1805-12-02",
            "1805-12-02, 1805-12-02",
            "1805-02-29, 1815-06-18",
            "2 Dec 1805, 1815-06-18",
            "1805-12-02; 1815-06-18",
        ],
    ),
]


@pytest.mark.parametrize(
    ("id", "kwargs", "kept", "broken"), CASES, ids=lambda own: own if isinstance(own, str) else ""
)
def test_what_a_person_says(id: str, kwargs: dict[str, Any], kept: list[str], broken: list[str]) -> None:
    wrong = [text for text in kept if one(text, id, **kwargs).score != 1]
    wrong += [text for text in broken if one(text, id, **kwargs).score != 0]
    assert wrong == []


def test_every_constraint_has_cases() -> None:
    told = {id for id, *_ in CASES} | {row.id for row in DIFFERENCES["ROWS"]}
    assert told == set(IDS)


@pytest.mark.parametrize(
    ("id", "text", "kwargs", "marked"),
    [
        ("format:parentheses", "a (b (c)) (d)", {}, {"nest": ["(b (c))"]}),
        ("format:quotes", "He: \"a 'b' c\"", {}, {"nest": ["\"a 'b' c\""]}),
        ("format:emoji", "One 🎉. Two.", {}, {"emoji": ["🎉"], "end without emoji": ["."]}),
        ("format:line_indent", "a\n  b", {}, {"indent": ["  "]}),
        ("format:quote_unquote", '"a" is that "b"', {}, {"quote": ['"a"', '"b"']}),
        ("format:quote_unquote", '"a" is "b"', {}, {"quote": ['"a"']}),
        ("format:list", "!?!? a\n- b", {"sep": "!?!?"}, {"bullet": ["!?!?"], "other bullet": ["- b"]}),
        ("format:thesis", "<i>It is so.</i> Why.", {}, {"thesis": ["<i>It is so.</i>"]}),
        ("format:sub-bullets", "* a\n - b", {}, {"bullet": ["* a"], "sub-bullet": ["- b"]}),
        (
            "format:no_bullets_bullets",
            "A b. C d.\n* e",
            {},
            {"sentence": ["A b.", "C d."], "bullet": ["* e"]},
        ),
        ("format:title_case", "Rain here", {}, {"word": ["here"]}),
        ("format:no_whitespace", "a  b", {}, {"white space": ["  "]}),
        ("sentence:keyword", "One. Two cats.", {"word": "cat", "N": 2}, {"sentence": ["Two cats."]}),
        ("sentence:keyword", "One.", {"word": "cat", "N": 2}, {"whole": ["One."]}),
        (
            "repeat:repeat_change",
            "Go on.",
            {"prompt_to_repeat": "Run on."},
            {"first word": ["Go"], "copy": [" on."]},
        ),
        ("custom:multiples", "14 and 3", {}, {"number": ["14", "3"]}),
        ("custom:csv_city", "```\na,b\n```", {}, {"table": ["a,b"]}),
    ],
)
def test_spans_mark_what_was_read(
    id: str, text: str, kwargs: dict[str, Any], marked: dict[str, list[str]]
) -> None:
    found: dict[str, list[str]] = {}
    for span in one(text, id, **kwargs).spans:
        found.setdefault(span.part, []).append(text[span.start : span.end])
    assert found == marked


@pytest.mark.parametrize(
    ("id", "kwargs", "reason"),
    [
        ("format:options", {}, "argument options is missing"),
        ("format:options", {"options": ""}, "argument options"),
        ("format:list", {"sep": " "}, "expected a mark that can be seen"),
        ("format:emoji", {"N": 3}, "there is no argument N"),
        ("sentence:keyword", {"word": "cat", "N": 0}, "argument N"),
        ("sentence:keyword", {"word": " ", "N": 1}, "argument word: expected a word"),
        ("sentence:keyword", {"word": "cat", "N": 1.5}, "argument N"),
        ("sentence:increment", {"small_n": -1}, "argument small_n"),
        ("repeat:repeat_change", {"prompt_to_repeat": " "}, "argument prompt_to_repeat"),
        ("repeat:repeat_span", {"prompt_to_repeat": "a b", "n_start": 1, "n_end": 2}, "between 0 and 1"),
        ("repeat:repeat_span", {"prompt_to_repeat": "a b", "n_start": 1, "n_end": 0}, "found 1 and 0"),
    ],
)
def test_impossible_arguments_cannot_be_checked(id: str, kwargs: dict[str, Any], reason: str) -> None:
    found = one("Some answer.", id, **kwargs)
    assert found.flags == ("data:constraint",)
    assert reason in found.reason


def test_wordings_hold_all_arguments() -> None:
    for id in IDS:
        kwargs, _ = ANSWERS["answer"](id, 0)
        info = one("Some answer.", id, **kwargs).info
        assert info
        assert all(str(value) in info for value in kwargs.values())


def test_official_place_0_is_the_one_that_was_asked_for() -> None:
    """The public code draws one at random."""
    kwargs = {"prompt_to_repeat": "a b c d", "n_start": 0, "n_end": 2}
    assert one("a b", "repeat:repeat_span", OFFICIAL, **kwargs).score == 1
    assert one("b", "repeat:repeat_span", OFFICIAL, **kwargs).score == 0


# --------------------------------------------------------------------------- hostile texts

UNITS = (
    *"()[{\"'“”‘’-*#.,!?|<>/\\1aé中🎉\n\r\t\0\ud800\u200b\u202e\u0301 ",
    *(
        "\n\n",
        "\r\n",
        "* \n",
        "- a\n",
        "# a\n",
        "**a**\n",
        "```\n",
        "<i>",
        "</i>",
        "<em><i>",
        "<i>a b c</i> d ",
    ),
    *(
        "Question ",
        "Question 1:\n",
        "A) a\n",
        "Question 1: a\nA) b\n",
        '"a" ',
        "'a \"b ",
        "\"a'",
        '"",',
        '"a,',
    ),
    *(
        ',""x',
        "1800-01-01,",
        "Zimbabwe\n",
        "My Answer: ",
        "eagle bald ",
        "a. ",
        "A.B. ",
        "Mr. ",
        "\n ",
        " \n\n",
    ),
    *(
        "(]",
        "([{}])",
        "www.",
        "a://",
        "a_",
        "`",
        "word ",
        "B\n",
        "<a ",
        '\t"',
        "🏴\U000e0067",
        "a 🎉.\n",
        "a🎉\n",
        "* a.\n",
    ),
)


def hostile(rng: random.Random) -> str:
    if rng.random() < 0.3:
        return ANSWERS["answer"](rng.choice(IDS), rng.randrange(2000))[1]
    return "".join(rng.choices(rng.choices(UNITS, k=rng.randint(1, 6)), k=rng.choice((1, 3, 30, 200))))


@pytest.mark.parametrize("judge", [SOUND, OFFICIAL], ids=["sound", "official"])
def test_no_text_raises_or_marks_what_is_not_there(judge: Judge) -> None:
    rng = random.Random(0)
    jobs = [[{"id": id, "kwargs": ANSWERS["answer"](id, at)[0]} for id in IDS] for at in range(20)]
    texts = ["", " ", "\n", "\0", "\ud800", *(hostile(rng) for _ in range(800))]
    for at, text in enumerate(texts):
        for own in judge(Job(text, jobs[at % 20])):
            assert own.score in (0.0, 1.0), own.reason
            assert own.reason
            assert all(0 <= span.start < span.end <= len(text) for span in own.spans)
            assert own.spans or not text


def test_an_empty_answer_keeps_nothing() -> None:
    for id in IDS:
        kwargs, _ = ANSWERS["answer"](id, 0)
        assert [
            one(text, id, judge, **kwargs).score for text in ("", " \n") for judge in (SOUND, OFFICIAL)
        ] == [0] * 4


@pytest.mark.usefixtures("no_garbage_collection")
@pytest.mark.parametrize("id", IDS)
def test_long_answers_are_judged_at_once(id: str) -> None:
    """They begin and end with what some checkers look for before they read on."""
    kwargs, _ = ANSWERS["answer"](id, 0)
    begin, end = "Question My Answer: SEPARATOR Zimbabwe\n", ' a"</i>'
    answers = [begin + unit * (LONG // len(unit)) + end for unit in UNITS]
    assert slow({"id": id, "kwargs": kwargs}, answers) == []
