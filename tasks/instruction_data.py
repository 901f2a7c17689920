"""Requests with constraints on their answers, from files and `datasets` ids, in the published forms.

A source is a file or a data set of the hub (`tasks.sources`). Rows are of any of these forms::

    {"prompt": text, "instruction_id_list": [id], "kwargs": [{...}]}                       IFEval, IFBench
    {"conversations": messages, "constraints": [[category, subtype, text]]}                MulDimIF
    {"prompt": text, "criteria": [text], "source": "type1", "ground_truth": {...}}         HIR-16K
    {"prompt": text or messages, "constraints": [{"id": id, "kwargs": {...}}]}             our own

IFEval, IFBench and MulDimIF say the constraints in the request, in prose. HIR-16K has them apart, as our own
rows do; these may word one by themselves (``"text"``), say that the request has them in prose
(``"prose": true``), and have an answer that keeps them all (``"target"``).

HIR-16K's ``ground_truth`` has IFEval's lists (type1, type2), MulDimIF's (type3), or programs and questions to
a judge (type4). Programs from data are not run: such constraints, ``hir:rule`` and ``hir:llm``, are never
judged.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from creditlib.types import MissingDataError
from tasks.preference_data import Messages, as_messages
from tasks.sources import read_rows
from verifiers.instructions.muldimif import constraint_of

Constraint = Mapping[str, Any]  # {"id": ..., "kwargs": {...}}

_SHOWN = 3


@dataclass(frozen=True)
class Row:
    """One request and the constraints on its answer.

    Attributes:
        messages: the request; the last turn is the user's.
        constraints: ``{"id": ..., "kwargs": {...}}`` each.
        listed: the constraints stand apart from the request, in a list.
        texts: their wordings where the row has some, else None, in the same order.
        target: an answer that keeps them.
    """

    messages: Messages
    constraints: tuple[Constraint, ...]
    listed: bool
    texts: tuple[str | None, ...]
    target: str | None = None


def load_rows(source: str, data: str | None = None) -> list[Row]:
    """The rows of a source, in order.

    Raises:
        MissingDataError: it is not there, cannot be read or is empty, or rows are of none of the forms; the
            message names the first ones.
    """
    found: list[Row] = []
    problems: list[str] = []
    for place, item in read_rows(source, data):
        try:
            if item is None:
                raise ValueError("no JSON object")
            found.append(as_row(item))
        except (KeyError, TypeError, ValueError) as error:
            why = f"there is no {error}" if isinstance(error, KeyError) else str(error)
            problems.append(f"{place}: {why}")
    if not problems and not found:
        raise MissingDataError(f"{source} has no rows")
    if problems:
        raise MissingDataError(
            f"{source}: {len(problems)} of {len(problems) + len(found)} rows cannot be read "
            f"({'; '.join(problems[:_SHOWN])}). Mend or remove them; "
            "docs/tasks/instructions.md shows the forms"
        )
    return found


def as_row(item: Mapping[str, Any]) -> Row:
    """One row of any of the forms.

    Raises:
        KeyError, TypeError, ValueError: it is of none of them.
    """
    if "instruction_id_list" in item:
        return _row(_messages(item, "prompt"), _by_lists(item), listed=False)
    if "conversations" in item:
        return _row(_messages(item, "conversations"), _by_triples(item), listed=False)
    if "ground_truth" in item:
        return _hir(item)
    if "constraints" in item:
        return _own(item)
    raise ValueError(
        "expected instruction_id_list, conversations, ground_truth or constraints, found "
        f"{', '.join(item) or 'nothing'}"
    )


def _row(
    messages: Messages,
    constraints: Sequence[Constraint],
    *,
    listed: bool,
    texts: Sequence[str | None] | None = None,
    target: str | None = None,
) -> Row:
    if not constraints:
        raise ValueError("there are no constraints")
    if messages[-1]["role"] == "assistant":
        messages = messages[:-1]
    if not messages or messages[-1]["role"] != "user" or not messages[-1]["content"].strip():
        raise ValueError("expected the user's request as the last message")
    return Row(messages, tuple(constraints), listed, tuple(texts or [None] * len(constraints)), target)


def _hir(item: Mapping[str, Any]) -> Row:
    """HIR-16K's form; a file converted to columns may have ``ground_truth`` as JSON."""
    criteria = _list(item, "criteria")
    if not all(isinstance(text, str) and text.strip() for text in criteria):
        raise TypeError("expected a list of texts as criteria")
    truth = item["ground_truth"]
    if isinstance(truth, str):
        try:
            truth = json.loads(truth)
        except (ValueError, RecursionError) as error:  # too many brackets for the parser
            raise ValueError(f"ground_truth is no JSON: {error}") from error
    if not isinstance(truth, Mapping):
        raise TypeError(f"expected an object as ground_truth, found {type(truth).__name__}")
    if truth.get("checker") is not None:
        constraints = [_judged(checker) for checker in _list(truth, "checker")]
    elif truth.get("constraints") is not None:
        constraints = _by_triples(truth)
    else:
        constraints = _by_lists(truth)
    if len(criteria) != len(constraints):
        raise ValueError(
            f"{len(criteria)} criteria, but {len(constraints)} constraints in ground_truth: expected as many"
        )
    return _row(_messages(item, "prompt"), constraints, listed=True, texts=criteria)


def _own(item: Mapping[str, Any]) -> Row:
    prose = item.get("prose") or False
    if not isinstance(prose, bool):
        raise TypeError(f"expected true or false as prose, found {prose!r:.80}")
    constraints, texts = [], []
    for given in _list(item, "constraints"):
        if not isinstance(given, Mapping) or not isinstance(given.get("id"), str):
            raise TypeError(f"expected a constraint as an object with an id, found {given!r:.80}")
        if unknown := set(given) - {"id", "kwargs", "text"}:
            raise ValueError(f"constraint {given['id']}: expected id, kwargs and text, found {min(unknown)}")
        constraints.append(_constraint(given["id"], given.get("kwargs")))
        texts.append(_optional_text(given, "text"))
        if prose and texts[-1]:
            raise ValueError(f"constraint {given['id']}: found a text, but a prompt in prose has no list")
    return _row(
        _messages(item, "prompt"),
        constraints,
        listed=not prose,
        texts=texts,
        target=_optional_text(item, "target"),
    )


def _by_lists(item: Mapping[str, Any]) -> list[Constraint]:
    """IFEval's ids and arguments."""
    ids, arguments = _list(item, "instruction_id_list"), _list(item, "kwargs")
    if len(ids) != len(arguments):
        raise ValueError(
            f"{len(ids)} ids in instruction_id_list, but {len(arguments)} kwargs: expected as many"
        )
    return [_constraint(id, kwargs) for id, kwargs in zip(ids, arguments, strict=True)]


def _by_triples(item: Mapping[str, Any]) -> list[Constraint]:
    """MulDimIF's constraints."""
    found: list[Constraint] = []
    for triple in _list(item, "constraints"):
        if not isinstance(triple, list | tuple) or list(map(type, triple)) != [str, str, str]:
            raise TypeError(f"expected a constraint as [category, subtype, text], found {triple!r:.80}")
        found.append(constraint_of(triple))
    return found


def _judged(checker: Any) -> Constraint:
    kind = "rule" if str(checker).startswith("[rule]") else "llm"
    return _constraint(f"hir:{kind}", None)


def _constraint(id: Any, kwargs: Any) -> Constraint:
    """With the arguments that are set: published rows have all that any constraint takes."""
    if not isinstance(id, str):
        raise TypeError(f"expected a text as a constraint's id, found {id!r:.80}")
    if not isinstance(kwargs, Mapping | None):
        raise TypeError(f"{id}: expected an object as kwargs, found {kwargs!r:.80}")
    return {"id": id, "kwargs": {key: value for key, value in (kwargs or {}).items() if value is not None}}


def _messages(item: Mapping[str, Any], key: str) -> Messages:
    value = _filled(item, key)
    turns = value if isinstance(value, list | tuple) else ()
    if not isinstance(value, str) and not (turns and all(isinstance(turn, Mapping) for turn in turns)):
        raise TypeError(f"expected a text or messages as {key}, found {value!r:.80}")
    return as_messages(value)


def _filled(item: Mapping[str, Any], key: str) -> Any:
    if item.get(key) is None:
        raise KeyError(key)
    return item[key]


def _list(item: Mapping[str, Any], key: str) -> list[Any]:
    value = _filled(item, key)
    if not isinstance(value, list | tuple):
        raise TypeError(f"expected a list as {key}, found {type(value).__name__}")
    return list(value)


def _optional_text(item: Mapping[str, Any], key: str) -> str | None:
    value = item.get(key)
    if not isinstance(value, str | None):
        raise TypeError(f"expected a text as {key}, found {value!r:.80}")
    return value
