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

import math
from pathlib import Path

import numpy as np

from benchmarks.arms import Runs, chosen, command, parser, show
from creditlib.trainer.evaluation import Answer

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
SETTINGS = [
    "trainer.steps=80",
    "trainer.prompts_per_step=32",
    "eval.limit=400",
    "eval.greedy=false",
    "ledger.steps=0",
    "log.progress=false",
]


def main() -> None:
    options_parser = parser(__doc__ or "", ARMS, "runs/learning")
    options_parser.add_argument("--start", choices=["warm", "embedded"], default="warm")
    options, overrides = options_parser.parse_known_args()
    arms = chosen(options, ARMS)
    began: list[str] = []
    if options.start == "warm":
        start = Path(options.folder) / "start"
        command("creditlib.sft", ["task=text2sql", *TAGS, *WARM_START, f"run.dir={start}"], options.jobs)
        began = [*TAGS, f"model.path={start}"]
    runs = Runs(Path(options.folder), options.seeds)
    runs.train(
        arms,
        lambda arm: ["task=text2sql", *SETTINGS, *began, *ARMS[arm].split(), *overrides],
        options.jobs,
    )
    print(table(arms, runs))


def table(arms: list[str], runs: Runs) -> str:
    """Held-out sampled accuracy of each arm, its difference from the baseline, and how soon it was there."""
    lines = ["| arm | before | after | against gdpo | steps to format 0.8 |", "|---|---|---|---|---|"]
    for arm in arms:
        before, after = (runs.held_out_of_seeds(arm, which, _execution) for which in (0, -1))
        steps = [_steps_to_goal(runs.metric(arm, seed, f"reward/{REWARD}")) for seed in range(runs.seeds)]
        difference = runs.difference(arm, BASELINE, _execution) if BASELINE in arms else ""
        lines.append(f"| {arm} | {before.mean():.3f} | {show(after)} | {difference} | {_show_steps(steps)} |")
    return "\n".join(lines)


def _execution(answer: Answer) -> float:
    return answer.rewards["execution"]


def _steps_to_goal(values: list[float]) -> float:
    """Steps before the mean over three steps is at the goal; NaN if never."""
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
