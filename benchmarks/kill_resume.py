"""Kill a training run again and again, resume it each time, and compare it with one that nobody disturbed.

    python -m benchmarks.kill_resume                       # the embedded policy and task, 10 kills
    python -m benchmarks.kill_resume --kills 3 -- model.path=my-model trainer.steps=20

Arguments after ``--`` are settings of the run. Prints each kill, and OK where metrics.jsonl is the same line
for line (keys under seconds/ aside) and summary.json says that every start resumed; exit code 1 otherwise.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

SETTINGS = (
    "trainer.steps=30",
    "trainer.checkpoint_every=3",
    "eval.limit=20",
    "eval.every=10",
    "log.samples=0",
    "log.progress=false",
)
PATIENCE = 600  # seconds for a start to get going


def start(folder: Path, settings: list[str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "creditlib.train", *SETTINGS, *settings, f"run.dir={folder}"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL)


def summary(folder: Path) -> dict[str, Any]:
    path = folder / "summary.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return found


def lines(folder: Path) -> list[dict[str, Any]]:
    path = folder / "metrics.jsonl"
    text = path.read_text() if path.exists() else ""
    rows = [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
    return [{key: value for key, value in row.items() if not key.startswith("seconds/")} for row in rows]


def wait_until_it_runs(process: subprocess.Popen[bytes], folder: Path, starts: int) -> bool:
    """Whether start number `starts` (from 0) of the run has loaded everything and said so in summary.json."""
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < deadline:
        found = summary(folder)
        if found and len(found["resumed_from"]) >= starts:
            return True
        time.sleep(0.02)
    return process.poll() == 0


def undisturbed(folder: Path, settings: list[str]) -> float:
    """Seconds of a whole run after its start-up."""
    process = start(folder, settings)
    wait_until_it_runs(process, folder, 0)
    begin = time.monotonic()
    if process.wait() != 0:
        raise SystemExit("the undisturbed run failed")
    return time.monotonic() - begin


def last_step(folder: Path) -> int:
    return max((row["step"] for row in lines(folder)), default=0)


def disturbed(
    folder: Path, settings: list[str], targets: list[int], pause: float, generator: random.Random
) -> int:
    """Kill each start when it has written its target step and a moment of up to `pause` seconds has passed.

    Returns:
        The number of kills that hit a living process.
    """
    for number, target in enumerate(targets):
        process = start(folder, settings)
        if not wait_until_it_runs(process, folder, number):
            raise SystemExit(f"start {number + 1} failed")
        while process.poll() is None and last_step(folder) < target:
            time.sleep(0.02)
        time.sleep(generator.uniform(0.0, pause))
        process.send_signal(signal.SIGKILL)
        if process.wait() == 0:
            print("  it had finished already")
            return number
        print(f"  kill {number + 1}: last step written {last_step(folder)}", flush=True)
    if start(folder, settings).wait() != 0:
        raise SystemExit("the last start failed")
    return len(targets)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--out", type=Path, help="folder for the two runs; a temporary one without it")
    parser.add_argument("settings", nargs="*")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        out: Path = options.out or Path(scratch)
        seconds = undisturbed(out / "whole", options.settings)
        steps, generator = last_step(out / "whole"), random.Random(options.seed)
        print(f"undisturbed: {steps} steps in {seconds:.1f} s")
        targets = sorted(generator.randrange(max(steps - 2, 1)) for _ in range(options.kills))
        done = disturbed(out / "killed", options.settings, targets, 1.5 * seconds / steps, generator)
        resumed = summary(out / "killed")["resumed_from"]
        same = lines(out / "whole") == lines(out / "killed")
        print(f"{done} kills, resumed from steps {resumed}, lines {'equal' if same else 'DIFFER'}")
    fine = same and done == len(resumed) == options.kills
    print("OK" if fine else "FAILED")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
