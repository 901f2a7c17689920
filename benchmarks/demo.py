"""The demo's training over several seeds: how much held-out execution accuracy it gains, and how surely.

    python -m benchmarks.demo                     # seeds 0, 1, 2 of what `make demo` trains
    python -m benchmarks.demo --seeds 5 credit=uniform trainer.steps=60

Arguments after the options go to `python -m creditlib.train`. Runs lie in runs/demo-seed*; a finished one is
not run again.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

from creditlib.trainer.evaluation import load_answers, paired_change

REWARD = "execution"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--folder", default="runs")
    options, overrides = parser.parse_known_args()
    credit = [] if any(given.startswith("credit=") for given in overrides) else ["credit=mrtpo"]
    gains: dict[str, list[float]] = {}
    for seed in range(options.seeds):
        folder = Path(options.folder) / f"demo-seed{seed}"
        start = time.perf_counter()
        subprocess.run(
            [
                sys.executable,
                "-m",
                "creditlib.train",
                f"seed={seed}",
                f"run.dir={folder}",
                *credit,
                *overrides,
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        seconds = time.perf_counter() - start
        files = sorted((folder / "evaluations").glob("step-*.jsonl"))
        for key, row in paired_change(load_answers(files[0]), load_answers(files[-1])).items():
            if key.endswith(f"/{REWARD}"):
                gains.setdefault(key, []).append(row["change"])
                interval = f"{row['low']:+.3f} – {row['high']:+.3f}"
                numbers = f"{row['before']:.3f} → {row['after']:.3f}   {row['change']:+.3f} ({interval})"
                print(f"seed {seed}  {key:32} {numbers}   {row['questions']} questions", flush=True)
        print(f"seed {seed}  {seconds:.0f} s", flush=True)
    for key, values in gains.items():
        print(f"mean of {len(values)} seeds  {key:32} {sum(values) / len(values):+.3f}")


if __name__ == "__main__":
    main()
