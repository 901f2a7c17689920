"""Hostile and random responses: always a verdict, within bounds and quickly."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from functools import partial
from typing import Any, get_args

import pytest

from benchmarks.long_answers import allowed, timed
from verifiers.toolcall import BOUNDS, Mode, check, parts

MODES = get_args(Mode)
GOLD = '<think>a</think>\n<tool_call>\n{"name": "f", "parameters": {"x": 1}}\n</tool_call>'
FUNCTIONS = [
    {
        "name": "f",
        "parameters": {
            "type": "dict",
            "properties": {"x": {"type": "string"}, "y": {"type": "array", "items": {"type": "float"}}},
            "required": ["x"],
        },
    }
]
REFERENCES: list[dict[str, Any]] = [
    {"gold": GOLD},
    {"gold": GOLD + "\n<response>b</response>"},
    {"gold": "<response>b</response>"},
    {"functions": FUNCTIONS, "answers": [{"f": {"x": ["a1", "1"], "y": ["", [1.0]]}}]},
    {"functions": FUNCTIONS, "answers": [{"f": {"x": ["1"]}}, {"f": {"x": ["2"], "y": [[2.0]]}}]},
    {"functions": FUNCTIONS},
]


def within(call: str) -> str:
    return f"<think>a</think>\n<tool_call>\n{call}\n</tool_call>"


def with_value(value: str) -> str:
    return within('{"name": "f", "parameters": {"x": ' + value + "}}")


@pytest.mark.parametrize(  # numbers of BENCHMARKS' list; right would be x = 1
    "response",
    {
        "44 a key twice": with_value('1, "x": 1'),
        "45 NaN": with_value("NaN"),
        "45 Infinity": with_value("Infinity"),
        "46 a number beyond floats": with_value("1e999"),
        "48 a hundred thousand brackets": with_value("[" * 100_000),
        "48 brackets that are closed": with_value("[" * 50_000 + "]" * 50_000),
        "50 a raw line break": with_value('"a\nb"'),
        "50 a NUL": with_value('"a\0b"'),
        "52 two objects on one line": within('{"name": "f", "parameters": {"x": 1}}' * 2),
        "54 arguments": within('{"name": "f", "arguments": {"x": 1}}'),
        "55 parameters as text": within('{"name": "f", "parameters": "{\\"x\\": 1}"}'),
        "56 true": with_value("true"),
        "56 1.0": with_value("1.0"),
        "58 another turn": within('{"name": "g", "parameters": {}}') + "<|im_start|>assistant\n" + GOLD,
        "60 parameters null": within('{"name": "f", "parameters": null}'),
        "60 parameters a list": within('{"name": "f", "parameters": [["x", 1]]}'),
        "a lone surrogate": with_value('"\ud800"'),
        "a lone surrogate, escaped": with_value('"\\ud800"'),
        "right to left": with_value('"\u202e1"'),
    }.values(),
)
def test_wrong_calls_are_wrong(response: str) -> None:
    found = check(response, gold=GOLD)["correctness"]
    assert -3 <= found.score < 3
    found.reason.encode()  # can be written to a file


def test_a_tag_inside_a_text_is_text() -> None:
    """53: the JSON is parsed, not cut at the tag."""
    gold = with_value('"see </tool_call> there"')
    checks = check(gold, gold=gold)
    assert (checks["format"].score, checks["correctness"].score) == (1, 3)


def test_a_whole_number_is_a_decimal() -> None:
    """56: 1 for a float is right."""
    assert check(with_value("1"), gold=with_value("1.0"))["correctness"].score == 3


def fill(piece: str) -> str:
    return (piece * (100_000 // len(piece) + 1))[:100_000]


LONG = {
    **{
        piece: fill(piece)
        for piece in (
            "[",
            "{",
            "(",
            "<tool_call>",
            "<tool_call></tool_call>",
            '<tool_call>{"name":x</tool_call>',
            '<tool_call>{"</tool_call>',
            "<think></think>",
            "<response>a</response>",
            "<|im_start|>assistant\n<tool_call>",
            "\n",
            "\\",
            '"',
            "'''",
            "#\n",
            "f(x=",
            "[f(x=1), ",
            "\ud800",
        )
    },
    **{f"calls: {piece}": within(fill(piece)) for piece in ("[", '{"name":"f","parameters":{}}\n', "1")},
    **{f"value: {piece}": with_value(fill(piece)) for piece in ("[", "{", "1", "[],", '"a.', '{"a":', "\\")},
    "a long text": with_value('"' + fill("a.1-") + '"'),
    "1,000 calls": within("\n".join(f'{{"name":"f","parameters":{{"x":{i}}}}}' for i in range(1000))),
    "many parameters": with_value("1" + "".join(f', "x{i}": 1' for i in range(7000))),
    "a list of 1,000 calls": "[" + ", ".join(f"f(x={i})" for i in range(1000)) + "]",
    "a list of many arguments": "[f(" + ",".join(f"x{i}=1" for i in range(9000)) + ")]",
    **{
        f"argument: {piece}": f"[f(x={fill(piece)})]"
        for piece in ("[", "{", "-", "'a' ", "1", "'\\x41", '"""a""', "not ", "(1,", "x.")
    },
    "a long list": f"[f(x=[{fill('1,')}])]",
}


@pytest.mark.usefixtures("no_garbage_collection")
@pytest.mark.parametrize("name", LONG)
def test_long_responses_take_no_time(name: str) -> None:
    """100,000 characters are judged in half the time that 50,000 may take where instructions are checked."""
    response = LONG[name]
    jobs: list[Callable[[], object]] = [partial(parts, response)]
    for mode in MODES:
        for reference in (REFERENCES[0], REFERENCES[3], REFERENCES[5]):
            jobs.append(partial(check, response, mode=mode, **reference))
    limit = allowed() / 2
    for job in jobs:
        took, _ = timed(job, limit)
        assert took <= limit or took <= allowed() / 2


def test_a_thousand_reference_calls() -> None:
    """Beyond what is searched for the best pairs, time stays bounded, and a flag says so."""
    lines = [f'{{"name": "f", "parameters": {{"x": {i}, "y": 0}}}}' for i in range(1000)]
    gold = within("\n".join(lines))
    assert check(within("\n".join(lines[::-1])), gold=gold)["correctness"].score == 3
    start = time.process_time()
    found = check(gold.replace('"y": 0', '"y": 1'), gold=gold)["correctness"]
    assert time.process_time() - start < 1
    assert found.flags == ("match:budget",)
    assert found.score == pytest.approx(6 * (1 + 1000 * 2) / (1 + 1000 * 3) - 3)

    answers = [{"f": {"x": [str(i)]}} for i in range(100)]
    calls = [f"f(x='{i}')" for i in range(100)]
    in_order = check(f"[{', '.join(calls)}]", functions=FUNCTIONS, answers=answers)["correctness"]
    assert in_order.score == 3
    reversed_ = check(f"[{', '.join(calls[::-1])}]", functions=FUNCTIONS, answers=answers)["correctness"]
    assert (reversed_.score, reversed_.flags) == (-3, ("match:budget",))


PIECES = [
    *"<think> </think> <tool_call> </tool_call> <response> </response>".split(),
    *"<|im_end|> <|im_start|>assistant \\u \\ud800 \\n NaN true True None null f g x y".split(),
    *"{ } [ ] ( ) , : = \" ' \\ # - + . 0 1 1.0 1e999".split(),
    *('"name"', '"parameters"', '"x"', '"y"', "f(", "x=", "[f(x='1')]", '{"name": "f", "parameters": {'),
    *("\n", "\r\n", " ", "\0", "\ud800", "é", "\u202e", "😀", "'''", '"""', "r'", "\t"),
    '{"name": "f", "parameters": {"x": 1}}',
    GOLD,
]


@pytest.mark.parametrize("seed", range(8))
def test_random_responses(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(400):
        response = "".join(rng.choices(PIECES, k=rng.randint(0, 12)))
        if rng.random() < 0.5:
            start = rng.randrange(len(GOLD))
            response = GOLD[:start] + response + GOLD[start + rng.randrange(5) :]
        for reference in REFERENCES:
            for mode in MODES:
                think = rng.random() < 0.5
                checks = check(response, mode=mode, think=think, **reference)
                assert list(checks) == list(BOUNDS)
                for reward, found in checks.items():
                    low, high = BOUNDS[reward]
                    assert low <= found.score <= high
                    assert found.reason
                    found.reason.encode()
                    end = 0
                    for span in found.spans:
                        assert end <= span.start < span.end <= len(response)
                        end = span.end
                assert checks == check(response, mode=mode, think=think, **reference)


ODD: list[Any] = [
    *(None, True, False, 0, -1, 1.5, float("nan"), float("inf"), 10**5000, "", "x", "string", "\ud800", b"a"),
    *(
        [],
        {},
        [[]],
        [["x"]],
        [""],
        [None],
        ["string", "null"],
        {"x": []},
        {"": {}},
        {1: 2},
        {"x": {"x": [1]}},
    ),
    *(
        {"type": []},
        {"type": ["array", "null"], "items": [{}]},
        {"type": {}},
        {"f": {"x": [["a"]]}},
        {"f": {}},
    ),
]
DEEP: Any = []
for _ in range(5000):
    DEEP = [DEEP]
ODD.append(DEEP)


def mutated(value: Any, rng: random.Random) -> Any:
    """A copy of JSON data with some of it replaced."""
    if rng.random() < 0.06:
        return rng.choice(ODD)
    if isinstance(value, dict):
        names = [*value, *rng.choices(["required", "items", "default", "enum", "z"], k=rng.random() < 0.1)]
        return {
            key: mutated(value.get(key, "x"), rng) if key in value else rng.choice(ODD)
            for key in names
            if rng.random() > 0.03
        }
    if isinstance(value, list):
        return [mutated(own, rng) for own in value for _ in range(rng.choice((1, 1, 1, 1, 1, 2, 0)))]
    return value


@pytest.mark.parametrize("seed", range(4))
def test_mutated_references(seed: int) -> None:
    """Whatever a schema, an answer or a ground truth is: a verdict, never an exception."""
    rng = random.Random(seed)
    responses = [
        *(
            "",
            "[f(x='a1', y=[1.0])]",
            "[f(x=None)]",
            "[f(x=['a'])]",
            "[f(x={'x': 1})]",
            "[f()]",
            "[f(x=1e308)]",
        ),
        *(GOLD, "<response>b</response>", with_value('{"x": [true, null]}'), with_value('""')),
    ]
    answers = [{"f": {"x": ["a1", "1"], "y": ["", [1.0]]}}, {"f": {"x": ["2"], "y": [[2.0]]}}]
    for _ in range(700):
        reference: dict[str, Any] = {
            "functions": mutated(FUNCTIONS, rng) or [],
            "answers": rng.choice([None, mutated(answers[: rng.randint(0, 2)], rng)]),
        }
        if rng.random() < 0.2:
            at = rng.randrange(len(GOLD))
            reference = {
                "gold": GOLD[:at] + "".join(rng.choices(PIECES, k=3)) + GOLD[at + rng.randrange(9) :]
            }
        for response in rng.sample(responses, 3):
            for mode in MODES:
                for reward, found in check(
                    response, mode=mode, think=rng.random() < 0.5, **reference
                ).items():
                    low, high = BOUNDS[reward]
                    assert math.isnan(found.score) or low <= found.score <= high
                    (found.reason + (found.info or "")).encode()
