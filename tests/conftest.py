"""Shared fixtures: random models of several families, small enough for any machine."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import transformers
from transformers import AutoModelForCausalLM

FAMILIES = ("llama", "qwen2", "qwen3", "gemma")


def random_model(family: str, dtype: torch.dtype = torch.float64, *, vocab: int = 61, layers: int = 2) -> Any:
    """A random-init model with grouped-query attention, the same for the same arguments."""
    config = transformers.AutoConfig.for_model(
        family,
        vocab_size=vocab,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=256,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    torch.manual_seed(0)
    return widened(AutoModelForCausalLM.from_config(config, dtype=dtype).eval())


def widened(model: Any) -> Any:
    """The default initialisation is nearly uniform; wider weights make a wrong mask visible."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 2:
                parameter.mul_(8.0)
    if model.dtype == torch.float64:
        keep_norms_double(model)
    return model


def keep_norms_double(model: Any) -> None:
    """transformers' RMSNorm computes in float32 whatever the model's dtype, which rounds gradients to 1e-7;
    in a float64 model its forward is replaced by the same formula without the cast, so that tests can ask for
    1e-10.
    """

    def norm(module: Any, hidden: torch.Tensor) -> torch.Tensor:
        scaled = hidden * torch.rsqrt(hidden.pow(2).mean(-1, keepdim=True) + module.eps)
        return scaled * (1.0 + module.weight if "Gemma" in type(module).__name__ else module.weight)

    for module in model.modules():
        if type(module).__name__.endswith("RMSNorm"):
            module.eps = getattr(module, "variance_epsilon", getattr(module, "eps", None))
            module.forward = norm.__get__(module)


@pytest.fixture
def make_model() -> Callable[..., Any]:
    return random_model


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def random_reward_model(family: str, dtype: torch.dtype = torch.float64, *, vocab: int = 61) -> Any:
    """A random reward model on `random_model`'s transformer."""
    from transformers import AutoModelForSequenceClassification

    config = random_model(family, vocab=vocab).config
    config.num_labels = 1
    torch.manual_seed(3)
    return widened(AutoModelForSequenceClassification.from_config(config, dtype=dtype).eval())


@pytest.fixture
def no_garbage_collection() -> Iterator[None]:
    """For tests that measure time: a collection takes half a second once the whole suite is loaded."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()
