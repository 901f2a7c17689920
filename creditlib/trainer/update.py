"""The optimizer updates of one rollout: minibatches of whole groups, micro-batches, global denominators."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import torch
from torch import Tensor

from creditlib.config import TrainerConfig
from creditlib.policy.loss import Denominators, LossStats, PolicyLoss
from creditlib.policy.scoring import Scorer, micro_batches
from creditlib.trainer.batch import GlobalBatch
from creditlib.trainer.optimizer import Optimizer, learning_rate
from creditlib.trainer.processes import Processes
from creditlib.types import CreditlibError, Rollout, Scores


@dataclass(frozen=True)
class Lesson:
    """What this process's responses teach: token advantages, and which rows count."""

    rollout: Rollout
    scores: Scores
    advantages_BT: Tensor
    active_B: Tensor


class Updater:
    """Turns lessons into optimizer updates.

    Args:
        scorer: of the policy in training.
        loss: partial losses of it add up to the loss of a minibatch.
        optimizer: of the same policy.
        settings: epochs, minibatches, micro-batches.
        processes: share each minibatch.
        say: tells a person about a skipped update.
    """

    def __init__(
        self,
        scorer: Scorer,
        loss: PolicyLoss,
        optimizer: Optimizer,
        settings: TrainerConfig,
        processes: Processes,
        say: Callable[[str], None],
    ) -> None:
        self._scorer, self._loss, self._optimizer = scorer, loss, optimizer
        self._settings, self._processes, self._say = settings, processes, say
        self.skipped_in_a_row = 0

    def run(self, step: int, lesson: Lesson, batch: GlobalBatch) -> dict[str, float]:
        """All updates of rollout `step`; the metrics of those that were made, averaged: NaN if none was.

        Raises:
            CreditlibError: too many updates in a row had a loss or gradient that is not finite.
        """
        rate = learning_rate(self._settings, step)
        correction_BT = self._correction(lesson)
        records: list[dict[str, float]] = []
        self._scorer.model.train()
        try:
            for _ in range(self._settings.epochs):
                for rows in self._minibatches(batch):
                    record = self._update(lesson, rows, correction_BT, rate, first=not records)
                    if record is not None:
                        records.append(record)
        finally:
            self._scorer.model.eval()
        made = [record for record in records if not record["skipped"]]
        metrics = dict.fromkeys(records[0], math.nan) if records else {}
        if made:
            metrics = {key: fmean(record[key] for record in made) for key in made[0]}
            metrics["loss/ratio_max"] = max(record["loss/ratio_max"] for record in made)
        counts = {"updates": float(len(made)), "skipped": float(len(records) - len(made))}
        return metrics | counts | {"learning_rate": rate}

    def _correction(self, lesson: Lesson) -> Tensor | None:
        if not self._loss.needs_correction:
            return None
        assert lesson.scores.old_logps_BT is not None
        rollout = lesson.rollout
        return self._loss.importance_weights(
            lesson.scores.old_logps_BT, rollout.sampler_logps_BT, rollout.mask_BT
        )

    def _minibatches(self, batch: GlobalBatch) -> Iterator[list[int]]:
        """This process's rows of each update: whole groups, the same whatever the number of processes."""
        own_B = batch.group_B[batch.local_B]
        for groups in batch.group_B.unique().tensor_split(self._settings.minibatches):
            if len(groups):  # dynamic sampling may leave fewer groups than minibatches
                yield torch.isin(own_B, groups).nonzero()[:, 0].tolist()

    def _update(
        self, lesson: Lesson, rows: list[int], correction_BT: Tensor | None, rate: float, *, first: bool
    ) -> dict[str, float] | None:
        """One update over `rows` of all processes; None where no token counts, so nothing is to be learnt.

        `first`: the policy still is the one that sampled, so its log-probs are the old ones to the last bit.
        """
        rollout, loss = lesson.rollout, self._loss
        own = loss.denominators(rollout.mask_BT[rows], lesson.active_B[rows])
        whole = Denominators(*self._processes.sum([own.tokens, own.sequences]))
        if not whole.tokens:
            return None
        old_BT = None if first else lesson.scores.old_logps_BT
        self._optimizer.zero_grad()
        total, stats = 0.0, None
        for micro in micro_batches(rollout, rows, self._settings.micro_batch) if rows else ():
            logps_RT, entropy_RT = self._scorer.forward(rollout, micro, entropy_grad=loss.needs_entropy)
            token = loss.token_loss(
                logps_RT,
                _rows(old_BT, micro),
                lesson.advantages_BT[micro],
                rollout.mask_BT[micro],
                active_B=lesson.active_B[micro],
                ref_logps_BT=_rows(lesson.scores.ref_logps_BT, micro),
                correction_BT=_rows(correction_BT, micro),
                entropy_BT=entropy_RT,
            )
            partial = loss.partial_loss(token, whole)
            partial.backward()
            self._optimizer.accumulate()
            total += partial.item()
            stats = token.stats if stats is None else stats + token.stats
        norm = self._optimizer.reduce()
        (total,) = self._processes.sum([total])
        finite = math.isfinite(norm) and math.isfinite(total)  # of global values: all processes decide alike
        if finite:
            self._optimizer.step(rate)
        self._count_skipped(finite, total, norm)
        record = {"loss": total, "grad_norm": norm, "skipped": float(not finite)}
        return record | {f"loss/{name}": value for name, value in self._stats(stats).items()}

    def _stats(self, stats: LossStats | None) -> dict[str, float]:
        """Means over the tokens of all processes."""
        on_cpu = stats and replace(
            stats,
            tokens=stats.tokens.cpu(),
            sums={name: value.cpu() for name, value in stats.sums.items()},
            ratio_max=stats.ratio_max.cpu(),
        )
        everyone = [own for own in self._processes.gather(on_cpu) if own is not None]
        total = everyone[0]
        for own in everyone[1:]:
            total = total + own
        return total.means()

    def _count_skipped(self, finite: bool, loss: float, norm: float) -> None:
        self.skipped_in_a_row = 0 if finite else self.skipped_in_a_row + 1
        if finite:
            return
        self._say(f"update skipped: loss {loss}, gradient norm {norm}; the weights stay as they were")
        if self.skipped_in_a_row >= self._settings.max_skipped_updates:
            raise CreditlibError(
                f"stopped: {self.skipped_in_a_row} updates in a row had a loss or gradient that is not "
                "finite (trainer.max_skipped_updates). The checkpoints are whole: start a new run from them "
                "with model.path=<this run's folder> and another run.dir, and a lower trainer.learning_rate, "
                "a tighter loss clip, or model.dtype=float32"
            )


def _rows(tensor_BT: Tensor | None, rows: Sequence[int]) -> Tensor | None:
    return None if tensor_BT is None else tensor_BT[list(rows)]
