"""Controls keep what they promise to keep, and nothing else."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from creditlib.config import Control
from creditlib.credit.controls import Controlled, random_band
from creditlib.types import Advantages, TokenCredit

LENGTHS = [6, 1, 4, 6, 3, 5]


class Fixed:
    """Weights of mean one over each response, and a bonus."""

    needs = frozenset({"policy"})

    def assign(self, context: SimpleNamespace) -> TokenCredit:
        mask_BT = context.rollout.mask_BT
        generator = torch.Generator().manual_seed(1)
        raw_BKT = torch.rand(len(mask_BT), 2, mask_BT.shape[1], generator=generator) * mask_BT[:, None]
        weights_BKT = raw_BKT / raw_BKT.sum(2, keepdim=True) * mask_BT.sum(1)[:, None, None]
        bonus_BT = torch.rand(mask_BT.shape, generator=generator) * mask_BT
        return TokenCredit.combine(
            context.advantages, weights_BKT, mask_BT, bonus_BT=bonus_BT, diagnostics={"x": 1.0}
        )


def world(groups: list[int] | None = None, step: int = 3) -> SimpleNamespace:
    mask_BT = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]
    groups = groups or [0, 0, 0, 1, 1, 1]
    generator = torch.Generator().manual_seed(2)
    return SimpleNamespace(
        advantages=Advantages(torch.randn(len(LENGTHS), 2, generator=generator), torch.zeros(len(LENGTHS))),
        rollout=SimpleNamespace(
            mask_BT=mask_BT,
            names=[("ab"[group], groups[:b].count(group)) for b, group in enumerate(groups)],
        ),
        step=step,
    )


def controlled(control: Control, context: SimpleNamespace, seed: int = 0) -> TokenCredit:
    return Controlled(Fixed(), control, seed).assign(context)  # type: ignore[arg-type]


def rows(x_BT: Tensor) -> list[list[float]]:
    return [row[:length].tolist() for row, length in zip(x_BT, LENGTHS, strict=True)]


def test_shuffling_keeps_the_weights_of_a_response() -> None:
    context = world()
    plain, control = Fixed().assign(context), controlled("shuffled", context)
    for k in range(2):
        before, after = rows(plain.weights_BKT[:, k]), rows(control.weights_BKT[:, k])
        assert [sorted(row) for row in before] == [sorted(row) for row in after]
        assert before != after
    assert plain.bonus_BT is not None and control.bonus_BT is not None
    assert [sorted(row) for row in rows(plain.bonus_BT)] == [sorted(row) for row in rows(control.bonus_BT)]
    by_reward_BK = context.advantages.by_reward_BK
    want = (by_reward_BK[:, :, None] * control.weights_BKT).sum(1) + control.bonus_BT
    torch.testing.assert_close(control.advantages_BT, want * context.rollout.mask_BT)
    assert control.diagnostics == {"x": 1.0}


def test_rewards_steps_and_seeds_are_shuffled_apart() -> None:
    def order(seed: int, step: int, k: int) -> list[list[float]]:
        return rows(controlled("shuffled", world(step=step), seed).weights_BKT[:, k])

    assert order(0, 3, 0) == order(0, 3, 0)
    assert order(0, 3, 0) != order(1, 3, 0)
    assert order(0, 3, 0) != order(0, 4, 0)


def test_each_reward_and_each_response_has_an_order_of_its_own() -> None:
    """The same weights everywhere, so that a common order would show."""
    context = world()
    context.rollout.mask_BT[:] = True
    weights_BKT = torch.arange(6.0).expand(6, 2, 6)
    fixed = SimpleNamespace(
        needs=frozenset(),
        assign=lambda context: TokenCredit.combine(context.advantages, weights_BKT, context.rollout.mask_BT),
    )
    found = Controlled(fixed, "shuffled", 0).assign(context).weights_BKT  # type: ignore[arg-type]
    orders = {tuple(found[b, k].tolist()) for b in range(6) for k in range(2)}
    assert len(orders) == 12


def test_weights_that_know_nothing_are_made_of_nothing() -> None:
    context = world()
    told = SimpleNamespace(
        needs=frozenset(),
        assign=lambda context: dataclasses.replace(
            Fixed().assign(context), relevance_BKT=torch.ones(6, 2, 6)
        ),
    )
    assert Controlled(told, "shuffled", 0).assign(context).relevance_BKT is None  # type: ignore[arg-type]


def test_a_response_is_shuffled_alike_wherever_it_stands() -> None:
    """Its prompt and its number among the responses to it decide, not its row."""
    context = world([0, 0, 0, 1, 1, 1])
    together = Controlled(Fixed(), "shuffled", 0)._draws(3, "0", ("b", 1), 4, torch.device("cpu"))
    again = Controlled(Fixed(), "shuffled", 0)._draws(3, "0", ("b", 1), 6, torch.device("cpu"))
    assert torch.equal(together, again[:4])
    swapped = controlled("shuffled", world([1, 1, 1, 0, 0, 0]))
    assert rows(swapped.weights_BKT[:, 0]) != rows(controlled("shuffled", context).weights_BKT[:, 0])


def test_uniform_is_one() -> None:
    context = world()
    control = controlled("uniform", context)
    assert (control.weights_BKT[context.rollout.mask_BT[:, None].expand(-1, 2, -1)] == 1).all()


def test_the_random_band_stays_within_it_with_the_same_mean() -> None:
    context = world()
    plain, control = Fixed().assign(context), controlled("random_band", context)
    for k in range(2):
        for before, after in zip(rows(plain.weights_BKT[:, k]), rows(control.weights_BKT[:, k]), strict=True):
            assert min(before) - 1e-6 <= min(after) and max(after) <= max(before) + 1e-6
            assert sum(after) == pytest.approx(sum(before), abs=1e-5)


@given(st.lists(st.tuples(st.floats(0, 10), st.floats(0.001, 0.999)), min_size=1, max_size=12))
@settings(max_examples=500, deadline=None)
def test_random_bands(pairs: list[tuple[float, float]]) -> None:
    weights, draws = (torch.tensor(column, dtype=torch.float64) for column in zip(*pairs, strict=True))
    found = random_band(weights, draws)
    assert found.mean().item() == pytest.approx(weights.mean().item(), abs=1e-9)
    assert weights.min() - 1e-9 <= found.min() and found.max() <= weights.max() + 1e-9


def test_needs_are_those_of_the_strategy() -> None:
    assert Controlled(Fixed(), "shuffled", 0).needs == {"policy"}  # type: ignore[arg-type]
