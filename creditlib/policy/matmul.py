"""Faster float32 matrix products on CPUs, at float32 accuracy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import Any

import torch

_MKLDNN: Any = torch.backends.mkldnn


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
