"""The embedded tools and requests and the endless stream: what is shipped is what the script makes; sound."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tokenizers import Tokenizer

import creditlib
from creditlib.types import Prompt
from tasks.data.toolcall import generate
from tasks.data.toolcall.invented import invent
from tasks.data.toolcall.known import NEW, TRAINING
from tasks.data.toolcall.model import Tool, choice, flag, said, several, text, whole
from tasks.data.toolcall.questions import KINDS, Offer, Request, none, parallel, parallel_multiple, single
from tasks.toolcall import EMBEDDED, REFUSAL, ToolCall
from tasks.toolcall_data import as_lines, signature, unknown_types

SPLITS = ("train", "new_questions", "new_tools")
TOKENIZER = Path(creditlib.__file__).parent / "assets" / "tiny" / "tokenizer.json"


@pytest.fixture(scope="module")
def rows() -> dict[str, list[dict[str, Any]]]:
    return {split: json.loads((EMBEDDED / f"{split}.json").read_text()) for split in SPLITS}


@pytest.fixture(scope="module")
def tools() -> dict[str, dict[str, Any]]:
    return {tool["name"]: tool for tool in json.loads((EMBEDDED / "tools.json").read_text())}


@pytest.fixture(scope="module")
def streamed() -> list[Request]:
    return list(itertools.islice(generate.stream(1), 1500))


def calls_of(rows: Sequence[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for row in rows:
        for call in row["calls"]:
            yield row, call


# ------------------------------------------------------------------ the sample


def test_the_script_makes_what_is_shipped(tmp_path: Path) -> None:
    generate.write(tmp_path)
    made = {path.name for path in tmp_path.iterdir()}
    assert made == {path.name for path in EMBEDDED.glob("*.json")}
    for name in made:
        assert (tmp_path / name).read_bytes() == (EMBEDDED / name).read_bytes(), name


def test_sizes(rows: dict[str, list[dict[str, Any]]], tools: dict[str, dict[str, Any]]) -> None:
    trained = [tool.name for own in TRAINING.values() for tool in own]
    new = [tool.name for own in NEW.values() for tool in own]
    assert len(trained) >= 40 and len(new) >= 12
    assert len({*trained, *new}) == len(trained) + len(new)
    assert list(tools) == [*trained, *new]
    assert len(rows["train"]) >= 1500 and min(map(len, rows.values())) >= 200
    used = {split: {name for row in rows[split] for name in row["tools"]} for split in SPLITS}
    assert used["train"] == used["new_questions"] == set(trained)
    assert used["new_tools"] == set(new)
    called = {split: {call["name"] for _, call in calls_of(rows[split])} for split in SPLITS}
    assert called["train"] == set(trained) and called["new_tools"] == set(new)
    assert sum(path.stat().st_size for path in EMBEDDED.glob("*.json")) < 1_000_000


def test_nothing_leaks(rows: dict[str, list[dict[str, Any]]]) -> None:
    """Neither a question, whatever its punctuation, nor a list of calls is in two splits."""
    questions = [
        {" ".join(re.findall(r"[\w.]*\w", row["question"])) for row in rows[split]} for split in SPLITS
    ]
    calls = [{as_lines(row["calls"]) for row in rows[split] if row["calls"]} for split in SPLITS]
    for one, other in itertools.combinations(range(3), 2):
        assert not questions[one] & questions[other]
        assert not calls[one] & calls[other]
    for split in SPLITS:
        assert len({row["question"] for row in rows[split]}) == len(rows[split])


def test_every_kind_occurs_and_is_what_it_says(rows: dict[str, list[dict[str, Any]]]) -> None:
    shape = {  # kind -> tools offered, calls, different tools called
        "single": ({1}, {1}, {1}),
        "multiple": ({2, 3, 4}, {1}, {1}),
        "parallel": ({1}, {2}, {1}),
        "parallel_multiple": ({2, 3}, {2}, {2}),
        "none": ({1, 2, 3}, {0}, {0}),
    }
    assert set(shape) == {kind.__name__ for kind in KINDS}
    for split in SPLITS:
        counted = Counter(row["kind"] for row in rows[split])
        assert set(counted) == set(shape) and min(counted.values()) >= len(rows[split]) / 10
        for row in rows[split]:
            names = [call["name"] for call in row["calls"]]
            offered, count, different = shape[row["kind"]]
            assert len(row["tools"]) in offered and len(set(row["tools"])) == len(row["tools"])
            assert len(names) in count and len(set(names)) in different
            assert set(names) <= set(row["tools"])
            assert len(set(map(json.dumps, row["calls"]))) == len(names)


def test_calls_keep_to_the_schemas(
    rows: dict[str, list[dict[str, Any]]], tools: dict[str, dict[str, Any]]
) -> None:
    types = {"string": str, "integer": int, "number": float, "boolean": bool, "array": list}
    seen = set()
    for _, call in calls_of([row for own in rows.values() for row in own]):
        schema = tools[call["name"]]["parameters"]
        assert set(schema["required"]) <= set(call["parameters"]) <= set(schema["properties"])
        for name, value in call["parameters"].items():
            own = schema["properties"][name]
            assert type(value) is types[own["type"]]
            assert value in own.get("enum", [value])
            assert value != own.get("default"), "a default goes without saying"
            if own["type"] == "array":
                assert {type(item) for item in value} == {types[own["items"]["type"]]}
            seen.add((own["type"], "enum" in own, "default" in own))
    assert {kind for kind, _, _ in seen} == set(types)
    assert (
        ("string", True, True) in seen
        and ("string", True, False) in seen
        and ("integer", False, True) in seen
    )
    assert unknown_types(list(tools.values())) == []


def test_every_value_stands_in_the_question(
    rows: dict[str, list[dict[str, Any]]], streamed: list[Request]
) -> None:
    """Numbers and words as they are in the call; what is on or off by its name."""
    every = [row for own in rows.values() for row in own] + [generate.row(request) for request in streamed]
    for row, call in calls_of(every):
        for name, value in call["parameters"].items():
            for item in value if isinstance(value, list) else [value]:
                stated = name if isinstance(item, bool) else str(item)
                assert re.search(rf"(?<![\w.]){re.escape(stated)}(?!\w|\.\d)", row["question"]), row
            if value is False:
                assert re.search(rf"(without|not) {name}", row["question"]), row


def test_calls_come_in_the_order_of_the_question(rows: dict[str, list[dict[str, Any]]]) -> None:
    """Shown where both calls have a value that the question says once."""
    compared = 0
    for row in itertools.chain(*rows.values()):
        if len(row["calls"]) != 2:
            continue
        places = []
        for call in row["calls"]:
            words = [str(value) for value in call["parameters"].values() if isinstance(value, str)]
            places.append([row["question"].index(word) for word in words if row["question"].count(word) == 1])
        if all(places):
            assert max(places[0]) < min(places[1]), row
            compared += 1
    assert compared > 200


def test_every_gold_earns_every_reward_without_a_flag() -> None:
    task = ToolCall(workers=2)
    try:
        for split in SPLITS:
            prompts = task.prompts(split)
            for prompt, checks in zip(
                prompts, task.verify(prompts, list(map(task.target, prompts))), strict=True
            ):
                found = {reward: (check.score, check.flags) for reward, check in checks.items()}
                assert found == {"format": (1.0, ()), "correctness": (3.0, ())}, (prompt, checks)
    finally:
        task.close()


def test_what_is_wrong_earns_less() -> None:
    """A gold of another prompt is wrong, and the more of a call is right the more it earns."""
    task = ToolCall(workers=1)
    prompts = [prompt for prompt in task.prompts("new_questions") if prompt.reference["kind"] != "none"]
    unwanted = [prompt for prompt in task.prompts("new_questions") if prompt.reference["kind"] == "none"]
    try:
        shifted = [task.target(prompt) for prompt in (*prompts[1:], prompts[0])]
        for checks in task.verify(prompts, shifted):
            assert checks["correctness"].score < 3
        refusal = task.target(unwanted[0])
        assert {checks["correctness"].score for checks in task.verify(prompts, [refusal] * len(prompts))} == {
            -3
        }
        called = task.verify(unwanted, [task.target(prompts[0])] * len(unwanted))
        assert {checks["correctness"].score for checks in called} == {-3}
        prompt = next(own for own in prompts if '"minutes": ' in task.target(own))
        nearly = re.sub(r'"minutes": \d+', '"minutes": 1234', task.target(prompt))
        ((checks),) = task.verify([prompt], [nearly])
        assert -3 < checks["correctness"].score < 3 and checks["format"].score == 1
    finally:
        task.close()


# ------------------------------------------------------------------ short enough for the embedded policy


def test_prompts_and_answers_are_short() -> None:
    """In tokens of the embedded policy: answers fit into a rollout's 128, the prompt that tells everything
    and its answer into 512.
    """
    tokenizer = Tokenizer.from_file(str(TOKENIZER))
    task = ToolCall(style="text")
    asked = [prompt for split in SPLITS for prompt in task.prompts(split)]
    asked += [prompt for prompt, _ in itertools.islice(task.synthetic(2), 500) if _as_asked(prompt)]

    def longest(texts: list[str]) -> int:
        return max(len(own.ids) for own in tokenizer.encode_batch(texts))

    assert longest([prompt.text or "" for prompt in asked]) <= 170
    assert longest([task.target(prompt) for prompt in asked]) < 128
    one = [prompt for prompt in asked if prompt.reference["kind"] in ("single", "multiple", "none")]
    assert longest([task.target(prompt) for prompt in one]) <= 110
    told = [
        (task.render(prompt, task.information(prompt, {})).text or "") + task.target(prompt)
        for prompt in asked
    ]
    assert longest(told) <= 512


def _as_asked(prompt: Prompt) -> bool:
    text = prompt.text or ""
    return "Format:" in text and "Reference:" not in text


# ------------------------------------------------------------------ the stream


def test_the_stream_is_a_function_of_its_seed() -> None:
    first, again, other = (list(itertools.islice(generate.stream(seed), 200)) for seed in (7, 7, 8))
    assert first == again != other


def test_the_stream_knows_no_new_tool(streamed: list[Request]) -> None:
    assert not {tool.name for request in streamed for tool in request.tools} & generate.NEW_NAMES
    held_out = {invent(Random(seed)).name for seed in range(40)}
    assert not {invent(Random(seed), held_out=held_out).name for seed in range(40)} & held_out


def test_the_stream_has_all_kinds_types_and_hardly_the_same_tool_twice(streamed: list[Request]) -> None:
    counted = Counter(request.kind for request in streamed)
    assert set(counted) == {kind.__name__ for kind in KINDS} and min(counted.values()) > 100
    made = {signature(tool.function) for request in streamed for tool in request.tools}
    assert len(made) > 500
    kinds = {own.kind for request in streamed for tool in request.tools for own in tool.parameters}
    assert kinds == {"string", "integer", "number", "boolean", "array"}
    assert len({request.question for request in streamed}) > 1450


def test_a_request_is_about_the_tools_that_it_offers(streamed: list[Request]) -> None:
    for request in streamed:
        offered = {tool.name: tool for tool in request.tools}
        assert offered and len(offered) == len(request.tools)
        for call in request.calls:
            parameters = {own.name: own for own in offered[call["name"]].parameters}
            assert {name for name, own in parameters.items() if own.required} <= set(call["parameters"])
            assert set(call["parameters"]) <= set(parameters)


# ------------------------------------------------------------------ its parts

TABLE = Tool(
    "book_table",
    (
        text("place", "ada bo"),
        whole("guests", 2, 9),
        whole("hour", 1, 9, "at {} o'clock", default=5),
        flag("quiet", "in a quiet corner"),
    ),
    ("book a table |at {place} for {guests}",),
)
PIZZA = Tool(
    "order_pizza",
    (choice("size", "small large"), several("toppings", "ham corn egg")),
    ("get |a {size} one with {toppings}",),
)


def test_a_tool_as_json_schema() -> None:
    assert TABLE.function == {
        "name": "book_table",
        "parameters": {
            "type": "object",
            "properties": {
                "place": {"type": "string"},
                "guests": {"type": "integer"},
                "hour": {"type": "integer", "default": 5},
                "quiet": {"type": "boolean", "default": False},
            },
            "required": ["place", "guests"],
        },
    }
    sizes = PIZZA.function["parameters"]["properties"]
    assert sizes == {
        "size": {"type": "string", "enum": ["small", "large"]},
        "toppings": {"type": "array", "items": {"type": "string"}},
    }


def offer(*tools: Tool, seed: int = 0, prompt: int = 500) -> Offer:
    return Offer(Random(seed), [[tool] for tool in tools], generate.size, prompt=prompt, answer=500)


def test_what_stands_behind_the_bar_is_said_once_a_call() -> None:
    for seed in range(20):
        request = parallel(offer(TABLE, seed=seed))
        assert request.question.count("book a table ") == 1 and request.question.count(" for ") == 2
        one, two = (call["parameters"] for call in request.calls)
        assert one != two
        assert request.question.index(f"at {one['place']} for {one['guests']}") < request.question.rindex(
            f"at {two['place']} for {two['guests']}"
        )


def test_a_list_of_values_has_its_own_and() -> None:
    assert (
        said(["ham", "corn", "egg"]) == "ham, corn and egg"
        and said([3, 4]) == "3 and 4"
        and said(2.5) == "2.5"
    )
    for seed in range(20):
        assert re.search(r"( and|,) then ", parallel(offer(PIZZA, seed=seed)).question)


def test_values_are_not_the_default_and_texts_of_a_call_differ() -> None:
    fly = Tool(
        "fly", (text("start", "rome oslo"), text("goal", "rome oslo")), ("fly |from {start} to {goal}",)
    )
    for seed in range(50):
        (call,) = single(offer(TABLE, seed=seed)).calls
        assert call["parameters"].get("hour") != 5 and call["parameters"].get("quiet") is not False
        (flight,) = single(offer(fly, seed=seed)).calls
        assert flight["parameters"]["start"] != flight["parameters"]["goal"]


def test_no_tool_on_offer_could_do_what_none_is_wanted_for() -> None:
    """Tools of one group may be able to do each other's work."""
    groups = list(TRAINING.values())
    group_of = {tool.name: number for number, own in enumerate(groups) for tool in own}
    words = {tool.name: [ask.partition("|")[0] for ask in tool.asks] for own in groups for tool in own}
    for seed in range(200):
        request = none(Offer(Random(seed), groups, generate.size))
        offered = {group_of[tool.name] for tool in request.tools}
        asked = {
            group_of[name]
            for name, heads in words.items()
            for head in heads
            if len(head.split()) > 2 and head in request.question
        }
        assert request.calls == () and not offered & asked


def test_a_prompt_has_no_more_tools_than_it_has_room_for() -> None:
    tools = [Tool(f"{TABLE.name}_{number}", TABLE.parameters, TABLE.asks) for number in range(9)]
    sizes = [generate.size(tool) for tool in tools]
    for seed in range(20):
        request = parallel_multiple(offer(*tools, seed=seed, prompt=2 * sizes[0] + 40))
        assert len(request.tools) == 2
        assert {call["name"] for call in request.calls} == {tool.name for tool in request.tools}


def test_the_refusal_is_one_line() -> None:
    task = ToolCall()
    prompt = next(own for own in task.prompts("train") if own.reference["kind"] == "none")
    assert task.target(prompt) == f"<response> {REFUSAL} </response>"
