"""BFCL's function documents and possible answers, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from verifiers.toolcall.values import as_call, named, shown

OMIT = ""  # among the answers to a parameter: it may be left out

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
            values = [value for value in answers if value != OMIT] or list(answers)
            if values and (parameter in self.required or OMIT not in answers):
                chosen[parameter] = plain(values[0])
        return as_call(self.name, chosen)


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


def plain(answer: Any) -> Any:
    """An answer as a value: within a dict, each key has a list of the values that are right."""
    if isinstance(answer, Mapping):
        chosen = {}
        for key, values in answer.items():
            values = values if _is_list(values) else [values]
            if wanted := [value for value in values if value != OMIT] or ([] if values else [None]):
                chosen[key] = plain(wanted[0])
        return chosen
    return [plain(own) for own in answer] if _is_list(answer) else answer


def _impossible(expected: Expected) -> list[str]:
    """What no response can satisfy."""
    found = []
    for parameter in expected.required:
        if not expected.answers.get(parameter):
            found.append(f"{named(expected.name)} needs {parameter!a:.60}, to which no answer is right")
    for parameter, answers in expected.answers.items():
        what = f"{named(expected.name)} has {parameter!a:.60}"
        if parameter not in expected.properties and OMIT not in answers:
            found.append(f"the answer to {what}, which the function does not have")
        elif not answers and parameter not in expected.required:
            found.append(f"the answer to {what}, for which it has no value")
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
