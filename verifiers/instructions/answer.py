"""A response as constraints read it: its words, sentences, lines and paragraphs, each found once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import NamedTuple

from creditlib.types import Span

# Scripts that are written without spaces: each of their characters counts as a word.
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"
_LETTER = rf"[^\W_{_UNSPACED}]"  # or digit
# What Python does not count as part of a word although it is: accents, vowel signs, joiners. The scripts of
# India stand here with their letters; their full stops do not.
_MARK = (
    "[\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"
    "\u0900-\u0963\u0966-\u096f\u0971-\u0df3\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1-\u0ebc\u0ec8-\u0ecd"
    "\u0f71-\u0f84\u102b-\u103e\u17b4-\u17d3\u200c\u200d]"
)
_RUN = rf"{_LETTER}++(?:{_MARK}++{_LETTER}*+)*+"
_EDGE = re.compile(rf"{_LETTER}|{_MARK}")
NOT_AFTER_WORD, NOT_BEFORE_WORD = (
    rf"(?<!{_LETTER})(?<!{_MARK})",
    rf"(?!{_LETTER})(?!{_MARK})",
)
_ENDINGS = (  # of addresses and files; a chain that ends in another word ("three.And") is several words
    "com|org|net|edu|gov|io|dev|app|uk|de|fr|eu|ru|ch|jp|cn|py|js|ts|txt|md|pdf|html?|css|csv|json|xml|yaml|yml|docx?|"
    "xlsx?|pptx?|png|jpe?g|gif|svg|zip|exe"
)
_ADDRESS = (  # behind its first letters: "example.com", "first.last@example.org"
    rf"(?:[.-]{_RUN}){{0,3}}?\.(?:{_ENDINGS}){NOT_BEFORE_WORD}"
    rf"|(?:[._+-]{_RUN}){{0,3}}@{_RUN}(?:[.-]{_RUN}){{0,3}}?\.[a-zA-Z]{{2,}}+{NOT_BEFORE_WORD}"
)
_ABBREVIATION = (
    rf"(?<!{_LETTER}{_LETTER})(?:\.[^\W\d_]{NOT_BEFORE_WORD}){{1,5}}+"  # behind one letter: "e.g", "U.S.A"
)
# Within numbers ("1,000.50", "10:30", "2024-05-01"), next to one ("v1.2"), and in "Ph.D".
_JOINED = r"(?<=\d)[,:/-](?=\d)|(?<=\d)\.|\.(?=\d)|(?<=Ph)\.(?=D)|(?<=[BM])\.(?=Sc)"
_PART = rf"(?:(?:{_JOINED}){_RUN})*+(?:['’@&]{_RUN}(?:(?:{_JOINED}){_RUN})*+){{0,3}}+"
_GOES_ON = r"[._+@,:/'’&\-\u2010\u2011][^\W_]"  # what all that follows begins with; most words end before
_WORD = re.compile(
    rf"[{_UNSPACED}]|https?://[^\s<>()\[\]\"]+"
    rf"|{_RUN}(?:(?!{_GOES_ON})|{_ADDRESS}|{_ABBREVIATION}|{_PART}(?:[-\u2010\u2011]{_RUN}{_PART}){{0,3}}+)"
)
_LINE = re.compile(r"\S[^\r\n]*+")  # from its first character that is no white space
_PARAGRAPH = re.compile(r"\S[^\r\n]*+(?:(?:\r\n|\r|\n)[^\S\r\n]*+\S[^\r\n]*+)*+")
_STOPS = ".!?…؟۔।॥"
_WIDE_STOPS = "。！？｡"  # nothing need follow them
_SENTENCE_END = re.compile(  # begins with one class of characters, which re looks for many times as fast
    rf"[{_STOPS}{_WIDE_STOPS}\r\n](?:"
    rf"(?<=[{_STOPS}])(?<![{_STOPS}].)[{_STOPS}]*+[\"'”’»)\]*_]*+(?=\s|$)|(?<=[^\W\d_]\.)(?=[^\W\d_])"
    rf"|(?<=[{_WIDE_STOPS}])[{_WIDE_STOPS}]*+[”’」』）]*+|(?<=\r)\n|(?<=[\r\n]))",
    re.DOTALL,
)
_TITLES = frozenset(
    "mr mrs ms dr prof st mt rev hon gov sen rep gen col lt capt sgt vs e.g i.e cf approx dept est "
    "jan feb apr aug sept oct nov dec u.s u.k".split()
)  # the sentence goes on behind them
_BEFORE_NUMBERS = frozenset(
    "no nos fig figs vol vols pp p ch sec eq art".split()
)  # "No. 5", but "I said no."
_BEFORE_SMALL = frozenset(
    "etc inc ltd co corp jr sr al a.m p.m b.c a.d ph.d".split()
)  # "etc. and", "etc. We"
_ABBREVIATIONS = _TITLES | _BEFORE_NUMBERS | _BEFORE_SMALL
_OPENING = re.compile(r".*[(\[\"'“‘*_]")
_LONGEST = 100  # longer ones without white space are addresses or code
_ONLINE = re.compile(r"://|@|^www\.")
_MARKUP = re.compile(r"[\s#>*_+~`|-]*+(?:\d+[.)]\s+)?+(?=[\W_]*+[^\W_])")  # and a letter or digit behind it


class Piece(NamedTuple):
    """A stretch of an answer: characters `start:end` and what they say."""

    start: int
    end: int
    text: str

    def span(self, part: str) -> Span:
        return Span(self.start, self.end, part)

    def moved(self, by: int) -> Piece:
        """The same text, so many characters further on: found in a part, it stands in the answer."""
        return Piece(self.start + by, self.end + by, self.text)


_piece = tuple.__new__  # makes pieces in half the time, which most of the reading goes into


@dataclass(frozen=True)
class Answer:
    """What a constraint is checked on. Positions are those of characters in `text`."""

    text: str

    @cached_property
    def folded(self) -> str:
        """In lower case, each character still where it was."""
        folded = self.text.lower()
        if len(folded) == len(self.text):
            return folded
        return "".join(low if len(low := letter.lower()) == 1 else letter for letter in self.text)

    @cached_property
    def words(self) -> tuple[Piece, ...]:
        """As a person counts them: "state-of-the-art", "isn't", "1,000.50", "e.g." and an address are one
        each, so is each character of Chinese and Japanese; punctuation and rules ("____") are none.
        Underscores, dots between other letters and more than three hyphens join no words.
        """
        return tuple([_piece(Piece, (own.start(), own.end(), own[0])) for own in _WORD.finditer(self.text)])

    def words_of(self, parts: Sequence[Piece]) -> Iterator[tuple[Piece, ...]]:
        """The words of each of these parts of the answer, which are in order and do not overlap. A word that
        goes beyond its part is cut there, as an address is at the next cell of a table.
        """
        words = self.words
        starts = [*(own[0] for own in words), len(self.text)]
        whole = all(map(str.isalnum, [own[2] for own in words]))  # these have no place to be cut at
        first = 0
        for part in parts:
            start, end, _ = part
            while starts[first] < start:
                first += 1
            after = first
            while starts[after] < end:
                after += 1
            if whole or not (
                (first and words[first - 1][1] > start) or (after > first and words[after - 1][1] > end)
            ):
                yield words[first:after]
            else:
                yield self.words_in(part)
            first = after

    def words_in(self, part: Piece) -> tuple[Piece, ...]:
        """The words of one part, whatever stands around it."""
        return tuple([own.moved(part.start) for own in Answer(part.text).words])

    @cached_property
    def lines(self) -> tuple[Piece, ...]:
        """Lines that are not blank, without the white space around them."""
        return _stripped(_LINE, self.text)

    @cached_property
    def paragraphs(self) -> tuple[Piece, ...]:
        """What stands between blank lines, without the white space around it."""
        return _stripped(_PARAGRAPH, self.text)

    @cached_property
    def sentences(self) -> tuple[Piece, ...]:
        """Stretches with a word in them that end with a full stop, a question or exclamation mark, or their
        line; a full stop between a small and a capital letter ends one, too ("one.Two"). Abbreviations,
        initials, decimals, addresses and the numbers of a list end none.
        """
        text = self.text
        bounds = [0]
        for match in _SENTENCE_END.finditer(text):
            at, end = match.span()
            if text[at] != "." or self._ends_here(bounds[-1], at, end):
                bounds.append(end)
        bounds.append(len(text))
        found: list[Piece] = []
        for start, end in pairwise(bounds):
            first = text[start : start + 1]
            if first == " ":
                start += 1
                first = text[start : start + 1]
            if not first.isalpha():  # as most are, which spares a search
                markup = _MARKUP.match(text, start, end)
                if markup is None:  # also where a number of a list is all
                    continue
                start = markup.end()
            said = text[start:end].rstrip()
            found.append(_piece(Piece, (start, start + len(said), said)))
        return tuple(found)

    def occurrences(self, phrase: str) -> tuple[Piece, ...]:
        """Where `phrase` stands as words of its own: case, the shape of apostrophes and the white space in it
        do not matter; "cat" is not in "concatenate", but in "cat's" and in "_cat_".
        """
        first_word, pattern = _search(phrase)
        if first_word not in self._plain:  # looked for much faster than the pattern
            return ()
        return tuple(
            Piece(*match.span(), self.text[match.start() : match.end()])
            for match in pattern.finditer(self._plain)
        )

    @cached_property
    def _plain(self) -> str:
        return self.folded.replace("’", "'")

    @property
    def whole(self) -> tuple[Span, ...]:
        """All of it as one span; none of an empty answer."""
        return (Span(0, len(self.text), "whole"),) if self.text else ()

    def _ends_here(self, start: int, at: int, end: int) -> bool:
        """Whether the full stop at `at`, and what follows it until `end`, ends its sentence."""
        text = self.text
        after = text[end : end + 1]
        if after.isalpha():
            return self._stops_within(start, at)
        if not after or not at or not text[at - 1].isalnum() or text.startswith("..", at):
            return True
        before = text[max(start, at - 12) : at].split()[-1]
        if not before.isalnum() and (edge := _OPENING.match(before)):
            before = before[edge.end() :]
        word = before.lower()
        if word in _ABBREVIATIONS:
            after = text[end : end + 2].lstrip()[:1]
            if word in _TITLES or (after.isdigit() if word in _BEFORE_NUMBERS else after.islower()):
                return False
        if len(before) == 1 and before != "I" and before.isalpha() and before.isupper():
            return False
        # "1." at the beginning of a line numbers it.
        return not (before.isdigit() and not text[start : at - len(before)].strip(" \t#>*_-"))

    def _stops_within(self, start: int, at: int) -> bool:
        """Whether a full stop ends its sentence although a letter follows at once."""
        if not (self.text[at - 1].islower() and self.text[at + 1].isupper()):
            return False
        before = self.text[max(start, at - _LONGEST) : at].split()[-1]
        return not (
            before == "Ph" or before.lower() in _TITLES or len(before) == _LONGEST or _ONLINE.search(before)
        )


@lru_cache(maxsize=1024)
def _search(phrase: str) -> tuple[str, re.Pattern[str]]:
    words = Answer(phrase)._plain.split()
    if not words:
        raise ValueError(f"nothing to look for in {phrase!r}")
    first = NOT_AFTER_WORD if _EDGE.match(words[0][0]) else ""
    last = NOT_BEFORE_WORD if _EDGE.match(words[-1][-1]) else ""
    return words[0], re.compile(first + r"\s+".join(map(re.escape, words)) + last)


def _stripped(pattern: re.Pattern[str], text: str) -> tuple[Piece, ...]:
    """All matches, without the white space at their ends."""
    return tuple(
        [
            _piece(Piece, (own.start(), own.start() + len(said), said))
            for own in pattern.finditer(text)
            for said in [own[0].rstrip()]
        ]
    )
