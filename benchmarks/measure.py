"""Time, peak memory and models for the benchmarks. Each measurement runs in a process of its own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch


def peak_memory() -> float:
    """Highest resident memory of this process since `reset_peak_memory`, in MB."""
    status = Path("/proc/self/status").read_text()
    match = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert match is not None
    return int(match[1]) / 1024


def reset_peak_memory() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def in_new_process(module: str, arguments: Sequence[str]) -> dict[str, Any]:
    """Run ``python -m module arguments`` and read the JSON of its last line."""
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode:
        why = "killed, most likely out of memory" if done.returncode == -9 else done.stderr[-3000:]
        raise SystemExit(f"{module} {' '.join(arguments)} failed: {why}")
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def random_prompt(tokens: int, vocab: int, seed: int) -> tuple[int, ...]:
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randint(100, vocab, (tokens,), generator=generator).tolist())


def spread(values: Sequence[float], unit: str = "s") -> str:
    """Median, with the least and the most."""
    ordered = sorted(values)
    return f"{ordered[len(ordered) // 2]:.2f} {unit} ({ordered[0]:.2f} to {ordered[-1]:.2f})"


def median(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2]
