"""Reads tool-calling data in three layouts, and shows tools to a policy.

``plain``, ours: rows of ``tools`` (names in a file of tools), ``question`` and ``calls``; ``rlla``, the rows
of ToolRL (prompt and ground truth, or instruction, input and output); ``bfcl``, the single-turn rows of the
Berkeley function calling leaderboard with a folder of possible answers. RLLA's rows, whose calls are texts,
may come from the hub. What is wrong with a source is said with its name and the line or row.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from creditlib.types import Message, MissingDataError
from tasks.sources import find_source, names_hub, read_object, read_rows
from verifiers.toolcall import calls_in
from verifiers.toolcall.schema import read_reference

Layout = Literal["plain", "rlla", "bfcl"]
Function = Mapping[str, Any]  # name, description, parameters as JSON Schema
Call = Mapping[str, Any]  # name, parameters

_DEEPEST = 50  # schemas within schemas
_SHORT = {"string": "", "integer": "int", "number": "float", "boolean": "bool"}
_TYPES = frozenset(  # of JSON Schema, and of BFCL's functions in Python
    "string integer number boolean array object null float dict tuple any".split()
)


@dataclass(frozen=True)
class Row:
    """One conversation with what an answer to it is judged by.

    Attributes:
        messages: what was said, tools left out but in RLLA's rows.
        functions: the tools on offer; none in RLLA's rows, whose system message lists them.
        calls: the reference calls, one JSON a line; "" where none is wanted, None where that is unknown.
        gold: RLLA's ground truth.
        answers: BFCL's possible answers.
        kind: what sort of request it is, where the data says so.
    """

    messages: tuple[Message, ...]
    functions: tuple[Function, ...] = ()
    calls: str | None = None
    gold: str | None = None
    answers: tuple[Mapping[str, Any], ...] = ()
    kind: str = ""


# ------------------------------------------------------------------ layouts


def read_plain(file: str, folder: Path, tools: str) -> list[Row]:
    """Rows in our own layout, about the functions in the file `tools`.

    Raises:
        MissingDataError: a file is missing or malformed, two tools have one name, a row names a tool that is
            not in `tools`, or it has a call that its tools do not take.
    """
    functions: dict[str, Function] = {}
    for item in read_items(tools, folder):
        function = read_function(item, item.row)
        name, needed = function["name"], function["parameters"].get("required")
        if name in functions:
            raise item.error(f"expected each tool once, found another {name!r}")
        if not isinstance(needed, list | None):  # the judge would take it for nothing
            raise item.error(f"expected a list of names under 'required' of tool {name}, found {needed!r}")
        functions[name] = function
    rows = []
    for item in read_items(file, folder):
        names = item.list("tools")
        if unknown := [name for name in names if not isinstance(name, str) or name not in functions]:
            raise item.error(f"expected names of tools in {tools} under 'tools', found {_shown(unknown[0])}")
        question = {"role": "user", "content": item.text("question")}
        offered = {name: functions[name] for name in names}
        calls = as_lines([_call(item, call, offered) for call in item.list("calls")])
        kind = item.text("kind", needed=False)
        rows.append(Row((question,), tuple(functions[name] for name in names), calls, kind=kind))
    return rows


def read_rlla(source: str, folder: Path) -> list[Row]:
    """Rows of RLLA: those to learn by reinforcement from (``prompt``, ``reward_model``) and those to imitate
    (``instruction``, ``input``, ``output``).

    Raises:
        MissingDataError: the source is missing or malformed, or a row is of neither form.
    """
    rows = []
    for item in read_items(source, folder):
        if item.row.get("prompt") is not None:
            messages = _messages(item, item.row["prompt"])
            reward = item.row.get("reward_model")
            if not isinstance(reward, Mapping):
                raise item.error(f"expected an object under 'reward_model', found {_shown(reward)}")
            gold = Item(item.place, reward).text("ground_truth")
        elif item.row.get("instruction") is not None:
            messages = (
                {"role": "system", "content": item.text("instruction")},
                {"role": "user", "content": item.text("input")},
            )
            gold = item.text("output")
        else:
            raise item.error(
                "expected prompt and reward_model, or instruction, input and output; found "
                f"{', '.join(map(str, item.row)) or 'nothing'}"
            )
        rows.append(Row(messages, calls=_calls_of(gold), gold=gold))
    return rows


def read_bfcl(file: str, folder: Path, answers: str) -> list[Row]:
    """Single-turn rows of BFCL; possible answers lie in `folder`'s folder `answers` under the same file name.

    Where the file's name says ``irrelevance`` no call is wanted. Its ``relevance`` rows want some call and no
    data says which, so they are refused.

    Raises:
        MissingDataError: a file is missing or malformed, a row has several turns or no possible answer.
    """
    name = Path(file).name
    irrelevant = "irrelevance" in name
    if "relevance" in name and not irrelevant:
        raise MissingDataError(
            f"{folder / file}: BFCL's relevance rows have no possible answers, so no answer to them can be "
            "judged. Leave the file out of task.train and task.evaluation"
        )
    beside = folder / answers
    possible = {} if irrelevant else {own.text("id"): _answers(own) for own in read_items(name, beside)}
    rows = []
    for item in read_items(file, folder):
        turns = item.list("question")
        if len(turns) != 1:
            raise item.error(
                f"expected one turn under 'question', found {len(turns)}; rows of several turns are not read"
            )
        functions = tuple(read_function(item, own) for own in item.list("function"))
        id = item.text("id")
        if not irrelevant and id not in possible:
            raise item.error(f"no possible answer for {id} in {beside / name}")
        found = possible.get(id, ())
        reference = read_reference(functions, found)
        calls = reference.info if reference.expected else None if reference.problem else ""
        kind = id.partition("-")[0].rpartition("_")[0]
        rows.append(Row(_messages(item, turns[0]), functions, calls, answers=found, kind=kind))
    return rows


def _answers(item: Item) -> tuple[Mapping[str, Any], ...]:
    found = item.list("ground_truth")
    if not found:
        raise item.error(
            f"{item.text('id')} has an empty list under 'ground_truth', and only rows of files named "
            "irrelevance want no call"
        )
    for answer in found:
        if not isinstance(answer, Mapping) or not all(
            isinstance(parameters, Mapping) and all(isinstance(own, list) for own in parameters.values())
            for parameters in answer.values()
        ):
            raise item.error(
                f"expected {{function: {{parameter: [values]}}}} under 'ground_truth', found {_shown(answer)}"
            )
    return tuple(found)


def _call(item: Item, call: Any, offered: Mapping[str, Function]) -> Call:
    call = _unwrapped(call)
    if isinstance(call, Mapping) and "parameters" not in call and "arguments" in call:  # OpenAI's word
        given = call["arguments"]
        call = {**call, "parameters": read_object(given) if isinstance(given, str) else given}
    if (
        not isinstance(call, Mapping)
        or not isinstance(call.get("name"), str)
        or not isinstance(call.get("parameters"), Mapping)
    ):
        raise item.error(f"expected calls of a name and parameters under 'calls', found {_shown(call)}")
    if problem := _misfit(call, offered):  # no policy could learn it from the prompt
        raise item.error(f"under 'calls', {problem}")
    return call


def _unwrapped(given: Any) -> Any:
    """A tool or a call without what OpenAI's form puts around it."""
    wrapped = isinstance(given, Mapping) and given.get("type") == "function" and "function" in given
    return given["function"] if wrapped else given


def _misfit(call: Call, offered: Mapping[str, Function]) -> str:
    """What of a call the tools on offer do not take, or what no response can write."""
    name, given = call["name"], call["parameters"]
    if name not in offered:
        return f"{name!r} is none of the row's tools"
    schema = offered[name]["parameters"]
    known = schema.get("properties") or {}
    unknown = [] if schema.get("additionalProperties") else [own for own in given if own not in known]
    if unknown:
        properties = ", ".join(known) or "none"
        return f"{name} has no parameter {unknown[0]!r}: its schema's properties are {properties}"
    missing = [own for own in _required(schema) if own not in given and "default" not in known.get(own, {})]
    if missing:
        return f"the call of {name} lacks {missing[0]!r}"
    written = calls_in(f"<tool_call>\n{as_lines([call])}\n</tool_call>")
    return "" if written else f"{_shown(call)} has a value that no call can have"


def _messages(item: Item, said: Any) -> tuple[Message, ...]:
    if not isinstance(said, list) or not said:
        raise item.error(f"expected a list of messages, found {_shown(said)}")
    for message in said:
        if not isinstance(message, Mapping) or not all(
            isinstance(message.get(key), str) for key in ("role", "content")
        ):
            raise item.error(f"expected messages of a role and a content, found {_shown(message)}")
    if said[-1]["role"] not in ("user", "tool"):  # an answer there would be told, not asked for
        raise item.error(f"expected the user or a tool to speak last, found {_shown(said[-1])}")
    return tuple({"role": message["role"], "content": message["content"]} for message in said)


def read_function(item: Item, found: Any) -> Function:
    """A tool's description, in OpenAI's form or as the function in it; one without parameters takes none.

    Raises:
        MissingDataError: it is none.
    """
    found = _unwrapped(found)
    if not isinstance(found, Mapping) or not isinstance(found.get("name"), str) or not found["name"].strip():
        raise item.error(f"expected a tool with a name, found {_shown(found)}")
    parameters = found.get("parameters")
    if parameters is None:
        return {**found, "parameters": {"type": "object", "properties": {}}}
    level = [parameters]
    for _ in range(_DEEPEST):
        if any(_is_no_schema(schema) for schema in level):
            break
        if not (level := [inner for schema in level for inner in _schemas_in(schema)]):
            return found
    raise item.error(
        f"expected the schema of an object under 'parameters' of tool {found['name']}, at most {_DEEPEST} "
        f"levels deep, found {_shown(parameters)}"
    )


def _is_no_schema(schema: Any) -> bool:
    return not isinstance(schema, Mapping) or not isinstance(schema.get("properties"), Mapping | None)


def _schemas_in(schema: Mapping[str, Any]) -> list[Any]:
    """Those of an object's properties and a list's items; items that are no schema say nothing."""
    items = schema.get("items")
    return [*(schema.get("properties") or {}).values(), *([items] if isinstance(items, Mapping) else [])]


def _calls_of(gold: str) -> str | None:
    """The calls of RLLA's ground truth, which says nothing of calls where it has none."""
    return as_lines([{"name": own.name, "parameters": own.arguments} for own in calls_in(gold)]) or None


def as_lines(calls: Sequence[Call]) -> str:
    """Calls as a response writes them, one JSON a line."""
    return "\n".join(
        json.dumps({"name": call["name"], "parameters": call["parameters"]}, ensure_ascii=False)
        for call in calls
    )


# ------------------------------------------------------------------ how prompts show tools


def signature(function: Function) -> str:
    """A tool in one line: ``get_weather(city, days int=3, unit? celsius|kelvin): the weather of a city``.

    A parameter without a type is a text; a question mark says that it may be left out, and so does a default.
    """
    fields = _fields(function["parameters"])
    described = function.get("description")
    return f"{function['name']}({fields})" + (f": {described}" if described else "")


def _fields(schema: Mapping[str, Any]) -> str:
    """The properties of an object."""
    needed = _required(schema)
    return ", ".join(
        _field(name, own, name in needed) for name, own in (schema.get("properties") or {}).items()
    )


def _required(schema: Mapping[str, Any]) -> list[Any]:
    required = schema.get("required")
    return required if isinstance(required, list) else []


def _field(name: str, schema: Mapping[str, Any], required: bool) -> str:
    default = schema.get("default")
    if default is None:
        return f"{name}{'' if required else '?'} {_type(schema)}".rstrip()
    shown = default if isinstance(default, str) else json.dumps(default, ensure_ascii=False)
    return f"{name} {_type(schema)}".rstrip() + f"={shown}"


def _type(schema: Mapping[str, Any]) -> str:
    """A schema's type in short; one that JSON Schema does not know as it is written."""
    if isinstance(listed := schema.get("enum"), list) and listed:
        return "|".join(map(str, listed))
    kind = schema.get("type", "any")
    if kind == "array":
        items = schema.get("items")
        return f"[{_type(items) or 'string'}]" if isinstance(items, Mapping) else "[]"
    if isinstance(schema.get("properties"), Mapping):
        return f"{{{_fields(schema)}}}"
    return _SHORT.get(kind, kind) if isinstance(kind, str) else json.dumps(kind)


def description(functions: Sequence[Function]) -> str:
    """Tools as RLLA's prompts list them."""
    return "\n".join(
        f"{number}. Name: {own['name']}\nDescription: {own.get('description', '')}\n"
        f"Parameters: {json.dumps(own['parameters'], ensure_ascii=False)}"
        for number, own in enumerate(functions, start=1)
    )


def unknown_types(functions: Sequence[Function]) -> list[str]:
    """Types that are neither JSON Schema's nor BFCL's, at any depth of the tools' parameters."""
    found: list[str] = []
    waiting: list[Any] = [own["parameters"] for own in functions]
    while waiting:
        schema = waiting.pop()
        kinds = schema.get("type", "any")
        found += map(str, kinds if isinstance(kinds, list) else [kinds])
        waiting += _schemas_in(schema)
    return sorted({*found} - _TYPES)


# ------------------------------------------------------------------ files


class Item(NamedTuple):
    """One row of a file, and where it stands."""

    place: str  # "train.jsonl, line 7"
    row: Mapping[str, Any]

    def error(self, problem: str) -> MissingDataError:
        return MissingDataError(
            f"{self.place}: {problem}. Mend or remove it, or change task.layout if the file is of another"
        )

    def text(self, key: str, *, needed: bool = True) -> str:
        """The text under `key`."""
        value = self.row.get(key, None if needed else "")
        if not isinstance(value, str) or (needed and not value.strip()):
            raise self.error(f"expected a text under {key!r}, found {self._found(value)}")
        return value

    def list(self, key: str) -> list[Any]:
        """The list under `key`."""
        value = self.row.get(key)
        if not isinstance(value, list):
            raise self.error(f"expected a list under {key!r}, found {self._found(value)}")
        return value

    def _found(self, value: Any) -> str:
        """The value, and where there is none what there is instead."""
        return _shown(value) if value is not None else f"nothing among {', '.join(map(str, self.row))}"


def read_items(source: str, folder: Path) -> list[Item]:
    """The rows of a file in a folder, or of a data set of the hub (`tasks.sources`).

    Raises:
        MissingDataError: it is missing, unreadable or empty, or something in it is no JSON object.
    """
    try:
        find_source(source, str(folder))
    except MissingDataError as error:
        raise MissingDataError(
            f"{error}. Set task.data to the folder that holds it, or change its name in task.train, "
            "task.evaluation, task.tools or task.answers"
        ) from error
    rows = list(read_rows(source, str(folder)))
    where = source if names_hub(source) else folder / source
    if not rows:
        raise MissingDataError(f"{where} has no rows")
    if broken := [place for place, row in rows if row is None]:
        raise MissingDataError(f"{where}, {broken[0]}: expected a JSON object in UTF-8, found something else")
    return [Item(f"{where}, {place}", row) for place, row in rows if row is not None]


def _shown(value: Any) -> str:
    return "nothing" if value is None else f"{value!r:.80}"
