"""A fit to examples, whatever its loss: its optimizer updates, and how many of them there is time for."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from torch import Tensor, nn

from creditlib.config import FitSettings
from creditlib.trainer.metrics import MetricsLog
from creditlib.trainer.optimizer import Optimizer
from creditlib.trainer.progress import Display
from creditlib.types import CreditlibError

BatchT = TypeVar("BatchT")

BETAS = (0.9, 0.98)  # of AdamW


class Fitting:
    """Fits a model's weights. An update starts with `begin`, gets its loss in parts and ends with `finish`.

    Args:
        model: what is trained.
        settings: learning rate and its like.
        section: of the configuration that holds them, for messages.
    """

    def __init__(self, model: nn.Module, settings: FitSettings, section: str) -> None:
        self.model, self._settings, self._section = model, settings, section
        self.optimizer = Optimizer(
            model, betas=BETAS, weight_decay=settings.weight_decay, max_grad_norm=settings.max_grad_norm
        )
        self._skipped_in_a_row = 0

    def begin(self) -> None:
        self.model.train()
        self.optimizer.zero_grad()

    def add(self, loss: Tensor) -> float:
        """Take over the gradient of a part of the loss; the part's value."""
        loss.backward()
        self.optimizer.accumulate()
        return loss.item()

    def finish(self, loss: float, progress: float) -> dict[str, float]:
        """Step, unless the loss or the gradient is not finite: then the weights stay as they were.

        Args:
            loss: of the whole update.
            progress: share of the fit that is done, in [0, 1]: the rate warms up, then decays linearly.

        Raises:
            CreditlibError: too many updates in a row were not finite.
        """
        rate = self._settings.learning_rate * _warmup_then_linear(progress, self._settings.warmup_share)
        norm = self.optimizer.reduce()
        finite = math.isfinite(loss) and math.isfinite(norm)
        if finite:
            self.optimizer.step(rate)
        self._skipped_in_a_row = 0 if finite else self._skipped_in_a_row + 1
        if self._skipped_in_a_row >= self._settings.max_skipped_updates:
            raise CreditlibError(
                f"stopped: {self._skipped_in_a_row} updates in a row had a loss or gradient that is not "
                f"finite ({self._section}.max_skipped_updates); the last had loss {loss} and gradient norm "
                f"{norm}. Nothing was saved: start again with a lower {self._section}.learning_rate or with "
                "model.dtype=float32"
            )
        return {"loss": loss, "grad_norm": norm, "learning_rate": rate}


class Budget:
    """How much of the training is done: by updates, or by minutes where those are given."""

    def __init__(self, updates: int, minutes: float | None) -> None:
        self._updates, self._seconds = updates, minutes and 60.0 * minutes
        self._start = time.monotonic()

    def progress(self, done: int) -> float:
        share = done / max(self._updates, 1)
        if self._seconds is not None:
            share = max(share, (time.monotonic() - self._start) / self._seconds)
        return share


def fit(
    batches: Sequence[BatchT],
    update: Callable[[BatchT, float], dict[str, float]],
    *,
    minutes: float | None,
    phase: str,
    title: str,
    shown: Sequence[str],
    display: Display,
    log: MetricsLog,
) -> int:
    """Update on one batch after the other while the minutes last; how many updates there were.

    Args:
        batches: of all epochs, in order.
        update: of a batch, and the share of the fit that is done; its metrics.
        minutes: None: as many as all batches take.
        phase: what the lines of the log are called.
        title: of the progress bar.
        shown: metrics that stand beside the bar.
        display: shows the bar.
        log: gets a line for each update.
    """
    budget, done = Budget(len(batches), minutes), 0
    with display.progress(title, len(batches)) as bar:
        for batch in batches:
            if (progress := budget.progress(done)) >= 1.0:
                break
            metrics = update(batch, progress)
            done += 1
            log.write({"step": done, "phase": phase, **metrics})
            bar.advance(" ".join(f"{name} {metrics[name]:.3f}" for name in shown))
    return done


def _warmup_then_linear(progress: float, warmup: float) -> float:
    if progress < warmup:
        return (progress + 0.1 * warmup) / (1.1 * warmup)
    return max(0.0, (1.0 - progress) / (1.0 - warmup))
