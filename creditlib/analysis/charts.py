"""Which metrics a report shows, in which chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from creditlib.analysis.curves import Curve, curve, is_number
from creditlib.analysis.runs import Group

Bounds = tuple[float | None, float | None]  # lowest and highest value there can be; None: no bound

SHARE: Bounds = (0.0, 1.0)
POSITIVE: Bounds = (0.0, None)
ANY: Bounds = (None, None)


@dataclass(frozen=True)
class Series:
    """A group's curve in a chart; `role` is "value", or "floor" for the noise floor below it."""

    group: int
    curve: Curve
    role: str = "value"


@dataclass(frozen=True)
class Chart:
    """Curves that share their axes."""

    title: str
    meaning: str
    series: tuple[Series, ...]
    bounds: Bounds


@dataclass(frozen=True)
class Section:
    """Charts that belong together."""

    name: str
    charts: tuple[Chart, ...]


class Metric(NamedTuple):
    """A metric, or all of a family where `key` ends in "/"; the rest of their names goes into `title`."""

    key: str
    title: str
    meaning: str
    bounds: Bounds = ANY

    def covers(self, key: str) -> bool:
        return key == self.key or (self.key.endswith("/") and key.startswith(self.key))


REWARD = "reward/"
DISTANCE = "credit/distance/"
FLOOR = "credit/floor"
EVALUATION = Metric("eval/", "{}", "mean over held-out questions")
# What became of a reward in a response (creditlib.credit.mrtpo.OUTCOMES): numbers for a table.
OUTCOMES = (
    "by_relevance",
    "below_floor",
    "not_finite",
    "no_information",
    "one_token",
    "overflow",
    "no_advantage",
)

# A metric belongs to the first that covers it.
METRICS: Mapping[str, Sequence[Metric]] = {
    "rewards": [
        Metric("response/earned", "earned", "mean place of the rewards between worst and best", SHARE),
        Metric("response/perfect", "perfect", "share of responses with all rewards at their best", SHARE),
        Metric(REWARD, "{}", "mean reward of a step's responses"),
    ],
    "length": [
        Metric("response/tokens", "response length", "mean number of tokens", POSITIVE),
        Metric("response/truncated", "cut off", "share of responses cut off at rollout.max_tokens", SHARE),
    ],
    "credit": [
        Metric("credit/ess", "evenness", "effective sample size over length; 1 = even", SHARE),
        Metric("credit/max_weight", "largest weight", "the largest weight of a token; 1 = even", POSITIVE),
        Metric(DISTANCE, "distance: {}", "mean replay distance; dotted: the noise floor", POSITIVE),
        Metric("credit/added", "added, std", "of what is added to the tokens' advantages", POSITIVE),
        Metric(
            "credit/at_tau/", "at tau: {}", "share of responses weighted at the lowest temperature", SHARE
        ),
        Metric(
            "credit/raised/", "raised: {}", "share of responses whose bounds raised the temperature", SHARE
        ),
        Metric(
            "credit/even/", "even: {}", "share of responses without a free token, or with equal scores", SHARE
        ),
        Metric("credit/not_finite/", "not finite: {}", "share of responses whose numbers are none", SHARE),
        Metric(
            "credit/no_advantage/", "no advantage: {}", "share of responses that earn nothing here", SHARE
        ),
        Metric("credit/", "{}", "what the credit strategy says of itself"),
    ],
    "health": [
        Metric("raw/", "raw: {}", "mean score before anything was taken off it"),
        Metric("spread/", "spread: {}", "median over groups of the standard deviation", POSITIVE),
        Metric("zero_spread/", "no spread: {}", "share of groups with one and the same reward", SHARE),
        Metric("advantage/std", "advantage, std", "of the final token advantages", POSITIVE),
        Metric("grad_norm", "gradient norm", "before clipping", POSITIVE),
        Metric("loss/entropy", "entropy", "mean over sampled tokens, in nats", POSITIVE),
        Metric("loss/approx_kl", "KL to the sampler", "k3 estimator, in nats"),
        Metric("loss/ratio_max", "largest ratio", "policy over the policy that sampled", POSITIVE),
        Metric("loss/clipped_high", "clipped above", "share of tokens held at the bound", SHARE),
        Metric("loss/clipped_low", "clipped below", "share of tokens held at the bound", SHARE),
        Metric("skipped", "updates lost", "to a loss or gradient that was not finite", POSITIVE),
    ],
}


def sections(groups: Sequence[Group], window: int) -> tuple[Section, ...]:
    """All charts that the runs have metrics for, with trailing means over `window` steps."""
    keys = _training_metrics(groups)
    tabled = {f"credit/{outcome}/{reward}" for reward in _replayed(keys) for outcome in OUTCOMES}
    left = [key for key in keys if key != FLOOR and key not in tabled]
    floor = tuple(replace(own, role="floor") for own in _series(groups, FLOOR, window))
    found = []
    for name, metrics in METRICS.items():
        charts = []
        for metric in metrics:
            for key in [key for key in left if metric.covers(key)]:
                left.remove(key)
                below = floor if metric.key == DISTANCE else ()
                charts.append(_chart(metric, key, (*_series(groups, key, window), *below)))
        found.append(Section(name, tuple(charts)))
    evaluations = [
        _chart(EVALUATION, key, tuple(_series(groups, key, window=1))) for key in _evaluation_metrics(groups)
    ]
    return (*found, Section("evaluation", tuple(evaluations)))


def station_seconds(group: Group) -> dict[str, float]:
    """Mean seconds a step of each station of training."""
    sums: dict[str, float] = {}
    for run in group.runs:
        for row in run.train:
            for key, value in row.items():
                if key.startswith("seconds/") and is_number(value):
                    station = key.removeprefix("seconds/")
                    sums[station] = sums.get(station, 0.0) + value
    steps = sum(len(run.train) for run in group.runs)
    return {station: total / steps for station, total in sums.items()}


def _chart(metric: Metric, key: str, series: tuple[Series, ...]) -> Chart:
    bounds = metric.bounds
    if metric.key in (REWARD, EVALUATION.key):  # those between 0 and 1 share an axis, so that they compare
        values = np.concatenate([own.curve.raw_S for own in series])
        bounds = SHARE if np.nanmin(values) >= 0 and np.nanmax(values) <= 1 else ANY
    return Chart(metric.title.format(key.removeprefix(metric.key)), metric.meaning, series, bounds)


def _series(groups: Sequence[Group], metric: str, window: int) -> list[Series]:
    curves = ((index, curve(group, metric, window)) for index, group in enumerate(groups))
    return [Series(index, found) for index, found in curves if found is not None]


def _training_metrics(groups: Sequence[Group]) -> list[str]:
    """Those that are a number somewhere, in the order of the metrics files."""
    rows = (row for group in groups for run in group.runs for row in run.train)
    return list(dict.fromkeys(key for row in rows for key, value in row.items() if is_number(value)))


def _evaluation_metrics(groups: Sequence[Group]) -> list[str]:
    """Held-out rewards of runs that were evaluated during training too; before and after need no curve."""
    runs = [run for group in groups for run in group.runs if len(run.evaluations) > 2]
    rows = [row for run in runs for row in run.evaluations]
    keys = dict.fromkeys(key for row in rows for key, value in row.items() if is_number(value))
    # A reward's mean stands with the ends of its interval, the mean length alone.
    return [key for key in keys if EVALUATION.covers(key) and f"{key}_low" in keys]


def _replayed(metrics: Sequence[str]) -> list[str]:
    """Rewards whose outcomes are those of replays, which a table shows."""
    first = f"credit/{OUTCOMES[0]}/"
    return [metric.removeprefix(first) for metric in metrics if metric.startswith(first)]
