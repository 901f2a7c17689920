"""Policy losses on token advantages: GRPO, DAPO, Dr. GRPO, GSPO-token and CISPO.

A loss is a frozen dataclass of settings with three steps, so that accumulation changes nothing::

    denominators = loss.denominators(mask, active)      # of the whole optimizer batch; add them over ranks
    for micro in micro_batches:                         # each holds whole rows
        token = loss.token_loss(logps, old_logps, advantages, mask, active_B=active)
        loss.partial_loss(token, denominators).backward()

The partial losses add up to the loss of the whole batch. Log-probabilities are those of the sampled tokens,
(B, T), in nats, at the sampling temperature. Advantages are (B, T) and get no gradient. Tokens outside the
mask, and rows that are not active (no reward applies to them), count nowhere. GSPO, sequence corrections and
response means need every token of a response, which is why a micro-batch never splits a row.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from creditlib.types import CreditlibError

Aggregation = Literal[
    "token-mean", "seq-mean-token-mean", "seq-mean-token-sum", "seq-mean-token-sum-norm", "token-sum"
]
KlEstimator = Literal["k1", "k2", "k3"]
Correction = Literal["none", "token_truncate", "token_mask", "sequence_truncate", "sequence_mask"]

LOG_RATIO_LIMIT = 20.0  # exp(20) still multiplies a zero advantage to zero in float32


@dataclass(frozen=True)
class Denominators:
    """What the losses of an optimizer batch are divided by. Adds over micro-batches and ranks."""

    tokens: float
    sequences: float

    def __add__(self, other: Denominators) -> Denominators:
        return Denominators(self.tokens + other.tokens, self.sequences + other.sequences)


@dataclass(frozen=True)
class LossStats:
    """What happened to the tokens of a loss, as detached sums that add over micro-batches and ranks.

    `sums` holds ``clipped_low`` and ``clipped_high`` (tokens with an advantage whose ratio was held at its
    lower or upper bound, dual clip included), ``ratio``, ``approx_kl`` (k3 of old against current), and where
    used ``reference_kl``, ``entropy``, ``correction`` (the importance weight) and ``correction_zero`` (tokens
    that it masked).
    """

    tokens: Tensor
    sums: Mapping[str, Tensor]
    ratio_max: Tensor

    def __add__(self, other: LossStats) -> LossStats:
        sums = {name: value + other.sums[name] for name, value in self.sums.items()}
        return LossStats(self.tokens + other.tokens, sums, torch.maximum(self.ratio_max, other.ratio_max))

    def means(self) -> dict[str, float]:
        """Token means under the names of `sums`, and ``ratio_max``."""
        tokens = max(float(self.tokens), 1.0)
        means = {name: float(value) / tokens for name, value in self.sums.items()}
        return means | {"ratio_max": float(self.ratio_max)}


@dataclass(frozen=True)
class TokenLoss:
    """Per-token losses (B, T) with gradient, 0 outside `mask_BT`, the tokens that count."""

    loss_BT: Tensor
    mask_BT: Tensor
    stats: LossStats


@dataclass(frozen=True, kw_only=True)
class PolicyLoss(ABC):
    """What all losses share: aggregation, KL term, importance correction, entropy bonus.

    Attributes:
        aggregation: how tokens become one number, in verl's names.
        max_tokens: L_max of ``seq-mean-token-sum-norm``: the longest response that sampling allows.
        kl_coef: weight of the KL penalty to the reference; 0: no reference is needed.
        kl_estimator: with x = log ref - log policy: k1 -x, k2 x^2/2, k3 e^x - x - 1. As a loss k1 has no
            gradient in expectation.
        kl_unbiased: multiply the KL by the token's ratio, with gradient, so that k3 has the gradient of the
            reverse KL (DeepSeek-V3.2, arXiv 2512.02556; TRL's default).
        correction: what to do with u = policy/sampler, per token or multiplied over the response:
            ``truncate`` holds it within [low, high], ``mask`` drops (weight 0) what lies outside. Masked
            tokens stay in the denominators.
        correction_low: lower bound of u; None: none.
        correction_high: upper bound of u; None: none.
        entropy_coef: weight of an entropy bonus, aggregated like the loss.
    """

    aggregation: Aggregation = "seq-mean-token-mean"
    max_tokens: int | None = None
    kl_coef: float = 0.0
    kl_estimator: KlEstimator = "k3"
    kl_unbiased: bool = False
    correction: Correction = "none"
    correction_low: float | None = None
    correction_high: float | None = 2.0
    entropy_coef: float = 0.0

    log_ratio_max: ClassVar[float] = LOG_RATIO_LIMIT

    def __post_init__(self) -> None:
        for setting, value in vars(self).items():
            _require(not isinstance(value, float) or math.isfinite(value), setting, "finite", value)
        _require(self.kl_coef >= 0, "kl_coef", "at least 0", self.kl_coef)
        _require(self.entropy_coef >= 0, "entropy_coef", "at least 0", self.entropy_coef)
        high = math.inf if self.correction_high is None else self.correction_high
        _require(high > 0, "correction_high", "null or positive", self.correction_high)
        if self.correction_low is not None:
            within = 0 <= self.correction_low <= high
            _require(within, "correction_low", "null or within [0, correction_high]", self.correction_low)
        if self.aggregation == "seq-mean-token-sum-norm":
            expected = "the longest response, such as rollout.max_tokens, with seq-mean-token-sum-norm"
            _require((self.max_tokens or 0) > 0, "max_tokens", expected, self.max_tokens)

    @property
    def needs_reference(self) -> bool:
        """Whether `token_loss` wants reference log-probabilities."""
        return self.kl_coef > 0

    @property
    def needs_entropy(self) -> bool:
        """Whether `token_loss` wants the entropy of each token's distribution."""
        return self.entropy_coef > 0

    @property
    def needs_correction(self) -> bool:
        """Whether `token_loss` wants the weights of `importance_weights`."""
        return self.correction != "none"

    @staticmethod
    def needs_old(updates: int) -> bool:
        """Whether old log-probs need a pass of their own; with one update a rollout they are the current."""
        return updates > 1

    def denominators(self, mask_BT: Tensor, active_B: Tensor | None = None) -> Denominators:
        """The tokens, and the responses that have any, among the active rows of a whole optimizer batch."""
        counted_BT = _counted(mask_BT, active_B)
        return Denominators(float(counted_BT.sum()), float(counted_BT.any(1).sum()))

    def importance_weights(self, old_logps_BT: Tensor, sampler_logps_BT: Tensor, mask_BT: Tensor) -> Tensor:
        """Weights (B, T) for tokens that another engine sampled: u = exp(old - sampler) after `correction`.

        Both log-probabilities are of the full softmax at the sampling temperature. Under top-p or top-k the
        sampler draws from its softmax divided by the kept mass, and the policy truncated the same way has the
        same divisor, so the mass cancels. Putting it on one side only, as engines that return truncated
        log-probabilities do, shrinks every weight by the mass: a response of 100 tokens with a kept mass of
        0.95 would weigh e^-5. No gradient passes.

        Source: truncated importance sampling and its masked form, as TRL 1.16 and verl have them.
        """
        if self.correction == "none":
            return torch.ones_like(old_logps_BT)
        log_BT = (old_logps_BT - sampler_logps_BT).detach().masked_fill(~mask_BT, 0.0)
        if self.correction in ("sequence_truncate", "sequence_mask"):
            log_BT = log_BT.sum(1, keepdim=True).expand_as(log_BT)
        weights_BT = log_BT.exp()
        low = self.correction_low or 0.0
        high = math.inf if self.correction_high is None else self.correction_high
        if self.correction in ("token_truncate", "sequence_truncate"):
            return weights_BT.clamp(low, high)
        return weights_BT.masked_fill((weights_BT < low) | (weights_BT > high), 0.0)

    def token_loss(
        self,
        logps_BT: Tensor,
        old_logps_BT: Tensor | None,
        advantages_BT: Tensor,
        mask_BT: Tensor,
        *,
        active_B: Tensor | None = None,
        ref_logps_BT: Tensor | None = None,
        correction_BT: Tensor | None = None,
        entropy_BT: Tensor | None = None,
    ) -> TokenLoss:
        """The loss of each token: surrogate x correction + kl_coef x KL - entropy_coef x entropy.

        Args:
            logps_BT: current policy, with gradient.
            old_logps_BT: policy that the rollout belongs to; None: the current one (first update).
            advantages_BT: token advantages.
            mask_BT: sampled tokens.
            active_B: rows that count; None: all.
            ref_logps_BT: reference policy, with `kl_coef`.
            correction_BT: `importance_weights`, with `correction`.
            entropy_BT: entropy in nats with gradient, with `entropy_coef`.

        Raises:
            CreditlibError: a tensor that the settings ask for is missing. The reference and the entropy may
                be given without their coefficient, to be counted in the stats.
        """
        _given("kl_coef", self.needs_reference, "ref_logps_BT", ref_logps_BT)
        _given("correction", self.needs_correction, "correction_BT", correction_BT)
        _given("entropy_coef", self.needs_entropy, "entropy_BT", entropy_BT)
        counted_BT = _counted(mask_BT, active_B)
        # Padding may hold anything, even infinities; zero it before it meets any arithmetic.
        logps_BT = logps_BT.masked_fill(~counted_BT, 0.0)
        advantages_BT = advantages_BT.detach().to(logps_BT.dtype).masked_fill(~counted_BT, 0.0)
        old_BT = logps_BT if old_logps_BT is None else old_logps_BT.masked_fill(~counted_BT, 0.0)
        old_BT = old_BT.detach()

        log_ratio_BT = self._log_ratio(logps_BT, old_BT, counted_BT)
        low_BT, high_BT = self._log_bounds(advantages_BT)
        loss_BT = self._surrogate(logps_BT, log_ratio_BT.clamp(low_BT, high_BT), advantages_BT)

        moved_BT = log_ratio_BT.detach()
        ratio_BT = moved_BT.clamp(-LOG_RATIO_LIMIT, self.log_ratio_max).exp()
        drift_BT = (logps_BT.detach() - old_BT).clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)
        per_token = {
            "clipped_low": (moved_BT < low_BT) & (advantages_BT != 0),
            "clipped_high": (moved_BT > high_BT) & (advantages_BT != 0),
            "ratio": ratio_BT,
            "approx_kl": drift_BT.expm1() - drift_BT,
        }
        if correction_BT is not None:
            loss_BT = loss_BT * correction_BT
            per_token["correction"] = correction_BT
            per_token["correction_zero"] = correction_BT == 0
        if ref_logps_BT is not None:
            kl_BT = self._kl(logps_BT, ref_logps_BT.detach().masked_fill(~counted_BT, 0.0))
            per_token["reference_kl"] = kl_BT.detach()
            if self.kl_unbiased:
                kl_BT = kl_BT * (logps_BT - old_BT).clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT).exp()
            if self.needs_reference:
                loss_BT = loss_BT + self.kl_coef * kl_BT
        if entropy_BT is not None:
            if self.needs_entropy:
                loss_BT = loss_BT - self.entropy_coef * entropy_BT
            per_token["entropy"] = entropy_BT.detach()

        sums = {name: value.masked_fill(~counted_BT, 0).sum() for name, value in per_token.items()}
        ratio_max = torch.cat([ratio_BT[counted_BT], ratio_BT.new_zeros(1)]).amax()
        stats = LossStats(counted_BT.sum(), sums, ratio_max)
        return TokenLoss(loss_BT.masked_fill(~counted_BT, 0.0), counted_BT, stats)

    def partial_loss(self, token: TokenLoss, denominators: Denominators) -> Tensor:
        """This micro-batch's share of the optimizer batch's loss, a scalar with gradient.

        `denominators` are those of the whole batch over all ranks. Where gradients are averaged over ranks,
        multiply by their number.
        """
        loss_BT = token.loss_BT
        tokens, sequences = max(denominators.tokens, 1.0), max(denominators.sequences, 1.0)
        if self.aggregation == "token-sum":
            return loss_BT.sum()
        if self.aggregation == "token-mean":
            return loss_BT.sum() / tokens
        if self.aggregation == "seq-mean-token-mean":
            return (loss_BT.sum(1) / token.mask_BT.sum(1).clamp(min=1)).sum() / sequences
        if self.aggregation == "seq-mean-token-sum-norm":
            assert self.max_tokens is not None  # checked when built
            return loss_BT.sum() / (sequences * self.max_tokens)
        return loss_BT.sum() / sequences

    def _log_ratio(self, logps_BT: Tensor, old_BT: Tensor, counted_BT: Tensor) -> Tensor:
        """log rho, with gradient."""
        return logps_BT - old_BT

    @abstractmethod
    def _log_bounds(self, advantages_BT: Tensor) -> tuple[Tensor, Tensor]:
        """Bounds within which the log ratio is held, (B, T) each."""

    @abstractmethod
    def _surrogate(self, logps_BT: Tensor, held_BT: Tensor, advantages_BT: Tensor) -> Tensor:
        """The policy-gradient loss, given the log ratio within its bounds."""

    def _kl(self, logps_BT: Tensor, ref_BT: Tensor) -> Tensor:
        x_BT = (ref_BT - logps_BT).clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)
        if self.kl_estimator == "k1":
            return -x_BT
        if self.kl_estimator == "k2":
            return x_BT.square() / 2
        return x_BT.expm1() - x_BT


@dataclass(frozen=True, kw_only=True)
class GrpoLoss(PolicyLoss):
    """GRPO: clipped ratio, mean over each response and then over responses (arXiv 2402.03300).

    min(rho A, clip(rho) A) holds the ratio from above where A > 0 and from below where A < 0, so it is done
    as a clamp of log rho, in which no infinity can meet a zero.

    Attributes:
        clip_low: the ratio is held above 1 - clip_low where A < 0.
        clip_high: the ratio is held below 1 + clip_high where A > 0.
        dual_clip: the ratio is also held below this where A < 0 (3 is usual); None: not.
    """

    clip_low: float = 0.2
    clip_high: float = 0.2
    dual_clip: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _require(0 <= self.clip_low < 1, "clip_low", "within [0, 1)", self.clip_low)
        _require(self.clip_high >= 0, "clip_high", "at least 0", self.clip_high)
        _require(self.dual_clip is None or self.dual_clip > 1, "dual_clip", "null or above 1", self.dual_clip)

    def _log_bounds(self, advantages_BT: Tensor) -> tuple[Tensor, Tensor]:
        dual = self.log_ratio_max if self.dual_clip is None else math.log(self.dual_clip)
        negative_BT = advantages_BT < 0
        low_BT = torch.full_like(advantages_BT, -LOG_RATIO_LIMIT)
        high_BT = torch.full_like(advantages_BT, math.log1p(self.clip_high))
        low_BT = low_BT.masked_fill(negative_BT, math.log1p(-self.clip_low))
        return low_BT, high_BT.masked_fill(negative_BT, dual)

    def _surrogate(self, logps_BT: Tensor, held_BT: Tensor, advantages_BT: Tensor) -> Tensor:
        return -held_BT.exp() * advantages_BT


@dataclass(frozen=True, kw_only=True)
class DapoLoss(GrpoLoss):
    """DAPO: GRPO with a wider upper clip and the mean over all tokens of the batch (arXiv 2503.14476)."""

    clip_high: float = 0.28
    aggregation: Aggregation = "token-mean"


@dataclass(frozen=True, kw_only=True)
class DrGrpoLoss(GrpoLoss):
    """Dr. GRPO: token sums over max_tokens; goes with advantage.scale=none (arXiv 2503.20783)."""

    aggregation: Aggregation = "seq-mean-token-sum-norm"


@dataclass(frozen=True, kw_only=True)
class GspoTokenLoss(GrpoLoss):
    """GSPO-token: a token's ratio is the geometric mean of its response's ratios (arXiv 2507.18071).

    Its gradient goes through the token alone, which is what allows token advantages.
    """

    clip_low: float = 3e-4
    clip_high: float = 4e-4

    log_ratio_max: ClassVar[float] = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.correction in ("sequence_truncate", "sequence_mask"):
            raise CreditlibError(
                f"loss.correction={self.correction} multiplies a ratio of whole responses onto a loss that "
                "has one already: use loss.correction=token_truncate, token_mask or none with gspo_token"
            )

    def _log_ratio(self, logps_BT: Tensor, old_BT: Tensor, counted_BT: Tensor) -> Tensor:
        lengths_B1 = counted_BT.sum(1, keepdim=True).clamp(min=1)
        mean_B1 = (logps_BT.detach() - old_BT).sum(1, keepdim=True) / lengths_B1
        return mean_B1 + (logps_BT - logps_BT.detach())  # the value of the mean, the gradient of the token


@dataclass(frozen=True, kw_only=True)
class CispoLoss(PolicyLoss):
    """CISPO: REINFORCE weighted by a clipped, detached ratio (arXiv 2506.13585).

    Unlike clipping the objective, this leaves every token its gradient.

    Attributes:
        ratio_max: largest ratio itself, not a distance from 1 (TRL's epsilon_high; 1 + epsilon_high of verl
            and of the paper).
        ratio_min: smallest ratio itself (1 - epsilon_low); 0: no lower bound, as in TRL.
    """

    ratio_max: float = 5.0
    ratio_min: float = 0.0
    aggregation: Aggregation = "token-mean"

    def __post_init__(self) -> None:
        super().__post_init__()
        expected = "at least 1 (it is the ratio itself, not its distance from 1)"
        _require(self.ratio_max >= 1, "ratio_max", expected, self.ratio_max)
        _require(0 <= self.ratio_min <= 1, "ratio_min", "within [0, 1]", self.ratio_min)

    def _log_bounds(self, advantages_BT: Tensor) -> tuple[Tensor, Tensor]:
        low = math.log(self.ratio_min) if self.ratio_min > 0 else -LOG_RATIO_LIMIT
        return torch.full_like(advantages_BT, low), torch.full_like(advantages_BT, math.log(self.ratio_max))

    def _surrogate(self, logps_BT: Tensor, held_BT: Tensor, advantages_BT: Tensor) -> Tensor:
        return -held_BT.detach().exp() * advantages_BT * logps_BT


def _counted(mask_BT: Tensor, active_B: Tensor | None) -> Tensor:
    mask_BT = mask_BT.bool()
    return mask_BT if active_B is None else mask_BT & active_B[:, None]


def _require(holds: bool, setting: str, expected: str, found: object) -> None:
    if not holds:
        raise CreditlibError(f"loss.{setting} must be {expected}, found {found!r}")


def _given(setting: str, wanted: bool, argument: str, tensor: Tensor | None) -> None:
    if wanted and tensor is None:
        raise CreditlibError(f"loss.{setting} is set, so {argument} must be given; found None")
