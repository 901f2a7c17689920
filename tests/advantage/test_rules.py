"""The advantage rules: golden numbers, a slow oracle in plain Python, properties of the contract."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from creditlib import registry
from creditlib.advantage.gdpo import Gdpo
from creditlib.advantage.groups import apply_norm
from creditlib.advantage.grpo import Grpo
from creditlib.advantage.whitening import Whitening
from creditlib.types import Advantages, CreditlibError

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "advantages.json").read_text())
SCORES_BK = torch.tensor(GOLDEN["scores"], dtype=torch.float32)
GROUP_B = torch.tensor(GOLDEN["group"])
NAN = math.nan


def close(actual: Tensor, expected: Any, atol: float = 2e-6) -> None:
    torch.testing.assert_close(actual, torch.as_tensor(expected, dtype=actual.dtype), rtol=1e-5, atol=atol)


# ------------------------------------------------------------------------------------------------ golden


def test_gdpo_golden() -> None:
    columns = Gdpo(eps=1e-6, norm="none")(SCORES_BK, GROUP_B)
    close(columns.by_reward_BK, GOLDEN["gdpo_columns_eps_1e-6"])
    advantages = Gdpo()(SCORES_BK, GROUP_B)
    close(advantages.total_B, GOLDEN["gdpo_response"])
    assert (advantages.offset_B == 0).all()


def test_gdpo_token_golden() -> None:
    total_B = Gdpo(eps=1e-6, norm="token")(SCORES_BK, GROUP_B).total_B
    mask_BT = torch.arange(5) < torch.tensor(GOLDEN["lengths"])[:, None]
    tokens_BT = total_B[:, None].expand(8, 5)
    whitened_BT = Whitening.over(tokens_BT[mask_BT])(tokens_BT, mask_BT)
    expected_BT = torch.tensor(GOLDEN["gdpo_token_eps_1e-6"])[:, None].expand(8, 5).masked_fill(~mask_BT, 0.0)
    close(whitened_BT, expected_BT)


def test_grpo_golden() -> None:
    advantages = Grpo()(SCORES_BK, GROUP_B)
    close(advantages.total_B, GOLDEN["grpo"])
    assert (advantages.offset_B == 0).all()


def test_two_binary_rewards_are_what_gdpo_is_for() -> None:
    one, both = torch.tensor([[0.0, 0.0], [0.0, 1.0]]), torch.tensor([[0.0, 0.0], [1.0, 1.0]])
    scores_BK, group_B = torch.cat([one, both]), torch.tensor([0, 0, 1, 1])
    grpo_B = Grpo()(scores_BK, group_B).total_B
    gdpo_B = Gdpo()(scores_BK, group_B).total_B
    close(grpo_B[1], grpo_B[3], atol=1e-3)
    assert gdpo_B[3] > 1.9 * gdpo_B[1] > 0


# ------------------------------------------------------------------------------------------------ oracle


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def deviation(values: list[float], ddof: int = 1) -> float:
    if len(values) <= ddof:
        return 0.0
    return math.sqrt(sum((value - mean(values)) ** 2 for value in values) / (len(values) - ddof))


def batch_step(
    columns: list[list[float]], offset: list[float], valid: list[bool], eps: float
) -> list[list[float]]:
    totals = [sum(row) + extra for row, extra, ok in zip(columns, offset, valid, strict=True) if ok]
    mu, sigma = (mean(totals), deviation(totals)) if totals else (0.0, 0.0)
    return [
        [*(cell / (sigma + eps) for cell in row), (extra - mu) / (sigma + eps)]
        if ok
        else [0.0] * (len(row) + 1)
        for row, extra, ok in zip(columns, offset, valid, strict=True)
    ]


def slow_grpo(rule: Grpo, scores: list[list[float]], group: list[int]) -> list[list[float]]:
    """Rows of the parts and, last, the offset: a row adds up to the advantage of the summed reward."""
    rewards = len(scores[0])
    weights = rule.weights or (1.0,) * rewards
    valid = [not all(math.isnan(cell) for cell in row) for row in scores]
    total = [sum(w * r for w, r in zip(weights, row, strict=True) if not math.isnan(r)) for row in scores]
    ddof = 1 if rule.std == "sample" else 0
    batch_std = deviation([t for t, ok in zip(total, valid, strict=True) if ok], ddof)
    columns, offset = [], []
    for j in range(len(scores)):
        rows = [i for i in range(len(scores)) if group[i] == group[j] and valid[i]]
        totals = [total[i] for i in rows]
        if not valid[j] or len(rows) < 2 or max(totals) - min(totals) < 1e-6:
            columns.append([0.0] * rewards)
            offset.append(0.0)
            continue
        std = {"group": deviation(totals, ddof), "batch": batch_std, "none": 1.0 - rule.eps}[rule.scale]
        divisor = std + rule.eps if rule.floor is None else max(std, rule.floor)
        cells = []
        for k in range(rewards):
            column = [scores[i][k] for i in rows if not math.isnan(scores[i][k])]
            cells.append(
                0.0 if math.isnan(scores[j][k]) else weights[k] * (scores[j][k] - mean(column)) / divisor
            )
        columns.append(cells)
        offset.append((total[j] - mean(totals)) / divisor - sum(cells))
    if rule.norm == "response":
        return batch_step(columns, offset, valid, rule.eps)
    return [[*row, extra] for row, extra in zip(columns, offset, strict=True)]


def slow_gdpo(rule: Gdpo, scores: list[list[float]], group: list[int]) -> list[list[float]]:
    rewards = len(scores[0])
    weights = rule.weights or (1.0,) * rewards
    valid = [not all(math.isnan(cell) for cell in row) for row in scores]
    columns = []
    for j in range(len(scores)):
        cells = []
        for k in range(rewards):
            column = [scores[i][k] for i in range(len(scores)) if group[i] == group[j]]
            column = [score for score in column if not math.isnan(score)]
            if math.isnan(scores[j][k]) or max(column) == min(column):
                cells.append(0.0)
            else:
                cells.append(weights[k] * (scores[j][k] - mean(column)) / (deviation(column) + rule.eps))
        columns.append(cells)
    offset = [0.0] * len(scores)
    if rule.norm == "response":
        return batch_step(columns, offset, valid, rule.eps)
    return [[*row, 0.0] for row in columns]


@st.composite
def rollouts(draw: st.DrawFn) -> tuple[list[list[float]], list[int]]:
    """Scores with missing cells in quarters (exact in float32), and groups of any size in any order."""
    rewards = draw(st.integers(1, 3))
    cell = st.one_of(st.just(NAN), st.integers(-12, 12).map(lambda n: n / 4))
    scores = draw(st.lists(st.lists(cell, min_size=rewards, max_size=rewards), min_size=1, max_size=9))
    group = draw(st.lists(st.sampled_from([-7, 0, 3, 10**6]), min_size=len(scores), max_size=len(scores)))
    return scores, group


def as_rows(advantages: Advantages) -> Tensor:
    return torch.cat([advantages.by_reward_BK, advantages.offset_B[:, None]], 1)


WEIGHTS = (0.5, 2.0, -1.25)
RULES: list[Callable[[tuple[float, ...] | None], Any]] = [
    lambda weights: Grpo(weights),
    lambda weights: Grpo(weights, scale="batch"),
    lambda weights: Grpo(weights, scale="none"),
    lambda weights: Grpo(weights, std="population", floor=0.75),
    lambda weights: Grpo(weights, norm="response"),
    lambda weights: Gdpo(weights),
    lambda weights: Gdpo(weights, norm="none", eps=1e-2),
    lambda weights: Gdpo(weights, norm="token"),
]


@pytest.mark.parametrize("make", RULES)
@settings(max_examples=60, deadline=None)
@given(rollout=rollouts(), weighted=st.booleans())
def test_agrees_with_the_oracle(
    make: Any, rollout: tuple[list[list[float]], list[int]], weighted: bool
) -> None:
    scores, group = rollout
    rule = make(WEIGHTS[: len(scores[0])] if weighted else None)
    slow = slow_grpo if isinstance(rule, Grpo) else slow_gdpo
    close(as_rows(rule(torch.tensor(scores), torch.tensor(group))), slow(rule, scores, group), atol=1e-5)


# ------------------------------------------------------------------------------------------------ properties


@pytest.mark.parametrize("rule", [Grpo(), Grpo(scale="batch"), Grpo(norm="response"), Gdpo()], ids=str)
@settings(max_examples=40, deadline=None)
@given(rollout=rollouts(), seed=st.integers(0, 1000))
def test_what_changes_nothing(rule: Any, rollout: tuple[list[list[float]], list[int]], seed: int) -> None:
    scores_BK, group_B = torch.tensor(rollout[0]), torch.tensor(rollout[1])
    responses, rewards = scores_BK.shape
    result = as_rows(rule(scores_BK, group_B))
    assert result.dtype == torch.float32 and result.isfinite().all()

    order_B = torch.randperm(responses, generator=torch.Generator().manual_seed(seed))
    close(as_rows(rule(scores_BK[order_B], group_B[order_B])), result[order_B])
    close(as_rows(rule(scores_BK, 5 - 2 * group_B)), result)
    if not scores_BK.isnan().any():  # shifting a reward that some rows lack does change their sum
        close(as_rows(rule(scores_BK + 8.0, group_B)), result)
    nothing_1K = torch.full((1, rewards), NAN)
    more = as_rows(rule(torch.cat([scores_BK, nothing_1K]), torch.cat([group_B, group_B[:1]])))
    close(more[:-1], result, atol=0)
    assert (more[-1] == 0).all()


@pytest.mark.parametrize("rule", [Grpo(), Grpo(eps=1e-8), Gdpo(), Gdpo(eps=1e-8), Gdpo(norm="none")], ids=str)
@pytest.mark.parametrize("value", [0.1, 0.3, 1e6, -3.7])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_constant_and_single_groups_are_exactly_zero(rule: Any, value: float, dtype: torch.dtype) -> None:
    scores_BK = torch.full((8, 2), value, dtype=dtype)
    scores_BK[7] = torch.tensor([5.0, 6.0])  # alone in its group
    scores_BK = torch.cat([scores_BK, torch.tensor([[0.0, 1.0], [1.0, 0.5]], dtype=dtype)])
    group_B = torch.tensor([4] * 7 + [9, 2, 2])
    result = as_rows(replace(rule, weights=(1 / 3, 0.7))(scores_BK, group_B))
    assert (result[:8] == 0).all()
    assert (result[8:, :2] != 0).all()


@pytest.mark.parametrize("rule", [Grpo(), Grpo(scale="batch"), Gdpo()], ids=str)
def test_all_groups_flat(rule: Any) -> None:
    assert (as_rows(rule(torch.full((8, 3), 0.1), torch.arange(8) // 4)) == 0).all()


@pytest.mark.parametrize("rule", [Grpo(), Gdpo()], ids=str)
def test_nothing_to_score(rule: Any) -> None:
    assert (as_rows(rule(torch.full((4, 2), NAN), torch.zeros(4, dtype=torch.int64))) == 0).all()
    assert as_rows(rule(torch.zeros(0, 2), torch.zeros(0, dtype=torch.int64))).shape == (0, 3)


def test_rewards_that_cancel_up_to_rounding_are_flat() -> None:
    """0.1 + 0.2 is not 0.3 in float32; the parts must not be divided by that difference."""
    scores_BK = torch.tensor([[0.1, 0.2], [0.3, 0.0], [0.2, 0.1], [0.0, 0.3]])
    assert (as_rows(Grpo()(scores_BK, torch.zeros(4, dtype=torch.int64))) == 0).all()


def test_a_missing_reward_leaves_the_total_of_grpo_alone() -> None:
    """The summed rewards are 1, 1 and 0: the first two rows earn the same, whatever their rewards are."""
    scores_BK = torch.tensor([[1.0, NAN], [0.0, 1.0], [0.0, 0.0]])
    advantages = Grpo()(scores_BK, torch.zeros(3, dtype=torch.int64))
    assert advantages.by_reward_BK[0, 1] == 0
    assert advantages.total_B[0] == pytest.approx(float(advantages.total_B[1]))
    assert advantages.total_B.sum() == pytest.approx(0, abs=1e-6)


def test_a_single_reward_keeps_the_batch_step() -> None:
    scores_BK = torch.tensor([[0.0], [1.0], [0.0], [10.0]])
    total_B = Gdpo()(scores_BK, torch.tensor([0, 0, 1, 1])).total_B
    assert float(total_B.std()) == pytest.approx(1, abs=1e-3)
    assert float(Gdpo(norm="none")(scores_BK, torch.tensor([0, 0, 1, 1])).total_B.std()) == pytest.approx(
        0.8164, abs=1e-3
    )


def test_a_batch_mean_becomes_the_offset() -> None:
    """Totals 1, 2 and 6 have mean 3 and variance 7; the last row has no reward."""
    columns_BK = torch.tensor([[1.0, 0.0], [1.0, 1.0], [4.0, 2.0], [0.0, 0.0]], dtype=torch.float64)
    valid_B = torch.tensor([True, True, True, False])
    advantages = apply_norm(columns_BK, torch.zeros(4), valid_B, "response", 1e-4)
    scale = 1 / (math.sqrt(7) + 1e-4)
    close(advantages.by_reward_BK, (columns_BK * scale).float())
    close(advantages.offset_B, [-3 * scale] * 3 + [0])


def test_integer_scores_are_welcome() -> None:
    close(Gdpo()(torch.tensor(GOLDEN["scores"]), GROUP_B).total_B, GOLDEN["gdpo_response"])


@pytest.mark.parametrize("rule", [Grpo, Gdpo])
def test_wrong_input_is_named(rule: Any) -> None:
    with pytest.raises(CreditlibError, match="each of the 2 rewards, found 3"):
        rule(weights=(1.0, 1.0, 1.0))(SCORES_BK, GROUP_B)
    with pytest.raises(CreditlibError, match="group ids"):
        rule()(SCORES_BK, GROUP_B[:-1])
    with pytest.raises(CreditlibError, match="reward 1 is infinite"):
        rule()(torch.tensor([[0.0, math.inf]]), torch.tensor([0]))
    with pytest.raises(CreditlibError, match="at least one reward"):
        rule()(torch.zeros(4, 0), torch.zeros(4))
    with pytest.raises(CreditlibError, match="eps"):
        rule(eps=0.0)


def test_impossible_floor() -> None:
    with pytest.raises(CreditlibError, match="floor"):
        Grpo(floor=0.0)
    with pytest.raises(CreditlibError, match="scale=none"):
        Grpo(floor=1.0, scale="none")


@pytest.mark.parametrize("name", ["grpo", "gdpo"])
def test_rounding_of_a_constant_reward_is_no_spread(name: str) -> None:
    """One float32 step within a group would be blown up to an advantage of 1 where all else is flat."""
    scores_BK = torch.tensor([[0.3, 0.5], [0.3, 0.5], [0.3, 0.5], [0.3, 0.5]])
    scores_BK[1, 0] = torch.nextafter(scores_BK[1, 0], torch.tensor(1.0))
    advantages = registry.build("advantage", name)(scores_BK, torch.zeros(4, dtype=torch.long))
    assert advantages.total_B.abs().max() < 1e-3


@pytest.mark.parametrize("name", ["grpo", "gdpo"])
@pytest.mark.parametrize("weight", [math.nan, math.inf])
def test_weights_must_be_numbers(name: str, weight: float) -> None:
    with pytest.raises(CreditlibError, match=r"weights must be .* found \(1.0, (nan|inf)\)"):
        registry.build("advantage", name, weights=(1.0, weight))
    with pytest.raises(CreditlibError, match="weights must be finite"):
        registry.get("advantage", name)(weights=(1.0, weight))
