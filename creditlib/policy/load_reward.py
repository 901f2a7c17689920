"""Reward models from wherever they live: the embedded one, a hub id, a folder, a run of
`creditlib.reward_model`."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import torch

from creditlib.config import ModelConfig, RewardModelConfig
from creditlib.policy.load import (
    add_lora,
    checkpoint_gradients,
    clear_errors,
    find_source,
    holds_adapter,
    load_tokenizer,
    pick_device,
    resolve,
    usable_device,
)
from creditlib.policy.reward_scorer import RewardScorer
from creditlib.types import CreditlibError


def load_reward_model(config: RewardModelConfig, label: str) -> tuple[RewardScorer, Any]:
    """The scorer and the tokenizer; `label` is what messages call the setting.

    Raises:
        CreditlibError: a device that is not there; nothing loadable at the path; a model without a trained
            head, or with more labels than one.
    """
    device = usable_device(pick_device(config.device), label)
    source = str(files("creditlib") / "assets" / "tiny_reward")
    if config.path is not None:
        source = find_source(config.path, label)
    with clear_errors(source):
        model = load_classifier(source, config)
        tokenizer = load_tokenizer(source, config)
    return RewardScorer(model.to(device), source, config.micro_tokens), tokenizer


def load_classifier(source: str, config: RewardModelConfig) -> Any:
    """A transformers model for sequence classification, an adapter at `source` folded into its base."""
    from transformers import AutoModelForSequenceClassification

    base = source
    if adapter := holds_adapter(source):
        from peft import PeftConfig

        found = PeftConfig.from_pretrained(source)
        if found.task_type != "SEQ_CLS":
            raise CreditlibError(
                f"{source} holds an adapter for {found.task_type}; a reward model's is for SEQ_CLS: train "
                "one with python -m creditlib.reward_model"
            )
        base = str(found.base_model_name_or_path)
    model, report = AutoModelForSequenceClassification.from_pretrained(
        base,
        revision=config.revision,
        dtype=getattr(torch, config.dtype),
        attn_implementation=config.attention,
        trust_remote_code=config.trust_remote_code,
        output_loading_info=True,
        **({"num_labels": 1} if adapter else {}),
    )
    if adapter:
        from peft import PeftModel

        return PeftModel.from_pretrained(model, source).merge_and_unload()
    if missing := sorted(report["missing_keys"]):
        raise CreditlibError(
            f"{source} is no reward model: it has no weights for {', '.join(missing[:3])}. Train one with "
            "python -m creditlib.reward_model, or name a model for sequence classification"
        )
    return model


def new_reward_model(config: ModelConfig) -> tuple[Any, Any]:
    """A language model's transformer with a fresh head of one label, ready to train, and its tokenizer.

    The head starts at 0, so that all answers score alike; with `config.lora`, it trains beside an adapter.

    Raises:
        CreditlibError: nothing loadable at the path, or a model that has no such form.
    """
    from transformers import AutoModelForSequenceClassification

    device = usable_device(pick_device(config.device), "model")
    source = resolve(config)
    if holds_adapter(source):
        raise CreditlibError(
            f"model.path={config.path} holds an adapter; fold it into its base first: "
            f"python -m creditlib.export model.path={config.path} merge=true out=merged"
        )
    with clear_errors(source):
        tokenizer = load_tokenizer(source, config)
        model = AutoModelForSequenceClassification.from_pretrained(
            source,
            num_labels=1,
            revision=config.revision,
            dtype=getattr(torch, config.dtype),
            attn_implementation=config.attention,
            trust_remote_code=config.trust_remote_code,
        )
    if not hasattr(model, "score"):
        raise CreditlibError(
            f"{source}: {type(model).__name__} has no linear layer `score` on its last token, as a Llama, "
            "Qwen or Gemma has"
        )
    torch.nn.init.zeros_(model.score.weight)
    # Transformers finds the last token of a padded row by it.
    model.config.pad_token_id = _padding(tokenizer)
    if config.lora:
        model = add_lora(model, config.lora, "SEQ_CLS")
    if config.gradient_checkpointing:
        checkpoint_gradients(model)
    return model.to(device), tokenizer


def _padding(tokenizer: Any) -> int | None:
    found: int | None = tokenizer.pad_token_id
    return tokenizer.eos_token_id if found is None else found
