"""Attention within a prefix tree, block by block: no mask, and no product that a mask would throw away.

In a packed tree (`creditlib.policy.tree`) a segment's descendants follow it directly. So the keys of one
segment are read by one run of queries: its own tokens, causally, and all that stands below it. One call of
causal attention does both, since queries behind the last key see every key. The blocks' results are merged by
their log-sum-exp; the backward pass of a block, given the merged result, is its exact share of the gradient.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from creditlib.policy.attention import UnsupportedAttentionError, attending
from creditlib.policy.tree import Packed, PrefixTree

NAME = "creditlib_tree"
SMALL = 1 << 16  # most queries times keys of a small block, whose scores stay in the cache
FEW = 64  # a segment of at most so many keys is read in small blocks, however many its queries


@dataclass(frozen=True)
class _Inner:
    """A segment with descendants, or a part of them: queries `first:last` read keys `start:end`."""

    start: int
    end: int
    first: int
    last: int

    @property
    def queries(self) -> slice:
        return slice(self.first, self.last)

    @property
    def keys(self) -> slice:
        return slice(self.start, self.end)

    @property
    def offset(self) -> int:
        """Of the first query from the first key."""
        return self.first - self.start

    def take_queries(self, x_LHD: Tensor) -> Tensor:
        """`x` of the queries, (1, H, W, D)."""
        return x_LHD[self.queries].transpose(0, 1)[None]

    def take_keys(self, x_LHD: Tensor) -> Tensor:
        """`x` of the keys, likewise."""
        return x_LHD[self.keys].transpose(0, 1)[None]

    def rows(self, x_1HWD: Tensor) -> Tensor:
        """What was taken, (W, H, D)."""
        return x_1HWD[0].transpose(0, 1)


@dataclass(frozen=True)
class _Leaves:
    """Segments without descendants and of similar length: N of them read themselves as one batch.

    They are right padded to W, the longest's number of tokens; no query that counts comes after padding.
    Padding is zero wherever it is read, so it has no gradient either.
    """

    index_NW: Tensor
    real_NW: Tensor
    queries: Tensor  # index_NW[real_NW]
    padded: bool
    offset: int = 0

    @property
    def keys(self) -> Tensor:
        return self.queries

    def take_queries(self, x_LHD: Tensor) -> Tensor:
        """`x` of all tokens, (N, H, W, D)."""
        x_NWHD = x_LHD[self.index_NW]
        if self.padded:
            x_NWHD.masked_fill_(~self.real_NW[..., None, None], 0)
        return x_NWHD.transpose(1, 2)

    take_keys = take_queries

    def rows(self, x_NHWD: Tensor) -> Tensor:
        """What was taken, (M, H, D)."""
        return x_NHWD.transpose(1, 2)[self.real_NW]


@dataclass(frozen=True)
class TreeBlocks:
    """All blocks of a packed tree; every token is a query of its own segment's block, at least."""

    blocks: tuple[_Inner | _Leaves, ...]

    @staticmethod
    def of(tree: PrefixTree, device: torch.device) -> TreeBlocks:
        """The blocks of `tree`, their indices on `device`."""
        segments = tree.segments()
        last = [segment.end for segment in segments]
        for s in reversed(range(len(segments))):
            if segments[s].parent >= 0:
                last[segments[s].parent] = max(last[segments[s].parent], last[s])
        inner: list[_Inner] = []
        leaves: dict[int, list[tuple[int, int]]] = {}
        for segment, end in zip(segments, last, strict=True):
            if end > segment.end:
                inner += _cut(segment.start, segment.end, end)
            else:  # lengths of the same number of bits: less than half of a batch is padding
                length = segment.end - segment.start
                leaves.setdefault(length.bit_length(), []).append((segment.start, segment.end))
        batches: list[_Leaves] = []
        for bits, runs in leaves.items():
            some = max(1, SMALL >> 2 * bits)  # a leaf has less than 2^bits queries, and as many keys
            batches += [_batch(runs[n : n + some], device) for n in range(0, len(runs), some)]
        return TreeBlocks((*inner, *batches))


def _cut(start: int, end: int, last: int) -> list[_Inner]:
    """Queries `start:last` and keys `start:end` in one block, or in small ones where keys are few."""
    size = SMALL // (end - start) if end - start <= FEW else last - start
    return [_Inner(start, end, first, min(first + size, last)) for first in range(start, last, size)]


def _batch(runs: Sequence[tuple[int, int]], device: torch.device) -> _Leaves:
    start_N, end_N = torch.tensor(runs, device=device).unbind(1)
    index_NW = start_N[:, None] + torch.arange(int((end_N - start_N).max()), device=device)
    real_NW = index_NW < end_N[:, None]
    return _Leaves(index_NW.where(real_NW, 0), real_NW, index_NW[real_NW], not bool(real_NW.all()))


def pack_blocks(tree: PrefixTree, device: torch.device) -> Packed:
    """The tree as one row, to be run within `tree_attending`."""
    ids, positions = (torch.from_numpy(array)[None].to(device) for array in (tree.ids_L, tree.depth_L))
    return Packed(ids, positions, None, (0,), TreeBlocks.of(tree, device))


def tree_attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    tree_blocks: TreeBlocks | None = None,
    scaling: float | None = None,
    dropout: float = 0.0,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    position_bias: Tensor | None = None,
    sliding_window: int | None = None,
    **unused: object,  # transformers hands on whatever its caller was given (position_ids, use_cache, ...)
) -> tuple[Tensor, None]:
    """Softmax attention of every token of a packed tree to itself and its ancestors, with the signature that
    transformers calls.

    Args:
        module: the attention layer.
        query: (1, H, L, D).
        key: (1, H_kv, L, D).
        value: likewise.
        attention_mask: unused, the blocks say it all.
        tree_blocks: of the tree; reaches this function as a keyword argument of the model's forward.

    Returns:
        The heads' outputs, (1, L, H, D).

    Raises:
        UnsupportedAttentionError: dropout, a window, capped scores, sinks or a position bias are asked for,
            or the model does not hand on keyword arguments.
    """
    deviations = (softcap, s_aux, position_bias, sliding_window, dropout or None)
    if tree_blocks is None or any(deviation is not None for deviation in deviations):
        raise UnsupportedAttentionError(type(module).__name__)
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    query_LHD, key_LHD, value_LHD = (x[0].transpose(0, 1) for x in (query, key, value))
    out_LHD: Tensor = _TreeAttention.apply(  # type: ignore[no-untyped-call]
        query_LHD, key_LHD, value_LHD, tree_blocks, scale
    )
    return out_LHD[None], None


@contextmanager
def tree_attending(model: PreTrainedModel) -> Iterator[None]:
    """Let the model's layers call `tree_attention`; their own attention is back after the block."""
    with attending(model, NAME, tree_attention):
        yield


class _TreeAttention(torch.autograd.Function):
    """(L, H, D) queries and (L, H_kv, D) keys and values to (L, H, D) outputs."""

    @staticmethod
    def forward(
        ctx: Any, query_LHD: Tensor, key_LHD: Tensor, value_LHD: Tensor, tree: TreeBlocks, scale: float
    ) -> Tensor:
        wide = torch.promote_types(query_LHD.dtype, torch.float32)  # the blocks are merged in it
        keys_LHD, values_LHD = (_for_each_query_head(x, query_LHD) for x in (key_LHD, value_LHD))
        out_LHD = torch.zeros_like(query_LHD, dtype=wide, memory_format=torch.contiguous_format)
        lse_LH1 = out_LHD.new_full((*query_LHD.shape[:2], 1), -torch.inf)
        for block in tree.blocks:
            part, lse = _attend(
                block.take_queries(query_LHD),
                block.take_keys(keys_LHD),
                block.take_keys(values_LHD),
                block.offset,
                scale,
            )
            lse_MH1 = block.rows(lse[..., None])
            merged_MH1 = torch.logaddexp(lse_LH1[block.queries], lse_MH1)
            share_MH1 = lse_MH1.sub_(merged_MH1).exp_()
            out_MHD = out_LHD[block.queries].lerp_(block.rows(part).to(wide), share_MH1)
            if isinstance(block, _Leaves):  # of an inner segment it is a view
                out_LHD[block.queries] = out_MHD
            lse_LH1[block.queries] = merged_MH1
        out_LHD = out_LHD.to(query_LHD.dtype)
        ctx.save_for_backward(query_LHD, key_LHD, value_LHD, out_LHD, lse_LH1)
        ctx.tree, ctx.scale = tree, scale
        return out_LHD

    @staticmethod
    def backward(ctx: Any, grad_LHD: Tensor) -> tuple[Tensor | None, ...]:
        query_LHD, key_LHD, value_LHD, out_LHD, lse_LH1 = ctx.saved_tensors
        wide = lse_LH1.dtype
        keys_LHD, values_LHD = (_for_each_query_head(x, query_LHD) for x in (key_LHD, value_LHD))
        d_query_LHD, d_key_LHD, d_value_LHD = (
            torch.zeros_like(x, dtype=wide) for x in (query_LHD, key_LHD, value_LHD)
        )
        for block in ctx.tree.blocks:
            d_query, d_key, d_value = _attend_backward(
                block.take_queries(grad_LHD),
                block.take_queries(query_LHD),
                block.take_keys(keys_LHD),
                block.take_keys(values_LHD),
                block.take_queries(out_LHD),
                block.take_queries(lse_LH1)[..., 0],
                block.offset,
                ctx.scale,
            )
            d_query_LHD[block.queries] += block.rows(d_query)
            for whole_LHD, part in ((d_key_LHD, d_key), (d_value_LHD, d_value)):
                # The query heads that share a key are summed.
                part_MHD = block.rows(part)
                whole_LHD[block.keys] += part_MHD.unflatten(1, (whole_LHD.shape[1], -1)).sum(2, dtype=wide)
        dtype = query_LHD.dtype
        return d_query_LHD.to(dtype), d_key_LHD.to(dtype), d_value_LHD.to(dtype), None, None


def _attend(q: Tensor, k: Tensor, v: Tensor, offset: int, scale: float) -> tuple[Tensor, Tensor]:
    """Causal attention of (N, H, Q, D) queries, the first of which stands `offset` behind the first key;
    outputs and their log-sum-exp (N, H, Q). Queries behind the last key see all keys.
    """
    if _is_large(q, k):
        assert offset == 0  # what the kernel takes for granted; only small blocks are parts of a segment
        large: tuple[Tensor, Tensor] = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
            q, k, v, 0.0, True, scale=scale
        )
        return large
    scores = _scores(q, k, offset, scale)
    most = scores.amax(-1, keepdim=True)
    probs = scores.sub_(most).exp_()
    total = probs.sum(-1, keepdim=True)
    return (probs.to(v.dtype) @ v) / total, (most + total.log())[..., 0]


def _attend_backward(
    grad: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, offset: int, scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of `q`, `k` and `v`, where `out` and `lse` may be about more keys than these."""
    if _is_large(q, k):
        assert offset == 0
        large: tuple[Tensor, Tensor, Tensor] = (
            torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(
                grad, q, k, v, out, lse, 0.0, True, scale=scale
            )
        )
        return large
    probs = _scores(q, k, offset, scale).sub_(lse[..., None]).exp_()
    change = (grad @ v.transpose(2, 3)).to(probs.dtype)
    change = change.sub_((grad * out).sum(-1, keepdim=True)).mul_(probs).mul_(scale).to(q.dtype)
    return change @ k, change.transpose(2, 3) @ q, probs.to(grad.dtype).transpose(2, 3) @ grad


def _is_large(q: Tensor, k: Tensor) -> bool:
    """Flash attention takes time to begin: on small blocks plain products are up to three times as fast."""
    return q.shape[2] * k.shape[2] > SMALL


def _scores(q: Tensor, k: Tensor, offset: int, scale: float) -> Tensor:
    """Scaled scores in float32 at least, -inf after the query."""
    scores = (q @ k.transpose(2, 3)).to(torch.promote_types(q.dtype, torch.float32)).mul_(scale)
    queries, keys = min(q.shape[2], max(0, k.shape[2] - offset)), k.shape[2]
    after = torch.ones(queries, keys, dtype=torch.bool, device=q.device).triu(offset + 1)
    scores[:, :, :queries].masked_fill_(after, -torch.inf)
    return scores


def _for_each_query_head(x_LHD: Tensor, query_LHD: Tensor) -> Tensor:
    """Keys or values, repeated for the query heads that share them."""
    repeats = query_LHD.shape[1] // x_LHD.shape[1]
    return x_LHD if repeats == 1 else x_LHD.repeat_interleave(repeats, 1)
