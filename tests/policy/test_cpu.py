"""oneDNN for matrix products: the same numbers, and everything as before in the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from creditlib.policy import cpu
from creditlib.policy.cpu import fast_float32_matmul, packed_linears

IDS = torch.tensor([[3, 4, 5, 6], [7, 8, 9, 10]])


def is_packed(model: Any) -> list[bool]:
    return ["forward" in vars(module) for module in model.modules() if isinstance(module, nn.Linear)]


@pytest.mark.parametrize("family", ["llama", "qwen2"])  # without and with biases
def test_packed_products_are_the_same(family: str, make_model: Callable[..., Any]) -> None:
    model = make_model(family, torch.float32)
    with torch.no_grad():
        expected = model(input_ids=IDS).logits
        with packed_linears(model):
            assert all(is_packed(model))
            torch.testing.assert_close(model(input_ids=IDS).logits, expected, rtol=1e-4, atol=1e-4)
        assert torch.equal(model(input_ids=IDS).logits, expected)


def test_unpacked_after_an_exception(make_model: Callable[..., Any]) -> None:
    model = make_model("llama", torch.float32)
    with torch.no_grad(), pytest.raises(KeyboardInterrupt), packed_linears(model):
        raise KeyboardInterrupt
    assert not any(is_packed(model))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_types_are_left_alone(dtype: torch.dtype, make_model: Callable[..., Any]) -> None:
    model = make_model("llama", dtype)
    with torch.no_grad(), packed_linears(model):
        assert not any(is_packed(model))


def test_gradients_are_refused(make_model: Callable[..., Any]) -> None:
    with pytest.raises(RuntimeError, match="no_grad"), packed_linears(make_model("llama", torch.float32)):
        pass


def test_a_layer_with_a_forward_of_its_own_keeps_it() -> None:
    layer = nn.Linear(3, 2)
    layer.forward = lambda x: x + 1  # type: ignore[method-assign]
    with torch.no_grad(), packed_linears(layer):
        assert torch.equal(layer(torch.ones(3)), torch.full((3,), 2.0))
    assert torch.equal(layer(torch.ones(3)), torch.full((3,), 2.0))


def test_fast_products_are_accurate_forward_and_backward() -> None:
    torch.manual_seed(0)
    x = torch.randn(300, 500, requires_grad=True)
    w = torch.randn(400, 500, requires_grad=True)
    before = torch.backends.mkldnn.matmul.fp32_precision
    with fast_float32_matmul():
        y = nn.functional.linear(x, w)
        y.square().sum().backward()
    exact = x.double() @ w.double().T
    for ours, truth in ((y, exact), (x.grad, 2 * exact @ w.double()), (w.grad, 2 * exact.T @ x.double())):
        assert ours is not None
        assert (ours - truth).abs().max() / truth.abs().max() < 1e-5
    assert torch.backends.mkldnn.matmul.fp32_precision == before


def test_permission_is_not_given_where_it_costs_accuracy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A processor with matrix units would round to bfloat16."""

    def rounding(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.mm(a.bfloat16().float() if a.dtype == torch.float32 else a, b)

    monkeypatch.setattr(torch.Tensor, "__matmul__", rounding)
    assert not cpu._onednn_is_accurate.__wrapped__()
