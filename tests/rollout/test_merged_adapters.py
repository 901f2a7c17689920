"""Adapters merged for a while: the same outputs, and afterwards the same weights to the bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model
from peft.tuners.tuners_utils import BaseTunerLayer

from creditlib.policy.adapters import merged_adapters

IDS = torch.tensor([[3, 4, 5, 6]])


def adapted(model: Any, **settings: Any) -> Any:
    model = get_peft_model(model, LoraConfig(**{"r": 4, "target_modules": "all-linear", **settings})).eval()
    torch.manual_seed(0)
    for name, parameter in model.named_parameters():
        if "lora_B" in name or "magnitude" in name:
            parameter.data += 0.3 * torch.rand_like(parameter)
    return model


def layers(model: Any) -> list[Any]:
    return [module for module in model.modules() if isinstance(module, BaseTunerLayer)]


@pytest.mark.parametrize(
    "settings", [{}, {"use_rslora": True}, {"use_dora": True}, {"bias": "lora_only", "lora_bias": True}]
)
def test_same_outputs_same_weights(settings: dict[str, Any], make_model: Callable[..., Any]) -> None:
    base = make_model("qwen2")
    if settings.get("lora_bias"):
        settings = {**settings, "target_modules": ["q_proj", "v_proj"]}  # the layers with a bias
    model = adapted(base, **settings)
    before = {name: (p.data_ptr(), p.detach().clone()) for name, p in model.named_parameters()}
    with torch.no_grad():
        expected = model(input_ids=IDS).logits
        for _ in range(3):
            with merged_adapters(model):
                assert all(layer.merged for layer in layers(model))
                torch.testing.assert_close(model(input_ids=IDS).logits, expected, rtol=1e-9, atol=1e-9)
        assert torch.equal(model(input_ids=IDS).logits, expected)
    assert not any(layer.merged for layer in layers(model))
    for name, parameter in model.named_parameters():
        assert (parameter.data_ptr(), True) == (before[name][0], torch.equal(parameter, before[name][1]))


def test_restored_after_an_exception(make_model: Callable[..., Any]) -> None:
    model = adapted(make_model("llama"))
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    with pytest.raises(KeyboardInterrupt), merged_adapters(model):
        raise KeyboardInterrupt
    assert all(torch.equal(p, before[name]) for name, p in model.named_parameters())
    assert not any(layer.merged for layer in layers(model))


def test_half_precision_keeps_the_adapter_apart(make_model: Callable[..., Any]) -> None:
    model = adapted(make_model("llama", torch.bfloat16))
    with merged_adapters(model):
        assert not any(layer.merged for layer in layers(model))


def test_tied_weights_keep_the_adapter_apart(make_model: Callable[..., Any]) -> None:
    """Merging into a head that is also the embedding would change the embedding."""
    base = make_model("llama")
    base.lm_head.weight = base.model.embed_tokens.weight
    model = adapted(base, target_modules=["q_proj", "lm_head"])
    with torch.no_grad():
        expected = model(input_ids=IDS).logits
        with merged_adapters(model):
            torch.testing.assert_close(model(input_ids=IDS).logits, expected, rtol=1e-9, atol=1e-9)


def test_switched_off_adapters_stay_off(make_model: Callable[..., Any]) -> None:
    model = adapted(make_model("llama"))
    with torch.no_grad(), model.disable_adapter():
        expected = model(input_ids=IDS).logits
        with merged_adapters(model):
            assert torch.equal(model(input_ids=IDS).logits, expected)


def test_a_model_without_adapters(make_model: Callable[..., Any]) -> None:
    model = make_model("llama")
    with merged_adapters(model):
        assert model(input_ids=IDS).logits.isfinite().all()
