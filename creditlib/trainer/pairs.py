"""Reward models from preference pairs: the Bradley-Terry loss, and how well a model ranks held-out pairs."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from creditlib.config import PairSettings
from creditlib.policy.modes import evaluating
from creditlib.policy.reward_scorer import Text
from creditlib.policy.tree import pad
from creditlib.rewards.conversation import ConversationReader
from creditlib.trainer.metrics import mean_interval
from creditlib.trainer.optimizer import Optimizer
from creditlib.trainer.supervised import BETAS, warmup_then_linear
from creditlib.types import CreditlibError, Message, Prompt

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
    reader = ConversationReader(tokenizer, shared=False)
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
        base = model.get_base_model() if hasattr(model, "peft_config") else model
        self.model, self.settings = model, settings
        self._backbone, self._head = getattr(base, base.base_model_prefix), base.score
        self.optimizer = Optimizer(
            model, betas=BETAS, weight_decay=settings.weight_decay, max_grad_norm=settings.max_grad_norm
        )
        self._skipped_in_a_row = 0

    def update(self, pairs: Sequence[EncodedPair], progress: float) -> dict[str, float]:
        """One optimizer update. Where its loss or gradient is not finite the weights stay as they were.

        Raises:
            CreditlibError: too many updates in a row were not finite.
        """
        settings = self.settings
        rate = settings.learning_rate * warmup_then_linear(progress, settings.warmup_share)
        self.model.train()
        self.optimizer.zero_grad()
        total = right = 0.0
        for some in _micro_batches(pairs, settings.micro_tokens):
            values = self._values([text for pair in some for text in (pair.chosen, pair.rejected)])
            scores_P2 = torch.stack([value_S[-1] for value_S in values]).view(len(some), 2)
            loss = -logsigmoid(scores_P2[:, 0] - scores_P2[:, 1]).sum()
            if settings.look_ahead or settings.smoothness:
                loss = loss + sum(map(self._unsteadiness, values)) / 2
            loss = loss / len(pairs)
            loss.backward()
            self.optimizer.accumulate()
            total += loss.item()
            right += float((scores_P2[:, 0] > scores_P2[:, 1]).sum())
        norm = self.optimizer.reduce()
        finite = math.isfinite(total) and math.isfinite(norm)
        if finite:
            self.optimizer.step(rate)
        self._skipped_in_a_row = 0 if finite else self._skipped_in_a_row + 1
        if self._skipped_in_a_row >= settings.max_skipped_updates:
            raise CreditlibError(
                f"stopped: {self._skipped_in_a_row} updates in a row had a loss or gradient that is not "
                f"finite (reward.max_skipped_updates); the last had loss {total} and gradient norm {norm}. "
                "Start again with a lower reward.learning_rate or with model.dtype=float32"
            )
        return {"loss": total, "accuracy": right / len(pairs), "grad_norm": norm, "learning_rate": rate}

    @torch.no_grad()
    def margins(self, pairs: Sequence[EncodedPair]) -> np.ndarray:
        """r_chosen - r_rejected of each pair, (P,) float64."""
        found = np.zeros(len(pairs))
        order = sorted(range(len(pairs)), key=lambda i: pairs[i].length)
        at = 0
        with evaluating(self.model):
            for some in _micro_batches([pairs[i] for i in order], self.settings.micro_tokens):
                values = self._values([text for pair in some for text in (pair.chosen, pair.rejected)])
                last = torch.stack([value_S[-1] for value_S in values]).view(len(some), 2).double()
                found[order[at : at + len(some)]] = (last[:, 0] - last[:, 1]).cpu().numpy()
                at += len(some)
        return found

    def _values(self, texts: Sequence[Text]) -> list[Tensor]:
        """The head's output at each token of each answer, float32."""
        packed = pad([text.before + text.rest for text in texts], self._backbone.device)
        states_RLD = self._backbone(
            input_ids=packed.ids_RL, attention_mask=packed.mask, use_cache=False
        ).last_hidden_state
        values_RL = self._head(states_RLD)[..., 0].float()
        return [
            values_RL[row, len(text.before) : len(text.before) + len(text.rest)]
            for row, text in enumerate(texts)
        ]

    def _unsteadiness(self, values_S: Tensor) -> Tensor:
        """TCRM's regularisers of one answer."""
        ahead = (values_S - values_S[-1].detach()).square().mean()
        if len(values_S) < 2:
            return self.settings.look_ahead * ahead
        steps = (values_S[:-1] - values_S[1:]).square().mean()
        return self.settings.look_ahead * ahead + self.settings.smoothness * steps


def _micro_batches(pairs: Sequence[EncodedPair], tokens: int) -> Iterator[Sequence[EncodedPair]]:
    """In pieces that padded to their longest stay within `tokens`, at least a pair each."""
    ordered = sorted(pairs, key=lambda pair: pair.length)
    chosen: list[EncodedPair] = []
    for pair in ordered:
        if chosen and 2 * pair.length * (len(chosen) + 1) > tokens:
            yield chosen
            chosen = []
        chosen.append(pair)
    if chosen:
        yield chosen


def plan_pairs(pairs: Sequence[EncodedPair], settings: PairSettings, seed: int) -> list[list[EncodedPair]]:
    """The batches of all epochs, in order, `max_steps` at most."""
    generator = random.Random(seed)
    found: list[list[EncodedPair]] = []
    for _ in range(settings.epochs):
        order = list(pairs)
        generator.shuffle(order)
        found += [order[at : at + settings.batch] for at in range(0, len(order), settings.batch)]
    return found[: settings.max_steps or None]


def ranking(pairs: Sequence[EncodedPair], margins_P: np.ndarray) -> dict[str, float]:
    """Accuracy with its 95 % interval over prompts, loss, and calibration of held-out margins.

    ``calibration_error`` is the mean over pairs of |confidence - accuracy| of the pair's bin of confidence,
    sigmoid(|margin|), in bins of as many pairs each.
    """
    right_P = np.where(margins_P == 0, 0.5, margins_P > 0)
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
    right_P = np.where(margins_P == 0, 0.5, margins_P > 0)
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
    """Mean over pairs, and a 95 % interval that takes the pairs of one prompt together."""
    by_prompt: dict[int, list[float]] = {}
    for pair, value in zip(pairs, values_P.tolist(), strict=True):
        by_prompt.setdefault(pair.prompt, []).append(value)
    _, low, high = mean_interval([sum(own) / len(own) for own in by_prompt.values()])
    return float(values_P.mean()), low, high


def report(
    train: Sequence[EncodedPair], held_out: Sequence[EncodedPair], margins_P: np.ndarray
) -> dict[str, Any]:
    """All of what is said about a trained model: `ranking`, and length alone beside it."""
    by_length_P = length_baseline(train, held_out)
    right_P = np.where(margins_P == 0, 0.5, margins_P > 0)
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
