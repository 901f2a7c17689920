"""Requests for calls: one call, several, or none that the tools on offer could do.

Conventions, so that a request has one right answer:

- every value of a call stands in the request as it stands in the call; what is on or off is named;
- a parameter that a request says nothing about is left out of the call: it keeps its default;
- a value is never asked for where it is the default;
- calls come in the order of the request.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from random import Random

from tasks.data.toolcall import words
from tasks.data.toolcall.model import Call, Tool, Value, filled, said

_SAME = (" and ", " and also ", ", and ", " and then ", " as well as ")  # between calls of one tool
_THEN = (" and then ", ", then ")  # where a list of values has an "and" of its own
_OTHER = (" and ", ", and ", " and then ", ", then ", " and also ", ". then ", ". also, ", ". after that, ")
_OPENINGS = ("", "", "", "please ", "can you ", "could you ", "i want you to ", "now ", "would you ")
_ASKING = ("can you ", "could you ", "would you ")
_NO_ORDERS = frozenset("what how who when where why which is i are do have my good tell does".split())
_TRIES = 50
_AN = re.compile(r"\ba (?=[aeio])")
_CHAT_WORDS = (*words.PEOPLE, *words.CITIES, *words.COLORS, *words.DISHES.split(), *words.PETS.split())


@dataclass(frozen=True)
class Request:
    """A request, the tools on offer, and the calls that it wants: none where no tool can do it."""

    kind: str
    tools: tuple[Tool, ...]
    question: str
    calls: tuple[Call, ...]


@dataclass(frozen=True)
class Offer:
    """The tools that requests may be about.

    Attributes:
        rng: the source of chance.
        groups: the tools; those of one group may be able to do each other's work.
        size: characters that a tool takes in a prompt.
        prompt: most characters of a question and the tools offered with it.
        answer: most characters of the calls.
    """

    rng: Random
    groups: Sequence[Sequence[Tool]]
    size: Callable[[Tool], int]
    prompt: int = 170
    answer: int = 160

    @cached_property
    def tools(self) -> list[Tool]:
        """All of them."""
        return list(chain(*self.groups))

    def around(self, wanted: Sequence[Tool], asked: str, most: int) -> tuple[Tool, ...]:
        """`wanted` and other tools, `most` in all if the prompt has room for them, in random order."""
        chosen = list(wanted)
        room = self.prompt - len(asked) - sum(map(self.size, wanted))
        for tool in self.rng.sample(self.tools, min(len(self.tools), 2 * most)):
            if len(chosen) < most and tool not in chosen and self.size(tool) <= room:
                chosen.append(tool)
                room -= self.size(tool)
        self.rng.shuffle(chosen)
        return tuple(chosen)

    def fits(self, request: Request) -> bool:
        """Is it short enough?"""
        prompt = len(request.question) + sum(map(self.size, request.tools))
        return prompt <= self.prompt and sum(map(len, map(str, request.calls))) <= self.answer


def single(offer: Offer) -> Request:
    """One tool, one call."""
    tool = offer.rng.choice(offer.tools)
    asked, call = _clause(tool, offer.rng)
    return Request("single", (tool,), _sentence(asked, offer.rng), (call,))


def multiple(offer: Offer) -> Request:
    """One call of one of several tools."""
    tool = offer.rng.choice(offer.tools)
    asked, call = _clause(tool, offer.rng)
    question = _sentence(asked, offer.rng)
    tools = offer.around([tool], question, offer.rng.choice((2, 3, 3, 4)))
    return Request("multiple" if len(tools) > 1 else "single", tools, question, (call,))


def parallel(offer: Offer) -> Request:
    """Two calls of the same tool."""
    rng = offer.rng
    tool = rng.choice(offer.tools)
    head, tail = _wording(tool, rng)
    first, one = _said(tool, tail, rng)
    second, two = _said(tool, tail, rng)
    while one == two:
        second, two = _said(tool, tail, rng)
    lists = any(own.kind == "array" for own in tool.parameters)
    asked = head + first + rng.choice(_THEN if lists else _SAME) + second
    return Request("parallel", (tool,), _sentence(asked, rng), (one, two))


def parallel_multiple(offer: Offer) -> Request:
    """A call of each of two tools."""
    rng = offer.rng
    both = rng.sample(offer.tools, 2)
    (first, one), (second, two) = (_clause(tool, rng) for tool in both)
    question = _sentence(first + rng.choice(_OTHER) + second, rng)
    tools = offer.around(both, question, rng.choice((2, 2, 3)))
    return Request("parallel_multiple", tools, question, (one, two))


def none(offer: Offer) -> Request:
    """A request for a tool that is not on offer and that none on offer can stand in for, or small talk."""
    rng = offer.rng
    group = rng.choice(offer.groups)
    if rng.random() < 0.4:
        wording = rng.choice(words.CHATS)
        asked = wording.format(*rng.sample(_CHAT_WORDS, wording.count("{}")))
    else:
        asked, _ = _clause(rng.choice(group), rng)
    question = _sentence(asked, rng)
    others = replace(offer, groups=[own for own in offer.groups if own is not group])
    return Request("none", others.around([], question, rng.choice((1, 2, 2, 3))), question, ())


# How often a kind is asked, relative to the others.
KINDS: Mapping[Callable[[Offer], Request], int] = {
    single: 3,
    multiple: 4,
    parallel: 2,
    parallel_multiple: 2,
    none: 2,
}


def ask(offer: Offer) -> Request:
    """A random request that is short enough."""
    while True:
        kind = offer.rng.choices(list(KINDS), list(KINDS.values()))[0]
        for _ in range(_TRIES):  # of one kind, so that short kinds do not crowd out the others
            if offer.fits(request := kind(offer)):
                return request


def _clause(tool: Tool, rng: Random) -> tuple[str, Call]:
    head, tail = _wording(tool, rng)
    asked, call = _said(tool, tail, rng)
    return head + asked, call


def _wording(tool: Tool, rng: Random) -> tuple[str, str]:
    """What is said once, and what is said for each call."""
    head, _, tail = rng.choice(tool.asks).partition("|")
    return head, tail


def _said(tool: Tool, tail: str, rng: Random) -> tuple[str, Call]:
    """A call, and `tail` with its values, followed by phrases for its optional ones."""
    values: dict[str, Value] = {}
    phrases = []
    for own in tool.parameters:
        if not own.required and rng.random() < 0.5:
            continue
        value = values[own.name] = own.draw(rng, [*values.values()])
        if not own.required:
            phrases.append(rng.choice(own.says).format(said(value)))
    rng.shuffle(phrases)
    return " ".join([filled(tail, values), *phrases]), {"name": tool.name, "parameters": values}


def _sentence(asked: str, rng: Random) -> str:
    """With an opening where it is an order, and with a mark at its end."""
    asked = _AN.sub("an ", asked)
    first = asked.partition(" ")[0]
    opening = "" if first in _NO_ORDERS else rng.choice(_OPENINGS)
    question = opening in _ASKING or (not opening and first in _NO_ORDERS - {"i", "my", "good", "tell"})
    return opening + asked + ("?" if question else rng.choice((".", ".", "")))
