"""Composes a request, the constraints on its answer, and an answer that keeps all of them.

First the kinds of constraint are drawn, such that they go together. Then the answer is made with what they
ask for and no more (no title unless one is asked for), and each constraint's numbers and words are read off
the finished answer, so that the answer keeps it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from random import Random
from typing import Any

from tasks.data.instructions import words
from verifiers.instructions.answer import Answer

Constraint = Mapping[str, Any]  # {"id": ..., "kwargs": {...}}
Pair = frozenset[str]

# Kinds of constraint; of each row at most one is asked for.
GROUPS = (
    ("no_comma",),
    ("words_least", "words_less", "words_range"),
    ("different_words",),
    ("repeats",),
    ("sentences_least", "sentences_less"),
    ("letter_least", "letter_less"),
    ("keywords",),
    ("frequency",),
    ("forbidden",),
    ("numbers",),
    ("pronouns",),
    ("conjunctions",),
    ("placeholders",),
    ("highlights",),
    ("capital_words",),
    ("title",),
    ("bullets", "dividers", "sections", "first_word"),
    ("quotation",),
    ("postscript",),
    ("end",),
    ("lower", "upper", "title_case"),
    ("sentence_word",),
    ("place_word",),
)
KINDS = tuple(kind for group in GROUPS for kind in group)


def _pairs(table: Mapping[str, str]) -> frozenset[Pair]:
    return frozenset(Pair({kind, other}) for kind, others in table.items() for other in others.split())


# What does not go together.
CLASHES = _pairs(
    {
        "lower": "postscript capital_words sections",
        "upper": "capital_words sections",
        "title_case": "capital_words",
        "sections": "numbers",
        "highlights": "bullets dividers",
        "sentence_word": "title bullets dividers sections",
        "place_word": "title bullets dividers sections",
    }
)
# What training never asks for together, and the held-out mixtures do.
NEW_MIXTURES = _pairs(
    {
        "title": "bullets upper",
        "quotation": "numbers lower",
        "end": "placeholders dividers",
        "conjunctions": "highlights",
        "postscript": "frequency",
        "capital_words": "sentence_word",
        "keywords": "title_case",
    }
)
MOST_SENTENCES = 5


@dataclass(frozen=True)
class Example:
    """A request, constraints on its answer in the order of their list, and an answer that keeps them."""

    request: str
    kinds: tuple[str, ...]
    constraints: tuple[Constraint, ...]
    answer: str


def draw_kinds(
    rng: Random, count: int, *, never: Collection[Pair] = (), asked: Collection[str] = ()
) -> tuple[str, ...]:
    """`count` kinds that go together, or fewer where no more do: those in `asked`, and no pair in `never`."""
    apart = CLASHES.union(never)
    chosen = list(asked)
    groups = [group for group in GROUPS if not set(group) & set(chosen)]
    rng.shuffle(groups)
    for kind in map(rng.choice, groups):
        if len(chosen) < count and not any(Pair({kind, other}) in apart for other in chosen):
            chosen.append(kind)
    return tuple(chosen)


def mixes(kinds: Collection[str], pairs: Collection[Pair]) -> bool:
    """Whether one of the pairs is among the kinds."""
    return any(Pair(pair) in pairs for pair in combinations(kinds, 2))


def compose(rng: Random, kinds: Sequence[str]) -> Example:
    """An example with these kinds of constraint, in any order."""
    draft = _Draft(rng, frozenset(kinds))
    order = list(kinds)
    rng.shuffle(order)
    constraints = tuple({"id": _READ_OFF[kind][0], "kwargs": _READ_OFF[kind][1](draft)} for kind in order)
    return Example(rng.choice(words.REQUESTS).format(draft.topic), tuple(order), constraints, draft.text)


# ------------------------------------------------------------------ the answer


@dataclass
class _Sentence:
    words: list[str]
    nouns: list[int]  # places of its nouns
    conjunction: int | None = None  # place of its conjunction
    marked: dict[int, str] = field(default_factory=dict)  # words as they are written, where that differs

    def written(self, *, commas: bool) -> str:
        shown = [self.marked.get(place, word) for place, word in enumerate(self.words)]
        if commas and self.conjunction is not None:
            shown[self.conjunction - 1] += ","
        return _capitalised(" ".join(shown)) + "."


class _Draft:
    """The answer in the making, and what constraints need to know of it."""

    def __init__(self, rng: Random, kinds: frozenset[str]) -> None:
        self.rng, self.kinds = rng, kinds
        self.asked_keywords = rng.choice((1, 1, 2)) if "keywords" in kinds else 0
        self.times = (2 if self.asked_keywords else rng.choice((2, 3))) if "frequency" in kinds else 0
        self.topic, self.frequent, *self.spare = rng.sample(words.NOUNS, len(words.NOUNS))
        self.sentences = [self._sentence(shape) for shape in self._shapes()]
        self._name_nouns()
        self.highlights = self._mark("highlights", "*{}*".format)
        self.capital_words = self._mark("capital_words", str.upper)
        self.section = rng.choice(words.SECTION_WORDS)
        self.bullets = rng.randint(1, min(3, len(self.sentences) - 1)) if "bullets" in kinds else 0
        self.end = rng.choice(words.END_PHRASES) if "end" in kinds else ""
        self.text = self._written()
        self.answer = Answer(self.text)

    def _shapes(self) -> list[str]:
        """The shapes of the sentences; the opener where the second paragraph begins."""
        asked = {
            "numbers": "number",
            "conjunctions": "conjunction",
            "placeholders": "placeholder",
            "pronouns": "pronoun",
        }
        once = [shape for kind, shape in asked.items() if kind in self.kinds]
        shapes = [*once, *(shape for shape in once if self.rng.random() < 0.2)]
        least = 1 + self.times + self.asked_keywords
        opens = "first_word" in self.kinds
        count = min(max(len(shapes) + opens, least, self.rng.randint(2, 3)), MOST_SENTENCES)
        shapes = shapes[: count - opens]
        shapes += ["plain"] * (count - opens - len(shapes))
        self.rng.shuffle(shapes)
        if opens:
            shapes.insert(count // 2, "opener")
        return shapes

    def _sentence(self, shape: str) -> _Sentence:
        rng, found = self.rng, _Sentence([], [])
        choices = {
            "A": words.ADJECTIVES,
            "V": words.VERBS,
            "P": words.PREPOSITIONS,
            "C": words.CONJUNCTIONS,
            "O": words.OPENERS,
            "D": "23456789",
        }
        for place, symbol in enumerate(rng.choice(words.SHAPES[shape]).split()):
            if symbol == "N":
                found.nouns.append(place)
            elif symbol == "C":
                found.conjunction = place
            if symbol == "M":
                found.words.append(f"{self.spare.pop()}s")
            elif symbol == "H":
                found.words.append(f"[{rng.choice(words.PLACEHOLDERS)}]")
            else:
                found.words.append(rng.choice(choices[symbol]) if symbol in choices else symbol)
        return found

    def _name_nouns(self) -> None:
        """The topic in the first sentence, the frequent noun in others, other nouns where places are left."""
        self.sentences[0].words[self.sentences[0].nouns[0]] = self.topic
        for sentence in self.rng.sample(self.sentences[1:], self.times):
            sentence.words[self.rng.choice(sentence.nouns)] = self.frequent
        for sentence in self.sentences:
            for place in sentence.nouns:
                if sentence.words[place] == "N":
                    sentence.words[place] = self.spare.pop()

    def _mark(self, kind: str, how: Callable[[str], str]) -> int:
        """Marks one noun in one or two sentences; returns in how many."""
        if kind not in self.kinds:
            return 0
        chosen = self.rng.sample(self.sentences, self.rng.choice((1, min(2, len(self.sentences)))))
        for sentence in chosen:
            place = self.rng.choice(sentence.nouns)
            sentence.marked[place] = how(sentence.marked.get(place, sentence.words[place]))
        return len(chosen)

    def _written(self) -> str:
        """The sentences in their layout, with what stands around them."""
        commas = "no_comma" not in self.kinds
        shown = [sentence.written(commas=commas) for sentence in self.sentences]
        half = len(shown) // 2
        first, second = " ".join(shown[:half]), " ".join(shown[half:])
        lines = [" ".join(shown)]
        if "bullets" in self.kinds:
            before, points = shown[: -self.bullets], shown[-self.bullets :]
            lines = [" ".join(before), *(f"- {line}" for line in points)]
        elif "dividers" in self.kinds:
            lines = [first, "***", second]
        elif "sections" in self.kinds:
            lines = [f"{self.section} 1", first, f"{self.section} 2", second]
        elif "first_word" in self.kinds:
            lines = [first, "", second]
        if "title" in self.kinds:
            lines.insert(0, f"<<The {self.topic}>>")
        if "postscript" in self.kinds:
            lines.append(f"P.S. {_capitalised(self._afterthought())}.")
        if self.end:
            after_bullet = lines[-1].startswith("- ")
            lines[-1] += ("\n" if after_bullet else " ") + _capitalised(self.end)
        text = self._cased("\n".join(lines))
        return f'"{text}"' if "quotation" in self.kinds else text

    def _afterthought(self) -> str:
        return f"the {self.spare.pop()} is {self.rng.choice(words.ADJECTIVES)}"

    def _cased(self, text: str) -> str:
        if "lower" in self.kinds:
            return text.lower()
        if "upper" in self.kinds:
            return text.upper()
        if "title_case" in self.kinds:
            return "\n".join(" ".join(map(_capitalised, line.split(" "))) for line in text.split("\n"))
        return text

    # -------------------------------------------------------------- what constraints are read off

    @property
    def others(self) -> list[str]:
        """The nouns that stand in it once, without the topic."""
        named = [sentence.words[place] for sentence in self.sentences for place in sentence.nouns]
        return [noun for noun in named if noun not in (self.topic, self.frequent)]

    @property
    def counts(self) -> Counter[str]:
        """How often each word stands in it."""
        return Counter(word.text.lower() for word in self.answer.words)

    def count(self, *wanted: str) -> int:
        """How many words of the sentences are one of these."""
        return sum(word in wanted for sentence in self.sentences for word in sentence.words)

    def about(self, number: int, least: int, most: int) -> int:
        """A number near this one, and at least 1."""
        return max(1, number + self.rng.randint(least, most))

    def letter(self) -> tuple[str, int]:
        """A common letter and how often it occurs: twice or more, as "e" does in every answer."""
        letter = self.rng.choice([own for own in "aeinorst" if self.answer.folded.count(own) > 1])
        return letter, self.answer.folded.count(letter)

    def place(self) -> tuple[str, int, int]:
        """A noun with the numbers of its sentence and its place there, from 1."""
        number = self.rng.randrange(len(self.sentences))
        place = self.rng.choice(self.sentences[number].nouns)
        return self.sentences[number].words[place], number + 1, place + 1


def _capitalised(text: str) -> str:
    """The first letter in upper case, behind marks that stand before it."""
    for place, letter in enumerate(text):
        if letter.isalpha():
            return text[:place] + letter.upper() + text[place + 1 :]
    return text


# ------------------------------------------------------------------ the constraints


def _words_range(draft: _Draft) -> dict[str, Any]:
    return {
        "min_words": draft.about(len(draft.answer.words), -3, 0),
        "max_words": draft.about(len(draft.answer.words), 0, 3),
    }


def _letter_least(draft: _Draft) -> dict[str, Any]:
    letter, count = draft.letter()
    return {"letter": letter, "let_frequency": draft.about(count, -1, 0), "let_relation": "at least"}


def _letter_less(draft: _Draft) -> dict[str, Any]:
    letter, count = draft.letter()
    return {"letter": letter, "let_frequency": draft.about(count, 1, 2), "let_relation": "less than"}


def _first_word(draft: _Draft) -> dict[str, Any]:
    opener = draft.sentences[len(draft.sentences) // 2].words[0]
    return {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": opener}


def _end(draft: _Draft) -> dict[str, Any]:
    return {"end_phrase": draft.text.removesuffix('"')[-len(draft.end) :]}  # as it is written


def _sentence_word(draft: _Draft) -> dict[str, Any]:
    word, sentence, _ = draft.place()
    return {"word": word, "N": sentence}


def _place_word(draft: _Draft) -> dict[str, Any]:
    word, sentence, place = draft.place()
    return {"keyword": word, "n": sentence, "m": place}


def _nothing(draft: _Draft) -> dict[str, Any]:
    return {}


# Each kind's id, and its arguments.
_READ_OFF: Mapping[str, tuple[str, Callable[[_Draft], dict[str, Any]]]] = {
    "no_comma": ("punctuation:no_comma", _nothing),
    "words_least": (
        "length_constraints:number_words",
        lambda d: {"relation": "at least", "num_words": d.about(len(d.answer.words), -3, 0)},
    ),
    "words_less": (
        "length_constraints:number_words",
        lambda d: {"relation": "less than", "num_words": d.about(len(d.answer.words), 1, 4)},
    ),
    "words_range": ("count:word_count_range", _words_range),
    "different_words": ("count:unique_word_count", lambda d: {"N": d.about(len(d.counts), -2, 0)}),
    "repeats": ("words:repeats", lambda d: {"small_n": max(d.counts.values())}),
    "sentences_least": (
        "length_constraints:number_sentences",
        lambda d: {"relation": "at least", "num_sentences": len(d.sentences)},
    ),
    "sentences_less": (
        "length_constraints:number_sentences",
        lambda d: {"relation": "less than", "num_sentences": d.about(len(d.answer.sentences), 1, 2)},
    ),
    "letter_least": ("keywords:letter_frequency", _letter_least),
    "letter_less": ("keywords:letter_frequency", _letter_less),
    "keywords": ("keywords:existence", lambda d: {"keywords": d.rng.sample(d.others, d.asked_keywords)}),
    "frequency": (
        "keywords:frequency",
        lambda d: {"keyword": d.frequent, "frequency": d.times, "relation": "at least"},
    ),
    "forbidden": (
        "keywords:forbidden_words",
        lambda d: {"forbidden_words": d.rng.sample(d.spare, d.rng.choice((1, 1, 2)))},
    ),
    "numbers": ("count:numbers", lambda d: {"N": d.count(*"23456789")}),
    "pronouns": ("count:pronouns", lambda d: {"N": d.count("we")}),
    "conjunctions": (
        "count:conjunctions",
        lambda d: {"small_n": len(set(words.CONJUNCTIONS) & set(d.counts))},
    ),
    "placeholders": (
        "detectable_content:number_placeholders",
        lambda d: {"num_placeholders": d.text.count("[")},
    ),
    "highlights": (
        "detectable_format:number_highlighted_sections",
        lambda d: {"num_highlights": d.highlights},
    ),
    "capital_words": (
        "change_case:capital_word_frequency",
        lambda d: {"capital_frequency": d.capital_words, "capital_relation": "at least"},
    ),
    "title": ("detectable_format:title", _nothing),
    "bullets": ("detectable_format:number_bullet_lists", lambda d: {"num_bullets": d.bullets}),
    "dividers": ("length_constraints:number_paragraphs", lambda d: {"num_paragraphs": 2}),
    "sections": (
        "detectable_format:multiple_sections",
        lambda d: {"section_spliter": d.section, "num_sections": 2},
    ),
    "first_word": ("length_constraints:nth_paragraph_first_word", _first_word),
    "quotation": ("startend:quotation", _nothing),
    "postscript": ("detectable_content:postscript", lambda d: {"postscript_marker": "P.S."}),
    "end": ("startend:end_checker", _end),
    "lower": ("change_case:english_lowercase", _nothing),
    "upper": ("change_case:english_capital", _nothing),
    "title_case": ("format:title_case", _nothing),
    "sentence_word": ("sentence:keyword", _sentence_word),
    "place_word": ("words:keywords_specific_position", _place_word),
}
