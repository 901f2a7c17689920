"""Comparing words."""

from __future__ import annotations

import re
import string
import unicodedata
from functools import lru_cache

from verifiers.instructions.answer import Answer, Piece
from verifiers.instructions.constraint import UnverifiableError

EDGES = string.punctuation + " "  # what the public code takes off the ends of words


def key(word: Piece) -> str:
    """A word as it is compared with others: without case, and with a straight apostrophe."""
    return word.text.casefold().replace("’", "'")


def keyword_words(keyword: str) -> list[str]:
    """The words of a keyword as they are compared.

    Raises:
        UnverifiableError: it has none.
    """
    words = [key(word) for word in Answer(keyword).words]
    if not words:
        raise UnverifiableError(f"a keyword has no word in it: {keyword!r}")
    return words


def plain(text: str) -> str:
    """In lower case and without accents."""
    text = _decomposed(text)
    return text if text.isalnum() else "".join(c for c in text if not unicodedata.combining(c))


def letters(word: Piece) -> str:
    """Its letters and digits in lower case, without accents: "L’étoile" is "letoile"."""
    text = _decomposed(word.text)
    return text if text.isalnum() else "".join(filter(str.isalnum, text))


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def white_space_words(text: str) -> list[Piece]:
    """What stands between white space: the words of most public checkers."""
    return [Piece(*match.span(), match[0]) for match in re.finditer(r"\S+", text)]


@lru_cache(maxsize=1 << 12)  # words come again and again
def _decomposed(text: str) -> str:
    """In lower case, accents as characters of their own, which are no letters."""
    return text.lower() if text.isascii() else unicodedata.normalize("NFKD", text.lower())
