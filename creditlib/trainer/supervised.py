"""Completion-only cross-entropy on (prompt, response) pairs, packed into prefix trees.

Pairs whose prompts begin alike (questions about one database) share a tree, so the common part is computed
once.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from creditlib.config import SftSettings
from creditlib.policy.scoring import Scorer
from creditlib.policy.tree import common_prefix, families
from creditlib.rollout.encode import PromptEncoder
from creditlib.trainer.fitting import Fitting
from creditlib.types import Prompt

TREE_TOKENS = 1024  # attention over a tree grows with the square of its size

Trees = list[list[int]]  # an optimizer batch: indices of examples, those of a prefix tree together


@dataclass(frozen=True)
class Example:
    """Token ids of a prompt with its response; the loss is on the response alone."""

    prompt: tuple[int, ...]
    response: tuple[int, ...]

    @staticmethod
    def of(encoder: PromptEncoder, prompt: Prompt, response: str) -> Example:
        """Token ids of both; the response ends with the token that ends an answer, and begins behind what
        the chat template has opened.
        """
        tokenizer = encoder.tokenizer
        ids = tokenizer(response.removeprefix(encoder.opened.rstrip()), add_special_tokens=False)["input_ids"]
        return Example(encoder.encode(prompt), (*ids, tokenizer.eos_token_id))

    @property
    def ids(self) -> tuple[int, ...]:
        return self.prompt + self.response


def plan(examples: Sequence[Example], settings: SftSettings, seed: int) -> list[Trees]:
    """The batches of all epochs, in order, `max_steps` at most.

    A batch takes whole trees, so it may hold more examples than `settings.batch`, and an epoch fewer batches
    than that number would make.
    """
    generator = random.Random(seed)
    found: list[Trees] = []
    for _ in range(settings.epochs):
        found += batches(
            examples, batch=settings.batch, micro_tokens=settings.micro_tokens, generator=generator
        )
    return found[: settings.max_steps or None]


def batches(
    examples: Sequence[Example], *, batch: int, micro_tokens: int, generator: random.Random
) -> Iterator[Trees]:
    """One epoch of optimizer batches. A tree has at most `batch` examples and about `micro_tokens` tokens."""
    limit = min(micro_tokens, TREE_TOKENS)
    trees: Trees = []
    for family in families([example.prompt for example in examples]):
        generator.shuffle(family)
        tree: list[int] = []
        size = 0
        for i in family:
            more = (
                len(examples[i].ids)
                if not tree
                else len(examples[i].ids) - common_prefix(examples[tree[0]].prompt, examples[i].prompt)
            )
            if tree and (size + more > limit or len(tree) == batch):
                trees.append(tree)
                tree, size, more = [], 0, len(examples[i].ids)
            tree.append(i)
            size += more
        trees.append(tree)
    generator.shuffle(trees)
    chosen: Trees = []
    for tree in trees:
        chosen.append(tree)
        if sum(map(len, chosen)) >= batch:
            yield chosen
            chosen = []
    if chosen:
        yield chosen


class Supervised:
    """Fits a model to examples.

    Args:
        scorer: of the model that is trained.
        settings: batch size, learning rate and their like.
    """

    def __init__(self, scorer: Scorer, settings: SftSettings) -> None:
        self.scorer, self.settings = scorer, settings
        self.fitting = Fitting(scorer.model, settings, "sft")

    def update(
        self,
        examples: Sequence[Example],
        trees: Sequence[Sequence[int]],
        progress: float,
        *,
        whole: bool = False,
    ) -> dict[str, float]:
        """One optimizer update. Where its loss or gradient is not finite the weights stay as they were.

        Args:
            examples: what `trees` index into.
            trees: the batch.
            progress: share of the whole that is done, in [0, 1]: the rate warms up, then decays linearly.
            whole: learn the prompts too, which a model that starts from nothing needs.

        Raises:
            CreditlibError: too many updates in a row were not finite.
        """

        def learned(i: int) -> int:
            return len(examples[i].ids) - 1 if whole else len(examples[i].response)

        tokens = sum(learned(i) for tree in trees for i in tree)
        self.fitting.begin()
        total = 0.0
        for rows in self._micro_batches(examples, trees):
            sequences = [examples[i].ids for _, i in rows]
            responses = [learned(i) for _, i in rows]
            logps_RT, _ = self.scorer.forward_sequences(
                sequences, responses, [tree for tree, _ in rows], width=max(responses)
            )
            total += self.fitting.add(-logps_RT.sum() / tokens)  # 0 outside the mask
        return {**self.fitting.finish(total, progress), "response_tokens": float(tokens)}

    def _micro_batches(
        self, examples: Sequence[Example], trees: Sequence[Sequence[int]]
    ) -> Iterator[list[tuple[int, int]]]:
        """Whole trees, put together while rows padded to the longest stay within the token limit."""
        sizes = [max(1, sum(len(examples[i].ids) for i in tree)) for tree in trees]
        order = sorted(range(len(trees)), key=lambda t: sizes[t])
        chosen: list[int] = []
        for t in order:
            if chosen and (len(chosen) + 1) * sizes[t] > self.settings.micro_tokens:
                yield [(c, i) for c in chosen for i in trees[c]]
                chosen = []
            chosen.append(t)
        yield [(c, i) for c in chosen for i in trees[c]]


def describe(model: Any) -> str:
    """Trainable and total parameters, for a person."""
    total = sum(p.numel() for p in model.parameters())
    trainable = sum(p.numel() for p in model.parameters() if p.requires_grad)
    return f"{trainable:,} of {total:,} parameters train"
