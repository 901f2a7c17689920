"""Of which part of an answer a text speaks."""

from __future__ import annotations

import re

from verifiers.instructions.muldimif.fillers import WHOLE
from verifiers.instructions.muldimif.rules import Scope
from verifiers.instructions.muldimif.wording import Wording, unread

# Nouns of which nothing can be said that bounds a part of the answer.
_NEUTRAL = frozenset(
    """
    context count focus game keyword keywords language length limit names number phrase punctuation
    range requirement structure style term terms tone topic word
    """.split()
)
# Nouns that mean the answer where it makes no difference whether each of them is meant.
_SEVERAL = frozenset(
    """
    answers articles definitions descriptions entries examples expressions issues lines names options
    questions recommendations references sections sentences slides titles topics
    """.split()
)
# What may follow "each" or "all" and names no part.
_NOT_PARTS = frozenset(
    """
    as aspect aspects capital caps column columns content details different focusing json key language
    lower lowercase necessary of representing row rows separate subtopic table tables upper uppercase
    word words xml
    """.split()
)
_SUBJECT = re.compile(
    r"\b(?:the|your|this|its)\s+((?:[a-z][a-z'-]*\s+){1,7}?)(?:must|should|shall|needs?|is|are|"
    r"does|do|has|have|contains?|"
    r"includes?|incorporates?|concludes?|ends|end|uses?|employs?|remains?|consists?|comprises?|"
    r"features?|begins?)\b"
)
_PART = re.compile(
    r"\b(?:(?:in|within|of|for) (?=(?:each|every|all)\b))?(?:each|every|per|all)(?: of the)? (?!in\b|"
    r"of\b)((?:[a-z'-]+ ?){1,4})"
)
_SCOPES: dict[str, Scope] = {
    "sentence": "sentence",
    "paragraph": "paragraph",
    "section": "section",
    "cell": "cell",
    "heading": "heading",
    "headings": "heading",
    "entry": "entry",
    "item": "entry",
}
_IN_PART = re.compile(
    r"\b(?:in|within|of) (?:the |all )?(?P<heading>(?:titles and )?headings?)\b|"
    r"\b(?:in|within) the (?P<table>table)\b(?! of| format)|"
    r"\b(?:in|within|of) (?:the )?(?P<cell>table entries|table cells|cells)\b"
)


def scope_of(wording: Wording, several: bool = False) -> Scope:
    """Of which part of an answer something is said.

    Args:
        several: whether "the examples" may stand for the answer: that all of it is meant makes no difference.

    Raises:
        UnverifiableError: of a part that cannot be found in an answer, such as "each definition".
    """
    found: set[Scope] = set()
    whole = part = False  # whether the answer, and whether a part of it, is what is spoken of
    for match in _PART.finditer(wording.plain):
        if wording.in_aside(match.start()) or match[1].split()[0] in _NOT_PARTS:
            continue
        scope = next((_SCOPES[word] for word in match[1].split()[:2] if word in _SCOPES), None)
        if scope is None or (scope == "entry" and "in the table" in wording.plain):
            if re.match(r"(?:\w+ )?all\b", match[0]):
                continue
            raise unread(wording.text, f"what {match[0].strip()!r} is in an answer cannot be found")
        found.add(scope)
        part = part or not match[0].startswith(("in", "within", "of", "for"))
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
        elif head in WHOLE or "table of contents" in match[1]:
            at = match.start(1) + match[1].find(head)
            wording.take(at, at + len(head))
            whole = whole or not _within(wording.plain, match.start())
        elif head not in _NEUTRAL and not (several and head in _SEVERAL):
            raise unread(wording.text, f"what {head!r} is in an answer cannot be found")
    if "cell" in found:
        found.discard("table")
    if len(found) > 1 or (whole and part):
        raise unread(wording.text, f"it speaks of {' and '.join(sorted(found))} and of the answer at once")
    return found.pop() if found else "whole"


def _within(plain: str, position: int) -> bool:
    """Whether what stands there is that in which something is: "in each section", "of the answer"."""
    return re.search(r"\b(?:in|within|of|for)$", plain[max(0, position - 8) : position].rstrip()) is not None
