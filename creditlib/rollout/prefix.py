"""Prompts prefilled once, and the rows that continue them token by token."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor
from transformers import Cache, DynamicCache, PreTrainedModel

PAD = 0  # any token: padding is told by masks and lengths, never by its id


class Rows(Protocol):
    """Responses in the making, one a row."""

    def step(self, tokens_R: Tensor) -> Tensor:
        """Append one token to each row; logits of the next, (R, V)."""
        ...

    def keep(self, index_R: Tensor) -> None:
        """Go on with the rows `index_R` only, in that order."""
        ...


class Prefix(Protocol):
    """N prompts that the model has read."""

    @property
    def logits_NV(self) -> Tensor:
        """Logits of the token after each prompt."""
        ...

    def rows(self, group_R: Tensor, capacity: int) -> Rows:
        """Start one row a response; row r continues prompt `group_R[r]` by at most `capacity` tokens."""
        ...


class RepeatedPrefix:
    """Works for any causal LM: the prompts, left padded, in transformers' own cache, which is repeated for every response.

    Args:
        model: a causal LM in eval mode.
        prompts: N token sequences.
    """

    def __init__(self, model: PreTrainedModel, prompts: Sequence[Sequence[int]]) -> None:
        width = max(map(len, prompts))
        padding_N = [width - len(prompt) for prompt in prompts]
        rows = [[PAD] * padding + list(prompt) for padding, prompt in zip(padding_N, prompts, strict=True)]
        self._model = model
        self._padding_N = torch.tensor(padding_N, device=model.device)
        self._width = width
        self._cache = DynamicCache(config=model.config)
        ids_NP = torch.tensor(rows, device=model.device)
        self.logits_NV = padded_forward(model, ids_NP, self._padding_N, 0, self._cache)

    def rows(self, group_R: Tensor, capacity: int) -> RepeatedRows:
        cache = copy.deepcopy(self._cache)
        cache.reorder_cache(group_R)
        return RepeatedRows(self._model, cache, self._padding_N[group_R], self._width)


class RepeatedRows:
    """The rows of a `RepeatedPrefix`."""

    def __init__(self, model: PreTrainedModel, cache: Cache, padding_R: Tensor, length: int) -> None:
        self._model, self._cache, self._padding_R, self._length = model, cache, padding_R, length

    def step(self, tokens_R: Tensor) -> Tensor:
        logits_RV = padded_forward(self._model, tokens_R[:, None], self._padding_R, self._length, self._cache)
        self._length += 1
        return logits_RV

    def keep(self, index_R: Tensor) -> None:
        self._cache.reorder_cache(index_R)
        self._padding_R = self._padding_R[index_R]


def padded_forward(model: PreTrainedModel, ids_RL: Tensor, padding_R: Tensor, past: int, cache: Cache) -> Tensor:
    """Read `ids_RL` after `past` columns, `padding_R` of which are padding on the left; logits after the last column, (R, V)."""
    accepted = inspect.signature(model.forward).parameters
    length = past + ids_RL.shape[1]
    arguments: dict[str, Any] = {}
    if bool(padding_R.any()):  # without a mask attention takes its fast path
        columns_1L = torch.arange(length, device=ids_RL.device)[None]
        arguments["attention_mask"] = (columns_1L >= padding_R[:, None]).long()
        if "position_ids" in accepted:
            positions_RL = (columns_1L - padding_R[:, None]).clamp(min=0)
            arguments["position_ids"] = positions_RL[:, past:]
    if "logits_to_keep" in accepted:
        arguments["logits_to_keep"] = 1
    output = model(input_ids=ids_RL, past_key_values=cache, use_cache=True, **arguments)
    logits_RV: Tensor = output.logits[:, -1]
    return logits_RV
