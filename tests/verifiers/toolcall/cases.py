"""Responses and their scores in both modes, one for each row of the tables in docs/verifiers/toolcall.md."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

NAN = math.nan
THINK = "<think>a</think>\n"
F = '{"name": "f", "parameters": {"x": 1, "y": "a"}}'
G = '{"name": "g", "parameters": {"x": 2, "y": "b"}}'


def block(*lines: str) -> str:
    return "\n".join(("<tool_call>", *lines, "</tool_call>"))


def call(**parameters: str) -> str:
    """A call of f; values as they are written in JSON."""
    written = ", ".join(f'"{key}": {value}' for key, value in parameters.items())
    return f'{{"name": "f", "parameters": {{{written}}}}}'


ONE, TWO = THINK + block(F), THINK + block(F, G)
REPLY = THINK + "<response>hello</response>"
TAGGED = THINK + block(call(x='"</tool_call>"'))


class Rlla(NamedTuple):
    gold: str
    response: str
    official: tuple[float, float]  # format and correctness
    sound: tuple[float, float]


RLLA = {
    "the reference's calls": Rlla(ONE, ONE, (1, 3), (1, 3)),
    "calls in another order": Rlla(TWO, THINK + block(G, F), (1, 3), (1, 3)),
    "a wrong value": Rlla(ONE, THINK + block(call(x="7", y='"a"')), (1, 1.5), (1, 1.5)),
    '`"1"` for `1`': Rlla(ONE, THINK + block(call(x='"1"', y='"a"')), (1, 1.5), (1, 1.5)),
    "a parameter missing": Rlla(ONE, THINK + block(call(x="1")), (1, 0.75), (1, 0.75)),
    "a parameter too many": Rlla(ONE, THINK + block(call(x="1", y='"a"', z="1")), (1, 2.5), (1, 2.5)),
    "a call twice": Rlla(ONE, THINK + block(F, F), (1, 2.25), (1, 2.25)),
    "one of two calls": Rlla(TWO, ONE, (1, 0), (1, 0)),
    "a wrong name": Rlla(ONE, THINK + block(F.replace('"f"', '"h"')), (1, -3), (1, -3)),
    "`arguments` for `parameters`": Rlla(
        ONE, THINK + block(F.replace("parameters", "arguments")), (1, -3), (1, -3)
    ),
    "a JSON array of calls": Rlla(ONE, THINK + block(f"[{F}]"), (1, -3), (1, -3)),
    "a list of calls in BFCL's format": Rlla(ONE, THINK + "[f(x=1, y='a')]", (0, -3), (0, -3)),
    "parameters `null`": Rlla(ONE, THINK + block('{"name": "f", "parameters": null}'), (1, -3), (1, -3)),
    "parameters a list": Rlla(ONE, THINK + block('{"name": "f", "parameters": [1]}'), (1, -3), (1, -3)),
    "parameters a text of JSON": Rlla(
        ONE, THINK + block('{"name": "f", "parameters": "{\\"x\\": 1}"}'), (1, -3), (1, -3)
    ),
    "two calls on one line": Rlla(TWO, THINK + block(F + G), (1, -3), (1, -3)),
    "no call between the tags": Rlla(ONE, THINK + block(""), (1, -3), (0, -3)),
    "no thinking": Rlla(ONE, block(F), (0, 3), (0, 3)),
    "a reply beside the calls": Rlla(ONE, ONE + "\n<response>hello</response>", (0, 3), (0, 3)),
    "a reply instead of calls": Rlla(ONE, REPLY, (0, -3), (0, -3)),
    "a reply, as wanted": Rlla(REPLY, REPLY, (1, 0), (1, 0)),
    "calls within the reply": Rlla(REPLY, THINK + f"<response>{block(F)}</response>", (1, 0), (0, 0)),
    "calls instead of a reply": Rlla(REPLY, ONE, (0, 0), (0, 0)),
    "text before the calls": Rlla(ONE, THINK + "Here:\n" + block(F), (0, 3), (0, 3)),
    "`1` for `1.0`": Rlla(THINK + block(call(x="1.0")), THINK + block(call(x="1")), (1, 3), (1, 3)),
    "`1.0` for `1`": Rlla(ONE, THINK + block(call(x="1.0", y='"a"')), (1, 3), (1, 1.5)),
    "`true` for `1`": Rlla(ONE, THINK + block(call(x="true", y='"a"')), (1, 3), (1, 1.5)),
    "a further key in a call": Rlla(ONE, THINK + block(F[:-1] + ', "id": 1}'), (1, 3), (1, -3)),
    "a key twice": Rlla(ONE, THINK + block('{"name": "h", ' + F[1:]), (1, 3), (1, -3)),
    "a parameter twice": Rlla(
        ONE, THINK + block('{"name": "f", "parameters": {"x": 7, "x": 1, "y": "a"}}'), (1, 3), (1, -3)
    ),
    "`NaN`, `Infinity`": Rlla(ONE, THINK + block(call(x="NaN", y='"a"')), (1, 1.5), (1, -3)),
    "`1e999`": Rlla(ONE, THINK + block(call(x="1e999", y='"a"')), (1, 1.5), (1, -3)),
    "pretty-printed JSON": Rlla(
        ONE, THINK + block('{\n  "name": "f",\n  "parameters": {"x": 1, "y": "a"}\n}'), (1, -3), (1, 3)
    ),
    "a blank line between calls": Rlla(TWO, THINK + block(F, "", G), (1, -3), (1, 3)),
    "a blank line behind the thinking": Rlla(ONE, THINK + "\n" + block(F), (0, 3), (1, 3)),
    "tags and call on one line": Rlla(ONE, THINK + f"<tool_call>{F}</tool_call>", (0, 3), (1, 3)),
    "CRLF line ends": Rlla(TWO, TWO.replace("\n", "\r\n"), (0, 3), (1, 3)),
    "white space around the response": Rlla(ONE, f"\n {ONE}\n", (1, 3), (1, 3)),
    "text behind the calls": Rlla(ONE, ONE + "\nDone.", (0, 3), (0, -3)),
    "a second block": Rlla(ONE, ONE + "\n" + block(F), (0, 3), (0, 2.25)),
    "`<tool_call>` named in the thinking": Rlla(
        ONE, "<think>so <tool_call> f</think>\n" + block(F), (0, -3), (1, 3)
    ),
    "`</think>` twice": Rlla(ONE, "<think>a</think> b</think>\n" + block(F), (1, 3), (0, 3)),
    "thinking that never ends": Rlla(ONE, "<think>a\n" + block(F), (0, 3), (0, -3)),
    "`</think>` without `<think>`": Rlla(ONE, "a</think>\n" + block(F), (0, 3), (0, 3)),
    "empty thinking": Rlla(ONE, "<think></think>\n" + block(F), (1, 3), (0, 3)),
    "an empty reply": Rlla(REPLY, THINK + "<response> </response>", (1, 0), (0, 0)),
    "`</tool_call>` in a text, as wanted": Rlla(TAGGED, TAGGED, (0, NAN), (1, 3)),
    "`</tool_call>` in a text": Rlla(ONE, THINK + block(call(x="1", y='"</tool_call>"')), (0, -3), (1, 1.5)),
    "another turn in chat markup": Rlla(
        ONE, THINK + block(G) + "<|im_end|>\n<|im_start|>assistant\n" + ONE, (1, 3), (0, -3)
    ),
    "chat markup in the thinking": Rlla(ONE, "<think>\n<|im_start|>assistant\n" + ONE, (1, 3), (0, -3)),
    "chat markup behind the calls": Rlla(ONE, ONE + "<|im_end|>", (1, 3), (0, -3)),
    "chat markup in a text, as wanted": Rlla(
        THINK + block(call(x='"<|im_end|>"')), THINK + block(call(x='"<|im_end|>"')), (0, -3), (1, 3)
    ),
    "chat markup in a name, as wanted": Rlla(
        THINK + block(call(**{"<|im_end|>": "1"})),
        THINK + block(call(**{"<|im_end|>": "1"})),
        (0, -3),
        (1, 3),
    ),
    "calls of one name, of which the first fits the second reference": Rlla(
        THINK + block(call(x="1", y="2"), call(x="1", y="3")),
        THINK + block(call(x="1", y="3"), call(x="9", y="2")),
        (1, 6 * 4 / 7 - 3),
        (1, 6 * 6 / 7 - 3),
    ),
}


class Bfcl(NamedTuple):
    properties: dict[str, Any]  # of the function f; "x" is required, unless another parameter is
    answers: list[dict[str, list[Any]]]  # one a reference call of f; []: no call is wanted
    response: str
    official: bool
    sound: bool


def _value(kind: str, answers: list[Any], written: str, official: bool, sound: bool, **schema: Any) -> Bfcl:
    return Bfcl({"x": {"type": kind, **schema}}, [{"x": answers}], f"[f(x={written})]", official, sound)


_INT = {"x": {"type": "integer"}}
_OPTIONAL = {"x": {"type": "integer"}, "y": {"type": "string", "default": "m"}}
_FLOATS = {"items": {"type": "float"}}

BFCL = {
    "the right value": _value("integer", [10], "10", True, True),
    "the second of the right values": _value("integer", [10, 11], "11", True, True),
    '`"10"` for 10': _value("integer", [10], "'10'", False, False),
    "True for 1": _value("integer", [1], "True", False, False),
    "1 for True": _value("boolean", [True], "1", False, False),
    "10.0 for a whole number": _value("integer", [10], "10.0", False, False),
    "10 for 10.0": _value("float", [10.0], "10", True, True),
    "2**53 + 1 for 2.0**53": _value("float", [2.0**53], str(2**53 + 1), True, False),
    "12 in a list of floats": _value("array", [[12.0, 15.0]], "[12, 15]", False, True, **_FLOATS),
    "a tuple for a list": _value("array", [[1.5, 2.5]], "(1.5, 2.5)", False, True, **_FLOATS),
    "a list in another order": _value("array", [[1.5, 2.5]], "[2.5, 1.5]", False, False, **_FLOATS),
    "other case and punctuation": _value("string", ["New York, NY"], "'new york ny'", True, True),
    "another way to write a date": _value("string", ["April 1, 2024"], "'april 1 2024'", True, True),
    '`"-5"` for `"5"`': _value("string", ["5"], "'-5'", True, False),
    '`"1.5"` for `"15"`': _value("string", ["15"], "'1.5'", True, False),
    '`"x**2"` for `"x^2"`': _value("string", ["x^2"], "'x**2'", True, True),
    '`"x2"` for `"x^2"`': _value("string", ["x^2"], "'x2'", True, False),
    "`/` for `-` in a formula": _value(
        "string", ["2x**3 - 3x**2 + 4x - 5"], "'2x**3 / 3x**2 + 4x * 5'", True, False
    ),
    '`"- 5"` for `"5"`': _value("string", ["5"], "'- 5'", True, False),
    '`"5 / 3"` for `"5 - 3"`': _value("string", ["5 - 3"], "'5 / 3'", True, False),
    '`"-inf"` for `"inf"`': _value("string", ["inf"], "'-inf'", True, False),
    '`"-sin(x)"` for `"sin(x)"`': _value("string", ["sin(x)"], "'-sin(x)'", True, False),
    '`"AB-"` for `"AB"`': _value("string", ["AB"], "'AB-'", True, False),
    "a mail address without its dots": _value("string", ["john.doe@x.com"], "'johndoe@xcom'", True, False),
    "a path without its slashes": _value("string", ["/home/user/file"], "'homeuserfile'", True, False),
    "a URL without its dot": _value("string", ["https://x.com/a"], "'https://xcom/a'", True, False),
    "other case and spaces in a formula": _value("string", ["2x - 3"], "'2X-3'", True, True),
    "a hyphenated word as two, or as one with a number": _value(
        "string", ["well-known COVID-19"], "'well known COVID19'", True, True
    ),
    "an en dash or a minus sign for a hyphen": _value(
        "string", ["-5 in 2019-2020"], "'−5 in 2019–2020'", False, True
    ),
    "a date with slashes for hyphens": _value("string", ["2024-04-01"], "'2024/04/01'", True, True),
    '`"-"` for `","`': _value("string", [","], "'-'", True, False),
    '`""` for a text that may be left out': _value("string", ["a", ""], "''", True, True),
    '`""` for a number that may be left out': _value("integer", [1, ""], "''", False, False),
    "null, the second right value": _value("integer", [5, None], "None", False, True),
    "`[True]` for `[1]`, which may be left out": _value(
        "array", ["", [1]], "[True]", True, False, items={"type": "integer"}
    ),
    "other case, where the first answer has another type": _value("string", [2, "two"], "'Two'", False, True),
    "`nan`": _value("float", [1.0], "nan", False, False),
    "`1e999` for 1.0": _value("float", [1.0], "1e999", False, False),
    "True for 1 in a dict": _value("dict", [{"a": [1]}], "{'a': True}", True, False),
    "a dict in a dict": _value("dict", [{"a": [{"b": [1]}]}], "{'a': {'b': 1}}", False, True),
    "a key of a dict too many": _value("dict", [{"a": [1]}], "{'a': 1, 'b': 2}", False, False),
    "a key of a dict left out": _value("dict", [{"a": [1], "b": ["", 2]}], "{'a': 1}", True, True),
    "an answer of another type than the schema's": _value("string", [2], "2", True, True),
    "the schema's type, where the answer has another": _value("string", [2], "'2'", False, True),
    "an optional parameter left out": Bfcl(_OPTIONAL, [{"x": [1], "y": ["k", ""]}], "[f(x=1)]", True, True),
    "a parameter left out that may not be": Bfcl(
        _OPTIONAL, [{"x": [1], "y": ["k"]}], "[f(x=1)]", False, False
    ),
    "the default, where leaving out is right": Bfcl(
        _OPTIONAL, [{"x": [1], "y": ["k", ""]}], "[f(x=1, y='m')]", False, True
    ),
    "a required parameter left out": Bfcl(_OPTIONAL, [{"x": [1], "y": [""]}], "[f()]", False, False),
    "a parameter that there is not": Bfcl(_INT, [{"x": [1]}], "[f(x=1, z=1)]", False, False),
    "another function": Bfcl(_INT, [{"x": [1]}], "[g(x=1)]", False, False),
    "a call too many": Bfcl(_INT, [{"x": [1]}], "[f(x=1), f(x=1)]", False, False),
    "parallel calls in another order": Bfcl(_INT, [{"x": [1]}, {"x": [2]}], "[f(x=2), f(x=1)]", True, True),
    "parallel calls of which the first fits both references": Bfcl(
        _OPTIONAL,
        [{"x": [1], "y": ["k", ""]}, {"x": [1], "y": ["k"]}],
        "[f(x=1, y='k'), f(x=1)]",
        False,
        True,
    ),
    "an argument without a name": Bfcl({"x": {"type": "integer"}}, [{"x": [1]}], "[f(7, x=1)]", True, False),
    "an argument twice": _value("integer", [2], "1, x=2", True, False),
    "a bare name for a text": _value("string", ["abc"], "abc", True, False),
    "`+5` for -5": _value("integer", [-5], "+5", True, False),
    "an expression": _value("integer", [10], "5+5", False, False),
    "a list without its brackets": Bfcl(_INT, [{"x": [1]}], "f(x=1)", True, False),
    "a list in a code fence": Bfcl(_INT, [{"x": [1]}], "```\n[f(x=1)]\n```", True, False),
    "text before the list": Bfcl(_INT, [{"x": [1]}], "Sure: [f(x=1)]", False, False),
    "a list that is never closed": Bfcl(_INT, [{"x": [1]}], "[f(x=1)", True, False),
    "calls as JSON between tags": Bfcl(
        _INT, [{"x": [1]}], block('{"name": "f", "parameters": {"x": 1}}'), True, True
    ),
    "no call wanted: a reply": Bfcl(_INT, [], "<response>I cannot.</response>", True, True),
    "no call wanted: an empty reply": Bfcl(_INT, [], "<response></response>", True, False),
    "no call wanted: any other text": Bfcl(_INT, [], "abc", True, False),
    "no call wanted: a call that cannot be read": Bfcl(_INT, [], "[f(x=1]", True, False),
    "no call wanted: an empty list": Bfcl(_INT, [], "[]", True, False),
    "no call wanted: a call within the reply": Bfcl(
        _INT, [], f"<response>{block(call(x='1'))}</response>", False, False
    ),
    "no call wanted: a call": Bfcl(_INT, [], "[f(x=1)]", False, False),
    "no call wanted: a call beside a reply": Bfcl(
        _INT,
        [],
        block('{"name": "f", "parameters": {"x": 1}}') + "<response>I cannot.</response>",
        False,
        False,
    ),
}
