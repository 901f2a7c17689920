"""metrics.jsonl, always; experiment trackers, where asked for; and intervals."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import time
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from creditlib.trainer.files import MAKE_ROOM, finite, write_atomically
from creditlib.types import CreditlibError

_RECENT = ("reward/", "raw/", "response/tokens")


class MetricsLog:
    """One JSON object a line: ``{"step": ..., "phase": "train" | "eval", ...}``. Keys under ``seconds/`` are
    the only ones that two equal runs may differ in."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def rewind(self, step: int) -> None:
        """Forget what came after `step`, and a last line that a kill cut short. Negative: forget all."""
        rows = [row for row in self.rows() if row["step"] <= step]
        write_atomically(self.path, "".join(json.dumps(row) + "\n" for row in rows))

    def write(self, row: Mapping[str, Any]) -> None:
        """Append a line; NaN becomes null.

        Raises:
            CreditlibError: the disk is full or gone.
        """
        try:
            with open(self.path, "a", encoding="utf-8") as file:
                file.write(json.dumps(finite(row)) + "\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise CreditlibError(f"cannot write {self.path}: {error.strerror}. {MAKE_ROOM}") from error

    def rows(self) -> list[dict[str, Any]]:
        """What was written, without a last line that a kill cut short.

        Raises:
            CreditlibError: another line is not as it was written.
        """
        if not self.path.exists():
            return []
        rows = []
        for number, line in enumerate(self.path.read_bytes().split(b"\n")[:-1], start=1):
            try:
                row = json.loads(line)
                if not isinstance(row, dict) or not isinstance(row.get("step"), int):
                    raise ValueError("expected an object with a step")
            except ValueError as error:
                raise CreditlibError(
                    f"{self.path}, line {number}, is damaged ({error}): delete the line; the checkpoints are "
                    "whole, and the same command goes on from the last one"
                ) from error
            rows.append(row)
        return rows


def recent_means(rows: Sequence[Mapping[str, Any]], count: int = 25) -> dict[str, float]:
    """Of rewards and response length over a run's last `count` rollouts (DATC's tables are of 25)."""
    last = [row for row in rows if row["phase"] == "train"][-count:]
    keys = [key for key in dict.fromkeys(key for row in last for key in row) if key.startswith(_RECENT)]
    values = {key: [row[key] for row in last if row.get(key) is not None] for key in keys}
    return {key: sum(own) / len(own) for key, own in values.items() if own}


def require_trackers(names: Sequence[str]) -> None:
    """Raise where a tracker that the settings name is not installed; each is a package of the same name."""
    for name in names:
        if importlib.util.find_spec(name) is None:
            raise CreditlibError(f"log.trackers names {name}, which is not installed: pip install {name}")


class Stopwatch:
    """Seconds a station, by name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start

    def metrics(self) -> dict[str, float]:
        return {f"seconds/{name}": round(seconds, 4) for name, seconds in self.seconds.items()}


def mean_interval(values: Sequence[float], *, seed: int = 0, draws: int = 4000) -> tuple[float, float, float]:
    """Mean and its 95 % interval by the percentile bootstrap over `values` (one a question), NaN left out."""
    clean = np.asarray([value for value in values if not math.isnan(value)])
    if not len(clean):
        return math.nan, math.nan, math.nan
    generator = np.random.default_rng(seed)
    means = [clean[generator.integers(0, len(clean), len(clean))].mean() for _ in range(draws)]
    low, high = np.quantile(means, [0.025, 0.975])
    return float(clean.mean()), float(low), float(high)


def clustered_interval(
    clusters: Sequence[Hashable], values: Sequence[float], *, seed: int = 0, draws: int = 4000
) -> tuple[float, float, float]:
    """Mean over values, and its 95 % interval by the bootstrap over clusters of values that depend on each
    other.

    Args:
        clusters: of each value, the prompt say.
        values: none of them NaN, at least one.
        seed: of the draws.
        draws: how many.
    """
    low, high = ratio_interval(clusters, values, [1.0] * len(values), seed=seed, draws=draws)
    return float(np.mean(values)), low, high


def ratio_interval(
    clusters: Sequence[Hashable],
    values: Sequence[float],
    whole: Sequence[float],
    *,
    seed: int = 0,
    draws: int = 4000,
) -> tuple[float, float]:
    """95 % interval of sum(values) / sum(whole) by the bootstrap over clusters, drawn together."""
    numbers = {cluster: number for number, cluster in enumerate(dict.fromkeys(clusters))}
    of_V = np.array([numbers[cluster] for cluster in clusters])
    value_C, whole_C = np.bincount(of_V, values), np.bincount(of_V, whole)
    generator = np.random.default_rng(seed)
    ratios = []
    for _ in range(draws):
        drawn = generator.integers(0, len(numbers), len(numbers))
        ratios.append(value_C[drawn].sum() / whole_C[drawn].sum())
    low, high = np.quantile(ratios, [0.025, 0.975])
    return float(low), float(high)
