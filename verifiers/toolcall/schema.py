"""BFCL's function documents and possible answers, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from verifiers.toolcall.values import as_call

OMIT = ""  # among the answers to a parameter: it may be left out


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
    documents: dict[str, Mapping[str, Any]] = {}
    for function in functions:
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            return Reference((), f"a function without a name: {function!r:.80}", ("data:functions",))
        documents.setdefault(function["name"], _mapping(function.get("parameters")))
    expected = []
    for answer in answers or ():
        if not isinstance(answer, Mapping) or len(answer) != 1:
            return Reference((), f"an answer is not one call: {answer!r:.80}", ("data:answers",))
        name, parameters = next(iter(answer.items()))
        if not isinstance(parameters, Mapping) or not all(map(_is_list, parameters.values())):
            return Reference((), f"the answer to {name} is not lists by parameter", ("data:answers",))
        if name not in documents:
            return Reference((), f"the answer calls {name}, which no function is called", ("data:answers",))
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
            found.append(f"{expected.name} needs {parameter!r}, to which no answer is right")
    for parameter, answers in expected.answers.items():
        if parameter not in expected.properties and OMIT not in answers:
            found.append(f"the answer to {expected.name} has {parameter!r}, which the function does not have")
    return found


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)
