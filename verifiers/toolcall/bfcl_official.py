"""The verdicts of `bfcl_eval`'s `ast_checker` for Python functions, oddities and all, for comparable numbers.

The rules are those of bfcl-eval 2026.3.23, `eval_checker/ast_eval/ast_checker.py`; where that raises an
exception, the calls are not valid here. ``docs/verifiers/toolcall.md`` lists what is odd about them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from verifiers.toolcall.calls import Block, Call, read_objects
from verifiers.toolcall.literals import read_list
from verifiers.toolcall.response import CALLS
from verifiers.toolcall.schema import OMIT, Expected

_TYPES: Mapping[str, type] = {
    "string": str,
    "integer": int,
    "float": float,
    "boolean": bool,
    "array": list,
    "tuple": list,
    "dict": dict,
    "any": str,
}
_IGNORED = str.maketrans("'", '"', " ,./-_*^")


def decode(response: str) -> tuple[list[Call] | None, Block]:
    """The calls that the public decoder finds, None where it fails, and what was read for its spans.

    A ``<tool_call>`` block is read as ToolRL's public code does; everything else is a list of calls in BFCL's
    prompt format.
    """
    if CALLS[0] in response:
        return _decode_objects(response)
    padding = "`\n "
    start = len(response) - len(response.lstrip(padding))
    end = max(start, len(response.rstrip(padding)))
    block = read_list(response, start, end, official=True)
    return None if block.problem else block.calls, block


def _decode_objects(response: str) -> tuple[list[Call] | None, Block]:
    start = response.find(CALLS[0]) + len(CALLS[0])
    block = read_objects(response, start, CALLS[1])
    body = response[start:].split(CALLS[0])[0].split(CALLS[1])[0].strip()
    try:
        found = [json.loads(line) for line in body.split("\n")]
        calls = [Call(own["name"], own["parameters"]) for own in found]
    except (ValueError, RecursionError, TypeError, KeyError):
        return None, block
    good = all(isinstance(own.name, str) and isinstance(own.arguments, dict) for own in calls)
    return calls if good else None, block


def foreign_types(expected: Sequence[Expected]) -> set[str]:
    """Types that the rules for Python do not know, such as those of Java and JavaScript functions."""
    return {
        str(kind)
        for own in expected
        for schema in own.properties.values()
        for kind in (schema.get("type"), _items_type(schema))
        if kind is not None and not (isinstance(kind, str) and kind in _TYPES)
    }


def valid(expected: Sequence[Expected], calls: Sequence[Call]) -> bool:
    """Do the calls pass? Each reference call takes the first predicted one that passes and is left."""
    if len(calls) != len(expected):
        return False
    left = list(calls)
    for own in expected:
        place = next((index for index, call in enumerate(left) if _passes(own, call)), None)
        if place is None:
            return False
        del left[place]
    return True


def _passes(expected: Expected, call: Call) -> bool:
    try:
        return (
            call.name == expected.name
            and all(parameter in call.arguments for parameter in expected.required)
            and all(_value_passes(expected, *argument) for argument in call.arguments.items())
            and all(
                parameter in call.arguments or OMIT in answers
                for parameter, answers in expected.answers.items()
            )
        )
    except (TypeError, AttributeError, KeyError, OverflowError, RecursionError):
        return False  # the public checker raises


def _value_passes(expected: Expected, parameter: str, value: Any) -> bool:
    if parameter not in expected.properties or parameter not in expected.answers:
        return False
    schema, answers = expected.properties[parameter], expected.answers[parameter]
    kind = _TYPES[schema["type"]]
    inner = _TYPES[schema["items"]["type"]] if kind is list else None
    if schema["type"] == "tuple" and isinstance(value, tuple):
        value = list(value)
    if kind is float and type(value) is int:
        value = float(value)

    of_answers = next((type(answer) for answer in answers if answer != OMIT), None)
    if type(value) is kind:
        if inner is not None and not _items_pass(value, answers, inner):
            return False
        variable = of_answers not in (None, kind)  # the answer contradicts the schema
    elif type(value) is of_answers:
        variable = True
    else:
        return False

    if variable:
        return value in answers
    if kind is dict:
        return _dict_passes(value, answers)
    if inner is dict:
        return any(
            len(value) == len(answer)
            and all(_dict_passes(own, [other]) for own, other in zip(value, answer, strict=True))
            for answer in answers
        )
    if kind is str:
        return _standard(value) in [_standard(answer) for answer in answers if type(answer) is str]
    if kind is list:
        return _standard_items(value) in [_standard_items(answer) for answer in answers]
    return value in answers


def _items_pass(value: Any, answers: Sequence[Any], inner: type) -> bool:
    """Do the items have the type of the schema, or that of the items of one answer? An answer that is no list
    lets everything pass.
    """
    for answer in answers:
        if type(answer) is not list:
            return True
        of_items = next((type(item) for item in answer if item != OMIT), None)
        if all(type(item) is inner or (of_items is not None and type(item) is of_items) for item in value):
            return True
    return False


def _dict_passes(value: Any, answers: Sequence[Any]) -> bool:
    return any(
        all(
            key in answer and _standard_value(own) in [_standard_value(right) for right in answer[key]]
            for key, own in value.items()
        )
        and all(key in value or OMIT in allowed for key, allowed in answer.items())
        for answer in answers
        if answer != OMIT
    )


def _standard_items(value: Sequence[Any]) -> list[Any]:
    return [_standard_value(own) for own in value]


def _standard_value(value: Any) -> Any:
    return _standard(value) if type(value) is str else value


def _standard(text: str) -> str:
    return text.translate(_IGNORED).lower()


def _items_type(schema: Mapping[str, Any]) -> Any:
    items = schema.get("items")
    return items.get("type") if isinstance(items, Mapping) else None
