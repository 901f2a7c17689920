"""GRPO: the weighted sum of the rewards, normalised within its group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from creditlib.advantage.groups import apply_norm, as_rewards, check_settings, group_stats
from creditlib.types import Advantages, CreditlibError, Norm


@dataclass(frozen=True)
class Grpo:
    """GRPO: sum the weighted rewards, subtract the group's mean, divide by the group's standard deviation.

    With R = sum_k lambda_k r_k over the rewards that apply, the total is (R - mean_g R) / (std_g R + eps),
    and reward k's part of it lambda_k (r_k - mean_g r_k) / (std_g R + eps). Where some rewards of a row do
    not apply, the parts do not add up to the total; the rest is the offset, since it belongs to no reward.
    Groups in which R is constant are exactly 0.

    Source: Shao et al. 2024, arXiv 2402.03300, section 4.1; without `scale`, Liu et al. 2025 (Dr. GRPO),
        arXiv 2503.20783.

    Attributes:
        weights: lambda_k, one a reward; None: all 1.
        scale: divide by the std of the ``group``, of the ``batch`` (all rows), or by nothing (``none``: Dr.
            GRPO).
        std: ``sample`` (ddof 1) or ``population`` (ddof 0).
        eps: added to the standard deviation.
        floor: divide by max(std, floor) instead of std + eps.
        norm: ``none``; ``response`` and ``token`` add a batch step as GDPO has it.
    """

    weights: tuple[float, ...] | None = None
    scale: Literal["group", "batch", "none"] = "group"
    std: Literal["sample", "population"] = "sample"
    eps: float = 1e-4
    floor: float | None = None
    norm: Norm = "none"

    def __post_init__(self) -> None:
        check_settings(self.eps, self.weights)
        if self.floor is not None and not self.floor > 0:
            raise CreditlibError(f"advantage.floor must be positive or null, found {self.floor}")
        if self.floor is not None and self.scale == "none":
            raise CreditlibError(
                "advantage.floor bounds the divisor, and advantage.scale=none has none: set one of them"
            )

    def __call__(
        self,
        scores_BK: Tensor,
        group_B: Tensor,
        bounds_K2: Tensor | None = None,
        kind_BK: Sequence[Sequence[str]] | None = None,
    ) -> Advantages:
        """Advantages of one rollout; `bounds_K2` and `kind_BK` play no part in this rule."""
        scores_BK, weights_K = as_rewards(scores_BK, group_B, self.weights)
        rewards_BK = scores_BK * weights_K
        missing_BK = rewards_BK.isnan()
        valid_B = ~missing_BK.all(1)

        def row_sum(cells_BK: Tensor) -> Tensor:
            """(B, 1), NaN in rows without any reward, so that they stay outside their group's statistics."""
            sum_B1 = cells_BK.masked_fill(missing_BK, 0.0).sum(1, keepdim=True)
            return sum_B1.masked_fill(~valid_B[:, None], torch.nan)

        # Rewards arrive as float32, so 0.1 + 0.2 and 0.3 + 0.0 differ by rounding. Dividing the parts of such
        # a group by its std would blow them up a thousandfold, though they cancel.
        rounding = (rewards_BK.shape[1] - 1) * torch.finfo(torch.float32).eps
        noise_B1 = rounding * row_sum(rewards_BK.abs()).nan_to_num(0.0)
        total_B1 = row_sum(rewards_BK)
        total = group_stats(total_B1, group_B, ddof=self._ddof, noise_BK=noise_B1)
        column = group_stats(rewards_BK, group_B)
        # What a row would earn for the mere fact that these rewards apply to it: 0 where all rows are alike.
        offset = group_stats(row_sum(column.mean_BK), group_B)

        scale_B1 = self._scale(total.std_BK, total_B1[valid_B])
        columns_BK = (column.deviation_BK / scale_B1).masked_fill(total.flat_BK, 0.0)
        offset_B1 = (offset.deviation_BK / scale_B1).masked_fill(total.flat_BK, 0.0)
        return apply_norm(columns_BK, offset_B1[:, 0], valid_B, self.norm, self.eps)

    @property
    def _ddof(self) -> int:
        return 1 if self.std == "sample" else 0

    def _scale(self, group_std_B1: Tensor, totals_V: Tensor) -> Tensor:
        if self.scale == "none":
            return torch.ones_like(group_std_B1)
        std_B1 = group_std_B1
        if self.scale == "batch":
            spread = totals_V.std(correction=self._ddof) if len(totals_V) > 1 else totals_V.new_zeros(())
            std_B1 = spread.expand_as(group_std_B1)
        return std_B1 + self.eps if self.floor is None else std_B1.clamp(min=self.floor)
