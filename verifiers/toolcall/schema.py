"""BFCL's function documents and possible answers, and what is wrong with them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from verifiers.toolcall.calls import MAX_DEPTH
from verifiers.toolcall.values import as_call, named, shown

OMIT = ""  # among the answers to a parameter: it may be left out
TEXT = frozenset("string String str char".split())

_DEEPEST = 100  # levels of lists and dicts in functions and answers
_LONGEST_NUMBER = 4096  # bits


@dataclass(frozen=True)
class Expected:
    """One reference call.

    Attributes:
        name: of the function.
        answers: for each parameter the values that are right.
        properties: JSON-Schema-like types of the function's parameters.
        required: parameters that may not be left out, whatever the answers say.
    """

    name: str
    answers: Mapping[str, Sequence[Any]]
    properties: Mapping[str, Mapping[str, Any]]
    required: Sequence[str]

    @property
    def info(self) -> str:
        """A right call: the first answer to each parameter that it does not leave out."""
        chosen = {}
        for parameter, answers in self.answers.items():
            if parameter in self.required or OMIT not in answers:
                for value in self.values(parameter)[:1]:
                    chosen[parameter] = plain(value)
        return as_call(self.name, chosen)

    def values(self, parameter: str) -> list[Any]:
        """The answers that a call can give as the parameter's value."""
        answers, schema = self.answers.get(parameter, ()), self.properties.get(parameter, {})
        found = [own for own in answers if own != OMIT and _can_be_written(own)]
        if OMIT in answers:
            found += [OMIT] if takes_text(schema) else []
            found += [schema["default"]] if _can_be_written(schema.get("default", math.nan)) else []
        return found


@dataclass(frozen=True)
class Reference:
    """What a response is judged by.

    Attributes:
        expected: the reference calls; none where no call is wanted.
        problem: why no response could satisfy them; "" if one could.
        flags: of the data.
    """

    expected: tuple[Expected, ...]
    problem: str = ""
    flags: tuple[str, ...] = ()

    @property
    def info(self) -> str:
        return "\n".join(own.info for own in self.expected) or "no call is wanted"


def read_reference(
    functions: Sequence[Mapping[str, Any]], answers: Sequence[Mapping[str, Any]] | None
) -> Reference:
    """Read BFCL's `function` list and `ground_truth` list; no answers: no call is wanted."""
    for what, given in (("functions", functions), ("answers", answers if answers is not None else ())):
        if problem := _no_json(given, what):
            return Reference((), problem, (f"data:{what}",))
    documents: dict[str, Mapping[str, Any]] = {}
    for function in functions:
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            return Reference((), f"a function without a name: {shown(function)}", ("data:functions",))
        parameters = _mapping(function.get("parameters"))
        if problem := _no_schema(parameters):
            problem = f"the parameters of {named(function['name'])} are no JSON Schema: {problem}"
            return Reference((), problem, ("data:functions",))
        documents.setdefault(function["name"], parameters)
    expected = []
    for answer in answers or ():
        if not isinstance(answer, Mapping) or len(answer) != 1:
            return Reference((), f"an answer is not one call: {shown(answer)}", ("data:answers",))
        name, parameters = next(iter(answer.items()))
        called = named(name)
        if not isinstance(parameters, Mapping) or not all(map(_is_list, parameters.values())):
            return Reference((), f"the answer to {called} is not lists by parameter", ("data:answers",))
        if name not in documents:
            problem = f"the answer calls {called}, which no function is called"
            return Reference((), problem, ("data:answers",))
        document = documents[name]
        own = Expected(
            name,
            parameters,
            {key: _mapping(kind) for key, kind in _mapping(document.get("properties")).items()},
            tuple(document.get("required") or ()),
        )
        expected.append(own)
    problems = [problem for own in expected for problem in _impossible(own)]
    flags = ["data:answers"] if problems else []
    if any(parameter not in own.properties for own in expected for parameter in own.answers):
        flags.append("data:unknown_parameter")
    return Reference(tuple(expected), problems[0] if problems else "", tuple(flags))


def kinds_of(schema: Mapping[str, Any]) -> frozenset[str]:
    """The types that a schema allows, any of them; none where it says nothing."""
    kind = schema.get("type")
    return frozenset([kind] if isinstance(kind, str) else kind or ())


def takes_text(schema: Mapping[str, Any]) -> bool:
    """Whether any text may be a value."""
    kinds = kinds_of(schema)
    return not kinds or not kinds.isdisjoint((*TEXT, "any"))


def plain(answer: Any) -> Any:
    """An answer as a value: within a dict, each key has a list of the values that are right."""
    if isinstance(answer, Mapping):
        chosen = {}
        for key, values in answer.items():
            values = values if _is_list(values) else [values]
            for value in [own for own in values if own != OMIT and _can_be_written(own)][:1]:
                chosen[key] = plain(value)
        return chosen
    return [plain(own) for own in answer] if _is_list(answer) else answer


def _can_be_written(answer: Any, deep: int = MAX_DEPTH) -> bool:
    """Whether the calls of a response can have such a value."""
    if isinstance(answer, Mapping):
        rights = [own if _is_list(own) else [own] for own in answer.values()]
        return deep > 0 and all(
            OMIT in own or any(_can_be_written(value, deep - 1) for value in own) for own in rights
        )
    if _is_list(answer):
        return deep > 0 and all(_can_be_written(own, deep - 1) for own in answer)
    return not isinstance(answer, float) or math.isfinite(answer)


def _impossible(expected: Expected) -> list[str]:
    """What no response can satisfy."""
    found = []
    required = frozenset(expected.required)
    for parameter in dict.fromkeys([*expected.required, *expected.answers]):
        answers = expected.answers.get(parameter, ())
        if parameter not in required and OMIT in answers:
            continue
        call, name = named(expected.name), f"{parameter!a:.60}"
        if not answers and parameter in required:
            found.append(f"{call} needs {name}, to which no answer is right")
        elif parameter not in expected.properties:
            found.append(f"the answer to {call} has {name}, which the function does not have")
        elif not expected.values(parameter):
            found.append(f"the answer to {call} has {name}, for which it has no value that a call can have")
    return found


def _no_json(given: Any, what: str) -> str:
    """Why data is no list of JSON values that can be judged by; "" if it is."""
    if not _is_list(given):
        return f"the {what} are no list"
    level: list[Any] = [given]
    for _ in range(_DEEPEST):
        inner: list[Any] = []
        for own in level:
            if isinstance(own, Mapping):
                if not all(isinstance(key, str) for key in own):
                    return f"in the {what} is a key that is no text"
                inner += own.values()
            elif _is_list(own):
                inner += own
            elif isinstance(own, int) and own.bit_length() > _LONGEST_NUMBER:
                return f"in the {what} is a number of more than {_LONGEST_NUMBER} bits"
            elif not isinstance(own, str | int | float | None):
                return f"in the {what} is a {type(own).__name__}, which is no JSON"
        if not inner:
            return ""
        level = inner
    return f"the {what} are nested more than {_DEEPEST} deep"


def _no_schema(schema: Mapping[str, Any]) -> str:
    """What is wrong with a schema or one within it; "" if nothing is."""
    waiting: list[Any] = [schema]
    while waiting:
        own = waiting.pop()
        if not isinstance(own, Mapping):
            continue
        kind, required = own.get("type"), own.get("required")
        if not (kind is None or isinstance(kind, str) or _are_texts(kind)):
            return f"the type {shown(kind)} is neither a name nor a list of names"
        if own is schema and not (required is None or _are_texts(required)):
            return f"required is {shown(required)}, not a list of names"
        waiting.append(own.get("items"))
        waiting += _mapping(own.get("properties")).values()
    return ""


def _are_texts(value: Any) -> bool:
    return _is_list(value) and all(isinstance(own, str) for own in value)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)
