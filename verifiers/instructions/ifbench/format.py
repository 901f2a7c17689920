"""How an answer looks: brackets and quotations within each other, lists, line breaks, italics, templates."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict, deque
from itertools import pairwise

from creditlib.types import Span
from verifiers.instructions import nltk_text
from verifiers.instructions.answer import Answer, Piece
from verifiers.instructions.constraint import Finding, Text, UnverifiableError, constraint, spans
from verifiers.instructions.ifbench._marks import (
    Quotation,
    emoji_after,
    emoji_before,
    is_emoji,
    quotations,
    unquoted,
    within,
)
from verifiers.instructions.ifbench._official import bare, sentences
from verifiers.instructions.ifbench._shared import EDGES
from verifiers.instructions.marks import bullets, fence, headings, items

_PARTNER = {")": "(", "]": "[", "}": "{"}
_BRACKET = re.compile(r"[()\[\]{}]")
_WORDS_WITHOUT_SPACE = re.compile(r"[^\W\d_][,;|—–/\\._:+=~][^\W\d_]")
# Which are one word: addresses, "U.S.", "Ph.D.".
_ONE_WORD = re.compile(r"\W*+(?:https?://|www\.|[\w.+-]++@|(?:[^\W\d_]\.){2,}+[^\W\d_]?+\W*+\Z|Ph\.D\W*+\Z)")
_LETTER_OR_DIGIT = re.compile(r"[^\W_]")
_BETWEEN_OPTIONS = re.compile(r", ?(?:or )?| or ")
_OTHER_TAGS = re.compile(r"(?:\s|<(?!(?:i|em)\b)[^<>]{0,200}>)*")
_ITALICS = re.compile(r"<(i|em)\b[^<>]{0,200}>")
_ANY_TAG = re.compile(r"<[^<>]*>")
_DIGITS_AND_MARKS = "0123456789!#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
_LABELS = ("My Answer:", "My Conclusion:", "Future Outlook:")
_UNFILLED = ("[answer]", "[conclusion]", "[outlook]")
# Words that a title may leave in lower case: articles, conjunctions, prepositions.
_MINOR = frozenset(
    "a an the and but or nor for so yet as at by in of off on out per to up via vs with from into onto over "
    "upon within without about above across after against along amid among around before behind below "
    "beneath beside between beyond despite down during except inside like near outside past since through "
    "throughout toward towards under underneath until till unto than if when once de la le du von van "
    "e.g i.e".split()
)


@constraint("format:parentheses", "Nest parentheses (and [brackets {{and braces}}]) at least 5 levels deep.")
def parentheses(answer: Answer) -> Finding:
    """Each level is closed by its partner; what closes nothing, as in "a) first", does not count."""
    opened: list[tuple[str, int]] = []
    waiting = dict.fromkeys("([{", 0)
    inside = [0]  # levels closed so far within the answer, and within each of `opened`
    deepest, where = 0, answer.whole
    for match in _BRACKET.finditer(answer.text):
        mark = match[0]
        if mark in waiting:
            opened.append((mark, match.start()))
            inside.append(0)
            waiting[mark] += 1
        elif waiting[_PARTNER[mark]]:
            while (last := opened.pop())[0] != _PARTNER[mark]:  # never closed: no level
                waiting[last[0]] -= 1
                inside[-2:] = [max(inside[-2:])]
            waiting[last[0]] -= 1
            levels = inside.pop() + 1
            inside[-1] = max(inside[-1], levels)
            if levels > deepest:
                deepest, where = levels, (Span(last[1], match.end(), "nest"),)
    return Finding(deepest >= 5, f"{deepest} levels, at least 5 wanted", where)


@parentheses.official
def _(answer: Answer) -> Finding:
    """Any bracket closed after five were open at once; one that does not fit forgets them all."""
    opened: list[str] = []
    deepest = 0
    for match in _BRACKET.finditer(answer.text):
        mark = match[0]
        if mark not in _PARTNER:
            opened.append(mark)
            deepest = max(deepest, len(opened))
        elif opened and opened[-1] == _PARTNER[mark]:
            opened.pop()
            if deepest >= 5:
                return Finding(True, "5 levels, at least 5 wanted", (Span(0, match.end(), "nest"),))
        else:
            opened, deepest = [], 0
    return Finding(False, "no 5 levels of brackets with a matching end", answer.whole)


@constraint(
    "format:quotes",
    "Put quotes within quotes within quotes, at least 3 levels deep, by turns in double and single marks.",
)
def quotes(answer: Answer) -> Finding:
    """Quotations are those that `quotations` finds: an apostrophe is no quotation mark."""
    deepest = max(quotations(answer.text), key=lambda own: own.depth, default=None)
    depth = deepest.depth if deepest else 0
    where = (Span(deepest.start, deepest.end, "nest"),) if deepest else answer.whole
    return Finding(depth >= 3, f"{depth} levels of quotes, at least 3 wanted", where)


@quotes.official
def _(answer: Answer) -> Finding:
    """A straight mark closes one of its kind if that is the last one open, or else opens one; an apostrophe
    is such a mark. Three more must have been open than are left.
    """
    opened: list[str] = []
    deepest = 0
    for match in re.finditer("[\"']", answer.text):
        if opened and opened[-1] == match[0]:
            opened.pop()
            if deepest - len(opened) >= 3:
                return Finding(True, "3 levels of quotes", (Span(0, match.end(), "nest"),))
        else:
            opened.append(match[0])
            deepest = max(deepest, len(opened))
    return Finding(False, f"{deepest} quotation marks open at once, 3 levels closed wanted", answer.whole)


@constraint("format:options", "Answer with one of these options and nothing else: {options}.")
def options(answer: Answer, options: Text) -> Finding:
    """Options stand between slashes or, without any, commas and "or". Case, line breaks, quotation marks and
    punctuation around the answer don't matter: "b", "(B)" and "b." are "b)".
    """
    allowed = {_option(own) for own in _listed(options)}
    return Finding(_option(answer.text) in allowed, f"allowed: {options}", answer.whole)


@options.official
def _(answer: Answer, options: Text) -> Finding:
    """Letters in the first place must be given to the character; "or" separates within words, too."""
    separator = "/" if "/" in options else "or" if "or" in options else ","
    allowed = [own.strip() for own in options.split(separator)]
    given = answer.text
    if not re.match(r"\W*[aA]\W*[bB]\W*[cC]\W*", options):
        allowed = [own.strip(EDGES).lower() for own in allowed]
        given = given.strip(EDGES).lower()
    return Finding(given in allowed, f"allowed: {options}", answer.whole)


@constraint("format:newline", "Write each word on a line of its own.")
def newline(answer: Answer) -> Finding:
    """A word is what stands between white space. Marks such as a comma, a dash, a slash, a full stop or an
    underscore between letters join several words, but for addresses and abbreviations ("U.S."). Marks alone
    are none.
    """
    words = 0
    for line in answer.lines:
        found = [part for part in line.text.split() if any(letter.isalnum() for letter in part)]
        words += len(found)
        joined = _WORDS_WITHOUT_SPACE.search(line.text) and not (found and _ONE_WORD.match(found[0]))
        if len(found) > 1 or joined:
            return Finding(False, f"more than one word on the line {line.text!r:.40}", answer.whole)
    return Finding(words > 0, f"{words} words, each on its line", answer.whole)


@newline.official
def _(answer: Answer) -> Finding:
    text = bare(answer.text).strip()
    lines, words = sum(line != "" for line in text.split("\n")), len(text.split())
    return Finding(lines == words, f"{words} words, {lines} lines", answer.whole)


@constraint("format:emoji", "Put an emoji at the end of every sentence.")
def emoji(answer: Answer) -> Finding:
    """Before or behind the sentence's last mark, on the same line. Headings need none. What an emoji is goes
    by the Unicode blocks that hold them.
    """
    if not any(map(is_emoji, set(answer.text))):
        return Finding(False, "no emoji", answer.whole)
    titles = headings(answer)
    found: list[Piece] = []
    bare_ends: list[Piece] = []
    for own in answer.sentences:
        if titles and within(own, titles):
            continue
        own_emoji = emoji_after(answer.text, own.end) or emoji_before(answer.text, own.start, own.end)
        if own_emoji:
            found.append(own_emoji)
        else:
            bare_ends.append(Piece(own.end - 1, own.end, own.text[-1]))
    where = spans(found, "emoji") + spans(bare_ends, "end without emoji")
    reason = f"{len(found)} of {len(found) + len(bare_ends)} sentences end with an emoji"
    return Finding(bool(found) and not bare_ends, reason, where or answer.whole)


@emoji.official
def _(answer: Answer) -> Finding:
    """One of a sentence's last two characters, or else the first one of the next sentence."""
    from emoji import is_emoji as in_list

    found = [bare(own).strip() for own in sentences(answer.text)]
    for own, after in zip(found, [*found[1:], ""], strict=False):
        ends = own and (in_list(own[-1]) or in_list(own[-2:][0]) or in_list(after[:1]))
        if not ends:
            return Finding(False, f"no emoji at the end of {own!r:.40}", answer.whole)
    return Finding(True, f"{len(found)} sentences end with an emoji", answer.whole)


@constraint("format:line_indent", "Make stairs: indent each new line more than the line before.")
def line_indent(answer: Answer) -> Finding:
    """At least two lines that are not blank. A tab reaches to the next eighth column; a code block's fences
    are no lines.
    """
    indents: list[Span] = []
    end, depth, stairs = 0, -1, True
    for line in answer.lines:
        if not fence(line):
            start = max(answer.text.rfind(mark, end, line.start) + 1 for mark in "\r\n")
            indents.append(Span(max(start, end), line.start, "indent"))
            before, depth = depth, len(answer.text[indents[-1].start : line.start].expandtabs(8))
            if depth <= before:
                stairs = False
                break
        end = line.end
    where = tuple(own for own in indents if own.end > own.start) or answer.whole
    if len(indents) < 2:
        return Finding(False, f"{len(indents)} lines are no stairs", where)
    return Finding(stairs, f"line {len(indents)} is {'' if stairs else 'not '}indented more", where)


@line_indent.official
def _(answer: Answer) -> Finding:
    """Spaces only. A blank line takes the first one like it out of the list that is being walked, so that the
    line behind it is passed over: of two blank lines one remains, with its own indent.
    """
    lines: list[str | None] = list(answer.text.split("\n"))
    passed: defaultdict[str, deque[int]] = defaultdict(deque)
    at = 0
    while at < len(lines):
        line = lines[at] or ""
        if not line.strip():
            passed[line].append(at)
            lines[passed[line].popleft()] = None
            at += 1
            if at < len(lines) and not (lines[at] or "").strip():
                passed[lines[at] or ""].append(at)
        at += 1
    depths = [len(line) - len(line.lstrip(" ")) for line in lines if line is not None]
    stairs = all(before < after for before, after in pairwise(depths))
    return Finding(stairs, f"indents {', '.join(map(str, depths)):.60}", answer.whole)


@constraint("format:quote_unquote", "Explain every phrase in quotes right behind it, outside quotes.")
def quote_unquote(answer: Answer) -> Finding:
    """At least one phrase in double quotes, and at least two words between it and the next one or the end."""
    quoted: list[Quotation] = []
    for found in reversed(quotations(answer.text)):  # those within others come behind them
        if found.double and (not quoted or found.end <= quoted[-1].start):
            quoted.append(found)
    quoted.reverse()
    starts = [word.start for word in answer.words]
    ends = [own.start for own in quoted[1:]] + [len(answer.text)]
    read: list[Span] = []
    for own, end in zip(quoted, ends, strict=False):
        read.append(Span(own.start, own.end, "quote"))
        if bisect_left(starts, end) - bisect_left(starts, own.end) < 2:
            phrase = answer.text[own.start : own.end]
            return Finding(False, f"no explanation behind {phrase:.40}", tuple(read))
    return Finding(bool(read), f"{len(read)} quoted phrases explained", tuple(read) or answer.whole)


@quote_unquote.official
def _(answer: Answer) -> Finding:
    """No two double quotation marks side by side, and none at the end but for digits and punctuation."""
    text = answer.text.replace("“", '"').replace("”", '"').replace("'\"'", "")
    text = "".join(text.split())
    ending = text.strip(_DIGITS_AND_MARKS)
    if not ending:
        return Finding(False, "only digits and punctuation, which stop the public checker", answer.whole)
    passed = '""' not in text and ending[-1] != '"'
    return Finding(passed, f"{text.count(chr(34))} double quotation marks", answer.whole)


@constraint("format:list", "Answer with a list; begin each item with {sep} instead of a bullet.")
def list_(answer: Answer, sep: Text) -> Finding:
    """At least two lines that begin so and have a word in them or below, before the next item, and none with
    another bullet or a number.
    """
    mark = sep.strip()
    if not mark:
        raise UnverifiableError("argument sep: expected a mark that can be seen, found white space")
    begins: list[Piece] = []
    others = {line for line, _ in items(answer)}
    for line in answer.lines:
        rest = line.text[len(mark) :]
        if line.text.startswith(mark) and rest[:1] != mark[-1]:
            others.discard(line)
            if not (mark[-1].isalnum() and rest[:1].isalnum()):
                begins.append(Piece(line.start, line.start + len(mark), mark))
    ends = [*(own.start for own in begins[1:]), len(answer.text)]
    found = [
        own
        for own, end in zip(begins, ends, strict=False)
        if _LETTER_OR_DIGIT.search(answer.text, own.end, end)
    ]
    reason = f"{len(found)} items begin with {mark}, at least 2 wanted; {len(others)} begin otherwise"
    where = spans(found, "bullet") + spans(sorted(others), "other bullet")
    return Finding(len(found) >= 2 and not others, reason, where or answer.whole)


@list_.official
def _(answer: Answer, sep: Text) -> Finding:
    found = tuple(Span(*own.span(), "bullet") for own in re.finditer(re.escape(sep), answer.text))
    return Finding(len(found) >= 2, f"{len(found)} times {sep}, at least 2 wanted", found or answer.whole)


@constraint("format:thesis", "Begin each section with its thesis in italics; use HTML for the italics.")
def thesis(answer: Answer) -> Finding:
    """Sections stand below headings; without any, all of the answer is one. A thesis has at least three
    words, and something else comes behind it.
    """
    titles = headings(answer)
    begins = [0, *(line.end for line in titles)]
    ends = [*(line.start for line in titles), len(answer.text)]
    sections = [
        Span(begin, end, "section")
        for begin, end in zip(begins, ends, strict=True)
        if answer.text[begin:end].strip()
    ]
    found = [own for section in sections if (own := _thesis_of(answer, section))]
    reason = f"{len(found)} of {len(sections)} sections begin with a thesis in italics"
    return Finding(bool(sections) and len(found) == len(sections), reason, tuple(found) or answer.whole)


@thesis.official
def _(answer: Answer) -> Finding:
    """One stretch in italics anywhere, and something behind it."""
    text = answer.text
    start = text.find("<i>") if "<i>" in text else text.find("<em>")
    rest = text[start:] if start >= 0 else ""
    end = rest.find("</i>") if "</i>" in rest else rest.find("</em>")
    passed = end >= 0 and rest[3:end].strip() != "" and rest[end + 4 :].strip() != ""
    where = (Span(start, start + end, "thesis"),) if end >= 0 else answer.whole
    return Finding(passed, "italics with text behind them" if passed else "no italics in HTML", where)


@constraint("format:sub-bullets", "Use bullet points with * and, below each of them, at least one with -.")
def sub_bullets(answer: Answer) -> Finding:
    """Bullets are those of `marks.bullets`; the sign of an item decides, not its indent."""
    points: list[Piece] = []
    below: list[Piece] = []
    last_has = True
    lacking = 0
    for line in bullets(answer, "*-"):
        if line.text[0] == "*":
            lacking += not last_has
            last_has = False
            points.append(line)
        elif points:
            last_has = True
            below.append(line)
    lacking += not last_has
    reason = f"{lacking} of {len(points)} bullet points have no sub-bullet"
    where = spans(points, "bullet") + spans(below, "sub-bullet")
    return Finding(bool(points) and not lacking, reason, where or answer.whole)


@sub_bullets.official
def _(answer: Answer) -> Finding:
    """A hyphen somewhere behind each asterisk, before the next one."""
    lacking = sum("-" not in part for part in answer.text.split("*")[1:])
    return Finding(not lacking, f"{lacking} asterisks without a hyphen behind them", answer.whole)


@constraint(
    "format:no_bullets_bullets",
    "Write at least two sentences that end with a period, then at least two bullet points with *.",
)
def no_bullets_bullets(answer: Answer) -> Finding:
    points = bullets(answer, "*")
    plain: list[Piece] = []
    for own in answer.sentences if points else ():
        if _ends_with_period(own.text) and not within(own, points):
            plain.append(own)
            if len(plain) == 2:
                break
    behind = [line for line in points if len(plain) == 2 and line.start >= plain[1].end]
    reason = (
        f"{len(points)} bullet points, {len(behind)} of them behind two sentences that end with a period; "
        "2 wanted"
    )
    where = spans(plain, "sentence") + spans(points, "bullet")
    return Finding(len(behind) >= 2, reason, where or answer.whole)


@no_bullets_bullets.official
def _(answer: Answer) -> Finding:
    """Whatever ends them counts as sentences. A blank line before the bullets ends the text, so that bullets
    must follow at once; behind the first bullet everything is one.
    """
    count = bullets = 0
    text = True
    for line in answer.text.split("\n"):
        if line.strip().startswith("*"):
            text = False
            bullets += 1
            if count < 2:
                return Finding(False, f"{count} sentences before the first bullet point", answer.whole)
        elif text:
            found = len(sentences(line.strip()))
            text = found > 0
            count += found
        else:
            return Finding(False, f"a line without a bullet, {line!r:.40}", answer.whole)
    return Finding(bullets >= 2, f"{count} sentences, {bullets} bullet points", answer.whole)


@constraint(
    "format:title_case", "Write all of it in title case: the first letter of every major word is a capital."
)
def title_case(answer: Answer) -> Finding:
    """Articles, conjunctions and prepositions may be small, but for the first word. All capitals are no title
    case, nor is an answer without capitals, of numbers say; names such as "iPhone" and addresses stay as they
    are.
    """
    small: list[Piece] = []
    long_words = shouted = 0
    for index, word in enumerate(answer.words):
        letters = word.text
        if "://" in letters or letters.startswith("www."):
            continue
        if len(letters) > 3:
            long_words += 1
            shouted += letters.isupper()
        if letters[:1].islower() and letters.lower() == letters and (index == 0 or letters not in _MINOR):
            small.append(word)
    if long_words > 3 and shouted == long_words:
        return Finding(False, "all in capitals", answer.whole)
    if not small and not any(map(str.isupper, answer.text)):
        return Finding(False, "no capital letters", answer.whole)
    reason = f"{len(small)} of {len(answer.words)} words begin with a small letter"
    return Finding(not small, reason, spans(small, "word") or answer.whole)


@title_case.official
def _(answer: Answer) -> Finding:
    """NLTK's tokens, of which "n't" is one: none of two letters or more that are all small, or small but for
    the rest in capitals.
    """
    small = [own for own in nltk_text.words(answer.text) if own[0].islower() and _one_case(own[1:])]
    return Finding(not small, f"{len(small)} words begin with a small letter", answer.whole)


@constraint(
    "format:output_template",
    "Use exactly this template: My Answer: [answer] My Conclusion: [conclusion] Future Outlook: [outlook]",
)
def output_template(answer: Answer) -> Finding:
    """The three labels in this order, nothing before the first one but markup, and words behind each."""
    text = answer.text
    at, places = 0, []
    for label in _LABELS:
        at = text.find(label, at)
        if at < 0:
            return Finding(False, f"{label!r} is missing or out of place", answer.whole)
        places.append(Span(at, at + len(label), "label"))
        at += len(label)
    if any(letter.isalnum() for letter in text[: places[0].start]):
        return Finding(False, "something stands before the template", tuple(places))
    ends = [own.start for own in places[1:]] + [len(text)]
    parts = [unquoted(text[own.end : end]) for own, end in zip(places, ends, strict=True)]
    empty = sum(part in _UNFILLED or not any(map(str.isalnum, part)) for part in parts)
    return Finding(not empty, f"{empty} of 3 parts are empty", tuple(places))


@output_template.official
def _(answer: Answer) -> Finding:
    missing = [label for label in _LABELS if label not in answer.text]
    return Finding(not missing, f"{len(missing)} of 3 labels are missing", answer.whole)


@constraint("format:no_whitespace", "Use no white space at all.")
def no_whitespace(answer: Answer) -> Finding:
    """White space around all of the answer is not part of it."""
    inner = answer.text.strip()
    start = len(answer.text) - len(answer.text.lstrip())
    found = [
        Span(start + own.start(), start + own.end(), "white space") for own in re.finditer(r"\s+", inner)
    ]
    reason = f"white space in {len(found)} places" if inner else "the answer is empty"
    return Finding(bool(inner) and not found, reason, tuple(found) or answer.whole)


@no_whitespace.official
def _(answer: Answer) -> Finding:
    found = tuple(Span(*own.span(), "white space") for own in re.finditer(r"\s+", answer.text))
    return Finding(not found, f"white space in {len(found)} places", found or answer.whole)


def _ends_with_period(sentence: str) -> bool:
    letters = sentence.rstrip("\"'”’)]*_")
    return letters.endswith(".") and not letters.endswith("..")


def _listed(options: str) -> list[str]:
    text = " ".join(options.split())
    return text.split("/") if "/" in text else _BETWEEN_OPTIONS.split(text)


def _option(text: str) -> str:
    """An option or an answer, as the two are compared."""
    text = " ".join(text.split()).casefold().replace("’", "'")
    return unquoted(text).strip(EDGES + "“”‘’") or text


def _one_case(text: str) -> bool:
    return text.islower() or text.isupper()


def _thesis_of(answer: Answer, section: Span) -> Span | None:
    """The thesis that a section begins with, tags included."""
    text = answer.folded
    start = _OTHER_TAGS.match(text, section.start, section.end).end()  # type: ignore[union-attr]
    opening = _ITALICS.match(text, start, section.end)
    if not opening:
        return None
    closing = f"</{opening[1]}>"
    end = text.find(closing, opening.end(), section.end)
    if end < 0 or len(re.findall(r"\w+", text[opening.end() : end])) < 3:
        return None
    rest = _ANY_TAG.sub("", text[end + len(closing) : section.end])
    return Span(start, end + len(closing), "thesis") if any(map(str.isalnum, rest)) else None
