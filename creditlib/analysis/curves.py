"""Curves: a metric over the steps, of all runs that differ only in the seed."""

from __future__ import annotations

import math
import sys
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from creditlib.analysis.runs import Group

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """A metric at S steps. All but `raw` are of trailing means, which are taken run by run; NaN where no run
    has the metric.
    """

    steps_S: NDArray[np.int64]
    raw_S: Array  # mean over the runs, each step by itself
    mean_S: Array
    low_S: Array  # the lowest and the highest run
    high_S: Array
    median_S: Array
    lower_S: Array  # quartiles over the runs
    upper_S: Array
    runs_S: NDArray[np.int64]  # how many runs have the metric at that step

    @property
    def last(self) -> float:
        """The mean at the last step that has one."""
        known = self.mean_S[~np.isnan(self.mean_S)]
        return float(known[-1]) if len(known) else math.nan


def curve(group: Group, metric: str, window: int) -> Curve | None:
    """A metric of a group's runs, from evaluations where it begins with ``eval/``, else from training.

    None where no run has it.
    """
    values: list[dict[int, float]] = []
    for run in group.runs:
        rows = run.evaluations if metric.startswith("eval/") else run.train
        found = {int(row["step"]): float(row[metric]) for row in rows if is_number(row.get(metric))}
        if found:
            values.append(found)
    if not values:
        return None
    steps = sorted({step for own in values for step in own})
    raw_RS = np.asarray([[own.get(step, math.nan) for step in steps] for own in values])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # steps without a value
        smooth_RS = np.stack([trailing_mean(raw_S, window) for raw_S in raw_RS])
        smooth_RS[np.isnan(raw_RS)] = np.nan  # a run that ended does not go on as a mean of its past
        lower_S, median_S, upper_S = np.nanquantile(smooth_RS, [0.25, 0.5, 0.75], axis=0)
        return Curve(
            steps_S=np.asarray(steps, np.int64),
            raw_S=np.nanmean(raw_RS, 0),
            mean_S=np.nanmean(smooth_RS, 0),
            low_S=np.nanmin(smooth_RS, 0),
            high_S=np.nanmax(smooth_RS, 0),
            median_S=median_S,
            lower_S=lower_S,
            upper_S=upper_S,
            runs_S=(~np.isnan(raw_RS)).sum(0),
        )


def trailing_mean(values_S: Array, window: int) -> Array:
    """Mean of each value and the `window` - 1 before it; NaN is left out, and remains where there is no
    other value.
    """
    window = min(window, max(1, len(values_S)))
    padded = np.concatenate([np.full(window - 1, np.nan), values_S])
    return np.asarray(np.nanmean(np.lib.stride_tricks.sliding_window_view(padded, window), -1))


def thin(curve: Curve, points: int) -> Curve:
    """The curve at no more than `points` of its steps, evenly chosen, the first and last among them."""
    steps = len(curve.steps_S)
    if steps <= points:
        return curve
    kept = np.unique(np.linspace(0, steps - 1, points).round().astype(np.int64))
    return Curve(**{name: values[kept] for name, values in vars(curve).items()})


def is_number(value: Any) -> bool:
    """Is it a finite number; metrics have null where there is nothing to report."""
    plain = isinstance(value, (int, float)) and not isinstance(value, bool)
    return plain and abs(value) <= sys.float_info.max  # a JSON integer has no bound
