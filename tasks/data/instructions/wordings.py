"""The embedded set's own, compact wordings of constraints: a few tokens each, so that a tiny policy reads
thirteen of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any


def short(id: str, arguments: Mapping[str, Any]) -> str | None:
    """The constraint in few words; None where there is no wording for it.

    Args:
        id: the constraint's.
        arguments: all of them, as `verifiers.instructions` reads them.
    """
    return _WORDINGS[id](**arguments) if id in _WORDINGS else None


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _joined(words: Sequence[str], between: str) -> str:
    return f" {between} ".join(words)


def _keywords(keywords: Sequence[str]) -> str:
    return f"use the {'word' if len(keywords) == 1 else 'words'} {_joined(keywords, 'and')}"


def _sections(section_spliter: str, num_sections: int) -> str:
    headers = [f"{section_spliter} {number}" for number in range(1, num_sections + 1)]
    return f"parts headed {_joined(headers, 'and')}"


def _first_word(num_paragraphs: int, nth_paragraph: int, first_word: str) -> str:
    return f"{_counted(num_paragraphs, 'paragraph')} and number {nth_paragraph} begins with {first_word}"


_WORDINGS: Mapping[str, Callable[..., str]] = {
    "punctuation:no_comma": lambda: "no commas",
    "length_constraints:number_words": lambda relation, num_words: (
        f"{relation} {_counted(num_words, 'word')}"
    ),
    "count:word_count_range": lambda min_words, max_words: f"{min_words} to {max_words} words",
    "count:unique_word_count": lambda N: f"at least {_counted(N, 'different word')}",
    "length_constraints:number_sentences": lambda relation, num_sentences: (
        f"{relation} {_counted(num_sentences, 'sentence')}"
    ),
    "keywords:existence": _keywords,
    "keywords:frequency": lambda keyword, frequency, relation: (
        f"the word {keyword} {relation} {_counted(frequency, 'time')}"
    ),
    "keywords:forbidden_words": lambda forbidden_words: f"never say {_joined(forbidden_words, 'or')}",
    "keywords:letter_frequency": lambda letter, let_frequency, let_relation: (
        f"the letter {letter} {let_relation} {_counted(let_frequency, 'time')}"
    ),
    "words:repeats": lambda small_n: f"no word more than {_counted(small_n, 'time')}",
    "count:numbers": lambda N: f"exactly {_counted(N, 'number')}",
    "count:pronouns": lambda N: f"at least {_counted(N, 'pronoun')}",
    "count:conjunctions": lambda small_n: f"at least {_counted(small_n, 'conjunction')}",
    "detectable_content:number_placeholders": lambda num_placeholders: (
        f"at least {_counted(num_placeholders, 'placeholder')} in [ ]"
    ),
    "detectable_format:number_highlighted_sections": lambda num_highlights: (
        f"at least {_counted(num_highlights, 'word')} in * *"
    ),
    "change_case:capital_word_frequency": lambda capital_frequency, capital_relation: (
        f"{capital_relation} {_counted(capital_frequency, 'word')} in capitals"
    ),
    "detectable_format:title": lambda: "a title in << >>",
    "detectable_format:number_bullet_lists": lambda num_bullets: (
        f"exactly {_counted(num_bullets, 'bullet point')}"
    ),
    "length_constraints:number_paragraphs": lambda num_paragraphs: (
        f"{_counted(num_paragraphs, 'paragraph')} with *** between"
    ),
    "length_constraints:nth_paragraph_first_word": _first_word,
    "detectable_format:multiple_sections": _sections,
    "startend:quotation": lambda: "all in double quotes",
    "detectable_content:postscript": lambda postscript_marker: f"add a {postscript_marker}",
    "startend:end_checker": lambda end_phrase: f"end with: {end_phrase}",
    "change_case:english_lowercase": lambda: "all lower case",
    "change_case:english_capital": lambda: "all in capitals",
    "format:title_case": lambda: "a capital letter on each word",
    "sentence:keyword": lambda word, N: f"the word {word} in sentence {N}",
    "words:keywords_specific_position": lambda keyword, n, m: f"word {m} of sentence {n} is {keyword}",
}
