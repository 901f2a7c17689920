"""Tool-calling data as people publish it: three layouts, what is wrong with a row, how tools are shown."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from creditlib.types import MissingDataError
from tasks.toolcall_data import (
    as_lines,
    description,
    read_bfcl,
    read_items,
    read_plain,
    read_rlla,
    signature,
    unknown_types,
)

WEATHER = {
    "name": "get_weather",
    "parameters": {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer", "default": 3},
            "unit": {"type": "string", "enum": ["c", "f"]},
        },
        "required": ["city"],
    },
}
CALL = {"name": "get_weather", "parameters": {"city": "oslo"}}
LINE = '{"name": "get_weather", "parameters": {"city": "oslo"}}'
GOLD = f"<think> so </think>\n<tool_call>\n{LINE}\n</tool_call>"


def lines(path: Path, *rows: Any) -> Path:
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows))
    return path


def nested(deep: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(deep):
        schema = {"properties": {"x": schema}}
    return schema


def weather(parameters: dict[str, Any]) -> dict[str, Any]:
    calls = [{"name": "get_weather", "parameters": parameters}]
    return {"tools": ["get_weather"], "question": "rain?", "calls": calls}


# ------------------------------------------------------------------ plain


def plain(folder: Path, *rows: Any, tools: Any = (WEATHER,)) -> list[Any]:
    lines(folder / "train.jsonl", *rows)
    lines(folder / "tools.jsonl", *tools)
    return read_plain("train.jsonl", folder, "tools.jsonl")


def test_a_plain_row(tmp_path: Path) -> None:
    (row,) = plain(
        tmp_path, {"tools": ["get_weather"], "question": "rain?", "calls": [CALL, CALL], "kind": "parallel"}
    )
    assert row.messages == ({"role": "user", "content": "rain?"},)
    assert row.functions == (WEATHER,) and row.kind == "parallel"
    assert row.calls == f"{LINE}\n{LINE}" and row.gold is None and row.answers == ()
    (nothing,) = plain(tmp_path, {"tools": [], "question": "rain?", "calls": []})
    assert nothing.calls == "" and nothing.functions == ()


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"question": "?", "calls": []}, r"line 2: expected a list under 'tools', found nothing"),
        (
            {"tools": ["a"], "question": "?", "calls": []},
            r"names of tools in tools.jsonl under 'tools', found 'a'",
        ),
        ({"tools": [], "question": " ", "calls": []}, r"line 2: expected a text under 'question', found ' '"),
        (
            {"tools": [WEATHER], "question": "?", "calls": []},
            r"names of tools .* found {'name': 'get_weather'",
        ),
        ({"tools": [], "question": "?"}, r"a list under 'calls', found nothing among tools, question"),
        (
            {"tools": [], "question": "?", "calls": [CALL]},
            r"under 'calls', 'get_weather' is none of the row's tools",
        ),
        (
            weather({"town": "x"}),
            r"get_weather has no parameter 'town': its schema's properties are city, days, unit\.",
        ),
        (
            weather({}),
            r"under 'calls', the call of get_weather lacks 'city'",
        ),
        ({"tools": [], "question": "?", "calls": [{"name": "a"}]}, r"calls of a name and parameters"),
        ({"tools": [], "question": "?", "calls": ["a()"]}, r"calls of a name and parameters under 'calls'"),
        (weather({"city": math.nan}), r"has a value that no call can have"),
        ("[1]", r"train.jsonl, line 2: expected a JSON object in UTF-8"),
        ('{"tools": [', r"train.jsonl, line 2: expected a JSON object in UTF-8"),
        ("[" * 100_000, r"line 2: expected a JSON object in UTF-8"),
    ],
)
def test_a_plain_row_that_is_wrong(tmp_path: Path, row: Any, problem: str) -> None:
    good = {"tools": ["get_weather"], "question": "rain?", "calls": [CALL]}
    with pytest.raises(MissingDataError, match=problem):
        plain(tmp_path, good, row)


@pytest.mark.parametrize(
    ("tool", "problem"),
    [
        ({"parameters": {}}, r"tools.jsonl, line 1: expected a tool with a name, found {'parameters'"),
        (
            {"name": "a", "parameters": []},
            r"the schema of an object under 'parameters' of tool a, at most 50 .*, found \[\]",
        ),
        ({"name": "a", "parameters": {"properties": {"x": "int"}}}, r"the schema of an object .* of tool a"),
        (
            {"name": "a", "parameters": {"properties": {}, "required": "city"}},
            r"a list of names under 'required' of tool a, found 'city'",
        ),
        ({"name": "a", "parameters": {"properties": [1]}}, r"the schema of an object .* of tool a"),
        (
            {"name": "a", "parameters": {"properties": {"x": {"properties": {"y": 1}}}}},
            r"the schema of an object .* of tool a",
        ),
        ({"name": "a", "parameters": nested(60)}, r"the schema of an object .* of tool a, at most 50 levels"),
    ],
)
def test_a_tool_that_is_wrong(tmp_path: Path, tool: Any, problem: str) -> None:
    with pytest.raises(MissingDataError, match=problem):
        plain(tmp_path, {"tools": [], "question": "?", "calls": []}, tools=[tool])


@pytest.mark.parametrize("arguments", [CALL["parameters"], json.dumps(CALL["parameters"])])
def test_tools_and_calls_in_the_form_of_openai(tmp_path: Path, arguments: Any) -> None:
    tool = {"type": "function", "function": WEATHER}
    made = {"name": "get_weather", "arguments": arguments}
    for call in (made, {"type": "function", "id": "1", "function": made}):
        row = {"tools": ["get_weather"], "question": "rain?", "calls": [call]}
        assert plain(tmp_path, row, tools=[tool]) == plain(tmp_path, {**row, "calls": [CALL]})


@pytest.mark.parametrize("arguments", ["city: oslo", "[1]", "[" * 100_000, 5])
def test_arguments_that_are_no_object(tmp_path: Path, arguments: Any) -> None:
    row = {**weather({}), "calls": [{"name": "get_weather", "arguments": arguments}]}
    with pytest.raises(MissingDataError, match="expected calls of a name and parameters under 'calls'"):
        plain(tmp_path, row)


def test_a_file_that_is_there_is_not_looked_for_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "tools.json").write_text(json.dumps(WEATHER, indent=1))
    with pytest.raises(
        MissingDataError, match=r"expected an object a line, or in a .json file a list of objects$"
    ):
        read_plain("train.jsonl", tmp_path, "tools.json")
    with pytest.raises(MissingDataError, match=r"none.json is not there.*Set task.data"):
        read_plain("train.jsonl", tmp_path, "none.json")


def test_a_tool_of_further_parameters_takes_them(tmp_path: Path) -> None:
    free = {"name": "note", "parameters": {"type": "object", "additionalProperties": True}}
    row = {"tools": ["note"], "question": "?", "calls": [{"name": "note", "parameters": {"x": 1}}]}
    assert plain(tmp_path, row, tools=[free])
    with pytest.raises(MissingDataError, match="line 2: expected each tool once, found another 'note'"):
        plain(tmp_path, row, tools=[free, free])


# ------------------------------------------------------------------ RLLA

REINFORCE = {
    "prompt": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}],
    "reward_model": {"ground_truth": GOLD, "style": "rule"},
}
IMITATE = {"instruction": "s", "input": "u", "output": GOLD}


def test_rows_of_rlla_in_each_form_and_file(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist([REINFORCE]), tmp_path / "a.parquet")
    (tmp_path / "c.json").write_text(json.dumps([IMITATE], indent=1))
    lines(tmp_path / "b.jsonl", REINFORCE)
    (tmp_path / "d.json.gz").write_bytes(gzip.compress(json.dumps(IMITATE).encode()))
    for file in ("a.parquet", "b.jsonl", "c.json", "d.json.gz"):
        (row,) = read_rlla(file, tmp_path)
        assert [message["content"] for message in row.messages] == ["s", "u"]
        assert [message["role"] for message in row.messages] == ["system", "user"]
        assert row.gold == GOLD and row.calls == LINE and row.functions == ()


def test_rows_of_rlla_from_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    held: dict[str, list[Any]] = {"train": [{**REINFORCE, "instruction": None}, {**IMITATE, "prompt": None}]}
    held["odd"], held["none"] = [IMITATE, {"prompt": None}], []
    monkeypatch.setattr(datasets, "load_dataset", lambda name, split: held[split] if name == "o/n" else None)
    assert [row.gold for row in read_rlla("o/n:train", tmp_path)] == [GOLD, GOLD]
    with pytest.raises(MissingDataError, match=r"^o/n:odd, row 2: expected prompt and reward_model"):
        read_rlla("o/n:odd", tmp_path)
    with pytest.raises(MissingDataError, match=r"^o/n:none has no rows"):
        read_rlla("o/n:none", tmp_path)


def test_a_ground_truth_without_calls_says_nothing_of_calls(tmp_path: Path) -> None:
    lines(tmp_path / "a.jsonl", {**IMITATE, "output": "<response> hi </response>"})
    (row,) = read_rlla("a.jsonl", tmp_path)
    assert row.calls is None


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (
            {"question": "?"},
            r"expected prompt and reward_model, or instruction, input and output; found question",
        ),
        ({}, "found nothing"),
        ({**REINFORCE, "prompt": "u"}, r"expected a list of messages, found 'u'"),
        ({**REINFORCE, "prompt": []}, r"expected a list of messages, found \[\]"),
        ({**REINFORCE, "prompt": [{"role": "user"}]}, r"messages of a role and a content, found \{'role'"),
        (
            {**REINFORCE, "prompt": [*REINFORCE["prompt"], {"role": "assistant", "content": GOLD}]},
            r"expected the user or a tool to speak last, found \{'role': 'assistant'",
        ),
        ({"prompt": REINFORCE["prompt"]}, r"expected an object under 'reward_model', found nothing"),
        ({**REINFORCE, "reward_model": {}}, r"expected a text under 'ground_truth', found nothing"),
        ({"instruction": "s", "input": "u"}, r"expected a text under 'output', found nothing"),
        ({"instruction": "s", "output": GOLD}, r"expected a text under 'input', found nothing"),
    ],
)
def test_a_row_of_rlla_that_is_wrong(tmp_path: Path, row: Any, problem: str) -> None:
    with pytest.raises(MissingDataError, match=rf"a.jsonl, line 1: .*{problem}"):
        lines(tmp_path / "a.jsonl", row)
        read_rlla("a.jsonl", tmp_path)


# ------------------------------------------------------------------ BFCL

QUESTION = {"id": "multiple_3-1-2", "question": [[{"role": "user", "content": "u"}]], "function": [WEATHER]}
ANSWER = {
    "id": "multiple_3-1-2",
    "ground_truth": [{"get_weather": {"city": ["oslo", "Oslo"], "days": [3, ""], "unit": ["", "c"]}}],
}


def bfcl(folder: Path, *rows: Any, answers: Any = (ANSWER,), name: str = "BFCL_multiple.json") -> list[Any]:
    possible = folder / "possible_answer"
    possible.mkdir(exist_ok=True)
    if answers:
        lines(possible / name, *answers)
    lines(folder / name, *rows)
    return read_bfcl(name, folder, "possible_answer")


def test_a_row_of_bfcl(tmp_path: Path) -> None:
    (row,) = bfcl(tmp_path, QUESTION)
    assert row.messages == ({"role": "user", "content": "u"},) and row.functions == (WEATHER,)
    assert row.answers == tuple(ANSWER["ground_truth"]) and row.kind == "multiple"
    assert row.calls == LINE, "what may be left out is left out"


def test_answers_are_found_by_id(tmp_path: Path) -> None:
    other = {"id": "b", "ground_truth": [{"get_weather": {"city": ["rome"], "days": [""], "unit": [""]}}]}
    one, two = bfcl(tmp_path, {**QUESTION, "id": "b"}, QUESTION, answers=(ANSWER, other))
    assert "rome" in one.calls and "oslo" in two.calls


def test_no_call_is_wanted_where_the_file_says_so_and_relevance_cannot_be_judged(tmp_path: Path) -> None:
    (row,) = bfcl(tmp_path, QUESTION, answers=(), name="BFCL_irrelevance.json")
    assert row.calls == "" and row.answers == ()
    with pytest.raises(MissingDataError, match=r"relevance rows have no possible answers.*task\.evaluation"):
        bfcl(tmp_path, QUESTION, answers=(), name="BFCL_live_relevance.json")


def test_a_tool_without_parameters_takes_none(tmp_path: Path) -> None:
    ping = {"name": "ping"}
    answer = {"id": "multiple_3-1-2", "ground_truth": [{"ping": {}}]}
    (row,) = bfcl(tmp_path, {**QUESTION, "function": [ping]}, answers=(answer,))
    assert row.calls == '{"name": "ping", "parameters": {}}'
    assert signature(row.functions[0]) == "ping()"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"id": "x"}, r"no possible answer for x in .*possible_answer/BFCL_multiple\.json"),
        ({"question": "u"}, r"expected a list under 'question', found 'u'"),
        ({"question": [[], []]}, r"expected one turn under 'question', found 2; rows of several turns"),
        ({"question": [[]]}, r"expected a list of messages, found \[\]"),
        ({"question": [{"role": "user", "content": "u"}]}, r"expected a list of messages, found \{'role'"),
        ({"function": None}, r"expected a list under 'function', found nothing"),
        ({"function": [5]}, r"expected a tool with a name, found 5"),
        (
            {"function": [{"name": "a", "parameters": 5}]},
            r"the schema of an object under 'parameters' of tool a",
        ),
    ],
)
def test_a_row_of_bfcl_that_is_wrong(tmp_path: Path, change: Any, problem: str) -> None:
    with pytest.raises(MissingDataError, match=rf"BFCL_multiple\.json, line 1: .*{problem}"):
        bfcl(tmp_path, {**QUESTION, **change})


@pytest.mark.parametrize("answer", [{"f": {"a": 5}}, {"f": [1]}, "f(a=5)"])
def test_answers_that_are_wrong(tmp_path: Path, answer: Any) -> None:
    with pytest.raises(
        MissingDataError, match=r"possible_answer/.*line 1: expected \{function: \{parameter: \[val"
    ):
        bfcl(tmp_path, QUESTION, answers=({"id": "multiple_3-1-2", "ground_truth": [answer]},))


def test_an_empty_list_of_answers_is_no_wish_for_no_call(tmp_path: Path) -> None:
    with pytest.raises(
        MissingDataError, match=r"line 1: multiple_3-1-2 has an empty list under 'ground_truth'"
    ):
        bfcl(tmp_path, QUESTION, answers=({**ANSWER, "ground_truth": []},))


@pytest.mark.parametrize("answer", [{"get_time": {}}, {"get_weather": {}, "get_time": {}}, {}])
def test_calls_are_unknown_where_the_answers_cannot_be_read(tmp_path: Path, answer: Any) -> None:
    (row,) = bfcl(tmp_path, QUESTION, answers=({**ANSWER, "ground_truth": [answer]},))
    assert row.calls is None


def test_calls_are_unknown_where_the_tools_cannot_be_read(tmp_path: Path) -> None:
    odd = {**WEATHER, "parameters": {"properties": {}, "required": True}}
    (row,) = bfcl(tmp_path, {**QUESTION, "function": [odd]}, answers=(), name="BFCL_irrelevance.json")
    assert row.calls is None


# ------------------------------------------------------------------ files


def test_blank_lines_count_and_are_no_rows(tmp_path: Path) -> None:
    items = read_items(lines(tmp_path / "a.jsonl", "", {"a": 1}, "  ", {"a": 2}, "").name, tmp_path)
    assert [(item.place.rpartition(", ")[2], item.row["a"]) for item in items] == [
        ("line 2", 1),
        ("line 4", 2),
    ]


def test_a_list_and_an_object_a_line_may_both_be_called_json(tmp_path: Path) -> None:
    for name, content in (
        ("a.json", b'\xef\xbb\xbf\n [{"a": 1}]'),
        ("b.json", b'\n{"a": 1}\n'),
        ("c.json.gz", b'[{"a": 1}]'),
    ):
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        assert [item.row for item in read_items(name, tmp_path)] == [{"a": 1}]


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.jsonl", b"", r"a\.jsonl has no rows"),
        ("a.json", b"[]", r"a\.json has no rows"),
        ("a.json", b"[{}, 5]", r"a\.json, row 2: expected a JSON object in UTF-8"),
        ("a.json", b"[{}", r"a\.json cannot be read: Expecting"),
        ("a.jsonl", b'{"a": "\xff"}', r"a\.jsonl, line 1: expected a JSON object in UTF-8"),
        ("a.csv", b"a,b", r"a\.csv is of no form that is read: expected \.jsonl, \.json, "),
        ("a.parquet", b"PAR1", r"a\.parquet cannot be read: "),
    ],
)
def test_files_that_are_none(tmp_path: Path, name: str, content: bytes, problem: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(MissingDataError, match=problem):
        read_items(name, tmp_path)


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
def test_a_file_that_is_missing(tmp_path: Path, name: str) -> None:
    with pytest.raises(MissingDataError, match=rf"{name} is not there.*Set task\.data"):
        read_items(name, tmp_path)


# ------------------------------------------------------------------ how tools are shown


def shown(schema: dict[str, Any], required: Any, **more: Any) -> str:
    return signature(
        {
            "name": "f",
            "parameters": {"type": "dict", "properties": {"x": schema}, "required": required},
            **more,
        }
    )


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "string"}, "x"),
        ({"type": "integer"}, "x int"),
        ({"type": "number"}, "x float"),
        ({"type": "float"}, "x float"),
        ({"type": "boolean", "default": False}, "x bool=false"),
        ({"type": "string", "default": "red"}, "x=red"),
        ({"type": "string", "enum": ["c", "f"], "default": "c"}, "x c|f=c"),
        ({"type": "integer", "enum": [1, 2]}, "x 1|2"),
        ({"type": "array", "items": {"type": "integer"}}, "x [int]"),
        ({"type": "array", "items": {"type": "string"}, "default": ["a"]}, 'x [string]=["a"]'),
        ({"type": "array"}, "x []"),
        ({"type": "array", "items": {"type": "array", "items": {"type": "number"}}}, "x [[float]]"),
        ({"type": "dict"}, "x dict"),
        ({"type": "dict", "properties": None}, "x dict"),
        ({"type": "HashMap"}, "x HashMap"),
        ({"type": ["string", "null"]}, 'x ["string", "null"]'),
        ({}, "x any"),
        (
            {
                "type": "object",
                "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
                "required": ["b"],
            },
            "x {a? int, b}",
        ),
    ],
)
def test_a_parameter_in_short(schema: dict[str, Any], text: str) -> None:
    assert shown(schema, ["x"]) == f"f({text})"


def test_what_may_be_left_out_and_a_description() -> None:
    assert shown({"type": "integer"}, []) == "f(x? int)"
    assert shown({"type": "integer"}, None) == "f(x? int)"
    assert shown({"type": "integer"}, True) == "f(x? int)"
    assert shown({"type": "integer"}, ["x"], description="does it") == "f(x int): does it"
    assert signature(WEATHER) == "get_weather(city, days int=3, unit? c|f)"


def test_tools_as_rlla_lists_them() -> None:
    assert description([{**WEATHER, "description": "the weather"}, {"name": "ping", "parameters": {}}]) == (
        "1. Name: get_weather\nDescription: the weather\n"
        f"Parameters: {json.dumps(WEATHER['parameters'])}\n"
        "2. Name: ping\nDescription: \nParameters: {}"
    )


def test_unknown_types_at_any_depth() -> None:
    def tool(schema: Any) -> dict[str, Any]:
        return {"name": "f", "parameters": {"type": "dict", "properties": {"x": schema}}}

    inner = {"type": "array", "items": {"type": "object", "properties": {"y": {"type": "HashMap"}}}}
    assert unknown_types([WEATHER]) == []
    assert unknown_types([tool({"type": "array", "items": {"type": "float"}}), tool({})]) == []
    assert unknown_types([tool({"type": "strng"}), tool(inner), tool(inner)]) == ["HashMap", "strng"]
    assert unknown_types([tool({"type": ["string", "nul"]})]) == ["nul"]
    assert unknown_types([tool({"type": {"a": 1}})]) == ["{'a': 1}"]


def test_calls_are_a_json_a_line() -> None:
    assert as_lines([CALL, {"name": "é", "parameters": {}}]) == LINE + '\n{"name": "é", "parameters": {}}'
