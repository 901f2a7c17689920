"""What a person sees of a run: a progress bar with the time left, tables of responses and of held-out
accuracy.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from creditlib.rewards.table import ROUNDING
from creditlib.types import RewardTable, Rollout

SHOWN_CHARACTERS = 300  # of one response


class Display:
    """Prints to the terminal; says nothing where `quiet` (all processes but the first)."""

    def __init__(self, *, quiet: bool = False, bar: bool = True) -> None:
        # In a file or a pipe there is no width to fit into; 80 columns would cut the tables.
        width = None if sys.stdout.isatty() else 120
        self.console = Console(quiet=quiet, highlight=False, width=width)
        self._bar = bar and not quiet
        self._progress: Progress | None = None

    def say(self, message: str) -> None:
        self.console.print(message, soft_wrap=True, markup=False)

    def complete(self, folder: str | Path) -> None:
        """That a run stands finished in the folder, so that nothing is done."""
        self.say(f"{folder} is complete: choose another run.dir, or delete the folder to train again")

    @contextmanager
    def progress(self, description: str, total: int, done: int = 0) -> Iterator[ProgressBar]:
        """A bar of `total` steps, `done` of them before this start."""
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
        )
        with Progress(*columns, console=self.console, disable=not self._bar, transient=False) as bar:
            yield ProgressBar(bar, description, total, done)

    def samples(
        self, step: int, rollout: Rollout, table: RewardTable, credit_B: Sequence[float], count: int
    ) -> None:
        """Some responses with their rewards, reasons and advantage; from the most to the least rewarded."""
        totals = table.scores_BK.nan_to_num(0.0).sum(1)
        order = totals.argsort(descending=True).tolist()
        chosen = [
            order[round(i * (len(order) - 1) / max(count - 1, 1))] for i in range(min(count, len(order)))
        ]
        grid = Table(title=f"step {step}: some responses", show_lines=True, title_justify="left")
        grid.add_column("response", ratio=3, overflow="fold")
        grid.add_column("rewards and reasons", ratio=2, overflow="fold")
        grid.add_column("advantage", justify="right")
        for row in chosen:
            grid.add_row(Text(_shortened(rollout.texts[row])), _reasons(table, row), f"{credit_B[row]:+.2f}")
        self.console.print(grid)

    def accuracy(self, title: str, metrics: Mapping[str, float]) -> None:
        """Held-out rewards of one evaluation (`creditlib.trainer.evaluation.summarise`)."""
        grid = _table(title, "held-out split", "decoding", "reward", numbers=("mean", "95 % interval"))
        for key, mean in metrics.items():
            if key.endswith(("_low", "_high", "/tokens")):
                continue
            _, split, mode, reward = key.split("/", 3)
            interval = f"{metrics[f'{key}_low']:.3f} – {metrics[f'{key}_high']:.3f}"
            grid.add_row(split, mode, reward, f"{mean:.3f}", interval)
        self.console.print(grid)

    def changes(self, title: str, changes: Mapping[str, Mapping[str, float]]) -> None:
        """Before and after, with the paired difference (`creditlib.trainer.evaluation.paired_change`)."""
        numbers = ("before", "after", "change", "95 % interval")
        grid = _table(title, "held-out split", "decoding", "reward", numbers=numbers)
        for key, row in changes.items():
            split, mode, reward = key.split("/", 2)
            style = "bold" if row["low"] > 0 or row["high"] < 0 else ""
            change = Text(f"{row['change']:+.3f}", style=style)
            interval = Text(f"{row['low']:+.3f} – {row['high']:+.3f}", style=style)
            title_cell = f"{split} ({row['questions']})"
            grid.add_row(
                title_cell, mode, reward, f"{row['before']:.3f}", f"{row['after']:.3f}", change, interval
            )
        self.console.print(grid)


def _table(title: str, *texts: str, numbers: Sequence[str]) -> Table:
    grid = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    for column in texts:
        grid.add_column(column, no_wrap=True)
    for column in numbers:
        grid.add_column(column, justify="right", no_wrap=True)
    return grid


class ProgressBar:
    def __init__(self, progress: Progress, description: str, total: int, done: int) -> None:
        self._progress = progress
        self._task = progress.add_task(description, total=total, completed=done, note="")

    def advance(self, note: str = "") -> None:
        self._progress.update(self._task, advance=1, note=note)


def _shortened(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]} … ({len(text)} characters)"


def _reasons(table: RewardTable, row: int) -> Text:
    lines = Text()
    for name, check, best in zip(table.names, table.checks[row], table.bounds_K2[:, 1].tolist(), strict=True):
        lines.append(f"{name} ", style="bold")
        # A reward model's score has no best, so it is neither good nor bad.
        verdict = "" if math.isinf(best) else "green" if check.score >= best - ROUNDING else "red"
        lines.append(f"{check.score:g}", style=verdict)
        lines.append(f"  {check.reason}\n" if check.reason else "\n")
    lines.rstrip()
    return lines


def credit_note(rows: Sequence[Mapping[str, Any]]) -> str:
    """How often a strategy that replays gave credit by relevance, over a run's lines of metrics; empty for
    other strategies.
    """

    def mean(key: str) -> float | None:
        values = [row[key] for row in rows if row.get(key) is not None]
        return sum(values) / len(values) if values else None

    first, parts = "credit/by_relevance/", []
    for key in dict.fromkeys(key for row in rows for key in row if key.startswith(first)):
        name = key.removeprefix(first)
        share, distance = mean(key), mean(f"credit/distance/{name}")
        if share is not None:
            parts.append(f"{name} {share:.0%}" + (f" (distance {distance:.2g})" if distance else ""))
    floor = mean("credit/floor")
    end = f"; noise floor {floor:.1g}" if floor is not None else ""
    return f"responses whose credit went by relevance: {', '.join(parts)}{end}" if parts else ""
