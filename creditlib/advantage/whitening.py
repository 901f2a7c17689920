"""The token step of ``norm=token``: whitening over all valid tokens of the batch, as verl does."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from creditlib.types import Advantages


@dataclass(frozen=True)
class Whitening:
    """Token advantages with mean 0 and variance 1 over the valid tokens of a rollout.

    The statistics are weighted by tokens: long responses count more. They do not split over rewards, which is
    why a rule with ``norm=token`` leaves its columns unscaled and this runs on the token advantages of a
    whole rollout.

    Source: verl, ``masked_whiten`` in ``verl/utils/torch_functional.py`` (eps 1e-8 under the root, ddof 1).
    """

    mean: float
    std: float

    @staticmethod
    def over(advantages_N: Tensor) -> Whitening:
        """With the statistics of these tokens. Of fewer than two there are none: all becomes 0."""
        values_N = advantages_N.detach().double()
        if len(values_N) < 2:
            return Whitening(0.0, math.inf)
        mean = values_N.mean()
        variance = (values_N - mean).square().sum() / (len(values_N) - 1)
        return Whitening(mean.item(), (variance + 1e-8).sqrt().item())

    def __call__(self, advantages_BT: Tensor, mask_BT: Tensor) -> Tensor:
        """(B, T) float32, detached; 0 outside the mask."""
        white_BT = (advantages_BT.detach().double() - self.mean) / self.std
        return white_BT.float().masked_fill(~mask_BT, 0.0)

    def of_responses(self, advantages: Advantages, rows_B: Tensor) -> Advantages:
        """The same of responses, split as before: what a token of theirs gets under uniform credit."""
        whole = Advantages(advantages.by_reward_BK / self.std, (advantages.offset_B - self.mean) / self.std)
        return whole.only(rows_B)
