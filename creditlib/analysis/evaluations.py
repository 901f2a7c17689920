"""Held-out rewards before and after training, over all runs of a group."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from creditlib.analysis.curves import is_number
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

    After is the last evaluation of the runs that have come farthest: those which are still at an earlier one
    are left out. Where no run has a second one, the figures are of the first alone.
    """
    found: list[Outcome] = []
    for index, group in enumerate(groups):
        ends = [own for own in map(_first_and_last, group.runs) if own]
        last = max((own[-1][0] for own in ends if len(own) > 1), default=None)
        if last is not None:
            both = [own for own in ends if len(own) > 1 and own[-1][0] == last]
            found += _compare(index, [own[0][1] for own in both], [own[-1][1] for own in both])
        elif ends:
            found += _compare(index, [own[0][1] for own in ends], [])
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


def _first_and_last(run: Run) -> list[tuple[str, Answers]]:
    """File name and answers of the first and of the last evaluation that holds an answer; one where these are
    the same, none where there is none. Those between are not read.
    """
    files = sorted((run.folder / "evaluations").glob("step-*.jsonl"))
    ends = [
        next(((file.name, own) for file in order if (own := _answers(file))), None)
        for order in (files, reversed(files))
    ]
    return list({end[0]: end for end in ends if end}.values())


def _answers(file: Path) -> Answers:
    return {
        (str(row.get("split")), str(row.get("mode")), str(row.get("prompt"))): row["rewards"]
        for row in read_lines(file, [])
        if isinstance(row.get("rewards"), dict)
    }


def _number(answers: Answers, question: Question, reward: str) -> float:
    value = answers.get(question, {}).get(reward)
    return float(value) if value is not None and is_number(value) else math.nan
