"""Does credit by the reward model's gradient help? The embedded policy and reward model, arms and seeds.

    python -m benchmarks.preference --jobs 2       # 5 seeds, every arm, two runs at a time
    python -m benchmarks.preference --seeds 2 --arms grpo,datc trainer.steps=40

The policy is trained on the embedded reward model's score alone. Whether its queries return what they should
is watched, and says whether a higher score means better answers; the KL divergence says how far the policy
went. Arguments after the options go to `python -m creditlib.train`. Runs lie in
runs/preference/<arm>-seed<n>; a finished one is not run again.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.arms import Runs, chosen, parser, show
from creditlib.trainer.evaluation import Answer

ARMS = {
    "grpo": "credit=uniform",
    "datc": "credit=datc",
    "datc-2": "credit=datc credit.lam=2.0",
    "datc-8": "credit=datc credit.lam=8.0",
    "p2t": "credit=p2t",
    "p2t-paper": "credit=p2t credit.mode=paper",
    "red": "credit=red",
    "norm-product": "credit=datc credit.direction=norm_product",
    "shuffled": "credit=datc credit.control=shuffled",
}
BASELINE = "grpo"
SETTINGS = [
    "task=preference",
    "task.rewards=[execution]",  # watched
    "advantage.weights=[0,1]",
    "loss.kl_coef=0.01",
    "trainer.steps=60",
    "trainer.prompts_per_step=16",
    "eval.limit=400",
    "eval.greedy=false",
    "ledger.steps=0",
    "log.progress=false",
]
LAST = 25  # rollouts whose mean KL is shown
NEAR = 0.1  # nats a token: arms are compared when they have gone this far
WINDOW = 5  # steps of a trailing mean


def main() -> None:
    options, overrides = parser(__doc__ or "", ARMS, "runs/preference").parse_known_args()
    arms = chosen(options, ARMS)
    runs = Runs(Path(options.folder), options.seeds)
    runs.train(arms, lambda arm: [*SETTINGS, *ARMS[arm].split(), *overrides], options.jobs)
    print(table(arms, runs))
    print(f"\nWhen a run's KL first reaches {NEAR} (trailing means of {WINDOW} steps):\n")
    print(near_table(arms, runs))


def near_table(arms: list[str], runs: Runs) -> str:
    """Training rewards of each arm when its runs have gone equally far from the start."""
    lines = ["| arm | runs | step | score | execution |", "|---|---|---|---|---|"]
    for arm in arms:
        found = [point for seed in range(runs.seeds) if (point := _near(runs, arm, seed)) is not None]
        step, score, execution = np.mean(found, 0) if found else (np.nan,) * 3
        lines.append(f"| {arm} | {len(found)} | {step:.0f} | {score:.2f} | {execution:.3f} |")
    return "\n".join(lines)


def _near(runs: Runs, arm: str, seed: int) -> tuple[float, float, float] | None:
    """Step, score and execution when the KL divergence first reaches `NEAR`; None where it never does."""
    kl, score, execution = (
        np.convolve(runs.metric(arm, seed, key), np.ones(WINDOW) / WINDOW, "valid")
        for key in ("loss/reference_kl", "reward/preference", "reward/execution")
    )
    reached = np.flatnonzero(kl >= NEAR)
    if not len(reached):
        return None
    return float(reached[0] + WINDOW), float(score[reached[0]]), float(execution[reached[0]])


def table(arms: list[str], runs: Runs) -> str:
    """Held-out score, accuracy and length of each arm, its differences from the baseline, and the KL."""
    lines = [
        "| arm | score | after | against grpo | execution | after | against grpo | tokens | KL |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for arm in arms:
        cells = [arm]
        for value in (_score, _execution):
            before, after = (runs.held_out_of_seeds(arm, which, value) for which in (0, -1))
            difference = runs.difference(arm, BASELINE, value) if BASELINE in arms else ""
            cells += [f"{before.mean():.3f}", show(after), difference]
        tokens = runs.held_out_of_seeds(arm, -1, _tokens)
        kl = [np.mean(runs.metric(arm, seed, "loss/reference_kl")[-LAST:]) for seed in range(runs.seeds)]
        lines.append("| " + " | ".join([*cells, f"{tokens.mean():.1f}", f"{np.mean(kl):.3f}"]) + " |")
    return "\n".join(lines)


def _score(answer: Answer) -> float:
    return answer.rewards["preference"]


def _execution(answer: Answer) -> float:
    return answer.rewards["execution"]


def _tokens(answer: Answer) -> float:
    return answer.tokens


if __name__ == "__main__":
    main()
