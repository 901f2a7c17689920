"""Attention of single queries over a prompt's keys, stored once for all its responses, and over each response's own.

Written for decoding without gradient: G responses read one copy of their prompt's keys and values, and grouped-query heads
are not repeated.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, PreTrainedModel

NAME = "creditlib_shared_prefix"


class UnsupportedAttention(Exception):
    """The model asks its attention function for something that this one does not do."""


@dataclass(frozen=True)
class PrefixKeyValues:
    """Keys and values of N prompts, right padded, and the rows that continue them.

    Rows of one prompt need not be neighbours: a row's place among the N x G queries is `slot_R`, None when the rows are
    sorted by prompt with equally many of each, so that they are in place already.
    """

    keys: tuple[Tensor, ...]  # one (N, H_kv, P, D) a layer
    values: tuple[Tensor, ...]
    bias_RP: Tensor | None  # 0 on a prompt's tokens, -inf on padding; None: no padding
    slot_R: Tensor | None
    slots: int  # N x G

    def scores(self, layer: int, query_RKQD: Tensor) -> Tensor:
        """Scaled queries times the prompts' keys, (R, H_kv, Q, P); Q query heads share a key head."""
        keys_NKPD = self.keys[layer]
        scores_RKQP = self._rows(self._groups(query_RKQD) @ keys_NKPD.transpose(2, 3), query_RKQD.shape)
        return scores_RKQP if self.bias_RP is None else scores_RKQP + self.bias_RP[:, None, None]

    def mix(self, layer: int, probs_RKQP: Tensor) -> Tensor:
        """Values of the prompts weighted by `probs_RKQP`, (R, H_kv, Q, D)."""
        return self._rows(self._groups(probs_RKQP) @ self.values[layer], probs_RKQP.shape)

    def _groups(self, x_RKQX: Tensor) -> Tensor:
        """(R, K, Q, X) -> (N, K, G * Q, X), zero where a prompt has fewer than G rows."""
        rows, heads, queries, width = x_RKQX.shape
        if self.slot_R is not None:
            x_RKQX = x_RKQX.new_zeros(self.slots, heads, queries, width).index_copy_(0, self.slot_R, x_RKQX)
        groups = self.keys[0].shape[0]
        return x_RKQX.view(groups, -1, heads, queries, width).transpose(1, 2).reshape(groups, heads, -1, width)

    def _rows(self, x_NKSX: Tensor, shape: torch.Size) -> Tensor:
        """The inverse of `_groups`."""
        groups, heads, _, width = x_NKSX.shape
        x = x_NKSX.view(groups, heads, -1, shape[2], width).transpose(1, 2).reshape(self.slots, heads, shape[2], width)
        return x if self.slot_R is None else x.index_select(0, self.slot_R)


def shared_prefix_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    shared_prefix: PrefixKeyValues,
    scaling: float | None = None,
    dropout: float = 0.0,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    position_bias: Tensor | None = None,
    sliding_window: int | None = None,
    **unused: object,  # transformers passes on all it has been given (position_ids, use_cache, ...)
) -> tuple[Tensor, None]:
    """Softmax attention of one query a row over [prompt, response so far], in the signature that transformers calls.

    Args:
        query: (R, H, 1, D). `key` and `value`: the response's own, (R, H_kv, t, D).
        shared_prefix: the prompts' keys and values.

    Raises:
        UnsupportedAttention: a window, soft capping, attention sinks or a position bias is asked for.
    """
    asked = {"softcap": softcap, "s_aux": s_aux, "position_bias": position_bias, "sliding_window": sliding_window}
    for name, argument in asked.items():
        if argument is not None:
            raise UnsupportedAttention(name)
    layer = int(module.layer_idx)
    rows, heads, _, width = query.shape
    kv_heads = key.shape[1]
    scale = width**-0.5 if scaling is None else scaling
    query_RKQD = (query * scale).view(rows, kv_heads, heads // kv_heads, width)

    prompt_scores = shared_prefix.scores(layer, query_RKQD)
    own_scores = query_RKQD @ key.transpose(2, 3)
    probs = torch.cat((prompt_scores, own_scores), 3).softmax(3)
    prompt_probs, own_probs = probs.split((prompt_scores.shape[3], own_scores.shape[3]), 3)
    mixed_RKQD = shared_prefix.mix(layer, prompt_probs) + own_probs @ value
    return mixed_RKQD.reshape(rows, 1, heads, width), None


@contextmanager
def shared_prefix_decoding(model: PreTrainedModel) -> Iterator[None]:
    """Let the model's attention layers call `shared_prefix_attention`; its own function is put back at the end."""
    AttentionInterface.register(NAME, shared_prefix_attention)
    config = model.config.get_text_config(decoder=True)
    before = config._attn_implementation
    config._attn_implementation = NAME
    try:
        yield
    finally:
        config._attn_implementation = before
