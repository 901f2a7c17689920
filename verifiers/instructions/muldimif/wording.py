"""The free text of a constraint, taken apart: what it quotes, what it counts, whom it speaks of.

Readers (`reading.py`) take the parts they understand. A number, a quotation, a negation, an "each" or an "if"
that nobody has taken means that the text says something nobody has read: then there is no verdict.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from verifiers.instructions.answer import Answer
from verifiers.instructions.constraint import UnverifiableError
from verifiers.instructions.muldimif.fillers import FILLERS, PHRASES, TOKEN

LONGEST = 1000  # characters; the longest text of the public data has 400
_REACH = 80  # characters before a number that may say what it bounds
QUOTED = "¤"  # stands for every character of a quotation in `Wording.plain`

# Quotations that are listed together.
QUOTES = re.compile(r"¤+(?:(?:\s*(?:,|and|&|, and)\s*|\s*,\s*)¤+)*")

_QUOTATION = re.compile(
    r"(?<![^\W_])(?:'(?=\S)([^\n]{1,200}?)(?<=\S)'|\"(?=\S)([^\n\"]{1,200}?)\"|“([^”\n]{1,200})”|"
    r"‘([^’\n]{1,200})’)"
    r"(?![^\W_])|「([^」\n]{1,200})」"
)
_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen \
seventeen eighteen nineteen".split()
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_VALUES = {word: value for value, word in enumerate(_ONES)} | {
    word: 20 + 10 * index for index, word in enumerate(_TENS)
}
_SCALES = {"hundred": 100, "thousand": 1000}
_NUMBER_WORD = "|".join([*_VALUES, *_SCALES, "single"])
_NUMBER = re.compile(
    rf"(?<![\w.,$])(?<![a-z]-)(?:\d{{1,3}}(?:,\d{{3}})+|\d+)(?![\w%]|[.,]\d)|"
    rf"\b(?:{_NUMBER_WORD})(?:[ -](?:{_NUMBER_WORD})|"
    rf"(?<=hundred) and (?:{_NUMBER_WORD})(?![ -](?:hundred|thousand)))*\b"
)
_JOINED = re.compile(r"\s*(?:-|–|—|to|and|or)\s*")

# What may stand before a number, and what it means; the longest that fits counts. "is" says neither.
_BEFORE = {
    "most": (
        r"at (?:the )?most|no more than|not more than|(?:a |the )?max(?:imum)?(?: (?:length|"
        r"total|number|count|limit))?"
        r"(?: of)?|(?:not|without|never|to not)(?: to)? (?:exceed|exceeding|go over|going over|"
        r"surpass)|up to|"
        r"no (?:longer|greater|larger) than|not (?:be )?longer than|less than or equal to|"
        r"fewer than or equal to|"
        r"limit(?:ed|ing)?(?: (?:it|them|any|the|each|every|your|tables?|this|that|tabular|"
        r"summary|response|answer|"
        r"discussion|description|slide|data|rows?|columns?|number of|\w+ rows?)){0,4} to|"
        r"(?:limit|limitation|cap) (?:of|is|:)|within|not (?:have|contain|include|be|use|"
        r"consist of) more than|<=|≤"
    ),
    "least": (
        r"at (?:the )?least|no fewer than|no less than|not (?:be )?(?:less|fewer|shorter) than|"
        r"(?:a |the )?min(?:imum)?(?: (?:length|total|number|count))?(?: of)?|no shorter than|"
        r"more than or equal to|"
        r"not (?:have|contain|include|use|consist of) (?:less|fewer) than|>=|≥"
    ),
    "more": r"more than|greater than|longer than|over|above|exceed(?:s|ing)?",
    "less": r"less than|fewer than|shorter than|under|below",
    "is": r"exactly|precisely|only|just|strictly|(?:a )?total of|equal to",
    "vague": r"about|around|approximately|roughly|nearly|almost|some|circa|close to|ideally|preferably",
}
_RELATIONS = [
    (kind, re.compile(rf"(?:^|(?<=[^\w-]))(?:{phrases}):?\s*$")) for kind, phrases in _BEFORE.items()
]
_FILLER = re.compile(r"(?:^|(?<=\W))(?:a|an|the|of|total|strict|strictly)\s*$")
_AFTER = {
    "most": re.compile(r"\s*(?:or|and) (?:fewer|less|under|below)\b(?! than)|\s*(?:at most|max(?:imum)?)\b"),
    "least": re.compile(r"\s*(?:or|and) (?:more|above|over)\b(?! than)|\s*(?:at least|min(?:imum)?)\b"),
}
_RANGE = re.compile(
    r"\b(?:falls (?=in|within))?(?:(?:in|within) )?(?:(?:a|the) )?(?:word count )?"
    r"(?:range(?: of|:)?|ranging|between|from)(?: (?:between|"
    r"from))?:?\s*$"
)
# What may stand before a counted part without saying where something is.
_LEAD = re.compile(
    r"\b(?:(?:divided |split |organized |structured )?into|(?:through|by)(?= (?:at least |containing "
    r"))?|headings at|"
    r"(?:is|be|explained|summarized|described|written|answered|answer|response|explanation|summary|"
    r"expressed|presented|provided|"
    r"paraphrased|stated|structured|overview|translated) (?:clearly |concisely )?in|a(?= range))\s*$"
)
_SHARED = re.compile(r",? (?:but|and|yet) (?:(?:it )?(?:must|should) |be )?(?:do(?:es)? )?")
# What stands before a bare number that is meant exactly.
_EXACT = re.compile(
    r"(?:^|\b(?:in|into|of|has|have|having|contains?|containing|includes?|including|with|be|"
    r"being|is|are|as|uses?|"
    r"using|consists? of|through|incorporating|use|via|at|for|remains?|a|an|one|by|long|range|comprises?|"
    r"comprising)|:)\s*$"
)
_UNITS = {
    "words": r"words?",
    "sentences": r"(?:complete |full |distinct |concise |clear |detailed |well-\w+ )*sentences?",
    "paragraphs": r"(?:distinct |separate |full |complete |well-\w+ |concise )*paragraphs?",
    "rows": r"(?:data )?rows?",
    "columns": r"columns?",
    "entries": r"(?:entries|entry|items?|names|elements)",
    "headings at": r"level[ -][1-6] headings?",
    "heading levels": (
        r"(?:different |distinct |separate |markdown )*(?:heading levels?|"
        r"levels? of (?:markdown )?headings?|"
        r"heading sizes?|headings levels?)"
    ),
    "headings": r"(?:different |distinct |separate |markdown |main )*headings",
    "nesting": r"(?:levels? of nesting|nesting levels?|levels? of nested objects?|nested levels?)",
    "levels": r"(?:different |distinct )*levels?",
    "attributes": r"attributes?",
    "block quotes": r"block ?quotes?",
    "bullet points": r"bullet points?",
}
_UNIT = [(unit, re.compile(rf"\s*-?\s*(?:{words})\b")) for unit, words in _UNITS.items()]
_UNIT_BEFORE = re.compile(
    r"\b(word|sentence|paragraph|row|column)(?:s|-)? ?(?:limit|count|limitation|range|"
    r"length)\b[^.;,]{0,30}$"
)
_NESTING_BEFORE = re.compile(
    r"\b(?:nesting levels?|levels? of nesting)\b(?: (?:of|that|do|does|must|should|be))*\s*$"
)
# A part of the text that says why, or gives an example: what stands in it is no demand.
_PURPOSES = (
    "accurately address adhere align categorize clarify clearly communicate compare comprehensively "
    "concisely contextualize "
    "convey cover denote describe differentiate distinctly divide effectively emphasize encourage enhance "
    "ensure explain explore facilitate fit focus fully give group guarantee highlight illustrate improve "
    "indicate introduce list "
    "maintain meet offer organize outline present preserve prompt properly provide reflect represent resolve "
    "satisfy separate show specify structure succinctly summarize support thoroughly understand"
)
_EXAMPLES = ("such as", "like", "for example", "for instance", "e.g.")
_ASIDE = re.compile(
    rf"\bto (?:{'|'.join(_PURPOSES.split())})\b"
    r"(?! (?:that|it|they|this|each|every|all|no|only)\b)|"
    r"\bsuch as\b|\blike(?= ¤)|\bfor example\b|\be\.g\.|\bfor instance\b|"
    r"\bwhich (?:helps|means|(?:is|was) (?:essential|crucial|important|necessary|required|vital|key|"
    r"indicated|a|an)|"
    r"will (?:help|describe|provide|serve|be)|could)\b|"
    r"\bas (?:this|it|they|that|these|i) (?:is|are|was|were|will|helps?|has|have|serves?|aligns?|reflects?|"
    r"represents?|allows?|ensures?|provides?|want|need|enhances?|makes?|adds?|contributes?|emphasizes?)\b|"
    r"\bas (?:specified|required|requested|per)\b|"
    r"\bwithout (?:over\w+|being|sacrificing|losing)\b|\b(?:indicating|marking|signifying)\b|"
    r"\bunderstanding of\b|\bin the context of\b"
)
_CLAUSE_END = re.compile(
    r"[.;:,](?=\s|$)| and (?:must|should|it|also|ends?|ensure|contain|include|has|have)\b"
)
_DEMANDS = re.compile(
    r"\b(?:important|essential|crucial|necessary|vital|imperative|sure|need|needs|required|"
    r"remember|choose|decide|"
    r"structured|detailed enough|comprehensive enough|concise enough|way)\b[^.,;]{0,12}$"
)
# Words of form: where one of them stands that nobody has understood, the text may ask for more than was read.
FORM = re.compile(
    r"\b(?:each|every|per|if|unless|when|whenever|capital\w*|upper ?case|lower ?case|bold\w*|"
    r"italic\w*|bullet\w*|"
    r"json|xml|html|yaml|csv|latex|emoji\w*|commas?|question marks?|exclamation \w+|semicolons?|"
    r"colons?|periods?|"
    r"punctuated|begins?|beginning|starts?|starting|ends|concludes|headings?|subheadings?|"
    r"block ?quotes?|columns?|"
    r"rows?|tables?|tabular|paragraphs?|sentences?|words?|levels?|nesting|chinese|english|french|"
    r"spanish|german|"
    r"keywords?|characters?|letters?|as a list|denotes?|titled|labell?ed|numbered|links?|"
    r"footnotes?|h[1-6]|first|second|third|last|final|opening|"
    r"in (?:the|its|their) (?:main |own )?(?:title|name|conclusion|introduction|caption|end))\b|#"
)
_SOME_LETTERS = re.compile(r"\b(?:first|initial|last) letters?\b")
_NEGATION = re.compile(
    r"\b(?:not|no|never|avoid\w*|without|exclud\w*|omit\w*|refrain\w*|don't|cannot|except|unless)\b"
)


@dataclass(frozen=True)
class Bounds:
    """A count's least and greatest value; None is no bound."""

    low: int | None = None
    high: int | None = None

    def hold(self, count: int) -> bool:
        return (self.low is None or count >= self.low) and (self.high is None or count <= self.high)

    def __str__(self) -> str:
        if self.low == self.high:
            return f"exactly {self.low}"
        if self.low is None:
            return f"at most {self.high}"
        return f"at least {self.low}" if self.high is None else f"{self.low} to {self.high}"


ANY = Bounds()
SOME = Bounds(low=1)


@dataclass(frozen=True)
class Count:
    """ "At most three rows": a bound, of what, and where it stands."""

    bounds: Bounds
    unit: str
    start: int
    end: int


class Wording:
    """A constraint's text and what has been understood of it.

    Args:
        text: as the data has it.

    Raises:
        UnverifiableError: it is longer than any constraint.
    """

    def __init__(self, text: str) -> None:
        if len(text) > LONGEST:
            raise unread(text, f"it has more than {LONGEST} characters")
        self.text = text
        self.quotes = tuple(_quotes(text))
        plain = list(Answer(text).folded.replace("’", "'"))
        for start, end, _ in self.quotes:
            plain[start:end] = QUOTED * (end - start)
        self.plain = "".join(plain)
        self._taken = [False] * len(text)

    def take(self, start: int, end: int) -> None:
        """Note that characters `start:end` have been understood."""
        self._taken[start:end] = [True] * (end - start)

    def search(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """The first match, which then counts as understood."""
        found = pattern.search(self.plain)
        if found:
            self.take(*found.span())
        return found

    def take_all(self, pattern: re.Pattern[str]) -> None:
        """Note that all matches have been understood."""
        for match in pattern.finditer(self.plain):
            self.take(*match.span())

    @cached_property
    def counts(self) -> tuple[Count, ...]:
        """Numbers with their bounds and units, in order; those without a unit are left to others."""
        found: list[Count] = []
        skip = -1
        for index, (start, end, value) in enumerate(self.numbers):
            if start < skip or self.in_aside(start):
                continue  # bounds nothing in an example; elsewhere nobody takes it: no verdict
            high, stop = value, end
            if index + 1 < len(self.numbers):
                following = self.numbers[index + 1]
                joint = self.plain[end : following[0]]
                if _JOINED.fullmatch(joint) and following[2] >= value:
                    high, stop = following[2], following[1]
            count = self._count(start, stop, value, high, found)
            if count is None and (shared := self._shared_unit(index)) is not None:
                count = self._count(start, end, value, value, found, named_at=shared)
            if count is not None:
                found.append(count)
                skip = count.end
        return tuple(found)

    @cached_property
    def numbers(self) -> tuple[tuple[int, int, int], ...]:
        """Start, end and value of each."""
        return tuple((*own.span(), _value(own[0])) for own in _NUMBER.finditer(self.plain))

    def in_aside(self, position: int) -> bool:
        """Whether something stands where the text says why, or gives an example."""
        return any(start <= position < end for start, end, _ in self._asides)

    def finish(self, words: bool = True) -> None:
        """
        Args:
            words: whether every word counts, not only what is about form.

        Raises:
            UnverifiableError: something that makes a difference has not been understood.
        """
        self.take_all(PHRASES)
        form = [
            *(own[:2] for own in self.numbers if own[2] != 1 or not self.plain[own[0] : own[1]].isalpha()),
            *(own[:2] for own in self.quotes),
            *(own.span() for own in _NEGATION.finditer(self.plain)),
            *(own.span() for own in FORM.finditer(self.plain)),
        ]
        self._require(form, examples_only=True)
        for match in _SOME_LETTERS.finditer(self.plain):  # may bound what is said even as an example
            if not all(self._taken[slice(*match.span())]):
                raise unread(self.text, "it speaks of some letters")
        if words:
            others = [own.span() for own in TOKEN.finditer(self.plain) if own[0] not in FILLERS]
            self._require(others, examples_only=False)

    def _require(self, parts: list[tuple[int, int]], examples_only: bool) -> None:
        """That all parts have been understood, but for those in asides or only in examples."""
        for start, end in parts:
            if all(self._taken[start:end]) or any(
                begin <= start < stop and (example or not examples_only or start == begin)
                for begin, stop, example in self._asides
            ):
                continue
            raise unread(self.text, f"nothing is known to follow from {self.text[start:end]!r}")

    # ----------------------------------------------------------------------- counts

    def _shared_unit(self, index: int) -> int | None:
        """Where a number's unit stands that it shares with the next: "at least 3, but at most 5 rows"."""
        if index + 1 == len(self.numbers):
            return None
        (_, end, _), (start, stop, _) = self.numbers[index : index + 2]
        return stop if _SHARED.fullmatch(self.plain, end, self._phrase_start(start)) else None

    def _count(
        self, start: int, end: int, low: int, high: int, before: list[Count], named_at: int | None = None
    ) -> Count | None:
        for stop, top in ((end, high), (self._number_end(start), low)):
            unit = self._unit(start, stop if named_at is None else named_at)
            if unit is None:
                continue
            name, finish = unit if named_at is None else (unit[0], end)
            if low != top and not self._is_range(start):
                return None
            bounds = Bounds(low, top) if low != top else self._bounds(start, finish, low, before)
            if bounds is None:
                return None
            begin = self._phrase_start(start)
            for lead in (_RANGE, _LEAD) if low != top else (_LEAD,):
                if found := self._before(lead, begin):
                    begin = found.start()
            for after in _AFTER.values():
                if low == top and (found := after.match(self.plain, finish)):
                    finish = found.end()
            return Count(bounds, name, begin, finish)
        return None

    def _number_end(self, start: int) -> int:
        return next(own[1] for own in self.numbers if own[0] == start)

    def _unit(self, start: int, end: int) -> tuple[str, int] | None:
        for unit, pattern in _UNIT:
            if found := pattern.match(self.plain, end):
                return unit, found.end()
        begin = self._phrase_start(start)
        if self._before(_NESTING_BEFORE, begin):
            return "nesting", end
        if found := self._before(_UNIT_BEFORE, start):
            return found[1] + "s", end
        return None

    def _is_range(self, start: int) -> bool:
        """Whether two numbers are the ends of a range, not two counts of which one is named."""
        return not any(
            kind in ("vague", "more", "less") and self._before(pattern, start) for kind, pattern in _RELATIONS
        )

    def _relations(self, start: int) -> tuple[list[str], int]:
        """Kinds of the phrases before a number, the nearest first, and where they begin."""
        kinds: list[str] = []
        while True:
            found = [
                (match.start(), kind)
                for kind, pattern in _RELATIONS
                if (match := self._before(pattern, start))
            ]
            if found:
                start, kind = min(found)
                kinds.append(kind)
            elif (filler := self._before(_FILLER, start)) and any(
                self._before(pattern, filler.start()) for _, pattern in _RELATIONS
            ):
                start = filler.start()
            else:
                return kinds, start

    def _before(self, pattern: re.Pattern[str], end: int) -> re.Match[str] | None:
        return pattern.search(self.plain, max(0, end - _REACH), end)

    def _phrase_start(self, start: int) -> int:
        return self._relations(start)[1]

    def _bounds(self, start: int, end: int, value: int, before: list[Count]) -> Bounds | None:
        kinds, begin = self._relations(start)
        kinds += [kind for kind, pattern in _AFTER.items() if pattern.match(self.plain, end)]
        meant = {kind for kind in kinds if kind != "is"}
        if not meant:
            if "is" in kinds:
                return Bounds(value, value)
            if before and re.fullmatch(r" (?:and|or) ", self.plain[before[-1].end : start]):
                last = before[-1].bounds
                same = Bounds(*(None if own is None else value for own in (last.low, last.high)))
                return (
                    None if last.low is not None and last.high is not None and last.low != last.high else same
                )
            return Bounds(value, value) if self._before(_EXACT, begin) else None
        if meant == {"most"}:
            exact = self.plain.startswith("single", start) or self._says_exactly(begin, start)
            return Bounds(value, value) if exact else Bounds(high=value)
        if meant == {"least"}:
            return Bounds(low=value)
        if meant == {"more"}:
            return Bounds(low=value + 1)
        return Bounds(high=value - 1) if meant == {"less"} else None

    def _says_exactly(self, start: int, end: int) -> bool:
        return re.search(r"exactly|precisely", self.plain[start:end]) is not None

    # ----------------------------------------------------------------------- clauses

    @cached_property
    def _asides(self) -> tuple[tuple[int, int, bool], ...]:
        found: list[tuple[int, int, bool]] = []
        for match in _ASIDE.finditer(self.plain):
            if _DEMANDS.search(self.plain[: match.start()]):
                continue
            end = _CLAUSE_END.search(self.plain, match.end())
            stop = end.start() if end else len(self.plain)
            if match[0] in _EXAMPLES:
                sentence = re.compile(r"[.;](?=\s|$)").search(self.plain, match.end())
                stop = sentence.start() if sentence else len(self.plain)
            found.append((match.start(), stop, match[0] in _EXAMPLES))
        return tuple(found)


def unread(text: str, why: str) -> UnverifiableError:
    return UnverifiableError(f"{text!r:.120} cannot be read as a rule: {why}")


def _quotes(text: str) -> Iterator[tuple[int, int, str]]:
    for match in _QUOTATION.finditer(text):
        value = next(group for group in match.groups() if group is not None).strip()
        if value:
            yield *match.span(), value


def _value(words: str) -> int:
    if words[0].isdigit():
        return int(words.replace(",", ""))
    total = part = 0
    for word in re.split(r" and |[ -]", words):
        if word in _SCALES:
            part = max(part, 1) * _SCALES[word]
            if word == "thousand":
                total, part = total + part, 0
        else:
            part += 1 if word == "single" else _VALUES[word]
    return total + part
