"""Runs of several arms and seeds, some at a time, and how their held-out answers compare."""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import t as student

from creditlib.trainer.evaluation import Answer, load_answers
from creditlib.trainer.metrics import MetricsLog


def parser(about: str, arms: Mapping[str, str], folder: str) -> argparse.ArgumentParser:
    """Options that all comparisons have; what comes after them goes to `python -m creditlib.train`."""
    found = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--seeds", type=int, default=5)
    found.add_argument("--arms", default=",".join(arms), help="with commas")
    found.add_argument("--folder", default=folder)
    found.add_argument("--jobs", type=int, default=1, help="runs at a time")
    return found


def chosen(options: argparse.Namespace, arms: Mapping[str, str]) -> list[str]:
    names: list[str] = options.arms.split(",")
    if unknown := set(names) - set(arms):
        raise SystemExit(f"no such arm: {', '.join(sorted(unknown))}; there are {', '.join(arms)}")
    return names


def command(module: str, arguments: Sequence[str], jobs: int) -> None:
    """Run a command of creditlib's on its share of the cores."""
    threads = max(1, (os.cpu_count() or 1) // jobs)
    subprocess.run(
        [sys.executable, "-m", module, *arguments],
        check=True,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "OMP_NUM_THREADS": str(threads)},
    )


@dataclass(frozen=True)
class Runs:
    """Where the runs of each arm and seed lie."""

    folder: Path
    seeds: int

    def path(self, arm: str, seed: int) -> Path:
        return self.folder / f"{arm}-seed{seed}"

    def train(self, arms: Sequence[str], settings: Callable[[str], Sequence[str]], jobs: int) -> None:
        """Every arm with every seed; a finished run is not run again."""

        def one(arm: str, seed: int) -> None:
            folder = self.path(arm, seed)
            command("creditlib.train", [*settings(arm), f"seed={seed}", f"run.dir={folder}"], jobs)
            print(f"{folder} is done", flush=True)

        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(lambda run: one(*run), [(arm, seed) for seed in range(self.seeds) for arm in arms]))

    def held_out(self, arm: str, seed: int, which: int, value: Callable[[Answer], float]) -> float:
        """Mean over the sampled answers of the first (0) or last (-1) evaluation."""
        files = sorted((self.path(arm, seed) / "evaluations").glob("step-*.jsonl"))
        answers = [answer for answer in load_answers(files[which]) if answer.mode == "sampled"]
        return float(np.mean([value(answer) for answer in answers]))

    def metric(self, arm: str, seed: int, key: str) -> list[float]:
        """A metric's values over the steps."""
        rows = MetricsLog(self.path(arm, seed) / "metrics.jsonl").rows()
        return [row[key] for row in rows if row["phase"] == "train"]

    def held_out_of_seeds(self, arm: str, which: int, value: Callable[[Answer], float]) -> np.ndarray:
        """`held_out` of each seed."""
        return np.array([self.held_out(arm, seed, which, value) for seed in range(self.seeds)])

    def difference(self, arm: str, baseline: str, value: Callable[[Answer], float]) -> str:
        """At the end, paired by seed and question; the interval is Student's, over seeds."""
        if arm == baseline:
            return ""
        own, theirs = (self.held_out_of_seeds(name, -1, value) for name in (arm, baseline))
        changes = own - theirs
        margin = student.ppf(0.975, self.seeds - 1) * changes.std(ddof=1) / math.sqrt(self.seeds)
        mean, better = changes.mean(), int((changes > 0).sum())
        return (
            f"{mean:+.3f} ({mean - margin:+.3f} to {mean + margin:+.3f}), "
            f"better in {better} of {self.seeds} seeds"
        )


def show(values: np.ndarray) -> str:
    """Mean, with the least and the most."""
    return f"{values.mean():.3f} ({values.min():.3f} to {values.max():.3f})"
