"""Held-out rewards before and after training, over all runs of a group."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from creditlib.analysis.runs import Group, Run, read_lines
from creditlib.trainer.metrics import mean_interval

Question = tuple[str, str, str]  # split, mode, prompt
Answers = dict[Question, Mapping[str, Any]]  # the rewards of its answers


@dataclass(frozen=True)
class Interval:
    """A mean and its 95 % interval over questions."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Outcome:
    """One reward on one held-out split. Each question counts with its mean over the runs; `runs` are the
    means before and after, run by run. Without a second evaluation, `after` and `change` are None.
    """

    group: int
    split: str
    mode: str
    reward: str
    questions: int
    before: Interval
    after: Interval | None
    change: Interval | None
    runs: tuple[tuple[float, float | None], ...]


def outcomes(groups: Sequence[Group]) -> list[Outcome]:
    """Before and after for each group, split, decoding and reward.

    Only runs that have both are in a group's figures; where none has, they are of the first evaluation alone.
    """
    found: list[Outcome] = []
    for index, group in enumerate(groups):
        pairs = [_first_and_last(run) for run in group.runs]
        both = [(first, last) for first, last in pairs if first and last]
        if both:
            found += _compare(index, [first for first, _ in both], [last for _, last in both])
        elif started := [first for first, _ in pairs if first]:
            found += _compare(index, started, [])
    return found


def _compare(group: int, before: Sequence[Answers], after: Sequence[Answers]) -> list[Outcome]:
    cells: dict[tuple[str, str, str], list[str]] = {}
    for (split, mode, prompt), rewards in before[0].items():
        for reward in rewards:
            cells.setdefault((split, mode, reward), []).append(prompt)
    found = []
    for (split, mode, reward), prompts in cells.items():
        columns = []
        for prompt in prompts:
            key = (split, mode, prompt)
            column = [_number(answers, key, reward) for answers in (*before, *after)]
            if not any(map(math.isnan, column)):
                columns.append(column)
        if not columns:
            continue
        runs = len(before)
        old = [fmean(column[:runs]) for column in columns]
        new = [fmean(column[runs:]) for column in columns] if after else []
        means = [fmean(values) for values in zip(*columns, strict=True)]
        found.append(
            Outcome(
                group=group,
                split=split,
                mode=mode,
                reward=reward,
                questions=len(columns),
                before=Interval(*mean_interval(old)),
                after=Interval(*mean_interval(new)) if new else None,
                change=Interval(*mean_interval([b - a for a, b in zip(old, new, strict=True)]))
                if new
                else None,
                runs=tuple((means[run], means[runs + run] if new else None) for run in range(runs)),
            )
        )
    return found


def _first_and_last(run: Run) -> tuple[Answers, Answers]:
    """The answers of the first and of the last evaluation; the last is empty where there is only one."""
    files = sorted((run.folder / "evaluations").glob("step-*.jsonl"))
    return (_answers(files[0]) if files else {}), (_answers(files[-1]) if len(files) > 1 else {})


def _answers(file: Path) -> Answers:
    return {
        (str(row.get("split")), str(row.get("mode")), str(row.get("prompt"))): row.get("rewards") or {}
        for row in read_lines(file, [])
    }


def _number(answers: Answers, question: Question, reward: str) -> float:
    value = answers.get(question, {}).get(reward)
    return math.nan if value is None else float(value)
