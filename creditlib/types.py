"""The values that flow through a training step, and the Protocols of the parts that make them.

A step is seven stations, each a function of the values before it::

    Prompt -> Rollout -> RewardTable -> Scores -> Advantages -> TokenCredit -> update

Shape suffixes are part of a name: B responses, N prompts, G responses a prompt, K rewards, T response tokens,
V vocabulary, D hidden width, L packed tokens.  This module imports no torch at run time, so that
``verifiers`` and ``tasks`` stay light.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from torch import Tensor

T = TypeVar("T")
Message = Mapping[str, str]  # {"role": "user", "content": "..."}
Finish = Literal["stop", "length"]
Norm = Literal["none", "response", "token"]


class CreditlibError(Exception):
    """Something the user can mend. Entry points print its message alone, without a traceback."""


class MissingDataError(CreditlibError):
    """Data that a setting points at is absent or unreadable."""


@dataclass(frozen=True)
class Prompt:
    """One question put to the policy.

    Exactly one of `messages` (chat turns) and `text` (base models) is set; `reference` is whatever the task's
    verifier needs to judge a response (gold SQL and database, constraints, gold calls).
    """

    id: str
    task: str
    messages: tuple[Message, ...] | None = None
    text: str | None = None
    reference: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if (self.messages is None) == (self.text is None):
            raise CreditlibError(
                f"prompt {self.id!r}: set either messages (chat turns) or text, not both and not neither"
            )


@dataclass(frozen=True)
class Rollout:
    """Responses sampled from the policy, exactly as sampled (token in, token out).

    `group_B[b]` is the index into `prompts` that response b answers. Rows of one group need not be
    neighbours. `sampler_logps_BT` is the full softmax at the sampling temperature; `sampler_mass_BT` is the
    probability that top-p/top-k kept at that position (1 without truncation), so log p_truncated = logp - log
    mass.
    """

    prompts: tuple[Prompt, ...]
    prompt_ids: tuple[tuple[int, ...], ...]  # N token sequences, one a prompt
    group_B: Tensor  # (B,) int64
    ids_BT: Tensor  # (B, T) int64, right padded
    mask_BT: Tensor  # (B, T) bool, True on sampled tokens, the stop token included
    texts: tuple[str, ...]  # B decoded responses, stop token removed
    sampler_logps_BT: Tensor  # (B, T) float32, 0 outside the mask
    sampler_mass_BT: Tensor  # (B, T) float32, 1 outside the mask
    finish: tuple[Finish, ...]  # B; "length" = truncated
    temperature: float = 1.0
    opened: str = ""  # what the chat template begins each response with ("<think>"): verifiers read it too

    def in_texts(self, spans: Iterable[tuple[int, int, str]]) -> tuple[Span, ...]:
        """Spans of the responses as verifiers read them, as places in `texts`."""
        before = len(self.opened)
        return tuple(
            Span(max(start - before, 0), end - before, part)
            for start, end, part in spans
            if end > before or not before
        )

    @property
    def lengths_B(self) -> Tensor:
        """Number of sampled tokens of each response, (B,) int64."""
        return self.mask_BT.sum(1)

    @property
    def names(self) -> list[tuple[str, int]]:
        """Each response's name within the step: its prompt's id, and its number among the responses to it."""
        seen = Counter[int]()
        found = []
        for group in self.group_B.tolist():
            found.append((self.prompts[group].id, seen[group]))
            seen[group] += 1
        return found


class Span(NamedTuple):
    """Characters `start:end` of the response that a verifier read, and what part of the response they are."""

    start: int
    end: int
    part: str


@dataclass(frozen=True)
class Check:
    """One verifier's finding on one response for one reward.

    `score` is NaN where the reward does not apply; `raw` is what it was before something was taken off it
    (None: nothing was). `info` is the fact its verdict rests on, as a replay would tell the policy (None:
    nothing to tell). `flags` are machine-readable codes that the trainer counts, above all problems of the
    data (``"data:empty_gold"``) as opposed to errors of the policy. `kind` is what the reward means on this
    prompt, as a constraint's id (None: its name says it; empty: nothing, the score is NaN).
    """

    score: float
    reason: str = ""
    info: str | None = None
    spans: tuple[Span, ...] = ()
    flags: tuple[str, ...] = ()
    raw: float | None = None
    kind: str | None = None


@dataclass(frozen=True)
class RewardReading:
    """What a reward model says of each token, for strategies that look inside it (`CreditStrategy.needs`).

    The model may read a response within another text than the policy wrote it in; `read_BT` says which of the
    sampled tokens it read as they are. Elsewhere gradients are 0.
    """

    score_B: Tensor  # (B,) the score itself, before anything is taken off it; NaN where there is none
    read_BT: Tensor  # (B, T) bool
    gradients_BTD: Tensor | None = (
        None  # of the score, with respect to the embedding that the model was given
    )
    values_BS: Tensor | None = None  # S = T + 1: the head's output before each token, then after all of them


@dataclass(frozen=True)
class RewardTable:
    """Rewards of one rollout. `kind_BK[b][k]` says what column k means in row b: usually the reward's name;
    in instruction following the constraint's id, since there the columns are slots, and nothing ("") where a
    slot is empty.
    """

    names: tuple[str, ...]  # K
    scores_BK: Tensor  # (B, K) float32, NaN = does not apply
    kind_BK: tuple[tuple[str, ...], ...]
    bounds_K2: Tensor  # (K, 2) declared minimum and maximum
    checks: tuple[tuple[Check, ...], ...]  # B x K
    readings: Mapping[str, RewardReading] = field(default_factory=dict)  # of reward models, by reward

    def valid_B(self, weights: Sequence[float]) -> Tensor:
        """Rows with at least one reward of a weight that is not 0, (B,) bool. The others stay outside every
        statistic and the loss.
        """
        trained = [k for k, weight in enumerate(weights) if weight != 0]
        return ~self.scores_BK[:, trained].isnan().all(1)

    def checks_of(self, row: int) -> dict[str, Check]:
        """The findings on one response by reward."""
        return dict(zip(self.names, self.checks[row], strict=True))


@dataclass(frozen=True)
class Scores:
    """Log-probabilities of the sampled tokens under the policy that sampled and under the reference, (B, T)
    float32.
    """

    old_logps_BT: Tensor | None  # None: one update a rollout, so old = current, detached
    ref_logps_BT: Tensor | None  # None: no KL term
    # (B, T, D) the hidden states of the old-log-prob pass that predict each token; None: no strategy asked
    hidden_BTD: Tensor | None = None


@dataclass(frozen=True)
class Advantages:
    """What a response earns from each reward, and an offset that belongs to no reward."""

    by_reward_BK: Tensor
    offset_B: Tensor

    @property
    def total_B(self) -> Tensor:
        """Row sum plus offset, added in the same order as `TokenCredit.combine` adds, so that uniform credit
        is exact.
        """
        columns = self.by_reward_BK.unbind(1)
        total_B = columns[0]
        for column_B in columns[1:]:
            total_B = total_B + column_B
        return total_B + self.offset_B

    def only(self, rows_B: Tensor) -> Advantages:
        """0 in all but these rows."""
        return Advantages(
            self.by_reward_BK.masked_fill(~rows_B[:, None], 0.0), self.offset_B.masked_fill(~rows_B, 0.0)
        )


@dataclass(frozen=True)
class TokenCredit:
    """Each token's advantage, S_t = sum_k A_k w_kt + offset + bonus_t, and how it came about. Always
    detached.
    """

    weights_BKT: Tensor
    advantages_BT: Tensor
    bonus_BT: Tensor | None = None  # only methods that add (RED, P2T)
    mean_one: bool = True  # does the method promise weights of mean one over the valid tokens
    relevance_BKT: Tensor | None = None  # what the credit was made of, for a person; NaN = not computed
    measure_K: tuple[str, ...] = ()  # what each reward's relevance is, as in "distance"; () without one
    notes_BK: Mapping[str, Tensor] = field(
        default_factory=dict
    )  # name -> a number for each response and reward
    diagnostics: Mapping[str, float] = field(default_factory=dict)

    @staticmethod
    def combine(
        advantages: Advantages,
        weights_BKT: Tensor,
        mask_BT: Tensor,
        *,
        bonus_BT: Tensor | None = None,
        mean_one: bool = True,
        relevance_BKT: Tensor | None = None,
        measure_K: tuple[str, ...] = (),
        notes_BK: Mapping[str, Tensor] | None = None,
        diagnostics: Mapping[str, float] | None = None,
    ) -> TokenCredit:
        """Build the token advantages from per-reward weights; zero outside the mask."""
        by_reward_BK = advantages.by_reward_BK
        total_BT = by_reward_BK[:, 0, None] * weights_BKT[:, 0]
        for k in range(1, by_reward_BK.shape[1]):
            total_BT = total_BT + by_reward_BK[:, k, None] * weights_BKT[:, k]
        total_BT = total_BT + advantages.offset_B[:, None]
        if bonus_BT is not None:
            total_BT = total_BT + bonus_BT
        total_BT = total_BT.masked_fill(~mask_BT, 0.0).detach()
        bonus_BT = None if bonus_BT is None else bonus_BT.detach()
        return TokenCredit(
            weights_BKT.detach(),
            total_BT,
            bonus_BT,
            mean_one,
            relevance_BKT,
            measure_K,
            notes_BK or {},
            diagnostics or {},
        )


# --------------------------------------------------------------------------- Protocols of the parts


@runtime_checkable
class Verifier(Protocol):
    """Judges responses. One column of the reward table for each of `reward_names`."""

    @property
    def reward_names(self) -> tuple[str, ...]: ...
    @property
    def bounds(self) -> Mapping[str, tuple[float, float]]: ...
    def verify(self, prompts: Sequence[Prompt], texts: Sequence[str]) -> list[dict[str, Check]]:
        """One dict a (prompt, response) pair, with a Check for every reward name."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class Task(Verifier, Protocol):
    """What to ask and how to judge it. `tasks/text2sql.py` is the model to copy; `tasks/simple.py` wraps your
    own functions.
    """

    @property
    def name(self) -> str: ...
    @property
    def eval_splits(self) -> tuple[str, ...]:
        """Held-out splits, reported apart."""
        ...

    def prompts(self, split: str) -> Sequence[Prompt]:
        """The prompts of ``"train"`` or of one of `eval_splits`, in a fixed order."""
        ...

    def target(self, prompt: Prompt) -> str:
        """A response that earns every reward, for warm start (``python -m creditlib.sft``)."""
        ...


class AdvantageRule(Protocol):
    """Turns rewards into per-reward advantages: a frozen dataclass, pure tensors in and out."""

    @property
    def norm(self) -> Norm: ...
    def __call__(
        self,
        scores_BK: Tensor,
        group_B: Tensor,
        bounds_K2: Tensor | None = None,
        kind_BK: Sequence[Sequence[str]] | None = None,
    ) -> Advantages: ...


@runtime_checkable
class ReplayTask(Task, Protocol):
    """A task that can tell the policy what its verifiers know, for strategies that replay responses."""

    def information(self, prompt: Prompt, checks: Mapping[str, Check]) -> Mapping[str, str]:
        """Reward name -> what its verifier went by in judging a response, worded as a replay tells it.

        Rewards that are left out have nothing to tell.

        Args:
            prompt: as it was asked.
            checks: the findings on one response to it.
        """
        ...

    def render(self, prompt: Prompt, information: Mapping[str, str]) -> Prompt:
        """`prompt` with exactly this information.

        What `information` may restate (tags, schema, a constraint) is nowhere else in the result, or leaving
        it out would remove nothing.
        """
        ...


@runtime_checkable
class Dissects(Protocol):
    """A task that can say what the parts of a response are, for the token ledger."""

    def parts(self, text: str) -> Sequence[Span]:
        """Labelled stretches of a response that do not overlap, in order."""
        ...


class Replay(NamedTuple):
    """A response's tokens after some other prompt."""

    context: tuple[int, ...]
    response: tuple[int, ...]
    alone: bool = False  # run by itself: beside the same replay among others, it shows what rounding does


class Directions(NamedTuple):
    """How tokens' updates stand to a reward's gradient in logit space, (M,) each: see
    `creditlib.policy.direction`.
    """

    score_M: Tensor  # <g, k>
    gradient_norm_M: Tensor  # |g|
    update_norm_M: Tensor  # |k|


class PolicyScorer(Protocol):
    """The policy that sampled, in eval mode and without gradient."""

    def logps(self, rollout: Rollout) -> Tensor:
        """(B, T) float32 log-probs of the sampled tokens at the rollout's temperature, 0 outside the mask."""
        ...

    def divergences(
        self, pairs: Sequence[tuple[Replay, Replay]], *, temperature: float = 1.0, top_k: int | None = None
    ) -> list[Tensor]:
        """Jensen-Shannon divergence of the next-token distributions at each token of a response, in nats.

        Args:
            pairs: two replays of the same response.
            temperature: divides the logits.
            top_k: an estimate from this many tokens and the mass of the rest, a lower bound; None: exact.

        Returns:
            One float32 tensor a pair, of the response's length.
        """
        ...

    def directions(
        self,
        hidden_MD: Tensor,
        actions_M: Tensor,
        rewards: Sequence[tuple[Tensor, Tensor]],
        *,
        temperature: float = 1.0,
    ) -> Directions:
        """How the gradient of a reward stands to the update of each sampled token.

        Args:
            hidden_MD: the policy's hidden states that predict the tokens.
            actions_M: the sampled tokens.
            rewards: of each reward model, (M, E) its gradients with respect to its input embeddings, and
                (V, E) those embeddings of the policy's first V tokens; other tokens get no probability. Of
                several, the sum.
            temperature: divides the logits.
        """
        ...


class ReplayContexts(Protocol):
    """What each response's prompt becomes when the policy is told some of what the verifiers know."""

    def informed(self, row: int) -> frozenset[str]:
        """Rewards whose verifier has information on response `row`."""
        ...

    def replay(self, row: int, told: frozenset[str]) -> Replay | None:
        """Response `row` after its prompt with the information of the rewards in `told`; None where the two
        exceed the policy's context.
        """
        ...


class RewardModelTables(Protocol):
    """What a strategy may ask of a reward model beside its readings."""

    @property
    def embedding_VE(self) -> Tensor:
        """Input embeddings of the tokens that it shares with the policy, in the policy's order."""
        ...

    @property
    def null_E(self) -> Tensor:
        """The embedding that stands for no token: the padding token's.

        Raises:
            CreditlibError: there is no padding token.
        """
        ...


class CreditContext(Protocol):
    """All that a credit strategy may look at."""

    @property
    def rollout(self) -> Rollout: ...
    @property
    def table(self) -> RewardTable: ...
    @property
    def scores(self) -> Scores: ...
    @property
    def advantages(self) -> Advantages: ...
    @property
    def step(self) -> int: ...
    @property
    def total_steps(self) -> int: ...
    @property
    def policy(self) -> PolicyScorer | None: ...
    @property
    def contexts(self) -> ReplayContexts | None: ...
    @property
    def reward_models(self) -> Mapping[str, RewardModelTables]:
        """By the name of their reward."""
        ...

    @property
    def reward_weights(self) -> Sequence[float]:
        """The weight that the advantage rule gives each reward."""
        ...

    @property
    def seed(self) -> int: ...
    def gather(self, value: T) -> list[T]:
        """`value` of every process. All of them must call it, as often and in the same order."""
        ...


class CreditStrategy(Protocol):
    """Spreads each reward's advantage over the tokens of the response: a frozen dataclass of
    hyperparameters.
    """

    @property
    def needs(self) -> frozenset[str]:
        """What a run must provide, any of

        * ``"policy"``: `CreditContext.policy`, and ``"hidden"``: `Scores.hidden_BTD`;
        * ``"contexts"``: `CreditContext.contexts`;
        * ``"reward_gradients"``, ``"reward_values"``: those of each `RewardReading`, for which there must be
          a reward model; ``"reward_null"``: that has an embedding of no token, `RewardModelTables.null_E`.
        """
        ...

    def assign(self, context: CreditContext) -> TokenCredit: ...


class RolloutEngine(Protocol):
    """Samples responses."""

    def generate(
        self, prompts: Sequence[Prompt], *, samples: int, step: int, greedy: bool = False
    ) -> Rollout:
        """`samples` responses to each prompt. The random stream of a response is a function of the run's
        seed, `step`, the prompt's id and the sample's index alone.
        """
        ...
