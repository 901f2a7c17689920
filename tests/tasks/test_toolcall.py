"""The tool-calling task: prompts, replay renderings, settings, verdicts, public data."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

import creditlib
from creditlib.types import CreditlibError, Dissects, MissingDataError, Prompt, ReplayTask
from tasks.toolcall import NO_CALL, REWARDS, ToolCall
from tasks.toolcall_data import Row

WEATHER = {
    "name": "get_weather",
    "description": "weather forecast",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer", "default": 3}},
        "required": ["city"],
    },
}
LINE = '{"name": "get_weather", "parameters": {"city": "oslo"}}'
ROW = Row(({"role": "user", "content": "rain in oslo?"},), (WEATHER,), LINE)
TEMPLATE = '<tool_call>\n{"name": tool, "parameters": {values}}\n</tool_call> or <response>text</response>'
SYSTEM = (
    "Be helpful.\n\n**Available Tools**\nyou can use:\n1. Name: a\n\n**Steps**\n1. **Think:** Recall.\n\n"
    "**Output Format**\n```plaintext\n<think> t </think>\n```\n\n**Important Notes**\n1. Think."
)
GOLD = f"<think> I see. </think>\n<tool_call>\n{LINE}\n</tool_call>"
RLLA = Row(({"role": "system", "content": SYSTEM}, {"role": "user", "content": "u"}), calls=LINE, gold=GOLD)


def _body(prompt: Prompt) -> str:
    return prompt.text or "\n".join(message["content"] for message in prompt.messages or ())


def _rlla(**changes: Any) -> ToolCall:
    """As `configs/task/rlla.yaml` has it, without its files."""
    replay = {"format": "**Output Format**\n{format}", "correctness": "Reference:\n{calls}"}
    settings = {"layout": "rlla", "train": None, "evaluation": {}, "instruction": "", "think": True}
    return ToolCall(**{**settings, "replay": replay, **changes})


def _bfcl(**changes: Any) -> ToolCall:
    return _rlla(**{"layout": "bfcl", "instruction": "You help.", **changes})


# ------------------------------------------------------------------ prompts


def test_it_is_a_task() -> None:
    task = ToolCall()
    assert isinstance(task, ReplayTask) and isinstance(task, Dissects)
    assert task.reward_names == REWARDS == ("format", "correctness")
    assert task.bounds == {"format": (0.0, 1.0), "correctness": (-3.0, 3.0)}
    assert task.eval_splits == ("new_questions", "new_tools")


def test_a_plain_prompt_in_full() -> None:
    prompt = ToolCall(style="text").compose(ROW, id="p")
    assert prompt.text == (
        "Call tools.\n"
        "Tools:\n"
        " get_weather(city, days int=3): weather forecast\n"
        f"Format: {TEMPLATE}\n"
        "Request: rain in oslo?\n"
        "Answer:\n"
    )


def test_a_plain_prompt_as_chat_and_with_thinking() -> None:
    task = ToolCall(think=True)
    prompt = task.compose(ROW, id="p")
    assert prompt.messages == (
        {"role": "system", "content": "Call tools."},
        {
            "role": "user",
            "content": "Tools:\n get_weather(city, days int=3): weather forecast\n"
            f"Format: <think>your thoughts</think>\n{TEMPLATE}\nRequest: rain in oslo?",
        },
    )
    thinking, _, calls = task.target(prompt).partition("\n")
    assert thinking.startswith("<think> ") and calls == f"<tool_call>\n{LINE}\n</tool_call>"
    assert ToolCall(instruction="").compose(ROW, id="p").messages[0]["role"] == "user"  # type: ignore[index]


def test_a_prompt_of_bfcl_in_full() -> None:
    row = dataclasses.replace(
        ROW,
        messages=({"role": "system", "content": "Be brief."}, *ROW.messages),
        answers=({"get_weather": {}},),
    )
    system, user = _bfcl().compose(row, id="p").messages or ()
    parameters = json.dumps(WEATHER["parameters"])
    assert system["role"] == "system" and system["content"].startswith(
        "You help.\n\n**Available Tools**\n1. Name: get_weather\nDescription: weather forecast\n"
        f"Parameters: {parameters}\n\n"
        f"**Output Format**\n<think>your thoughts</think>\n{TEMPLATE}\n\n**Notes**\n"
    )
    assert system["content"].endswith("\n\nBe brief.")
    assert user == {"role": "user", "content": "rain in oslo?"}


def test_prompts_of_rlla_are_asked_as_they_are() -> None:
    task = _rlla()
    prompt = task.compose(RLLA, id="p")
    assert prompt.messages == RLLA.messages
    assert task.target(prompt) == GOLD
    assert _rlla(style="text").compose(RLLA, id="p").text == f"{SYSTEM}\nu\nAnswer:\n"


def test_prompts_have_ids_of_their_own_and_a_fixed_order() -> None:
    task = ToolCall()
    every = [prompt for split in ("train", *task.eval_splits) for prompt in task.prompts(split)]
    assert len({prompt.id for prompt in every}) == len(every)
    assert task.prompts("train") == ToolCall().prompts("train")


def test_a_limit_spreads_and_keeps_ids() -> None:
    few = ToolCall(limit=64).prompts("train")
    full = {prompt.id: prompt for prompt in ToolCall().prompts("train")}
    assert len(few) == 64 and all(full[prompt.id] == prompt for prompt in few)
    assert len(ToolCall(limit=64).prompts("new_tools")) > 64


# ------------------------------------------------------------------ verifier information


@pytest.mark.parametrize(
    ("task", "row"), [(ToolCall(), ROW), (_rlla(), RLLA), (_bfcl(), ROW)], ids=["plain", "rlla", "bfcl"]
)
@pytest.mark.parametrize("style", ["chat", "text"])
def test_what_is_left_out_is_gone_and_the_rest_stays(task: ToolCall, row: Row, style: Any) -> None:
    task = dataclasses.replace(task, style=style)
    prompt = task.compose(row, id="p")
    told = task.information(prompt, {})
    assert set(told) == set(REWARDS)
    assert task.render(prompt, {"format": told["format"]}) == prompt, "as asked, it lacks the reference alone"
    every = _body(task.render(prompt, told))
    for reward, text in told.items():
        assert every.count(text) == 1
        rest = {key: value for key, value in told.items() if key != reward}
        body = _body(task.render(prompt, rest))
        assert text not in body and all(value in body for value in rest.values())
        assert row.messages[-1]["content"] in body
    bare = _body(task.render(prompt, {}))
    assert "get_weather" not in told["format"] and "<tool_call>" not in told["correctness"]
    assert LINE not in bare and told["format"] not in bare and "\n\n\n" not in bare


def test_a_section_is_cut_out_cleanly() -> None:
    task = _rlla()
    prompt = task.compose(RLLA, id="p")
    (system, user) = task.render(prompt, {"correctness": f"Reference:\n{LINE}"}).messages or ()
    assert system["content"] == (
        "Be helpful.\n\n**Available Tools**\nyou can use:\n1. Name: a\n\n**Steps**\n1. **Think:** Recall.\n\n"
        "**Important Notes**\n1. Think."
    )
    assert user["content"] == f"u\nReference:\n{LINE}"


@pytest.mark.parametrize(
    "system",
    ["You may call tools.", "Write in the **Output Format**\nplease", "**Output Formats**\nx", ""],
)
def test_a_prompt_without_the_section_tells_correctness_alone(system: str) -> None:
    row = dataclasses.replace(RLLA, messages=({"role": "system", "content": system}, RLLA.messages[1]))
    task = _rlla()
    prompt = task.compose(row, id="p")
    told = task.information(prompt, {})
    assert told == {"correctness": f"Reference:\n{LINE}"}
    assert task.render(prompt, {}) == prompt
    assert _body(task.render(prompt, told)) == f"{system}\nu\nReference:\n{LINE}"


def test_a_section_that_ends_the_message_and_one_that_the_user_wrote() -> None:
    system = "Hi.\n\n**Output Format**\nx"
    said = ({"role": "system", "content": system}, {"role": "user", "content": "**Output Format**\ny"})
    task = _rlla()
    prompt = task.compose(dataclasses.replace(RLLA, messages=said), id="p")
    assert task.information(prompt, {})["format"] == "**Output Format**\nx"
    assert _body(task.render(prompt, {})) == "Hi.\n\n\n**Output Format**\ny"


def test_no_call_is_told_where_none_is_wanted_and_nothing_where_nobody_knows() -> None:
    for task in (ToolCall(), _bfcl()):
        prompt = task.compose(dataclasses.replace(ROW, calls=""), id="p")
        assert task.information(prompt, {})["correctness"].endswith(NO_CALL)
    silent = dataclasses.replace(RLLA, calls=None, gold="<think> a </think>\n<response> b </response>")
    assert "correctness" not in _rlla().information(_rlla().compose(silent, id="p"), {})


def test_a_prompt_whose_calls_nobody_knows_has_no_target() -> None:
    task = _bfcl()
    prompt = task.compose(dataclasses.replace(ROW, calls=None), id="p")
    assert "correctness" not in task.information(prompt, {})
    with pytest.raises(CreditlibError, match=r"prompt 'p' has no target: .* Mend or remove its row"):
        task.target(prompt)


def test_the_wording_of_replays_is_a_setting() -> None:
    task = ToolCall(replay={"format": None, "correctness": "With\n{tools}\ncall {calls}!"})
    prompt = task.compose(ROW, id="p")
    told = task.information(prompt, {})
    assert told == {"correctness": f"With\n get_weather(city, days int=3): weather forecast\ncall {LINE}!"}
    body = _body(task.render(prompt, told))
    assert body.startswith(
        f"Call tools.\n{told['correctness']}\nFormat: <tool_call>"
    )  # in the place of the tools
    assert "Tools:" not in body and "get_weather(" not in _body(task.render(prompt, {}))
    with pytest.raises(CreditlibError, match="no reward"):
        task.render(prompt, {"format": "x"})


@pytest.mark.parametrize(
    ("replay", "message"),
    [
        ({"formt": "x"}, r"task\.replay\.formt: no such reward, only format, correctness"),
        ({"format": "{tags}"}, r"task\.replay\.format: \{tags\} is no fact; there are \{format\}, \{tools\}"),
        ({"format": "{format"}, r"task\.replay\.format: expected '}' before end of string in '\{format'"),
    ],
)
def test_wordings_that_cannot_be(replay: dict[str, str], message: str) -> None:
    with pytest.raises(CreditlibError, match=message):
        ToolCall(replay=replay)


def test_synthetic_examples_mix_asked_and_replayed_prompts() -> None:
    task = ToolCall(style="text")
    pairs = list(itertools.islice(task.synthetic(3), 600))
    asked = sum("Format:" in _body(prompt) and "Reference:" not in _body(prompt) for prompt, _ in pairs)
    assert 600 * 0.6 < asked < 600 * 0.85
    for section in ("Format:", "Reference:"):
        assert any(section not in _body(prompt) for prompt, _ in pairs)
    assert any("Format:" not in _body(prompt) and "Reference:" in _body(prompt) for prompt, _ in pairs)
    assert all("Tools:" in _body(prompt) for prompt, _ in pairs)
    assert pairs == list(itertools.islice(task.synthetic(3), 600))
    assert all(target == task.target(prompt) for prompt, target in pairs)


def test_every_synthetic_answer_is_right() -> None:
    task = ToolCall(workers=1)
    prompts, targets = zip(*itertools.islice(task.synthetic(5), 400), strict=True)
    try:
        found = {tuple(own.score for own in checks.values()) for checks in task.verify(prompts, targets)}
    finally:
        task.close()
    assert found == {(1.0, 3.0)}


# ------------------------------------------------------------------ verdicts


def _scores(task: ToolCall, row: Row, *texts: str) -> list[list[float]]:
    prompt = task.compose(row, id="p")
    try:
        found = task.verify([prompt] * len(texts), texts)
    finally:
        task.close()
    return [[checks[reward].score for reward in REWARDS] for checks in found]


def test_verdicts_of_each_layout() -> None:
    call, refusal = f"<tool_call>\n{LINE}\n</tool_call>", "<response> no </response>"
    wrong = call.replace("oslo", "rome")
    unwanted = dataclasses.replace(ROW, calls="")
    answers = ({"get_weather": {"city": ["oslo"], "days": [3, ""]}},)
    thought = "<think> hm </think>\n"
    assert _scores(ToolCall(), ROW, call, wrong, refusal, LINE) == [[1, 3], [1, 1], [0, -3], [0, -3]]
    assert _scores(ToolCall(), unwanted, call, refusal) == [[0, -3], [1, 3]]
    assert _scores(ToolCall(think=True), ROW, call, thought + call) == [[0, 3], [1, 3]]
    assert _scores(_rlla(), RLLA, call, GOLD, thought + wrong) == [[0, 3], [1, 3], [1, 1]]
    assert _scores(
        _bfcl(), dataclasses.replace(ROW, answers=answers), thought + call, thought + wrong, thought + refusal
    ) == [[1, 3], [1, -3], [0, -3]]
    assert _scores(_bfcl(), unwanted, thought + call, thought + refusal) == [[0, -3], [1, 3]]


def test_a_ground_truth_without_calls_has_no_correctness_to_earn() -> None:
    """ToolRL's is 0 whatever is called, so no answer could be the best one of all."""
    reply = dataclasses.replace(RLLA, calls=None, gold="<response> hello </response>")
    thought = "<think> hm </think>\n"
    texts = [thought + reply.gold, GOLD]
    for mode, kind, score in (("sound", "", "nan"), ("official", None, "0.0")):
        task = dataclasses.replace(_rlla(), mode=mode)
        prompt = task.compose(reply, id="p")
        try:
            found = task.verify([prompt] * 2, texts)
        finally:
            task.close()
        assert [checks["format"].score for checks in found] == [1, 0]
        assert [str(checks["correctness"].score) for checks in found] == [score] * 2
        assert [checks["correctness"].kind for checks in found] == [kind] * 2


def test_the_mode_reaches_the_verifier() -> None:
    """ToolRL's own code takes true for 1."""
    row = dataclasses.replace(ROW, calls='{"name": "get_weather", "parameters": {"city": "oslo", "days": 1}}')
    text = '<tool_call>\n{"name": "get_weather", "parameters": {"city": "oslo", "days": true}}\n</tool_call>'
    ((_, sound),) = _scores(ToolCall(), row, text)
    ((_, official),) = _scores(ToolCall(mode="official"), row, text)
    assert sound < official == 3


def test_tools_of_unknown_types_are_flagged_and_judged() -> None:
    odd = {"name": "f", "parameters": {"properties": {"x": {"type": "HashMap"}, "y": {"type": "dict"}}}}
    row = Row(ROW.messages, (odd,), '{"name": "f", "parameters": {"x": 1}}')
    task = ToolCall(workers=1)
    prompts = [task.compose(own, id="p") for own in (row, ROW)]
    try:
        strange, usual = task.verify(prompts, [task.target(prompt) for prompt in prompts])
    finally:
        task.close()
    assert (strange["correctness"].score, strange["correctness"].flags) == (3.0, ("data:schema",))
    assert strange["format"].flags == usual["correctness"].flags == ()


def test_a_verifier_that_can_be_closed_twice() -> None:
    task = ToolCall(workers=1, limit=4)
    prompts = task.prompts("train")
    texts = [task.target(prompt) for prompt in prompts]
    assert task.verify(prompts, texts)[0]["correctness"].score == 3
    task.close()
    task.close()
    try:
        assert task.verify(prompts[:1], texts[:1])[0]["correctness"].score == 3
    finally:
        task.close()


def test_parts_of_an_answer() -> None:
    text = f"<tool_call>\n{LINE}\n</tool_call>"
    labels = {text[span.start : span.end]: span.part for span in ToolCall().parts(text)}
    assert labels["<tool_call>"] == labels["</tool_call>"] == "tag"
    assert [labels[key] for key in ("get_weather", "city", '"oslo"')] == ["name", "argument", "value"]


# ------------------------------------------------------------------ settings and files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data folder with one tool and one training row."""
    (tmp_path / "tools.json").write_text(json.dumps([WEATHER]))
    row = {"tools": ["get_weather"], "question": "rain?", "calls": [json.loads(LINE)]}
    (tmp_path / "train.jsonl").write_text(json.dumps(row))
    return tmp_path


def _task(folder: Path, **changes: Any) -> ToolCall:
    return ToolCall(**{"data": str(folder), "train": "train.jsonl", "evaluation": {}, **changes})


def test_a_folder_of_ones_own(folder: Path) -> None:
    (prompt,) = _task(folder, style="text").prompts("train")
    assert "Tools:\n get_weather(city, days int=3): weather forecast\n" in _body(prompt)
    assert len(_task(folder, train=None, evaluation={"dev": "train.jsonl"}).prompts("dev")) == 1
    with pytest.raises(CreditlibError, match="no split 'train', only dev"):
        _task(folder, train=None, evaluation={"dev": "train.jsonl"}).prompts("train")


def test_missing_folder_and_files_are_told_when_the_task_is_made(folder: Path) -> None:
    with pytest.raises(MissingDataError, match=r"nowhere, found none.*task\.data=null"):
        _task(folder / "nowhere")
    for setting in ({"train": "a.json"}, {"evaluation": {"dev": "a.json"}}, {"tools": "a.json"}):
        with pytest.raises(MissingDataError, match=r"no file a\.json in .*task\.train"):
            _task(folder, **setting)


def test_rlla_may_come_from_the_hub(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    rows = [{"instruction": "s", "input": "u", "output": GOLD}]
    monkeypatch.setattr(datasets, "load_dataset", lambda name, split: rows)
    hub: dict[str, Any] = {"data": str(folder / "nowhere"), "train": "o/n:train", "evaluation": {}}
    task = ToolCall(**hub, layout="rlla", instruction="")
    assert task.target(*task.prompts("train")) == GOLD
    with pytest.raises(MissingDataError, match=r"no file o/n:train in .*task\.train"):
        _task(folder, train="o/n:train")


def test_a_row_that_is_wrong_is_told_with_its_line(folder: Path) -> None:
    with (folder / "train.jsonl").open("a") as file:
        file.write('\n{"tools": ["get_weather"], "question": "rain?"')
    with pytest.raises(MissingDataError, match=r"train\.jsonl, line 2: expected a JSON object"):
        _task(folder).prompts("train")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"layout": "openai"}, "task.layout to be one of plain, rlla, bfcl; found 'openai'"),
        ({"mode": "strict"}, "task.mode to be one of sound, official"),
        ({"style": "xml"}, "task.style"),
        ({"limit": 0}, "task.limit to be at least 1, found 0"),
        ({"workers": 0}, "task.workers"),
        ({"layout": "rlla"}, "task.instruction must be empty with task.layout=rlla"),
        ({"evaluation": {"train": "train.json"}}, "choose another"),
    ],
)
def test_settings_that_make_no_sense(setting: dict[str, Any], message: str) -> None:
    with pytest.raises(CreditlibError, match=message):
        ToolCall(**setting)


CONFIGS = Path(__file__).parents[2] / "configs" / "task"


def configured(name: str, **changes: Any) -> dict[str, Any]:
    settings: dict[str, Any] = yaml.safe_load((CONFIGS / f"{name}.yaml").read_text())
    assert settings.pop("_target_") == "tasks.toolcall.ToolCall"
    return {**settings, "style": "chat", **changes}


@pytest.mark.parametrize("name", ["toolcall", "rlla", "bfcl"])
def test_a_config_names_every_setting(name: str) -> None:
    settings = configured(name)
    assert settings["name"] == name
    assert set(settings) == {own.name for own in dataclasses.fields(ToolCall)}


def test_the_embedded_sample_is_the_default() -> None:
    assert ToolCall(**configured("toolcall")) == ToolCall()


@pytest.mark.slow
def test_a_run_that_replays(tmp_path: Path) -> None:
    summary = creditlib.run(
        [
            "task=toolcall",
            "credit=mrtpo",
            "trainer.steps=1",
            "trainer.prompts_per_step=2",
            "trainer.minibatches=1",
            "rollout.max_tokens=24",
            "eval.limit=2",
            f"run.dir={tmp_path / 'run'}",
        ]
    )
    assert summary
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    (metrics,) = (own for own in map(json.loads, lines) if own["phase"] == "train")
    assert metrics["reward/correctness"] >= -3 and "reward/format" in metrics


# ------------------------------------------------------------------ public data

DATA = os.environ.get("CREDITLIB_DATA")
with_data = pytest.mark.skipif(not DATA, reason="CREDITLIB_DATA is not set")


def _judged(task: ToolCall, split: str) -> tuple[list[Prompt], Counter[Any], Counter[str]]:
    """A split's prompts, and how their targets are judged."""
    prompts = task.prompts(split)
    found = task.verify(prompts, [task.target(prompt) for prompt in prompts])
    scores = Counter(tuple(str(checks[reward].score) for reward in REWARDS) for checks in found)
    return prompts, scores, Counter(flag for checks in found for flag in checks["correctness"].flags)


@with_data
def test_rlla_is_read_and_its_ground_truths_are_right() -> None:
    settings = configured("rlla", data=f"{DATA}/toolcall/rlla", train="rlla_sft.json")
    task = ToolCall(**{**settings, "evaluation": {"test": "test.parquet", "lines": "rlla_test_80.jsonl"}})
    try:
        train, scores, flags = _judged(task, "train")
        assert scores == {("1.0", "3.0"): 346, ("1.0", "nan"): 54} and not flags
        for split in ("test", "lines"):
            prompts, scores, flags = _judged(task, split)
            assert scores == {("1.0", "3.0"): 71, ("1.0", "nan"): 9} and not flags
    finally:
        task.close()
    assert [own.messages for own in task.prompts("test")] == [own.messages for own in prompts]
    assert all(task.target(prompt).startswith("<think>") for prompt in train)
    for prompt in (*train, *prompts):
        told = task.information(prompt, {})
        assert (
            told["format"].startswith("**Output Format**\n```plaintext\n<think>")
            and "Notes" not in told["format"]
        )
        assert ("correctness" in told) == ("<tool_call>" in prompt.reference["gold"])
        assert task.render(prompt, {"format": told["format"]}) == prompt
        assert "```plaintext" not in _body(task.render(prompt, {}))


@with_data
def test_bfcl_is_read_and_its_possible_answers_are_right() -> None:
    task = ToolCall(**configured("bfcl", data=f"{DATA}/toolcall/bfcl"))
    sizes, impossible, flagged = {}, Counter[str](), Counter[str]()
    try:
        for split in task.eval_splits:
            prompts, scores, flags = _judged(task, split)
            sizes[split] = len(prompts)
            impossible[split] = scores.pop(("1.0", "nan"), 0)
            assert set(scores) == {("1.0", "3.0")}
            flagged += flags
            for prompt in prompts:
                told = task.information(prompt, {})
                assert set(told) == set(REWARDS) and task.render(prompt, {"format": told["format"]}) == prompt
    finally:
        task.close()
    assert sizes == {
        "simple": 400,
        "multiple": 200,
        "parallel": 200,
        "parallel_multiple": 200,
        "irrelevance": 240,
        "live_simple": 258,
        "live_multiple": 1053,
        "live_parallel": 16,
        "live_parallel_multiple": 24,
        "live_irrelevance": 884,
    }
    # live_simple_106 and 112, live_multiple_862 and 964: nothing is right that their functions take
    assert +impossible == {"live_simple": 2, "live_multiple": 2}
    assert flagged == {"data:answers": 4, "data:unknown_parameter": 4}


@with_data
def test_types_of_java_and_javascript_are_flagged() -> None:
    task = ToolCall(
        **configured("bfcl", data=f"{DATA}/toolcall/bfcl", evaluation={"java": "BFCL_v4_simple_java.json"})
    )
    try:
        prompts, scores, flags = _judged(task, "java")
    finally:
        task.close()
    assert len(prompts) == 100 and scores == {("1.0", "3.0"): 100}
    assert flags["data:schema"] > 50
