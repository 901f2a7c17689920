"""DATC: credit goes to the tokens whose update moves the reward (Hu et al. 2026).

A frozen reward model's gradient with respect to its input embeddings, mapped into the policy's logit space,
is compared with the direction in which the update of a sampled token moves the logits
(`creditlib.policy.direction`)::

    d_t = <g_t, k_t>                                  the reward's change along the token's update
    u_t = A z(d_t)                                    z: standardised over the response's free tokens
    w_t = n exp(u_t / tau) / sum_s exp(u_s / tau)     over the n free tokens; 1 elsewhere
    S_t = A w_t

Free are the tokens that the reward model reads as they were sampled; the stop token is none of them, since a
reward model has an ending of its own.

tau is the lowest temperature that is not below `Datc.tau` and keeps every weight between 1 / lam and lam.
docs/methods/datc.md says more, and what each metric means.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

import torch
from pydantic import Field
from torch import Tensor

from creditlib.policy.direction import directions
from creditlib.policy.streams import exponentials, stream_key
from creditlib.types import CreditContext, CreditlibError, Directions, RewardReading, TokenCredit

_CHUNK = 128  # tokens whose logits exist at a time in `direction_scores`
_BISECTIONS = 40
_SPREAD = 1e-3  # share of the mean size of d that is added to its spread: tiny differences stay small

# What became of a reward in a response, one of these each. The weights are uniform in the last three.
OUTCOMES = (
    "at_tau",  # weighted, at the lowest temperature
    "raised",  # weighted, at the temperature that the bounds asked for
    "even",  # no token is free, or all have the same score
    "not_finite",  # the gradient or the policy's probabilities are no numbers
    "no_advantage",
)


@dataclass(frozen=True)
class Datc:
    """DATC: a reward model's gradient says which tokens' updates move its reward; needs reward_model=...

    Rewards that no reward model gives keep uniform weights.

    Source: Hu et al. 2026, *Direction-Aware Token Credit Assignment with Reward-Model Gradients*.

    Attributes:
        lam: every weight is between 1 / lam and lam; 1 is uniform credit.
        tau: the lowest temperature of the allocation.
        direction: ``score``: d. ``norm_product``: |g| |k|, which forgets the direction. ``random``: normal
            numbers.
        mix: ``per_reward``: each reward model's gradient allocates its own reward's advantage. ``sum``: the
            gradients, weighted as the rewards are, allocate the sum of those advantages.
    """

    lam: Annotated[float, Field(ge=1)] = 4.0
    tau: Annotated[float, Field(gt=0)] = 1.0
    direction: Literal["score", "norm_product", "random"] = "score"
    mix: Literal["per_reward", "sum"] = "per_reward"

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"policy", "hidden", "reward_gradients"})

    def assign(self, context: CreditContext) -> TokenCredit:
        """Weights within [1 / lam, lam] and of mean one for each reward of a reward model.

        Where a gradient is not finite, or no token is free, they are uniform; both are counted.

        Raises:
            CreditlibError: no reward of a reward model is among these.
        """
        table, advantages, mask_BT = context.table, context.advantages, context.rollout.mask_BT
        models = [k for k, name in enumerate(table.names) if name in table.readings]
        if not models:
            raise CreditlibError(
                f"credit=datc: no reward model gives {' or '.join(table.names)}, and only a reward model's "
                "reward has a gradient: route other rewards to another strategy"
            )
        # Columns that share an allocation, each with the weight of its gradient in it.
        parts = [{k: 1.0} for k in models]
        if self.mix == "sum":
            parts = [{k: context.reward_weights[k] for k in models if context.reward_weights[k] != 0}]
        shape = (*advantages.by_reward_BK.shape, mask_BT.shape[1])
        weights_BKT = advantages.by_reward_BK.new_ones(shape)
        relevance_BKT = advantages.by_reward_BK.new_full(shape, torch.nan)
        tau_BK = advantages.by_reward_BK.new_full(shape[:2], torch.nan)
        diagnostics: dict[str, float] = {}
        for part in filter(None, parts):
            advantage_B = advantages.by_reward_BK[:, list(part)].sum(1)
            score_BT, free_BT, finite_B = self._scores(context, part)
            found = allocate_rows(score_BT, advantage_B, free_BT, tau=self.tau, lam=self.lam)
            for k in part:
                weights_BKT[:, k] = found.weights_BT
                relevance_BKT[:, k] = score_BT.masked_fill(~free_BT, torch.nan)
                tau_BK[:, k] = found.tau_B
                shares = _outcomes(found, advantage_B, finite_B, self.tau)
                diagnostics |= {f"{outcome}/{table.names[k]}": share for outcome, share in shares.items()}
        return TokenCredit.combine(
            advantages,
            weights_BKT,
            mask_BT,
            relevance_BKT=relevance_BKT,
            measure_K=tuple("direction" if k in models else "" for k in range(len(table.names))),
            diagnostics=diagnostics,
            notes_BK={"temperature": tau_BK},
        )

    def _scores(self, context: CreditContext, part: Mapping[int, float]) -> tuple[Tensor, Tensor, Tensor]:
        """d (B, T), which tokens are free (B, T), and in which responses all is finite (B,)."""
        readings = {k: context.table.readings[context.table.names[k]] for k in part}
        # Of several reward models a token is free that any reads; those that do not have no gradient there.
        free_BT = torch.zeros_like(context.rollout.mask_BT)
        for reading in readings.values():
            free_BT |= reading.read_BT
        free_BT &= context.rollout.mask_BT
        if self.direction == "random":
            score_BT = self._random(context, free_BT)
        else:
            score_BT = self._directions(context, part, readings, free_BT)
        finite_B = (score_BT.isfinite() | ~free_BT).all(1)
        free_BT &= finite_B[:, None]
        return score_BT.masked_fill(~free_BT, 0.0), free_BT, finite_B

    def _directions(
        self,
        context: CreditContext,
        part: Mapping[int, float],
        readings: Mapping[int, RewardReading],
        free_BT: Tensor,
    ) -> Tensor:
        rollout, scores = context.rollout, context.scores
        # The trainer grants what `needs` names.
        assert context.policy is not None and scores.hidden_BTD is not None
        rewards = []
        for k, weight in part.items():
            gradients_BTD = readings[k].gradients_BTD
            assert gradients_BTD is not None
            embedding_VE = context.reward_models[context.table.names[k]].embedding_VE
            rewards.append((weight * gradients_BTD[free_BT], embedding_VE))
        found = context.policy.directions(
            scores.hidden_BTD[free_BT], rollout.ids_BT[free_BT], rewards, temperature=rollout.temperature
        )
        score_BT = found.score_M.new_zeros(free_BT.shape)
        score_BT[free_BT] = self._chosen(found)
        return score_BT

    def _chosen(self, found: Directions) -> Tensor:
        if self.direction == "norm_product":
            return found.gradient_norm_M * found.update_norm_M
        return found.score_M

    def _random(self, context: CreditContext, free_BT: Tensor) -> Tensor:
        """Standard normal, a function of the seed, the step and the response alone (Box and Muller 1958)."""
        keys = [
            stream_key(context.seed, context.step, f"direction {prompt}", sample)
            for prompt, sample in context.rollout.names
        ]
        width = free_BT.shape[1]
        draws = exponentials(torch.tensor(keys, device=free_BT.device), 0, 2 * width)
        radius_BT, angle_BT = (2 * draws[:, :width]).sqrt(), 2 * torch.pi * torch.exp(-draws[:, width:])
        return radius_BT * torch.cos(angle_BT)


def _outcomes(allocation: Allocation, advantage_B: Tensor, finite_B: Tensor, tau: float) -> dict[str, float]:
    """What became of the responses, as shares that add up to one."""
    no_advantage_B = advantage_B == 0
    not_finite_B = ~no_advantage_B & ~finite_B
    even_B = ~no_advantage_B & finite_B & allocation.tau_B.isnan()
    raised_B = ~no_advantage_B & finite_B & (allocation.tau_B > tau)
    rest_B = ~(no_advantage_B | not_finite_B | even_B | raised_B)
    shares = dict(zip(OUTCOMES, (rest_B, raised_B, even_B, not_finite_B, no_advantage_B), strict=True))
    return {name: own_B.double().mean().item() for name, own_B in shares.items() if len(own_B)}


class Allocation(NamedTuple):
    """Weights of each response, and the temperature that they took."""

    weights_BT: Tensor  # float32, 1 where no token is free
    tau_B: Tensor  # float32, NaN where the weights are uniform whatever the temperature


def direction_scores(
    logits_TV: Tensor, actions_T: Tensor, reward_grads_TD: Tensor, embedding_VD: Tensor, sigma: float
) -> Tensor:
    """d_t = <g_t, k_t> of each token (DATC), (T,), in the precision of the logits, float32 at least.

    Args:
        logits_TV: the policy's, as sampled from: divided by the temperature, -inf where a token is masked.
        actions_T: the sampled tokens.
        reward_grads_TD: gradient of the reward with respect to the embedding of each token.
        embedding_VD: the reward model's input embeddings in the policy's order of tokens.
        sigma: scale of the group's rewards, which g is divided by.

    Raises:
        CreditlibError: a sampled token has no probability.
    """
    dtype = torch.promote_types(logits_TV.dtype, torch.float32)
    if (logits_TV.gather(1, actions_T[:, None]) == -torch.inf).any():
        raise CreditlibError("a sampled token is masked (its logit is -inf): it cannot have been sampled")
    pieces = []
    for start in range(0, len(logits_TV), _CHUNK):
        part = slice(start, start + _CHUNK)
        values_MV = reward_grads_TD[part].to(dtype) @ embedding_VD.to(dtype).T
        pieces.append(directions(logits_TV[part].to(dtype), actions_T[part], values_MV).score_M / sigma)
    return torch.cat(pieces) if pieces else logits_TV.new_zeros(0, dtype=dtype)


def allocate(
    d_T: Tensor, advantage: float, *, tau: float = 1.0, lam: float = 4.0, frozen_T: Tensor | None = None
) -> Tensor:
    """Weights of one response's tokens, (T,) float32: mean one, within [1 / lam, lam], 1 where frozen.

    Raises:
        CreditlibError: no token at all, or a number that is not finite.
    """
    if not len(d_T):
        raise CreditlibError("an empty response has no tokens to allocate an advantage to")
    free_T = torch.ones_like(d_T, dtype=torch.bool) if frozen_T is None else ~frozen_T
    advantage_B = torch.tensor([advantage], dtype=torch.float64, device=d_T.device)
    return allocate_rows(d_T[None], advantage_B, free_T[None], tau=tau, lam=lam).weights_BT[0]


def allocate_rows(
    score_BT: Tensor, advantage_B: Tensor, free_BT: Tensor, *, tau: float, lam: float
) -> Allocation:
    """The allocation of DATC of every response at once.

    w = n softmax(u / tau) solves max_q sum_t q_t u_t - tau KL(q | uniform); the bound is kept by raising tau
    and not by clipping, so that the mean stays one.

    Args:
        score_BT: d.
        advantage_B: A.
        free_BT: tokens that share the budget; the others weigh 1.
        tau: lowest temperature.
        lam: bound of the weights.

    Raises:
        CreditlibError: a score of a free token or an advantage is not finite.
    """
    score_BT, advantage_B = score_BT.double().masked_fill(~free_BT, 0.0), advantage_B.double()
    if not (score_BT.isfinite().all() and advantage_B.isfinite().all()):
        raise CreditlibError("scores and advantages must be finite to allocate by them")
    count_B = free_BT.sum(1)
    u_BT = advantage_B[:, None] * _standardised(score_BT, free_BT)
    if not u_BT.isfinite().all():
        raise CreditlibError("advantages are too large to allocate by: their products with scores overflow")
    varies_B = (u_BT != 0).any(1) & (lam - 1 >= torch.finfo(torch.float32).eps)
    low_B = high_B = torch.full_like(advantage_B, tau)
    feasible_B = ~varies_B
    while True:
        feasible_B = feasible_B | _within(_weights(u_BT, free_BT, count_B, high_B), free_BT, lam)
        if feasible_B.all():
            break
        low_B = torch.where(feasible_B, low_B, high_B)
        high_B = torch.where(feasible_B, high_B, 2 * high_B)
    for _ in range(_BISECTIONS):
        middle_B = (low_B + high_B) / 2
        fits_B = _within(_weights(u_BT, free_BT, count_B, middle_B), free_BT, lam)
        low_B, high_B = torch.where(fits_B, low_B, middle_B), torch.where(fits_B, middle_B, high_B)
    weights_BT = _weights(u_BT, free_BT, count_B, high_B)
    weights_BT = torch.where(free_BT & varies_B[:, None], weights_BT, 1.0)
    return Allocation(weights_BT.float(), high_B.masked_fill(~varies_B, torch.nan).float())


def _standardised(score_BT: Tensor, free_BT: Tensor) -> Tensor:
    """z of each free token among those of its response; 0 elsewhere and where all are equal."""
    count_B1 = free_BT.sum(1, keepdim=True).clamp(min=1)
    largest_B1 = score_BT.abs().amax(1, keepdim=True)
    s_BT = score_BT / torch.where(largest_B1 > 0, largest_B1, 1.0)
    deviation_BT = (s_BT - s_BT.sum(1, keepdim=True) / count_B1).masked_fill(~free_BT, 0.0)
    std_B1 = (deviation_BT.square().sum(1, keepdim=True) / count_B1).sqrt()
    size_B1 = s_BT.abs().sum(1, keepdim=True) / count_B1
    z_BT = deviation_BT / (std_B1 + _SPREAD * size_B1 + torch.finfo(torch.float64).tiny)
    highest_B1 = s_BT.masked_fill(~free_BT, -torch.inf).amax(1, keepdim=True)
    lowest_B1 = s_BT.masked_fill(~free_BT, torch.inf).amin(1, keepdim=True)
    return z_BT.masked_fill(highest_B1 <= lowest_B1, 0.0)


def _weights(u_BT: Tensor, free_BT: Tensor, count_B: Tensor, tau_B: Tensor) -> Tensor:
    """n softmax(u / tau) over the free tokens, 0 elsewhere."""
    tilted_BT = (u_BT / tau_B[:, None]).masked_fill(~free_BT, -torch.inf)
    # A response without free tokens has no softmax.
    return count_B[:, None] * torch.softmax(tilted_BT, 1).nan_to_num(0.0)


def _within(weights_BT: Tensor, free_BT: Tensor, lam: float) -> Tensor:
    high_B = weights_BT.masked_fill(~free_BT, 1.0).amax(1)
    low_B = weights_BT.masked_fill(~free_BT, 1.0).amin(1)
    return (high_B <= lam) & (low_B >= 1 / lam)
