"""A policy's own responses after other prompts: how far do its next-token distributions move?

All replays of a batch are one forest of equal token prefixes, so a prompt, what several contexts say alike
and what several responses begin with are each computed once. Hidden states are kept and logits are not: the
head runs over a few tokens at a time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from creditlib.policy.direction import directions
from creditlib.policy.divergence import compare_rows, js, probabilities, top_k_js
from creditlib.policy.head import wide
from creditlib.policy.modes import evaluating
from creditlib.policy.scoring import Scorer
from creditlib.policy.tree import PrefixTree, families
from creditlib.types import Directions, Replay, Rollout

Pair = tuple[Replay, Replay]
_CHUNK = 128  # tokens whose distributions are held at a time: memory for many more is mapped anew each time
_ROWS = 8192  # of an embedding, made precise at a time
_WHOLE = 4  # times `tokens` before a family of contexts is parted, as each part reads its contexts again


@dataclass(frozen=True)
class SamplingPolicy:
    """The policy that sampled, as credit strategies see it (`creditlib.types.PolicyScorer`).

    Attributes:
        scorer: of the policy.
        micro_batch: most responses scored at a time by `logps`.
        tokens: about so many tokens of replays in one forward pass, equal beginnings counted once. With many
            more, a small model's activations no longer fit into memory that the allocator uses again.
    """

    scorer: Scorer
    micro_batch: int | None = None
    tokens: int = 4096

    def logps(self, rollout: Rollout) -> Tensor:
        """(B, T) float32 log-probs of the sampled tokens at the rollout's temperature, 0 outside the mask."""
        return self.scorer.logps(rollout, self.micro_batch)

    @torch.no_grad()
    def divergences(
        self, pairs: Sequence[Pair], *, temperature: float = 1.0, top_k: int | None = None
    ) -> list[Tensor]:
        """Jensen-Shannon divergence of the two replays' next-token distributions at each token, (T,) float32
        a pair, in nats (see `creditlib.types.PolicyScorer`).
        """
        found: list[Tensor] = [torch.empty(0)] * len(pairs)
        with evaluating(self.scorer.model):
            for some in self._batches(pairs):
                replays = list(dict.fromkeys(replay for index in some for replay in pairs[index]))
                hidden_LD, before = self._hidden(replays)
                left, right = ([before[pairs[index][side]] for index in some] for side in (0, 1))
                together = self._compare(hidden_LD, left, right, temperature, top_k)
                for index, divergence_T in zip(some, together, strict=True):
                    found[index] = divergence_T
        return found

    @torch.no_grad()
    def directions(
        self,
        hidden_MD: Tensor,
        actions_M: Tensor,
        rewards: Sequence[tuple[Tensor, Tensor]],
        *,
        temperature: float = 1.0,
    ) -> Directions:
        """How the gradient of a reward stands to the update of each sampled token, (M,) each (see
        `creditlib.types.PolicyScorer`).
        """
        pieces: list[Directions] = []
        vocabulary = min(len(embedding_VE) for _, embedding_VE in rewards)
        for start in range(0, max(len(actions_M), 1), _CHUNK):  # no token at all: one empty piece
            part = slice(start, start + _CHUNK)
            logits_MV = wide(self.scorer.head(hidden_MD[part])[:, :vocabulary]) / temperature
            values_MV = torch.zeros_like(logits_MV)
            for gradients_ME, embedding_VE in rewards:
                own_ME = gradients_ME[part].to(logits_MV)
                for first in range(
                    0, vocabulary, _ROWS
                ):  # in the logits' precision, without a copy of the table
                    rows = slice(first, min(first + _ROWS, vocabulary))
                    values_MV[:, rows] += own_ME @ embedding_VE[rows].to(logits_MV).T
            pieces.append(directions(logits_MV, actions_M[part], values_MV))
        return Directions(*(torch.cat(parts) for parts in zip(*pieces, strict=True)))

    def _hidden(self, replays: Sequence[Replay]) -> tuple[Tensor, dict[Replay, np.ndarray]]:
        """Hidden states, and for each replay the indices of those that predict its response."""
        runs = [[replay for replay in replays if not replay.alone]]
        runs += [[replay] for replay in replays if replay.alone]
        states: list[Tensor] = []
        before: dict[Replay, np.ndarray] = {}
        first = 0
        for run in filter(None, runs):
            hidden_LD, paths = self.scorer.hidden_states([(*r.context, *r.response) for r in run])
            for replay, path in zip(run, paths, strict=True):
                before[replay] = first + path[len(replay.context) - 1 : -1]
            states.append(hidden_LD)
            first += len(hidden_LD)
        return torch.cat(states) if len(states) > 1 else states[0], before

    def _compare(
        self,
        hidden_LD: Tensor,
        left: Sequence[np.ndarray],
        right: Sequence[np.ndarray],
        temperature: float,
        top_k: int | None,
    ) -> list[Tensor]:
        """Divergences between rows `left` and `right`, which come in pieces, in the same pieces."""
        wanted_M2 = np.stack([np.concatenate(left), np.concatenate(right)], 1)
        # Responses with the same beginning ask the same, and a row on the left is compared with several.
        pairs_U2, place_M = np.unique(wanted_M2, axis=0, return_inverse=True)
        divergence = js if top_k is None else top_k_js(top_k)
        pieces: list[Tensor] = []
        for start in range(0, len(pairs_U2), _CHUNK):
            p_U, q_U = pairs_U2[start : start + _CHUNK].T
            p_MV, p_T = self._distributions(hidden_LD, p_U, temperature)
            q_MV, q_T = self._distributions(hidden_LD, q_U, temperature)
            pieces.append(compare_rows(divergence, p_MV, p_T, q_MV, q_T).float().cpu())
        all_M = torch.cat(pieces)[torch.from_numpy(place_M.reshape(-1))]  # NumPy 2.0 keeps the axis
        return list(all_M.split([len(part) for part in left]))

    def _distributions(
        self, hidden_LD: Tensor, rows: np.ndarray, temperature: float
    ) -> tuple[Tensor, Tensor]:
        """Next-token probabilities at the distinct `rows`, and where each of `rows` is among them."""
        distinct, place = np.unique(rows, return_inverse=True)
        device = hidden_LD.device
        logits_MV = self.scorer.head(hidden_LD[torch.from_numpy(distinct).to(device)])
        if temperature != 1.0:
            logits_MV = logits_MV / temperature
        return probabilities(logits_MV), torch.from_numpy(place.reshape(-1)).to(device)

    def _batches(self, pairs: Sequence[Pair]) -> Iterator[list[int]]:
        """Indices of pairs in batches of about `tokens` tokens, those with similar contexts together."""
        batch: list[int] = []
        size = 0.0
        for family in families([one.context for one, _ in pairs]):
            replays = {replay for index in family for replay in pairs[index]}
            own = len(PrefixTree.build([(*context, *response) for context, response, _ in replays]))
            parts = math.ceil(own / (_WHOLE * self.tokens))
            for part in np.array_split(family, min(parts, len(family))):
                if batch and size + own / parts > self.tokens:
                    yield batch
                    batch, size = [], 0.0
                batch += part.tolist()
                size += own / parts
        if batch:
            yield batch
