"""Readers of what a text says of form: tables, Markdown, JSON and XML."""

from __future__ import annotations

import re
from dataclasses import replace

from verifiers.instructions.muldimif.rules import (
    HeadingAt,
    HeadingLevels,
    JsonDepth,
    Marked,
    Rule,
    Size,
    Tables,
    XmlAttributes,
)
from verifiers.instructions.muldimif.wording import FORM, QUOTES, Bounds, Count, Wording, unread

# --------------------------------------------------------------------------- what a part is about

# Words that end a noun phrase, or pick something.
_NO_NOUN = (
    "after all also always and any are as at be before both but by can contain containing contains each "
    "either every "
    "except exactly first for from has have if in include includes including into is it its last least "
    "less more "
    "most must never no none not of on once one only or other over same second should that than the "
    "then third to "
    "twice under unless until up when where which while with within without"
)
_NOUN = rf"(?!(?:{'|'.join(_NO_NOUN.split())})\b)(?![a-z]+(?:ed|ing|ly|est|ically)\b)[a-z][a-z'-]*"
_TOPIC = re.compile(
    rf"\b(?:for|(?<=table )of|listing|lists|summarizing|summarizes|detailing|details|describing|"
    rf"describes|comparing|compares|"
    rf"showing|shows|presenting|presents|explaining|about|focusing on|related to|regarding) "
    rf"(?:(?:the|a|an|its|their|your|this) )?{_NOUN}(?:(?:,|,? and|,? or| of| in| about| for)?(?: "
    rf"(?:the|a|an|its|their|your))? {_NOUN}){{0,9}}"
)
_ENTIRE = re.compile(r"\b(?:entire|whole)\b")


def _take_topics(wording: Wording) -> None:
    """Note that what a part of an answer is about, which nobody judges, has been understood."""
    for match in _TOPIC.finditer(wording.plain):
        form = FORM.search(wording.plain, *match.span())
        wording.take(match.start(), form.start() if form else match.end())


# --------------------------------------------------------------------------- tables

_TABLE = re.compile(r"\b(?:tables?(?! of contents)|tabular)\b")
_A_TABLE = re.compile(r"\b(?:a|the|markdown) (?:tables?|tabular)\b")
_EACH_TABLE = re.compile(r"\beach table\b")
_TABLE_PART = re.compile(
    r"\b(?:cells?|entries|entry) in the table\b|\bin the table\b|\btable (?:entries|cells)\b|"
    r"^the table (?:must|ends|concl)"
)
_TABLE_CONDITION = re.compile(
    r"\b(?:if|when|whenever|should you|in case|where)\b[^.;,]{0,90}?\b(?:tables?|tabular)\b|"
    r"\bany (?:tables?|tabular)\b|\blimit(?:ing)? tables\b"
)
_TABLE_WORDS = re.compile(
    r"\b(?:each |any |every )?(?:table of contents|(?:markdown )?tables?(?: format)?s?|"
    r"tabular (?:data|format)|"
    r"(?:data )?rows?|columns?)\b|\beach question and its corresponding answer\b"
)
_TABLE_ASIDE = re.compile(
    r",? ?\b(?:with |where )?(?:each|the first|the second|the other)(?: row| column)? ?"
    r"(?:representing|represents|occupying|corresponding|lists?|provides|focusing|for|as|"
    r"dedicated)\b[^.;,]*|"
    r"\bone (?:column )?(?:(?:is )?dedicated to|for)\b[^.;,]*"
)
_IN_TABLE = re.compile(
    (
        r"\b(?:(?:is|are|be|it|presented|displayed|organized|formatted|provided|structured|listed|shown|"
        r"summarized|"
        r"information|arranged|response|answer) |(?:present|display|organize|provide|list|summarize|"
        r"put)(?: the| key| your| of| and| its| any){0,2}(?: NOUN){1,6} )"
        r"in (?:a |an |the |concise |clear |structured |markdown |proper )*(?=tab)"
    ).replace("NOUN", f"{_NOUN}(?: of(?: the)?)?")
)
_LIST_ENTRIES = re.compile(r"\b(?:list(?: of contents)?) (?:must|should|does|do|can|may|to|shall)\b")
_IT = re.compile(r"^(?:it |limit it |limiting it )")
_WITH_HEADER = re.compile(r"\bincluding (?:the )?headers?(?: row)?\b")
_NAMES_BEFORE = re.compile(
    r"(?:\b(?:labell?ed|titled|named|called|including|includes?|contain(?:ing)?|should be|as|"
    r"specifically|for|detailing)|:)"
    r"(?: as)?:?\s*$"
)
_NAME_LIST = re.compile(
    r"(?::|\b(?:titled|labeled|labelled|named|called)(?: as)?:?|\bspecifically (?:including|titled "
    r"as:?))\s*([^.;¤]+)"
)
_NOT_A_NAME = re.compile(r"^(?:one|another|each|the other)\b|\d|\b(?:which|that|to)\b")


def tables(wording: Wording) -> list[Rule]:
    sizes = {own.unit: own for own in wording.counts if own.unit in ("rows", "columns")}
    spoken_of = _TABLE.search(wording.plain)
    if not sizes and (not spoken_of or _TABLE_PART.search(wording.plain)):
        return []
    entries = _LIST_ENTRIES.search(wording.plain)
    if not spoken_of and (entries is None or "columns" in sizes) and not _IT.search(wording.plain):
        return []
    for count in sizes.values():
        wording.take(count.start, count.end)
    if not spoken_of and entries:
        wording.take(*entries.span())
        return [Size(sizes["rows"].bounds, "entries")]
    condition = wording.search(_TABLE_CONDITION) or (
        None if _A_TABLE.search(wording.plain) else wording.search(_EACH_TABLE)
    )
    if condition and not sizes:
        return []
    with_header = wording.search(_WITH_HEADER) is not None
    names = _column_names(wording, sizes.get("columns"))
    wording.take_all(_TABLE_ASIDE)
    wording.take_all(_IN_TABLE)
    _take_topics(wording)
    if _ENTIRE.search(wording.plain):
        raise unread(wording.text, "an answer of nothing but a table")
    wording.take_all(_TABLE_WORDS)
    bounds = {unit: own.bounds for unit, own in sizes.items()}
    return [
        Tables(
            required=condition is None,
            rows=bounds.get("rows", Bounds()),
            columns=bounds.get("columns", Bounds()),
            names=names,
            with_header=with_header,
        )
    ]


def _column_names(wording: Wording, columns: Count | None) -> tuple[str, ...]:
    """Names that the text gives the columns, quoted or listed behind a colon."""
    if columns is None:
        return ()
    names: tuple[str, ...] = ()
    start = columns.end
    for group in QUOTES.finditer(wording.plain, start):
        if not wording.in_aside(group.start()) and _NAMES_BEFORE.search(
            wording.plain, max(start, group.start() - 60), group.start()
        ):
            wording.take(start, group.end())
            names = tuple(value for begin, _, value in wording.quotes if group.start() <= begin < group.end())
            break
    else:
        listed = _NAME_LIST.search(wording.plain, start)
        if listed:
            parts = [
                own.strip() for own in re.split(r",? and |, ", wording.text[slice(*listed.span(1))].strip())
            ]
            if len(parts) < 2 or any(
                _NOT_A_NAME.search(own.lower()) or len(own.split()) > 4 for own in parts
            ):
                return ()
            wording.take(*listed.span())
            names = tuple(parts)
    if names and not columns.bounds.hold(len(names)):
        raise unread(wording.text, f"it names {len(names)} columns and wants {columns.bounds}")
    return names


# --------------------------------------------------------------------------- Markdown

_DIGIT = r"(?:h?[1-6]|one|two|three|four|five|six)"
_LEVELS = re.compile(
    rf"\blevels? (?:of )?(?P<list>{_DIGIT}\b(?:(?:, and |, |"
    rf" and ){_DIGIT}\b(?! (?:sub)?headings?\b))*)|\blevel-(?P<dash>{_DIGIT})\b|"
    r"\b(?P<h>h[1-6])\b|(?<![\w#])(?P<hash>#{1,6})(?![\w#])"
)
_LEVEL_WORDS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_HEADINGS = re.compile(r"\b(?:sub)?headings?\b|\bheading levels?\b")
_HEADING_WORDS = re.compile(
    r"\b(?:titled|labell?ed|for each (?:main |major |different )?sections?|(?:sub-?)?headings?|"
    r"levels?|h[1-6]|paragraphs? must start)\b|"
    r"\b(?:one|two|three|four) hash symbols?\b|#+|\bstarting with ¤+|\bheadings for each section\b"
)
_ONE_FOR = re.compile(
    r"\b(?:one|another)(?: (?:level|heading))? (?=for\b)|\b(?:for|with|as|and|the)(?: the| an?)?(?: "
    r"main| \w+'s| song| email| chapter)? title\b|"
    r"\bat(?= (?:heading )?level)|\binto (?:clear |distinct )*sections\b|\b(?:clear |distinct )+sections\b|"
    r"\bone (?:serves )?as\b|\bthe other\b|\b(?:for|and) another(?= for)|\bfor(?= ¤)|\bmain (?:points|"
    r"sections|topics?)\b|"
    r"\b(?:where|while)(?= the\b| ¤| one\b)"
)
_CONTENT_OF_HEADINGS = re.compile(r"\b(?:in|within|all|each) (?:the )?(?:titles and )?headings?\b")
_AT_BEGINNING = re.compile(
    r"\b(?:begins?|starts?) with (?:an? )?(?:markdown )?(?:heading|level)|\bat the beginning\b"
)
_DEEPEST = re.compile(
    rf"\b(?:any headings used in the answer (?:must|should) )?(?:up to|at most|not exceed|no deeper "
    rf"than|not go beyond) (?:heading )?level (?P<n>{_DIGIT})\b"
)
_ONLY = re.compile(rf"^headings (?:should|must) be at level (?P<n>{_DIGIT})\b")
_TITLE_BEFORE = re.compile(
    r"\b(?:titled|title:?|called|named|labell?ed|with the text|headings?:?|sections?:?|including|"
    r"specifically|for|as|include|"
    r"be|and|another|to|like)(?: (?:as|for|the|a|main|book|album|sections?|one|clearly|distinct|to|limited|"
    r"title|but|not)){0,4}:?\s*$"
)
_AS_LEVEL = re.compile(r" (?:is |presented |as |formatted |an? )*")


def markdown(wording: Wording) -> list[Rule]:
    return [*_marked(wording), *_heading_rules(wording)]


def _marked(wording: Wording) -> list[Rule]:
    found: list[Rule] = []
    if match := wording.search(re.compile(r"\bno bullet points?\b|\bwithout (?:using )?bullet points?\b")):
        found.append(Marked("bullet points", Bounds(high=0), "identifiers"))
    for what in ("block quotes", "bullet points", "bold"):
        counted = [own for own in wording.counts if own.unit == what]
        pattern = re.compile(rf"\b{what[:-1] if what != 'bold' else what}(?:s|ed)?\b".replace(" ", " ?"))
        match = pattern.search(wording.plain)
        if (
            match
            and not wording.in_aside(match.start())
            and not any(isinstance(own, Marked) and own.what == what for own in found)
        ):
            wording.take(*match.span())
            bounds = counted[0].bounds if counted else Bounds(low=1)
            for own in counted:
                wording.take(own.start, own.end)
            found.append(Marked(what, bounds))
    return found


def _heading_rules(wording: Wording) -> list[Rule]:
    if not _HEADINGS.search(wording.plain) or _CONTENT_OF_HEADINGS.search(wording.plain):
        return []
    if match := wording.search(_DEEPEST) or wording.search(_ONLY):
        wording.take_all(_HEADING_WORDS)
        level = _level(match["n"])
        return [
            HeadingLevels(deepest=level)
            if match.re is _DEEPEST
            else HeadingLevels(levels=(level,), only=True)
        ]
    first = wording.search(_AT_BEGINNING) is not None
    levels = _levels(wording)
    titles = _titles(wording, levels)
    wording.take_all(_HEADING_WORDS)
    wording.take_all(_ONE_FOR)
    _take_topics(wording)
    if _ENTIRE.search(wording.plain):
        raise unread(wording.text, "an answer of nothing but headings")
    found: list[Rule] = []
    distinct = False
    for count in wording.counts:
        if count.unit in ("heading levels", "levels"):
            wording.take(count.start, count.end)
            found.append(HeadingLevels(count.bounds, tuple(sorted({level for level, _, _ in levels}))))
            distinct = True
        elif count.unit == "headings at":
            wording.take(count.start, count.end)
            level = next(own for own, start, _ in levels if count.start <= start < count.end)
            found.append(HeadingAt(level, count.bounds, first=first))
        elif count.unit == "headings":
            wording.take(count.start, count.end)
            found.append(HeadingAt(None, count.bounds))
    at = {level for level, _, _ in levels}
    if not found and len(at) == 1 and len(titles) <= 1:
        return [HeadingAt(at.pop(), title=titles[0][1] if titles else None, first=first)]
    if not distinct and len(at) > 1:
        found.append(HeadingLevels(levels=tuple(sorted(at))))
    elif not found and not at:
        several = re.search(r"\bsubheadings?\b", wording.plain)
        found.append(HeadingLevels(Bounds(low=2)) if several else HeadingAt(None, Bounds(low=2)))
    elif not found:
        found.append(HeadingAt(at.pop(), first=first))
    return found + [HeadingAt(level, title=title) for level, title in titles]


def _levels(wording: Wording) -> list[tuple[int, int, int]]:
    """Levels that the text names outside its examples: the level, and where it stands."""
    found: list[tuple[int, int, int]] = []
    for match in _LEVELS.finditer(wording.plain):
        wording.take(*match.span())
        if wording.in_aside(match.start()):
            continue
        for name in re.findall(rf"{_DIGIT}\b|#+", match[0].removeprefix("levels").removeprefix("level")):
            found.append((_level(name), *match.span()))
    for start, end, value in wording.quotes:
        if re.fullmatch(r"#{1,6}", value):
            wording.take(start, end)
            if not wording.in_aside(start):
                found.append((len(value), start, end))
    return found


def _level(name: str) -> int:
    if name.startswith("#"):
        return len(name)
    return _LEVEL_WORDS[name] if name in _LEVEL_WORDS else int(name.removeprefix("h"))


def _titles(wording: Wording, levels: list[tuple[int, int, int]]) -> list[tuple[int | None, str]]:
    """Titles that the text gives to headings, with the level where it follows: 'Aims' as a level 2."""
    found: list[tuple[int | None, str]] = []
    for group in QUOTES.finditer(wording.plain):
        behind = _AS_LEVEL.match(wording.plain, group.end())
        level = next((own for own, start, _ in levels if behind and behind.end() == start), None)
        named = _TITLE_BEFORE.search(wording.plain, max(0, group.start() - 60), group.start())
        if wording.in_aside(group.start()) or (level is None and not named):
            continue
        for start, end, value in wording.quotes:
            if group.start() <= start < group.end() and not re.fullmatch(r"#+", value):
                wording.take(start, end)
                mark = re.match(r"(#{1,6}) ", value)
                found.append((len(mark[1]) if mark else level, value.lstrip("# ").rstrip(".,")))
    return found


# --------------------------------------------------------------------------- JSON and XML

_JSON_WORDS = re.compile(r"\bjson\b|\b(?:object )?nesting(?: levels?)?\b")
_JSON_FORMAT = re.compile(r"\b(?:in|using|as|include) (?:an? )?(?:valid )?json(?: format| object)?\b")
_EACH_ELEMENT = re.compile(r"\b(?:each|every) xml element\b")
_XML_CONDITION = re.compile(r"\bif (?:you (?:choose to )?use xml|xml is used)\b")
_XML_WORDS = re.compile(rf"{_XML_CONDITION.pattern}|{_EACH_ELEMENT.pattern}|\bxml\b")


def data(wording: Wording) -> list[Rule]:
    found: list[Rule] = []
    alone = _ENTIRE.search(wording.plain) is not None
    nesting = [
        own
        for own in wording.counts
        if own.unit == "nesting" or (own.unit == "levels" and "nest" in wording.plain)
    ]
    for count in nesting:
        wording.take(count.start, count.end)
        found.append(JsonDepth(count.bounds))
    if found:
        wording.take_all(_JSON_WORDS)
    elif "json" in wording.plain and wording.search(_JSON_FORMAT):
        found.append(JsonDepth(Bounds(low=1)))
    if found:
        wording.take_all(_JSON_FORMAT)
        if alone:
            found = [replace(own, alone=True) for own in found if isinstance(own, JsonDepth)]
    for count in wording.counts:
        if count.unit == "attributes" and "xml" in wording.plain:
            wording.take(count.start, count.end)
            each = _EACH_ELEMENT.search(wording.plain) is not None
            condition = _XML_CONDITION.search(wording.plain)
            found.append(XmlAttributes(count.bounds, each, required=not each and condition is None))
            wording.take_all(_XML_WORDS)
    return found
