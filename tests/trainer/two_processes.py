"""Runs that must not depend on the number of processes; as a program, one of its processes."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import torch
from accelerate import PartialState

from creditlib.trainer.checkpoint import RunDirectory
from creditlib.trainer.evaluation import load_answers
from creditlib.trainer.metrics import MetricsLog
from creditlib.trainer.prompts import PromptStream
from creditlib.types import CreditlibError, Rollout
from tests.trainer import world

CASES: dict[str, dict[str, Any]] = {
    "grpo": {"loss": "grpo", "loss__kl_coef": 0.1},
    "dapo": {"loss": "dapo", "trainer__mask_truncated": True, "trainer__micro_batch": 3},
    "dr_grpo": {"loss": "dr_grpo", "loss__max_tokens": 7, "advantage": "grpo"},
    # A minibatch is one group, so one of two processes has no row of it.
    "gspo_token": {
        "loss": "gspo_token",
        "loss__clip_high": 0.3,
        "loss__clip_low": 0.3,
        "trainer__minibatches": 4,
    },
    "cispo": {"loss": "cispo", "advantage__norm": "token", "trainer__epochs": 2},
    "mrtpo": {"credit": "mrtpo"},
    "shuffled": {"credit": "mrtpo", "credit__control": "shuffled"},
    "datc": {"credit": "datc", "advantage": "grpo", "advantage__norm": "none"},
    "red": {"credit": "red"},
    # Three prompts for two processes; the first update's gradient is not finite, on one process alone.
    "nan": {"trainer__prompts_per_step": 3, "trainer__minibatches": 3},
    "dynamic": {
        "trainer__dynamic_sampling": True,
        "trainer__prompts_per_step": 3,
        "trainer__max_resamples": 3,
    },
    # Whole runs that sample, evaluate and save; the second asks fewer questions than there are processes.
    "run": {"eval__limit": 3, "eval__every": 2},
    "run with one question": {"eval__limit": 1, "trainer__steps": 1},
}


class Flat(world.Words):
    """All responses earn the same but those to every fourth prompt, so that dynamic sampling leaves a process
    without rows."""

    def _judge(self, prompt: world.Prompt, words: list[str]) -> dict[str, world.Check]:
        number = int(prompt.id.split("/")[1].split("#")[0])
        return super()._judge(prompt, words) if number % 4 == 0 else {"even": world.Check(0.5)}


def record(name: str, folder: Path) -> dict[str, Any]:
    settings = CASES[name]
    whole = name.startswith("run")
    policy = world.policy(lora=whole)
    run = world.config(folder / name, **settings)
    task = Flat() if name == "dynamic" else world.Informed() if "credit" in settings else world.Words()
    engine = world.engine(policy) if whole else world.Scripted()
    directory = None
    if whole and PartialState().is_main_process:
        directory = RunDirectory(Path(run.run.dir), run.model_dump(mode="json"))
    models = {"taste": world.reward_model()} if name in ("datc", "red") else None
    trainer = world.trainer(run, policy, task=task, engine=engine, directory=directory, models=models)
    if name == "nan":
        break_once(trainer)
    if whole:
        trainer.run()
        weights = torch.cat([p.detach().flatten() for p in trainer.optimizer.parameters])
        found: dict[str, Any] = {"gradients": [weights], "metrics": [], "refused": "", "updates_lost": 0}
        if directory:
            directory.close()
            for row in MetricsLog(directory.path / "metrics.jsonl").rows():
                numbers = {key: math.nan if value is None else value for key, value in row.items()}
                found["metrics"].append(world.without_times({**numbers, "phase": row["phase"] == "eval"}))
            answers = load_answers(directory.path / "evaluations" / "step-000000.jsonl")
            found["order"] = [answer.prompt for answer in answers]
        return found
    gradients, metrics = world.updates_of(trainer, steps=2)
    lost = sum(row["skipped"] for row in metrics)
    return {"gradients": gradients, "metrics": metrics, "refused": refusal(), "updates_lost": lost}


def refusal() -> str:
    """The message about a step with fewer prompts than processes, told for two whatever their number."""
    try:
        if PartialState().num_processes > 1:
            world.trainer(world.config(trainer__prompts_per_step=1), world.policy())
        return "refused" if PartialState().num_processes == 1 else "accepted"
    except CreditlibError as error:
        assert "trainer.prompts_per_step=1" in str(error)
        return "refused"


def break_once(trainer: world.Trainer) -> None:
    """Make the first scored row that answers the first prompt of the run worth NaN, once."""
    forward = trainer.scorer.forward
    (first,) = PromptStream(trainer.task.prompts("train"), 0).take(1)
    broken = []

    def once(rollout: Rollout, rows: list[int], **settings: Any) -> Any:
        logps, entropy = forward(rollout, rows, **settings)
        ids = {rollout.prompts[int(rollout.group_B[row])].id for row in rows}
        if first.id in ids and torch.is_grad_enabled() and not broken:
            broken.append(True)
            logps = logps * float("nan")
        return logps, entropy

    trainer.scorer.forward = once  # type: ignore[method-assign]


if __name__ == "__main__":
    out = Path(sys.argv[1])
    PartialState(cpu=True)
    found = {name: record(name, out / "together") for name in CASES}
    if PartialState().is_main_process:
        torch.save(found, out / "together.pt")
    # Left open, the group's threads abort about one process of ten at its end.
    PartialState().destroy_process_group()
