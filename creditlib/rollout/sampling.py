"""From logits to tokens: temperature, top-k, top-p, and the draw itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from creditlib.rollout.streams import exponentials
from creditlib.types import CreditlibError


class Draw(NamedTuple):
    """One sampled token a row."""

    tokens_R: Tensor  # int64
    logps_R: Tensor  # full log-softmax at the temperature, in the logits' precision, at least float32
    mass_R: Tensor  # probability that top-k and top-p kept, 1 without them


@dataclass(frozen=True)
class Sampler:
    """Draws tokens from softmax(logits / temperature), truncated first to the `top_k` likeliest, then to `top_p` of their mass.

    `greedy` takes the likeliest token instead; log-probs stay those of the sampling temperature.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int | None = None
    greedy: bool = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.temperature) and self.temperature > 0):
            raise CreditlibError(
                f"rollout.temperature must be above 0, found {self.temperature}; for the likeliest token use greedy decoding"
            )
        if not 0 < self.top_p <= 1:
            raise CreditlibError(f"rollout.top_p must be in (0, 1], found {self.top_p}")
        if self.top_k is not None and self.top_k < 1:
            raise CreditlibError(f"rollout.top_k must be at least 1 or null, found {self.top_k}")

    def draw(self, logits_RV: Tensor, keys_R: Tensor, position: int) -> Draw:
        """Sample token number `position` of each row's response.

        A token wins an exponential race, argmax p_v / e_v with e_v ~ Exp(1) (Gumbel-max in another form), so a rounding
        difference in the logits changes the outcome only where two runners are within that rounding of each other.
        The race has two heats, which block of tokens and which token of the block, for the price of about 2 sqrt(V)
        random numbers instead of V.

        Args:
            logits_RV: logits of the next token.
            keys_R: key of each row's stream (`streams.stream_key`), int64.
            position: index of the token in the response, the same for all rows.
        """
        scores_RV = logits_RV if logits_RV.dtype == torch.float64 else logits_RV.float()
        if self.temperature != 1.0:
            scores_RV = scores_RV / self.temperature
        rows, vocabulary = scores_RV.shape
        block = 2 ** round(math.log2(vocabulary) / 2)
        n_blocks = -(-vocabulary // block)

        top_R1 = scores_RV.amax(1, keepdim=True)
        padded_RV = scores_RV.new_zeros(rows, n_blocks * block)
        weights_RV = torch.sub(scores_RV, top_R1, out=padded_RV[:, :vocabulary]).exp_()
        blocks_RN = padded_RV.view(rows, n_blocks, block).sum(2)
        total_R = blocks_RN.sum(1)
        if not bool(total_R.isfinite().all()):
            raise CreditlibError("the policy's logits are NaN or infinite: its weights have diverged; lower trainer.lr")

        mass_R = torch.ones_like(total_R)
        if self.greedy:
            tokens_R = scores_RV.argmax(1)
        else:
            if self.top_k is not None or self.top_p < 1:
                self._truncate_(weights_RV, total_R)
                blocks_RN = padded_RV.view(rows, n_blocks, block).sum(2)
                mass_R = (blocks_RN.sum(1) / total_R).clamp_(max=1.0)
            noise = exponentials(keys_R, position * (n_blocks + block), n_blocks + block)
            winner_R = (blocks_RN / noise[:, :n_blocks]).argmax(1)
            inside_RW = padded_RV.view(rows, n_blocks, block)[torch.arange(rows, device=winner_R.device), winner_R]
            tokens_R = winner_R * block + (inside_RW / noise[:, n_blocks:]).argmax(1)
        logps_R = scores_RV.gather(1, tokens_R[:, None])[:, 0] - top_R1[:, 0] - total_R.log()
        return Draw(tokens_R, logps_R, mass_R)

    def _truncate_(self, weights_RV: Tensor, total_R: Tensor) -> None:
        """Zero, in place, the weights that top-k and then top-p (of what top-k kept) leave out."""
        vocabulary = weights_RV.shape[1]
        # Sorting the vocabulary for top-p costs far more than the few likeliest tokens that usually hold its mass.
        count = min(self.top_k if self.top_k is not None else 256, vocabulary)
        while True:
            values_RC, index_RC = weights_RV.topk(count, 1)
            cumulative_RC = values_RC.double().cumsum(1)
            whole_R1 = (total_R if self.top_k is None else cumulative_RC[:, -1])[:, None]
            kept_RC = cumulative_RC - values_RC < self.top_p * whole_R1
            if self.top_k is not None or count == vocabulary or not bool(kept_RC[:, -1].any()):
                break
            count = min(8 * count, vocabulary)
        weights_RV.zero_().scatter_(1, index_RC, values_RC * kept_RC)
