"""BFCL's check of calls as a person would make it: names, parameters, values; which call is which.

A value is right if it equals one of the answers; types decide what equals. ``docs/verifiers/toolcall.md``
lists where this differs from `bfcl_eval`'s `ast_checker` (`verifiers.toolcall.bfcl_official`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from verifiers.toolcall.assign import perfect_matching
from verifiers.toolcall.calls import Call
from verifiers.toolcall.schema import OMIT, TEXT, Expected, kinds_of, plain, takes_text
from verifiers.toolcall.values import listed, named, shown

_MOST_SEARCHED = 64  # reference calls; with more, each predicted call stands for the one at its place

# The names that BFCL's Python, Java and JavaScript functions, OpenAI and JSON Schema give a type.
_WHOLE = frozenset("integer int byte short long Bigint BigInteger".split())
_NULL = frozenset(["null"])

_SIGNS = str.maketrans("’‘“”'‐‑‒–−", '"""""-----')  # quotes and hyphens of other shapes
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_DATE = re.compile(r"(?<!\d)(?:\d{4}([-/. ])\d\d?\1\d\d?|\d\d?([-/. ])\d\d?\2\d{4})(?!\d)")
_HYPHEN = re.compile(r"(?<=[^\W\d_]{2})-(?=[^\W_])|(?<=[^\W_])-(?=[^\W\d_]{2})")  # well-known, GPT-4, 3-day
_SEPARATOR = re.compile(r"[-/. ]")
_MATHS = re.compile(r"[()\[\]{}*^+=]")
_PUNCTUATION = re.compile(r"[ \t\n,._]+")
_SPACE = re.compile(r"\s+")
# Texts of which every character counts. A formula is none that has two words side by side.
_PLACE = re.compile(r"@|://|^\s*(?:[.~]*/|www\.)|\S/[^\s/]*\w\.\w")  # addresses, URLs, paths
_FORMULA = re.compile(
    r"(?:[\d()\[\]{}]|(?<![^\W_])x(?![^\W_]))\s*[-*/^+=]|[-*/^+=]\s*(?:[\d()\[\]{}]|x(?![^\W_]))"
    r"|(?<=\dx)\s*[-*/^+=]"
)
_PROSE = re.compile(r"[^\W\d_]{2}[\s,]+[^\W\d_]{2}")


def judge(expected: Sequence[Expected], calls: Sequence[Call]) -> tuple[str, tuple[str, ...]]:
    """What is wrong with the calls, "" if nothing is, and flags."""
    if len(expected) == 1 and len(calls) == 1:
        return listed(_problems(expected[0], calls[0], "call 1")), ()
    if len(calls) != len(expected):
        return f"{len(calls)} calls, {len(expected)} wanted", ()

    def fits(row: int, column: int) -> bool:
        return not _problems(expected[row], calls[column], "")

    count = len(expected)
    if count > _MOST_SEARCHED:
        pairs = [row if fits(row, row) else None for row in range(count)]
    else:
        pairs = perfect_matching(count, fits)
    missing = [row for row, column in enumerate(pairs) if column is None]
    if not missing:
        return "", ()
    left = [column for column in range(count) if column not in set(pairs)]
    reason = _closest(expected[missing[0]], missing[0], calls, left)
    return reason, ("match:budget",) if count > _MOST_SEARCHED else ()


def _closest(expected: Expected, row: int, calls: Sequence[Call], left: Sequence[int]) -> str:
    """Why a reference call has no predicted one, by the one that has least wrong with it."""
    candidates = [
        _problems(expected, calls[column], f"call {column + 1}")
        for column in left[:_MOST_SEARCHED]
        if calls[column].name == expected.name
    ]
    if not candidates:
        return f"reference call {row + 1}, {expected.name}, is missing"
    return listed(min(candidates, key=len))


def _problems(expected: Expected, call: Call, where: str) -> list[str]:
    """What is wrong with a call, if it is to be `expected`."""
    if call.name != expected.name:
        return [f"{where} is {named(call.name)}, expected {expected.name}"]
    where = f"{where} ({named(call.name)})"
    found = [
        f"{where}: {parameter!r} is missing"
        for parameter in expected.required
        if parameter not in call.arguments
    ]
    for parameter, value in call.arguments.items():
        if parameter not in expected.properties or parameter not in expected.answers:
            found.append(f"{where}: there is no {parameter!r:.60}")
        elif not _right(value, expected.answers[parameter], expected.properties[parameter]):
            right = " or ".join(shown(plain(own)) for own in expected.answers[parameter][:3] if own != OMIT)
            found.append(f"{where}, {parameter!r}: expected {right or 'nothing'}, found {shown(value)}")
    for parameter, answers in expected.answers.items():
        if parameter not in call.arguments and parameter not in expected.required and OMIT not in answers:
            found.append(f"{where}: {parameter!r} is left out")
    return found


def _right(value: Any, answers: Sequence[Any], schema: Mapping[str, Any]) -> bool:
    text = takes_text(schema)
    if any(_equal(value, answer, schema) for answer in answers if text or answer != OMIT):
        return True
    # Saying the default is as good as leaving it out.
    return OMIT in answers and "default" in schema and _equal(value, schema["default"], schema)


def _equal(value: Any, answer: Any, schema: Mapping[str, Any]) -> bool:
    """Is `value`, of a parameter with this schema, what one answer says?

    Recursive, as deep as the answer is: the data's depth, not the response's.
    """
    kinds = kinds_of(schema)
    text = not kinds.isdisjoint(TEXT)
    if isinstance(answer, bool) or answer is None or isinstance(value, bool) or value is None:
        return value is answer or (text and _says(value, answer))
    if isinstance(answer, int | float):
        if isinstance(value, float) and isinstance(answer, int) and kinds and kinds <= _WHOLE | TEXT | _NULL:
            return False
        return value == answer if isinstance(value, int | float) else text and _says(value, answer)
    if isinstance(answer, str):
        return isinstance(value, str) and _same_text(value, answer)
    if isinstance(answer, Mapping):
        return isinstance(value, Mapping) and _equal_dict(value, answer, schema)
    items = _inner(schema.get("items"))
    return (
        isinstance(value, list | tuple)
        and len(value) == len(answer)
        and all(_equal(own, other, items) for own, other in zip(value, answer, strict=True))
    )


def _says(value: Any, answer: Any) -> bool:
    """A parameter whose schema says text and whose answer is none: the answer as text will do."""
    return isinstance(value, str) and answer is not None and _same_text(value, str(answer))


def _same_text(value: str, answer: str) -> bool:
    if len(value) > 4 * len(answer) + 40:  # so much is not punctuation
        return False
    wanted = normal(answer)
    return normal(value) == wanted if wanted else value.strip() == answer.strip()


def _equal_dict(value: Mapping[str, Any], answer: Mapping[str, Any], schema: Mapping[str, Any]) -> bool:
    """Each key of `answer` has a list of right values (or just one), among them `OMIT`."""
    if not value.keys() <= answer.keys():
        return False
    properties = _inner(schema.get("properties"))
    for key, own in answer.items():
        allowed = own if isinstance(own, list | tuple) else [own]
        if key not in value:
            if OMIT not in allowed:
                return False
        elif not any(_equal(value[key], right, _inner(properties.get(key))) for right in allowed):
            return False
    return True


def _inner(schema: Any) -> Mapping[str, Any]:
    return schema if isinstance(schema, Mapping) else {}


def normal(text: str) -> str:
    """Equal for texts that say the same: case, the shapes of quotes and hyphens, spaces, the punctuation
    , . _ and hyphens within words do not count, except where they make another number. Operators and signs
    do, and in addresses, paths and formulas all but case and spaces does.
    """
    if text.isalnum():
        return text.casefold()
    text = text.casefold().translate(_SIGNS)
    if _PLACE.search(text):
        return _SPACE.sub(_gap, text.strip())
    text = _THOUSANDS.sub("", text).replace("**", "^")
    text = _DATE.sub(lambda date: _SEPARATOR.sub(" ", date[0]), text)
    if not _MATHS.search(text):
        text = _HYPHEN.sub(" ", text)
    if _FORMULA.search(text) and not _PROSE.search(text):
        return _SPACE.sub(_gap, text.strip())
    return _PUNCTUATION.sub(_joint, text)


def _gap(match: re.Match[str]) -> str:
    """What of white space counts: between two digits that they are two numbers."""
    text = match.string
    return " " * (text[match.start() - 1].isdigit() and text[match.end()].isdigit())


def _joint(match: re.Match[str]) -> str:
    """What of a run of punctuation counts: before a digit a decimal point, and between two digits that they
    are two numbers.
    """
    run, text = match[0], match.string
    if not text[match.end() : match.end() + 1].isdigit():
        return ""
    before = text[max(match.start() - 1, 0) : match.start()]
    point = run.endswith(".") and not (before + run)[-2:-1].isalpha()
    gap = " " if before.isdigit() and run != "." else ""
    return gap + "." * point
