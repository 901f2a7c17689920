"""Statistics within groups of responses and over the batch, shared by the advantage rules.

Everything here is float64 inside: a group's spread is a difference of nearly equal numbers, and rewards are
few. Groups are found by id, so rows may come in any order and a dropped row moves nobody else into another
group.

A rule sees one whole rollout. With several processes, gather the rewards first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from creditlib.types import Advantages, CreditlibError, Norm


@dataclass(frozen=True)
class GroupStats:
    """Each cell's statistics over the valid (not NaN) cells of its column in its group, all (B, K).

    `deviation_BK` is value minus group mean, exactly 0 in NaN cells and where `flat_BK`; `flat_BK` says that
    the group has no spread: all its valid cells are equal, or there is at most one.
    """

    mean_BK: Tensor
    deviation_BK: Tensor
    std_BK: Tensor
    flat_BK: Tensor


def as_rewards(
    scores_BK: Tensor, group_B: Tensor, weights: tuple[float, ...] | None
) -> tuple[Tensor, Tensor]:
    """Check the input of a rule; return the scores (B, K), NaN in columns of weight 0, and the weights (K,),
    both float64.

    Raises:
        CreditlibError: wrong shapes, an infinite score, or not one weight a reward.
    """
    if scores_BK.ndim != 2 or scores_BK.shape[1] == 0:
        raise CreditlibError(
            f"scores must be (responses, rewards) with at least one reward, found {tuple(scores_BK.shape)}"
        )
    responses, rewards = scores_BK.shape
    if group_B.shape != (responses,):
        raise CreditlibError(
            f"group ids must be one a response, ({responses},), found {tuple(group_B.shape)}"
        )
    if scores_BK.isinf().any():
        column = int(scores_BK.isinf().any(0).nonzero()[0])
        raise CreditlibError(
            f"reward {column} is infinite in some response: scores must be finite, or NaN (does not apply)"
        )
    if weights is not None and len(weights) != rewards:
        raise CreditlibError(
            f"advantage.weights must have one weight for each of the {rewards} rewards, found {len(weights)}"
        )
    weights_K = torch.ones(rewards) if weights is None else torch.tensor(weights)
    weights_K = weights_K.to(scores_BK.device, torch.float64)
    # A reward that is only watched has no part in any statistic, nor in which rows have a reward.
    return scores_BK.double().masked_fill(weights_K == 0, torch.nan), weights_K


def check_settings(eps: float, weights: tuple[float, ...] | None) -> None:
    """Raise unless `eps` is positive, as it divides a batch that has no spread, and weights are numbers."""
    if not 0 < eps < math.inf:
        raise CreditlibError(f"advantage.eps must be positive and finite, found {eps}")
    if weights is not None and not all(map(math.isfinite, weights)):
        raise CreditlibError(f"advantage.weights must be finite, found {list(weights)}")


def float32_noise(scores_BK: Tensor) -> Tensor:
    """What rounding to float32 may have made of equal scores; 0 where there is none."""
    return torch.finfo(torch.float32).eps * scores_BK.abs().nan_to_num(0.0)


def group_stats(
    values_BK: Tensor, group_B: Tensor, *, ddof: int = 1, noise_BK: Tensor | None = None
) -> GroupStats:
    """NaN-aware mean, deviation and standard deviation of each column within each group.

    Args:
        values_BK: float64, NaN where a value does not apply.
        group_B: the group of each row, any integers in any order.
        ddof: 1 divides the sum of squares by n - 1 (sample), 0 by n (population).
        noise_BK: rounding that the values carry; a group whose spread is within it is flat.
    """
    ids, index_B = torch.unique(group_B, return_inverse=True)
    index_BK = index_B[:, None].expand_as(values_BK)
    valid_BK = ~values_BK.isnan()

    def over_group(cells_BK: Tensor, reduce: str) -> Tensor:
        start = cells_BK.new_zeros(len(ids), cells_BK.shape[1])
        return start.scatter_reduce(0, index_BK, cells_BK, reduce, include_self=False)[index_B]

    count_BK = over_group(valid_BK.double(), "sum")
    mean_BK = over_group(values_BK.nan_to_num(0.0), "sum") / count_BK.clamp(min=1)
    high_BK = over_group(values_BK.nan_to_num(-torch.inf), "amax")
    low_BK = over_group(values_BK.nan_to_num(torch.inf), "amin")
    noise = 0.0 if noise_BK is None else over_group(noise_BK, "amax")
    # Compare extremes and not the deviation: equal values may have a mean that is none of them. No valid cell
    # leaves -inf - inf, which is flat too.
    flat_BK = high_BK - low_BK <= noise
    deviation_BK = (values_BK - mean_BK).masked_fill(flat_BK | ~valid_BK, 0.0)
    std_BK = (over_group(deviation_BK**2, "sum") / (count_BK - ddof).clamp(min=1)).sqrt()
    return GroupStats(mean_BK, deviation_BK, std_BK, flat_BK)


def apply_norm(columns_BK: Tensor, offset_B: Tensor, valid_B: Tensor, norm: Norm, eps: float) -> Advantages:
    """The last step of a rule: the batch step if `norm` is ``response``, and float32.

    With mu and sigma (ddof 1) of the row totals over the valid rows, the batch step returns the columns over
    (sigma + eps) and the offset (offset - mu) / (sigma + eps). ``none`` and ``token`` leave the scale alone;
    with ``token`` it is for `creditlib.advantage.whitening.Whitening` to set.
    """
    if norm == "response" and valid_B.any():
        total_V = (columns_BK.sum(1) + offset_B)[valid_B]
        mu = total_V.mean()
        # Columns that sum to zero leave a mean of rounding alone, which must not move a group that is flat.
        if mu.abs() <= 1e-9 * total_V.abs().mean():
            mu = torch.zeros_like(mu)
        sigma = total_V.std() if len(total_V) > 1 else torch.zeros_like(mu)
        columns_BK = columns_BK / (sigma + eps)
        offset_B = ((offset_B - mu) / (sigma + eps)).masked_fill(~valid_B, 0.0)
    return Advantages(columns_BK.float(), offset_B.float())
