"""Uniform credit: the response-level method itself."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from creditlib.types import CreditContext, TokenCredit


@dataclass(frozen=True)
class Uniform:
    """Every token earns its response's advantage: GRPO with advantage=grpo, GDPO with advantage=gdpo."""

    @property
    def needs(self) -> frozenset[str]:
        return frozenset()

    def assign(self, context: CreditContext) -> TokenCredit:
        """Weights of 1, without the memory of a (B, K, T) tensor."""
        by_reward_BK = context.advantages.by_reward_BK
        mask_BT = context.rollout.mask_BT
        one = torch.ones((), dtype=by_reward_BK.dtype, device=by_reward_BK.device)
        return TokenCredit.combine(
            context.advantages, one.expand(*by_reward_BK.shape, mask_BT.shape[1]), mask_BT
        )
