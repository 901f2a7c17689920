"""IFEval's constraints: what they mark, what they refuse, hostile texts, languages."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import random
import runpy
from pathlib import Path
from typing import Any

import pytest

from benchmarks.long_answers import slow
from creditlib.types import CreditlibError
from verifiers.instructions import InstructionVerifier, check, nltk_text
from verifiers.instructions.constraint import CONSTRAINTS
from verifiers.instructions.language import LANGUAGES, is_in
from verifiers.instructions.verifier import Job, Judge, load_constraints, read_constraint

SENTENCES = runpy.run_path(str(Path(__file__).with_name("short_sentences.py")))["SENTENCES"]
# Arguments that ordinary prompts have, one set for each constraint.
ARGUMENTS: dict[str, dict[str, Any]] = {
    "punctuation:no_comma": {},
    "length_constraints:number_words": {"num_words": 300, "relation": "at least"},
    "length_constraints:number_sentences": {"num_sentences": 5, "relation": "less than"},
    "length_constraints:number_paragraphs": {"num_paragraphs": 3},
    "length_constraints:nth_paragraph_first_word": {
        "num_paragraphs": 3,
        "nth_paragraph": 2,
        "first_word": "it",
    },
    "keywords:existence": {"keywords": ["moon", "ice cream"]},
    "keywords:frequency": {"keyword": "war", "frequency": 2, "relation": "at least"},
    "keywords:forbidden_words": {"forbidden_words": ["rock", "roll"]},
    "keywords:letter_frequency": {"letter": "q", "let_frequency": 2, "let_relation": "less than"},
    "detectable_format:number_highlighted_sections": {"num_highlights": 2},
    "detectable_format:title": {},
    "detectable_format:number_bullet_lists": {"num_bullets": 3},
    "detectable_format:json_format": {},
    "detectable_format:multiple_sections": {"section_spliter": "SECTION", "num_sections": 2},
    "detectable_format:constrained_response": {},
    "startend:quotation": {},
    "startend:end_checker": {"end_phrase": "Any other questions?"},
    "combination:repeat_prompt": {"prompt_to_repeat": "Write a poem about the moon."},
    "combination:two_responses": {},
    "detectable_content:number_placeholders": {"num_placeholders": 2},
    "detectable_content:postscript": {"postscript_marker": "P.P.S"},
    "change_case:english_lowercase": {},
    "change_case:english_capital": {},
    "change_case:capital_word_frequency": {"capital_frequency": 3, "capital_relation": "at least"},
    "language:response_language": {"language": "de"},
}


def one(id: str, answer: str, mode: Any = "sound", **arguments: Any) -> Any:
    return check(answer, constraints=[{"id": id, "kwargs": arguments or ARGUMENTS[id]}], mode=mode)["0"]


def marked(id: str, answer: str, **arguments: Any) -> list[tuple[str, str]]:
    spans = one(id, answer, **arguments).spans
    return [(answer[span.start : span.end], span.part) for span in spans]


@pytest.mark.parametrize(
    ("id", "answer", "arguments", "marks"),
    [
        ("keywords:existence", "Ice  cream, MOON.", {}, [("Ice  cream", "keyword"), ("MOON", "keyword")]),
        ("keywords:existence", "nothing", {}, [("nothing", "whole")]),
        ("keywords:frequency", "war, wars, WAR", {}, [("war", "keyword"), ("WAR", "keyword")]),
        ("keywords:forbidden_words", "Roll a rock", {}, [("Roll", "keyword"), ("rock", "keyword")]),
        ("keywords:letter_frequency", "Quick q", {}, [("Q", "letter"), ("q", "letter")]),
        (
            "length_constraints:number_paragraphs",
            "a\n***\nb *** c",
            {},
            [("***", "divider"), ("***", "divider")],
        ),
        (
            "length_constraints:nth_paragraph_first_word",
            "One.\n\nIt is.\n\n\nTwo.",
            {},
            [("\n\n", "divider"), ("It", "first word"), ("\n\n\n", "divider")],
        ),
        ("detectable_content:number_placeholders", "Dear [name], [1]", {}, [("[name]", "placeholder")]),
        (
            "detectable_content:postscript",
            "Hi.\n\n**P.P.S.** bye\nx",
            {},
            [("P.P.S.** bye\nx", "postscript")],
        ),
        (
            "detectable_format:number_bullet_lists",
            "List:\n  * one\n- two",
            {},
            [("* one", "bullet"), ("- two", "bullet")],
        ),
        (
            "detectable_format:number_highlighted_sections",
            "a *b c* **d**",
            {},
            [("*b c*", "highlight"), ("**d**", "highlight")],
        ),
        ("detectable_format:title", "# <<A poem>>\nRoses", {}, [("<<A poem>>", "title")]),
        (
            "detectable_format:multiple_sections",
            "**SECTION 1**\na\nSECTION 2: b",
            {},
            [("SECTION 1", "header"), ("SECTION 2", "header")],
        ),
        (
            "detectable_format:constrained_response",
            "Well. My answer is no.",
            {},
            [("My answer is no.", "option")],
        ),
        ("startend:quotation", ' "yes" ', {}, [('"', "quote"), ('"', "quote")]),
        ("startend:end_checker", "Well. Any other questions?\n", {}, [("Any other questions?", "end")]),
        (
            "combination:two_responses",
            "a\n******\nb",
            {},
            [("a\n", "answer"), ("******", "divider"), ("\nb", "answer")],
        ),
        (
            "combination:repeat_prompt",
            "Write a poem about the moon. O moon",
            {},
            [("Write a poem about the moon.", "request")],
        ),
        (
            "change_case:capital_word_frequency",
            "I like NASA's COVID-19 work",
            {},
            [("NASA's", "capital word"), ("COVID-19", "capital word")],
        ),
        ("detectable_format:json_format", "[1]", {}, [("[1]", "whole")]),
    ],
)
def test_what_a_constraint_marks(
    id: str, answer: str, arguments: dict[str, Any], marks: list[tuple[str, str]]
) -> None:
    assert marked(id, answer, **arguments) == marks


@pytest.mark.parametrize(
    ("id", "arguments", "reason"),
    [
        ("keywords:letter_frequency", {"letter": "ab"}, "argument letter"),
        ("keywords:letter_frequency", {"letter": " "}, "argument letter"),
        ("keywords:existence", {"keywords": []}, "argument keywords"),
        ("keywords:existence", {"keywords": [""]}, "argument keywords"),
        ("keywords:existence", {"keywords": [" "]}, "a keyword is blank"),
        ("keywords:frequency", {"frequency": 0}, "argument frequency"),
        ("keywords:frequency", {"relation": "at most"}, "argument relation"),
        ("language:response_language", {"language": "xx"}, "argument language"),
        ("length_constraints:nth_paragraph_first_word", {"nth_paragraph": 4}, "there is no paragraph 4"),
        ("length_constraints:nth_paragraph_first_word", {"nth_paragraph": 0}, "argument nth_paragraph"),
        ("length_constraints:nth_paragraph_first_word", {"first_word": "?"}, "argument first_word"),
        (
            "length_constraints:number_words",
            {"relation": "less than", "num_words": 1},
            "no answer has less than 1 words",
        ),
        (
            "length_constraints:number_sentences",
            {"relation": "less than", "num_sentences": 1},
            "no answer has less than 1 sentences",
        ),
        ("startend:end_checker", {"end_phrase": " "}, "argument end_phrase"),
        ("detectable_content:postscript", {"postscript_marker": " "}, "argument postscript_marker"),
        ("combination:repeat_prompt", {"prompt_to_repeat": "\n"}, "argument prompt_to_repeat"),
        ("detectable_format:multiple_sections", {"section_spliter": " "}, "section_spliter is blank"),
        ("detectable_format:number_bullet_lists", {"num_bullets": None}, "argument num_bullets is missing"),
    ],
)
def test_impossible_arguments_are_refused(id: str, arguments: dict[str, Any], reason: str) -> None:
    found = one(id, "Some text.", **{**ARGUMENTS[id], **arguments})
    assert math.isnan(found.score)
    assert reason in found.reason


@pytest.mark.parametrize("keyword", ["(", "a{99999999999}", "a{" + "9" * 5000 + "}", "(" * 3000 + ")" * 3000])
@pytest.mark.parametrize(
    ("id", "argument"),
    [
        ("keywords:existence", "keywords"),
        ("keywords:frequency", "keyword"),
        ("detectable_content:postscript", "postscript_marker"),
        ("detectable_format:multiple_sections", "section_spliter"),
    ],
)
def test_what_the_public_code_cannot_take_for_a_regular_expression(
    id: str, argument: str, keyword: str
) -> None:
    given = [keyword] if argument == "keywords" else keyword
    found = one(id, "Some text.", mode="official", **{**ARGUMENTS[id], argument: given})
    assert math.isnan(found.score)
    assert "the public checker fails here" in found.reason
    assert one(id, "Some text.", **{**ARGUMENTS[id], argument: given}).score == 0


def test_arguments_stand_for_all_constraints() -> None:
    load_constraints()
    own = {id for id, each in CONSTRAINTS.items() if "ifeval" in each.sound.__module__}
    assert len(ARGUMENTS) == 25
    assert set(ARGUMENTS) == own


@pytest.mark.parametrize("id", ARGUMENTS)
@pytest.mark.parametrize("answer", ["", " \n\t "])
def test_an_empty_answer_keeps_nothing(id: str, answer: str) -> None:
    assert one(id, answer).score == 0.0
    assert one(id, answer, mode="official").score == 0.0


@pytest.mark.parametrize("mode", ["sound", "official"])
def test_an_argument_said_again_in_the_wording(mode: Any) -> None:
    for id, arguments in ARGUMENTS.items():
        said = one(id, "x", mode=mode).info
        for name, value in arguments.items():
            for part in value if isinstance(value, list) else [value]:
                assert (LANGUAGES[part] if name == "language" else str(part)) in said


def test_every_public_constraint_is_accepted() -> None:
    folder = os.environ.get("CREDITLIB_DATA")
    if not folder:
        pytest.skip("CREDITLIB_DATA is not set: the folder above instructions/ifeval")
    load_constraints()
    path = Path(folder) / "instructions" / "ifeval" / "input_data.jsonl"
    rows = [json.loads(line) for line in path.open()]
    pairs = [pair for row in rows for pair in zip(row["instruction_id_list"], row["kwargs"], strict=True)]
    every = {key: None for _, arguments in pairs for key in arguments}
    assert len(pairs) == 834
    for id, arguments in pairs:
        for given in (arguments, {**every, **arguments}):
            kind, read = read_constraint({"id": id, "kwargs": given})
            assert kind.wording(read)


def test_official_readings_say_what_they_need(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "nltk" else find(name))
    with pytest.raises(
        CreditlibError, match=r"and nltk cannot be imported: pip install 'creditlib\[instructions\]'"
    ):
        InstructionVerifier(mode="official")
    assert one("startend:quotation", '"yes"').score == 1.0


def test_nltk_cuts_as_it_does_with_its_own_data() -> None:
    text = 'Dr. Smith can\'t go to the U.S. today. He said: "No." At 5 p.m. it rained (again).'
    assert nltk_text.sentences(text) == [
        "Dr. Smith can't go to the U.S. today.",
        'He said: "No."',
        "At 5 p.m. it rained (again).",
    ]
    assert nltk_text.words("He can't. Go!") == ["He", "ca", "n't", ".", "Go", "!"]


# --------------------------------------------------------------------------- hostile texts


@pytest.mark.usefixtures("no_garbage_collection")
@pytest.mark.parametrize("id", ARGUMENTS)
def test_long_answers_are_judged_at_once(id: str) -> None:
    assert slow({"id": id, "kwargs": ARGUMENTS[id]}) == []


PIECES = [*"[]*<>\"'`-_.,(){}\n\r\t aZ1!。你न\u200d\ud800\x00İß", "\n\n", "\r\n", "<<", ">>", "***", "******"]
PIECES += [
    "* ",
    "\n- ",
    "Mr. ",
    "P.P.S. x",
    "\nSECTION 2",
    "war",
    "ice cream",
    "moon",
    "It",
    "Any other questions?",
]
PIECES += [
    "Write a poem about the moon.",
    "My answer is yes.",
    "[name]",
    "😀",
    "\u202eשלום",
    "<think>",
    "NASA",
    "```",
]


@pytest.mark.parametrize("mode", ["sound", "official"])
def test_random_texts_never_end_in_an_exception(mode: Any) -> None:
    rng = random.Random(0)
    judge = Judge(mode)
    wanted = [{"id": id, "kwargs": arguments} for id, arguments in ARGUMENTS.items()]
    kept: dict[str, set[float]] = {id: set() for id in ARGUMENTS}
    for _ in range(400 if mode == "sound" else 100):  # langdetect is slow where it is in doubt
        text = "".join(rng.choices(PIECES, k=rng.randint(0, 40)))
        for id, found in zip(ARGUMENTS, judge(Job(text, wanted)), strict=True):
            assert found.score in (0.0, 1.0)
            assert all(0 <= span.start < span.end <= len(text) for span in found.spans)
            assert found == judge(Job(text, [{"id": id, "kwargs": ARGUMENTS[id]}]))[0]
            kept[id].add(found.score)
    assert sum(len(scores) == 2 for scores in kept.values()) > 12


# --------------------------------------------------------------------------- languages

SPOKEN = {
    "ar": "يبدأ اجتماع الغد في الساعة التاسعة صباحا.",
    "bg": "Утре срещата започва в девет часа сутринта.",
    "bn": "আগামীকালের সভা সকাল নয়টায় শুরু হবে।",
    "cs": "Schůzka zítra začíná v devět hodin ráno.",
    "de": "Die Besprechung morgen beginnt um neun Uhr.",
    "el": "Η συνάντηση αύριο αρχίζει στις εννέα το πρωί.",
    "en": "The meeting tomorrow starts at nine in the morning.",
    "es": "La reunión de mañana empieza a las nueve.",
    "fa": "جلسه فردا ساعت نه صبح شروع می‌شود.",
    "fi": "Huominen kokous alkaa kello yhdeksän aamulla.",
    "fr": "La réunion de demain commence à neuf heures.",
    "gu": "આવતીકાલની બેઠક સવારે નવ વાગ્યે શરૂ થશે.",
    "he": "הפגישה מחר מתחילה בשעה תשע בבוקר.",
    "hi": "कल की बैठक सुबह नौ बजे शुरू होगी।",
    "it": "La riunione di domani comincia alle nove.",
    "ja": "明日の会議は朝九時に始まります。",
    "kn": "ನಾಳೆಯ ಸಭೆ ಬೆಳಿಗ್ಗೆ ಒಂಬತ್ತು ಗಂಟೆಗೆ ಆರಂಭವಾಗುತ್ತದೆ.",
    "ko": "내일 회의는 아침 아홉 시에 시작합니다.",
    "ml": "നാളത്തെ യോഗം രാവിലെ ഒൻപത് മണിക്ക് ആരംഭിക്കും.",
    "mr": "उद्याची बैठक सकाळी नऊ वाजता सुरू होईल.",
    "ne": "भोलिको बैठक बिहान नौ बजे सुरु हुन्छ।",
    "nl": "De vergadering van morgen begint om negen uur.",
    "pa": "ਕੱਲ੍ਹ ਦੀ ਮੀਟਿੰਗ ਸਵੇਰੇ ਨੌਂ ਵਜੇ ਸ਼ੁਰੂ ਹੋਵੇਗੀ।",
    "pl": "Jutrzejsze spotkanie zaczyna się o dziewiątej rano.",
    "pt": "A reunião de amanhã começa às nove horas.",
    "ru": "Завтра совещание начнётся в девять утра.",
    "sv": "Mötet i morgon börjar klockan nio på kontoret.",
    "sw": "Mkutano wa kesho utaanza saa tatu asubuhi.",
    "ta": "நாளைய கூட்டம் காலை ஒன்பது மணிக்கு தொடங்கும்.",
    "te": "రేపటి సమావేశం ఉదయం తొమ్మిది గంటలకు ప్రారంభమవుతుంది.",
    "th": "การประชุมพรุ่งนี้เริ่มเวลาเก้าโมงเช้า",
    "tr": "Yarınki toplantı sabah saat dokuzda başlıyor.",
    "uk": "Завтра нарада почнеться о дев’ятій ранку.",
    "ur": "کل کا اجلاس صبح نو بجے شروع ہوگا۔",
    "vi": "Cuộc họp ngày mai bắt đầu lúc chín giờ sáng.",
    "zh": "明天的会议早上九点开始，请大家准时参加。",
}


@pytest.mark.parametrize("language", SPOKEN)
def test_a_sentence_is_in_its_language_and_no_other(language: str) -> None:
    text = SPOKEN[language]
    assert [other for other in SPOKEN if is_in(text, other)] == [language]
    assert is_in(text.upper(), language)
    assert is_in(text.upper() + " 12:30, https://example.com", language)


@pytest.mark.parametrize("language", SENTENCES)
def test_short_sentences_are_in_their_language(language: str) -> None:
    others = [other for other in SENTENCES if other != language]
    assert len(SENTENCES[language]) >= 12
    assert [text for text in SENTENCES[language] if not is_in(text, language)] == []
    taken = [(text, other) for text in SENTENCES[language] for other in others if is_in(text, other)]
    assert len(taken) <= 0.05 * len(others) * len(SENTENCES[language]), taken
    mistaken = [text for other in others for text in SENTENCES[other] if is_in(text, language)]
    assert len(mistaken) <= 0.05 * sum(len(SENTENCES[other]) for other in others), mistaken


@pytest.mark.parametrize(
    ("text", "language"),
    [("Yes, I can help you.", "fr"), ("Here are some ideas.", "fr"), ("Tea is better than milk.", "de")],
)
def test_a_short_english_sentence_is_no_other(text: str, language: str) -> None:
    assert is_in(text, "en")
    assert not is_in(text, language)


def test_up_to_4000_letters_are_read_whole() -> None:
    german, english = (" ".join([SPOKEN[language]] * 100) for language in ("de", "en"))
    for at in range(0, 3600, 300):
        assert not is_in(german[:at] + english[:400] + german[at:3600], "de")


def test_a_long_passage_in_another_language_is_noticed() -> None:
    german, english = (" ".join([SPOKEN[language]] * 20) for language in ("de", "en"))
    assert is_in(german, "de")
    assert is_in(german + " OK, let's go!", "de")
    assert not is_in(german + english, "de")
    assert not is_in(german + english, "en")


@pytest.mark.parametrize("text", ["", "12345", "😀 !!!", "---", "\ud800", "https://example.com"])
def test_without_letters_there_is_no_language(text: str) -> None:
    assert not any(is_in(text, language) for language in LANGUAGES)
