"""From settings to the parts of a run: what training, warm start and evaluation have in common."""

from __future__ import annotations

import os
import random
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import transformers

from creditlib.config import ModelConfig, PromptConfig, RewardModelConfig, RolloutConfig
from creditlib.policy.cpu import fast_float32_matmul
from creditlib.policy.load import Policy, context_length, load_policy
from creditlib.policy.load_reward import load_reward_model
from creditlib.policy.vocabulary import vocabulary_differences
from creditlib.rewards.models import RewardModel
from creditlib.rollout.encode import PromptEncoder, stop_ids
from creditlib.rollout.hf import HFRollout
from creditlib.trainer.prompts import check_lengths
from creditlib.trainer.supervised import Example
from creditlib.types import CreditlibError, Prompt, Task

SHORTEN = "shorten the prompts with the settings of the task (task.*)"


def quiet_libraries() -> None:
    """Keep other libraries' bars and advice out of the run's own output."""
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    warnings.filterwarnings("ignore", category=FutureWarning)


def require_one_process(what: str, command: str) -> None:
    """Stop where a launcher has started several processes of a command that shares no work among them."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise CreditlibError(
            f"{what} runs in one process, but a launcher has started several: use python -m {command} "
            "without accelerate launch or torchrun"
        )


def set_seeds(seed: int) -> None:
    """Everything that draws from a global generator: adapter initialisation, dropout, third-party code."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def build_policy(model: ModelConfig, seed: int) -> Policy:
    set_seeds(seed)
    return load_policy(model)


def build_encoder(policy: Policy, prompt: PromptConfig) -> PromptEncoder:
    return PromptEncoder(policy.tokenizer, prompt.style, prompt.max_tokens)


def build_engine(policy: Policy, encoder: PromptEncoder, rollout: RolloutConfig, seed: int) -> HFRollout:
    base = policy.model.get_base_model() if policy.is_adapter else policy.model
    return HFRollout(
        policy.model,
        encoder,
        seed=seed,
        temperature=rollout.temperature,
        top_p=rollout.top_p,
        top_k=rollout.top_k or None,
        max_tokens=rollout.max_tokens,
        eos_ids=stop_ids(base, policy.tokenizer),
        rows=rollout.rows,
    )


def build_reward_models(sections: Mapping[str, RewardModelConfig], policy: Policy) -> dict[str, RewardModel]:
    """By the name of their reward.

    Raises:
        CreditlibError: a model that cannot be loaded, or is no reward model.
    """
    found = {}
    for name, section in sections.items():
        scorer, tokenizer = load_reward_model(section, f"reward_model.{name}")
        rows = scorer.backbone.get_input_embeddings().num_embeddings
        differences = "; ".join(vocabulary_differences(policy.tokenizer, tokenizer, rows))
        if differences and section.name == "tiny" and section.path is None:
            raise CreditlibError(
                f"reward_model.{name} is the embedded one, which knows the embedded policy's answers alone; "
                f"{policy.source} has another vocabulary. Choose another (reward_model=hf "
                "reward_model.preference.path=...), or none (reward_model=null)"
            )
        shared = max(policy.tokenizer.get_vocab().values()) + 1
        found[name] = RewardModel(scorer, tokenizer, shared, differences, section.length_window)
    return found


@contextmanager
def at_work(task: Task) -> Iterator[Task]:
    """Fast matrix products for the block; after it, whatever happened, the task's worker processes stop."""
    try:
        with fast_float32_matmul():
            yield task
    finally:
        task.close()


def check_prompts(prompts: Sequence[Prompt], policy: Policy, encoder: PromptEncoder, response: int) -> None:
    """Render every training prompt: one that is too long would end the run when its turn comes.

    Args:
        prompts: all training prompts.
        policy: sets how many tokens fit.
        encoder: renders prompts, and may set a lower limit.
        response: longest response, `rollout.max_tokens`.

    Raises:
        CreditlibError: prompts that cannot be rendered or are too long.
    """
    unlimited = PromptEncoder(encoder.tokenizer, encoder.style)
    lengths = [len(unlimited.encode(prompt)) for prompt in prompts]
    positions = context_length(policy.model)
    if encoder.max_tokens is not None and (positions is None or encoder.max_tokens <= positions - response):
        _check_own_limit(prompts, lengths, encoder)
    elif positions is not None:
        if response >= positions:
            raise CreditlibError(
                f"rollout.max_tokens={response} leaves no room for a prompt in the model's {positions} "
                "positions: lower it or choose a model with more positions"
            )
        why = f"which is what the model's {positions} positions leave beside rollout.max_tokens={response}"
        way = f"Lower rollout.max_tokens, {SHORTEN} or choose a model with more positions"
        check_lengths(prompts, lengths, positions - response, why, way)


def training_examples(
    task: Task, prompts: Sequence[Prompt], policy: Policy, encoder: PromptEncoder
) -> list[Example]:
    """The training prompts with the task's reference responses, as token ids.

    Raises:
        CreditlibError: prompts that cannot be rendered or are too long, alone or with their response.
    """
    unlimited = PromptEncoder(encoder.tokenizer, encoder.style)
    examples = [Example.of(unlimited, prompt, task.target(prompt)) for prompt in prompts]
    if encoder.max_tokens is not None:
        _check_own_limit(prompts, [len(example.prompt) for example in examples], encoder)
    if (positions := context_length(policy.model)) is not None:
        why = "the model's positions, together with their responses"
        way = f"{SHORTEN.capitalize()} or choose a model with more positions"
        check_lengths(prompts, [len(example.ids) for example in examples], positions, why, way)
    return examples


def _check_own_limit(prompts: Sequence[Prompt], lengths: Sequence[int], encoder: PromptEncoder) -> None:
    assert encoder.max_tokens is not None
    way = f"Raise prompt.max_tokens or {SHORTEN}"
    check_lengths(prompts, lengths, encoder.max_tokens, "the limit that prompt.max_tokens sets", way)


def plain(config: Any) -> dict[str, Any]:
    """A configuration as plain values, as it is saved with the run."""
    values: dict[str, Any] = config.model_dump(mode="json")
    return values
