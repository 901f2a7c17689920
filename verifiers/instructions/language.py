"""Which language a text is in, the same for the same text and with all of its n-grams.

The frequencies of letters, pairs and triples of letters in 55 languages come with langdetect. It draws
n-grams at random, so that its verdict on short texts changes from call to call, and takes English in capitals
for German. Here the log-likelihoods of all n-grams of a stretch of the text are added up, and a few common
words count as well where languages with the same alphabet are close.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from langdetect import DetectorFactory, LangDetectException
from langdetect.detector_factory import PROFILES_DIRECTORY
from langdetect.utils.ngram import NGram
from numpy.typing import NDArray

LANGUAGES = {
    "af": "Afrikaans", "ar": "Arabic", "bg": "Bulgarian", "bn": "Bengali", "ca": "Catalan", "cs": "Czech",
    "cy": "Welsh", "da": "Danish", "de": "German", "el": "Greek", "en": "English", "es": "Spanish",
    "et": "Estonian", "fa": "Persian", "fi": "Finnish", "fr": "French", "gu": "Gujarati", "he": "Hebrew",
    "hi": "Hindi", "hr": "Croatian", "hu": "Hungarian", "id": "Indonesian", "it": "Italian", "ja": "Japanese",
    "kn": "Kannada", "ko": "Korean", "lt": "Lithuanian", "lv": "Latvian", "mk": "Macedonian",
    "ml": "Malayalam", "mr": "Marathi", "ne": "Nepali", "nl": "Dutch", "no": "Norwegian", "pa": "Punjabi",
    "pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "sk": "Slovak", "sl": "Slovenian",
    "so": "Somali", "sq": "Albanian", "sv": "Swedish", "sw": "Swahili", "ta": "Tamil", "te": "Telugu",
    "th": "Thai", "tl": "Tagalog", "tr": "Turkish", "uk": "Ukrainian", "ur": "Urdu", "vi": "Vietnamese",
    "zh": "Chinese", "zh-cn": "Simplified Chinese", "zh-tw": "Traditional Chinese",
}  # fmt: skip
_PIECES, _PIECE = 10, 400  # what is read: at most so many stretches of so many characters
# By so many nats another language may fit better: for each n-gram, at least, at most, for one or two words.
_DOUBT, _LEAST_DOUBT, _MOST_DOUBT, _DOUBT_OF_WORDS = 0.1, 6.0, 15.0, 10.0
_COMMON_WORD, _COMMON_WORDS = 4.0, 3  # so many nats for each of so many different common words
_COMMON = {
    language: frozenset(words.split())
    for language, words in {
        "en": "i the of and that with are by it this from which have has not their its your you at "
        "we they he she my what when who is was were do does can some here yes than after "
        "should please there would will",
        "fr": "le les des du et est une dans qui pour sur avec pas par ce sont plus au aux cette "
        "nous vous je il elle mon ma votre voici oui",
        "de": "der die das und ist von den mit für auf ein eine nicht zu im sich auch dem wir ich "
        "sie er hier einige ihre ihren sind besser wann bitte",
        "es": "el los las y en un una por con es se del al lo como más muy mi su aquí qué tienen sí",
        "it": "il lo gli di e che una per con è si della dei nel come più non sono molto mia sua a ha ho",
        "nl": "de het een en van dat op te voor met zijn niet aan er ook is wij ik hij zij naar "
        "wordt dit heel hier mijn uw ja enkele",
        "pt": "o os as de e que em um uma por com para é se do da dos das no na ao mais não muito "
        "eu ele ela você eles minha este",
    }.items()
}
_FLOOR = 0.5 / 10_000  # frequency of an n-gram that a language lacks, as langdetect has it
_LETTERS = re.compile(r"[^\W\d_]+")
_NO_LETTERS = re.compile(r"(?:https?://|www\.|@)\S+|[\x00-@\[-`{-~\s]+")  # addresses, ASCII without letters


class _Frequencies(NamedTuple):
    languages: list[str]
    rows: dict[str, int]  # n-gram -> row
    logs: NDArray[np.float32]  # (n-grams, languages)


def is_in(text: str, language: str) -> bool:
    """Whether all of `text` can be taken for `language`, one of `LANGUAGES`; a text without letters cannot.

    In doubt one or two words can: of "my cat" nobody can tell. Longer ones must fit about as well as in any
    other language. Of a text of more than 4,000 letters ten stretches are read.
    """
    pieces = [piece for piece in _stretches(text) if any(map(str.isalpha, piece))]
    return bool(pieces) and all(_fits(piece, language) for piece in pieces)


def _stretches(text: str) -> list[str]:
    """Stretches of `text` at even distances, its first and last characters among them."""
    text = _NO_LETTERS.sub(" ", text)
    count = min(_PIECES, math.ceil(len(text) / _PIECE))
    step = (len(text) - _PIECE) / max(1, count - 1)
    starts = [max(0, round(index * step)) for index in range(count)]
    return [text[start : start + _PIECE] for start in starts]


def _fits(piece: str, language: str) -> bool:
    """Whether no language fits better than `language` by more than the doubt allows."""
    if sum(map(str.isupper, piece)) > sum(map(str.islower, piece)):
        piece = piece.lower()  # the frequencies are those of ordinary text
    languages, rows, logs = _frequencies()
    found = [rows[gram] for gram in _ngrams(piece) if gram in rows]
    likelihoods: dict[str, float] = dict(zip(languages, logs[found].sum(0).tolist(), strict=True))
    likelihoods["zh"] = max(likelihoods["zh-cn"], likelihoods["zh-tw"])
    words = _LETTERS.findall(piece.lower())
    for own, common in _COMMON.items():
        likelihoods[own] += _COMMON_WORD * min(_COMMON_WORDS, len(common.intersection(words)))
    doubt = _DOUBT_OF_WORDS if len(words) < 3 else min(max(_LEAST_DOUBT, _DOUBT * len(found)), _MOST_DOUBT)
    return max(likelihoods.values()) - likelihoods[language] <= doubt


def _ngrams(piece: str) -> Iterator[str]:
    window = NGram()  # keeps the last three letters, as the frequencies have them
    for letter in piece + " ":
        window.add_char(letter)
        yield from (window.grams[-size:] for size in range(1, len(window.grams) + 1))


@cache
def _frequencies() -> _Frequencies:
    factory = _factory()
    table = np.array(list(factory.word_lang_prob_map.values()), np.float32)
    rows = {gram: row for row, gram in enumerate(factory.word_lang_prob_map)}
    return _Frequencies(list(factory.langlist), rows, np.log(table + np.float32(_FLOOR)))


def detect(text: str) -> str | None:
    """What langdetect says, from a fixed seed; None where it can say nothing. For official readings."""
    detector = _factory().create()
    detector.append(text)
    try:
        found: str = detector.detect()
    except LangDetectException:
        return None
    return found


@cache
def _factory() -> DetectorFactory:
    """Reads langdetect's files once (0.3 s), in an order that no folder decides."""
    files = sorted(path for path in Path(PROFILES_DIRECTORY).iterdir() if path.is_file())
    factory = DetectorFactory()
    factory.load_json_profile([path.read_text(encoding="utf-8") for path in files])
    factory.set_seed(0)
    return factory
