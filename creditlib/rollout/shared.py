"""Prompts whose keys and values are stored once and read by all their responses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor
from transformers import Cache, DynamicCache, PreTrainedModel
from transformers.cache_utils import CacheLayerMixin, DynamicLayer

from creditlib.policy.attention import PrefixKeyValues, UnsupportedAttention, shared_prefix_decoding
from creditlib.rollout.prefix import PAD, RepeatedPrefix


class SharedPrefix:
    """Prompts read once, without left padding: a response keeps only its own keys and values and attends to its prompt's.

    Same numbers as `RepeatedPrefix`, for models that `supports_shared_prefix` admits.
    """

    def __init__(self, model: PreTrainedModel, prompts: Sequence[Sequence[int]]) -> None:
        self._model = model
        self._lengths_N = torch.tensor([len(prompt) for prompt in prompts], device=model.device)
        longest = int(self._lengths_N.max())
        logits: list[Tensor | None] = [None] * len(prompts)
        self._keys: list[Tensor] = []
        self._values: list[Tensor] = []
        for bucket in _similar_lengths(prompts):
            cache = DynamicCache(config=model.config)
            for index, row_V in zip(bucket, _read(model, [prompts[n] for n in bucket], cache), strict=True):
                logits[index] = row_V
            if len(bucket) == len(prompts):
                self._keys = [layer.keys for layer in cache.layers]
                self._values = [layer.values for layer in cache.layers]
                break
            for store, name in ((self._keys, "keys"), (self._values, "values")):
                for depth, layer in enumerate(cache.layers):
                    states_NKPD = getattr(layer, name)
                    if depth == len(store):
                        _, heads, _, width = states_NKPD.shape
                        store.append(states_NKPD.new_zeros(len(prompts), heads, longest, width))
                    store[depth][bucket, :, : states_NKPD.shape[2]] = states_NKPD
        self.logits_NV = torch.stack([row_V for row_V in logits if row_V is not None])

    def rows(self, group_R: Tensor, capacity: int) -> SharedRows:
        return SharedRows(self._model, self._keys, self._values, self._lengths_N, group_R, capacity)


class SharedRows:
    """The rows of a `SharedPrefix`."""

    def __init__(
        self,
        model: PreTrainedModel,
        keys: Sequence[Tensor],
        values: Sequence[Tensor],
        lengths_N: Tensor,
        group_R: Tensor,
        capacity: int,
    ) -> None:
        self._model = model
        self._keys, self._values = tuple(keys), tuple(values)
        self._lengths_N = lengths_N
        self._own = [_OwnLayer(capacity) for _ in keys]
        self._cache = Cache(layers=self._own)
        self._past = 0
        self._place(group_R)

    def step(self, tokens_R: Tensor) -> Tensor:
        with shared_prefix_decoding(self._model):
            output = self._model(
                input_ids=tokens_R[:, None],
                position_ids=(self._lengths_N[self._group_R] + self._past)[:, None],
                past_key_values=self._cache,
                use_cache=True,
                logits_to_keep=1,
                shared_prefix=self._prefix,
            )
        self._past += 1
        logits_RV: Tensor = output.logits[:, -1]
        return logits_RV

    def keep(self, index_R: Tensor) -> None:
        for layer in self._own:
            layer.keep(index_R)
        self._place(self._group_R[index_R])

    def _place(self, group_R: Tensor) -> None:
        """Lay out the rows among the prompts that still have any."""
        alive_N, group_R, counts_N = group_R.unique(return_inverse=True, return_counts=True)
        if len(alive_N) < len(self._lengths_N):
            self._lengths_N = self._lengths_N[alive_N]
            longest = int(self._lengths_N.max())
            self._keys = tuple(keys[alive_N, :, :longest] for keys in self._keys)
            self._values = tuple(values[alive_N, :, :longest] for values in self._values)
        self._group_R = group_R

        order_R = group_R.argsort(stable=True)
        place_R = torch.arange(len(group_R), device=group_R.device)
        slots_a_group = int(counts_N.max())
        slot_R = torch.empty_like(place_R)
        slot_R[order_R] = group_R[order_R] * slots_a_group + place_R - (counts_N.cumsum(0) - counts_N)[group_R[order_R]]
        slots = slots_a_group * len(alive_N)
        in_place = slots == len(group_R) and bool((slot_R == place_R).all())

        bias_RP = None
        if bool((self._lengths_N != self._lengths_N[0]).any()):
            column_P = torch.arange(self._keys[0].shape[2], device=group_R.device)
            padding_NP = column_P >= self._lengths_N[:, None]
            bias_RP = self._keys[0].new_zeros(padding_NP.shape).masked_fill_(padding_NP, -torch.inf)[group_R]
        self._prefix = PrefixKeyValues(self._keys, self._values, bias_RP, None if in_place else slot_R, slots)


class _OwnLayer(CacheLayerMixin):  # type: ignore[misc]
    """One layer's keys and values of the responses, written in place into room for `capacity` tokens."""

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self._capacity = capacity
        self._length = 0

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        rows, heads, _, width = key_states.shape
        self.keys = key_states.new_empty(rows, heads, self._capacity, width)
        self.values = value_states.new_empty(rows, heads, self._capacity, value_states.shape[3])
        self.is_initialized = True

    def update(self, key_states: Tensor, value_states: Tensor, *unused: object) -> tuple[Tensor, Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        end = self._length + key_states.shape[2]
        self.keys[:, :, self._length : end] = key_states
        self.values[:, :, self._length : end] = value_states
        self._length = end
        return self.keys[:, :, :end], self.values[:, :, :end]

    def keep(self, index_R: Tensor) -> None:
        """Go on with rows `index_R`. Only rows that change place are copied."""
        if not self.is_initialized:
            return
        moved_R = (index_R != torch.arange(len(index_R), device=index_R.device)).nonzero()[:, 0]
        for buffer in (self.keys, self.values):
            buffer[moved_R, :, : self._length] = buffer[index_R[moved_R], :, : self._length]
        self.keys, self.values = self.keys[: len(index_R)], self.values[: len(index_R)]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self._length + query_length, 0

    def get_seq_length(self) -> int:
        return self._length

    def get_max_length(self) -> int:
        return self._capacity


def _similar_lengths(prompts: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Indices of prompts that are worth padding to one length: the longest is at most an eighth, or 8 tokens, longer."""
    bucket: list[int] = []
    for index in sorted(range(len(prompts)), key=lambda n: len(prompts[n])):
        if bucket and len(prompts[index]) > len(prompts[bucket[0]]) * 9 // 8 + 8:
            yield bucket
            bucket = []
        bucket.append(index)
    yield bucket


def _read(model: PreTrainedModel, prompts: Sequence[Sequence[int]], cache: Cache) -> Tensor:
    """Fill `cache` with the prompts, right padded: causal attention needs no mask then. Logits after each, (N, V)."""
    longest = max(map(len, prompts))
    ids = [[*prompt, *[PAD] * (longest - len(prompt))] for prompt in prompts]
    lasts = sorted({len(prompt) - 1 for prompt in prompts})
    output = model(
        input_ids=torch.tensor(ids, device=model.device),
        past_key_values=cache,
        use_cache=True,
        logits_to_keep=torch.tensor(lasts, device=model.device),
    )
    columns = [lasts.index(len(prompt) - 1) for prompt in prompts]
    logits_NV: Tensor = output.logits[torch.arange(len(prompts)), columns]
    return logits_NV


def supports_shared_prefix(model: PreTrainedModel) -> bool:
    """Whether `SharedPrefix` gives this model's numbers. False for sliding windows, recurrent layers, soft capping, sinks
    and whatever else deviates: two prompts of a few tokens are continued both ways and must agree."""
    layers = DynamicCache(config=model.config).layers
    if not model._supports_attention_backend or any(type(layer) is not DynamicLayer for layer in layers):
        return False
    tokens = torch.arange(5, device=model.device) % model.config.get_text_config(decoder=True).vocab_size
    prompts = [tokens[:3].tolist(), tokens.tolist()]
    group_R = torch.tensor([0, 1, 1], device=model.device)
    logits: list[Tensor] = []
    for prefix_type in (RepeatedPrefix, SharedPrefix):
        prefix = prefix_type(model, prompts)
        rows = prefix.rows(group_R, 2)
        try:
            logits.append(torch.stack([rows.step(tokens[:3]), rows.step(tokens[2:])]).float())
        except UnsupportedAttention:
            return False
    # A few hundred roundings: far above what two orders of summation differ by, far below what a missing prompt does.
    tolerance = 300 * torch.finfo(model.dtype).eps * float(logits[0].abs().max())
    return bool((logits[0] - logits[1]).abs().max() <= tolerance)
