"""Do token-level weights help? The embedded policy on text-to-SQL under several credit strategies and seeds.

    python -m benchmarks.learning                  # 5 seeds, every arm, one run after another
    python -m benchmarks.learning --jobs 2         # two runs at a time, on half of the cores each
    python -m benchmarks.learning --seeds 3 --arms gdpo,mrtpo trainer.steps=60

All start from one policy that gives its answers between other tags than those it was made with: a short warm
start brings it to half of the format reward. `--start embedded` takes the embedded policy as it is, which has
the tags already. Every arm has the same rollouts: steps, prompts, responses.
Arguments after the options go to `python -m creditlib.train`. Runs lie in runs/learning/<arm>-seed<n>; a
finished one is not run again, so that more seeds or arms can be added later. The table compares each arm with
GDPO on the same questions and seeds.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from scipy.stats import t as student

from creditlib.trainer.evaluation import Answer, load_answers
from creditlib.trainer.metrics import MetricsLog

ARMS = {
    "grpo": "credit=uniform advantage=grpo",
    "gdpo": "credit=uniform advantage=gdpo",
    "mrtpo": "credit=mrtpo advantage=gdpo",
    "mrtpo-25": "credit=mrtpo credit.beta=0.25 advantage=gdpo",
    "mrtpo-75": "credit=mrtpo credit.beta=0.75 advantage=gdpo",
    "joint": "credit=mrtpo credit.replay=joint advantage=gdpo",
    "shuffled": "credit=mrtpo credit.control=shuffled advantage=gdpo",
}
BASELINE = "gdpo"
REWARD, GOAL = "format", 0.8  # steps until this reward is this high
TAGS = ["task.tags=['<answer>','</answer>']"]
WARM_START = ["sft.max_steps=40", "sft.learning_rate=1e-4", "eval.limit=0"]
SETTINGS = ["trainer.steps=80", "eval.limit=400", "eval.greedy=false", "ledger.steps=0", "log.progress=false"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--arms", default=",".join(ARMS), help="with commas")
    parser.add_argument("--start", choices=["warm", "embedded"], default="warm")
    parser.add_argument("--folder", default="runs/learning")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    options, overrides = parser.parse_known_args()
    arms = options.arms.split(",")
    if unknown := set(arms) - set(ARMS):
        raise SystemExit(f"no such arm: {', '.join(sorted(unknown))}; there are {', '.join(ARMS)}")
    start = Path(options.folder) / "start"
    folders = {
        (arm, seed): Path(options.folder) / f"{arm}-seed{seed}"
        for seed in range(options.seeds)
        for arm in arms
    }
    threads = max(1, (os.cpu_count() or 1) // options.jobs)
    began: list[str] = []
    if options.start == "warm":
        _run("creditlib.sft", ["task=text2sql", *TAGS, *WARM_START, f"run.dir={start}"], threads)
        began = [*TAGS, f"model.path={start}"]

    def train(arm: str, seed: int) -> None:
        folder = folders[arm, seed]
        own = [*began, *ARMS[arm].split(), f"seed={seed}", f"run.dir={folder}"]
        _run("creditlib.train", ["task=text2sql", *SETTINGS, *own, *overrides], threads)
        print(f"{folder} is done", flush=True)

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(lambda run: train(*run), folders))
    print(table(arms, options.seeds, folders))


def _run(module: str, arguments: Sequence[str], threads: int) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    subprocess.run(
        [sys.executable, "-m", module, *arguments], check=True, stdout=subprocess.DEVNULL, env=environment
    )


def table(arms: list[str], seeds: int, folders: dict[tuple[str, int], Path]) -> str:
    """Held-out sampled accuracy of each arm, its difference from the baseline, and how soon it was there."""
    lines = ["| arm | before | after | against gdpo | steps to format 0.8 |", "|---|---|---|---|---|"]
    for arm in arms:
        before, after = ([_accuracy(folders[arm, seed], which) for seed in range(seeds)] for which in (0, -1))
        steps = [_steps_to_goal(folders[arm, seed]) for seed in range(seeds)]
        difference = "" if arm == BASELINE or BASELINE not in arms else _difference(arm, seeds, folders)
        lines.append(
            f"| {arm} | {np.mean(before):.3f} | {np.mean(after):.3f} ({min(after):.3f} to {max(after):.3f}) "
            f"| {difference} | {_show_steps(steps)} |"
        )
    return "\n".join(lines)


def _answers(folder: Path, which: int) -> list[Answer]:
    files = sorted((folder / "evaluations").glob("step-*.jsonl"))
    return [answer for answer in load_answers(files[which]) if answer.mode == "sampled"]


def _accuracy(folder: Path, which: int) -> float:
    return float(np.mean([answer.rewards["execution"] for answer in _answers(folder, which)]))


def _difference(arm: str, seeds: int, folders: dict[tuple[str, int], Path]) -> str:
    """Paired by seed and question; the interval is Student's, over seeds: what another seed would give."""
    changes = np.array(
        [_accuracy(folders[arm, seed], -1) - _accuracy(folders[BASELINE, seed], -1) for seed in range(seeds)]
    )
    margin = student.ppf(0.975, seeds - 1) * changes.std(ddof=1) / math.sqrt(seeds)
    mean = changes.mean()
    better = int((changes > 0).sum())
    return f"{mean:+.3f} ({mean - margin:+.3f} to {mean + margin:+.3f}), better in {better} of {seeds} seeds"


def _steps_to_goal(folder: Path) -> float:
    """Steps before the mean over three steps is at the goal; NaN if never."""
    rows = [row for row in MetricsLog(folder / "metrics.jsonl").rows() if row["phase"] == "train"]
    values = [row[f"reward/{REWARD}"] for row in rows]
    for step in range(len(values) - 2):
        if np.mean(values[step : step + 3]) >= GOAL:
            return float(step)
    return math.nan


def _show_steps(steps: list[float]) -> str:
    reached = [step for step in steps if not math.isnan(step)]
    missed = f", not in {len(steps) - len(reached)}" if len(reached) < len(steps) else ""
    return f"{np.median(reached):.0f}{missed}" if reached else "never"


if __name__ == "__main__":
    main()
