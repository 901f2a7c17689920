"""The order of prompts, and dynamic sampling."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch

from creditlib.rewards.judge import Judge
from creditlib.trainer.collect import Collected, Collector
from creditlib.trainer.metrics import Stopwatch
from creditlib.trainer.processes import Processes
from creditlib.trainer.prompts import PromptStream, check_lengths, training_prompts
from creditlib.types import Check, CreditlibError, Prompt, Rollout
from tests.trainer import world


def test_every_prompt_once_an_epoch() -> None:
    prompts = world.prompts(7)
    stream = PromptStream(prompts, seed=3)
    drawn = [prompt.id for _ in range(7) for prompt in stream.take(3)]
    epochs = [drawn[start : start + 7] for start in (0, 7, 14)]
    assert all(sorted(epoch) == sorted(prompt.id for prompt in prompts) for epoch in epochs)
    assert epochs[0] != epochs[1]
    assert drawn[:7] != [prompt.id for prompt in PromptStream(prompts, seed=4).take(7)]


def test_a_position_is_all_that_resuming_needs() -> None:
    whole = PromptStream(world.prompts(7), seed=3)
    expected = [prompt.id for prompt in whole.take(30)]
    for position in (0, 5, 7, 20):
        resumed = PromptStream(world.prompts(7), seed=3)
        resumed.position = position
        assert [prompt.id for prompt in resumed.take(30 - position)] == expected[position:]


def test_no_prompts() -> None:
    with pytest.raises(CreditlibError, match=r"task words has no training prompts.*task\.\*"):
        training_prompts(world.Words(0))


def test_prompts_that_are_too_long_are_counted() -> None:
    prompts = world.prompts(4)
    check_lengths(prompts, [3, 9, 10, 5], 10, "", "")
    with pytest.raises(CreditlibError) as caught:
        check_lengths(prompts, [3, 9, 10, 5], 8, "its limit", "Raise it")
    assert str(caught.value) == (
        "2 of 4 training prompts are longer than 8 tokens, its limit. "
        "The longest, 'train/2', has 10. Raise it"
    )


class ByNumber(world.Words):
    """All responses to a prompt whose number is `flat` earn the same; those to the others earn (1, 0) and
    (0, 1), whose sum does not vary."""

    reward_names = ("even", "short")

    def __init__(self, flat: Any, count: int = 12) -> None:
        super().__init__(count)
        self._flat = flat

    def verify(self, prompts: Any, texts: Any) -> list[dict[str, Check]]:
        places: Counter[str] = Counter()
        findings = []
        for prompt in prompts:
            first = places[prompt.id] % 2 == 0 or self._flat(number(prompt))
            places[prompt.id] += 1
            findings.append({"even": Check(float(first)), "short": Check(float(not first))})
        return findings


def number(prompt: Prompt) -> int:
    return int(prompt.id.split("/")[1].split("#")[0])


def collect(task: Any, step: int = 1, engine: Any = None, **settings: Any) -> Collected:
    run = world.config(trainer__dynamic_sampling=True, **settings)
    stream = PromptStream(task.prompts("train"), 0)
    weights = [1.0] * len(task.reward_names)
    collector = Collector(
        engine or world.Scripted(),
        Judge(task, {}),
        stream,
        run.trainer,
        Processes(),
        weights,
    )
    return collector.collect(step, Stopwatch())


def check_alignment(found: Collected, task: Any) -> None:
    """Every row still has the reward, the tokens and the group that it was sampled with."""
    rollout = found.rollout
    assert sorted(set(rollout.group_B.tolist())) == list(range(len(rollout.prompts)))
    assert len(found.batch.group_B) == len(rollout.texts) == len(found.table.checks)
    for n, prompt in enumerate(rollout.prompts):
        alone = world.Scripted().generate([prompt], samples=4, step=1)
        rows = [row for row, group in enumerate(rollout.group_B.tolist()) if group == n]
        assert [rollout.texts[row] for row in rows] == list(alone.texts)
        lengths = rollout.lengths_B[rows].tolist()
        assert [rollout.ids_BT[r, :length].tolist() for r, length in zip(rows, lengths, strict=True)] == [
            alone.ids_BT[i, :length].tolist() for i, length in enumerate(alone.lengths_B.tolist())
        ]
        expected = [
            [check.score for check in finding.values()] for finding in task.verify([prompt] * 4, alone.texts)
        ]
        assert found.table.scores_BK[rows].tolist() == expected
    assert found.batch.scores_BK[found.batch.local_B].tolist() == found.table.scores_BK.tolist()


def test_groups_are_judged_by_each_reward_and_not_by_the_sum() -> None:
    task = ByNumber(lambda n: n % 3 == 0)
    found = collect(task)
    assert len(found.rollout.prompts) == 4
    assert not any(number(prompt) % 3 == 0 for prompt in found.rollout.prompts)
    assert found.table.scores_BK.sum(1).unique().tolist() == [1.0]  # no spread of the sum anywhere
    assert found.drawn == 8
    check_alignment(found, task)
    drawn = PromptStream(task.prompts("train"), 0).take(8)
    assert [p.id for p in found.rollout.prompts] == [p.id for p in drawn if number(p) % 3][:4]


def test_it_gives_up_after_max_resamples() -> None:
    task = ByNumber(lambda n: n != 5)
    found = collect(task, trainer__max_resamples=3)
    assert found.drawn == 16
    assert {number(prompt) for prompt in found.rollout.prompts} == {5}
    check_alignment(found, task)
    nothing = collect(ByNumber(lambda n: True), trainer__max_resamples=1)
    assert nothing.drawn == 8 and len(nothing.rollout.prompts) == 4


def test_a_step_with_fewer_groups_than_minibatches() -> None:
    run = world.config(trainer__dynamic_sampling=True, trainer__minibatches=4, trainer__max_resamples=2)
    trainer = world.trainer(run, world.policy(), task=ByNumber(lambda n: n not in (5, 6)))
    metrics = trainer.step(1)  # 12 prompts in all, each once
    assert metrics["updates"] == 2 and metrics["prompts_drawn"] == 12


def test_a_prompt_drawn_twice_in_a_step_gets_other_responses() -> None:
    """Also in a later round of dynamic sampling; random streams hang on the prompt's id and the step."""
    asked: list[str] = []

    class Listening(world.Scripted):
        def generate(self, prompts: Any, **settings: Any) -> Rollout:
            asked.extend(prompt.id for prompt in prompts)
            return super().generate(prompts, **settings)

    task = ByNumber(lambda n: True, count=3)
    collect(task, engine=Listening(), trainer__max_resamples=1)
    assert len(asked) == len(set(asked)) == 8
    assert {"train/0", "train/1", "train/2", "train/0#2", "train/1#2", "train/2#2"} < set(asked)


def test_zero_spread_counts_the_groups_that_a_reward_applies_to() -> None:
    nan = float("nan")
    scores = torch.tensor([[1.0, nan], [0.0, nan], [1.0, 0.5], [1.0, 0.5], [0.0, 0.5], [0.0, nan]])
    found = collect(ByNumber(lambda n: False), trainer__prompts_per_step=3)
    batch = found.batch
    rows = {"scores_BK": scores, "group_B": torch.tensor([0, 0, 1, 1, 2, 2]), "kind_BK": batch.kind_BK[:6]}
    changed = type(batch)(**{**vars(batch), **rows})
    metrics = changed.metrics()
    assert metrics["zero_spread/even"] == pytest.approx(2 / 3)
    assert metrics["zero_spread/short"] == 1.0
    assert metrics["reward/short"] == 0.5
    assert changed.varying_groups([1.0, 1.0]) == [0]
