"""MRTPO: each reward's advantage goes to the tokens that the reward is about (Zhai et al. 2026).

The policy replays its own response with and without a reward's verifier information. How far its next-token
distribution moves at a token, the Jensen-Shannon distance, is how much the reward is about that token::

    d_kt = sqrt(JSD(pi(. | all information, y_<t), pi(. | all but reward k's, y_<t)))
    w_kt = (1 - beta) + beta T d_kt / sum_s d_ks          of mean one over the response's T tokens
    S_t  = sum_k A_k w_kt

docs/methods/mrtpo.md says more, and what each metric means.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor

from creditlib.types import CreditContext, Replay, TokenCredit

NOISE_REPLAYS = 4  # responses a step that are replayed twice, to see what rounding alone does
# What can become of a response and a reward that it has an advantage from. Only what is replayed and not
# below the floor has other than uniform weights.
OUTCOMES = ("replayed", "below_floor", "no_information", "overflow", "one_token")


def mix_uniform(relevance_T: Tensor, beta: float, mask_T: Tensor | None = None) -> Tensor:
    """(1 - beta) + beta T d_t / sum d: weights of mean one, a share `beta` of them by relevance.

    Args:
        relevance_T: (..., T), not negative.
        beta: in [0, 1]; 0 gives exactly 1.
        mask_T: (..., T) bool, the tokens that count; None: all.

    Returns:
        (..., T), 0 outside the mask. Exactly 1 within it where all relevance is 0, or where one token counts.
    """
    mask_T = torch.ones_like(relevance_T, dtype=torch.bool) if mask_T is None else mask_T
    relevance_T = relevance_T.double().masked_fill(~mask_T, 0.0)
    total = relevance_T.sum(-1, keepdim=True)
    count = mask_T.sum(-1, keepdim=True)
    share_T = relevance_T * count / total.clamp(min=torch.finfo(torch.float64).tiny)
    weights_T = ((1 - beta) + beta * share_T).where((total > 0) & (count > 1), 1.0)
    return weights_T.masked_fill(~mask_T, 0.0).float()


@dataclass(frozen=True)
class Mrtpo:
    """Each reward to its relevant tokens, by replaying responses with and without verifier information.

    Attributes:
        beta: allocation strength, the share of each advantage that goes by relevance; 0 is uniform credit.
        replay: ``leave_one_out``: all information against all but the reward's own. ``add_one``: the reward's
            own against none. ``joint``: all against none, one distance for all rewards.
        distance: ``js_distance``, the square root of the divergence, or ``js_divergence`` itself.
        temperature: divides the logits of replays.
        top_k: estimate the divergence from this many tokens and the rest as one; None: the full vocabulary.
    """

    beta: Annotated[float, Field(ge=0, le=1)] = 0.5
    replay: Literal["leave_one_out", "add_one", "joint"] = "leave_one_out"
    distance: Literal["js_distance", "js_divergence"] = "js_distance"
    temperature: Annotated[float, Field(gt=0)] = 1.0
    top_k: Annotated[int, Field(ge=1)] | None = None

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"policy", "contexts"})

    def assign(self, context: CreditContext) -> TokenCredit:
        """Replay every response for each reward that it has an advantage from, and weight its tokens."""
        names, mask_BT = context.table.names, context.rollout.mask_BT
        pairs, outcomes = self._plan(context)
        divergences, floor, diagnostics = self._measure(context, list(pairs.values()))
        relevance_BKT = torch.full((len(mask_BT), len(names), mask_BT.shape[1]), torch.nan)
        weights_BKT = torch.ones_like(relevance_BKT)
        means: dict[str, list[float]] = {name: [] for name in names}
        for (b, k), divergence_T in zip(pairs, divergences, strict=True):
            tokens_T = mask_BT[b].cpu().nonzero()[:, 0]
            relevance_T = (divergence_T - floor**2).clamp(min=0)
            if self.distance == "js_distance":
                relevance_T = relevance_T.sqrt()
            relevance_BKT[b, k, tokens_T] = relevance_T
            mean = divergence_T.sqrt().mean().item()
            means[names[k]].append(mean)
            if mean >= 2 * floor and mean > 0:  # false for NaN as well
                weights_BKT[b, k, tokens_T] = mix_uniform(relevance_T, self.beta)
            else:
                outcomes[names[k], "below_floor"] += 1
        device, rows = mask_BT.device, max(len(mask_BT), 1)
        diagnostics |= {f"distance/{name}": fmean(found) for name, found in means.items() if found}
        diagnostics |= {
            f"{outcome}/{name}": outcomes[name, outcome] / rows for name in names for outcome in OUTCOMES
        }
        return TokenCredit.combine(
            context.advantages,
            weights_BKT.to(device),
            mask_BT,
            relevance_BKT=relevance_BKT.to(device),
            diagnostics=diagnostics,
        )

    def _plan(
        self, context: CreditContext
    ) -> tuple[dict[tuple[int, int], tuple[Replay, Replay]], Counter[tuple[str, str]]]:
        """The replays to compare for each (response, reward), and what became of the others."""
        assert context.contexts is not None  # the trainer grants what `needs` names
        pairs: dict[tuple[int, int], tuple[Replay, Replay]] = {}
        outcomes = Counter[tuple[str, str]]()
        lengths = context.rollout.lengths_B.tolist()
        for b, k in context.advantages.by_reward_BK.cpu().nonzero().tolist():  # 0: no weight matters
            name = context.table.names[k]
            informed = context.contexts.informed(b)
            if name not in informed:
                outcomes[name, "no_information"] += 1
            elif lengths[b] == 1:
                outcomes[name, "one_token"] += 1
            else:
                told, left_out = self._told(name, informed)
                first, second = context.contexts.replay(b, told), context.contexts.replay(b, left_out)
                if first is None or second is None:
                    outcomes[name, "overflow"] += 1
                else:
                    outcomes[name, "replayed"] += 1
                    pairs[b, k] = first, second
        return pairs, outcomes

    def _told(self, name: str, informed: frozenset[str]) -> tuple[frozenset[str], frozenset[str]]:
        """The rewards whose information the one and the other replay has."""
        if self.replay == "leave_one_out":
            return informed, informed - {name}
        nothing = frozenset[str]()
        return (frozenset({name}) if self.replay == "add_one" else informed), nothing

    def _measure(
        self, context: CreditContext, pairs: Sequence[tuple[Replay, Replay]]
    ) -> tuple[list[Tensor], float, dict[str, float]]:
        """Divergences, the distance that rounding alone makes, and what to report of both."""
        policy = context.policy
        assert policy is not None
        if not pairs:
            return [], 0.0, {}
        divergences = policy.divergences(pairs, temperature=self.temperature, top_k=self.top_k)
        some = range(0, len(pairs), -(-len(pairs) // NOISE_REPLAYS))
        noise = policy.noise([pairs[i][0] for i in some], temperature=self.temperature)
        floor = torch.cat(noise).mean().sqrt().item()
        if self.top_k is None:
            return divergences, floor, {"floor": floor}
        exact = policy.divergences([pairs[i] for i in some], temperature=self.temperature)
        exact_M = torch.cat(exact).sqrt()
        error = (torch.cat([divergences[i] for i in some]).sqrt() - exact_M).abs().mean() / exact_M.mean()
        return divergences, floor, {"floor": floor, "top_k_error": error.item()}
