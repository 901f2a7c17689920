"""Verdicts a second of a verifier with worker processes: what the benchmarks of verifiers share."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any


def options(about: str | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    return parser.parse_args()


def measure(verifier: AbstractContextManager[Any], jobs: Sequence[Any], repeats: int) -> list[Any]:
    """Judge all jobs once and `repeats` times again, and print both rates; the last checks.

    `cold` includes starting the workers, `warm` is the best of the repeats.
    """
    seconds = []
    with verifier as judge:
        for _ in range(1 + repeats):
            start = time.perf_counter()
            checks = judge.check_many(jobs)
            seconds.append(time.perf_counter() - start)
    print(f"cold        {len(jobs) / seconds[0]:8,.0f} a second")
    print(f"warm        {len(jobs) / min(seconds[1:]):8,.0f} a second")
    found: list[Any] = checks
    return found


def measure_alone(judge: Callable[[Any], object], jobs: Sequence[Any]) -> None:
    """The same in this process, without workers."""
    start = time.perf_counter()
    for job in jobs:
        judge(job)
    seconds = time.perf_counter() - start
    print(f"one process {len(jobs) / seconds:8,.0f} a second, {1e6 * seconds / len(jobs):.0f} us each")
