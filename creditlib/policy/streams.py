"""Random numbers that belong to a response: a function of (seed, step, prompt id, sample index, position)
alone.

The generator is SplitMix64 (Steele, Lea and Flood, OOPSLA 2014). Its n-th output is a hash of ``key + n *
gamma``, so any part of a stream can be had without the part before it: rows can be dropped, split over
batches or processes and moved to another device with no generator's state to carry along.
"""

from __future__ import annotations

import hashlib

import torch
from torch import Tensor


def _signed(bits: int) -> int:
    """The int64 with these 64 bits; torch's int64 arithmetic wraps around as unsigned arithmetic does."""
    return bits - (1 << 64) if bits >= 1 << 63 else bits


_GAMMA = _signed(0x9E3779B97F4A7C15)
_MIX_1 = _signed(0xBF58476D1CE4E5B9)
_MIX_2 = _signed(0x94D049BB133111EB)


def stream_key(seed: int, step: int, prompt_id: str, sample: int) -> int:
    """The key of one response's stream, a signed 64-bit integer, the same in every process."""
    name = f"{seed} {step} {sample} {prompt_id}"
    digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def splitmix64(keys_R: Tensor, start: int, count: int) -> Tensor:
    """Outputs `start` to `start + count` of each stream: (R, count) int64 holding unsigned bits."""
    counter = torch.arange(start + 1, start + count + 1, device=keys_R.device)
    x = keys_R[:, None] + counter * _GAMMA
    x = (x ^ _shift_right(x, 30)) * _MIX_1
    x = (x ^ _shift_right(x, 27)) * _MIX_2
    return x ^ _shift_right(x, 31)


def exponentials(keys_R: Tensor, start: int, count: int) -> Tensor:
    """The same outputs as Exp(1) variables, (R, count) float64, neither 0 nor infinite."""
    uniform = (_shift_right(splitmix64(keys_R, start, count), 12).double() + 0.5) * 2.0**-52
    return uniform.log_().neg_()


def _shift_right(x: Tensor, bits: int) -> Tensor:
    return (x >> bits) & ((1 << (64 - bits)) - 1)  # torch's shift keeps the sign
