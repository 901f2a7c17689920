"""Prompts read once, and the rows that continue them token by token. This way works for any causal LM."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from typing import Any, Protocol, cast

import torch
from torch import Tensor
from transformers import Cache, DynamicCache, PreTrainedModel

PAD = 0  # any token would do: padding is known by masks and lengths, never by its id


class Rows(Protocol):
    """Responses in the making, one a row."""

    def step(self, tokens_R: Tensor) -> Tensor:
        """Append one token to each row; logits of the next, (R, V)."""
        ...

    def keep(self, index_R: Tensor) -> None:
        """Go on with the rows `index_R` alone, in that order."""
        ...


class Prefix(Protocol):
    """N prompts that the model has read."""

    @property
    def logits_NV(self) -> Tensor:
        """Logits of the token after each prompt."""
        ...

    def rows(self, group_R: Tensor, capacity: int) -> Rows:
        """Open rows; row r continues prompt `group_R[r]` by at most `capacity` tokens."""
        ...


class RepeatedPrefix:
    """The prompts, padded on the left, in transformers' own cache, which is then repeated for the responses.

    Args:
        model: a causal LM in evaluation mode.
        prompts: N token sequences, none of them empty.
    """

    def __init__(self, model: PreTrainedModel, prompts: Sequence[Sequence[int]]) -> None:
        width = max(map(len, prompts))
        padding_N = [width - len(prompt) for prompt in prompts]
        ids = [[PAD] * padding + list(prompt) for padding, prompt in zip(padding_N, prompts, strict=True)]
        self._prompts = RepeatedRows(model, DynamicCache(config=model.config), padding_N)
        self.logits_NV = self._prompts.read(torch.tensor(ids, device=model.device))

    def rows(self, group_R: Tensor, capacity: int) -> RepeatedRows:
        rows = self._prompts.copy()
        rows.keep(group_R)
        return rows


class RepeatedRows:
    """Rows of equal width, the first `padding_R` columns of which are padding, and their cache."""

    def __init__(self, model: PreTrainedModel, cache: Cache, padding_R: Sequence[int]) -> None:
        self._model = model
        self._cache = cache
        self._padding_R = torch.tensor(padding_R, device=model.device)
        self._padded = any(padding_R)
        self._width = 0

    def copy(self) -> RepeatedRows:
        twin = copy.copy(self)
        twin._cache = copy.deepcopy(self._cache)
        return twin

    def step(self, tokens_R: Tensor) -> Tensor:
        return self.read(tokens_R[:, None])

    def keep(self, index_R: Tensor) -> None:
        self._cache.reorder_cache(cast(torch.LongTensor, index_R))
        self._padding_R = self._padding_R[index_R]

    def read(self, ids_RL: Tensor) -> Tensor:
        """Append L tokens to each row; logits after the last, (R, V)."""
        accepted = inspect.signature(self._model.forward).parameters
        start, self._width = self._width, self._width + ids_RL.shape[1]
        arguments: dict[str, Any] = {}
        if self._padded:
            columns_RL = torch.arange(self._width, device=ids_RL.device) - self._padding_R[:, None]
            arguments["attention_mask"] = (columns_RL >= 0).long()
            if "position_ids" in accepted:
                arguments["position_ids"] = columns_RL[:, start:].clamp(min=0)
        if "logits_to_keep" in accepted:
            arguments["logits_to_keep"] = 1
        output = self._model(input_ids=ids_RL, past_key_values=self._cache, use_cache=True, **arguments)
        logits_RV: Tensor = output.logits[:, -1]
        return logits_RV
