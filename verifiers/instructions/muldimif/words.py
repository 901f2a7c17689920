"""Readers of what a text says of words: how many, in which letters and language, how they end, which ones."""

from __future__ import annotations

import re
from itertools import pairwise

from verifiers.instructions.muldimif.fillers import WHOLE
from verifiers.instructions.muldimif.rules import (
    Chinese,
    Ending,
    English,
    FullSentences,
    Keywords,
    LetterCase,
    NoMark,
    Rule,
    Scope,
    Size,
    StartsWith,
)
from verifiers.instructions.muldimif.scopes import scope_of
from verifiers.instructions.muldimif.wording import QUOTES, Bounds, Wording, unread

# --------------------------------------------------------------------------- length

_REMARK = re.compile(
    r"^when (?:crafting|answering|writing|paraphrasing|responding|summarizing|"
    r"presenting examples|constructing)\b[^,]*,|\b(?:total )?(?:word|sentence) (?:count|limit|"
    r"requirement)\b|"
    r"\btable of contents\b|\bthe (?:corrected )?(?:sentence|paragraph)(?= (?:must|should|is|ends|"
    r"concludes|uses|contains)\b)"
)


def sizes(wording: Wording) -> list[Rule]:
    wording.take_all(_REMARK)
    found: list[Rule] = []
    for first, then in pairwise(wording.counts):
        if wording.plain[first.end : then.start] == " of ":
            raise unread(wording.text, f"each of {first.unit} has so many {then.unit}")
    for count in wording.counts:
        if count.unit in ("words", "sentences", "paragraphs", "entries"):
            wording.take(count.start, count.end)
            scope = scope_of(wording)
            if f"{scope}s" == count.unit:
                raise unread(wording.text, f"each {scope} has one of {count.unit}")
            found.append(Size(count.bounds, count.unit, scope))
    return found


# --------------------------------------------------------------------------- letters and languages

_EACH_WORD = (
    r"\b(?:us(?:e|es|ing)|use of|employ(?:s|ing)?) (?:of )?capitalized letters for each word"
    r"|\bcapitaliz(?:e|es|ing) (?:the first letter of )?each word"
    r"|\beach word(?:'s initial letter)?(?P<where> in [\w' ]{1,60}?)? "
    r"(?:is |are |be |being |must be |should be |to be )?(?:capitalized|"
    r"(?:must |should )?(?:begin|start)(?:s|ning|ing)? with an? (?:capital|capitalized|upper ?case) letter)"
)
_CAPITALIZED = re.compile(_EACH_WORD)
_UPPER = re.compile(
    r"\b(?:in )?(?:all|entirely in|completely in|only)? ?(?:all )?(?:upper ?case|capital)(?: letters)\b|"
    r"\b(?:in )?all upper ?case\b|"
    r"\b(?:in )?all caps\b"
)
_LOWER = re.compile(r"\b(?:in )?(?:all|entirely in|completely in|only)? ?(?:all )?lower ?case(?: letters)?\b")
_IN_WHAT = re.compile(
    r" (?:in|within|of|throughout) (?:(?:the|your|all|entire) )*[a-z]+(?: (?:of|"
    r"and) (?:the )?[a-z]+| (?:entries|cells|title|titles))?"
)
_CAPITAL_REMARK = re.compile(
    r"\beach word begins with a capital letter\b|\b(?:the )?(?:requirement|use|rule|style) of "
    r"capitalized letters"
    r"(?: for each word)?\b|\bas capitalized letters\b"
)
_ENGLISH = re.compile(
    r"\b(?:written |provided |composed |crafted |presented |is )?in english\b(?! and english)|"
    r"\blanguage used(?: in the [a-z]+)? (?:must be|should be|is|to be) english\b|"
    r"\blanguage to be in english\b"
)
_ENGLISH_REMARK = re.compile(
    r"\b(?:per |proper |adhering to )?(?:the )?english(?: and capitalized| language \w+|"
    r" language)\b"
)
_CHINESE = re.compile(
    r"\b(?:(?:(?:translated|written) )?(?:in|into) )?(?:the )?(?:\b(?P<en>simplified|traditional) "
    r")?chinese(?: characters| language)?\b|"
    r"(?:请|請|必须|必須|应|應|要|需|确保|確保){0,2}(?:把|将|將)?(?:文本|全文|回答|答案)?(?:必须|必須|"
    r"应|應|要)?"
    r"(?:翻译为|翻譯為|翻译成|翻譯成|使用|用|以|为|為)(?P<zh>简体|簡體|繁體|繁体)?中文(?:书写|書寫|回答|"
    r"写|寫)?"
)
# "At most 5 characters": each Chinese character is one word.
_CHINESE_SIZE = re.compile(
    r"(?:请|請|必须|必須|应|應|(?<!不)要|需|字数|字數|回答|答案){0,3}"
    r"(?:(?P<most>(?:不要|不得|不能|不可)?(?:超过|超過)|不超过|不超過|不多于|不多於|最多|至多)|"
    r"(?P<least>不少于|不少於|至少|最少))(?P<n>[0-9]{1,5})(?:个|個)?(?:字|汉字|漢字)(?:以内|以內)?"
)


def cases(wording: Wording) -> list[Rule]:
    found: list[Rule] = []
    for match in _CAPITALIZED.finditer(wording.plain):
        wording.take(*match.span())
        found.append(LetterCase("capitalized", _where(wording, match)))
    if wording.search(_UPPER):
        found.append(LetterCase("upper", scope_of(wording)))
    if wording.search(_LOWER):
        found.append(LetterCase("lower", scope_of(wording)))
    if found and found[0] == LetterCase("capitalized"):
        wording.take_all(_CAPITAL_REMARK)
    return list(dict.fromkeys(found))


def _where(wording: Wording, match: re.Match[str]) -> Scope:
    """In what each word is to be capitalized."""
    after = _IN_WHAT.match(wording.plain, match.end())
    if after:
        wording.take(*after.span())
    words = (match["where"] or (after[0] if after else "")).split()[1:]
    nouns = [word for word in words if word not in ("the", "your", "all", "and", "entire")]
    if (
        not nouns
        or nouns[-1] in WHOLE
        or nouns in (["english"], ["answers"], ["questions", "answers"], ["sentences"])
    ):
        return scope_of(wording, several=True)
    if nouns[-1] in ("heading", "headings"):
        return "heading"
    if nouns[0] == "table" and nouns[-1] in ("table", "entries", "cells"):
        return "table"
    raise unread(wording.text, f"what {' '.join(words)!r} is in an answer cannot be found")


def languages(wording: Wording) -> list[Rule]:
    found: list[Rule] = []
    for size in _CHINESE_SIZE.finditer(wording.plain):
        if size["most"] in ("超过", "超過"):
            continue  # more than so many
        wording.take(*size.span())
        count = int(size["n"])
        found.append(Size(Bounds(high=count) if size["most"] else Bounds(low=count), "words"))
    if match := wording.search(_CHINESE):
        said = match["en"] or {"简": "simplified", "簡": "simplified", "繁": "traditional"}.get(
            (match["zh"] or "")[:1]
        )
        found.append(Chinese(said or "any"))
    if wording.search(_ENGLISH):
        found.append(English())
    wording.take_all(_ENGLISH_REMARK)
    return found


# --------------------------------------------------------------------------- punctuation

_MARKS = {
    "period": ".。",
    "full stop": ".。",
    "question mark": "?？",
    "exclamation mark": "!！",
    "exclamation point": "!！",
    "semicolon": ";；",
    "colon": ":：",
}
_MARK = "|".join(_MARKS)
_ONE_MARK = rf"(?:an? )?(?:single )?({_MARK})!?(?: or (?:an? )?({_MARK}))?"
_AS_LAST = r"(?: as the (?:ending|final|last|closing) punctuation(?: mark)?)?"
_ENDING = re.compile(
    rf"\b(?:end|ends|ending|conclude|concludes|concluding|finish|finishes|marked)(?: (?:the|your|"
    rf"each|every|all|this) "
    rf"[a-z]+)? (?:with|in) {_ONE_MARK}{_AS_LAST}"
    rf"|\bending punctuation(?: mark)?(?: (?:of|for) [\w ]{{1,40}}?)? (?:must be|should be|is|"
    rf"to be) {_ONE_MARK}"
)
_NO_MARK = re.compile(
    rf"\b(?:avoid(?:s|ing)?|not (?:use|contain|include)|without(?: using| any)?|no)(?: the use of|"
    rf" using| any)? "
    rf"({_MARK})s?\b"
)


def endings(wording: Wording) -> list[Rule]:
    found: list[Rule] = []
    for match in _ENDING.finditer(wording.plain):
        wording.take(*match.span())
        marks = "".join(_MARKS[name] for name in match.groups() if name)
        found.append(Ending(marks, scope_of(wording)))
    for match in _NO_MARK.finditer(wording.plain):
        wording.take(*match.span())
        found.append(NoMark(_MARKS[match[1]]))
    return list(dict.fromkeys(found))


# --------------------------------------------------------------------------- keywords

_KEYWORD_BEFORE = re.compile(
    r"(?:(?:該句|该句|答案|回答)?(?:必须|必須)?(?:包含)?(?:關鍵詞|关键词)|\b(?:the )?(?:specific |"
    r"essential |following |exact )*(?:keywords?|terms?|words?|phrases?|names)"
    r"(?:,? (?:including|namely))?:?|\bthe game|\bmention (?:its |the )?[a-z]+)\s*$"
)
_KEYWORD_AFTER = re.compile(r"\s*as (?:a|the) (?:keyword|key term)s?\b")
_KEYWORD_WORDS = re.compile(
    r"\b(?:this|these) (?:specific )?(?:phrase|terms)\b|"
    r"\b(?:(?:specific |this |these )*keywords?|these terms|this term|the term)\b|\bin the text\b"
)
_WANTED = re.compile(
    r"\b(?:includ\w*|inclusion|incorporat\w*|contain\w*|mention\w*|appear\w*|us(?:e|es|ing)|"
    r"featur\w*|keyword|address)\b|"
    r"包含"
)
_UNWANTED = re.compile(
    r"\b(?:avoid\w*|(?:not|never) (?:include|use|contain|mention)|exclud\w*|without(?: using)?|"
    r"refrain\w* from(?: using)?)"
    r"[^.;,]{0,30}$"
)
_TIMES = re.compile(
    r"\b(?:(at least|at most|no more than|exactly|a minimum of|a maximum of) )?"
    r"(once|twice|thrice|multiple times|several times|(?:\d{1,3}|two|three|four|five|six|seven|"
    r"eight|nine|ten) times)\b"
)
_IN_A_PART = re.compile(r"\b(?:tables?|headings?|lists?)\b[^.;,]{0,60}\bwith $")
_THEN = re.compile(rf" (?:{_TIMES.pattern})(?:,|,? and) ")
_NOTHING = re.compile("")
_TIME_WORDS = {
    "once": 1,
    "twice": 2,
    "thrice": 3,
    "multiple times": 2,
    "several times": 2,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
}


def keywords(wording: Wording) -> list[Rule]:
    found: list[tuple[tuple[str, ...], Scope]] = []
    groups: list[re.Match[str]] = []
    avoided: list[bool] = []
    for group in QUOTES.finditer(wording.plain):
        if wording.in_aside(group.start()):
            continue
        before = _KEYWORD_BEFORE.search(wording.plain, max(0, group.start() - 80), group.start())
        if before is None and found and _THEN.fullmatch(wording.plain, groups[-1].end(), group.start()):
            before = _NOTHING.match(wording.plain, group.start())
        if before is None and not _KEYWORD_AFTER.match(wording.plain, group.end()):
            continue
        begin = before.start() if before else group.start()
        if wording.plain[:begin].endswith(" or "):
            continue  # one of several would do
        if _IN_A_PART.search(wording.plain, max(0, begin - 80), begin):
            raise unread(wording.text, "only a part of the answer has the keyword")
        words = tuple(value for start, _, value in wording.quotes if group.start() <= start < group.end())
        unwanted = _UNWANTED.search(wording.plain, max(0, begin - 60), begin)
        if not unwanted and not _WANTED.search(wording.plain):
            continue
        wording.take(unwanted.start() if unwanted else begin, group.end())
        found.append((words, "whole" if unwanted else scope_of(wording, several=True)))
        groups.append(group)
        avoided.append(unwanted is not None)
    if found:
        wording.take_all(_KEYWORD_WORDS)
    times = _times(wording, groups, avoided)
    return [
        Keywords(words, Bounds(high=0) if unwanted else bounds, scope)
        for (words, scope), unwanted, bounds in zip(found, avoided, times, strict=True)
    ]


def _times(wording: Wording, groups: list[re.Match[str]], avoided: list[bool]) -> list[Bounds]:
    """How often the words of each group are wanted: what is said behind it, or before the only one."""
    wanted = [index for index, unwanted in enumerate(avoided) if not unwanted]
    said: dict[int, Bounds] = {}
    for match in _TIMES.finditer(wording.plain):
        behind = [index for index, group in enumerate(groups) if group.end() <= match.start()]
        index = behind[-1] if behind else 0
        if index not in wanted or index in said or (not behind and len(groups) > 1):
            continue  # nobody takes it
        wording.take(*match.span())
        said[index] = _often(match)
    if said and len(said) < len(wanted):
        raise unread(wording.text, "it does not say of all words how often they are wanted")
    return [said.get(index, Bounds(low=1)) for index in range(len(groups))]


def _often(match: re.Match[str]) -> Bounds:
    number = match[2] if match[2] in _TIME_WORDS else match[2].split()[0]
    count = _TIME_WORDS[number] if number in _TIME_WORDS else int(number)
    if match[1] in ("at most", "no more than", "a maximum of"):
        return Bounds(high=count)
    return Bounds(count, count) if match[1] == "exactly" else Bounds(low=count)


# --------------------------------------------------------------------------- others

_STARTS_WITH = re.compile(
    r"\b(?:starts?|begins?) with (?:the )?(?:identifier|word|phrase|text|words)? ?(?P<what>¤+)"
)
_FULL_SENTENCES = re.compile(r"\bin (?:full|complete) sentences\b")


def others(wording: Wording) -> list[Rule]:
    if match := wording.search(_STARTS_WITH):
        value = next(value for start, _, value in wording.quotes if start == match.start("what"))
        wording.take(match.start("what"), match.end("what"))
        return [StartsWith(value)]
    return [FullSentences()] if wording.search(_FULL_SENTENCES) else []
