"""Warm-start batches cover every example once, and their loss is the mean over response tokens."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch

from creditlib.config import SftSettings
from creditlib.policy.scoring import Scorer
from creditlib.trainer.supervised import Budget, Example, Supervised, batches, families

SCHEMA_A, SCHEMA_B = tuple(range(3, 23)), tuple(range(30, 50))


def examples(count: int = 12) -> list[Example]:
    """Questions about two databases, in turn."""
    made = []
    for i in range(count):
        schema = SCHEMA_A if i % 2 else SCHEMA_B
        made.append(Example((*schema, 50 + i % 5, 51), (4 + i, 5 + i % 3, *range(6, 6 + i % 4), 2)))
    return made


def test_families_are_prompts_with_a_long_common_beginning() -> None:
    found = families([*examples(6), Example((9, 8, 7), (1,))])
    assert sorted(map(sorted, found)) == [[0, 2, 4], [1, 3, 5], [6]]


@pytest.mark.parametrize("batch, micro_tokens", [(1, 10), (4, 64), (5, 1000), (100, 1000)])
def test_an_epoch_gives_every_example_once(batch: int, micro_tokens: int) -> None:
    made = examples(23)
    epoch = list(batches(made, batch=batch, micro_tokens=micro_tokens, generator=random.Random(0)))
    assert sorted(i for trees in epoch for tree in trees for i in tree) == list(range(23))
    for trees in epoch:
        for tree in trees:
            assert len(tree) <= batch
            assert len({made[i].prompt[0] for i in tree}) == 1, "a tree holds one family"


def oracle(model: Any, made: list[Example], *, whole: bool) -> torch.Tensor:
    """Mean negative log-likelihood, one example at a time."""
    total, tokens = torch.zeros((), dtype=torch.float64), 0
    for example in made:
        first = 1 if whole else len(example.prompt)
        log_p = torch.log_softmax(model(input_ids=torch.tensor([example.ids])).logits[0], -1)
        for t in range(first, len(example.ids)):
            total = total - log_p[t - 1, example.ids[t]]
            tokens += 1
    return total / tokens


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("micro_tokens", [30, 4096])
def test_the_loss_is_the_mean_over_the_batch(make_model, whole: bool, micro_tokens: int) -> None:
    model, made = make_model("llama"), examples()
    settings = SftSettings(micro_tokens=micro_tokens, learning_rate=1e-3)
    with torch.no_grad():
        want = oracle(model, made, whole=whole).item()
    supervised = Supervised(Scorer(model), settings)
    trees = [[0, 2, 4, 6], [1, 3], [5, 7, 8, 9, 10, 11]]  # sharing changes nothing, nor does its lack
    metrics = supervised.update(made, trees, 0.5, whole=whole)
    assert metrics["loss"] == pytest.approx(want, rel=1e-9)
    with torch.no_grad():
        assert oracle(model, made, whole=whole).item() < want, "an update lowers the loss"


def test_the_rate_warms_up_and_decays_to_nothing(make_model) -> None:
    supervised = Supervised(Scorer(make_model("llama")), SftSettings(learning_rate=1.0, warmup_share=0.1))
    made = examples(2)
    rates = [supervised.update(made, [[0], [1]], p)["learning_rate"] for p in (0.0, 0.05, 0.1, 0.55, 1.0)]
    assert rates[0] < rates[1] < rates[2] == pytest.approx(1.0)
    assert rates[3] == pytest.approx(0.5) and rates[4] == 0.0


def test_a_budget_of_minutes_ends_before_the_updates_do(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("creditlib.trainer.supervised.time.monotonic", lambda: now[0])
    budget = Budget(100, 2.0)
    assert budget.progress(10) == 0.1
    now[0] = 60.0
    assert budget.progress(10) == 0.5
    assert Budget(100, None).progress(100) == 1.0
