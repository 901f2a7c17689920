"""The policy losses against plain formulas in ratio space: values, gradients, accumulation, padding."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import Tensor

from creditlib.policy.loss import (
    CispoLoss,
    DapoLoss,
    Denominators,
    DrGrpoLoss,
    GrpoLoss,
    GspoTokenLoss,
    LossStats,
    PolicyLoss,
    TokenLoss,
)
from creditlib.types import CreditlibError

AGGREGATIONS = [
    "token-mean",
    "seq-mean-token-mean",
    "seq-mean-token-sum",
    "seq-mean-token-sum-norm",
    "token-sum",
]


@dataclass
class Batch:
    """Six responses of ragged length; the log ratios are wide enough that every bound is met."""

    logps_BT: Tensor
    old_BT: Tensor
    ref_BT: Tensor
    sampler_BT: Tensor
    entropy_BT: Tensor
    advantages_BT: Tensor
    mask_BT: Tensor
    active_B: Tensor


@pytest.fixture
def batch() -> Batch:
    generator = torch.Generator().manual_seed(3)

    def random(scale: float = 1.0) -> Tensor:
        return scale * torch.randn(6, 5, generator=generator, dtype=torch.float64)

    logps_BT = -random().abs() - 0.1
    return Batch(
        logps_BT=logps_BT.requires_grad_(),
        old_BT=(logps_BT.detach() + random(0.6)),
        ref_BT=(logps_BT.detach() + random(0.6)),
        sampler_BT=(logps_BT.detach() + random(0.6)),
        entropy_BT=random().abs().requires_grad_(),
        advantages_BT=random(),
        mask_BT=torch.arange(5) < torch.tensor([5, 3, 0, 1, 4, 2])[:, None],
        active_B=torch.tensor([True, True, True, True, False, True]),
    )


def run(
    loss: PolicyLoss, batch: Batch, rows: slice = slice(None), denominators: Denominators | None = None
) -> Any:
    """The partial loss of some rows, its gradient with respect to all log-probs, and the token loss."""
    correction_BT = loss.importance_weights(batch.old_BT, batch.sampler_BT, batch.mask_BT)
    token = loss.token_loss(
        batch.logps_BT[rows],
        batch.old_BT[rows],
        batch.advantages_BT[rows],
        batch.mask_BT[rows],
        active_B=batch.active_B[rows],
        ref_logps_BT=batch.ref_BT[rows],
        correction_BT=correction_BT[rows] if loss.needs_correction else None,
        entropy_BT=batch.entropy_BT[rows],
    )
    value = loss.partial_loss(token, denominators or loss.denominators(batch.mask_BT, batch.active_B))
    gradient_BT = torch.autograd.grad(value, batch.logps_BT)[0]
    return value.detach(), gradient_BT, token


def naive(loss: PolicyLoss, batch: Batch) -> Tensor:
    """The definitions in ratio space, response by response and token by token, for autograd to follow."""
    rows: list[list[Tensor]] = []
    for b in range(len(batch.mask_BT)):
        length = int(batch.mask_BT[b].sum())
        if not batch.active_B[b] or not length:
            continue
        logp_T, old_T = batch.logps_BT[b, :length], batch.old_BT[b, :length]
        log_u_T = old_T - batch.sampler_BT[b, :length]
        if loss.correction.startswith("sequence"):
            log_u_T = log_u_T.sum().expand(length)
        tokens = []
        for t in range(length):
            advantage = batch.advantages_BT[b, t]
            ratio = (logp_T[t] - old_T[t]).exp()
            if isinstance(loss, GspoTokenLoss):
                mean_ratio = (logp_T - old_T).mean().exp().detach()
                ratio = mean_ratio * logp_T[t].exp() / logp_T[t].exp().detach()
            if isinstance(loss, GrpoLoss):
                clipped = ratio.clamp(1 - loss.clip_low, 1 + loss.clip_high)
                value = -torch.minimum(ratio * advantage, clipped * advantage)
                if loss.dual_clip is not None and advantage < 0:
                    value = torch.minimum(value, -loss.dual_clip * advantage)
            else:
                assert isinstance(loss, CispoLoss)
                value = -ratio.clamp(loss.ratio_min, loss.ratio_max).detach() * advantage * logp_T[t]
            u, low, high = log_u_T[t].exp(), loss.correction_low or 0.0, loss.correction_high or math.inf
            if loss.correction.endswith("truncate"):
                value = value * u.clamp(low, high)
            elif loss.correction.endswith("mask"):
                value = value * (u if low <= u <= high else 0.0)
            x = batch.ref_BT[b, t] - logp_T[t]
            kl = {"k1": -x, "k2": x**2 / 2, "k3": x.exp() - x - 1}[loss.kl_estimator]
            if loss.kl_unbiased:
                kl = kl * (logp_T[t] - old_T[t]).exp()
            value = value + loss.kl_coef * kl
            tokens.append(value - loss.entropy_coef * batch.entropy_BT[b, t])
        rows.append(tokens)
    flat = torch.stack([token for row in rows for token in row])
    sums = torch.stack([torch.stack(row).sum() for row in rows])
    means = torch.stack([torch.stack(row).mean() for row in rows])
    return {
        "token-mean": flat.mean(),
        "seq-mean-token-mean": means.mean(),
        "seq-mean-token-sum": sums.mean(),
        "seq-mean-token-sum-norm": (sums / (loss.max_tokens or 1)).mean(),
        "token-sum": flat.sum(),
    }[loss.aggregation]


LOSSES: list[PolicyLoss] = [
    GrpoLoss(),
    GrpoLoss(dual_clip=1.5, clip_low=0.1, kl_coef=0.2),
    GrpoLoss(kl_coef=0.2, kl_unbiased=True),
    GrpoLoss(kl_coef=0.2, kl_estimator="k1", correction="token_truncate", correction_high=1.3),
    GrpoLoss(
        kl_coef=0.2, kl_estimator="k2", correction="token_mask", correction_low=0.8, correction_high=1.5
    ),
    GrpoLoss(correction="sequence_truncate", correction_low=0.9, correction_high=1.1, entropy_coef=0.1),
    GrpoLoss(correction="sequence_mask", correction_low=0.5, correction_high=3.0, kl_coef=0.1),
    DapoLoss(),
    DapoLoss(correction="token_truncate"),
    DrGrpoLoss(max_tokens=7),
    GspoTokenLoss(),
    GspoTokenLoss(clip_low=0.2, clip_high=0.3, dual_clip=1.2, kl_coef=0.1, correction="token_mask"),
    CispoLoss(ratio_max=1.4),
    CispoLoss(ratio_max=1.28, ratio_min=0.8, entropy_coef=0.05, correction="token_truncate"),
    *(GrpoLoss(aggregation=aggregation, max_tokens=9) for aggregation in AGGREGATIONS),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_value_and_gradient_are_the_definitions(loss: PolicyLoss, batch: Batch) -> None:
    value, gradient_BT, _ = run(loss, batch)
    expected = naive(loss, batch)
    torch.testing.assert_close(value, expected.detach(), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(
        gradient_BT, torch.autograd.grad(expected, batch.logps_BT)[0], rtol=1e-10, atol=1e-12
    )
    assert gradient_BT.abs().sum() > 0


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("cuts", [[3], [1, 2, 4], [1, 2, 3, 4, 5]], ids=str)
def test_micro_batches_add_up(loss: PolicyLoss, cuts: list[int], batch: Batch) -> None:
    value, gradient_BT, token = run(loss, batch)
    pieces = [slice(a, b) for a, b in zip([0, *cuts], [*cuts, 6], strict=True)]
    parts = [loss.denominators(batch.mask_BT[rows], batch.active_B[rows]) for rows in pieces]
    denominators = sum(parts[1:], parts[0])
    assert denominators == loss.denominators(batch.mask_BT, batch.active_B)
    results = [run(loss, batch, rows, denominators) for rows in pieces]
    torch.testing.assert_close(sum(result[0] for result in results), value, rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(sum(result[1] for result in results), gradient_BT, rtol=1e-12, atol=1e-14)
    stats: LossStats = results[0][2].stats
    for result in results[1:]:
        stats = stats + result[2].stats
    assert stats.means() == pytest.approx(token.stats.means())


def test_denominators_leave_out_what_does_not_count(batch: Batch) -> None:
    """Row 2 is empty and row 4 inactive."""
    assert GrpoLoss().denominators(batch.mask_BT, batch.active_B) == Denominators(tokens=11, sequences=4)
    assert GrpoLoss().denominators(batch.mask_BT) == Denominators(tokens=15, sequences=5)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_padding_may_hold_anything(loss: PolicyLoss, batch: Batch) -> None:
    value, gradient_BT, token = run(loss, batch)
    dirty = replace(batch)
    outside_BT = ~batch.mask_BT
    garbage = {
        "old": math.nan,
        "ref": -math.inf,
        "sampler": math.inf,
        "advantages": math.nan,
        "entropy": math.nan,
    }
    for name, value_outside in garbage.items():
        filled_BT = getattr(batch, f"{name}_BT").detach().masked_fill(outside_BT, value_outside)
        wider_BT = torch.cat([filled_BT, torch.full((6, 2), math.nan)], 1)
        setattr(dirty, f"{name}_BT", wider_BT)
    logps_BT = batch.logps_BT.detach().masked_fill(outside_BT, -math.inf)
    dirty.logps_BT = torch.cat([logps_BT, torch.full((6, 2), math.nan)], 1).requires_grad_()
    dirty.mask_BT = torch.cat([batch.mask_BT, torch.zeros(6, 2, dtype=torch.bool)], 1)
    dirty_value, dirty_gradient_BT, dirty_token = run(loss, dirty)
    torch.testing.assert_close(dirty_value, value, rtol=1e-12, atol=0)
    torch.testing.assert_close(dirty_gradient_BT[:, :5], gradient_BT, rtol=1e-12, atol=1e-15)
    assert (dirty_gradient_BT[~dirty.mask_BT] == 0).all() and (dirty_token.loss_BT[~dirty.mask_BT] == 0).all()
    assert dirty_token.stats.means() == pytest.approx(token.stats.means())


@pytest.mark.parametrize("make", [GrpoLoss, DapoLoss, GspoTokenLoss, CispoLoss])
@pytest.mark.parametrize("shift", [-1e4, 1e4, 89.0])
@pytest.mark.parametrize("advantage", [-1.0, 0.0, 1.0])
def test_extreme_ratios_stay_finite(make: Callable[..., PolicyLoss], shift: float, advantage: float) -> None:
    loss = make(kl_coef=0.1, correction="token_truncate")
    logps_BT = torch.full((1, 2), -1.0, requires_grad=True)
    other_BT = torch.full((1, 2), -1.0 - shift)
    mask_BT = torch.ones(1, 2, dtype=torch.bool)
    token = loss.token_loss(
        logps_BT,
        other_BT,
        torch.full((1, 2), advantage),
        mask_BT,
        ref_logps_BT=-2 * other_BT,
        correction_BT=loss.importance_weights(other_BT, 3 * other_BT, mask_BT),
    )
    value = loss.partial_loss(token, loss.denominators(mask_BT))
    assert value.isfinite() and torch.autograd.grad(value, logps_BT)[0].isfinite().all()
    assert all(math.isfinite(mean) for mean in token.stats.means().values())


def test_the_first_update_needs_no_old_log_probs(batch: Batch) -> None:
    loss = GrpoLoss()
    batch.advantages_BT.requires_grad_()  # of no use: advantages are constants
    token = loss.token_loss(batch.logps_BT, None, batch.advantages_BT, batch.mask_BT)
    assert torch.autograd.grad(
        token.loss_BT.sum(), batch.advantages_BT, retain_graph=True, allow_unused=True
    ) == (None,)
    gradient_BT = torch.autograd.grad(token.loss_BT.sum(), batch.logps_BT)[0]
    torch.testing.assert_close(gradient_BT, -batch.advantages_BT.detach() * batch.mask_BT)
    assert token.stats.means() == {
        "clipped_low": 0,
        "clipped_high": 0,
        "ratio": 1,
        "approx_kl": 0,
        "ratio_max": 1,
    }
    assert not loss.needs_old(updates=1) and loss.needs_old(updates=2)


def test_gspo_gradient_with_equal_advantages_is_that_of_the_sequence_ratio(batch: Batch) -> None:
    loss = GspoTokenLoss(clip_low=0.9, clip_high=9.0)
    batch.advantages_BT = batch.advantages_BT[:, :1].expand(6, 5)
    _, gradient_BT, _ = run(loss, batch)
    lengths_B = batch.mask_BT.sum(1).clamp(min=1)
    log_s_B = ((batch.logps_BT - batch.old_BT) * batch.mask_BT).sum(1) / lengths_B
    counts_B = batch.active_B & batch.mask_BT.any(1)
    objective = -(log_s_B.exp() * batch.advantages_BT[:, 0])[counts_B].mean()
    torch.testing.assert_close(gradient_BT, torch.autograd.grad(objective, batch.logps_BT)[0])


def one_token(loss: PolicyLoss, ratio: float, advantage: float) -> TokenLoss:
    logp, mask_BT = torch.tensor([[-2.0]], dtype=torch.float64), torch.tensor([[True]])
    return loss.token_loss(logp, logp - math.log(ratio), torch.tensor([[advantage]]), mask_BT)


@pytest.mark.parametrize(
    ("loss", "ratio", "advantage", "expected", "clipped"),
    [
        (GrpoLoss(), 1.5, 1.0, -1.2, "high"),
        (GrpoLoss(), 1.5, -1.0, 1.5, None),
        (GrpoLoss(), 0.5, 1.0, -0.5, None),
        (GrpoLoss(), 0.5, -1.0, 0.8, "low"),
        (GrpoLoss(dual_clip=3.0), 5.0, -1.0, 3.0, "high"),
        (DapoLoss(), 1.25, 1.0, -1.25, None),
        (DapoLoss(), 1.5, 1.0, -1.28, "high"),
        (GspoTokenLoss(), 1.001, 1.0, -1.0004, "high"),
        (GspoTokenLoss(), 0.999, -1.0, 0.9997, "low"),
        (GrpoLoss(), 1.5, 0.0, 0.0, None),
        (GspoTokenLoss(), math.exp(15), -1.0, math.exp(10), "high"),
        (CispoLoss(ratio_min=0.8), 0.5, 0.0, 0.0, None),
        (CispoLoss(), 4.0, 1.0, 8.0, None),
        (CispoLoss(), 6.0, 1.0, 10.0, "high"),
        (CispoLoss(ratio_min=0.8, ratio_max=1.28), 2.0, -1.0, -2.56, "high"),
        (CispoLoss(ratio_min=0.8, ratio_max=1.28), 0.5, -1.0, -1.6, "low"),
    ],
    ids=str,
)
def test_one_token_by_hand(
    loss: PolicyLoss, ratio: float, advantage: float, expected: float, clipped: str | None
) -> None:
    token = one_token(loss, ratio, advantage)
    assert float(token.loss_BT) == pytest.approx(expected)
    means = token.stats.means()
    assert (means["clipped_low"], means["clipped_high"]) == (clipped == "low", clipped == "high")
    assert means["ratio"] == means["ratio_max"] == pytest.approx(min(ratio, math.exp(10)))
    assert means["approx_kl"] == pytest.approx(ratio - 1 - math.log(ratio))


@pytest.mark.parametrize(("estimator", "expected"), [("k1", -0.693147), ("k2", 0.240227), ("k3", 0.306853)])
def test_kl_estimators_where_the_reference_is_twice_as_sure(estimator: Any, expected: float) -> None:
    loss = GrpoLoss(kl_coef=0.5, kl_estimator=estimator, correction="token_truncate")
    logp = torch.tensor([[-2.0]])
    token = loss.token_loss(
        logp,
        None,
        torch.zeros(1, 1),
        torch.tensor([[True]]),
        ref_logps_BT=logp + math.log(2),
        correction_BT=torch.tensor([[0.1]]),  # corrects the policy term and not the KL
    )
    assert float(token.loss_BT) == pytest.approx(0.5 * expected, abs=1e-6)
    assert token.stats.means()["reference_kl"] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("correction", "low", "expected"),
    [
        ("none", None, [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]),
        ("token_truncate", None, [[2.0, 0.25, 1.0], [1.5, 1.0, 1.0]]),
        ("token_truncate", 0.5, [[2.0, 0.5, 1.0], [1.5, 1.0, 1.0]]),
        ("token_mask", None, [[0.0, 0.25, 1.0], [1.5, 1.0, 1.0]]),
        ("token_mask", 0.5, [[0.0, 0.0, 1.0], [1.5, 1.0, 1.0]]),
        ("sequence_truncate", None, [[1.0, 1.0, 1.0], [1.5, 1.5, 1.5]]),
        ("sequence_truncate", 1.25, [[1.25, 1.25, 1.25], [1.5, 1.5, 1.5]]),
        ("sequence_mask", 1.25, [[0.0, 0.0, 0.0], [1.5, 1.5, 1.5]]),
    ],
)
def test_importance_weights_by_hand(correction: Any, low: float | None, expected: list[list[float]]) -> None:
    """u is 4, 1/4, 1 in the first response and 1.5 in the second, which has one token; high is 2."""
    loss = GrpoLoss(correction=correction, correction_low=low)
    u_BT = torch.tensor([[4.0, 0.25, 1.0], [1.5, 99.0, 99.0]])
    mask_BT = torch.tensor([[True, True, True], [True, False, False]])
    sampler_BT = torch.full((2, 3), -1.0)
    old_BT = (sampler_BT + u_BT.log()).requires_grad_()
    weights_BT = loss.importance_weights(old_BT, sampler_BT, mask_BT)
    assert not weights_BT.requires_grad
    torch.testing.assert_close(weights_BT, torch.tensor(expected))


@pytest.mark.parametrize("correction", ["token_truncate", "token_mask"])
def test_importance_weights_without_an_upper_bound(correction: Any) -> None:
    loss = GrpoLoss(correction=correction, correction_low=1.0, correction_high=None)
    old_BT, mask_BT = torch.tensor([[-1.0, 5.0]]), torch.ones(1, 2, dtype=torch.bool)
    weights_BT = loss.importance_weights(old_BT, torch.zeros(1, 2), mask_BT)
    expected = [1.0 if correction == "token_truncate" else 0.0, math.exp(5.0)]
    torch.testing.assert_close(weights_BT, torch.tensor([expected]))


def test_correction_stats() -> None:
    loss = GrpoLoss(correction="token_mask")
    logps_BT, mask_BT = torch.zeros(1, 4), torch.tensor([[True, True, True, False]])
    weights_BT = loss.importance_weights(logps_BT, torch.tensor([[-1.0, 0.0, 0.0, -9.0]]), mask_BT)
    means = loss.token_loss(logps_BT, None, torch.ones(1, 4), mask_BT, correction_BT=weights_BT).stats.means()
    assert means["correction"] == pytest.approx(2 / 3) and means["correction_zero"] == pytest.approx(1 / 3)


def test_truncated_sampling_needs_no_mass() -> None:
    """Where sampler and policy are cut to the same tokens, their ratio is that of the full softmaxes once
    renormalised alike; a sampler that only rounds differently must get weights near 1, not near the kept
    mass."""
    torch.manual_seed(0)
    logps_V = torch.log_softmax(torch.randn(50), 0)
    kept_V = logps_V >= logps_V.topk(5).values[-1]
    assert float(logps_V.exp()[kept_V].sum()) < 0.6
    sampler_V = torch.log_softmax(logps_V + 1e-3 * torch.randn(50), 0)
    policy_cut_V = torch.log_softmax(logps_V.masked_fill(~kept_V, -math.inf), 0)
    sampler_cut_V = torch.log_softmax(sampler_V.masked_fill(~kept_V, -math.inf), 0)
    loss = GrpoLoss(correction="token_truncate")
    weights_BT = loss.importance_weights(
        logps_V[None, kept_V], sampler_V[None, kept_V], torch.ones(1, 5, dtype=torch.bool)
    )
    torch.testing.assert_close(weights_BT[0], (policy_cut_V - sampler_cut_V)[kept_V].exp(), rtol=0, atol=2e-3)
    torch.testing.assert_close(weights_BT, torch.ones(1, 5), rtol=0, atol=1e-2)


@pytest.mark.parametrize(
    ("make", "setting"),
    [
        (lambda: GrpoLoss(clip_high=-0.1), "clip_high"),
        (lambda: GrpoLoss(clip_low=1.0), "clip_low"),
        (lambda: GrpoLoss(dual_clip=1.0), "dual_clip"),
        (lambda: GrpoLoss(kl_coef=-0.1), "kl_coef"),
        (lambda: GrpoLoss(entropy_coef=-0.1), "entropy_coef"),
        (lambda: GrpoLoss(correction_high=0.0), "correction_high"),
        (lambda: GrpoLoss(correction_high=math.inf), "correction_high must be finite"),
        (lambda: GrpoLoss(clip_high=math.inf), "clip_high must be finite"),
        (lambda: CispoLoss(ratio_max=math.nan), "ratio_max must be finite"),
        (lambda: GrpoLoss(correction_low=3.0), "correction_low"),
        (lambda: DrGrpoLoss(), "max_tokens"),
        (lambda: GrpoLoss(aggregation="seq-mean-token-sum-norm", max_tokens=0), "max_tokens"),
        (lambda: GspoTokenLoss(correction="sequence_mask"), "token_truncate"),
        (lambda: CispoLoss(ratio_max=0.28), "not its distance from 1"),
        (lambda: CispoLoss(ratio_min=1.2), "ratio_min"),
    ],
)
def test_impossible_settings(make: Callable[[], PolicyLoss], setting: str) -> None:
    with pytest.raises(CreditlibError, match=setting):
        make()


@pytest.mark.parametrize(
    ("loss", "argument"),
    [
        (GrpoLoss(kl_coef=0.1), "ref_logps_BT"),
        (GrpoLoss(correction="token_mask"), "correction_BT"),
        (GrpoLoss(entropy_coef=0.1), "entropy_BT"),
    ],
)
def test_a_missing_tensor_is_named(loss: PolicyLoss, argument: str, batch: Batch) -> None:
    assert loss.needs_reference or loss.needs_correction or loss.needs_entropy
    with pytest.raises(CreditlibError, match=argument):
        loss.token_loss(batch.logps_BT, None, batch.advantages_BT, batch.mask_BT)


def test_nothing_to_learn_from(batch: Batch) -> None:
    """A batch without any active row has a loss of 0 and no gradient, not a division by zero."""
    batch.active_B = torch.zeros(6, dtype=torch.bool)
    for loss in LOSSES:
        value, gradient_BT, token = run(loss, batch)
        assert value == 0 and (gradient_BT == 0).all()
        assert all(mean == 0 for mean in token.stats.means().values())
