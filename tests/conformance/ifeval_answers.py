"""Answers near the boundary of IFEval's constraints, and the public checker's verdicts on them, frozen.

`answer` is a pure function of (family, index), so the fixture holds verdicts and a checksum only. To make
`ifeval_verdicts.json` again, in an environment of its own::

    pip install --no-deps lm-eval==0.4.13 langdetect==1.0.9 nltk==3.10.4 regex immutabledict packaging six \\
        defusedxml click joblib tqdm
    pip download --no-deps llama-index-core
    unzip llama_index_core-*.whl '*nltk_cache/tokenizers/punkt_tab/*'
    LOCAL_RANK=1 NLTK_DATA=llama_index/core/_static/nltk_cache \\
        python tests/conformance/ifeval_answers.py --data <data>/instructions

The public code needs nltk's table of sentences, which that wheel carries (nltk.download has it, too).
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import random
import sys
import types
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

COUNT = 2000  # answers a family
LOOSE = 7  # every so many of them are read loosely, too

SENTENCES = (
    """
The sun went down behind the hills.|Dr. Smith met Mr. Jones at 5 p.m. on Friday.|We won!|Who knows?
She paid $3.50 for it, i.e. too much.|The U.S. team lost, 3 to 1.|"Go home," he said.|Wait... what?
It's state-of-the-art, isn't it?|NASA sent a probe to Mars in 2004.|I can't see the cat.
He said no. Then he left.|Prices rose by 4.5% in Jan. and fell later.|See fig. 3 and No. 7.
A war of words began.|Read it (again).|The concatenated file is 10 MB.|My answer is yes.|My answer is no.
e.g. apples, pears etc. are fruit.|J. K. Rowling wrote it.
They live on St. Mary Ave. near Washington D.C. now.|OK.|The end.|"Yes!" she cried.
I would gonna go; he'd've stayed: nobody cares.|The quick brown fox jumps over the lazy dog.
Nothing rhymes
""".strip()
    .replace("\n", "|")
    .split("|")
)
LANGUAGES = {
    "de": "Die Besprechung morgen beginnt um neun Uhr. Bitte bringt eure Unterlagen mit.",
    "fr": "La réunion de demain commence à neuf heures. Merci d'apporter vos documents.",
    "es": "La reunión de mañana empieza a las nueve. Por favor, traed los documentos.",
    "it": "La riunione di domani comincia alle nove. Per favore portate i documenti.",
    "pt": "A reunião de amanhã começa às nove horas. Por favor, tragam os documentos.",
    "ru": "Завтра совещание начнётся в девять утра. Принесите, пожалуйста, документы.",
    "hi": "कल की बैठक सुबह नौ बजे शुरू होगी। कृपया अपने कागज़ात साथ लाएँ।",
    "mr": "उद्याची बैठक सकाळी नऊ वाजता सुरू होईल. कृपया कागदपत्रे आणा.",
    "ko": "내일 회의는 아침 아홉 시에 시작합니다. 서류를 가져오세요.",
    "ar": "يبدأ اجتماع الغد في الساعة التاسعة صباحا. يرجى إحضار الوثائق.",
    "sw": "Mkutano wa kesho utaanza saa tatu asubuhi. Tafadhali leteni hati zenu.",
    "vi": "Cuộc họp ngày mai bắt đầu lúc chín giờ sáng. Xin mang theo tài liệu.",
    "en": "Tomorrow's meeting starts at nine in the morning. Please bring your papers.",
}
SPICE = [
    " ",
    "\n",
    "\n\n",
    "\t",
    "\r\n",
    "\u00a0",
    "*",
    "**",
    "***",
    "-",
    "\n- ",
    "\n* ",
    '"',
    "'",
    ".",
    "!",
    ",",
]
SPICE += [
    "[",
    "]",
    "<<",
    ">>",
    "(",
    "é",
    "I",
    "A",
    "x",
    "1",
    "。",
    "，",
    "_",
    "\u2028",
    "\x0b",
    "P.S.",
    "...",
    "ß",
]

Made = tuple[dict[str, Any], str]


def near(rng: random.Random, number: int) -> int:
    return max(1, number + rng.choice((-1, 0, 0, 1)))


def relation(rng: random.Random) -> str:
    return rng.choice(("less than", "at least"))


def prose(rng: random.Random, most: int = 8) -> str:
    gap = rng.choice((" ", " ", "  ", "\n", "\n\n"))
    return gap.join(rng.choices(SENTENCES, k=rng.randint(1, most)))


def mixed(rng: random.Random, parts: Sequence[str], most: int = 6) -> str:
    """Some of `parts` with prose between them."""
    chosen = rng.choices(parts, k=rng.randint(0, most))
    return "".join(part + rng.choice(("", " ", "\n", " " + rng.choice(SENTENCES))) for part in chosen)


def existence(rng: random.Random) -> Made:
    words = ["cat", "war", "state", "a.b", "The", "yes", "c+", "no", "rhyme", "fruit|nut", "mars", " end"]
    text = prose(rng) + rng.choice(("", " cat", " Fruit", " aXb", " ccc", "WARfare", " the end", " rhyme"))
    return {"keywords": rng.sample(words, rng.randint(1, 3))}, text


def frequency(rng: random.Random) -> Made:
    word = rng.choice(("cat", "war", "the", " it ", "a.b", "o"))
    forms = [word, word.upper(), "re" + word, word + "s", word[:-1], f"{word}{word}", f" {word} "]
    text = mixed(rng, forms) + prose(rng, 2)
    said = near(rng, text.lower().count(word.strip()))
    return {"keyword": word, "frequency": said, "relation": relation(rng)}, text


def forbidden_words(rng: random.Random) -> Made:
    words = ["cat", "war", "state", "a.b", "the", "yes", "hills", "no", "rhyme", "NASA", "isn", "_x", "end."]
    text = prose(rng, 4) + rng.choice(("", " cat", " cats", "_war_", " aXb", " rhyme-", " state_"))
    return {"forbidden_words": rng.choices(words, k=rng.randint(1, 3))}, text


def letter_frequency(rng: random.Random) -> Made:
    letter, text = rng.choice("aeinqstzZQW"), prose(rng)
    number = near(rng, text.lower().count(letter.lower()))
    return {"letter": letter, "let_frequency": number, "let_relation": relation(rng)}, text


def response_language(rng: random.Random) -> Made:
    first, second = rng.choices(list(LANGUAGES), k=2)
    text = rng.choice(("{0}", "{0}", "{0}", "{0} {1}", "{0}\n\n{0} {1}", "12 {0}", "1, 2, 3!")).format(
        LANGUAGES[first], LANGUAGES[second]
    )
    cut = rng.choice((len(text), len(text), 60, 20))
    return {"language": rng.choice((first, first, second))}, text[:cut]


def number_words(rng: random.Random) -> Made:
    text = prose(rng)
    number = near(rng, sum(any(map(str.isalnum, word)) for word in text.split()) + rng.choice((0, 0, 1, 2)))
    return {"num_words": number, "relation": relation(rng)}, text


def number_sentences(rng: random.Random) -> Made:
    chosen = rng.choices(SENTENCES, k=rng.randint(1, 10))
    return {"num_sentences": near(rng, len(chosen)), "relation": relation(rng)}, rng.choice(
        (" ", "\n", "\n\n", "  ")
    ).join(chosen)


def number_paragraphs(rng: random.Random) -> Made:
    dividers = (
        "\n***\n",
        "\n***\n",
        "***",
        " *** ",
        "\n\n***\n\n",
        "****",
        "* * *",
        "\n***\n***\n",
        "\t***\r\n",
    )
    parts = [prose(rng, 2) for _ in range(rng.randint(1, 5))]
    text = parts[0] + "".join(rng.choice(dividers) + part for part in parts[1:])
    edge = rng.choice(("", "", "", "***", "\n***", "*** "))
    return {"num_paragraphs": near(rng, len(parts))}, rng.choice((text + edge, edge + text))


def nth_paragraph_first_word(rng: random.Random) -> Made:
    gaps = ("\n\n", "\n\n", "\n\n", "\n\n\n", "\n\n\n\n", "\r\n\r\n", "\n \n", "\n\n \n\n")
    openings = (
        "{} went",
        '"{}" said',
        "'{}' said",
        "{}, then",
        "{}'s end",
        "{}-like",
        " {}.",
        "**{}** is",
        "\"'{}",
    )
    words = [rng.choice(("Weekend", "it", "Élan", "SEND", "x")) for _ in range(rng.randint(1, 5))]
    parts = [rng.choice(openings).format(word) + " " + prose(rng, 1) for word in words]
    text = parts[0] + "".join(rng.choice(gaps) + part for part in parts[1:])
    nth = rng.randint(1, len(parts))
    number = max(nth, rng.choice((len(parts), len(parts), len(parts), near(rng, len(parts)))))
    word = rng.choice((words[nth - 1], words[nth - 1], words[nth - 1].lower(), "it"))
    return {"num_paragraphs": number, "nth_paragraph": nth, "first_word": word}, text


def number_placeholders(rng: random.Random) -> Made:
    parts = ["[name]", "[]", "[1]", "[a](b)", "[[x]]", "[un\nclosed]", "[", "]", "[a] [b]", "[ ]", "[[c]"]
    text = mixed(rng, parts)
    return {"num_placeholders": near(rng, min(text.count("["), text.count("]")))}, text


def postscript(rng: random.Random) -> Made:
    forms = (
        "P.S. x",
        "p.s. x",
        "PS: x",
        "P. S. x",
        "P.\nS.",
        "P.P.S x",
        "P.P.S. x",
        "p. p. s",
        "P.p.S",
        "P.S",
        "Note: x",
    )
    marker = rng.choice(("P.S.", "P.S.", "P.P.S", "P.P.S", "Note:", "P.P.S.", " P.S. "))
    return {"postscript_marker": marker}, prose(rng, 3) + rng.choice(("\n", "\n\n", " ", "")) + rng.choice(
        forms
    )


def number_bullet_lists(rng: random.Random) -> Made:
    forms = [
        "* a point",
        "- a point",
        "*a point*",
        "**bold**",
        "---",
        "* * *",
        "  * nested",
        "-x",
        "*",
        "-",
        "+ a",
    ]
    forms += ["\t- b", "* ", "• c", "1. d", "", " *\n* e", "\u2003* f", "*\n- g"]
    lines = rng.choices(forms, weights=[6, 6, *[1] * (len(forms) - 2)], k=rng.randint(1, 8))
    number = near(rng, sum(line.lstrip()[:1] in ("*", "-") and line[:2] != "**" for line in lines))
    return {"num_bullets": number}, prose(rng, 1) + "\n" + rng.choice(("\n", "\n", "\n\n", "\r\n")).join(
        lines
    )


def number_highlighted_sections(rng: random.Random) -> Made:
    parts = [
        "*a*",
        "**b c**",
        "* a * b",
        "2*3*4",
        "****",
        "* *",
        "*un\nclosed*",
        "***d***",
        "* item\n",
        "**e",
        "** **",
    ]
    text = mixed(rng, parts)
    return {"num_highlights": near(rng, text.count("*") // 3)}, text


def multiple_sections(rng: random.Random) -> Made:
    word = rng.choice(("Section", "SECTION", "Day", "PARAGRAPH"))
    forms = [
        f"{word} 1",
        f"{word} 2\n",
        f"\n{word} 3: x",
        f"{word}4",
        f"{word}  5",
        f"{word}\n6",
        f"{word} X",
    ]
    text = mixed(rng, [*forms, f"as {word} 1 says", word.lower() + " 7", f"**{word} 8**"])
    return {
        "section_spliter": rng.choice((word, word, f" {word}")),
        "num_sections": near(rng, text.count(word)),
    }, text


def title(rng: random.Random) -> Made:
    forms = [
        "<<A title>>",
        "<< a >>",
        "<<>>",
        "<<<b>>>",
        "<< >>",
        "<<a\nb>>",
        "x << 3 >> 1",
        "<<a> >",
        "<<",
        ">>",
        "<<>>>",
    ]
    return {}, mixed(rng, forms, 3)


def json_format(rng: random.Random) -> Made:
    bodies = [
        '{"a": 1}',
        "[1, 2]",
        "42",
        "NaN",
        '"x"',
        "{'a': 1}",
        '{"a": 1,}',
        "",
        "{}",
        '{"a": 1}\n{"b": 2}',
        "[[]",
        "null",
    ]
    body = rng.choice(bodies)
    around = (
        "{}",
        "{}",
        "```json\n{}\n```",
        "```\n{}```",
        "```Json {} ```",
        "```JSON\n{}",
        "```jSon\n{}```",
        "Here: {}",
        "~~~\n{}\n~~~",
    )
    return {}, rng.choice(around).replace("{}", body)


def constrained_response(rng: random.Random) -> Made:
    forms = (
        "My answer is yes.",
        "My answer is no.",
        "My answer is maybe.",
        "my answer is yes.",
        "My answer is yes",
        "Yes.",
    )
    return {}, " ".join([prose(rng, 1), *rng.choices(forms, k=rng.randint(0, 2))])


def two_responses(rng: random.Random) -> Made:
    said = ("One way.", "Another.", "one way.", "\n", "", prose(rng, 1), prose(rng, 2))
    parts = rng.choices(said, k=rng.choice((1, 2, 2, 2, 3)))
    dividers = ("******", "\n******\n", "\n\n******\n\n", " ****** ", "*******", "*****", "************")
    return {}, rng.choice(dividers).join(parts)


def repeat_prompt(rng: random.Random) -> Made:
    prompt = rng.choice((prose(rng, 2), " Write a haiku.\nMake it sad. ", "Tell me: 'why'?"))
    said = rng.choice(
        (
            prompt,
            prompt,
            prompt.upper(),
            prompt.replace("\n", " "),
            prompt[:-1],
            prompt.strip(),
            f'"{prompt}"',
        )
    )
    return {"prompt_to_repeat": prompt}, rng.choice(("", "", "\n", "Sure! ")) + said + rng.choice(
        (" ", "\n\n", "")
    ) + prose(rng, 2)


def end_checker(rng: random.Random) -> Made:
    phrase = rng.choice(
        ("The end", "The end.", " Is there anything else I can help with?", 'in "India"', "Peace!")
    )
    end = rng.choice(
        (
            phrase,
            phrase,
            phrase.upper(),
            phrase.strip() + ".",
            phrase[:-1],
            phrase + '"',
            f"**{phrase}**",
            phrase + " \n",
        )
    )
    return {"end_phrase": phrase}, prose(rng, 2) + rng.choice((" ", "\n", "")) + end


def quotation(rng: random.Random) -> Made:
    body = rng.choice((prose(rng, 2), "", 'a" and "b', "x"))
    around = ('"{}"', '"{}"', ' "{}"\n', "“{}”", '"{}', '{}"', "'{}'", "{}", '"{}".')
    return {}, rng.choice(around).replace("{}", body)


def _cased(rng: random.Random, case: Callable[[str], str]) -> str:
    text = case(
        rng.choice(
            (prose(rng, 6), prose(rng, 2), LANGUAGES["en"], LANGUAGES[rng.choice(list(LANGUAGES))], "1 2 3")
        )
    )
    return rng.choice((text, text, text.swapcase() if len(text) < 20 else text + "Ab", text + " 5"))


def english_capital(rng: random.Random) -> Made:
    return {}, _cased(rng, str.upper)


def english_lowercase(rng: random.Random) -> Made:
    return {}, _cased(rng, str.lower)


def capital_word_frequency(rng: random.Random) -> Made:
    text = " ".join(word.upper() if rng.random() < 0.2 else word for word in prose(rng).split(" "))
    number = near(rng, sum(word.isupper() for word in text.split()))
    return {"capital_frequency": number, "capital_relation": relation(rng)}, text


def no_comma(rng: random.Random) -> Made:
    text = prose(rng, 4).replace(",", rng.choice((",", ",", "", ";", "，")))
    return {}, text + rng.choice(("", ", then"))


FAMILIES: dict[str, list[Callable[[random.Random], Made]]] = {
    "keywords": [existence, frequency, forbidden_words, letter_frequency],
    "language": [response_language],
    "length_constraints": [number_words, number_sentences, number_paragraphs, nth_paragraph_first_word],
    "detectable_content": [number_placeholders, postscript],
    "detectable_format": [
        number_bullet_lists,
        number_highlighted_sections,
        multiple_sections,
        title,
        json_format,
        constrained_response,
    ],
    "combination": [two_responses, repeat_prompt],
    "startend": [end_checker, quotation],
    "change_case": [english_capital, english_lowercase, capital_word_frequency],
    "punctuation": [no_comma],
}


def answer(family: str, index: int) -> tuple[str, dict[str, Any], str]:
    """Id, arguments and response."""
    rng = random.Random(f"{family}:{index}")
    make = FAMILIES[family][index % len(FAMILIES[family])]
    arguments, text = make(rng)
    if rng.random() < 0.25:
        at = rng.randint(0, len(text))
        text = text[:at] + rng.choice(SPICE) + text[at + rng.choice((0, 0, 1)) :]
    return f"{family}:{make.__name__}", arguments, text


def shipped(data: Path) -> list[tuple[list[str], list[dict[str, Any]], str]]:
    """Ids, arguments and response: each public prompt's constraints, on the prompt itself and on a response
    that a model gave to another prompt (IFBench ships them).
    """
    prompts = [json.loads(line) for line in (data / "ifeval" / "input_data.jsonl").open()]
    answers = [json.loads(line) for line in (data / "ifbench" / "sample_output.jsonl").open()]
    return [
        (row["instruction_id_list"], row["kwargs"], response)
        for index, row in enumerate(prompts)
        if row["key"] not in (1122, 1129)  # judged by a random letter
        for response in (row["prompt"], answers[index % len(answers)]["response"])
    ]


def pack(bits: Sequence[bool]) -> str:
    return f"{int('1' + ''.join(str(int(bit)) for bit in bits), 2):x}"


def unpack(packed: str) -> list[bool]:
    return [digit == "1" for digit in f"{int(packed, 16):b}"[1:]]


def checksum(texts: Sequence[str]) -> str:
    return f"{zlib.crc32(repr(texts).encode()):08x}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    data = parser.parse_args().data
    # Only these two modules are wanted: the packages around them would import the whole harness.
    folder = Path(str(importlib.util.find_spec("lm_eval").origin)).parent  # type: ignore[union-attr]
    for name in ("lm_eval.tasks", "lm_eval.tasks.ifeval"):
        package = types.ModuleType(name)
        package.__path__ = [str(folder.joinpath(*name.split(".")[1:]))]
        sys.modules[name] = package
    public: Any = importlib.import_module("lm_eval.tasks.ifeval.utils")
    importlib.import_module("langdetect").DetectorFactory.seed = 0

    def verdicts(ids: list[str], arguments: list[dict[str, Any]], text: str, *, loose: bool) -> list[bool]:
        judge = public.test_instruction_following_loose if loose else public.test_instruction_following_strict
        given = public.InputExample(key=0, instruction_id_list=ids, prompt="", kwargs=arguments)
        return [bool(kept) for kept in judge(given, text).follow_instruction_list]

    frozen: dict[str, Any] = {
        "origin": "lm-eval 0.4.13, lm_eval/tasks/ifeval/utils.py; langdetect 1.0.9 with seed 0, nltk 3.10.4"
    }
    for family in FAMILIES:
        made = [answer(family, index) for index in range(COUNT)]
        strict, loose = (
            pack(
                [
                    verdicts([id], [own], text, loose=flag)[0]
                    for id, own, text in made[:: LOOSE if flag else 1]
                ]
            )
            for flag in (False, True)
        )
        frozen[family] = {"checksum": checksum([str(own) for own in made]), "strict": strict, "loose": loose}
    rows = shipped(data)
    frozen["shipped"] = {
        reading: pack([kept for row in rows for kept in verdicts(*row, loose=reading == "loose")])
        for reading in ("strict", "loose")
    }
    Path(__file__).with_name("ifeval_verdicts.json").write_text(json.dumps(frozen, indent=1) + "\n")


if __name__ == "__main__":
    main()
