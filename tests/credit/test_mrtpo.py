"""MRTPO's weights, and which responses are replayed with what."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from creditlib import registry
from creditlib.credit.mrtpo import NOISE_REPLAYS, OUTCOMES, Mrtpo, mix_uniform
from creditlib.credit.uniform import Uniform
from creditlib.types import Advantages, Replay, TokenCredit

NAMES = ("format", "executable", "execution")


# ------------------------------------------------------------------ the allocation


def test_golden_weights() -> None:
    distance_T = torch.tensor([0, 0.1, 0.4, 0, 0.5])
    assert mix_uniform(distance_T, 0.5).tolist() == pytest.approx([0.5, 0.75, 1.5, 0.5, 1.75])
    assert mix_uniform(distance_T, 1.0).tolist() == pytest.approx([0, 0.5, 2, 0, 2.5])
    assert mix_uniform(distance_T, 0.0).tolist() == [1.0] * 5


@given(st.lists(st.floats(0, 1, width=32), min_size=1, max_size=20), st.floats(0, 1))
@settings(max_examples=500, deadline=None)
def test_weights_have_mean_one_and_a_floor(relevance: list[float], beta: float) -> None:
    weights_T = mix_uniform(torch.tensor(relevance), beta)
    assert weights_T.double().mean().item() == pytest.approx(1, abs=1e-5)
    assert weights_T.min() >= 1 - beta - 1e-6
    if len(weights_T) == 1 or beta == 0:
        assert (weights_T == 1).all()


def test_no_relevance_is_uniform_and_rows_do_not_mix() -> None:
    relevance_BT = torch.tensor([[0.0, 0.0, 0.0], [0.0, 1.0, 1.0]])
    weights_BT = mix_uniform(relevance_BT, 1.0)
    assert weights_BT.tolist() == [[1.0, 1.0, 1.0], [0.0, 1.5, 1.5]]


# ------------------------------------------------------------------ the strategy


class Contexts:
    """Contexts as sets of numbers: prompt row, then one number for each reward told."""

    def __init__(self, lengths: list[int], informed: dict[int, set[str]], overflow: set[int]) -> None:
        self.lengths, self._informed, self._overflow = lengths, informed, overflow

    def informed(self, row: int) -> frozenset[str]:
        return frozenset(self._informed.get(row, NAMES))

    def replay(self, row: int, told: frozenset[str]) -> Replay | None:
        if row in self._overflow:
            return None
        return Replay((row, *sorted(NAMES.index(name) for name in told)), tuple(range(self.lengths[row])))


class Policy:
    """Divergences by formula; keeps what it was asked."""

    def __init__(self, noise: float = 0.0) -> None:
        self.asked: list[tuple[Replay, Replay]] = []
        self.again: list[Replay] = []
        self.temperatures: set[float] = set()
        self._noise = noise

    def divergences(
        self, pairs: list[tuple[Replay, Replay]], *, temperature: float = 1.0, top_k: int | None = None
    ) -> list[Tensor]:
        self.temperatures.add(temperature)
        found = []
        for one, other in pairs:
            if other.alone:
                assert other == one._replace(alone=True)
                self.again.append(one)
                found.append(torch.full((len(one.response),), self._noise))
            else:
                if top_k is None:
                    self.asked.append((one, other))
                found.append(self.divergence(one, other) * (0.81 if top_k else 1))
        return found

    @staticmethod
    def divergence(one: Replay, other: Replay) -> Tensor:
        told = set(one.context[1:]) ^ set(other.context[1:])
        return torch.arange(len(one.response)).float() * 0.01 * sum(told, 1)


def world(
    advantages_BK: list[list[float]],
    lengths: list[int],
    *,
    informed: dict[int, set[str]] | None = None,
    overflow: set[int] | None = None,
    noise: float = 0.0,
) -> SimpleNamespace:
    by_reward_BK = torch.tensor(advantages_BK)
    mask_BT = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return SimpleNamespace(
        advantages=Advantages(by_reward_BK, torch.full((len(lengths),), 0.25)),
        rollout=SimpleNamespace(
            mask_BT=mask_BT,
            lengths_B=torch.tensor(lengths),
            names=[("p", row) for row in range(len(lengths))],
        ),
        table=SimpleNamespace(names=NAMES, kind_BK=[NAMES] * len(lengths)),
        contexts=Contexts(lengths, informed or {}, overflow or set()),
        policy=Policy(noise),
        gather=lambda value: [value],
    )


def assign(strategy: Mrtpo, context: SimpleNamespace) -> TokenCredit:
    return strategy.assign(context)  # type: ignore[arg-type]


def test_the_sum_over_rewards_is_written_out() -> None:
    context = world([[1.0, -2.0, 0.0], [0.5, 0.5, -0.5]], [4, 3])
    credit = assign(Mrtpo(beta=0.5), context)
    for b, length in enumerate([4, 3]):
        for t in range(4):
            want = 0.0
            for k in range(3):
                advantage = context.advantages.by_reward_BK[b, k].item()
                distances = [math.sqrt(0.01 * s * (k + 1)) for s in range(length)]
                weight = 0.5 + 0.5 * length * distances[t] / sum(distances) if t < length else 0.0
                want += advantage * weight
            want = want + 0.25 if t < length else 0.0
            assert credit.advantages_BT[b, t].item() == pytest.approx(want, abs=1e-6)
    assert credit.mean_one
    assert not credit.weights_BKT.requires_grad


def test_metrics_go_by_what_a_reward_means() -> None:
    """Columns that are slots: "lower" stands in the first of one response and in the second of the other."""
    context = world([[1.0, -2.0, 0.0], [0.5, 0.5, 0.0]], [4, 3])
    context.table.kind_BK = [("lower", "commas", ""), ("commas", "lower", "")]
    found = assign(Mrtpo(), context).diagnostics

    def distance(k: int, length: int) -> float:
        return sum(math.sqrt(0.01 * s * (k + 1)) for s in range(length)) / length

    assert found["distance/lower"] == pytest.approx((distance(0, 4) + distance(1, 3)) / 2, rel=1e-5)
    assert found["distance/commas"] == pytest.approx((distance(1, 4) + distance(0, 3)) / 2, rel=1e-5)
    assert found["by_relevance/lower"] == found["by_relevance/commas"] == 1.0
    kinds = {name.partition("/")[2] for name in found if name.startswith(("distance/", "no_advantage/"))}
    assert kinds == {"lower", "commas"}


@pytest.mark.parametrize(
    ("replay", "contexts"),
    [
        ("leave_one_out", [((0, 0, 1, 2), (0, 1, 2)), ((0, 0, 1, 2), (0, 0, 2))]),
        ("add_one", [((0, 0), (0,)), ((0, 1), (0,))]),
        ("joint", [((0, 0, 1, 2), (0,)), ((0, 0, 1, 2), (0,))]),
    ],
)
def test_what_each_kind_of_replay_compares(replay: str, contexts: list[tuple[tuple[int, ...], ...]]) -> None:
    context = world([[1.0, -1.0, 0.0]], [3])  # no advantage from the third reward: it is not replayed
    credit = assign(registry.build("credit", "mrtpo", replay=replay), context)
    assert [(one.context, other.context) for one, other in context.policy.asked] == contexts
    assert torch.equal(credit.weights_BKT[0, 2], torch.ones(3))
    assert credit.relevance_BKT is not None
    assert credit.relevance_BKT[0, 2].isnan().all() and not credit.relevance_BKT[0, :2].isnan().any()
    if replay == "joint":
        assert torch.equal(credit.weights_BKT[0, 0], credit.weights_BKT[0, 1])


def test_each_way_to_uniform_weights_is_counted() -> None:
    context = world(
        [[1.0, 1.0, 1.0]] * 4 + [[0.0, 0.0, 0.0]],
        [3, 3, 1, 3, 3],
        informed={1: {"format", "execution"}},
        overflow={3},
    )
    credit = assign(Mrtpo(), context)
    found = credit.diagnostics
    counts = {o: [round(5 * found[f"{o}/{name}"]) for name in NAMES] for o in OUTCOMES}
    assert counts == {
        "by_relevance": [2, 1, 2],
        "below_floor": [0, 0, 0],
        "not_finite": [0, 0, 0],
        "no_advantage": [1, 1, 1],
        "no_information": [0, 1, 0],
        "one_token": [1, 1, 1],
        "overflow": [1, 1, 1],
    }
    uniform = torch.ones(3)
    for b, k in ((1, 1), (2, 0), (3, 0), (4, 0)):
        assert torch.equal(credit.weights_BKT[b, k], uniform)
    assert not torch.equal(credit.weights_BKT[0, 0], uniform)


def test_the_noise_floor_is_taken_off_and_below_twice_of_it_credit_is_uniform() -> None:
    quiet = assign(Mrtpo(), world([[1.0, 0.0, 1.0]], [3]))
    # Distances are 0, .1, .1414 for the first reward and 0, .1732, .2449 for the third.
    noisy = assign(Mrtpo(beta=1.0), world([[1.0, 0.0, 1.0]], [3], noise=0.05**2))
    assert noisy.diagnostics["floor"] == pytest.approx(0.05)
    assert noisy.diagnostics["distance/format"] == pytest.approx((0.1 + math.sqrt(0.02)) / 3)
    assert noisy.diagnostics["below_floor/format"] == 1 and noisy.diagnostics["below_floor/execution"] == 0
    assert torch.equal(noisy.weights_BKT[0, 0], torch.ones(3))
    left = [0, math.sqrt(0.03 - 0.05**2), math.sqrt(0.06 - 0.05**2)]
    assert noisy.weights_BKT[0, 2].tolist() == pytest.approx([3 * d / sum(left) for d in left], abs=1e-6)
    assert quiet.diagnostics["floor"] == 0


def test_some_replays_measure_the_noise() -> None:
    context = world([[1.0, 1.0, 1.0]] * 9, [3] * 9)
    assign(Mrtpo(), context)
    assert len(context.policy.asked) == 27
    assert len(context.policy.again) == NOISE_REPLAYS
    assert {replay.context[1:] for replay in context.policy.again} == {(0, 1, 2)}
    assert len(set(context.policy.again)) == NOISE_REPLAYS  # of different responses


def test_the_divergence_itself_and_the_error_of_top_k() -> None:
    credit = assign(Mrtpo(beta=1.0, distance="js_divergence"), world([[1.0, 0.0, 0.0]], [4]))
    assert credit.weights_BKT[0, 0].tolist() == pytest.approx([0, 4 / 6, 8 / 6, 12 / 6])
    credit = assign(Mrtpo(top_k=5), world([[1.0, 0.0, 0.0]], [4]))
    assert credit.diagnostics["top_k_error"] == pytest.approx(0.1)  # sqrt(.81) of the exact distance


def test_strength_zero_is_uniform_credit_bit_for_bit() -> None:
    torch.manual_seed(0)
    context = world(torch.randn(7, 3).tolist(), [5, 1, 4, 5, 2, 5, 3])
    assert torch.equal(
        assign(Mrtpo(beta=0.0), context).advantages_BT,
        Uniform().assign(context).advantages_BT,  # type: ignore[arg-type]
    )


def test_a_policy_that_answers_nan_gives_uniform_credit() -> None:
    context = world([[1.0, 0.0, 0.0]], [3])
    context.policy.divergence = lambda one, other: torch.full((3,), torch.nan)
    credit = assign(Mrtpo(), context)
    assert torch.equal(credit.weights_BKT[0, 0], torch.ones(3))
    assert credit.diagnostics["not_finite/format"] == 1
    assert "distance/format" not in credit.diagnostics


def test_a_nan_leaves_floor_and_distance_of_the_others() -> None:
    context = world([[1.0, 0.0, 0.0]] * 2, [3, 3], noise=1e-6)
    right = context.policy.divergence
    context.policy.divergence = lambda one, other: right(one, other) * (torch.nan if one.context[0] else 1)
    found = assign(Mrtpo(), context).diagnostics
    assert found["floor"] == pytest.approx(1e-3)
    assert found["distance/format"] == pytest.approx((0.1 + math.sqrt(0.02)) / 3)
    assert found["not_finite/format"] == found["by_relevance/format"] == 0.5


def test_the_temperature_is_that_of_all_replays() -> None:
    context = world([[1.0, 0.0, 0.0]], [3])
    assign(Mrtpo(temperature=1.5, top_k=5), context)
    assert context.policy.temperatures == {1.5}


@pytest.mark.parametrize("processes", [2, 3])
def test_processes_agree_on_floor_and_distances(processes: int) -> None:
    """Each process holds some responses; what `gather` would give is made by asking all of them at once."""
    lengths = [3, 5, 4, 2, 6, 3, 4]

    def shares(rows: list[int]) -> SimpleNamespace:
        context = world([[1.0, -1.0, 0.5]] * len(rows), [lengths[row] for row in rows], noise=1e-4)
        context.rollout.names = [("p", row) for row in rows]
        return context

    everyone = list(range(7))
    whole = assign(Mrtpo(), shares(everyone)).diagnostics
    parts = [everyone[rank::processes] for rank in range(processes)]
    # Threads in step: each waits until all have said their value.
    barrier, said = threading.Barrier(processes), [None] * processes

    def run(rank: int) -> Mapping[str, float]:
        def gather(value: object) -> list[object]:
            said[rank] = value  # type: ignore[call-overload]
            barrier.wait()
            found = list(said)
            barrier.wait()
            return found

        context = shares(parts[rank])
        context.gather = gather
        return assign(Mrtpo(), context).diagnostics

    with ThreadPoolExecutor(processes) as pool:
        found = list(pool.map(run, range(processes)))
    for key in ("floor", *(f"distance/{name}" for name in NAMES)):
        assert [own[key] for own in found] == pytest.approx([whole[key]] * processes)


def test_nothing_to_replay() -> None:
    credit = assign(Mrtpo(), world([[0.0, 0.0, 0.0]], [3]))
    assert (credit.weights_BKT == 1).all() and "floor" not in credit.diagnostics
