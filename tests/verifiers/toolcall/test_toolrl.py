"""The official mode against ToolRL's patterns and formula, written out plainly, on random edits."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from verifiers.toolcall import check

A = '{"name": "f", "parameters": {"x": 1, "y": "a"}}'
B = '{"name": "g", "parameters": {"x": 2.5}}'
C = '{"name": "f", "parameters": {}}'
THINK, REPLY = "<think>a</think>", "<response>hello</response>"
GOLDS = [
    f"{THINK}\n<tool_call>\n{A}\n</tool_call>",
    f"{THINK}\n<tool_call>\n{A}\n{B}\n{C}\n</tool_call>",
    f"{THINK}\n<tool_call>\n{A}\n{A.replace('1', '2')}\n</tool_call>\n{REPLY}",
    f"{THINK}\n{REPLY}",
    THINK,
]
PIECES = [
    *"<think> </think> <tool_call> </tool_call> <response> </response>".split(),
    *"<|im_start|>assistant <|im_end|> null 1 2 true 1.0 NaN".split(),
    *'{ } [ ] , : " "f" "g" "x" "name" "parameters" \\'.split(),
    *("\n", "\n\n", " ", A, B, C),
]


def expected_format(text: str, gold: str) -> float:
    calls, reply = "<tool_call>" in gold, "<response>" in gold
    pattern = "^<think>.*?</think>"
    pattern += "\n<tool_call>\n.*?\n</tool_call>" if calls else ""
    pattern += "\n<response>.*?</response>" if reply else ""
    tags = ["<tool_call>", "</tool_call>"] * calls + ["<response>", "</response>"] * reply
    return float(
        re.search(pattern + "$", text, re.DOTALL) is not None and all(text.count(tag) == 1 for tag in tags)
    )


def expected_correctness(text: str, gold: str) -> float:
    if "<tool_call>" not in gold:
        return 0.0
    try:
        wanted, found = calls_of(gold), calls_of(text)
        if wanted == found:
            return 3.0
        score = jaccard([own["name"] for own in wanted], [own["name"] for own in found])
        left = list(found)
        for own in wanted:
            fits = [
                jaccard(list(own["parameters"].keys()), list(other["parameters"].keys()))
                + sum(
                    key in other["parameters"] and other["parameters"][key] == value
                    for key, value in own["parameters"].items()
                )
                if other["name"] == own["name"]
                else 0
                for other in left
            ]
            if fits and max(fits) > 0:
                score += max(fits)
                del left[fits.index(max(fits))]
        return 6 * score / (1 + sum(1 + len(own["parameters"]) for own in wanted)) - 3
    except (ValueError, TypeError, KeyError, AttributeError, IndexError):
        return -3.0


def calls_of(text: str) -> list[Any]:
    text.index("</tool_call>")
    body = text.split("<tool_call>")[1].split("</tool_call>")[0].strip()
    return [json.loads(line) for line in body.split("\n")]


def jaccard(first: Sequence[Any], second: Sequence[Any]) -> float:
    if first == second:
        return 1.0
    return sum((Counter(first) & Counter(second)).values()) / sum((Counter(first) | Counter(second)).values())


def edited(text: str, rng: random.Random) -> str:
    for _ in range(rng.choice((0, 1, 1, 2, 4))):
        start = rng.randrange(len(text) + 1)
        end = start + rng.choice((0, 0, 1, 3, 12))
        text = text[:start] + rng.choice([*PIECES, ""]) + text[end:]
        lines = text.split("\n")
        if rng.random() < 0.3:
            lines.insert(rng.randrange(len(lines)), rng.choice(lines))
        elif rng.random() < 0.2:
            rng.shuffle(lines)
        text = "\n".join(lines)
    return text


@pytest.mark.parametrize("seed", range(4))
def test_random_edits(seed: int) -> None:
    rng = random.Random(seed)
    seen = Counter[tuple[float, float]]()
    for _ in range(3000):
        gold = rng.choice(GOLDS)
        response = edited(rng.choice([gold, gold, gold, *GOLDS]), rng)
        text = response.split("<|im_start|>assistant")[-1].split("<|im_end|>")[0].strip()
        expected = expected_format(text, gold), expected_correctness(text, gold)
        checks = check(response, gold=gold, mode="official")
        assert (checks["format"].score, checks["correctness"].score) == pytest.approx(expected), response
        seen[expected] += 1
    assert len(seen) > 20  # partial scores too
    assert sum(count for (kept, _), count in seen.items() if kept) > 500
