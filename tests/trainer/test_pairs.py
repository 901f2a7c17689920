"""Learning from preference pairs: the loss by hand, that it learns, and how it is measured."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
import torch

from creditlib.config import PairSettings
from creditlib.policy.reward_scorer import RewardScorer, Text
from creditlib.trainer.pairs import (
    EncodedPair,
    PairTrainer,
    _micro_batches,
    calibration,
    encode_pairs,
    length_baseline,
    plan_pairs,
    ranking,
    report,
)
from creditlib.types import CreditlibError
from tasks.preference_data import Pair
from tests.conftest import random_reward_model
from tests.trainer import world


def pairs(count: int = 12, seed: int = 0) -> list[EncodedPair]:
    """Three pairs a prompt; the chosen answer holds more even tokens."""
    generator = random.Random(seed)

    def tokens(least: int, most: int, step: int = 1, start: int = 3) -> tuple[int, ...]:
        return tuple(generator.randrange(start, 61, step) for _ in range(generator.randint(least, most)))

    found = []
    for n in range(count):
        if n % 3 == 0:
            before = tokens(4, 9)
        found.append(EncodedPair(n // 3, Text(before, tokens(2, 6, 2, 4)), Text(before, tokens(2, 6, 2, 3))))
    return found


def values(model: Any, text: Text) -> torch.Tensor:
    """The oracle: the head on each token of an answer that stands alone."""
    ids = torch.tensor([[*text.before, *text.rest]])
    states = model.model(input_ids=ids, use_cache=False).last_hidden_state
    out: torch.Tensor = model.score(states)[0, len(text.before) :, 0]
    return out


def slow_loss(model: Any, own: list[EncodedPair], look_ahead: float, smoothness: float) -> torch.Tensor:
    total = torch.zeros((), dtype=torch.float64)
    for pair in own:
        chosen, rejected = values(model, pair.chosen), values(model, pair.rejected)
        total = total + torch.log1p(torch.exp(rejected[-1] - chosen[-1]))
        for value in (chosen, rejected):
            steps = range(len(value))
            ahead = sum((value[t] - value[-1].detach()) ** 2 for t in steps) / len(value)
            smooth = sum(
                ((value[t] - value[t + 1]) ** 2 for t in range(len(value) - 1)), start=torch.zeros(())
            )
            total = total + (look_ahead * ahead + smoothness * smooth / (len(value) - 1)) / 2
    return total / len(own)


@pytest.mark.parametrize("micro_tokens", [10, 40, 4096])
@pytest.mark.parametrize(("look_ahead", "smoothness"), [(0.0, 0.0), (0.3, 0.0), (0.1, 0.2)])
def test_the_update_is_that_of_the_loss(micro_tokens: int, look_ahead: float, smoothness: float) -> None:
    own = pairs()
    want, have = random_reward_model("llama"), random_reward_model("llama")
    loss = slow_loss(want, own, look_ahead, smoothness)
    loss.backward()
    norm = math.sqrt(sum(p.grad.square().sum().item() for p in want.parameters() if p.grad is not None))
    settings = PairSettings(
        micro_tokens=micro_tokens, look_ahead=look_ahead, smoothness=smoothness, max_grad_norm=1e9
    )
    metrics = PairTrainer(have, settings).update(own, 0.5)
    assert metrics["loss"] == pytest.approx(loss.item(), rel=1e-9)
    assert metrics["grad_norm"] == pytest.approx(norm, rel=1e-6)


def test_it_learns_and_ranks_pairs_it_has_not_seen() -> None:
    model = random_reward_model("llama", torch.float32)
    torch.nn.init.zeros_(model.score.weight)
    trainer = PairTrainer(model, PairSettings(learning_rate=3e-3, batch=12))
    train, held_out = pairs(240), pairs(60, seed=1)
    assert ranking(held_out, trainer.margins(held_out))["accuracy"] == 0.5  # a head of 0 ties them all
    planned = plan_pairs(train, PairSettings(epochs=4, batch=12), 0)
    for done, batch in enumerate(planned):
        trainer.update(batch, done / len(planned))
    found = report(train, held_out, trainer.margins(held_out))
    assert found["accuracy_low"] > 0.8
    assert found["gain_over_length_low"] > 0.2


def test_margins_do_not_depend_on_batches_and_are_the_scorers() -> None:
    model, own = random_reward_model("qwen3"), pairs()
    wide = PairTrainer(model, PairSettings()).margins(own)
    narrow = PairTrainer(model, PairSettings(micro_tokens=1)).margins(own)
    np.testing.assert_allclose(wide, narrow, rtol=1e-9)
    scores = [
        j.score for j in RewardScorer(model, "m").read([t for p in own for t in (p.chosen, p.rejected)])
    ]
    np.testing.assert_allclose(wide, np.array(scores[::2]) - np.array(scores[1::2]), rtol=1e-9)


def test_micro_batches_hold_every_pair_once() -> None:
    own = pairs(30)
    for tokens in (1, 30, 100, 10_000):
        found = list(_micro_batches(own, tokens))
        assert sorted(i for some in found for i in some) == list(range(30))
    assert len(list(_micro_batches(own, 1))) == 30 and len(list(_micro_batches(own, 10_000))) == 1


def test_plans_hold_every_pair_once_an_epoch() -> None:
    own = pairs(30)
    planned = plan_pairs(own, PairSettings(epochs=2, batch=7), 0)
    assert [len(batch) for batch in planned] == [7, 7, 7, 7, 2] * 2
    for epoch in (planned[:5], planned[5:]):
        assert sorted(id(pair) for batch in epoch for pair in batch) == sorted(map(id, own))
    assert (
        plan_pairs(own, PairSettings(batch=7), 0) == planned[:5] != plan_pairs(own, PairSettings(batch=7), 1)
    )
    assert len(plan_pairs(own, PairSettings(epochs=2, batch=7, max_steps=3), 0)) == 3


def test_calibration_by_hand() -> None:
    margins = np.log(np.array([3.0, 3.0, 3.0, 1 / 3]))  # sure to 75 %, right in three of four
    own = pairs(4)
    found = ranking(own, margins)
    assert found["accuracy"] == 0.75
    assert found["loss"] == pytest.approx((3 * math.log(4 / 3) + math.log(4)) / 4)
    assert found["calibration_error"] == pytest.approx(0.375)  # a bin a pair: off by 1/4, 1/4, 1/4 and 3/4
    even = calibration(np.tile(margins, 25))
    assert sum(row["pairs"] for row in even) == 100
    assert all(row["confidence"] == pytest.approx(0.75) for row in even)


def test_length_alone() -> None:
    def pair(chosen: int, rejected: int) -> EncodedPair:
        return EncodedPair(0, Text((), (3,) * chosen), Text((), (3,) * rejected))

    train = [pair(5, 2), pair(4, 1), pair(1, 3)]
    assert length_baseline(train, [pair(3, 1), pair(1, 3), pair(2, 2)]).tolist() == [1, 0, 0.5]
    shorter = [pair(1, 4), pair(2, 5), pair(3, 1)]
    assert length_baseline(shorter, [pair(3, 1), pair(1, 3), pair(2, 2)]).tolist() == [0, 1, 0.5]


def test_intervals_take_the_pairs_of_a_prompt_together() -> None:
    own = [EncodedPair(n // 10, Text((), (3,)), Text((), (4,))) for n in range(100)]
    margins = np.where(np.arange(100) // 10 % 2 == 0, 1.0, -1.0)  # right for half of the prompts
    apart = [EncodedPair(n, Text((), (3,)), Text((), (4,))) for n in range(100)]
    together, alone = ranking(own, margins), ranking(apart, margins)
    assert together["accuracy_low"] < together["accuracy"] == 0.5 < together["accuracy_high"]
    width = together["accuracy_high"] - together["accuracy_low"]
    uneven = [EncodedPair(max(0, n - 90), Text((), (3,)), Text((), (4,))) for n in range(100)]
    most = ranking(uneven, np.where(np.arange(100) < 91, 1.0, -1.0))  # 91 pairs of one prompt, right
    assert most["accuracy"] == 0.91 and most["accuracy_low"] <= 0.91 <= most["accuracy_high"]
    assert width > 2.5 * (alone["accuracy_high"] - alone["accuracy_low"])


def test_long_pairs_are_left_out_and_counted() -> None:
    tokenizer = world.tokenizer()
    asked = [
        Pair(({"role": "user", "content": "w7 w8"},), "w20", "w21 w22"),
        Pair(({"role": "user", "content": "w7 w8"},), "w20 w20 w20 w20", "w21"),
        Pair(({"role": "user", "content": "w9"},), "w20", "w21"),
    ]
    found, long = encode_pairs(asked, tokenizer, None)
    assert long == 0 and [pair.prompt for pair in found] == [0, 0, 1]
    assert found[0].chosen.rest == (20, world.EOS)
    found, long = encode_pairs(asked, tokenizer, 5)
    assert long == 1 and len(found) == 2


def test_updates_that_are_not_finite_stop_it() -> None:
    model = random_reward_model("llama")
    before = model.score.weight.clone()
    with torch.no_grad():
        model.score.weight[0, 0] = math.nan
    trainer = PairTrainer(model, PairSettings(max_skipped_updates=2))
    trainer.update(pairs(), 0.5)
    assert torch.equal(model.score.weight[0, 1:], before[0, 1:])
    with pytest.raises(CreditlibError, match="2 updates in a row"):
        trainer.update(pairs(), 0.5)
