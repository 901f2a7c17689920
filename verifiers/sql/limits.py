"""What one query may cost."""

from __future__ import annotations

from dataclasses import dataclass

from creditlib.types import CreditlibError


@dataclass(frozen=True)
class Limits:
    """Budgets of one query.

    Attributes:
        steps: SQLite virtual-machine steps, the first limit and a deterministic one; each row returned counts
            as 100. Twenty million take 0.2 s; the most expensive of Spider's queries needs sixteen.
        seconds: CPU time, the second limit, for steps that are slow in themselves. It costs a worker process.
        wall_seconds: wall clock, for a process that waits. A verdict that it makes depends on the machine.
        rows: rows kept for comparison (as many as the gold has, if those are more).
        megabytes: text and blobs kept for comparison.
        comparisons: cells that the search for a column permutation may visit.
    """

    steps: int = 20_000_000
    seconds: float = 1.0
    wall_seconds: float = 10.0
    rows: int = 10_000
    megabytes: int = 32
    comparisons: int = 1_000_000

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value <= 0:
                raise CreditlibError(f"SQL limits: {name} must be positive, got {value}")


GOLD_LIMITS = Limits(steps=2_000_000_000, seconds=30.0, wall_seconds=300.0, rows=100_000, megabytes=64)
