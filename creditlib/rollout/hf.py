"""Responses sampled with transformers, from the very model that is being trained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import cast

import torch
from peft import PeftModel
from torch import Tensor
from transformers import PreTrainedModel

from creditlib.policy.adapters import merged_adapters
from creditlib.policy.cpu import packed_linears
from creditlib.policy.modes import evaluating
from creditlib.policy.streams import stream_key
from creditlib.rollout.encode import PromptEncoder
from creditlib.rollout.prefix import PAD, Prefix, RepeatedPrefix
from creditlib.rollout.sampling import Sampler
from creditlib.rollout.shared import SharedPrefix, supports_shared_prefix
from creditlib.types import CreditlibError, Finish, Prompt, Rollout


class HFRollout:
    """A `RolloutEngine` over a causal LM of transformers, with or without LoRA adapters of peft.

    A prompt is read once for all its responses, finished rows leave the batch, and each response draws from
    its own random stream. So neither the other rows nor `rows` nor the number of processes decides what a
    response says (but for the rounding of the model's own arithmetic, which varies with the shape of the
    batch).

    Args:
        model: the policy, not wrapped for distributed training. After `generate` its weights and modes are as
            before.
        encoder: renders prompts and decodes responses.
        seed: the run's seed.
        temperature: of sampling; stored log-probs are at this temperature.
        top_p: keep the likeliest tokens that together hold this probability; 1 keeps all.
        top_k: keep this many likeliest tokens; None keeps all.
        max_tokens: longest response, the stop token included.
        eos_ids: tokens that end a response, see `encode.stop_ids`.
        rows: most responses decoded at once; bounds the memory.
    """

    def __init__(
        self,
        model: PreTrainedModel | PeftModel,
        encoder: PromptEncoder,
        *,
        seed: int,
        temperature: float = 1.0,
        top_p: float = 1.0,
        top_k: int | None = None,
        max_tokens: int,
        eos_ids: Sequence[int],
        rows: int = 64,
    ) -> None:
        if max_tokens < 1 or rows < 1:
            raise CreditlibError(
                f"rollout.max_tokens and rollout.rows must be at least 1, found {max_tokens} and {rows}"
            )
        # LoRA lives inside the base model; peft's wrapper around it only costs time here.
        base = model.get_base_model() if isinstance(model, PeftModel) else model
        self._model = cast(PreTrainedModel, base)
        self._encoder = encoder
        self._seed = seed
        self._sampler = Sampler(temperature, top_p, top_k)
        self._greedy = Sampler(temperature, greedy=True)
        self._max_tokens = max_tokens
        self._eos_ids = frozenset(eos_ids)
        self._rows = rows
        self._prefix_type: type[SharedPrefix] | type[RepeatedPrefix]
        with evaluating(self._model):
            self._prefix_type = SharedPrefix if supports_shared_prefix(self._model) else RepeatedPrefix

    def generate(
        self, prompts: Sequence[Prompt], *, samples: int, step: int, greedy: bool = False
    ) -> Rollout:
        """`samples` responses to each prompt, those of one prompt next to each other.

        Args:
            prompts: what to answer. A prompt given twice gets twice as many different responses.
            samples: responses a prompt.
            step: the training step, part of each response's random stream.
            greedy: take the likeliest token instead of a random one.

        Raises:
            CreditlibError: no prompts, a prompt that does not fit, or logits that are not finite.
        """
        if not prompts or samples < 1:
            raise CreditlibError(f"nothing to sample: {len(prompts)} prompts, {samples} samples each")
        encoded = [self._encode(prompt) for prompt in prompts]
        responses = _Responses(self._keys(prompts, samples, step), self._max_tokens, self._model.device)
        by_length = sorted(range(len(prompts)), key=lambda n: len(encoded[n]))
        prompts_at_once = max(1, self._rows // samples)
        sampler = self._greedy if greedy else self._sampler
        with self._sampling():
            for start in range(0, len(prompts), prompts_at_once):
                chosen = by_length[start : start + prompts_at_once]
                prefix = self._prefix_type(self._model, [encoded[n] for n in chosen])
                pairs = [
                    (group, n * samples + sample)
                    for group, n in enumerate(chosen)
                    for sample in range(samples)
                ]
                for first in range(0, len(pairs), self._rows):
                    groups, rows = zip(*pairs[first : first + self._rows], strict=True)
                    self._decode(prefix, groups, rows, responses, sampler)

        lengths_B = responses.lengths_B
        width = int(lengths_B.max())
        mask_BT = torch.arange(width, device=lengths_B.device) < lengths_B[:, None]
        ids_BT = responses.ids_BT[:, :width].masked_fill(~mask_BT, PAD)
        sampled = [ids[:length] for ids, length in zip(ids_BT.tolist(), lengths_B.tolist(), strict=True)]
        finish: list[Finish] = ["stop" if ids[-1] in self._eos_ids else "length" for ids in sampled]
        return Rollout(
            prompts=tuple(prompts),
            prompt_ids=tuple(encoded),
            group_B=torch.arange(len(prompts), device=lengths_B.device).repeat_interleave(samples),
            ids_BT=ids_BT,
            mask_BT=mask_BT,
            texts=tuple(self._encoder.decode(ids, self._eos_ids) for ids in sampled),
            sampler_logps_BT=responses.logps_BT[:, :width].masked_fill(~mask_BT, 0.0),
            sampler_mass_BT=responses.mass_BT[:, :width].masked_fill(~mask_BT, 1.0),
            finish=tuple(finish),
            temperature=sampler.temperature,
            opened=self._encoder.opened,
        )

    @contextmanager
    def _sampling(self) -> Iterator[None]:
        """The model as it samples fastest; all is put back in the end."""
        model = self._model
        with evaluating(model), torch.no_grad(), merged_adapters(model), packed_linears(model):
            yield

    def _encode(self, prompt: Prompt) -> tuple[int, ...]:
        ids = self._encoder.encode(prompt)
        positions = getattr(self._model.config.get_text_config(decoder=True), "max_position_embeddings", None)
        if positions is not None and len(ids) + self._max_tokens > positions:
            raise CreditlibError(
                f"prompt {prompt.id!r} has {len(ids)} tokens, but with rollout.max_tokens={self._max_tokens} "
                f"the model's {positions} positions leave room for {max(0, positions - self._max_tokens)}: "
                "lower rollout.max_tokens or shorten the prompt"
            )
        return ids

    def _keys(self, prompts: Sequence[Prompt], samples: int, step: int) -> list[int]:
        seen: Counter[str] = Counter()
        keys: list[int] = []
        for prompt in prompts:
            first = seen[prompt.id]
            keys += [stream_key(self._seed, step, prompt.id, first + sample) for sample in range(samples)]
            seen[prompt.id] += samples
        return keys

    def _decode(
        self,
        prefix: Prefix,
        groups: Sequence[int],
        rows: Sequence[int],
        responses: _Responses,
        sampler: Sampler,
    ) -> None:
        """Sample the responses `rows`, continuing the prompts `groups` of `prefix`, to their end."""
        device = self._model.device
        group_R = torch.tensor(groups, device=device)
        rows_R = torch.tensor(rows, device=device)
        eos_E = torch.tensor(sorted(self._eos_ids), dtype=torch.long, device=device)
        done_R = torch.zeros_like(rows_R, dtype=torch.bool)
        state = prefix.rows(group_R, self._max_tokens)
        logits_RV = prefix.logits_NV[group_R]
        for position in range(self._max_tokens):
            draw = sampler.draw(logits_RV, responses.keys_B[rows_R], position)
            responses.ids_BT[rows_R, position] = draw.tokens_R
            responses.logps_BT[rows_R, position] = draw.logps_R.float()
            responses.mass_BT[rows_R, position] = draw.mass_R.float()
            stopped_R = torch.isin(draw.tokens_R, eos_E) & ~done_R
            responses.lengths_B[rows_R[stopped_R]] = position + 1
            done_R |= stopped_R
            finished = int(done_R.sum())
            if finished == len(done_R) or position + 1 == self._max_tokens:
                return
            tokens_R = draw.tokens_R
            if 8 * finished >= len(done_R):  # closing gaps has a price too, so not for every single row
                index_R = _without(done_R)
                rows_R, tokens_R, done_R = rows_R[index_R], tokens_R[index_R], done_R[index_R]
                state.keep(index_R)
            logits_RV = state.step(tokens_R)


class _Responses:
    """Where sampled tokens are collected, one row a response; meaningless beyond `lengths_B`."""

    def __init__(self, keys: Sequence[int], max_tokens: int, device: torch.device) -> None:
        shape = (len(keys), max_tokens)
        self.keys_B = torch.tensor(keys, device=device)
        self.ids_BT = torch.full(shape, PAD, device=device)
        self.logps_BT = torch.zeros(shape, device=device)
        self.mass_BT = torch.ones(shape, device=device)
        self.lengths_B = torch.full(shape[:1], max_tokens, device=device)


def _without(done_R: Tensor) -> Tensor:
    """Index of the rows that are not done: those from the end fill the gaps, the others stay in place."""
    alive = int((~done_R).sum())
    index_R = torch.arange(alive, device=done_R.device)
    index_R[done_R[:alive]] = alive + (~done_R[alive:]).nonzero()[:, 0]
    return index_R
