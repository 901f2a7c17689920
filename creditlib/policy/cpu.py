"""Faster float32 matrix products on CPUs that MKL treats badly.

torch multiplies float32 matrices with MKL, which takes a slow path on processors that Intel did not make;
oneDNN, which torch carries too, does not. Measured on an AMD EPYC with AVX-512, one core: 2 to 5 times the
speed, and the same numbers up to rounding. `use_onednn` moves a model's linear layers over where that is so;
elsewhere it does nothing.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear as torch_linear


def use_onednn(model: nn.Module) -> nn.Module:
    """Let the model's plain linear layers multiply with oneDNN, in place. Weights, names and saved files stay
    the same.
    """
    if mkl_is_slow():
        for module in model.modules():
            if type(module) is nn.Linear:
                module.__class__ = OneDnnLinear
    return model


class OneDnnLinear(nn.Linear):
    """`nn.Linear` over `linear`."""

    def forward(self, input: Tensor) -> Tensor:  # torch's name
        return linear(input, self.weight, self.bias)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x W^T + b, like torch's, by whichever library is faster here."""
    plain = (
        x.dtype == weight.dtype == torch.float32
        and x.device.type == "cpu"
        and not torch.is_autocast_enabled("cpu")
    )
    if not (plain and x.numel() and mkl_is_slow()):
        return torch_linear(x, weight, bias)
    out: Tensor = _OneDnnProduct.apply(x, weight)  # type: ignore[no-untyped-call]
    return out if bias is None else out + bias


@functools.cache
def mkl_is_slow() -> bool:
    """Decided by the processor's maker and not by a stopwatch, so that a resumed run computes the same
    bits.
    """
    if not (torch.backends.mkl.is_available() and torch.backends.mkldnn.is_available()):
        return False
    if not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        return False
    try:
        maker = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return False
    return "AuthenticAMD" in maker


class _OneDnnProduct(torch.autograd.Function):
    """x W^T with its two gradients, each one oneDNN product."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _product(x, weight)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        grad_x = _product(grad, weight.t()) if ctx.needs_input_grad[0] else None
        grad_weight = None
        if ctx.needs_input_grad[1]:
            grad_weight = _product(grad.flatten(0, -2).t(), x.flatten(0, -2).t())
        return grad_x, grad_weight


def _product(a: Tensor, b: Tensor) -> Tensor:
    product: Tensor = torch.ops.mkldnn._linear_pointwise(a, b, None, "none", [], "")
    return product
