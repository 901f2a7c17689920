"""RED: a token earns what the reward model's score changes by when it is read (Li et al. 2025).

The reward model's head is read at every position of one forward pass::

    r_t = R(x, y_<=t) - R(x, y_<t)                 sums up to R(x, y) - R(x, nothing)
    S_t = A + alpha (r_t - mean_s r_s)

The difference is taken about its mean over the response. Against a baseline of the group all tokens of a
response would get the same sign, and the mean of a response's advantage would be another than GRPO's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field

from creditlib.types import CreditContext, TokenCredit


@dataclass(frozen=True)
class Red:
    """RED: a token earns the change of the reward model's score that it makes; needs reward_model=...

    Source: Li et al., EMNLP 2025, arXiv 2411.08302; the form that keeps the mean is a port's.

    Attributes:
        alpha: of the differences, which are in the reward model's units; 0 is uniform credit.
        beta_c: share of the differences; the rest of the score goes to the last token.
    """

    alpha: Annotated[float, Field(ge=0)] = 1.0
    beta_c: Annotated[float, Field(ge=0, le=1)] = 1.0

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"reward_values"})

    def assign(self, context: CreditContext) -> TokenCredit:
        """Uniform weights, and the differences of each reward model as a bonus, weighted as its reward is.

        A response in which some value is not finite gets no bonus; that is counted.
        """
        table, advantages, mask_BT = context.table, context.advantages, context.rollout.mask_BT
        shape = (*advantages.by_reward_BK.shape, mask_BT.shape[1])
        relevance_BKT = advantages.by_reward_BK.new_full(shape, torch.nan)
        bonus_BT = advantages.by_reward_BK.new_zeros(mask_BT.shape)
        length_B1 = mask_BT.sum(1, keepdim=True).clamp(min=1)
        last_BT = mask_BT & (torch.arange(mask_BT.shape[1], device=mask_BT.device) == length_B1 - 1)
        diagnostics = {}
        for k, name in enumerate(table.names):
            if name not in table.readings:
                continue
            values_BS = table.readings[name].values_BS
            assert values_BS is not None  # the trainer grants what `needs` names
            change_BT = values_BS.diff(dim=1).masked_fill(~mask_BT, 0.0)
            finite_B = change_BT.isfinite().all(1)
            change_BT = change_BT.masked_fill(~finite_B[:, None], 0.0)
            score_B1 = values_BS.gather(1, length_B1).masked_fill(~finite_B[:, None], 0.0)
            earned_BT = self.beta_c * change_BT + (1 - self.beta_c) * score_B1 * last_BT
            about_mean_BT = (earned_BT - earned_BT.sum(1, keepdim=True) / length_B1).masked_fill(
                ~mask_BT, 0.0
            )
            bonus_BT = bonus_BT + self.alpha * context.reward_weights[k] * about_mean_BT.to(bonus_BT)
            relevance_BKT[:, k] = change_BT.masked_fill(~mask_BT | ~finite_B[:, None], torch.nan)
            if len(finite_B):
                diagnostics[f"not_finite/{name}"] = 1.0 - finite_B.double().mean().item()
                diagnostics[f"change/{name}"] = (
                    (change_BT.abs().sum(1, keepdim=True) / length_B1).mean().item()
                )
        one = torch.ones((), dtype=bonus_BT.dtype, device=bonus_BT.device)
        return TokenCredit.combine(
            advantages,
            one.expand(shape),
            mask_BT,
            bonus_BT=bonus_BT,
            relevance_BKT=relevance_BKT,
            measure_K=tuple("change" if name in table.readings else "" for name in table.names),
            diagnostics=diagnostics,
        )
