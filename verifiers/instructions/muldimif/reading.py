"""From a constraint's free text to its rules. One reader a kind; each takes what it understands of the text."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from verifiers.instructions.muldimif.rules import (
    Chinese,
    Ending,
    English,
    FullSentences,
    HeadingAt,
    HeadingLevels,
    JsonDepth,
    Keywords,
    LetterCase,
    Marked,
    NoMark,
    Rule,
    Scope,
    Size,
    StartsWith,
    Tables,
    XmlAttributes,
)
from verifiers.instructions.muldimif.wording import Bounds, Count, Wording, unread

_MARKS = {
    "period": ".。", "full stop": ".。", "question mark": "?？", "exclamation mark": "!！", "exclamation point": "!！",
    "semicolon": ";；", "colon": ":：",
}
_MARK = "|".join(_MARKS)
_ONE_MARK = rf"(?:an? )?(?:single )?({_MARK})!?(?: or (?:an? )?({_MARK}))?"
_AS_LAST = r"(?: as the (?:ending|final|last|closing) punctuation(?: mark)?)?"
_ENDING = re.compile(
    rf"\b(?:end|ends|ending|conclude|concludes|concluding|finish|finishes|marked)(?: (?:the|your|each|every|all|this) "
    rf"[a-z]+)? (?:with|in) {_ONE_MARK}{_AS_LAST}"
    rf"|\bending punctuation(?: mark)?(?: (?:of|for) [\w ]{{1,40}}?)? (?:must be|should be|is|to be) {_ONE_MARK}"
)
_NO_MARK = re.compile(
    rf"\b(?:avoid(?:s|ing)?|not (?:use|contain|include)|without(?: using| any)?|no)(?: the use of| using| any)? "
    rf"({_MARK})s?\b"
)

_EACH_WORD = (
    r"\b(?:us(?:e|es|ing)|use of|employ(?:s|ing)?) (?:of )?capitalized letters for each word"
    r"|\bcapitaliz(?:e|es|ing) (?:the first letter of )?each word"
    r"|\beach word(?:'s initial letter)?(?P<where> in [\w' ]{1,60}?)? "
    r"(?:is |are |be |being |must be |should be |to be )?(?:capitalized|"
    r"(?:must |should )?(?:begin|start)(?:s|ning|ing)? with an? (?:capital|capitalized|upper ?case) letter)"
)
_CAPITALIZED = re.compile(_EACH_WORD)
_UPPER = re.compile(
    r"\b(?:all|entirely in|completely in|only)? ?(?:all )?(?:upper ?case|capital)(?: letters)\b|\ball upper ?case\b|"
    r"\ball caps\b"
)
_LOWER = re.compile(r"\b(?:all|entirely in|completely in|only)? ?(?:all )?lower ?case(?: letters)?\b")
_ENGLISH = re.compile(
    r"\b(?:written |provided |composed |crafted |presented |is )?in english\b(?! and english)|"
    r"\blanguage used(?: in the [a-z]+)? (?:must be|should be|is|to be) english\b|\blanguage to be in english\b"
)
_ENGLISH_REMARK = re.compile(
    r"\b(?:per |proper |adhering to )?(?:the )?english(?: and capitalized| language \w+| language)\b|\bin upper ?case\b"
)
_CHINESE = re.compile(
    r"\b(?P<en>simplified|traditional)? ?chinese(?: characters| language)?\b|(?P<zh>简体|簡體|繁體|繁体)?中文"
)

_GROUP = re.compile(r"¤+(?:(?:\s*(?:,|and|&|, and)\s*|\s*,\s*)¤+)*")
_KEYWORD_BEFORE = re.compile(
    r"(?:\b(?:the )?(?:specific |essential |following |exact )*(?:keywords?|terms?|words?|phrases?|names)"
    r"(?:,? (?:including|namely))?:?|關鍵詞|关键词|\bthe game|\bmention (?:its |the )?[a-z]+)\s*$"
)
_KEYWORD_AFTER = re.compile(r"\s*as (?:a|the) (?:keyword|key term)s?\b")
_WANTED = re.compile(
    r"\b(?:includ\w*|inclusion|incorporat\w*|contain\w*|mention\w*|appear\w*|us(?:e|es|ing)|featur\w*|keyword|address)\b|"
    r"包含"
)
_UNWANTED = re.compile(
    r"\b(?:avoid\w*|not (?:include|use|contain|mention)|exclud\w*|without(?: using)?|refrain\w* from(?: using)?)"
    r"[^.;,]{0,30}$"
)
_TIMES = re.compile(
    r"\b(?:(at least|at most|no more than|exactly|a minimum of|a maximum of) )?"
    r"(once|twice|thrice|multiple times|several times|(?:\d{1,3}|two|three|four|five|six|seven|eight|nine|ten) times)\b"
)
_TIME_WORDS = {
    "once": 1, "twice": 2, "thrice": 3, "multiple times": 2, "several times": 2,
    "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
}

_TABLE = re.compile(r"\b(?:tables?(?! of contents)|tabular)\b")
_TABLE_CONDITION = re.compile(
    r"\b(?:if|when|whenever|should you|in case|where)\b[^.;]{0,90}?\b(?:tables?|tabular)\b|"
    r"\bany (?:tables?|tabular)\b|\blimit(?:ing)? tables\b"
)
_TABLE_WORDS = re.compile(
    r"\b(?:each |any |every )?(?:table of contents|(?:markdown )?tables?(?: format)?s?|tabular (?:data|format)|"
    r"(?:data )?rows?|columns?)\b|\beach question and its corresponding answer\b"
)
_TABLE_ASIDE = re.compile(
    r",? ?\b(?:with |where )?(?:each|the first|the second|the other)(?: row| column)? ?"
    r"(?:representing|represents|occupying|corresponding|lists?|provides|focusing|for|as|dedicated)\b[^.;]*|"
    r"\bone (?:column )?(?:(?:is )?dedicated to|for)\b[^.;]*"
)
_NAMES_BEFORE = re.compile(
    r"(?:\b(?:labell?ed|titled|named|called|including|includes?|contain(?:ing)?|should be|as|specifically|for|detailing)|:)"
    r"(?: as)?:?\s*$"
)
_NOT_A_NAME = re.compile(r"^(?:one|another|each|the other)\b|\d|\b(?:which|that|to)\b")
_IT = re.compile(r"^(?:it |limit it |limiting it )")
_TABLE_PART = re.compile(r"\b(?:cells?|entries|entry) in the table\b|\bin the table\b|\btable (?:entries|cells)\b|^the table (?:must|ends|concl)")
_CONTENT_OF_HEADINGS = re.compile(r"\b(?:in|within|all|each) (?:the )?(?:titles and )?headings?\b")
_AS_LEVEL = re.compile(r" (?:is |presented |as |formatted |an? )*")
_IN_WHAT = re.compile(r" (?:in|within|of|throughout) (?:(?:the|your|all|entire) )*[a-z]+(?: (?:of|and) (?:the )?[a-z]+| (?:entries|cells|title|titles))?")
_CAPITAL_REMARK = re.compile(
    r"\b(?:as|maintaining|requirement|adhering|ensuring)\b[^.;]{0,60}\b(?:capitalized letters(?: for each word)?|"
    r"each word begins with a capital letter)|\bcapitalized letters\b"
)
_KEYWORD_WORDS = re.compile(
    r"\b(?:(?:specific |this |these )*keywords?|these terms|this term|the term)\b|\bin the text\b"
)
_JSON_WORDS = re.compile(r"\bjson\b|\b(?:object )?nesting(?: levels?)?\b")
_JSON_FORMAT = re.compile(r"\b(?:in|using|as|include) (?:an? )?(?:valid )?json(?: format| object)?\b")
_EACH_ELEMENT = re.compile(r"\b(?:each|every) xml element\b")
_XML_CONDITION = re.compile(r"\bif (?:you (?:choose to )?use xml|xml is used)\b")
_XML_WORDS = re.compile(rf"{_XML_CONDITION.pattern}|{_EACH_ELEMENT.pattern}|\bxml\b")
_STARTS_WITH = re.compile(r"\b(?:starts?|begins?) with (?:the )?(?:identifier|word|phrase|text|words)? ?(?P<what>¤+)")
_FULL_SENTENCES = re.compile(r"\bin (?:full|complete) sentences\b")
_REMARK = re.compile(
    r"^when (?:crafting|answering|writing|paraphrasing|responding)\b|\b(?:total )?(?:word|sentence) (?:count|limit|requirement)\b|"
    r"\btable of contents\b"
)
_NOT_PARTS = frozenset(
    "word words table tables xml row rows column columns language uppercase upper lower lowercase content necessary "
    "details key aspects aspect caps json capital subtopic different separate of representing focusing as".split()
)
_NAME_LIST = re.compile(r"(?::|\b(?:titled|labeled|labelled|named) as:?|\bspecifically (?:including|titled as:?))\s*([^.;¤]+)")
_WITH_HEADER = re.compile(r"\bincluding (?:the )?headers?(?: row)?\b")
_LIST_ENTRIES = re.compile(r"\b(?:list(?: of contents)?) (?:must|should|does|do|can|may|to|shall)\b")

_DIGIT = r"(?:h?[1-6]|one|two|three|four|five|six)"
_LEVELS = re.compile(
    rf"\blevels? (?:of )?(?P<list>{_DIGIT}\b(?:(?:, and |, | and ){_DIGIT}\b(?! (?:sub)?headings?\b))*)|\blevel-(?P<dash>{_DIGIT})\b|"
    r"\b(?P<h>h[1-6])\b|(?<![\w#])(?P<hash>#{1,6})(?![\w#])"
)
_LEVEL_WORDS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_TITLE_BEFORE = re.compile(
    r"\b(?:titled|title:?|called|named|labell?ed|with the text|headings?:?|sections?:?|including|specifically|for|as|include|"
    r"be|and|another|to|like)(?: (?:as|for|the|a|main|book|album|sections?|one|clearly|distinct|to|limited|"
    r"title|but|not)){0,4}:?\s*$"
)
_AT_BEGINNING = re.compile(
    r"\b(?:begins?|starts?) with (?:an? )?(?:markdown )?(?:heading|level)|\bat the beginning\b"
)
_DEEPEST = re.compile(rf"\b(?:up to|at most|not exceed|no deeper than|not go beyond) (?:heading )?level (?P<n>{_DIGIT})\b")
_ONLY = re.compile(rf"^headings (?:should|must) be at level (?P<n>{_DIGIT})\b")
_HEADING_WORDS = re.compile(
    r"\b(?:titled|labell?ed|for each (?:main |major |different )?sections?|(?:sub-?)?headings?|levels?|h[1-6]|paragraphs? must start)\b|"
    r"\b(?:one|two|three|four) hash symbols?\b|#+|\bstarting with ¤+|\bheadings for each section\b"
)
_HEADINGS = re.compile(r"\b(?:sub)?headings?\b|\bheading levels?\b")

_WHOLE = frozenset(
    """analysis answer article breakdown code content curriculum definition description diagram document email essay
    exam explanation guide information introduction it lines list message methodology narrative news note outline
    output paper paragraph paraphrase passage poem presentation primer proposal question questionnaire reason recommendation
    reply report response result review script sentence solution statement story summary test text textbook
    timeline translation version worksheet writing list curriculum agreement letter speech blog post
    """.split()
)
_NEUTRAL = frozenset(
    "keyword keywords term terms punctuation length count language style range limit requirement structure game "
    "names word tone number phrase topic focus context".split()
)
_SEVERAL = frozenset(
    "answers articles definitions descriptions examples questions references sentences expressions lines slides "
    "options names titles topics entries sections recommendations issues".split()
)
_SUBJECT = re.compile(
    r"\b(?:the|your|this|its)\s+((?:[a-z][a-z'-]*\s+){1,7}?)(?:must|should|shall|needs?|is|are|does|do|has|have|contains?|"
    r"includes?|incorporates?|concludes?|ends|end|uses?|employs?|remains?|consists?|comprises?|features?|begins?)\b"
)
_PART = re.compile(r"\b(?:each|every|per|all)(?: of the)? (?!in\b|of\b)((?:[a-z'-]+ ?){1,4})")
_SCOPES: dict[str, Scope] = {
    "sentence": "sentence", "paragraph": "paragraph", "section": "section", "cell": "cell", "heading": "heading",
    "headings": "heading", "entry": "entry", "item": "entry",
}
_IN_PART = re.compile(
    r"\b(?:in|within|of) (?:the |all )?(?P<heading>(?:titles and )?headings?)\b|"
    r"\b(?:in|within) the (?P<table>table)\b(?! of| format)|"
    r"\b(?:in|within|of) (?:the )?(?P<cell>table entries|table cells|cells)\b"
)


@lru_cache(maxsize=8192)
def read(text: str) -> tuple[Rule, ...]:
    """All that a constraint's text asks for.

    Raises:
        UnverifiableError: not all of it has been understood.
    """
    wording = Wording(text)
    rules = tuple(rule for reader in _READERS for rule in reader(wording))
    wording.finish()
    if not rules:
        raise unread(text, "nothing in it can be checked")
    return rules


# --------------------------------------------------------------------------- length


def _sizes(wording: Wording) -> list[Rule]:
    _take_all(wording, _REMARK)
    found: list[Rule] = []
    for count in wording.counts:
        if count.unit in ("words", "sentences", "paragraphs", "entries"):
            wording.take(count.start, count.end)
            found.append(Size(count.bounds, count.unit, _scope(wording)))  # type: ignore[arg-type]
    return found


# --------------------------------------------------------------------------- letters and languages


def _cases(wording: Wording) -> list[Rule]:
    found: list[Rule] = []
    for match in _CAPITALIZED.finditer(wording.plain):
        wording.take(*match.span())
        found.append(LetterCase("capitalized", _where(wording, match)))
    if wording.search(_UPPER):
        found.append(LetterCase("upper", _scope(wording)))
    if wording.search(_LOWER):
        found.append(LetterCase("lower", _scope(wording)))
    if found and found[0] == LetterCase("capitalized"):
        _take_all(wording, _CAPITAL_REMARK)
    return list(dict.fromkeys(found))


def _where(wording: Wording, match: re.Match[str]) -> Scope:
    """In what each word is to be capitalized."""
    after = _IN_WHAT.match(wording.plain, match.end())
    if after:
        wording.take(*after.span())
    words = (match["where"] or (after[0] if after else "")).split()[1:]
    nouns = [word for word in words if word not in ("the", "your", "all", "and", "entire")]
    if not nouns or nouns[-1] in _WHOLE or nouns in (["english"], ["answers"], ["questions", "answers"], ["sentences"]):
        return _scope(wording, several=True)
    if nouns[-1] in ("heading", "headings"):
        return "heading"
    if nouns[0] == "table" and nouns[-1] in ("table", "entries", "cells"):
        return "table"
    raise unread(wording.text, f"what {' '.join(words)!r} is in an answer cannot be found")


def _languages(wording: Wording) -> list[Rule]:
    found: list[Rule] = []
    if match := wording.search(_CHINESE):
        said = match["en"] or {"简": "simplified", "簡": "simplified", "繁": "traditional"}.get((match["zh"] or "")[:1])
        found.append(Chinese(said or "any"))  # type: ignore[arg-type]
    if wording.search(_ENGLISH):
        found.append(English())
    _take_all(wording, _ENGLISH_REMARK)
    return found


# --------------------------------------------------------------------------- punctuation and keywords


def _endings(wording: Wording) -> list[Rule]:
    found: list[Rule] = []
    for match in _ENDING.finditer(wording.plain):
        wording.take(*match.span())
        marks = "".join(_MARKS[name] for name in match.groups() if name)
        found.append(Ending(marks, _scope(wording)))
    for match in _NO_MARK.finditer(wording.plain):
        wording.take(*match.span())
        found.append(NoMark(_MARKS[match[1]]))
    return list(dict.fromkeys(found))


def _keywords(wording: Wording) -> list[Rule]:
    found: list[Rule] = []
    for group in _GROUP.finditer(wording.plain):
        if wording.in_aside(group.start()):
            continue
        before = _KEYWORD_BEFORE.search(wording.plain, max(0, group.start() - 80), group.start())
        if before is None and not _KEYWORD_AFTER.match(wording.plain, group.end()):
            continue
        begin = before.start() if before else group.start()
        words = tuple(value for start, _, value in wording.quotes if group.start() <= start < group.end())
        unwanted = _UNWANTED.search(wording.plain, max(0, begin - 60), begin)
        if not unwanted and not _WANTED.search(wording.plain):
            continue
        wording.take(unwanted.start() if unwanted else begin, group.end())
        times = Bounds(high=0) if unwanted else _times(wording)
        found.append(Keywords(words, times, "whole" if unwanted else _scope(wording, several=True)))
    if found:
        _take_all(wording, _KEYWORD_WORDS)
    return found


def _times(wording: Wording) -> Bounds:
    match = wording.search(_TIMES)
    if match is None:
        return Bounds(low=1)
    number = match[2] if match[2] in _TIME_WORDS else match[2].split()[0]
    count = _TIME_WORDS[number] if number in _TIME_WORDS else int(number)
    if match[1] in ("at most", "no more than", "a maximum of"):
        return Bounds(high=count)
    return Bounds(count, count) if match[1] == "exactly" else Bounds(low=count)


# --------------------------------------------------------------------------- tables


def _tables(wording: Wording) -> list[Rule]:
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
    condition = wording.search(_TABLE_CONDITION)
    if condition and not sizes:
        return []
    with_header = wording.search(_WITH_HEADER) is not None
    names = _column_names(wording, sizes.get("columns"))
    _take_all(wording, _TABLE_ASIDE)
    _take_all(wording, _TABLE_WORDS)
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
    for group in _GROUP.finditer(wording.plain, start):
        if not wording.in_aside(group.start()) and _NAMES_BEFORE.search(
            wording.plain, max(start, group.start() - 60), group.start()
        ):
            wording.take(start, group.end())
            names = tuple(value for begin, _, value in wording.quotes if group.start() <= begin < group.end())
            break
    else:
        listed = _NAME_LIST.search(wording.plain, start)
        if listed:
            parts = [own.strip() for own in re.split(r",? and |, ", wording.text[slice(*listed.span(1))].strip())]
            if len(parts) < 2 or any(_NOT_A_NAME.search(own.lower()) or len(own.split()) > 4 for own in parts):
                return ()
            wording.take(*listed.span())
            names = tuple(parts)
    if names and not columns.bounds.hold(len(names)):
        raise unread(wording.text, f"it names {len(names)} columns and wants {columns.bounds}")
    return names


# --------------------------------------------------------------------------- Markdown


def _markdown(wording: Wording) -> list[Rule]:
    return [*_marked(wording), *_heading_rules(wording)]


def _marked(wording: Wording) -> list[Rule]:
    found: list[Rule] = []
    if match := wording.search(re.compile(r"\bno bullet points?\b|\bwithout (?:using )?bullet points?\b")):
        found.append(Marked("bullet points", Bounds(high=0), "identifiers"))
    for what in ("block quotes", "bullet points", "bold"):
        counted = [own for own in wording.counts if own.unit == what]
        pattern = re.compile(rf"\b{what[:-1] if what != 'bold' else what}(?:s|ed)?\b".replace(" ", " ?"))
        match = pattern.search(wording.plain)
        if match and not wording.in_aside(match.start()) and not any(isinstance(own, Marked) and own.what == what for own in found):
            wording.take(*match.span())
            bounds = counted[0].bounds if counted else Bounds(low=1)
            for own in counted:
                wording.take(own.start, own.end)
            found.append(Marked(what, bounds))  # type: ignore[arg-type]
    return found


def _heading_rules(wording: Wording) -> list[Rule]:
    if not _HEADINGS.search(wording.plain) or _CONTENT_OF_HEADINGS.search(wording.plain):
        return []
    if match := wording.search(_DEEPEST) or wording.search(_ONLY):
        _take_all(wording, _HEADING_WORDS)
        level = _level(match["n"])
        return [HeadingLevels(deepest=level) if match.re is _DEEPEST else HeadingLevels(levels=(level,), only=True)]
    first = wording.search(_AT_BEGINNING) is not None
    levels = _levels(wording)
    titles = _titles(wording, levels)
    _take_all(wording, _HEADING_WORDS)
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
    """Titles that the text gives to headings, with their level where it stands directly behind: ¤ as a level 2"""
    found: list[tuple[int | None, str]] = []
    for group in _GROUP.finditer(wording.plain):
        if wording.in_aside(group.start()) or not _TITLE_BEFORE.search(
            wording.plain, max(0, group.start() - 60), group.start()
        ):
            continue
        behind = _AS_LEVEL.match(wording.plain, group.end())
        level = next((own for own, start, _ in levels if behind and behind.end() == start), None)
        for start, end, value in wording.quotes:
            if group.start() <= start < group.end() and not re.fullmatch(r"#+", value):
                wording.take(start, end)
                mark = re.match(r"(#{1,6}) ", value)
                found.append((len(mark[1]) if mark else level, value.lstrip("# ").rstrip(".,")))
    return found


# --------------------------------------------------------------------------- JSON, XML and others


def _data(wording: Wording) -> list[Rule]:
    found: list[Rule] = []
    nesting = [own for own in wording.counts if own.unit == "nesting" or (
        own.unit == "levels" and "nest" in wording.plain)]
    for count in nesting:
        wording.take(count.start, count.end)
        found.append(JsonDepth(count.bounds))
    if found:
        _take_all(wording, _JSON_WORDS)
    elif "json" in wording.plain and (match := wording.search(_JSON_FORMAT)):
        found.append(JsonDepth(Bounds(low=1)))
    for count in wording.counts:
        if count.unit == "attributes" and "xml" in wording.plain:
            wording.take(count.start, count.end)
            each = _EACH_ELEMENT.search(wording.plain) is not None
            condition = _XML_CONDITION.search(wording.plain)
            found.append(XmlAttributes(count.bounds, each, required=not each and condition is None))
            _take_all(wording, _XML_WORDS)
    return found


def _others(wording: Wording) -> list[Rule]:
    if match := wording.search(_STARTS_WITH):
        value = next(value for start, _, value in wording.quotes if start == match.start("what"))
        wording.take(match.start("what"), match.end("what"))
        return [StartsWith(value)]
    return [FullSentences()] if wording.search(_FULL_SENTENCES) else []


# --------------------------------------------------------------------------- what readers share


def _scope(wording: Wording, several: bool = False) -> Scope:
    """Of which part of an answer something is said.

    Args:
        several: whether "the examples" may stand for the answer: that all of it is meant makes no difference.

    Raises:
        UnverifiableError: of a part that cannot be found in an answer, such as "each definition".
    """
    found: set[Scope] = set()
    for match in _PART.finditer(wording.plain):
        if wording.in_aside(match.start()) or match[1].split()[0] in _NOT_PARTS:
            continue
        scope = next((_SCOPES[word] for word in match[1].split()[:2] if word in _SCOPES), None)
        if scope is None or (scope == "entry" and "in the table" in wording.plain):
            if match[0].startswith("all"):
                continue
            raise unread(wording.text, f"what {match[0].strip()!r} is in an answer cannot be found")
        found.add(scope)
        wording.take(*match.span())
    for match in _IN_PART.finditer(wording.plain):
        if not wording.in_aside(match.start()):
            found.add("heading" if match["heading"] else "table" if match["table"] else "cell")
            wording.take(*match.span())
    for match in _SUBJECT.finditer(wording.plain):
        if wording.in_aside(match.start()):
            continue
        words = re.split(r"\b(?:of|for|in|on|to|with|at|used|that|provided|about|you)\b", match[1])[0].split()
        head = words[-1] if words else "it"
        if head == "table" and "table of contents" not in match[1]:
            found.add("table")
            wording.take(*match.span())
        elif head in _WHOLE or "table of contents" in match[1]:
            wording.take(match.start(), match.start(1) + match[1].find(head) + len(head))
        elif head not in _NEUTRAL and not (several and head in _SEVERAL):
            raise unread(wording.text, f"what {head!r} is in an answer cannot be found")
    if "cell" in found:
        found.discard("table")
    if len(found) > 1:
        raise unread(wording.text, f"it speaks of {' and '.join(sorted(found))} at once")
    return found.pop() if found else "whole"


def _take_all(wording: Wording, pattern: re.Pattern[str]) -> None:
    for match in pattern.finditer(wording.plain):
        wording.take(*match.span())


_READERS: tuple[Callable[[Wording], list[Rule]], ...] = (
    _sizes, _cases, _languages, _endings, _keywords, _tables, _markdown, _data, _others,
)
