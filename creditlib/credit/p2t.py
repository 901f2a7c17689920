"""P2T: a token earns its share of a reward model's attribution (Wu et al. 2026).

The attribution of a token is its embedding, less that of no token, times the score's gradient::

    I_t = <e_t - e_null, dR / de_t>,      share_t = softmax_t(I / tau) over the response

The published repository and the paper's equations turn the shares into rewards differently, and both are
here. With R the reward model's score of the response, r = sigmoid(R) and T tokens::

    repo     S_t = outcome A + token T r share_t + step r          (signed: 2 r - 1 for r)
    paper    S_t = A + alpha (R + omega R share_t)

Neither keeps the mean of the response's advantage. In the paper's form a negative score rewards the tokens
with the least attribution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor

from creditlib.types import CreditContext, TokenCredit


@dataclass(frozen=True)
class P2t:
    """P2T: a token earns its share of the reward model's attribution; needs reward_model=...

    Source: Wu et al., CVPR 2026; repository stonewst/P2T at 31bbc64.

    Attributes:
        mode: ``repo``: as the repository does it. ``paper``: as the equations say.
        tau: temperature of the shares.
        outcome: repo: of the response's advantage.
        token: repo: of the tokens' rewards.
        step: repo: of the response's own reward, the same for each of its tokens.
        signed: repo: rewards between -1 and 1 instead of 0 and 1.
        omega: paper: of the shares.
        alpha: paper: of the tokens' rewards.
    """

    mode: Literal["repo", "paper"] = "repo"
    tau: Annotated[float, Field(gt=0)] = 1.0
    outcome: float = 1.0
    token: float = 0.6
    step: float = 1.0
    signed: bool = False
    omega: float = 0.6
    alpha: float = 0.1

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"reward_gradients", "reward_null"})

    def assign(self, context: CreditContext) -> TokenCredit:
        """The response's advantage, and each reward model's token rewards as a bonus, weighted as its reward
        is.

        A response whose score or attribution is not finite gets no bonus; that is counted.
        """
        rollout, table, advantages = context.rollout, context.table, context.advantages
        mask_BT = rollout.mask_BT
        shape = (*advantages.by_reward_BK.shape, mask_BT.shape[1])
        relevance_BKT = advantages.by_reward_BK.new_full(shape, torch.nan)
        bonus_BT = advantages.by_reward_BK.new_zeros(mask_BT.shape)
        diagnostics = {}
        for k, name in enumerate(table.names):
            if name not in table.readings:
                continue
            reading, model = table.readings[name], context.reward_models[name]
            assert reading.gradients_BTD is not None  # the trainer grants what `needs` names
            read_BT = reading.read_BT & mask_BT
            table_VE = model.embedding_VE
            embedded_ME = (table_VE[rollout.ids_BT[read_BT].to(table_VE.device)] - model.null_E).to(bonus_BT)
            attribution_BT = bonus_BT.new_zeros(bonus_BT.shape)
            attribution_BT[read_BT] = (embedded_ME * reading.gradients_BTD[read_BT].to(bonus_BT)).sum(1)
            score_B = reading.score_B.to(bonus_BT)
            finite_B = attribution_BT.isfinite().all(1) & score_B.isfinite()
            share_BT = shares(attribution_BT.masked_fill(~finite_B[:, None], 0.0), read_BT, self.tau)
            earned_BT = self._earned(score_B.masked_fill(~finite_B, 0.0), share_BT, mask_BT)
            earned_BT = earned_BT.masked_fill(~mask_BT | ~finite_B[:, None], 0.0)
            bonus_BT = bonus_BT + context.reward_weights[k] * earned_BT
            relevance_BKT[:, k] = attribution_BT.masked_fill(~read_BT | ~finite_B[:, None], torch.nan)
            if len(finite_B):
                diagnostics[f"not_finite/{name}"] = 1.0 - finite_B.double().mean().item()
                largest_B = share_BT.amax(1) if share_BT.shape[1] else share_BT.sum(1)
                # 1: the response's tokens share evenly, and this is a constant for all of them.
                diagnostics[f"largest_share/{name}"] = (largest_B * read_BT.sum(1)).mean().item()
        weight = self.outcome if self.mode == "repo" else 1.0
        if weight != 1.0:  # of the whole advantage, so also of what belongs to no reward
            bonus_BT = bonus_BT + (weight - 1.0) * advantages.offset_B[:, None]
        one = torch.full((), weight, dtype=bonus_BT.dtype, device=bonus_BT.device)
        return TokenCredit.combine(
            advantages,
            one.expand(shape),
            mask_BT,
            bonus_BT=bonus_BT,
            mean_one=weight == 1.0,
            relevance_BKT=relevance_BKT,
            measure_K=tuple("attribution" if name in table.readings else "" for name in table.names),
            diagnostics=diagnostics,
        )

    def _earned(self, score_B: Tensor, share_BT: Tensor, mask_BT: Tensor) -> Tensor:
        if self.mode == "paper":
            return self.alpha * score_B[:, None] * (1 + self.omega * share_BT)
        reward_B1 = torch.sigmoid(score_B)[:, None]
        if self.signed:
            reward_B1 = 2 * reward_B1 - 1
        return reward_B1 * (self.token * mask_BT.sum(1, keepdim=True) * share_BT + self.step)


def shares(attribution_BT: Tensor, read_BT: Tensor, tau: float) -> Tensor:
    """Softmax of the attributions of a response's tokens, 0 for those that the reward model did not read."""
    scaled_BT = (attribution_BT / tau).masked_fill(~read_BT, -torch.inf)
    return torch.softmax(scaled_BT, 1).masked_fill(~read_BT, 0.0)
