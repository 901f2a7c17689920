"""Reward models from preference pairs: the Bradley-Terry loss, and how well a model ranks held-out pairs."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from creditlib.config import PairSettings
from creditlib.policy.head import wide
from creditlib.policy.modes import evaluating
from creditlib.policy.reward_scorer import Text
from creditlib.policy.trunk import Trunk
from creditlib.rewards.conversation import ConversationReader
from creditlib.trainer.fitting import Fitting
from creditlib.trainer.metrics import clustered_interval
from creditlib.types import Message, Prompt

_BINS = 10  # of confidence, in the table of calibration


class PreferencePair(Protocol):
    """Two answers to a conversation, of which one was preferred."""

    @property
    def messages(self) -> tuple[Message, ...]: ...
    @property
    def chosen(self) -> str: ...
    @property
    def rejected(self) -> str: ...


@dataclass(frozen=True)
class EncodedPair:
    """Token ids of both conversations; `prompt` names the question."""

    prompt: int
    chosen: Text
    rejected: Text

    @property
    def length(self) -> int:
        """Of the longer one, in tokens."""
        return max(len(text.before) + len(text.rest) for text in (self.chosen, self.rejected))


def encode_pairs(
    pairs: Sequence[PreferencePair], tokenizer: Any, limit: int | None
) -> tuple[list[EncodedPair], int]:
    """Pairs as tokens, and how many were left out for being longer than `limit`."""
    reader = ConversationReader(tokenizer, shared=None)
    numbers: dict[str, int] = {}
    found = []
    for pair in pairs:
        prompt = Prompt("pair", "pairs", messages=pair.messages)
        number = numbers.setdefault(
            repr([sorted(message.items()) for message in pair.messages]), len(numbers)
        )
        both = (reader.read_text(prompt, text) for text in (pair.chosen, pair.rejected))
        found.append(EncodedPair(number, *both))
    fitting = [pair for pair in found if limit is None or pair.length <= limit]
    return fitting, len(found) - len(fitting)


class PairTrainer:
    """Fits a model for sequence classification with one label to pairs.

    The loss is -log sigmoid(r_chosen - r_rejected) (Bradley and Terry 1952), and where they are asked for the
    two regularisers of TCRM (arXiv 2604.22981): with r_t the head's output at token t of an answer,
    look_ahead * mean_t (r_t - sg[r_T])^2 + smoothness * mean_t (r_t - r_{t+1})^2.

    Args:
        model: of transformers, or of PEFT around one.
        settings: batch size, learning rate and their like.
    """

    def __init__(self, model: Any, settings: PairSettings) -> None:
        self.model, self.settings = model, settings
        self._trunk = Trunk(model)
        self._head = self._trunk.base.score
        self.fitting = Fitting(model, settings, "reward")

    def update(self, pairs: Sequence[EncodedPair], progress: float) -> dict[str, float]:
        """One optimizer update. Where its loss or gradient is not finite the weights stay as they were.

        Raises:
            CreditlibError: too many updates in a row were not finite.
        """
        settings = self.settings
        self.fitting.begin()
        total = right = 0.0
        for some in _micro_batches(pairs, settings.micro_tokens):
            values = self._values([pairs[i] for i in some])
            margins_P = _margins(values)
            loss = -logsigmoid(margins_P).sum()
            if settings.look_ahead or settings.smoothness:
                loss = loss + sum(map(self._unsteadiness, values)) / 2
            total += self.fitting.add(loss / len(pairs))
            right += float(_right(margins_P.detach().cpu().numpy()).sum())
        return {**self.fitting.finish(total, progress), "accuracy": right / len(pairs)}

    @torch.no_grad()
    def margins(self, pairs: Sequence[EncodedPair]) -> np.ndarray:
        """r_chosen - r_rejected of each pair, (P,) float64."""
        found = np.zeros(len(pairs))
        with evaluating(self.model):
            for some in _micro_batches(pairs, self.settings.micro_tokens):
                found[some] = _margins(self._values([pairs[i] for i in some])).double().cpu().numpy()
        return found

    def _values(self, pairs: Sequence[EncodedPair]) -> list[Tensor]:
        """The head's output at each token of each answer: of the first pair's chosen and rejected one, and so
        on.
        """
        texts = [text for pair in pairs for text in (pair.chosen, pair.rejected)]
        states_LD, paths = self._trunk.hidden_states([text.before + text.rest for text in texts])
        values_L = wide(self._head(states_LD)[:, 0])
        return [
            values_L[torch.from_numpy(path[len(text.before) :]).to(values_L.device)]
            for text, path in zip(texts, paths, strict=True)
        ]

    def _unsteadiness(self, values_S: Tensor) -> Tensor:
        """TCRM's regularisers of one answer."""
        ahead = (values_S - values_S[-1].detach()).square().mean()
        if len(values_S) < 2:
            return self.settings.look_ahead * ahead
        steps = (values_S[:-1] - values_S[1:]).square().mean()
        return self.settings.look_ahead * ahead + self.settings.smoothness * steps


def _micro_batches(pairs: Sequence[EncodedPair], tokens: int) -> Iterator[list[int]]:
    """Indices in pieces of about `tokens` tokens, pairs of one prompt together, at least a pair each."""
    chosen: list[int] = []
    size = 0
    for i in sorted(range(len(pairs)), key=lambda i: (pairs[i].prompt, pairs[i].length)):
        before, own = len(pairs[i].chosen.before), len(pairs[i].chosen.rest) + len(pairs[i].rejected.rest)
        shared = bool(chosen) and pairs[chosen[-1]].prompt == pairs[i].prompt
        if chosen and size + own + before * (not shared) > tokens:
            yield chosen
            chosen, size, shared = [], 0, False
        chosen.append(i)
        size += own + before * (not shared)
    if chosen:
        yield chosen


def _margins(values: Sequence[Tensor]) -> Tensor:
    """r_chosen - r_rejected of each pair, (P,), from what `PairTrainer._values` gives."""
    scores_P2 = torch.stack([value_S[-1] for value_S in values]).view(-1, 2)
    return scores_P2[:, 0] - scores_P2[:, 1]


def _right(margins_P: np.ndarray) -> np.ndarray:
    """Which pairs are ranked right, (P,): 1, 0, or 0.5 for a tie."""
    return np.where(margins_P == 0, 0.5, margins_P > 0)


def plan_pairs(pairs: Sequence[EncodedPair], settings: PairSettings, seed: int) -> list[list[EncodedPair]]:
    """The batches of all epochs, in order, `max_steps` at most. Pairs of a prompt stand together, so that
    what they share is read once.
    """
    generator = random.Random(seed)
    by_prompt: dict[int, list[EncodedPair]] = {}
    for pair in pairs:
        by_prompt.setdefault(pair.prompt, []).append(pair)
    found: list[list[EncodedPair]] = []
    for _ in range(settings.epochs):
        prompts = list(by_prompt.values())
        generator.shuffle(prompts)
        order = [pair for own in prompts for pair in own]
        found += [order[at : at + settings.batch] for at in range(0, len(order), settings.batch)]
    return found[: settings.max_steps or None]


def ranking(pairs: Sequence[EncodedPair], margins_P: np.ndarray) -> dict[str, float]:
    """Accuracy with its 95 % interval over prompts, loss, and calibration of held-out margins.

    ``calibration_error`` is the mean over pairs of |confidence - accuracy| of the pair's bin of confidence,
    sigmoid(|margin|), in bins of as many pairs each.
    """
    right_P = _right(margins_P)
    accuracy, low, high = over_prompts(pairs, right_P)
    metrics = {"pairs": float(len(pairs)), "accuracy": accuracy, "accuracy_low": low, "accuracy_high": high}
    metrics["loss"] = float(np.logaddexp(0.0, -margins_P).mean())
    bins = calibration(margins_P)
    metrics["calibration_error"] = sum(
        own["pairs"] * abs(own["confidence"] - own["accuracy"]) for own in bins
    ) / len(pairs)
    return metrics


def calibration(margins_P: np.ndarray) -> list[dict[str, float]]:
    """Mean confidence and accuracy of the pairs in each bin, from the least confident on."""
    confidence_P = 1 / (1 + np.exp(-np.abs(margins_P)))
    right_P = _right(margins_P)
    found = []
    for own in np.array_split(np.argsort(confidence_P, kind="stable"), min(_BINS, len(margins_P))):
        means = confidence_P[own].mean(), right_P[own].mean()
        found.append({"pairs": float(len(own)), "confidence": float(means[0]), "accuracy": float(means[1])})
    return found


def length_baseline(train: Sequence[EncodedPair], held_out: Sequence[EncodedPair]) -> np.ndarray:
    """Which held-out pairs the length alone ranks right, (P,): 1, 0, or 0.5 for equal lengths.

    Whether longer or shorter is better is what was so more often in training.
    """

    def longer(pairs: Sequence[EncodedPair]) -> np.ndarray:
        return np.sign([len(pair.chosen.rest) - len(pair.rejected.rest) for pair in pairs])

    better = 1.0 if longer(train).mean() >= 0 else -1.0
    return np.asarray((1 + better * longer(held_out)) / 2)


def over_prompts(pairs: Sequence[EncodedPair], values_P: np.ndarray) -> tuple[float, float, float]:
    """Mean over pairs, and a 95 % interval that draws the pairs of one prompt together."""
    return clustered_interval([pair.prompt for pair in pairs], values_P.tolist())


def report(
    train: Sequence[EncodedPair], held_out: Sequence[EncodedPair], margins_P: np.ndarray
) -> dict[str, Any]:
    """All of what is said about a trained model: `ranking`, and length alone beside it."""
    by_length_P = length_baseline(train, held_out)
    right_P = _right(margins_P)
    length = over_prompts(held_out, by_length_P)
    gain = over_prompts(held_out, right_P - by_length_P)
    metrics: dict[str, Any] = dict(ranking(held_out, margins_P))
    for name, (mean, low, high) in (("length_accuracy", length), ("gain_over_length", gain)):
        metrics |= {name: mean, f"{name}_low": low, f"{name}_high": high}
    metrics["calibration"] = calibration(margins_P)
    return metrics


def describe_report(metrics: Mapping[str, Any]) -> str:
    """For a person."""
    return (
        f"held-out accuracy {metrics['accuracy']:.3f} ({metrics['accuracy_low']:.3f} to "
        f"{metrics['accuracy_high']:.3f}) on {metrics['pairs']:.0f} pairs; length alone "
        f"{metrics['length_accuracy']:.3f} ({metrics['length_accuracy_low']:.3f} to "
        f"{metrics['length_accuracy_high']:.3f}), difference {metrics['gain_over_length']:+.3f} "
        f"({metrics['gain_over_length_low']:+.3f} to {metrics['gain_over_length_high']:+.3f}); calibration "
        f"error {metrics['calibration_error']:.3f}"
    )
