"""DATC's allocation and strategy."""

from __future__ import annotations

import dataclasses
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from creditlib.credit.datc import OUTCOMES, Datc, allocate, allocate_rows
from creditlib.types import Advantages, CreditlibError, Directions, RewardReading


@pytest.mark.parametrize(
    ("advantage", "tau", "lam", "frozen", "temperature", "weights"),
    [
        (1.0, 1.0, 4.0, 0, 1.312423, [0.25, 0.390216, 0.609074, 0.950682, 1.483885, 2.316143]),
        (2.0, 0.5, 4.0, 1, 2.563459, [0.25, 0.433536, 0.751814, 1.303754, 2.260897, 1.0]),
        (-1.0, 1.0, 2.0, 0, 2.401440, [1.68793, 1.323359, 1.03753, 0.813437, 0.637745, 0.5]),
    ],
)
def test_golden_values(
    advantage: float, tau: float, lam: float, frozen: int, temperature: float, weights: list[float]
) -> None:
    free_BT = torch.arange(6)[None] < 6 - frozen
    score_BT = torch.arange(1.0, 7.0)[None]
    found = allocate_rows(score_BT, torch.tensor([advantage]), free_BT, tau=tau, lam=lam)
    assert found.weights_BT[0].tolist() == pytest.approx(weights, abs=6e-7)
    assert found.tau_B.item() == pytest.approx(temperature, abs=6e-7)


def test_golden_values_of_one_token_that_stands_out() -> None:
    found = allocate_rows(
        torch.tensor([[0.0] * 7 + [1.0]]),
        torch.tensor([1.0]),
        torch.ones(1, 8, dtype=torch.bool),
        tau=1.0,
        lam=4.0,
    )
    assert found.weights_BT[0].tolist() == pytest.approx([0.571429] * 7 + [4.0], abs=6e-7)
    assert found.tau_B.item() == pytest.approx(1.553295, abs=6e-7)


def slow(
    d: list[float], advantage: float, tau: float, lam: float, frozen: list[bool]
) -> tuple[list[float], float]:
    """The allocation of one response, written out."""
    free = [i for i, stays in enumerate(frozen) if not stays]
    largest = max((abs(d[i]) for i in free), default=0.0)
    flat = not free or min(d[i] for i in free) == max(d[i] for i in free)
    if advantage == 0 or flat or lam - 1 < np.finfo(np.float32).eps:
        return [1.0] * len(d), math.nan
    s = [d[i] / largest for i in free]
    mean = math.fsum(s) / len(s)
    std = math.sqrt(math.fsum((x - mean) ** 2 for x in s) / len(s))
    size = math.fsum(abs(x) for x in s) / len(s)
    u = [advantage * (x - mean) / (std + 1e-3 * size) for x in s]

    def weights(tau: float) -> list[float]:
        highest = max(x / tau for x in u)
        e = [math.exp(x / tau - highest) for x in u]
        return [len(u) * x / math.fsum(e) for x in e]

    def feasible(tau: float) -> bool:
        return all(1 / lam <= w <= lam for w in weights(tau))

    low = high = tau
    while not feasible(high):
        low, high = high, 2 * high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if feasible(middle) else (middle, high)
    found = [1.0] * len(d)
    for i, weight in zip(free, weights(high), strict=True):
        found[i] = weight
    return found, high


numbers = st.floats(-1e6, 1e6, allow_subnormal=False)


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    d = draw(st.lists(st.one_of(numbers, st.sampled_from([0.0, 1.0, -1.0, 1e-12])), min_size=1, max_size=12))
    return {
        "d": d,
        "advantage": draw(st.one_of(st.floats(-8, 8, width=32), st.sampled_from([0.0, 1e-9, -300.0]))),
        "tau": draw(st.sampled_from([0.1, 1.0, 3.0])),
        "lam": draw(st.sampled_from([1.0, 1.01, 2.0, 3.0, 4.0, 8.0, 1e6])),
        "frozen": draw(st.lists(st.booleans(), min_size=len(d), max_size=len(d))),
    }


@settings(max_examples=300, deadline=None)
@given(cases())
def test_band_sum_sign_mean_and_order(case: dict[str, Any]) -> None:
    d_T = torch.tensor(case["d"], dtype=torch.float64)
    frozen_T = torch.tensor(case["frozen"])
    advantage, lam = case["advantage"], case["lam"]
    weights_T = allocate(d_T, advantage, tau=case["tau"], lam=lam, frozen_T=frozen_T)
    assert (weights_T[frozen_T] == 1).all()
    assert weights_T.min() >= 1 / lam * (1 - 1e-6) and weights_T.max() <= lam * (1 + 1e-6)
    assert weights_T.double().sum().item() == pytest.approx(len(d_T), rel=2e-6)
    assert ((weights_T.double() * advantage).sign() == np.sign(advantage)).all()
    # Higher d earns no less of a positive advantage, and no more of a negative one.
    order = d_T[~frozen_T].argsort(stable=True, descending=advantage < 0)
    sorted_T = weights_T[~frozen_T][order]
    assert (sorted_T.diff() >= -1e-6 * sorted_T[1:]).all()


@pytest.mark.parametrize("lam", [1.01, 2.0, 4.0, 8.0, 100.0])
@pytest.mark.parametrize("tau", [0.1, 1.0])
def test_ten_thousand_random_responses(lam: float, tau: float) -> None:
    """The same of a thousand responses for each setting, of all scales and lengths."""
    generator = np.random.default_rng(round(100 * lam + 7 * tau))
    length_B = generator.integers(1, 65, 1000)
    free_BT = (np.arange(64) < length_B[:, None]) & (generator.random((1000, 64)) < 0.9)
    heavy_BT = generator.standard_cauchy((1000, 64)) * 10.0 ** generator.uniform(-8, 8, (1000, 1))
    score_BT = np.where(generator.random((1000, 1)) < 0.2, np.round(heavy_BT), heavy_BT)  # some are equal
    advantage_B = generator.standard_normal(1000) * 10.0 ** generator.uniform(-3, 2, 1000)
    found = allocate_rows(
        torch.from_numpy(score_BT),
        torch.from_numpy(advantage_B),
        torch.from_numpy(free_BT),
        tau=tau,
        lam=lam,
    )
    weights_BT = found.weights_BT.double().numpy()
    assert (weights_BT[~free_BT] == 1).all()
    assert (weights_BT >= (1 - 1e-6) / lam).all() and (weights_BT <= (1 + 1e-6) * lam).all()
    np.testing.assert_allclose((weights_BT * free_BT).sum(1), free_BT.sum(1), rtol=2e-6, atol=2e-6)
    order = np.argsort(
        np.where(free_BT, score_BT * np.sign(advantage_B)[:, None], np.inf), axis=1, kind="stable"
    )
    sorted_BT = np.take_along_axis(weights_BT, order, 1)
    rising = np.diff(sorted_BT) >= -1e-6 * sorted_BT[:, 1:]
    assert rising[np.arange(1, 64) < free_BT.sum(1)[:, None]].all()
    raised_B = found.tau_B.numpy() > tau
    at_bound_B = np.isclose(weights_BT.max(1), lam, rtol=1e-3) | np.isclose(
        weights_BT.min(1), 1 / lam, rtol=1e-3
    )
    assert at_bound_B[raised_B].all()  # the temperature is raised no more than the bound asks for


@settings(max_examples=100, deadline=None)
@given(st.lists(cases(), min_size=1, max_size=5))
def test_all_responses_at_once_as_each_written_out(batch: list[dict[str, Any]]) -> None:
    tau, lam = batch[0]["tau"], batch[0]["lam"]
    width = max(len(case["d"]) for case in batch) + 1  # padding counts as frozen
    score_BT, free_BT = (
        torch.zeros(len(batch), width, dtype=torch.float64),
        torch.zeros(len(batch), width).bool(),
    )
    for b, case in enumerate(batch):
        score_BT[b, : len(case["d"])] = torch.tensor(case["d"], dtype=torch.float64)
        free_BT[b, : len(case["d"])] = ~torch.tensor(case["frozen"])
    advantage_B = torch.tensor([case["advantage"] for case in batch], dtype=torch.float64)
    found = allocate_rows(score_BT, advantage_B, free_BT, tau=tau, lam=lam)
    for b, case in enumerate(batch):
        weights, temperature = slow(case["d"], case["advantage"], tau, lam, case["frozen"])
        have = found.weights_BT[b].tolist()
        assert have[: len(weights)] == pytest.approx(weights, rel=1e-4, abs=1e-6)
        assert have[len(weights) :] == [1.0] * (width - len(weights))
        assert found.tau_B[b].item() == pytest.approx(temperature, rel=1e-4, nan_ok=True)


def test_numbers_that_are_none_are_refused() -> None:
    for d, advantage in (([1.0, math.nan], 1.0), ([1.0, 2.0], math.inf)):
        with pytest.raises(CreditlibError, match="finite"):
            allocate(torch.tensor(d), advantage)
    with pytest.raises(CreditlibError, match="empty response"):
        allocate(torch.zeros(0), 1.0)


# --------------------------------------------------------------------------- the strategy


class FakePolicy:
    """d of a token is the sum of its gradients over all reward models."""

    def directions(
        self,
        hidden_MD: Tensor,
        actions_M: Tensor,
        rewards: list[tuple[Tensor, Tensor]],
        *,
        temperature: float,
    ) -> Directions:
        assert hidden_MD.shape[0] == len(actions_M)
        d_M = torch.stack([gradients_ME.sum(1) for gradients_ME, _ in rewards]).sum(0)
        return Directions(d_M, d_M.abs() + 1, torch.full_like(d_M, 2.0))


LENGTHS = [5, 4, 1, 6]


def free(mask_BT: Tensor) -> Tensor:
    """All tokens but the stop tokens of the first and the third response, which no reward model reads."""
    free_BT = mask_BT.clone()
    free_BT[0, 4] = free_BT[2, 0] = False
    return free_BT


def context(**changes: Any) -> Any:
    """Four responses, rewards `format` (verifiable) and two of reward models, `taste` and `tone`."""
    width = max(LENGTHS)
    mask_BT = torch.arange(width) < torch.tensor(LENGTHS)[:, None]
    generator = torch.Generator().manual_seed(7)
    readings = {
        name: RewardReading(
            torch.zeros(4),
            free(mask_BT),
            torch.randn(4, width, 3, generator=generator) * mask_BT[..., None],
        )
        for name in ("taste", "tone")
    }
    rollout = SimpleNamespace(
        mask_BT=mask_BT,
        lengths_B=torch.tensor(LENGTHS),
        ids_BT=torch.ones(4, width, dtype=torch.long),
        temperature=1.0,
        names=[("p", b) for b in range(4)],
    )
    by_reward_BK = torch.tensor([[1.0, 1.5, -0.5], [-1.0, -1.5, 0.0], [0.5, 2.0, 1.0], [0.0, -2.0, 0.5]])
    found = SimpleNamespace(
        rollout=rollout,
        table=SimpleNamespace(names=("format", "taste", "tone"), readings=readings),
        scores=SimpleNamespace(hidden_BTD=torch.zeros(4, width, 2)),
        advantages=Advantages(by_reward_BK, torch.zeros(4)),
        policy=FakePolicy(),
        reward_models={name: SimpleNamespace(embedding_VE=torch.zeros(9, 3)) for name in readings},
        reward_weights=[1.0, 2.0, 0.5],
        step=3,
        seed=0,
    )
    return SimpleNamespace(**{**vars(found), **changes})


def test_each_reward_model_allocates_its_own_reward() -> None:
    world = context()
    credit = Datc().assign(world)
    mask_BT, by_reward_BK = world.rollout.mask_BT, world.advantages.by_reward_BK
    assert (credit.weights_BKT[:, 0] == 1).all()
    for k, name in ((1, "taste"), (2, "tone")):
        d_BT = world.table.readings[name].gradients_BTD.sum(2)
        for b, length in enumerate(LENGTHS):
            frozen_T = ~free(mask_BT)[b, :length]
            want_T = allocate(d_BT[b, :length], by_reward_BK[b, k].item(), frozen_T=frozen_T)
            torch.testing.assert_close(credit.weights_BKT[b, k, :length], want_T)
            assert credit.relevance_BKT is not None
            shown_T = credit.relevance_BKT[b, k, :length]
            assert (
                torch.equal(shown_T[~frozen_T], d_BT[b, :length][~frozen_T])
                and shown_T[frozen_T].isnan().all()
            )
    torch.testing.assert_close(
        (credit.weights_BKT * mask_BT[:, None]).sum(2), torch.tensor(LENGTHS)[:, None].float().expand(4, 3)
    )
    for name in ("taste", "tone"):
        assert sum(credit.diagnostics[f"{outcome}/{name}"] for outcome in OUTCOMES) == pytest.approx(1)
    assert credit.diagnostics["even/taste"] == 0.25  # the response of a stop token alone
    assert credit.diagnostics["no_advantage/tone"] == 0.25


def test_sum_allocates_the_sum_of_the_advantages_by_the_weighted_gradients() -> None:
    world = context()
    credit = Datc(mix="sum").assign(world)
    d_BT = sum(
        weight * world.table.readings[name].gradients_BTD.sum(2)
        for name, weight in (("taste", 2.0), ("tone", 0.5))
    )
    for b, length in enumerate(LENGTHS):
        total = world.advantages.by_reward_BK[b, 1:].sum().item()
        want_T = allocate(d_BT[b, :length], total, frozen_T=~free(world.rollout.mask_BT)[b, :length])
        for k in (1, 2):
            torch.testing.assert_close(credit.weights_BKT[b, k, :length], want_T)
    assert (credit.weights_BKT[:, 0] == 1).all()


def test_sum_without_any_weight_is_uniform_and_a_model_of_weight_zero_has_no_say() -> None:
    world = context(reward_weights=[1.0, 0.0, 0.0])
    assert torch.equal(Datc(mix="sum").assign(world).weights_BKT, torch.ones(4, 3, 6))
    world = context(reward_weights=[1.0, 2.0, 0.0])
    world.table.readings["tone"].gradients_BTD.fill_(math.nan)
    alone = context(reward_weights=[1.0, 2.0, 0.0])
    one, other = Datc(mix="sum").assign(world), Datc().assign(alone)
    torch.testing.assert_close(one.weights_BKT[:, 1], other.weights_BKT[:, 1])
    assert (one.weights_BKT[:, 2] == 1).all()


def test_a_response_that_one_of_two_models_has_not_read() -> None:
    world = context()
    world.table.readings["tone"].read_BT[3] = False
    world.table.readings["tone"].gradients_BTD[3] = 0.0
    credit = Datc(mix="sum").assign(world)
    d_T = 2.0 * world.table.readings["taste"].gradients_BTD[3].sum(1)
    want_T = allocate(d_T, world.advantages.by_reward_BK[3, 1:].sum().item())
    torch.testing.assert_close(credit.weights_BKT[3, 1], want_T)


def test_tokens_that_the_reward_model_reads_otherwise_weigh_one() -> None:
    world = context()
    reading = world.table.readings["taste"]
    reading.read_BT[3, 2:4] = False
    credit = Datc().assign(world)
    assert (credit.weights_BKT[3, 1, 2:4] == 1).all()
    assert (credit.weights_BKT[3, 1, [0, 1, 4, 5]] != 1).any()
    assert credit.weights_BKT[3, 1].sum().item() == pytest.approx(6)


def test_a_gradient_that_is_no_number_leaves_its_response_uniform() -> None:
    world = context()
    world.table.readings["taste"].gradients_BTD[1, 2] = math.nan
    credit = Datc().assign(world)
    assert (credit.weights_BKT[1, 1] == 1).all()
    assert (credit.weights_BKT[3, 1] != 1).any() and (credit.weights_BKT[0, 2] != 1).any()
    assert credit.diagnostics["not_finite/taste"] == 0.25
    assert credit.advantages_BT.isfinite().all()


def test_lambda_one_is_uniform_to_the_bit() -> None:
    world = context()
    assert torch.equal(Datc(lam=1.0).assign(world).weights_BKT, torch.ones(4, 3, 6))


def test_rewards_without_a_gradient_are_not_taken_for_uniform() -> None:
    world = context()
    world.table.readings.clear()
    for mix in ("per_reward", "sum"):
        with pytest.raises(CreditlibError, match="no reward model gives format or taste or tone"):
            Datc(mix=mix).assign(world)  # type: ignore[arg-type]


@pytest.mark.parametrize("direction", ["norm_product", "random"])
def test_other_directions(direction: Any) -> None:
    world = context()
    credit = Datc(direction=direction).assign(world)
    assert credit.relevance_BKT is not None
    shown_T = credit.relevance_BKT[3, 1]
    if direction == "norm_product":
        want_T = 2 * (world.table.readings["taste"].gradients_BTD[3].sum(1).abs() + 1)
        torch.testing.assert_close(shown_T, want_T)
    again = Datc(direction=direction).assign(world)
    assert torch.equal(credit.weights_BKT, again.weights_BKT)
    other = dataclasses.replace(Datc(direction=direction)).assign(context(step=4))
    assert torch.equal(other.weights_BKT, credit.weights_BKT) == (direction == "norm_product")


def test_random_directions_are_normal_and_belong_to_their_response() -> None:
    width, responses = 400, 50
    rollout = SimpleNamespace(names=[("p", b) for b in range(responses)])
    world = SimpleNamespace(rollout=rollout, seed=1, step=2)
    free_BT = torch.ones(responses, width, dtype=torch.bool)
    drawn_BT = Datc()._random(world, free_BT)  # type: ignore[arg-type]
    assert drawn_BT.mean().item() == pytest.approx(0, abs=0.03) and drawn_BT.std().item() == pytest.approx(
        1, abs=0.03
    )
    assert drawn_BT.pow(4).mean().item() == pytest.approx(3, abs=0.3)
    alone = SimpleNamespace(rollout=SimpleNamespace(names=[("p", 7)]), seed=1, step=2)
    assert torch.equal(Datc()._random(alone, free_BT[:1])[0], drawn_BT[7])  # type: ignore[arg-type]
