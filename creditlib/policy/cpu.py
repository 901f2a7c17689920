"""float32 matrix products on CPUs, by oneDNN where it is faster than PyTorch's own choice, MKL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor, nn

_MKLDNN: Any = torch.backends.mkldnn
_ROWS = 16  # of a product, to choose the layout by; all numbers above 1 lead to the same one


@contextmanager
def fast_float32_matmul() -> Iterator[None]:
    """Let oneDNN instead of MKL multiply float32 matrices on the CPU, forward and backward, if that loses no
    accuracy.

    MKL takes its AVX2 kernels on processors that are not Intel's, oneDNN takes AVX-512 on all that have it:
    twice as fast there. PyTorch has no setting for the library alone; it goes to oneDNN when lower precision
    is *permitted*. oneDNN makes use of that permission only on processors with matrix units for bfloat16
    (AMX), so one product is checked first, and where it is not accurate nothing changes. Other devices and
    other types of numbers are not concerned.
    """
    with _permission("bf16") if _onednn_is_accurate() else nullcontext():
        yield


@contextmanager
def _permission(precision: str) -> Iterator[None]:
    matmul = _MKLDNN.matmul
    before = matmul.fp32_precision
    matmul.fp32_precision = precision
    try:
        yield
    finally:
        matmul.fp32_precision = before


@cache
def _onednn_is_accurate() -> bool:
    if not _MKLDNN.is_available() or not hasattr(_MKLDNN, "matmul"):
        return False
    generator = torch.Generator().manual_seed(0)
    left = torch.randn(512, 512, generator=generator)
    right = torch.randn(512, 512, generator=generator)
    exact = left.double() @ right.double()
    with _permission("bf16"):
        error = (left @ right - exact).abs().max() / exact.abs().max()
    return bool(error < 1e-5)  # bfloat16 would be off by 1e-3


@contextmanager
def packed_linears(model: nn.Module) -> Iterator[None]:
    """For the block, lay out the float32 weights of linear layers as oneDNN reads them fastest.

    Decoding reads every weight for each token, and PyTorch's own float32 product (MKL) sorts them anew each
    time; on processors that are not Intel's it also leaves AVX-512 unused. Packed products are 2 to 3 times
    as fast there. The weights themselves are not touched, the packed copy takes as much memory again. Nothing
    happens on other devices. The model's weights must not change within the block.

    Raises:
        RuntimeError: gradients are being recorded, which packed products do not support.
    """
    if torch.is_grad_enabled():
        raise RuntimeError("packed_linears needs torch.no_grad(): packed products have no gradient")
    packed: list[nn.Linear] = []
    try:
        for module in model.modules():
            if type(module) is nn.Linear and _packable(module):
                weight = torch.ops.mkldnn._reorder_linear_weight(module.weight.detach(), _ROWS)
                module.forward = partial(_product, weight, module.bias)  # type: ignore[method-assign]
                packed.append(module)
        yield
    finally:
        for module in packed:
            del module.forward  # the class's own shows again


def _packable(module: nn.Linear) -> bool:
    weight = module.weight
    plain = weight.device.type == "cpu" and weight.dtype == torch.float32 and "forward" not in vars(module)
    return plain and torch.backends.mkldnn.is_available()


def _product(weight: Tensor, bias: Tensor | None, x: Tensor) -> Tensor:
    product: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return product
