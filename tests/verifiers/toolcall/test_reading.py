"""What is read from a response: calls and the places of their pieces, and the reasons for what cannot be."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from creditlib.types import Span
from verifiers.toolcall import calls_in, check, parts
from verifiers.toolcall.bfcl import normal
from verifiers.toolcall.literals import read_list

RESPONSE = (
    "<think> So. </think>\n<tool_call>\n"
    '{"name": "get \\"it\\"", "parameters": {"x": [1, {"y": null}], "z": "a"}}\n'
    '{"parameters": {}, "name": "g"}\n</tool_call>\n<response> Hi all. </response> bye'
)


def texts(response: str, spans: Any) -> list[tuple[str, str]]:
    return [(part, response[start:end]) for start, end, part in spans]


def test_calls_and_their_pieces() -> None:
    first, second = calls_in(RESPONSE)
    assert (first.name, first.arguments) == ('get "it"', {"x": [1, {"y": None}], "z": "a"})
    assert texts(RESPONSE, first.spans) == [
        ("name", 'get \\"it\\"'),
        ("argument", "x"),
        ("value", '[1, {"y": null}]'),
        ("argument", "z"),
        ("value", '"a"'),
    ]
    assert (second.name, second.arguments) == ("g", {})


def test_calls_of_a_list() -> None:
    response = '[f(x = -1.5,y="é"), a.b(z=(1, {"k": None}))]'
    first, second = calls_in(response)
    assert (first.name, first.arguments) == ("f", {"x": -1.5, "y": "é"})
    assert (second.name, second.arguments) == ("a.b", {"z": (1, {"k": None})})
    assert texts(response, first.spans + second.spans) == [
        ("name", "f"),
        ("argument", "x"),
        ("value", "-1.5"),
        ("argument", "y"),
        ("value", '"é"'),
        ("name", "a.b"),
        ("argument", "z"),
        ("value", '(1, {"k": None})'),
    ]


def test_parts() -> None:
    assert texts(RESPONSE, parts(RESPONSE)) == [
        ("tag", "<think>"),
        ("thinking", "So."),
        ("tag", "</think>"),
        ("tag", "<tool_call>"),
        ("other", '{"name": "'),
        ("name", 'get \\"it\\"'),
        ("other", '", "parameters": {"'),
        ("argument", "x"),
        ("other", '":'),
        ("value", '[1, {"y": null}]'),
        ("other", ', "'),
        ("argument", "z"),
        ("other", '":'),
        ("value", '"a"'),
        ("other", '}}\n{"parameters": {}, "name": "'),
        ("name", "g"),
        ("other", '"}'),
        ("tag", "</tool_call>"),
        ("tag", "<response>"),
        ("reply", "Hi all."),
        ("tag", "</response>"),
        ("other", "bye"),
    ]


def test_parts_of_a_call_that_breaks_off() -> None:
    response = '<tool_call>\n{"name": "f", "parameters": {"x": 1, "y": "a'
    assert texts(response, parts(response)) == [
        ("tag", "<tool_call>"),
        ("other", '{"name": "'),
        ("name", "f"),
        ("other", '", "parameters": {"'),
        ("argument", "x"),
        ("other", '":'),
        ("value", "1"),
        ("other", ', "'),
        ("argument", "y"),
        ("other", '": "a'),
    ]


def test_parts_of_stray_tags() -> None:
    assert parts("</tool_call> x") == [Span(0, 12, "tag"), Span(13, 14, "other")]
    assert parts(" \n") == []


def test_spans_of_the_checks() -> None:
    gold = '<tool_call>\n{"name": "f", "parameters": {"x": 1}}\n</tool_call>'
    response = f"<think>a</think>\n{gold}\nDone."
    checks = check(response, gold=gold)
    assert texts(response, checks["format"].spans) == [
        ("tag", "<think>"),
        ("tag", "</think>"),
        ("tag", "<tool_call>"),
        ("tag", "</tool_call>"),
        ("outside", "Done."),
    ]
    own = [("name", "f"), ("argument", "x"), ("value", "1")]
    assert texts(response, checks["correctness"].spans) == own
    behind = f"zzz<|im_start|>assistant\n{response}"  # where the official mode begins to read
    official = check(behind, gold=gold, mode="official")
    assert texts(behind, official["correctness"].spans) == own
    assert ("tag", "<think>") in texts(behind, official["format"].spans)


@pytest.mark.parametrize(
    "call, reason",
    [
        ('{"name": "f"}', "a call without the key 'parameters'"),
        ('{"name": 1, "parameters": {}}', "the name is not a text"),
        ('{"name": "f", "parameters": {"x": 1, "x": 2}}', "the parameter 'x' is given twice"),
        ('{"name": "f", "parameters": {"x": {"a": 1, "a": 2}}}', "no JSON: a key is given twice"),
        ('{"name": "f", "parameters": {"x": -Infinity}}', "no JSON: -Infinity is no number"),
        ('{"name": "f", "parameters": {"x": 1e999}}', "no JSON: 1e999 is too large"),
        ('{"name": "f", "parameters": {"x": ' + "9" * 5000 + "}}", "no JSON: Exceeds the limit"),
        ('{"name": "f", "parameters": {"x": ' + "[" * 65 + "]" * 65 + "}}", "nested more than 64 deep"),
        ('{"name": "f", "parameters": {"x": "a\nb"}}', "no JSON: Invalid control character at"),
        ('{"name": "f", "parameters": {"x": "a\0b"}}', "no JSON: Invalid control character at"),
        ('{"name": "f", "parameters": {x: 1}}', "expected a key in double quotes, found 'x: 1}}"),
        ('{"name": "f", "parameters": {"x" 1}}', "expected ':' behind a key"),
        ('{"name": "f", "parameters": {"x": 1', "expected ',' or '}'"),
        ("f(x=1)", "expected a JSON object, found 'f(x=1)"),
    ],
)
def test_why_a_call_cannot_be_read(call: str, reason: str) -> None:
    gold = '<tool_call>\n{"name": "f", "parameters": {"x": 1}}\n</tool_call>'
    found = check(f"<think>a</think>\n<tool_call>\n{call}\n</tool_call>", gold=gold)["correctness"]
    assert found.score == -3
    assert reason in found.reason
    assert found.info == '{"name": "f", "parameters": {"x": 1}}'


@pytest.mark.parametrize(
    "response, reason",
    [
        ("", "the response is empty"),
        ("x", "there is no <think> at the start"),
        ("<think>a", "<think> is never closed"),
        ("a</think>", "</think> without <think>"),
        ("b<think>a</think>", "<think> is not at the start of the response"),
        ("<think> </think>", "the thinking is empty"),
        ("<think>a</think>", "there is no <tool_call>"),
        ("<think>a</think><tool_call>x", "<tool_call> is never closed"),
        ("<think>a</think><tool_call>x</tool_call>", "there is no <response>"),
        (
            "<think>a</think><response>b</response><tool_call>x</tool_call>",
            "<response> stands before <tool_call>",
        ),
        ("<think>a</think><tool_call>x</tool_call><response>", "<response> is never closed"),
        (
            "<think>a</think><tool_call>x</tool_call>c<response>b</response>",
            "text outside the tags: 'c'",
        ),
        ("<think>a</think><tool_call>x</tool_call><response>b</response>", "the format is right"),
    ],
)
def test_why_the_format_is_wrong(response: str, reason: str) -> None:
    gold = '<tool_call>\n{"name": "f", "parameters": {}}\n</tool_call>\n<response>a</response>'
    found = check(response, gold=gold)["format"]
    assert (found.reason, found.score) == (reason, float(reason == "the format is right"))
    assert found.info == (
        '<think> ... </think>\n<tool_call>\n{"name": ..., "parameters": {...}}\n</tool_call>\n'
        "<response> ... </response>"
    )


def test_thinking_is_optional() -> None:
    gold = '<tool_call>\n{"name": "f", "parameters": {}}\n</tool_call>'
    for response in (gold, f"<think>a</think>\n{gold}", f"<think></think>\n{gold}"):
        for mode in ("sound", "official"):
            assert check(response, gold=gold, mode=mode, think=False)["format"].score == 1
    assert check(gold, gold=gold)["format"].info == f"<think> ... </think>\n{FORM}"
    assert check(gold, gold=gold, think=False)["format"].info == FORM


FORM = '<tool_call>\n{"name": ..., "parameters": {...}}\n</tool_call>'


def test_what_is_wrong_with_the_calls() -> None:
    gold = (
        '<tool_call>\n{"name": "f", "parameters": {"x": 1, "y": "a"}}\n{"name": "g", "parameters": {}}\n'
        "</tool_call>"
    )
    response = (
        '<tool_call>\n{"name": "h", "parameters": {}}\n{"name": "f", "parameters": {"x": 2, "z": 1}}\n'
        "</tool_call>"
    )
    assert check(response, gold=gold)["correctness"].reason == (
        "call 2 (f), parameter 'x': expected 1, found 2; call 2 (f), parameter 'y': missing, expected \"a\"; "
        "call 2 (f), parameter 'z' is not expected; and 2 more"
    )
    properties = {"x": {"type": "integer"}, "y": {"type": "string"}}
    functions = [{"name": "f", "parameters": {"properties": properties, "required": ["x"]}}]
    answers = [{"f": {"x": [1], "y": ["a"]}}, {"f": {"x": [2], "y": ["b", ""]}}]
    found = check("[f(x=2), f(x=3, y='a')]", functions=functions, answers=answers)["correctness"]
    assert found.reason == "call 2 (f), 'x': expected 1, found 3"
    assert found.info == (
        '{"name": "f", "parameters": {"x": 1, "y": "a"}}\n{"name": "f", "parameters": {"x": 2}}'
    )
    assert (
        check("[f(x=2)]", functions=functions, answers=answers)["correctness"].reason == "1 calls, 2 wanted"
    )
    one = check("[g()]", functions=functions, answers=answers[:1])["correctness"]
    assert one.reason == "call 1 is g, expected f"


@pytest.mark.parametrize(
    "literal",
    [
        "0 -1 1.5 .5 5. 1e5 1E-3 -2.5e+3 1_000 0x1F 0b11 0o17 00 True False None",
        "'' \"\" 'a' \"a\" r'\\d' u'a'",
        "'\\n\\t\\\\\\'\\x41\\u00e9\\U0001f600\\101\\N{BULLET}\\q'",
        "[] [1] [1,] [[],[1,2],] () (1,) (1) (1,2) {} {'a':1} {'a':{1:[None]},}",
        "'''a\nb''' \"\"\"a\"b\"\"\" '''a''b'''",
    ],
)
def test_literals_are_what_python_says(literal: str) -> None:
    for own in re.split(r" (?!b)", literal) if "N{" not in literal else [literal]:
        block = read_list(f"[f(x={own})]", 0, len(own) + 6, official=False)
        expected = eval(own)  # the texts above
        assert block.problem == ""
        found = block.calls[0].arguments["x"]
        assert found == expected and repr(found) == repr(expected), own


@pytest.mark.parametrize(
    "space", ["", " ", "\t", "\f", "\n", "\r\n", "# 2)\n", "#\n # a\n", "\\\n", "\\\r\n"], ids=repr
)
def test_white_space_is_what_python_says(space: str) -> None:
    text = " [ f ( x = [ 1 , - 2 ] , y = { 'a' : 'b' 'c' , } ) , f ( ) ] ".replace(" ", space)
    block = read_list(text, len(space), len(text), official=False)
    assert block.problem == ""
    assert [call.arguments for call in block.calls] == [{"x": [1, -2], "y": {"a": "bc"}}, {}]


@pytest.mark.parametrize(
    "value",
    "01 1__0 1j 0x 1.2.3 abc true null f() a.b a[0] 1+1 -True --1 not b'a' f'a' {1} {1,2} {**a} *a [1 2] 'a "
    "\"a' '\\x4' '\\u12' '\\N{NO}' '\\U99999999' lambda:1 ... {[]:1} {'a':1,'a':2} 1e999 (yield)".split(),
)
def test_what_is_no_literal(value: str) -> None:
    text = f"[f(x={value})]"
    block = read_list(text, 0, len(text), official=False)
    assert block.problem.startswith("call 1: ") and not block.calls


def test_nothing_is_evaluated(tmp_path: Any) -> None:
    file = tmp_path / "escape"
    functions = [{"name": "f", "parameters": {"properties": {"x": {"type": "any"}}}}]
    for value in (f"open({str(file)!r}, 'w')", "__import__('os').getpid() + 0", "().__class__", "2**10"):
        for mode in ("sound", "official"):
            checks = check(f"[f(x={value})]", functions=functions, answers=[{"f": {"x": [1]}}], mode=mode)
            assert checks["correctness"].score == -3
    assert not file.exists()


@pytest.mark.parametrize(
    "one, other, equal",
    [
        ("New York, NY", "new york ny", True),
        ("April 1, 2024", "April 1,2024", True),
        ("2024-01-02", "2024/01/02", True),
        ("2024-01-02", "20240102", False),
        ("1,000", "1000", True),
        ("1.5", "15", False),
        ("5", "-5", False),
        ("x -5", "x 5", False),
        ("(-.5)", "(.5)", False),
        (".5", "5", False),
        ("No. 5", "No 5", True),
        ("COVID-19", "covid 19", True),
        ("it's", "it’s", True),
        ("5 6", "56", False),
        ("STRASSE", "straße", True),
        ("a+b", "a-b", False),
    ],
)
def test_texts_that_say_the_same(one: str, other: str, equal: bool) -> None:
    assert (normal(one) == normal(other)) is equal


def test_parts_never_overlap() -> None:
    rng = random.Random(0)
    for _ in range(2000):
        start = rng.randrange(len(RESPONSE))
        text = (
            RESPONSE[:start] + rng.choice(["", '"', "</think>", "<tool_call>", "}"]) + RESPONSE[start + 3 :]
        )
        end = 0
        for span in parts(text):
            assert end <= span.start < span.end <= len(text)
            end = span.end
        covered = "".join(text[span.start : span.end] for span in parts(text))
        assert re.sub(r"\s", "", covered) == re.sub(r"\s", "", text)
