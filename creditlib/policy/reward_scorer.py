"""A frozen reward model: scores of responses, their gradients with respect to the input embeddings, and the
head's output at each token.

What comes before the responses to a prompt runs once, without gradient; a KV cache hands it to the
responses, so the backward pass covers their positions alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from transformers import DynamicCache

from creditlib.policy.head import wide
from creditlib.types import CreditlibError


@dataclass(frozen=True)
class Text:
    """What a reward model reads of one response: the tokens before it, which others may share, and the rest
    to the end of the sequence (at least one token).
    """

    before: tuple[int, ...]
    rest: tuple[int, ...]


@dataclass(frozen=True)
class Judgement:
    """Of one text: the score, and at the tokens of `Text.rest` what was asked for."""

    score: float
    gradients_SE: Tensor | None = None  # of the score, with respect to the embeddings of `rest`
    values_S: Tensor | None = None  # the head's output before each token of `rest`, and after the last


class RewardScorer:
    """Reads texts with `model`, a causal transformer with a head of one label on its last token.

    Its parameters are frozen and it stays in eval mode.

    Args:
        model: a transformers model for sequence classification.
        source: what was loaded, for messages.
        tokens: about so many tokens of responses in one forward pass.

    Raises:
        CreditlibError: a model of more labels than one, or one whose scores are not its head's on the last
            token.
    """

    def __init__(self, model: Any, source: str, tokens: int = 4096) -> None:
        labels = model.config.num_labels
        if labels != 1:
            raise CreditlibError(
                f"{source} has {labels} labels; a reward model has one (num_labels=1 in its config.json)"
            )
        self.model = model.requires_grad_(False).eval()
        self.source, self.tokens = source, tokens
        self.backbone: Any = getattr(model, model.base_model_prefix, None)
        self.head: Any = getattr(model, "score", None)
        if self.backbone is None or self.head is None:
            raise CreditlibError(
                f"{source} is a {type(model).__name__}; expected a causal transformer with a linear layer "
                "`score` on its last token (AutoModelForSequenceClassification of a Llama, Qwen, Gemma, ...)"
            )
        self.caches = self._agrees(caches=True)
        if not self.caches and not self._agrees(caches=False):
            raise CreditlibError(
                f"{source}: the scores of {type(model).__name__} are not its head's output on the last "
                "token; it cannot be a reward model here"
            )

    @property
    def device(self) -> torch.device:
        device: torch.device = self.backbone.device
        return device

    @property
    def context_length(self) -> int | None:
        """Most tokens of a text; None: no limit."""
        found: int | None = getattr(self.model.config.get_text_config(), "max_position_embeddings", None)
        return found

    def embeddings(self, ids: Tensor) -> Tensor:
        """Rows of the input embeddings as the transformer takes them, scaled where its family does so."""
        with torch.no_grad():
            found: Tensor = self.backbone.get_input_embeddings()(ids)
        return found

    @cached_property
    def embedding_table(self) -> Tensor:
        """`embeddings` of all tokens, (V, E)."""
        module = self.backbone.get_input_embeddings()
        if type(module) is nn.Embedding:  # its rows as they are: no copy of what may be large
            table: Tensor = module.weight.detach()
            return table
        return self.embeddings(torch.arange(module.num_embeddings, device=self.device))

    def read(
        self, texts: Sequence[Text], *, gradients: bool = False, values: bool = False
    ) -> list[Judgement]:
        """Judge every text. Equal texts are judged once: in different batches rounding would set them apart,
        and a group of equal responses would seem to have a spread.
        """
        distinct = list(dict.fromkeys(texts))
        found: dict[Text, Judgement] = {}
        for some in self._batches(distinct):
            own = [distinct[i] for i in some]
            if not self.caches:
                own = [Text((), text.before + text.rest) for text in own]
            for i, judgement in zip(some, self._read(own, gradients, values), strict=True):
                text = distinct[i]
                found[text] = judgement if self.caches else _from_the_rest(judgement, len(text.before))
        return [found[text] for text in texts]

    def _batches(self, texts: Sequence[Text]) -> Iterator[list[int]]:
        """Indices of texts in batches of about `tokens` tokens, those after the same beginning together."""
        order = sorted(range(len(texts)), key=lambda i: (texts[i].before, len(texts[i].rest)))
        batch: list[int] = []
        width = longest = prompts = 0
        for i in order:
            before, rest = len(texts[i].before), len(texts[i].rest)
            if not self.caches:
                before, rest = 0, before + rest
            another = not batch or texts[i].before != texts[batch[-1]].before
            # A row of padding alone would have no attention, so texts with nothing before them come apart.
            apart = bool(batch) and bool(texts[i].before) != bool(texts[batch[-1]].before)
            size = max(width, rest) * (len(batch) + 1) + max(longest, before) * (prompts + another)
            if batch and (apart or size > self.tokens):
                yield batch
                batch, width, longest, prompts, another = [], 0, 0, 0, True
            batch.append(i)
            width, longest, prompts = max(width, rest), max(longest, before), prompts + another
        if batch:
            yield batch

    def _read(self, texts: Sequence[Text], gradients: bool, values: bool) -> list[Judgement]:
        """One forward pass, and where gradients are asked for one backward pass."""
        lengths = [len(text.rest) for text in texts]
        width = max(lengths)
        ids_RS, real_RS = self._padded([text.rest for text in texts], left=False)
        cache, past_RP, first_R = self._prompts(texts)
        depth_R = past_RP.sum(1)
        embedded_RSE = self.embeddings(ids_RS).requires_grad_(gradients)
        with torch.set_grad_enabled(gradients):
            states_RSD = self.backbone(
                inputs_embeds=embedded_RSE,
                attention_mask=torch.cat([past_RP, real_RS], 1),
                position_ids=depth_R[:, None] + torch.arange(width, device=self.device),
                past_key_values=cache,
                use_cache=cache is not None,
            ).last_hidden_state
            rows_R = torch.arange(len(texts), device=self.device)
            last_R = torch.tensor(lengths, device=self.device) - 1
            score_R = wide(self.head(states_RSD[rows_R, last_R])[:, 0])
            grads_RSE = None
            if gradients:
                (grads_RSE,) = torch.autograd.grad(score_R.sum(), embedded_RSE)
        after_RS = wide(self.head(states_RSD.detach())[..., 0]) if values else None
        return [
            Judgement(
                score,
                None if grads_RSE is None else grads_RSE[row, :length],
                None if after_RS is None else torch.cat([first_R[row, None], after_RS[row, :length]]),
            )
            for row, (length, score) in enumerate(zip(lengths, score_R.tolist(), strict=True))
        ]

    @torch.no_grad()
    def _prompts(self, texts: Sequence[Text]) -> tuple[DynamicCache | None, Tensor, Tensor]:
        """Keys and values of what stands before each text, its mask, and the head's output at its end.

        Left padded, so that the responses follow at once. NaN where nothing stands before.
        """
        nothing = self.head.weight.new_full((len(texts),), torch.nan)
        distinct = list(dict.fromkeys(text.before for text in texts))
        if not any(distinct):
            return None, torch.zeros(len(texts), 0, dtype=torch.long, device=self.device), nothing
        ids_NP, real_NP = self._padded(distinct, left=True)
        cache = DynamicCache(config=self.backbone.config)
        states_NPD = self.backbone(
            input_ids=ids_NP,
            attention_mask=real_NP,
            position_ids=(real_NP.cumsum(1) - 1).clamp(min=0),
            past_key_values=cache,
            use_cache=True,
        ).last_hidden_state
        place = {before: n for n, before in enumerate(distinct)}
        of_R = torch.tensor([place[text.before] for text in texts], device=self.device)
        cache.batch_select_indices(of_R)
        first_N = wide(self.head(states_NPD[:, -1])[:, 0])
        return cache, real_NP[of_R], torch.where(real_NP[of_R].any(1), first_N[of_R], nothing)

    def _padded(self, sequences: Sequence[Sequence[int]], *, left: bool) -> tuple[Tensor, Tensor]:
        """Token ids and their mask, (R, S) each. What pads is never seen, so any token will do."""
        width = max(map(len, sequences))
        ids_RS = torch.zeros(len(sequences), width, dtype=torch.long)
        real_RS = torch.zeros(len(sequences), width, dtype=torch.long)
        for row, sequence in enumerate(sequences):
            where = slice(width - len(sequence), width) if left else slice(0, len(sequence))
            ids_RS[row, where] = torch.tensor(sequence, dtype=torch.long)
            real_RS[row, where] = 1
        return ids_RS.to(self.device), real_RS.to(self.device)

    def _agrees(self, *, caches: bool) -> bool:
        """Whether reading in this way gives the model's own scores of two small texts."""
        self.caches = caches
        rows = self.backbone.get_input_embeddings().num_embeddings
        # Transformers would take padding at the end for no part of the text.
        tokens = [i for i in range(rows) if i != self.model.config.pad_token_id][-40:]
        whole = [[tokens[(7 * i + j) % len(tokens)] for i in range(9 - j)] for j in (0, 2)]
        cuts = (5, 3) if caches else (0, 0)
        texts = [Text(tuple(ids[:cut]), tuple(ids[cut:])) for ids, cut in zip(whole, cuts, strict=True)]
        try:
            have = [judgement.score for judgement in self.read(texts)]
        except (TypeError, ValueError, RuntimeError, AttributeError):
            return False
        with torch.no_grad():  # one row at a time: with several the model wants to know its padding
            want = [
                self.model(input_ids=torch.tensor([ids], device=self.device)).logits.item() for ids in whole
            ]
        precise = self.backbone.dtype in (torch.float32, torch.float64)
        return all(
            math.isclose(one, other, rel_tol=1e-3 if precise else 5e-2, abs_tol=1e-3 if precise else 5e-2)
            for one, other in zip(have, want, strict=True)
        )


def _from_the_rest(judgement: Judgement, before: int) -> Judgement:
    """Of a text that was read whole: what concerns its rest."""
    gradients_SE, values_S = judgement.gradients_SE, judgement.values_S
    return Judgement(
        judgement.score,
        None if gradients_SE is None else gradients_SE[before:],
        None if values_S is None else values_S[before:],
    )
