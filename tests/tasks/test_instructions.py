"""The instructions task: prompts, slots, replay renderings, settings, verdicts."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import pytest
import yaml

from creditlib.compose import configs_folder
from creditlib.types import Check, CreditlibError, Dissects, MissingDataError, Prompt, ReplayTask
from tasks.instruction_data import as_row
from tasks.instructions import Instructions

COMMA = {"id": "punctuation:no_comma", "kwargs": {}}
WORDS = {"id": "length_constraints:number_words", "kwargs": {"relation": "at least", "num_words": 3}}
LOUD = {"id": "change_case:english_capital", "kwargs": {}}
OWN = {"prompt": "Greet me.", "constraints": [COMMA, WORDS, LOUD], "target": "GOOD DAY FRIEND"}
PROSE = {
    "prompt": "Greet me in 3 words or more, without commas.",
    "instruction_id_list": [COMMA["id"], WORDS["id"]],
    "kwargs": [{}, WORDS["kwargs"]],
}
UNKNOWN = {"id": "magic:sparkle", "kwargs": {}}


def _body(prompt: Prompt) -> str:
    return prompt.text or "\n".join(message["content"] for message in prompt.messages or ())


def _task(folder: Path, *rows: Any, **changes: Any) -> Instructions:
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = {"data": str(folder), "train": "rows.jsonl", "evaluation": {}, "workers": 1, **changes}
    return Instructions(**settings)


# ------------------------------------------------------------------ prompts


def test_it_is_a_task() -> None:
    task = Instructions()
    assert isinstance(task, ReplayTask) and isinstance(task, Dissects)
    assert task.reward_names == tuple(f"constraint_{number}" for number in range(1, 14))
    assert task.bounds == dict.fromkeys(task.reward_names, (0.0, 1.0))
    assert task.eval_splits == ("new_prompts", "new_mixtures")
    assert Instructions(slots=2).reward_names == ("constraint_1", "constraint_2")


def test_a_listed_prompt_in_full(tmp_path: Path) -> None:
    (prompt,) = _task(tmp_path, OWN).prompts("train")
    content = "Greet me.\n- no commas\n- at least 3 words\n- all in capitals"
    assert prompt.messages == ({"role": "user", "content": content},)
    (prompt,) = _task(tmp_path, OWN, instruction="Be kind.", style="text").prompts("train")
    assert prompt.text == f"Be kind.\n{content}\nAnswer:\n"
    (prompt,) = _task(tmp_path, OWN, instruction="Be kind.").prompts("train")
    assert prompt.messages == (
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": content},
    )


def test_wordings(tmp_path: Path) -> None:
    rows = [OWN, {**OWN, "constraints": [{**COMMA, "text": "Comma-free!"}, WORDS]}]
    full, own = _task(tmp_path, *rows, wording="full").prompts("train")
    assert "- Do not use any commas.\n- " in _body(full) and "- no commas" not in _body(full)
    assert _body(own).startswith("Greet me.\n- Comma-free!\n- ")


def test_prose_is_asked_as_it_is(tmp_path: Path) -> None:
    for row in (PROSE, {**OWN, "prose": True}):
        (prompt,) = _task(tmp_path, row).prompts("train")
        assert _body(prompt) == row["prompt"]


def test_a_conversation(tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    row = {**OWN, "prompt": [*turns, {"role": "user", "content": "c"}], "constraints": [COMMA]}
    (prompt,) = _task(tmp_path, row, instruction="s").prompts("train")
    assert prompt.messages == (
        {"role": "system", "content": "s"}, *turns, {"role": "user", "content": "c\n- no commas"},
    )  # fmt: skip
    (prompt,) = _task(tmp_path, row, style="text").prompts("train")
    assert prompt.text == "a\nb\nc\n- no commas\nAnswer:\n"


def test_prompts_have_ids_of_their_own_and_a_fixed_order() -> None:
    task = Instructions()
    every = [prompt for split in ("train", *task.eval_splits) for prompt in task.prompts(split)]
    assert len({prompt.id for prompt in every}) == len(every)
    assert task.prompts("train") == Instructions().prompts("train")
    few = Instructions(limit=10).prompts("train")
    assert len(few) == 10 and few == task.prompts("train")[::100]


def test_targets(tmp_path: Path) -> None:
    task = _task(tmp_path, OWN, PROSE)
    with_target, without = task.prompts("train")
    assert task.target(with_target) == "GOOD DAY FRIEND"
    with pytest.raises(CreditlibError, match="has no target; a warm start needs"):
        task.target(without)


# ------------------------------------------------------------------ verifier information


@pytest.mark.parametrize("style", ["chat", "text"])
def test_leaving_a_listed_constraint_out_takes_its_line_away_and_nothing_else(style: Any) -> None:
    task = Instructions(style=style)
    for prompt in task.prompts("train")[::50]:
        told = task.information(prompt, {})
        assert list(told) == list(task.reward_names[: len(prompt.reference["constraints"])])
        assert task.render(prompt, told) == prompt
        lines = _body(prompt).split("\n")
        assert len(lines) - (2 if style == "text" else 0) == 1 + len(told)
        for slot, text in told.items():
            rest = {key: value for key, value in told.items() if key != slot}
            left = list(lines)
            left.remove(f"- {text}")
            assert _body(task.render(prompt, rest)).split("\n") == left
        assert _body(task.render(prompt, {})).startswith(prompt.reference["messages"][0]["content"])
        assert "\n-" not in _body(task.render(prompt, {}))


@pytest.mark.parametrize("row", [PROSE, {**OWN, "prose": True, "constraints": [COMMA, WORDS]}])
def test_prose_is_restated_and_leaving_one_out_takes_its_line_away(tmp_path: Path, row: Any) -> None:
    task = _task(tmp_path, row)
    (prompt,) = task.prompts("train")
    told = task.information(prompt, {})
    comma, words = told["constraint_1"], told["constraint_2"]
    assert comma == "Do not use any commas." and "3" in words
    assert _body(task.render(prompt, told)) == f"{row['prompt']}\nCheck: {comma}\nCheck: {words}"
    assert _body(task.render(prompt, {"constraint_2": words})) == f"{row['prompt']}\nCheck: {words}"
    assert task.render(prompt, {}) == prompt


def test_replays_tell_what_the_verifier_said(tmp_path: Path) -> None:
    task = _task(tmp_path, PROSE, OWN)
    prose, listed = task.prompts("train")
    checks = {"constraint_1": Check(1.0, info="Commas? None."), "constraint_2": Check(0.0)}
    assert task.information(prose, checks) == {"constraint_1": "Commas? None."}
    assert task.information(listed, checks)["constraint_1"] == "no commas"  # as its prompt has it


def test_the_order_of_told_constraints_is_the_lists(tmp_path: Path) -> None:
    task = _task(tmp_path, OWN)
    (prompt,) = task.prompts("train")
    told = task.information(prompt, {})
    assert task.render(prompt, dict(reversed(told.items()))) == prompt
    with pytest.raises(CreditlibError, match="has no reward constraint_4, only constraint_1, "):
        task.render(prompt, {"constraint_4": "x"})


def test_synthetic_examples_are_prompts_like_the_embedded_ones() -> None:
    task = Instructions(style="text")
    pairs = list(itertools.islice(task.synthetic(3), 600))
    numbers = [len(prompt.reference["constraints"]) for prompt, _ in pairs]
    assert min(numbers) == 4 and max(numbers) == 13
    assert pairs == list(itertools.islice(task.synthetic(3), 600))
    for prompt, target in pairs:
        assert target == task.target(prompt)
        assert task.render(prompt, task.information(prompt, {})) == prompt
    assert pairs != list(itertools.islice(task.synthetic(4), 600))
    with pytest.raises(CreditlibError, match=r"more than task\.slots=12: set task\.slots=13"):
        next(Instructions(slots=12).synthetic(3))


# ------------------------------------------------------------------ verdicts


def test_each_constraint_is_a_slot_with_its_kind(tmp_path: Path) -> None:
    task = _task(tmp_path, OWN, PROSE, slots=3)
    prompts = task.prompts("train")
    try:
        listed, prose = task.verify(prompts, ["GOOD, MY FRIEND", "hello"])
        scores = {slot: (check.kind, check.score) for slot, check in listed.items()}
        assert scores == {
            "constraint_1": (COMMA["id"], 0.0),
            "constraint_2": (WORDS["id"], 1.0),
            "constraint_3": (LOUD["id"], 1.0),
        }
        assert [check.score for check in prose.values()][:2] == [1, 0]
        assert prose["constraint_3"].kind == "" and math.isnan(prose["constraint_3"].score)
        task.close()
        task.close()
        assert task.verify(prompts[:1], ["GOOD DAY FRIEND"])[0]["constraint_1"].score == 1
    finally:
        task.close()


def test_slots_without_a_constraint_are_nan_in_the_reward_table(tmp_path: Path) -> None:
    import torch

    from creditlib.rewards.table import build_table
    from creditlib.types import Rollout

    task = _task(tmp_path, OWN, PROSE, slots=4)
    ids = torch.ones(2, 1)
    rollout = Rollout(
        prompts=tuple(task.prompts("train")), prompt_ids=((1,), (1,)), group_B=torch.tensor([0, 1]),
        ids_BT=ids.long(), mask_BT=ids.bool(), texts=("GOOD DAY FRIEND", "a, b"), sampler_logps_BT=ids,
        sampler_mass_BT=ids, finish=("stop", "stop"),
    )  # fmt: skip
    try:
        table = build_table(rollout, task)
    finally:
        task.close()
    assert table.scores_BK.nan_to_num(-1).tolist() == [[1, 1, 1, -1], [0, 0, -1, -1]]
    assert table.kind_BK == (
        (COMMA["id"], WORDS["id"], LOUD["id"], ""),
        (COMMA["id"], WORDS["id"], "", ""),
    )


def test_constraints_that_cannot_be_checked_are_counted_and_told(tmp_path: Path) -> None:
    impossible = {**WORDS, "kwargs": {"relation": "roughly", "num_words": 3}}
    row = {
        "prompt": "Greet me.",
        "constraints": [UNKNOWN, COMMA, impossible, {**UNKNOWN, "text": "Sparkle."}],
    }
    task = _task(tmp_path, row, slots=4)
    with pytest.warns(
        UserWarning, match=r"3 of 4 .*cannot be checked.*: there is no constraint 'magic:sparkle' \(2\)"
    ):
        (prompt,) = task.prompts("train")
    assert _body(prompt) == "Greet me.\n- no commas\n- Sparkle."
    told = task.information(prompt, {})
    assert told == {"constraint_2": "no commas", "constraint_4": "Sparkle."}
    assert task.render(prompt, told) == prompt
    try:
        (checks,) = task.verify([prompt], ["hello"])
    finally:
        task.close()
    assert [math.isnan(check.score) for check in checks.values()] == [True, False, True, True]
    assert checks["constraint_1"].flags == ("data:constraint",)
    assert checks["constraint_1"].kind == UNKNOWN["id"]


def test_arguments_that_no_answer_could_satisfy_are_told_before_the_run(tmp_path: Path) -> None:
    blank = {"id": "keywords:existence", "kwargs": {"keywords": [" "]}}
    turned = {"id": "count:word_count_range", "kwargs": {"min_words": 9, "max_words": 2}}
    unread = {"id": "muldimif:content:keywords", "kwargs": {"text": "Be like a river."}}
    row = {"prompt": "x", "constraints": [blank, turned, unread, COMMA]}
    with pytest.warns(
        UserWarning, match=r"3 of 4 constraints cannot be checked.*keywords:existence: a keyword"
    ):
        _task(tmp_path, row, slots=4).prompts("train")


def test_a_file_of_which_nothing_can_be_checked_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CreditlibError, match=r"none of its 2 constraints can be checked: there is no constr"):
        _task(tmp_path, {"prompt": "x", "constraints": [UNKNOWN, UNKNOWN]}).prompts("train")


def test_all_is_checked_where_all_is_known(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _task(tmp_path, OWN, PROSE).prompts("train")


def test_contradictory_constraints_are_both_checked(tmp_path: Path) -> None:
    row = {"prompt": "x", "constraints": [LOUD, {"id": "change_case:english_lowercase", "kwargs": {}}]}
    task = _task(tmp_path, row, slots=2)
    try:
        (checks,) = task.verify(task.prompts("train"), ["GOOD DAY FRIEND"])
    finally:
        task.close()
    assert [check.score for check in checks.values()] == [1.0, 0.0]


def test_parts_of_a_response() -> None:
    text = '<<The sea>>\n- 12 boats, [name]\n***\n"P.S. *moon*"'
    found = [(text[span.start : span.end], span.part) for span in Instructions().parts(text)]
    assert found == [
        ("<<The sea>>", "title"), ("-", "bullet"), ("12", "number"), ("boats", "word"), (",", "mark"),
        ("[name]", "placeholder"), ("***", "divider"), ('"', "mark"), ("P", "word"), (".", "mark"),
        ("S", "word"), (".", "mark"), ("*", "mark"), ("moon", "word"), ("*", "mark"), ('"', "mark"),
    ]  # fmt: skip


@pytest.mark.usefixtures("no_garbage_collection")
@pytest.mark.parametrize("unit", ["[", "<<", "<<a", "*", "\n\n", "- ", "a", "1", "\ud800", "\x00", "مرحبا "])
def test_parts_take_linear_time(unit: str) -> None:
    text = unit * (50_000 // len(unit))
    task, start = Instructions(), time.process_time()
    found = task.parts(text)
    assert time.process_time() - start < 0.5
    assert all(a.end <= b.start for a, b in itertools.pairwise(found))


# ------------------------------------------------------------------ settings


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"style": "poem"}, r"task\.style to be one of chat, text; found 'poem'"),
        ({"wording": "long"}, r"task\.wording to be one of short, full; found 'long'"),
        ({"mode": "strict"}, r"task\.mode to be one of sound, official; found 'strict'"),
        ({"slots": 0}, r"task\.slots to be at least 1, found 0"),
        ({"limit": 0}, r"task\.limit to be at least 1, found 0"),
        ({"workers": 0}, r"task\.workers to be at least 1, found 0"),
        ({"seconds": 0}, r"task\.seconds to be more than 0, found 0"),
        ({"wall_seconds": -1.0}, r"task\.wall_seconds to be more than 0, found -1"),
        ({"evaluation": {"train": "train.jsonl"}}, "'train' is the training split's name"),
        ({"train": "nowhere.jsonl"}, r"nowhere\.jsonl is not there.*Set task\.data"),
        ({"evaluation": {"dev": "nowhere"}}, r"nowhere is not there.*task\.evaluation"),
        ({"data": "/nowhere"}, r"/nowhere/train\.jsonl is not there"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(CreditlibError, match=message):
        Instructions(**settings)


def test_an_unknown_split() -> None:
    with pytest.raises(CreditlibError, match="no split 'dev', only train, new_prompts, new_mixtures"):
        Instructions().prompts("dev")
    with pytest.raises(CreditlibError, match="no split 'train', only new_prompts"):
        Instructions(train=None).prompts("train")


def test_more_constraints_than_slots(tmp_path: Path) -> None:
    forty = {"prompt": "x", "constraints": [COMMA] * 40}
    with pytest.raises(
        CreditlibError,
        match=r"rows\.jsonl: 2 of 3 prompts have more constraints than task\.slots=2; number 3 has most\. "
        r"Set task\.slots=40",
    ):
        _task(tmp_path, PROSE, OWN, forty, slots=2).prompts("train")
    task = _task(tmp_path, OWN, forty, slots=40)
    try:
        _, checks = task.verify(task.prompts("train"), ["a", "b"])
        assert len(checks) == 40
    finally:
        task.close()


def test_a_prompt_without_constraints(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match="line 2: there are no constraints"):
        _task(tmp_path, OWN, {**OWN, "constraints": []}).prompts("train")


@pytest.mark.parametrize("name", ["instructions", "ifeval", "ifbench", "muldimif"])
def test_a_config_names_every_setting(name: str) -> None:
    settings = yaml.safe_load((configs_folder() / "task" / f"{name}.yaml").read_text())
    assert settings.pop("_target_") == "tasks.instructions.Instructions"
    assert settings["name"] == name
    assert set(settings) == {own.name for own in dataclasses.fields(Instructions)}


# ------------------------------------------------------------------ a run


@pytest.mark.slow
def test_a_step_of_training_on_the_embedded_prompts(tmp_path: Path) -> None:
    run = tmp_path / "run"
    subprocess.run(
        [sys.executable, "-m", "creditlib.train", "task=instructions", "credit=mrtpo", "trainer.steps=1",
         "trainer.prompts_per_step=2", "trainer.minibatches=1", "eval.limit=2", "log.progress=false",
         f"run.dir={run}"],
        check=True, timeout=300,
    )  # fmt: skip
    assert (run / "summary.json").is_file()
    (line, *_) = [json.loads(text) for text in (run / "metrics.jsonl").read_text().splitlines()]
    assert any("punctuation:no_comma" in key or "keywords:" in key for key in line)


# ------------------------------------------------------------------ real data

DATA = os.environ.get("CREDITLIB_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="CREDITLIB_DATA is not set: no public data to read")


@needs_data
@pytest.mark.parametrize(("name", "size"), [("ifeval", 541), ("ifbench", 300), ("muldimif", 1200)])
def test_public_prompts_are_asked_and_restated(name: str, size: int) -> None:
    settings = yaml.safe_load((configs_folder() / "task" / f"{name}.yaml").read_text())
    del settings["_target_"]
    task = Instructions(**{**settings, "data": f"{DATA}/instructions", "style": "chat"})
    prompts = task.prompts(name)
    assert len(prompts) == size
    for prompt in prompts:
        told = task.information(prompt, {})
        content = prompt.messages[-1]["content"]  # type: ignore[index]
        assert _body(task.render(prompt, told)) == "\n".join(
            [content, *(f"Check: {text}" for text in told.values())]
        )
    every = sum(len(prompt.reference["constraints"]) for prompt in prompts)
    worded = sum(len(task.information(prompt, {})) for prompt in prompts)
    assert worded >= 0.95 * every  # MulDimIF has a few that no careful reader could check


def test_every_form_becomes_a_prompt() -> None:
    row = as_row(PROSE)
    assert Instructions().compose(row, id="p").reference["lines"] is None
