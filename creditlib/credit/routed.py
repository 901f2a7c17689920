"""Routed credit: a strategy for each reward.

    credit=routed credit.by_reward='{preference: datc, format: mrtpo}'
    credit=routed credit.by_reward='{preference: {name: datc, lam: 2.0}, format: mrtpo}'

Each strategy sees the rewards that are its own, and spreads their advantages; rewards that none is named for
keep uniform weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import torch
from torch import Tensor

from creditlib import registry
from creditlib.types import (
    Advantages,
    CreditContext,
    CreditlibError,
    CreditStrategy,
    PolicyScorer,
    ReplayContexts,
    RewardModelTables,
    RewardTable,
    Rollout,
    Scores,
    TokenCredit,
)

T = TypeVar("T")


@dataclass(frozen=True)
class Routed:
    """A credit strategy for each reward: by_reward={preference: datc, format: mrtpo}.

    Attributes:
        by_reward: reward -> the name of a strategy, or its settings with its name among them.
    """

    by_reward: Mapping[str, str | Mapping[str, Any]]

    def __post_init__(self) -> None:
        if not self.by_reward:
            raise CreditlibError(
                "credit.by_reward is empty: name a strategy for a reward, as in "
                "credit.by_reward='{preference: datc, format: mrtpo}'"
            )
        _ = self.parts  # a wrong name or setting is told at once

    @cached_property
    def parts(self) -> list[tuple[CreditStrategy, list[str]]]:
        """The strategies, each with its rewards. Rewards with the same settings share one."""
        found: list[tuple[CreditStrategy, list[str]]] = []
        for reward, section in self.by_reward.items():
            settings = {"name": section} if isinstance(section, str) else dict(section)
            name = settings.pop("name", None)
            if not isinstance(name, str) or name == "routed":
                raise CreditlibError(
                    f"credit.by_reward.{reward}: expected the name of a credit strategy (other than routed), "
                    f"or its settings with a name among them; found {section!r}"
                )
            try:
                strategy: CreditStrategy = registry.build("credit", name, **settings)
            except CreditlibError as error:
                raise CreditlibError(f"credit.by_reward.{reward}: {error}") from error
            for known, rewards in found:
                if known == strategy:
                    rewards.append(reward)
                    break
            else:
                found.append((strategy, [reward]))
        return found

    @property
    def rewards(self) -> Sequence[str]:
        """The rewards that a strategy is named for."""
        return list(self.by_reward)

    @property
    def needs(self) -> frozenset[str]:
        return frozenset().union(*(strategy.needs for strategy, _ in self.parts))

    def needs_for(self, reward: str) -> frozenset[str]:
        """What the strategy of this reward needs."""
        own = [strategy.needs for strategy, rewards in self.parts if reward in rewards]
        return own[0] if own else frozenset()

    def assign(self, context: CreditContext) -> TokenCredit:
        """Each strategy's weights for its own rewards."""
        table, advantages, mask_BT = context.table, context.advantages, context.rollout.mask_BT
        shape = (*advantages.by_reward_BK.shape, mask_BT.shape[1])
        weights_BKT = advantages.by_reward_BK.new_ones(shape)
        relevance_BKT = advantages.by_reward_BK.new_full(shape, torch.nan)
        bonus_BT: Tensor | None = None
        measure_K = [""] * len(table.names)
        notes_BK: dict[str, Tensor] = {}
        diagnostics: dict[str, float] = {}
        mean_one = True
        for strategy, rewards in self.parts:
            columns = [table.names.index(reward) for reward in rewards]
            credit = strategy.assign(_Part(context, tuple(columns)))
            weights_BKT[:, columns] = credit.weights_BKT.to(weights_BKT)
            if credit.relevance_BKT is not None:
                relevance_BKT[:, columns] = credit.relevance_BKT.to(relevance_BKT)
            for k, measure in zip(
                columns, credit.measure_K, strict=False
            ):  # a strategy without one names none
                measure_K[k] = measure
            if credit.bonus_BT is not None:
                bonus_BT = credit.bonus_BT if bonus_BT is None else bonus_BT + credit.bonus_BT
            for name, own_BK in credit.notes_BK.items():
                note_BK = notes_BK.setdefault(name, advantages.by_reward_BK.new_full(shape[:2], torch.nan))
                note_BK[:, columns] = own_BK.to(note_BK)
            diagnostics |= credit.diagnostics
            mean_one = mean_one and credit.mean_one
        return TokenCredit.combine(
            advantages,
            weights_BKT,
            mask_BT,
            bonus_BT=bonus_BT,
            mean_one=mean_one,
            relevance_BKT=relevance_BKT,
            measure_K=tuple(measure_K),
            notes_BK=notes_BK,
            diagnostics=diagnostics,
        )


@dataclass(frozen=True)
class _Part:
    """A step as a strategy sees it that spreads some of its rewards (`creditlib.types.CreditContext`)."""

    whole: CreditContext
    columns: tuple[int, ...]

    @cached_property
    def table(self) -> RewardTable:
        table, columns = self.whole.table, list(self.columns)
        names = tuple(table.names[k] for k in columns)
        return replace(
            table,
            names=names,
            scores_BK=table.scores_BK[:, columns],
            kind_BK=tuple(tuple(kinds[k] for k in columns) for kinds in table.kind_BK),
            bounds_K2=table.bounds_K2[columns],
            checks=tuple(tuple(checks[k] for k in columns) for checks in table.checks),
            readings={name: reading for name, reading in table.readings.items() if name in names},
        )

    @cached_property
    def advantages(self) -> Advantages:
        whole = self.whole.advantages
        return Advantages(whole.by_reward_BK[:, list(self.columns)], torch.zeros_like(whole.offset_B))

    @property
    def reward_weights(self) -> Sequence[float]:
        return [self.whole.reward_weights[k] for k in self.columns]

    @property
    def rollout(self) -> Rollout:
        return self.whole.rollout

    @property
    def scores(self) -> Scores:
        return self.whole.scores

    @property
    def step(self) -> int:
        return self.whole.step

    @property
    def total_steps(self) -> int:
        return self.whole.total_steps

    @property
    def policy(self) -> PolicyScorer | None:
        return self.whole.policy

    @property
    def contexts(self) -> ReplayContexts | None:
        return self.whole.contexts

    @property
    def reward_models(self) -> Mapping[str, RewardModelTables]:
        return self.whole.reward_models

    @property
    def seed(self) -> int:
        return self.whole.seed

    def gather(self, value: T) -> list[T]:
        return self.whole.gather(value)
