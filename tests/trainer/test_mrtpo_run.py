"""MRTPO within a run: strength zero is GDPO, controls keep what they keep, unfit tasks are told at once."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import torch

from creditlib.credit.controls import Controlled
from creditlib.credit.mrtpo import OUTCOMES
from creditlib.trainer.contexts import TaskContexts
from creditlib.trainer.progress import credit_note
from creditlib.types import Check, CreditlibError, Prompt, Replay, ReplayTask, Rollout
from tasks.simple import SimpleTask
from tests.trainer import world


def run_of(folder: Path | None = None, **settings: Any) -> world.Trainer:
    return world.trainer(world.config(**settings), world.policy(), task=world.Informed())


SETTINGS = {"trainer__minibatches": 2, "trainer__epochs": 2}


def test_strength_zero_makes_the_updates_of_gdpo_bit_for_bit() -> None:
    (uniform, plain), (mrtpo, metrics) = (
        world.updates_of(run_of(**settings, **SETTINGS), 2)
        for settings in ({"credit": "uniform"}, {"credit": "mrtpo", "credit__beta": 0.0})
    )
    assert len(uniform) == len(mrtpo) == 8
    assert all(torch.equal(one, other) for one, other in zip(uniform, mrtpo, strict=True))
    for one, other in zip(plain, metrics, strict=True):
        assert one == {key: value for key, value in other.items() if key in one}
        assert other["credit/by_relevance/even"] > 0


def test_weights_change_the_updates_and_are_reported() -> None:
    (uniform, _), (mrtpo, (metrics,)) = (
        world.updates_of(run_of(credit=name, **SETTINGS)) for name in ("uniform", "mrtpo")
    )
    assert not torch.equal(uniform[0], mrtpo[0])
    assert metrics["credit/distance/even"] > 1e-3 > metrics["credit/floor"]
    assert metrics["credit/ess"] < 1 < metrics["credit/max_weight"]
    assert metrics["credit/no_information/rare"] > 0 == metrics["credit/by_relevance/rare"]


@pytest.mark.parametrize("micro_batch", [1, 3])
def test_micro_batches_change_nothing(micro_batch: int) -> None:
    (whole, _), (pieces, _) = (
        world.updates_of(run_of(credit="mrtpo", trainer__micro_batch=size)) for size in (None, micro_batch)
    )
    assert world.relative(pieces[0], whole[0]) < 1e-10


def test_the_control_that_is_uniform_is_gdpo_and_the_shuffled_one_is_neither() -> None:
    updates = {
        control: world.updates_of(run_of(credit="mrtpo", credit__control=control))[0][0]
        for control in (None, "uniform", "shuffled", "random_band")
    }
    gdpo = world.updates_of(run_of(credit="uniform"))[0][0]
    assert torch.equal(updates["uniform"], gdpo)
    for control in ("shuffled", "random_band"):
        assert not torch.equal(updates[control], gdpo)
        assert not torch.equal(updates[control], updates[None])


def test_a_task_that_cannot_tell_is_refused_before_anything_runs() -> None:
    with pytest.raises(CreditlibError, match=r"credit=mrtpo .*`information` and `render`"):
        world.trainer(world.config(credit="mrtpo"), world.policy())


def test_a_context_that_does_not_fit_is_counted_and_the_rest_goes_on() -> None:
    policy = world.policy()
    policy.model.config.max_position_embeddings = 12
    run = world.trainer(world.config(credit="mrtpo"), policy, task=world.Informed())
    metrics = run.step(1)
    assert metrics["credit/overflow/even"] > 0
    assert metrics["credit/by_relevance/even"] > 0


def test_the_ledger_of_a_run(tmp_path: Path) -> None:
    run = world.config(tmp_path / "run", credit="mrtpo", ledger={"steps": 2, "responses": 3})
    with world.run_folder(run) as directory:
        world.trainer(run, world.policy(), task=world.Informed(), directory=directory).run()
    tokens = pq.read_table(tmp_path / "run" / "tokens.parquet")
    rows = [json.loads(line) for line in (tmp_path / "run" / "responses.jsonl").read_text().splitlines()]
    assert sorted({row["step"] for row in rows}) == [1, 4] and len(rows) == 6
    assert set(tokens["step"].to_pylist()) == {1, 4}
    table = tokens.to_pydict()
    for t in range(len(tokens)):
        earned = sum(table[f"advantage/{name}"][t] for name in world.Words.reward_names)
        offset = next(
            row["offset"]
            for row in rows
            if (row["step"], row["prompt"], row["response"])
            == (table["step"][t], table["prompt"][t], table["response"][t])
        )
        assert earned + offset == pytest.approx(table["advantage"][t], abs=1e-5)


# ------------------------------------------------------------------ contexts


def contexts(task: ReplayTask, rollout: Rollout, limit: int | None = None) -> TaskContexts:
    from creditlib.rewards.table import build_table

    encoder = world.PromptEncoder(world.tokenizer(), "text")
    return TaskContexts(rollout, build_table(rollout, task), task, encoder, limit)


def test_contexts_hold_what_is_told_and_the_response_as_sampled() -> None:
    task = world.Informed()
    rollout = world.Scripted().generate(task.prompts("train")[:2], samples=2, step=1)
    found = contexts(task, rollout)
    row = next(b for b in range(4) if found.informed(b))
    assert found.informed(row) == {"even", "short"}
    asked = rollout.prompt_ids[int(rollout.group_B[row])]
    response = tuple(rollout.ids_BT[row][rollout.mask_BT[row]].tolist())
    assert found.replay(row, frozenset()) == Replay(asked, response)
    assert found.replay(row, frozenset({"even"})) == Replay((*asked, 4, 6), response)
    short = contexts(task, rollout, limit=len(asked) + len(response))
    assert short.replay(row, frozenset()) is not None
    assert short.replay(row, frozenset({"even"})) is None


def test_a_simple_task_tells_what_its_checks_know() -> None:
    def reward(prompt: Prompt, response: str) -> Check:
        return Check(1.0, info="Answer in one word.")

    task = SimpleTask("mine", prompts=["Who?"], rewards={"short": reward, "plain": lambda prompt, text: 1.0})
    assert isinstance(task, ReplayTask)
    (prompt,) = task.prompts("train")
    (checks,) = task.verify([prompt], ["x"])
    told = task.information(prompt, checks)
    assert told == {"short": "Answer in one word."}
    assert task.render(prompt, {}) == prompt
    rendered = task.render(prompt, told)
    assert rendered.messages and rendered.messages[-1]["content"] == "Who?\nAnswer in one word."
    text = task.render(Prompt("id", "mine", text="Who?"), told)
    assert text.text == "Who?\nAnswer in one word."


def test_information_that_no_tokenizer_takes_is_mended() -> None:
    class Odd(world.Informed):
        def information(self, prompt: Prompt, checks: Mapping[str, Check]) -> dict[str, str]:
            return {"even": "w4 \ud800", "short": ""}

    run = world.trainer(world.config(credit="mrtpo"), world.policy(), task=Odd())
    metrics = run.step(1)
    assert metrics["credit/by_relevance/even"] > 0
    assert metrics["credit/no_information/short"] > 0  # an empty text tells nothing


def test_the_seed_of_a_control_is_the_runs() -> None:
    strategy = run_of(seed=7, credit="mrtpo", credit__control="shuffled").strategy
    assert isinstance(strategy, Controlled) and strategy.seed == 7


def test_rows_outside_the_loss_are_not_replayed_and_have_no_advantage(tmp_path: Path) -> None:
    settings = {"credit": "mrtpo", "trainer__mask_truncated": True, "trainer__steps": 1}
    run = world.config(tmp_path / "run", ledger={"steps": 1, "responses": 99}, **settings)
    with world.run_folder(run) as directory:
        trainer = world.trainer(run, world.policy(), task=world.Informed(), directory=directory)
        trainer.run()
    rows = [json.loads(line) for line in (tmp_path / "run" / "responses.jsonl").read_text().splitlines()]
    cut = [row for row in rows if row["finish"] == "length"]
    assert cut and all(row["advantage"] == 0 for row in cut)


def test_the_ledger_adds_up_under_token_whitening(tmp_path: Path) -> None:
    run = world.config(tmp_path / "run", credit="mrtpo", advantage__norm="token", trainer__steps=1)
    with world.run_folder(run) as directory:
        trainer = world.trainer(run, world.policy(), task=world.Informed(), directory=directory)
        trainer.run()
    tokens = pq.read_table(tmp_path / "run" / "tokens.parquet").to_pylist()
    rows = [json.loads(line) for line in (tmp_path / "run" / "responses.jsonl").read_text().splitlines()]
    offsets = {(row["prompt"], row["response"]): row["offset"] for row in rows if row["advantage"]}
    summed = 0
    for token in tokens:
        if (key := (token["prompt"], token["response"])) in offsets:
            parts = [token[f"advantage/{name}"] for name in ("even", "short", "rare")]
            assert sum(parts) + offsets[key] == pytest.approx(token["advantage"], abs=1e-5)
            summed += 1
    assert summed > 10


def test_a_resumed_run_forgets_the_steps_of_its_ledger_that_it_repeats(tmp_path: Path) -> None:
    settings = {"credit": "mrtpo", "trainer__steps": 3, "trainer__checkpoint_every": 1}

    def steps_of(folder: Path) -> list[int]:
        lines = (folder / "responses.jsonl").read_text().splitlines()
        return [json.loads(line)["step"] for line in lines]

    run = world.config(tmp_path / "run", **settings)
    with world.run_folder(run) as directory:
        world.trainer(run, world.policy(), task=world.Informed(), directory=directory).run()
    whole = steps_of(tmp_path / "run")
    shutil.rmtree(directory.folder(3))
    with world.run_folder(run) as directory:
        trainer = world.trainer(run, world.policy(), task=world.Informed(), directory=directory)
        assert trainer._resume() == 2
        assert set(steps_of(tmp_path / "run")) == {1, 2}
        trainer.run()
    assert steps_of(tmp_path / "run") == whole


def test_a_line_says_how_often_credit_went_by_relevance() -> None:
    rows = [
        {"step": 1, "credit/by_relevance/a": 0.5, "credit/distance/a": 0.01, "credit/by_relevance/b": 0.0},
        {"step": 2, "credit/by_relevance/a": 0.7, "credit/distance/a": None, "credit/by_relevance/b": 0.0},
    ]
    said = credit_note([*rows, {"step": 2, "credit/floor": 2e-7}])
    assert said == "responses whose credit went by relevance: a 60% (distance 0.01), b 0%; noise floor 2e-07"
    assert credit_note([{"step": 1, "credit/ess": 1.0}]) == ""


class Slots(world.Informed):
    """So many rewards, of which each prompt has only some: the others are NaN."""

    def __init__(self, rewards: int, applying: int) -> None:
        super().__init__()
        self.reward_names = tuple(f"c{k}" for k in range(rewards))  # type: ignore[assignment]
        self.bounds = dict.fromkeys(self.reward_names, (0.0, 1.0))
        self._applying = applying

    def _slots(self, prompt: Prompt) -> list[int]:
        first = int(prompt.id.rpartition("/")[2])
        return [(first + n) % len(self.reward_names) for n in range(self._applying)]

    def _judge(self, prompt: Prompt, words: list[str]) -> dict[str, Check]:
        return {f"c{k}": Check(float((len(words) + k) % 3 == 0)) for k in self._slots(prompt)}

    def information(self, prompt: Prompt, checks: Mapping[str, Check]) -> dict[str, str]:
        return {f"c{k}": f"w{10 + k} w5" for k in self._slots(prompt)}


@pytest.mark.parametrize(("rewards", "applying"), [(1, 1), (13, 2)])
@pytest.mark.parametrize("replay", ["leave_one_out", "add_one", "joint"])
def test_one_reward_and_many_that_mostly_do_not_apply(rewards: int, applying: int, replay: str) -> None:
    run = world.config(credit="mrtpo", credit__replay=replay)
    trainer = world.trainer(run, world.policy(), task=Slots(rewards, applying))
    gradients, (metrics,) = world.updates_of(trainer)
    assert all(gradient.isfinite().all() for gradient in gradients)
    shares = [metrics[f"credit/by_relevance/c{k}"] for k in range(rewards)]
    assert max(shares) > 0 and sum(shares) <= applying
    for k in range(rewards):
        assert sum(metrics[f"credit/{outcome}/c{k}"] for outcome in OUTCOMES) == pytest.approx(1)


def test_with_one_reward_all_kinds_of_replay_are_the_same() -> None:
    found = [
        world.updates_of(
            world.trainer(
                world.config(credit="mrtpo", credit__replay=replay), world.policy(), task=Slots(1, 1)
            )
        )[0][0]
        for replay in ("leave_one_out", "add_one", "joint")
    ]
    assert torch.equal(found[0], found[1]) and torch.equal(found[0], found[2])


def test_a_reward_that_is_the_same_everywhere_is_not_replayed() -> None:
    class Same(world.Informed):
        def _judge(self, prompt: Prompt, words: list[str]) -> dict[str, Check]:
            return {**super()._judge(prompt, words), "short": Check(1.0)}

    metrics = world.trainer(world.config(credit="mrtpo"), world.policy(), task=Same()).step(1)
    assert metrics["credit/no_advantage/short"] == 1
    assert "credit/distance/short" not in metrics and metrics["credit/by_relevance/even"] > 0
