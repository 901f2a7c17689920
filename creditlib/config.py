"""The schema of ``configs/``: every setting, its type and its bounds, checked before anything is loaded.

`RunConfig.parse` takes the composed configuration as plain dictionaries and returns it as frozen, typed
sections, or raises a `CreditlibError` that names the key, what was expected, what was found, and the nearest
valid name.

The sections `task`, `credit`, `advantage` and `loss` are open: their keys are the fields of the dataclass
that the name (or `_target_`) stands for, so that a strategy from another package is checked like ours.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, Self, TypeVar, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from creditlib.types import CreditlibError

SectionT = TypeVar("SectionT", bound=BaseModel)
Count = Annotated[int, Field(ge=1)]
NonNegative = Annotated[int, Field(ge=0)]
Seed = Annotated[int, Field(ge=0, lt=2**64)]  # what torch takes
Positive = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(gt=0, le=1)]
Folder = Annotated[str, Field(min_length=1, pattern=r"^[^\x00]*$")]
BelowOne = Annotated[float, Field(ge=0, lt=1)]

# Settings that change what is shown and kept and nothing that is computed: they may differ when a run is
# resumed, and between runs of one curve in the report.
FREE_TO_CHANGE = ("ledger", "log", "trainer.checkpoint_every", "trainer.keep_checkpoints", "run")


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Named(BaseModel):
    """A registered part: its name, and its hyperparameters beside it. Those are checked against the part's
    own dataclass.
    """

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)
    name: str

    @property
    def hyperparameters(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


Control = Literal["shuffled", "random_band", "uniform"]


class CreditConfig(Named):
    """A credit strategy, and what its weights are replaced with to see whether they matter."""

    control: Control | None = None


class LoraConfig(Section):
    r: Count = 16
    alpha: Count = 32
    dropout: BelowOne = 0.0
    targets: str | list[str] = "all-linear"  # peft's target_modules


class ModelConfig(Section):
    name: Literal["tiny", "smollm2", "hf"] = "tiny"
    path: str | None = None  # hub id, a folder, or a run folder; None: what `name` stands for
    revision: str | None = None
    dtype: Literal["float32", "bfloat16", "float64"] = "float32"
    device: str = "auto"  # auto: cuda where there is one, else cpu
    attention: Literal["sdpa", "eager"] = "sdpa"
    lora: LoraConfig | None = None  # None: full fine-tuning; an adapter found at `path` wins over the default
    gradient_checkpointing: bool = False
    trust_remote_code: bool = False

    @model_validator(mode="after")
    def _path(self) -> Self:
        if self.name == "hf" and not self.path:
            raise ValueError("model=hf needs model.path (a hub id or a local folder)")
        return self


class LengthWindow(Section):
    """What a reward model's score loses for short and long responses, in its own units, as DATC has it."""

    short: NonNegative = 8  # tokens below which it loses; all of `short_penalty` at none
    short_penalty: Annotated[float, Field(ge=0)] = 0.0
    long: Count = 1024  # tokens above which it loses; all of `long_penalty` at twice as many
    long_penalty: Annotated[float, Field(ge=0)] = 0.0


class RewardModelConfig(Section):
    """A frozen reward model: a transformers model for sequence classification with one label."""

    name: Literal["tiny", "hf"] = "hf"
    path: str | None = None  # hub id, a folder, or a run folder; None: what `name` stands for
    revision: str | None = None
    dtype: Literal["float32", "bfloat16", "float64"] = "bfloat16"
    device: str = "auto"
    attention: Literal["sdpa", "eager"] = "sdpa"
    trust_remote_code: bool = False
    micro_tokens: Count = 4096  # of responses in one forward and backward pass
    length_window: LengthWindow | None = None

    @model_validator(mode="after")
    def _path(self) -> Self:
        if self.name == "hf" and not self.path:
            raise ValueError("a reward model needs a path (a hub id, a local folder or a run folder)")
        return self


# By the name of the reward that each gives. reward_model=null: none.
RewardModels = Annotated[dict[str, RewardModelConfig], BeforeValidator(lambda found: found or {})]


class PromptConfig(Section):
    style: Literal["chat", "text"] = "chat"  # text: base models without a chat template
    max_tokens: Count | None = None  # None: what the model's context leaves beside the response


class RolloutConfig(Section):
    name: Literal["hf"] = "hf"
    temperature: Positive = 1.0
    top_p: Share = 1.0
    top_k: NonNegative = 0  # 0: no limit
    max_tokens: Count = 128  # longest response
    rows: Count = 256  # responses decoded at once


class TrainerConfig(Section):
    steps: NonNegative = 100  # rollouts
    prompts_per_step: Count = 8
    responses_per_prompt: Count = 8
    epochs: Count = 1  # passes over each rollout
    minibatches: Count = 1  # optimizer updates a pass; whole groups, never half a group
    micro_batch: Count | None = None  # most responses in one forward and backward; None: all of the minibatch
    packing: Literal["auto", "tree", "padded"] = "auto"
    learning_rate: Positive = 1e-6
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    warmup_steps: NonNegative = 0
    betas: tuple[BelowOne, BelowOne] = Field(default=(0.9, 0.999), strict=False)
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    max_grad_norm: Positive | None = 1.0
    dynamic_sampling: bool = False  # draw new prompts for groups in which no reward varies
    max_resamples: Count = 4  # rounds of drawing, then train on what there is
    mask_truncated: bool = False  # leave truncated responses out of the loss (and its denominators)
    max_skipped_updates: Count = 5  # consecutive updates lost to NaN before the run stops
    checkpoint_every: NonNegative = 25  # 0: only at the end
    keep_checkpoints: Count = 2

    @model_validator(mode="after")
    def _whole_groups(self) -> Self:
        if self.prompts_per_step % self.minibatches:
            raise ValueError(
                f"prompts_per_step={self.prompts_per_step} must be a multiple of "
                f"minibatches={self.minibatches}"
            )
        return self


class EvalConfig(Section):
    """What an evaluation asks."""

    splits: list[str] | None = None  # None: all held-out splits of the task
    limit: NonNegative | None = 200  # questions a split, the same ones each time; None: all; 0: no evaluation
    samples: Count = 1  # sampled responses a question, at the rollout's temperature
    greedy: bool = True  # and one greedy response


class RunEvalConfig(EvalConfig):
    """What an evaluation asks, and when a training run makes one."""

    every: NonNegative = 0  # steps; 0: before the first step and after the last


class LogConfig(Section):
    progress: bool = True  # show a bar


class RunLogConfig(LogConfig):
    samples: NonNegative = 3  # responses shown in the table
    every: Count = 10  # steps between tables
    trackers: list[Literal["trackio", "tensorboard", "wandb"]] = []


class LedgerConfig(Section):
    """The token ledger: tokens.parquet and responses.jsonl."""

    steps: NonNegative = 20  # logged steps, spread over the run; 0: no ledger
    responses: Count = 8  # logged at each of them


class RunFolder(Section):
    dir: Folder


class RunConfig(Section):
    """One training run. `python -m creditlib.train --help` prints it with its groups."""

    seed: Seed = 0
    task: dict[str, Any]
    credit: CreditConfig
    advantage: Named
    loss: Named
    model: ModelConfig
    reward_model: RewardModels = {}
    prompt: PromptConfig = PromptConfig()
    rollout: RolloutConfig
    trainer: TrainerConfig
    eval: RunEvalConfig = RunEvalConfig()
    log: RunLogConfig = RunLogConfig()
    ledger: LedgerConfig = LedgerConfig()
    run: RunFolder

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if "_target_" not in self.task:
            raise ValueError("task needs _target_, the import path of its class (see configs/task/)")
        return self

    @staticmethod
    def parse(config: Mapping[str, Any]) -> RunConfig:
        return parse_section(RunConfig, config)


class FitSettings(Section):
    """How a model is fitted to examples."""

    epochs: Count = 1
    max_steps: NonNegative = 0  # 0: as many as the epochs need
    minutes: Positive | None = None  # stop after this time, with the schedule fitted to it
    batch: Count  # examples an update
    micro_tokens: Count = 4096  # most tokens of one forward and backward
    learning_rate: Positive = 1e-4
    warmup_share: BelowOne = 0.05
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    max_grad_norm: Positive = 1.0
    max_skipped_updates: Count = 5  # consecutive updates lost to NaN before the fit stops


class SftSettings(FitSettings):
    batch: Count = 32  # prompts an update


class SftConfig(Section):
    """One warm start: completion-only cross-entropy on a task's reference responses."""

    seed: Seed = 0
    task: dict[str, Any]
    model: ModelConfig
    reward_model: RewardModels = {}
    prompt: PromptConfig = PromptConfig()
    rollout: RolloutConfig = RolloutConfig()
    sft: SftSettings
    eval: EvalConfig = EvalConfig()
    log: LogConfig = LogConfig()
    run: RunFolder

    @staticmethod
    def parse(config: Mapping[str, Any]) -> SftConfig:
        return parse_section(SftConfig, config)


class PairSettings(FitSettings):
    """How a reward model learns from preference pairs."""

    batch: Count = 16  # pairs an update
    # TCRM: the head's output at each token of an answer is drawn to the answer's score, and to the next
    # token's.
    look_ahead: Annotated[float, Field(ge=0)] = 0.0
    smoothness: Annotated[float, Field(ge=0)] = 0.0


class RewardModelRun(Section):
    """One training of a reward model on preference pairs."""

    seed: Seed = 0
    pairs: dict[str, Any]
    model: ModelConfig
    reward: PairSettings = PairSettings()
    log: LogConfig = LogConfig()
    run: RunFolder

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if "_target_" not in self.pairs:
            raise ValueError("pairs needs _target_, the import path of its class (see configs/pairs/)")
        return self

    @staticmethod
    def parse(config: Mapping[str, Any]) -> RewardModelRun:
        return parse_section(RewardModelRun, config)


class EvaluateConfig(Section):
    """One evaluation of a model on a task's held-out splits."""

    seed: Seed = 0
    task: dict[str, Any]
    model: ModelConfig
    reward_model: RewardModels = {}
    prompt: PromptConfig = PromptConfig()
    rollout: RolloutConfig = RolloutConfig()
    eval: EvalConfig = EvalConfig()
    run: RunFolder


class ExportConfig(Section):
    """One export of a trained model."""

    model: ModelConfig
    merge: bool = False  # fold the adapter into its base model
    out: Folder  # to write; must not exist


def nearest(name: str, candidates: Iterable[str]) -> str:
    """`` Did you mean 'x'?`` where something is near, else the list of what there is."""
    known = sorted(candidates)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    if close:
        return f"Did you mean {close[0]!r}?"
    return f"Known: {', '.join(known)}." if known else ""


def parse_section(schema: type[SectionT], values: Mapping[str, Any]) -> SectionT:
    """Validate `values`; all problems in one message."""
    try:
        return schema.model_validate(dict(values))
    except ValidationError as error:
        raise CreditlibError("\n".join(explain(schema, problem) for problem in error.errors())) from None


def explain(schema: type[BaseModel], problem: ErrorDetails, section: str = "") -> str:
    """One of pydantic's findings in our words: the key (under `section`), what is wrong, and what to write
    instead.
    """
    location = [str(part) for part in problem["loc"]]
    key = ".".join([section, *location] if section else location)
    if problem["type"] == "extra_forbidden":
        return f"{key}: no such setting. {nearest(location[-1], _settings_at(schema, location[:-1]))}"
    if problem["type"] == "missing":
        return f"{key}: is required and missing"
    message = problem["msg"].removeprefix("Value error, ")
    message = message[0].lower() + message[1:]
    found = problem["input"]
    if isinstance(found, Mapping):  # a rule over several settings: its message names them
        return f"{key}: {message}" if key else message
    return f"{key}: {message} (found {found!r})"


def _settings_at(schema: type[BaseModel], path: list[str]) -> list[str]:
    """Names of the settings of the section at `path`."""
    parts = iter(path)
    for part in parts:
        annotation = schema.model_fields[part].annotation if part in schema.model_fields else None
        if get_origin(annotation) is dict:  # sections by names that the user chooses
            next(parts, None)
        inner = [kind for kind in (annotation, *get_args(annotation)) if isinstance(kind, type)]
        sections = [kind for kind in inner if issubclass(kind, BaseModel)]
        if not sections:
            return []
        schema = sections[0]
    return list(schema.model_fields)
