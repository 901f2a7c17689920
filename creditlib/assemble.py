"""From settings to the parts of a run: what training, warm start and evaluation have in common."""

from __future__ import annotations

import logging
import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import transformers

from creditlib.config import ModelConfig, PromptConfig, RolloutConfig
from creditlib.policy.load import Policy, load_policy
from creditlib.rollout.encode import PromptEncoder, stop_ids
from creditlib.rollout.hf import HFRollout
from creditlib.types import CreditlibError, Task


def quiet_libraries() -> None:
    """Keep other libraries' bars and advice out of the run's own output."""
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    logging.getLogger("creditlib").addHandler(logging.NullHandler())
    warnings.filterwarnings("ignore", category=FutureWarning)


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


@contextmanager
def closing(task: Task) -> Iterator[Task]:
    """Stop the task's worker processes whatever happens."""
    try:
        yield task
    finally:
        task.close()


def check_prompts(task: Task, encoder: PromptEncoder, splits: tuple[str, ...]) -> None:
    """Render one prompt of each split, so that a wrong style or template is told before training."""
    for split in splits:
        prompts = task.prompts(split)
        if not prompts:
            raise CreditlibError(f"task {task.name}: split {split!r} has no prompts")
        encoder.encode(prompts[0])


def plain(config: Any) -> dict[str, Any]:
    """A configuration as plain values, as it is saved with the run."""
    values: dict[str, Any] = config.model_dump(mode="json")
    return values
