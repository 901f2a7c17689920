"""ToolRL's rewards on RLLA's format: `format` {0, 1} and `correctness` [-3, 3].

With G reference calls and the predicted ones, correctness is 6 s / s_max - 3, where s is the multiset Jaccard
index of the names, plus, for each reference call and the predicted call of the same name that stands for it,
the Jaccard index of the parameter names and the number of equal values; s_max = 1 + sum over G of
(1 + parameters). Without a reference call it is 0, and -3 where the response cannot be read.

`official_*` give the numbers of the public code (qiancheng0/ToolRL, verl/utils/reward_score/rlla.py, which
NVlabs/GDPO uses unchanged) down to its slips; `sound` closes them. ``docs/verifiers/toolcall.md`` lists every
difference.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from creditlib.types import Check, Span
from verifiers.toolcall.assign import best_assignment
from verifiers.toolcall.calls import Call, read_objects
from verifiers.toolcall.response import CALLS, REPLY, THINK, Reading, Wanted, judge_format, read_response
from verifiers.toolcall.values import as_call, as_json, listed, named, shown

WORST, BEST = -3.0, 3.0

_EFFORT = 50_000  # rows x rows x columns of an assignment; 36 calls of one name against 36 others


@dataclass(frozen=True)
class Gold:
    """A ground truth: the blocks it has, and its calls.

    `problem` says why it is none that a response could satisfy; "" if it is.
    """

    wanted: Wanted
    calls: tuple[Call, ...]
    problem: str = ""

    @property
    def info(self) -> str | None:
        return "\n".join(as_call(call.name, call.arguments) for call in self.calls) or None


@lru_cache(maxsize=1024)
def read_gold(text: str) -> Gold:
    """Read a ground truth by the same rules as a response; it needs no thinking."""
    reading = read_response(text, lists=False)
    calls, replies = reading.blocks("calls"), reading.blocks("reply")
    wanted = Wanted(bool(calls), bool(replies))
    if not reading.parts:
        return Gold(Wanted(False, False), (), f"it has neither {CALLS[0]} nor {REPLY[0]}")
    return Gold(wanted, tuple(reading.calls), reading.problem if calls else "")


def sound(response: str, gold: str, think: bool) -> dict[str, Check]:
    """Both rewards, as a person would give them."""
    reference = read_gold(gold)
    reading = read_response(response, lists=False)
    broken = _broken_gold(reference.problem) if reference.problem else None
    if broken and not (reference.wanted.calls or reference.wanted.reply):
        return {"format": broken, "correctness": broken}
    return {
        "format": judge_format(reading, reference.wanted, think),
        "correctness": broken or _correctness(reading, reference),
    }


def _correctness(reading: Reading, gold: Gold) -> Check:
    spans = reading.call_spans
    if not gold.wanted.calls:
        return Check(0.0, "the reference has no call, so there is none to judge")
    if reading.problem:
        return Check(WORST, reading.problem, gold.info, spans)
    pairs, exact = _pair(gold.calls, reading.calls)
    score = _jaccard([own.name for own in gold.calls], [own.name for own in reading.calls])
    highest = 1.0
    for own, other in zip(gold.calls, pairs, strict=True):
        highest += 1.0 + len(own.arguments)
        score += 0.0 if other is None else _similarity(own, reading.calls[other])
    problems = _differences(gold.calls, reading.calls, pairs)
    reason = listed(problems) if problems else "the calls are the reference's"
    reward = BEST if not problems else (BEST - WORST) * score / highest + WORST
    return Check(reward, reason, gold.info, spans, () if exact else ("match:budget",))


def _pair(gold: Sequence[Call], calls: Sequence[Call]) -> tuple[list[int | None], bool]:
    """The predicted call that stands for each reference call, and whether these pairs are the best.

    Identical calls are paired first: no assignment loses by that, since both the Jaccard distance and the
    number of different values obey the triangle inequality.
    """
    pairs: list[int | None] = [None] * len(gold)
    unused: dict[Any, list[int]] = {}
    for index in reversed(range(len(calls))):
        unused.setdefault(_key(calls[index]), []).append(index)
    for index, own in enumerate(gold):
        if same := unused.get(_key(own)):
            pairs[index] = same.pop()
    rows: dict[str, list[int]] = {}
    for index, own in enumerate(gold):
        if pairs[index] is None:
            rows.setdefault(own.name, []).append(index)
    columns: dict[str, list[int]] = {}
    for index in sorted(index for left in unused.values() for index in left):
        columns.setdefault(calls[index].name, []).append(index)
    exact = True
    for name, own_rows in rows.items():
        own_columns = columns.get(name, [])
        few, many = sorted((len(own_rows), len(own_columns)))
        if few * few * many > _EFFORT:  # give up the search: in order
            exact = False
            chosen: list[int | None] = [*range(few), *[None] * (len(own_rows) - few)]
        else:
            chosen = best_assignment(
                [[_similarity(gold[row], calls[column]) for column in own_columns] for row in own_rows]
            )
        for row, place in zip(own_rows, chosen, strict=True):
            pairs[row] = None if place is None else own_columns[place]
    return pairs, exact


def _key(call: Call) -> str:
    """Equal for identical calls only."""
    return json.dumps([call.name, call.arguments], sort_keys=True)


def _similarity(gold: Call, call: Call) -> float:
    """The Jaccard index of the parameter names, plus the number of equal values."""
    equal = sum(
        name in call.arguments and same(value, call.arguments[name]) for name, value in gold.arguments.items()
    )
    return _jaccard(list(gold.arguments), list(call.arguments)) + equal


def same(gold: Any, value: Any) -> bool:
    """Is a value what the reference has? True is not 1; 1.0 is not 1, but 1 is 1.0; a list has its order."""
    if isinstance(gold, bool) or isinstance(value, bool) or gold is None or value is None:
        return gold is value
    if isinstance(gold, int):
        return isinstance(value, int) and gold == value
    if isinstance(gold, float):
        return isinstance(value, int | float) and gold == value
    if isinstance(gold, list):
        return (
            isinstance(value, list)
            and len(gold) == len(value)
            and all(same(own, other) for own, other in zip(gold, value, strict=True))
        )
    if isinstance(gold, dict):
        return (
            isinstance(value, dict)
            and gold.keys() == value.keys()
            and all(same(own, value[key]) for key, own in gold.items())
        )
    return bool(gold == value)


def _jaccard(first: Sequence[Any], second: Sequence[Any]) -> float:
    """Of two multisets; 1 for two empty ones.

    Raises:
        TypeError: something in them cannot be hashed.
    """
    if first == second:
        return 1.0
    common = (Counter(first) & Counter(second)).total()
    return common / (len(first) + len(second) - common)


def _differences(gold: Sequence[Call], calls: Sequence[Call], pairs: Sequence[int | None]) -> list[str]:
    """What a person would say is wrong; empty if nothing is."""
    found = []
    for number, (own, place) in enumerate(zip(gold, pairs, strict=True), start=1):
        if place is None:
            found.append(f"reference call {number}, {as_call(own.name, own.arguments)}, is missing")
            continue
        other, where = calls[place], f"call {place + 1} ({named(own.name)}), parameter"
        for name, value in own.arguments.items():
            if name not in other.arguments:
                found.append(f"{where} {name!r}: missing, expected {shown(value)}")
            elif not same(value, other.arguments[name]):
                found.append(
                    f"{where} {name!r}: expected {shown(value)}, found {shown(other.arguments[name])}"
                )
        found += [
            f"{where} {name!r} is not expected" for name in other.arguments if name not in own.arguments
        ]
    used = set(pairs)
    found += [
        f"call {index + 1} ({named(own.name)}) is not expected"
        for index, own in enumerate(calls)
        if index not in used
    ]
    return found


def _broken_gold(problem: str) -> Check:
    return Check(math.nan, f"the ground truth is none: {problem}", flags=("data:gold",))


# --------------------------------------------------------------------------- the public code's numbers


def official(response: str, gold: str, think: bool) -> dict[str, Check]:
    """Both rewards, as the public code gives them; `think` False lets the thinking be left out."""
    start, end = _anchor(response)
    text = response[start:end]
    wanted = Wanted(CALLS[0] in gold, REPLY[0] in gold)
    form = wanted.describe(think)
    tags = [tag for tag in (*THINK, *CALLS, *REPLY) if tag in text]
    spans = tuple(sorted(_first(text, start, tag) for tag in tags))
    kept = _official_format(text, wanted, think)
    return {
        "format": Check(
            float(kept), "the format is right" if kept else "the format is not the official one", form, spans
        ),
        "correctness": _official_correctness(text, gold, start),
    }


def _anchor(response: str) -> tuple[int, int]:
    """What the public code takes for the response: it looks for chat markup in the whole text."""
    marker, finish = "<|im_start|>assistant", "<|im_end|>"
    at = response.rfind(marker)
    start = at + len(marker) if at >= 0 else 0
    end = response.find(finish, start)
    body = response[start : len(response) if end < 0 else end]
    start += len(body) - len(body.lstrip())
    return start, start + len(body.strip())


def _first(text: str, start: int, tag: str) -> Span:
    at = start + text.find(tag)
    return Span(at, at + len(tag), "tag")


def _official_format(text: str, wanted: Wanted, think: bool) -> bool:
    """The public patterns, as texts that must follow each other with anything between them."""
    calls, reply = f"{CALLS[0]}\n|\n{CALLS[1]}", f"{REPLY[0]}|{REPLY[1]}"
    blocks = "\n".join([*([calls] if wanted.calls else []), *([reply] if wanted.reply else [])])
    forms = [f"{THINK[0]}|{THINK[1]}" + (f"\n{blocks}" if blocks else "")]
    if blocks and not think:
        forms.append(blocks)
    tags = (*(CALLS if wanted.calls else ()), *(REPLY if wanted.reply else ()))
    return any(_follow(text, form.split("|")) for form in forms) and all(text.count(tag) == 1 for tag in tags)


def _follow(text: str, pieces: Sequence[str]) -> bool:
    if not text.startswith(pieces[0]) or not text.endswith(pieces[-1]):
        return False
    at = len(pieces[0])
    for piece in pieces[1:-1]:
        at = text.find(piece, at) + len(piece)
        if at < len(piece):
            return False
    return len(pieces) == 1 or at + len(pieces[-1]) <= len(text)


def _official_correctness(text: str, gold: str, offset: int) -> Check:
    if CALLS[0] not in gold:
        return Check(0.0, "the reference has no call, so there is none to judge")
    try:
        wanted = _official_calls(gold)
    except (ValueError, RecursionError) as problem:  # the public code raises
        return _broken_gold(f"{problem}")
    info = "\n".join(map(as_json, wanted))
    if CALLS[0] not in text or CALLS[1] not in text:
        return Check(WORST, f"there is no {CALLS[0]} or no {CALLS[1]}", info)
    start = text.find(CALLS[0]) + len(CALLS[0])
    block = read_objects(text, start, CALLS[1])
    spans = tuple(Span(offset + own.start, offset + own.end, own.part) for own in block.spans)
    try:
        found = _official_calls(text)
        if wanted == found:
            return Check(BEST, "the calls are the reference's", info, spans)
        score, highest = _official_score(wanted, found)
        reward = (BEST - WORST) * score / highest + WORST
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError) as problem:
        return Check(WORST, f"the calls cannot be read: {type(problem).__name__}: {problem}", info, spans)
    return Check(reward, "the calls differ from the reference's", info, spans)


def _official_calls(text: str) -> list[Any]:
    """What stands between the first tags, a JSON value a line."""
    body = text.split(CALLS[0])[1].split(CALLS[1])[0]
    return [json.loads(line) for line in body.strip().split("\n")]


def _official_score(
    wanted: Sequence[Mapping[str, Any]], found: Sequence[Mapping[str, Any]]
) -> tuple[float, float]:
    """s and s_max with a greedy choice: each reference call takes the best of what is left."""
    score = _jaccard([own["name"] for own in wanted], [own["name"] for own in found])
    highest, used = 1.0, set[int]()
    for own in wanted:
        parameters = own["parameters"]
        highest += 1.0 + len(parameters)
        best, chosen = 0.0, -1
        for index, other in enumerate(found):
            if index in used or other["name"] != own["name"]:
                continue
            given = other["parameters"]
            fit = _jaccard(list(parameters.keys()), list(given.keys())) + sum(
                key in given and given[key] == value for key, value in parameters.items()
            )
            if fit > best:
                best, chosen = fit, index
        if chosen >= 0:
            used.add(chosen)
            score += best
    return score, highest
