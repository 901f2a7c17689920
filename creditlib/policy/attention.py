"""Attention of single queries over a prompt stored once for all its responses, and over each response's own
tokens.

Written for decoding without gradient: G responses read one copy of their prompt's keys and values, and a key
head is never repeated for the query heads that share it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface, PreTrainedModel

NAME = "creditlib_shared_prefix"


class UnsupportedAttentionError(Exception):
    """The model wants something of its attention that `shared_prefix_attention` does not do."""


@dataclass(frozen=True)
class PrefixKeyValues:
    """Keys and values of N prompts, and where the R rows that continue them sit.

    Queries are laid out as N x G slots, G being the most rows of any prompt. `slot_R` is the slot of each
    row, None if row r has slot r: rows sorted by prompt, equally many of each.
    """

    keys: tuple[Tensor, ...]  # one (N, H_kv, P, D) a layer, right padded
    values: tuple[Tensor, ...]
    bias_RP: Tensor | None  # 0 on the tokens of the row's prompt, -inf on its padding; None: no padding
    slot_R: Tensor | None
    slots: int

    def scores(self, layer: int, query_RKQD: Tensor) -> Tensor:
        """The queries times their prompt's keys, (R, H_kv, Q, P). Q query heads share a key head."""
        scores_RKQP = self._product(query_RKQD, self.keys[layer].transpose(2, 3))
        return scores_RKQP if self.bias_RP is None else scores_RKQP + self.bias_RP[:, None, None]

    def mix(self, layer: int, probs_RKQP: Tensor) -> Tensor:
        """The prompts' values weighted by `probs_RKQP`, (R, H_kv, Q, D)."""
        return self._product(probs_RKQP, self.values[layer])

    def _product(self, x_RKQX: Tensor, y_NKXY: Tensor) -> Tensor:
        """Each row's `x` times its prompt's `y`, (R, K, Q, Y): one matrix product a prompt and key head."""
        heads, queries = x_RKQX.shape[1:3]
        x_SKQX = x_RKQX
        if self.slot_R is not None:
            x_SKQX = x_RKQX.new_zeros(self.slots, *x_RKQX.shape[1:]).index_copy_(0, self.slot_R, x_RKQX)
        x_NGKQX = x_SKQX.unflatten(0, (y_NKXY.shape[0], -1))
        product = x_NGKQX.transpose(1, 2).flatten(2, 3) @ y_NKXY
        product_SKQY: Tensor = (
            product.unflatten(2, (-1, queries)).transpose(1, 2).reshape(self.slots, heads, queries, -1)
        )
        return product_SKQY if self.slot_R is None else product_SKQY.index_select(0, self.slot_R)


def shared_prefix_attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    shared_prefix: PrefixKeyValues | None = None,
    scaling: float | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    position_bias: Tensor | None = None,
    sliding_window: int | None = None,
    **unused: object,  # transformers hands on whatever its caller was given (position_ids, use_cache, ...)
) -> tuple[Tensor, None]:
    """Softmax attention of one query a row over [prompt, response so far], with the signature that
    transformers calls.

    Args:
        module: the attention layer.
        query: (R, H, 1, D).
        key: of the response's own tokens, (R, H_kv, t, D).
        value: likewise.
        attention_mask: unused, no row has padding among its own tokens.
        shared_prefix: the prompts; reaches this function as a keyword argument of the model's forward.

    Returns:
        The heads' outputs, (R, 1, H, D).

    Raises:
        UnsupportedAttentionError: a window, capped scores, sinks or a position bias are asked for, or the
            model does not hand on keyword arguments.
    """
    deviations = (softcap, s_aux, position_bias, sliding_window)
    if shared_prefix is None or any(deviation is not None for deviation in deviations):
        raise UnsupportedAttentionError(type(module).__name__)
    rows, heads, _, width = query.shape
    kv_heads = key.shape[1]
    scale = width**-0.5 if scaling is None else scaling
    query_RKQD = (query * scale).view(rows, kv_heads, heads // kv_heads, width)

    prompt_scores = shared_prefix.scores(module.layer_idx, query_RKQD)
    own_scores = query_RKQD @ key.transpose(2, 3)
    probs = torch.cat((prompt_scores, own_scores), 3).softmax(3)
    prompt_length = prompt_scores.shape[3]
    mixed = shared_prefix.mix(module.layer_idx, probs[..., :prompt_length])
    mixed = mixed + probs[..., prompt_length:] @ value
    return mixed.reshape(rows, 1, heads, -1), None


@contextmanager
def shared_prefix_decoding(model: PreTrainedModel) -> Iterator[None]:
    """Let the model's layers call `shared_prefix_attention`; their own attention is back after the block."""
    with attending(model, NAME, shared_prefix_attention):
        yield


@contextmanager
def attending(
    model: PreTrainedModel, name: str, attention: Callable[..., tuple[Tensor, None]]
) -> Iterator[None]:
    """Let the model's layers call `attention`, known to transformers as `name`, for the block."""
    AttentionInterface.register(name, attention)
    config = model.config.get_text_config(decoder=True)
    before = config._attn_implementation
    config._attn_implementation = name
    try:
        yield
    finally:
        config._attn_implementation = before
