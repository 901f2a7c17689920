"""MRTPO: each reward's advantage goes to the tokens that the reward is about (Zhai et al. 2026).

The policy replays its own response with and without a reward's verifier information. How far its next-token
distribution moves at a token, the Jensen-Shannon distance, is how much the reward is about that token::

    d_kt = sqrt(JSD(pi(. | all information, y_<t), pi(. | all but reward k's, y_<t)))
    w_kt = (1 - beta) + beta T d_kt / sum_s d_ks          of mean one over the response's T tokens
    S_t  = sum_k A_k w_kt

docs/methods/mrtpo.md says more, and what each metric means.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor

from creditlib.rewards.table import cells_by_kind
from creditlib.types import CreditContext, Replay, TokenCredit

NOISE_REPLAYS = 4  # replays a step that are made twice, to see what rounding alone does

# What became of a reward in a response, one of these each. The weights are uniform in all but the first.
OUTCOMES = (
    "by_relevance",  # replayed, and weighted by what moved
    "below_floor",  # replayed, but little more moved than by rounding
    "not_finite",  # replayed, but the policy's probabilities are no numbers
    "no_advantage",  # not replayed, like the following: 0 times any weight is 0
    "no_information",  # the verifier had nothing to tell
    "one_token",  # nothing to distribute
    "overflow",  # a context and the response exceed the model's positions
)


def mix_uniform(relevance_T: Tensor, beta: float) -> Tensor:
    """(1 - beta) + beta T d_t / sum d: weights of mean one over T tokens, a share `beta` by relevance.

    Args:
        relevance_T: (..., T), not negative.
        beta: in [0, 1]; 0 gives exactly 1.

    Returns:
        (..., T) float32. Exactly 1 where all relevance is 0, and for a single token.
    """
    relevance_T = relevance_T.double()
    total, count = relevance_T.sum(-1, keepdim=True), relevance_T.shape[-1]
    share_T = relevance_T * count / total.clamp(min=torch.finfo(torch.float64).tiny)
    return ((1 - beta) + beta * share_T).where((total > 0) & (count > 1), 1.0).float()


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
        mask_BT, names = context.rollout.mask_BT, context.table.names
        pairs, outcomes = self._plan(context)
        divergences, measured = self._measure(context, pairs)
        floor = measured.get("floor", 0.0)  # none where nothing was replayed
        relevance_BKT = torch.full((len(mask_BT), len(names), mask_BT.shape[1]), torch.nan)
        weights_BKT = torch.ones_like(relevance_BKT)
        for (b, k), divergence_T in zip(pairs, divergences, strict=True):
            tokens_T = mask_BT[b].cpu().nonzero()[:, 0]
            relevance_T = (divergence_T - floor**2).clamp(min=0)
            if self.distance == "js_distance":
                relevance_T = relevance_T.sqrt()
            relevance_BKT[b, k, tokens_T] = relevance_T
            outcomes[b][k] = _outcome(divergence_T, floor)
            if outcomes[b][k] == "by_relevance":
                weights_BKT[b, k, tokens_T] = mix_uniform(relevance_T, self.beta)
        device = mask_BT.device
        return TokenCredit.combine(
            context.advantages,
            weights_BKT.to(device),
            mask_BT,
            relevance_BKT=relevance_BKT.to(device),
            measure_K=("distance",) * len(names),
            diagnostics=measured | _shares(context, outcomes),
        )

    def _plan(
        self, context: CreditContext
    ) -> tuple[dict[tuple[int, int], tuple[Replay, Replay]], list[list[str]]]:
        """The replays to compare for each (response, reward), and what becomes of the others, (B, K)."""
        assert context.contexts is not None  # the trainer grants what `needs` names
        pairs: dict[tuple[int, int], tuple[Replay, Replay]] = {}
        lengths, names = context.rollout.lengths_B.tolist(), context.table.names
        outcomes = [["no_advantage"] * len(names) for _ in lengths]
        for b, k in context.advantages.by_reward_BK.cpu().nonzero().tolist():
            informed = context.contexts.informed(b)
            if names[k] not in informed:
                outcomes[b][k] = "no_information"
            elif lengths[b] == 1:
                outcomes[b][k] = "one_token"
            else:
                told, left_out = self._told(names[k], informed)
                first, second = context.contexts.replay(b, told), context.contexts.replay(b, left_out)
                if first is None or second is None:
                    outcomes[b][k] = "overflow"
                else:
                    pairs[b, k] = first, second
        return pairs, outcomes

    def _told(self, name: str, informed: frozenset[str]) -> tuple[frozenset[str], frozenset[str]]:
        """The rewards whose information the one and the other replay has."""
        if self.replay == "leave_one_out":
            return informed, informed - {name}
        nothing = frozenset[str]()
        return (frozenset({name}) if self.replay == "add_one" else informed), nothing

    def _measure(
        self, context: CreditContext, pairs: Mapping[tuple[int, int], tuple[Replay, Replay]]
    ) -> tuple[list[Tensor], dict[str, float]]:
        """Divergences, and over all processes: the distance that rounding alone makes, the mean distance of
        each kind of reward, and the error of `top_k`.
        """
        assert context.policy is not None
        checked = _checked(context, pairs)
        again = [(first, first._replace(alone=True)) for first, _ in (pairs[key] for key in checked)]
        asked = [*pairs.values(), *again]
        found = context.policy.divergences(asked, temperature=self.temperature, top_k=self.top_k)
        divergences, noise = found[: len(pairs)], found[len(pairs) :]
        values: dict[str, list[float]] = {"noise": [x for own_T in noise for x in own_T.tolist()]}
        for (b, k), own_T in zip(pairs, divergences, strict=True):
            kind = context.table.kind_BK[b][k]
            values.setdefault(f"distance/{kind}", []).append(own_T.sqrt().mean().item())
        if self.top_k is not None:
            by_pair = dict(zip(pairs, divergences, strict=True))
            exact = context.policy.divergences([pairs[key] for key in checked], temperature=self.temperature)
            gaps = [
                (by_pair[key].sqrt() - own_T.sqrt()).abs() for key, own_T in zip(checked, exact, strict=True)
            ]
            values |= {"gap": [own_T.mean().item() for own_T in gaps]}
            values |= {"exact": [own_T.sqrt().mean().item() for own_T in exact]}
        means = _means(context, values)
        noise_mean, gap, exact_mean = (means.pop(name, None) for name in ("noise", "gap", "exact"))
        if noise_mean is not None:
            means["floor"] = math.sqrt(noise_mean)
        if gap is not None and exact_mean:
            means["top_k_error"] = gap / exact_mean
        return divergences, means


def _checked(
    context: CreditContext, pairs: Mapping[tuple[int, int], tuple[Replay, Replay]]
) -> list[tuple[int, int]]:
    """A pair each of `NOISE_REPLAYS` responses of the step, the same ones whatever process holds which."""
    names = context.rollout.names
    first: dict[tuple[str, int], tuple[int, int]] = {}
    for b, k in pairs:
        first.setdefault(names[b], (b, k))
    everyone = sorted(name for theirs in context.gather(list(first)) for name in theirs)
    count = min(NOISE_REPLAYS, len(everyone))
    chosen = [everyone[n * len(everyone) // count] for n in range(count)]
    return [first[name] for name in chosen if name in first]


def _means(context: CreditContext, values: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """The mean of each name's finite values over all processes, where there are any."""
    finite = {name: [value for value in own if math.isfinite(value)] for name, own in values.items()}
    sums = context.gather({name: (math.fsum(own), len(own)) for name, own in finite.items()})
    means = {}
    for name in dict.fromkeys(name for theirs in sums for name in theirs):
        parts = [theirs[name] for theirs in sums if name in theirs]
        if count := sum(own for _, own in parts):
            means[name] = math.fsum(total for total, _ in parts) / count
    return means


def _outcome(divergence_T: Tensor, floor: float) -> str:
    """Of a replayed response."""
    mean = divergence_T.sqrt().mean().item()
    if not math.isfinite(mean):
        return "not_finite"
    return "by_relevance" if mean >= 2 * floor and mean > 0 else "below_floor"


def _shares(context: CreditContext, outcomes: Sequence[Sequence[str]]) -> dict[str, float]:
    """Of the responses of all processes, for each outcome and kind of reward."""
    return _means(
        context,
        {
            f"{outcome}/{kind}": [float(outcomes[b][k] == outcome) for b, k in zip(*cells, strict=True)]
            for kind, cells in cells_by_kind(context.table.kind_BK).items()
            for outcome in OUTCOMES
        },
    )
