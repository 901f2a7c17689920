"""GDPO: each reward normalised within its group on its own, then summed and scaled by the batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from creditlib.advantage.groups import apply_norm, as_rewards, check_settings, float32_noise, group_stats
from creditlib.types import Advantages, Norm


@dataclass(frozen=True)
class Gdpo:
    """GDPO: normalise each reward within its group, sum them with their weights, scale by the batch.

    C_k = lambda_k (r_k - mean_g r_k) / (std_g r_k + eps), std with ddof 1, and each part C_k /
    (std_batch(sum_k C_k) + eps). Every column sums to zero in each group, so the batch mean is 0 and the
    batch step is a scale that splits exactly over the rewards. A reward that is constant in a group, but for
    rounding, is exactly 0 there; one that does not apply counts 0. The batch step stays with a single reward.

    Source: arXiv 2601.05242, section 3.

    Attributes:
        weights: lambda_k, one a reward; None: all 1.
        eps: added to both standard deviations.
        norm: ``response``: batch statistics over responses; ``token``: over tokens, left to the token step;
            ``none``.
    """

    weights: tuple[float, ...] | None = None
    eps: float = 1e-4
    norm: Norm = "response"

    def __post_init__(self) -> None:
        check_settings(self.eps, self.weights)

    def __call__(
        self,
        scores_BK: Tensor,
        group_B: Tensor,
        bounds_K2: Tensor | None = None,
        kind_BK: Sequence[Sequence[str]] | None = None,
    ) -> Advantages:
        """Advantages of one rollout; `bounds_K2` and `kind_BK` play no part in this rule."""
        scores_BK, weights_K = as_rewards(scores_BK, group_B, self.weights)
        column = group_stats(scores_BK, group_B, noise_BK=float32_noise(scores_BK))
        columns_BK = weights_K * column.deviation_BK / (column.std_BK + self.eps)
        valid_B = ~scores_BK.isnan().all(1)
        return apply_norm(columns_BK, columns_BK.new_zeros(len(columns_BK)), valid_B, self.norm, self.eps)
