"""Prompts whose keys and values are stored once and read by all their responses."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import Cache, DynamicCache, PreTrainedModel
from transformers.cache_utils import CacheLayerMixin, DynamicLayer

from creditlib.policy.attention import PrefixKeyValues, UnsupportedAttentionError, shared_prefix_decoding
from creditlib.rollout.prefix import PAD, RepeatedPrefix

READ_TOKENS = 8192  # of prompts in one forward pass, whose activations are gone before the next


class SharedPrefix:
    """Prompts read once. A response stores its own keys and values only, and attends to its prompt's where
    they are.

    The numbers are `RepeatedPrefix`'s, for models that `supports_shared_prefix` admits.
    """

    def __init__(self, model: PreTrainedModel, prompts: Sequence[Sequence[int]]) -> None:
        self._model = model
        self._lengths_N = torch.tensor([len(prompt) for prompt in prompts], device=model.device)
        order: list[int] = []
        logits: list[Tensor] = []
        caches: list[list[Any]] = []
        for bucket in _similar_lengths(prompts):
            cache = DynamicCache(config=model.config)
            logits.append(_read(model, [prompts[n] for n in bucket], cache))
            caches.append(cache.layers)
            order += bucket
        # The buckets hold the prompts in another order than the caller.
        place_N = torch.tensor(order, device=model.device).argsort()
        self.logits_NV = torch.cat(logits)[place_N]
        layers = list(zip(*caches, strict=True))
        self._keys = tuple(_stack([layer.keys for layer in buckets], place_N) for buckets in layers)
        self._values = tuple(_stack([layer.values for layer in buckets], place_N) for buckets in layers)

    def rows(self, group_R: Tensor, capacity: int) -> SharedRows:
        return SharedRows(self._model, self._keys, self._values, self._lengths_N, group_R, capacity)


class SharedRows:
    """The rows of a `SharedPrefix`."""

    _group_R: Tensor  # index of each row's prompt among those still in use
    _positions_R: Tensor  # where each row's next token stands
    _prefix: PrefixKeyValues

    def __init__(
        self,
        model: PreTrainedModel,
        keys: tuple[Tensor, ...],
        values: tuple[Tensor, ...],
        lengths_N: Tensor,
        group_R: Tensor,
        capacity: int,
    ) -> None:
        self._model = model
        self._keys, self._values, self._lengths_N = keys, values, lengths_N
        self._own = [_OwnLayer(capacity) for _ in keys]
        self._cache = Cache(layers=[*self._own])
        self._arrange(group_R)

    def step(self, tokens_R: Tensor) -> Tensor:
        with shared_prefix_decoding(self._model):
            output = self._model(
                input_ids=tokens_R[:, None],
                position_ids=self._positions_R[:, None],
                past_key_values=self._cache,
                use_cache=True,
                logits_to_keep=1,
                shared_prefix=self._prefix,
            )
        self._positions_R = self._positions_R + 1
        logits_RV: Tensor = output.logits[:, -1]
        return logits_RV

    def keep(self, index_R: Tensor) -> None:
        for layer in self._own:
            layer.keep(index_R)
        self._arrange(self._group_R[index_R])

    def _arrange(self, group_R: Tensor) -> None:
        """Lay out the rows, leaving out prompts that none of them continues."""
        alive_N, self._group_R, counts_N = torch.unique(group_R, return_inverse=True, return_counts=True)
        if len(alive_N) < len(self._lengths_N):
            self._lengths_N = self._lengths_N[alive_N]
            longest = int(self._lengths_N.max())
            self._keys = tuple(keys[alive_N, :, :longest] for keys in self._keys)
            self._values = tuple(values[alive_N, :, :longest] for values in self._values)
        self._positions_R = self._lengths_N[self._group_R] + self._own[0].get_seq_length()

        # Slot of the i-th row of prompt n: n * G + i.
        row_R = torch.arange(len(group_R), device=group_R.device)
        by_group_R = self._group_R.argsort(stable=True)
        first_N = counts_N.cumsum(0) - counts_N
        rank_R = torch.empty_like(row_R)
        rank_R[by_group_R] = row_R - first_N[self._group_R[by_group_R]]
        rows_a_prompt = int(counts_N.max())
        slot_R = self._group_R * rows_a_prompt + rank_R
        slots = rows_a_prompt * len(alive_N)
        in_place = slots == len(row_R) and bool((slot_R == row_R).all())

        column_P = torch.arange(self._keys[0].shape[2], device=group_R.device)
        padding_NP = column_P >= self._lengths_N[:, None]
        bias_NP = self._keys[0].new_zeros(padding_NP.shape).masked_fill_(padding_NP, -torch.inf)
        bias_RP = bias_NP[self._group_R] if bool(padding_NP.any()) else None
        self._prefix = PrefixKeyValues(self._keys, self._values, bias_RP, None if in_place else slot_R, slots)


class _OwnLayer(CacheLayerMixin):
    """One layer's keys and values of the responses, written in place into room for `capacity` tokens."""

    def __init__(self, capacity: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._capacity = capacity
        self._length = 0
        self._buffers: tuple[Tensor, ...] = ()

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        self._buffers = tuple(
            states.new_empty(*states.shape[:2], self._capacity, states.shape[3])
            for states in (key_states, value_states)
        )
        self.is_initialized = True

    def update(self, key_states: Tensor, value_states: Tensor, *unused: object) -> tuple[Tensor, Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        start, self._length = self._length, self._length + key_states.shape[2]
        keys, values = (buffer[:, :, : self._length] for buffer in self._buffers)
        keys[:, :, start:] = key_states
        values[:, :, start:] = value_states
        return keys, values

    def keep(self, index_R: Tensor) -> None:
        """Go on with the rows `index_R`. Only rows that change their place are copied."""
        moved_R = (index_R != torch.arange(len(index_R), device=index_R.device)).nonzero()[:, 0]
        for buffer in self._buffers:
            buffer[moved_R, :, : self._length] = buffer[index_R[moved_R], :, : self._length]
        self._buffers = tuple(buffer[: len(index_R)] for buffer in self._buffers)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self._length + query_length, 0

    def get_seq_length(self) -> int:
        return self._length

    def get_max_length(self) -> int:
        return self._capacity


def _similar_lengths(prompts: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Indices of prompts worth padding to one length (at most 8 tokens and an eighth longer), in parts that
    one forward pass can take.
    """
    bucket: list[int] = []
    for index in sorted(range(len(prompts)), key=lambda n: len(prompts[n])):
        length = len(prompts[index])
        longer = bucket and length > len(prompts[bucket[0]]) * 9 // 8 + 8
        if longer or (bucket and (len(bucket) + 1) * length > READ_TOKENS):
            yield bucket
            bucket = []
        bucket.append(index)
    yield bucket


def _read(model: PreTrainedModel, prompts: Sequence[Sequence[int]], cache: Cache) -> Tensor:
    """Fill `cache` with the prompts; logits after each. Padded on the right they need no mask."""
    longest = max(map(len, prompts))
    ids = [[*prompt, *[PAD] * (longest - len(prompt))] for prompt in prompts]
    lasts = [len(prompt) - 1 for prompt in prompts]

    def only_last(head: nn.Module, inputs: tuple[Tensor]) -> Tensor:
        """Spare the head all but each prompt's last token; `logits_to_keep` would be the same for all."""
        return inputs[0][range(len(lasts)), lasts, None]

    hook = model.get_output_embeddings().register_forward_pre_hook(only_last)
    try:
        output = model(
            input_ids=torch.tensor(ids, device=model.device), past_key_values=cache, use_cache=True
        )
    finally:
        hook.remove()
    logits_NV: Tensor = output.logits[:, 0]
    return logits_NV


def _stack(states: Sequence[Tensor], place_N: Tensor) -> Tensor:
    """Join (n, H, p, D) pieces of different lengths, padded on the right, with the prompts at `place_N`."""
    if len(states) == 1 and bool((place_N == torch.arange(len(place_N), device=place_N.device)).all()):
        return states[0]
    longest = max(piece.shape[2] for piece in states)
    padded = [torch.nn.functional.pad(piece, (0, 0, 0, longest - piece.shape[2])) for piece in states]
    return torch.cat(padded)[place_N]


@torch.no_grad()
def supports_shared_prefix(model: PreTrainedModel) -> bool:
    """Whether `SharedPrefix` gives this model's numbers.

    Sliding windows and recurrent layers are known by their caches; whatever else deviates shows when two
    prompts of a few tokens are continued both ways.
    """
    accepted = inspect.signature(model.forward).parameters
    if any(name not in accepted for name in ("position_ids", "logits_to_keep")):
        return False
    if any(type(layer) is not DynamicLayer for layer in DynamicCache(config=model.config).layers):
        return False
    tokens = torch.arange(5, device=model.device) % model.config.get_text_config(decoder=True).vocab_size
    prompts = [tokens[:3].tolist(), tokens.tolist()]
    group_R = torch.tensor([0, 1, 1], device=model.device)
    logits: list[Tensor] = []
    for prefix_type in (RepeatedPrefix, SharedPrefix):
        rows = prefix_type(model, prompts).rows(group_R, 2)
        try:
            logits.append(torch.stack([rows.step(tokens[:3]), rows.step(tokens[2:])]).double())
        except UnsupportedAttentionError:
            return False
    tolerance = math.sqrt(torch.finfo(model.dtype).eps) * logits[0].abs().max()
    return bool((logits[0] - logits[1]).abs().max() <= tolerance)
