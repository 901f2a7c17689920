"""Controls: what is left of a strategy's gain when its weights no longer know which token they are for?

They wrap any strategy (``credit.control=...``). The weights are made as ever, then replaced; everything else
about the run stays the same. Their random numbers are their own, a function of (seed, step, prompt, sample,
reward), so neither sampling nor the number of processes is touched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from creditlib.config import Control
from creditlib.policy.streams import exponentials, stream_key
from creditlib.types import CreditContext, CreditStrategy, TokenCredit


@dataclass(frozen=True)
class Controlled:
    """A strategy whose weights are replaced after the fact.

    Attributes:
        strategy: makes the weights.
        control: ``shuffled``: the same weights in random order within each response, another order for each
            reward. ``random_band``: uniform between the least and the greatest of a response's weights, moved
            to mean one within that band. ``uniform``: their mean, and so the strategy's costs without its
            effect. What a strategy adds is treated alike.
        seed: the run's.
    """

    strategy: CreditStrategy
    control: Control
    seed: int

    @property
    def needs(self) -> frozenset[str]:
        return self.strategy.needs

    @property
    def rewards(self) -> Sequence[str]:
        """The rewards that the strategy names, where it does (credit=routed)."""
        return getattr(self.strategy, "rewards", ())

    def needs_for(self, reward: str) -> frozenset[str]:
        """What the strategy needs to spread this reward."""
        return needs_for(self.strategy, reward)

    def assign(self, context: CreditContext) -> TokenCredit:
        """The strategy's credit with other weights of the same mean, and so what it adds.

        What its weights were made of is left out, for these are not.
        """
        credit = self.strategy.assign(context)
        mask_BT = context.rollout.mask_BT
        weights_BKT = credit.weights_BKT.clone()
        bonus_BT = None if credit.bonus_BT is None else credit.bonus_BT.clone()
        for b, name in enumerate(context.rollout.names):
            own_T = mask_BT[b].nonzero()[:, 0]
            for k in range(weights_BKT.shape[1]):
                draws_T = self._draws(context.step, f"{k}", name, len(own_T), mask_BT.device)
                weights_T = weights_BKT[b, k, own_T]
                # Where the mean is one, rounding must not keep uniform weights from being it.
                even = weights_T.new_ones(()) if credit.mean_one else _mean(weights_T)
                weights_BKT[b, k, own_T] = self._replace(weights_T, draws_T, even)
            if bonus_BT is not None:
                draws_T = self._draws(context.step, "bonus", name, len(own_T), mask_BT.device)
                bonus_T = bonus_BT[b, own_T]
                bonus_BT[b, own_T] = self._replace(bonus_T, draws_T, _mean(bonus_T))
        return TokenCredit.combine(
            context.advantages,
            weights_BKT,
            mask_BT,
            bonus_BT=bonus_BT,
            mean_one=credit.mean_one,
            diagnostics=credit.diagnostics,
        )

    def _replace(self, values_T: Tensor, draws_T: Tensor, even: Tensor) -> Tensor:
        if self.control == "uniform":
            return even.expand_as(values_T)
        if self.control == "shuffled":
            return values_T[draws_T.argsort()]
        return random_band(values_T, draws_T)

    def _draws(
        self, step: int, what: str, response: tuple[str, int], count: int, device: torch.device
    ) -> Tensor:
        """`count` numbers uniform in (0, 1), for the weights of a reward or the bonus of a response."""
        prompt, sample = response
        key = stream_key(self.seed, step, f"control {what} {prompt}", sample)
        return torch.exp(-exponentials(torch.tensor([key], device=device), 0, count)[0])


def needs_for(strategy: CreditStrategy, reward: str) -> frozenset[str]:
    """What a strategy needs to spread this reward: one that treats rewards apart says so."""
    own: Callable[[str], frozenset[str]] | None = getattr(strategy, "needs_for", None)
    return strategy.needs if own is None else own(reward)


def _mean(values_T: Tensor) -> Tensor:
    return values_T.mean() if len(values_T) else values_T.new_zeros(())


def random_band(weights_T: Tensor, draws_T: Tensor) -> Tensor:
    """Weights between the least and the greatest of `weights_T`, at the places `draws_T` (in (0, 1)) of that
    band, and then drawn towards one of its ends until their mean is that of `weights_T`.
    """
    if not len(weights_T):
        return weights_T
    low, high, mean = (x.double() for x in (weights_T.min(), weights_T.max(), weights_T.double().mean()))
    random_T = low + (high - low) * draws_T.double()
    end = low if random_T.mean() > mean else high
    distance = random_T.mean() - end
    if distance == 0:  # a band of no width
        return weights_T
    return (end + (random_T - end) * (mean - end) / distance).to(weights_T)
