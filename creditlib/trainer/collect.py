"""Rollouts with their rewards, and dynamic sampling."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from creditlib.config import TrainerConfig
from creditlib.rewards.judge import Judge
from creditlib.rewards.table import join_tables, select_rows
from creditlib.rollout.batch import join, select_groups
from creditlib.trainer.batch import GlobalBatch
from creditlib.trainer.metrics import Stopwatch
from creditlib.trainer.processes import Processes
from creditlib.trainer.prompts import PromptStream
from creditlib.types import CreditlibError, Prompt, RewardTable, Rollout, RolloutEngine


@dataclass(frozen=True)
class Collected:
    """This process's responses with their rewards, and what it knows of everyone's.

    `drawn` counts the prompts of all processes, those of groups that were left out too.
    """

    rollout: Rollout
    table: RewardTable
    batch: GlobalBatch
    drawn: int


class Collector:
    """Samples and judges the responses of a step.

    Args:
        engine: samples.
        judge: judges.
        prompts: the same stream on all processes; each answers every `processes.count`-th prompt.
        settings: prompts and responses a step, dynamic sampling.
        processes: share a step's prompts.
        weights: of the rewards; a group in which only a reward of weight 0 varies teaches nothing.
    """

    def __init__(
        self,
        engine: RolloutEngine,
        judge: Judge,
        prompts: PromptStream,
        settings: TrainerConfig,
        processes: Processes,
        weights: Sequence[float],
    ) -> None:
        if settings.prompts_per_step < processes.count:
            raise CreditlibError(
                f"trainer.prompts_per_step={settings.prompts_per_step} leaves some of the {processes.count} "
                "processes without a prompt: raise it, or start fewer processes"
            )
        self._engine, self._judge, self._prompts = engine, judge, prompts
        self._settings, self._processes, self._weights = settings, processes, weights

    def collect(self, step: int, watch: Stopwatch) -> Collected:
        """The responses of `step`.

        With dynamic sampling, groups in which no reward varies are left out, and prompts are drawn again
        until there are enough groups or `max_resamples` rounds are over; then the step has fewer groups.
        Where nothing varies at all, the first groups stand.
        """
        wanted, dynamic = self._settings.prompts_per_step, self._settings.dynamic_sampling
        mine = slice(self._processes.rank, None, self._processes.count)
        rollouts: list[Rollout] = []
        tables: list[RewardTable] = []
        numbers: list[int] = []  # global number of each of this process's prompts
        seen: Counter[str] = Counter()
        for attempt in range(1 + self._settings.max_resamples * dynamic):
            drawn = [_distinct(prompt, seen) for prompt in self._prompts.take(wanted)]
            with watch("rollout"):
                samples = self._settings.responses_per_prompt
                rollouts.append(self._engine.generate(drawn[mine], samples=samples, step=step))
            with watch("verify"):
                tables.append(self._judge(rollouts[-1]))
            numbers += range(attempt * wanted, (attempt + 1) * wanted)[mine]
            rollout, table = join(rollouts), join_tables(tables)
            batch = GlobalBatch.gather(rollout, table, numbers, self._processes)
            if not dynamic:
                return Collected(rollout, table, batch, wanted)
            kept = batch.varying_groups(self._weights)[:wanted]
            if len(kept) == wanted:
                break
        kept = kept or list(range(wanted))
        chosen = [n for n, number in enumerate(numbers) if number in set(kept)]
        rollout, rows = select_groups(rollout, chosen)
        table = select_rows(table, rows)
        batch = GlobalBatch.gather(rollout, table, [numbers[n] for n in chosen], self._processes)
        return Collected(rollout, table, batch, len(rollouts) * wanted)


def _distinct(prompt: Prompt, seen: Counter[str]) -> Prompt:
    """Another id, and so other random streams, for a prompt that a step draws again: in a small data set,
    or where a new epoch begins."""
    seen[prompt.id] += 1
    times = seen[prompt.id]
    return prompt if times == 1 else replace(prompt, id=f"{prompt.id}#{times}")
