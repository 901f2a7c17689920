"""Faster float32 matrix products on CPUs, at float32 accuracy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch


@contextmanager
def fast_float32_matmul() -> Iterator[None]:
    """Let oneDNN instead of MKL multiply float32 matrices on the CPU, forward and backward, if that loses no accuracy.

    MKL takes its AVX2 kernels on processors that are not Intel's; oneDNN takes AVX-512 on all, which is twice as fast there.
    PyTorch has no setting for the library alone: it goes to oneDNN when lower precision is *permitted*. oneDNN makes use of that
    permission only on processors with matrix units for bfloat16 (AMX), so one product is checked first, and where it is
    not accurate nothing changes. Other devices and other types of numbers are not concerned.
    """
    if not _onednn_is_accurate():
        yield
        return
    with _permitted():
        yield


@contextmanager
def _permitted() -> Iterator[None]:
    matmul = torch.backends.mkldnn.matmul
    before = matmul.fp32_precision
    matmul.fp32_precision = "bf16"
    try:
        yield
    finally:
        matmul.fp32_precision = before


@cache
def _onednn_is_accurate() -> bool:
    if not torch.backends.mkldnn.is_available() or not hasattr(torch.backends.mkldnn, "matmul"):
        return False
    generator = torch.Generator().manual_seed(0)
    left = torch.randn(512, 512, generator=generator)
    right = torch.randn(512, 512, generator=generator)
    exact = left.double() @ right.double()
    with _permitted():
        error = (left @ right - exact).abs().max() / exact.abs().max()
    return bool(error < 1e-5)  # bfloat16 is off by 1e-3
