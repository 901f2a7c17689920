"""From logits to tokens: temperature, top-k, top-p, and the draw itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from creditlib.policy.streams import exponentials
from creditlib.types import CreditlibError


class Draw(NamedTuple):
    """One token a row. Probabilities are float32, or float64 if the logits are."""

    tokens_R: Tensor
    logps_R: Tensor  # under the full softmax at the sampling temperature
    mass_R: Tensor  # probability that top-k and top-p kept, 1 without them


@dataclass(frozen=True)
class Sampler:
    """Draws from softmax(logits / temperature), cut to the `top_k` likeliest tokens and then to `top_p` of
    their mass.

    `greedy` takes the likeliest token instead; log-probs are those of the sampling temperature all the same.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int | None = None
    greedy: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.temperature < math.inf:
            raise CreditlibError(
                f"rollout.temperature must be above 0, found {self.temperature}; "
                "for the likeliest tokens evaluate greedily"
            )
        if not 0 < self.top_p <= 1:
            raise CreditlibError(f"rollout.top_p must be above 0 and at most 1, found {self.top_p}")
        if self.top_k is not None and self.top_k < 1:
            raise CreditlibError(f"rollout.top_k must be at least 1, or 0 for no limit, found {self.top_k}")

    def draw(self, logits_RV: Tensor, keys_R: Tensor, position: int) -> Draw:
        """Sample token number `position` of each row's response.

        A token wins an exponential race, argmax p_v / e_v with e_v ~ Exp(1): Gumbel-max in another form.
        Rounding of the logits changes the winner only where two runners come in that close, unlike with an
        inverted cumulative sum. The race has two heats, which block of tokens and which token of the block:
        the same distribution for about 2 sqrt(V) random numbers instead of V.

        Args:
            logits_RV: logits of the next token.
            keys_R: keys of the rows' streams (`streams.stream_key`), int64.
            position: index of the token in the responses.

        Raises:
            CreditlibError: logits are NaN or infinite.
        """
        scores_RV = logits_RV if logits_RV.dtype == torch.float64 else logits_RV.float()
        if self.temperature != 1:
            scores_RV = scores_RV / self.temperature
        rows, vocabulary = scores_RV.shape
        block = 2 ** round(math.log2(vocabulary) / 2)
        n_blocks = -(-vocabulary // block)

        top_R1 = scores_RV.amax(1, keepdim=True)
        padded_RV = scores_RV.new_empty(rows, n_blocks * block)
        padded_RV[:, vocabulary:] = 0
        weights_RV = torch.sub(scores_RV, top_R1, out=padded_RV[:, :vocabulary]).exp_()
        blocks_RNW = padded_RV.view(rows, n_blocks, block)
        total_R = blocks_RNW.sum((1, 2))
        if not bool(total_R.isfinite().all()):
            raise CreditlibError(
                "the policy's logits are NaN or infinite, so its weights have diverged: "
                "lower trainer.learning_rate"
            )

        mass_R = torch.ones_like(total_R)
        if self.greedy:
            tokens_R = scores_RV.argmax(1)
        else:
            if self.top_k or self.top_p < 1:
                self._truncate(weights_RV, total_R)
                mass_R = (blocks_RNW.sum((1, 2)) / total_R).clamp(max=1)
            noise = exponentials(keys_R, position * (n_blocks + block), n_blocks + block)
            heat_R = (blocks_RNW.sum(2) / noise[:, :n_blocks]).argmax(1)
            heat_RW = blocks_RNW[torch.arange(rows, device=heat_R.device), heat_R]
            tokens_R = heat_R * block + (heat_RW / noise[:, n_blocks:]).argmax(1)
        logps_R = scores_RV.gather(1, tokens_R[:, None])[:, 0] - top_R1[:, 0] - total_R.log()
        return Draw(tokens_R, logps_R, mass_R)

    def _truncate(self, weights_RV: Tensor, total_R: Tensor) -> None:
        """Zero in place the weights that top-k, and then top-p of what it kept, leave out."""
        vocabulary = weights_RV.shape[1]
        # Top-p needs few tokens as a rule; sorting a whole vocabulary costs as much as a small model's
        # forward.
        count = min(self.top_k or 256, vocabulary)
        while True:
            values_RC, index_RC = weights_RV.topk(count, 1)
            cumulative_RC = values_RC.double().cumsum(1)
            whole_R = cumulative_RC[:, -1] if self.top_k else total_R.double()
            kept_RC = cumulative_RC - values_RC < self.top_p * whole_R[:, None]
            if self.top_k or count == vocabulary or not bool(kept_RC[:, -1].any()):
                break
            count = min(8 * count, vocabulary)
        weights_RV.zero_().scatter_(1, index_RC, values_RC * kept_RC)
