"""Score a model, checkpoint or run folder on a task's held-out splits.

    python -m creditlib.evaluate model.path=runs/text2sql-tiny-uniform-gdpo-seed0
    python -m creditlib.evaluate task=spider model=smollm2 eval.limit=200 run.dir=runs/evaluate-smollm2

Writes the answers to every question with their rewards, and their means with 95 % intervals into run.dir.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from creditlib import cli
from creditlib.config import EvaluateConfig
from creditlib.types import Task


def evaluate(config: EvaluateConfig, task: Task | None = None) -> dict[str, float]:
    """Means of every reward, by split and decoding, with their intervals."""
    from creditlib import assemble
    from creditlib.parts import build_task
    from creditlib.rewards.judge import Judge
    from creditlib.trainer.evaluation import Evaluator, save_answers, summarise
    from creditlib.trainer.files import make_folder, write_json
    from creditlib.trainer.progress import Display

    assemble.require_one_process("an evaluation", "creditlib.evaluate")
    assemble.quiet_libraries()
    folder = Path(config.run.dir)
    make_folder(folder, f"run.dir={folder}")  # before the answers, which take long
    display = Display()
    with assemble.at_work(task or build_task(config.task)) as ready:
        policy = assemble.build_policy(config.model, config.seed)
        encoder = assemble.build_encoder(policy, config.prompt)
        engine = assemble.build_engine(policy, encoder, config.rollout, config.seed)
        models = assemble.build_reward_models(config.reward_model, policy)
        answers = Evaluator(ready, Judge(ready, models), engine, config.eval).run()
    metrics: dict[str, Any] = summarise(answers)
    save_answers(folder / "answers.jsonl", answers)
    write_json(folder / "evaluation.json", metrics)
    display.accuracy(f"held-out rewards of {policy.source}", metrics)
    display.say(f"answers and means are in {folder}")
    return metrics


if __name__ == "__main__":
    sys.exit(cli.main(evaluate, schema=EvaluateConfig, config_name="evaluate", about=__doc__ or ""))
