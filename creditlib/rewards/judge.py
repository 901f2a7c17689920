"""All rewards of a run: the task's verifier and the reward models, in one table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

import torch

from creditlib.rewards.models import UNBOUNDED, RewardModel
from creditlib.rewards.table import build_table
from creditlib.types import Check, CreditlibError, RewardReading, RewardTable, Rollout, Verifier


class Judge:
    """Judges rollouts. The verifier's rewards come first, then one of each reward model.

    Args:
        verifier: the task.
        models: reward models by the name of their reward.
        needs_for: what the credit strategy needs for a reward (`creditlib.types.CreditStrategy.needs`), and
            so what is read of each token.

    Raises:
        CreditlibError: a name that is taken, or no reward at all.
    """

    def __init__(
        self,
        verifier: Verifier,
        models: Mapping[str, RewardModel],
        needs_for: Callable[[str], Collection[str]] = lambda reward: (),
    ) -> None:
        self._verifier, self._models = verifier, dict(models)
        self._needs = {name: needs_for(name) for name in models}
        if taken := set(models) & set(verifier.reward_names):
            raise CreditlibError(
                f"reward_model.{min(taken)}: the task has a reward of this name already; choose another"
            )
        self.names = (*verifier.reward_names, *models)
        if not self.names:
            raise CreditlibError(
                "there is no reward: choose a reward model (reward_model=tiny, or reward_model=hf "
                "reward_model.preference.path=...) or rewards of the task"
            )

    def __call__(self, rollout: Rollout, *, look: bool = True) -> RewardTable:
        """The rewards of every response; with `look`, what the strategy needs to know of their tokens."""
        table = build_table(rollout, self._verifier)
        found: dict[str, list[Check]] = {}
        readings: dict[str, RewardReading] = {}
        for name, model in self._models.items():
            needs = self._needs[name] if look else ()
            found[name], reading = model.judge(
                rollout, gradients="reward_gradients" in needs, values="reward_values" in needs
            )
            if reading is not None:
                readings[name] = reading
        if not found:
            return table
        scores_BK = torch.tensor([[check.score for check in own] for own in found.values()]).T
        bounds_K2 = torch.tensor([UNBOUNDED] * len(found))
        return replace(
            table,
            names=self.names,
            scores_BK=torch.cat([table.scores_BK, scores_BK.reshape(len(table.checks), len(found))], 1),
            kind_BK=tuple((*kinds, *found) for kinds in table.kind_BK),
            bounds_K2=torch.cat([table.bounds_K2.view(-1, 2), bounds_K2]),
            checks=tuple(
                (*own, *more)
                for own, more in zip(table.checks, zip(*found.values(), strict=True), strict=True)
            ),
            readings=readings,
        )
