"""Reward models as rewards: one column of the reward table each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from creditlib.config import LengthWindow
from creditlib.policy.reward_scorer import Judgement, RewardScorer
from creditlib.rewards.conversation import ConversationReader, Reading
from creditlib.types import Check, CreditlibError, Prompt, RewardReading, Rollout

UNBOUNDED = (-math.inf, math.inf)


@dataclass(frozen=True)
class RewardModel:
    """A reward model, and how its score becomes a reward.

    Attributes:
        scorer: reads texts.
        tokenizer: its own.
        shared: how many tokens the policy has.
        differences: why it does not read the policy's tokens as they are; empty: it does.
        window: takes off for responses that are too short or too long.
    """

    scorer: RewardScorer
    tokenizer: Any
    shared: int
    differences: str = ""
    window: LengthWindow | None = None

    @property
    def embedding_VE(self) -> Tensor:
        """Input embeddings of the tokens that it shares with the policy."""
        assert not self.differences  # a run whose strategy asks for this has checked it
        return self.scorer.embedding_table[: self.shared]

    @property
    def null_E(self) -> Tensor:
        """The padding token's embedding.

        Raises:
            CreditlibError: the tokenizer has no padding token.
        """
        if self.tokenizer.pad_token_id is None:
            raise CreditlibError(
                f"{self.scorer.source} has no padding token, whose embedding stands for no token: set "
                "pad_token in its tokenizer_config.json"
            )
        return self.scorer.embeddings(torch.tensor([self.tokenizer.pad_token_id], device=self.scorer.device))[
            0
        ]

    def check(self, prompts: Sequence[Prompt]) -> None:
        """See that the model's chat template takes every prompt; raises a `CreditlibError` where not."""
        self._reader.check(prompts)

    @property
    def _reader(self) -> ConversationReader:
        return ConversationReader(self.tokenizer, shared=None if self.differences else self.shared)

    def judge(
        self, rollout: Rollout, *, gradients: bool, values: bool
    ) -> tuple[list[Check], RewardReading | None]:
        """A finding on every response, and where it is asked for what the model says of each token.

        A response that exceeds the model's context, or whose score is not finite, has no reward from it and
        is flagged.
        """
        readings = self._reader.read(rollout)
        limit = self.scorer.context_length
        fits = [
            limit is None or len(reading.text.before) + len(reading.text.rest) <= limit
            for reading in readings
        ]
        rows = [row for row, fit in enumerate(fits) if fit]
        judgements = dict(
            zip(
                rows,
                self.scorer.read([readings[row].text for row in rows], gradients=gradients, values=values),
                strict=True,
            )
        )
        lengths = rollout.lengths_B.tolist()
        checks = [self._check(judgements.get(row), lengths[row], limit) for row in range(len(readings))]
        if not (gradients or values):
            return checks, None
        return checks, self._reading(rollout, readings, judgements, gradients, values)

    def _reading(
        self,
        rollout: Rollout,
        readings: Sequence[Reading],
        judgements: Mapping[int, Judgement],
        gradients: bool,
        values: bool,
    ) -> RewardReading:
        """What the model says of each token, put where the policy's tokens are."""
        read_BT = torch.zeros_like(rollout.mask_BT)
        gradients_BTD = values_BS = None
        if gradients:
            table_VE = self.scorer.embedding_table
            gradients_BTD = table_VE.new_zeros(*read_BT.shape, table_VE.shape[1], device=read_BT.device)
        if values:
            values_BS = torch.zeros(len(read_BT), read_BT.shape[1] + 1, device=read_BT.device)
        for row, judgement in judgements.items():
            places_T = torch.tensor(readings[row].places, dtype=torch.long, device=read_BT.device)
            tokens_M = (places_T >= 0).nonzero()[:, 0]
            read_BT[row, tokens_M] = True
            if gradients_BTD is not None and judgement.gradients_SE is not None:
                gradients_BTD[row, tokens_M] = judgement.gradients_SE[places_T[tokens_M]].to(gradients_BTD)
            if values_BS is not None and judgement.values_S is not None:
                values_BS[row] = _at_boundaries(judgement.values_S.to(values_BS), places_T, read_BT.shape[1])
        scores = [judgements[row].score if row in judgements else math.nan for row in range(len(readings))]
        score_B = torch.tensor(scores, device=read_BT.device)
        return RewardReading(score_B, read_BT, gradients_BTD, values_BS)

    def _check(self, judgement: Judgement | None, length: int, limit: int | None) -> Check:
        if judgement is None:
            why = f"longer than the {limit} tokens that the reward model reads"
            return Check(math.nan, why, flags=("reward_model:too_long",))
        if not math.isfinite(judgement.score):
            return Check(math.nan, f"its score is {judgement.score}", flags=("reward_model:not_finite",))
        short, long = (0.0, 0.0) if self.window is None else _penalties(self.window, length)
        reason = f"score {judgement.score:.3f}"
        if short or long:
            reason += f", less {short + long:.3f} for {length} tokens"
        raw = None if self.window is None else judgement.score
        return Check(judgement.score - short - long, reason, raw=raw)


def _penalties(window: LengthWindow, length: int) -> tuple[float, float]:
    """What a response of this many tokens loses for being short and for being long, as DATC has it."""
    short = min(max((window.short - length) / window.short, 0.0), 1.0) if window.short else 0.0
    long = min(max((length - window.long) / window.long, 0.0), 1.0)
    return window.short_penalty * short, window.long_penalty * long


def _at_boundaries(values_S: Tensor, places_T: Tensor, width: int) -> Tensor:
    """The head's output before the first of the policy's tokens and after each, (width + 1,).

    A token without a place changes nothing. After the last token it is the score itself: what the model's
    ending adds belongs to it.
    """
    found_S = values_S.new_zeros(width + 1)
    found_S[len(places_T) :] = values_S[-1]
    if (places_T >= 0).any():
        first = places_T[places_T >= 0][:1]
        # How far into the text the tokens so far reach; places grow from token to token.
        reached_S = torch.cat([first, places_T + 1]).cummax(0).values
        found_S[: len(places_T)] = values_S[reached_S[:-1]]
    else:
        found_S[: len(places_T)] = values_S[-1]
    return found_S
