"""Train a policy with several rewards, and see it get better.

    python -m creditlib.train                                     # the embedded policy and text-to-SQL task
    python -m creditlib.train advantage=grpo seed=1 trainer.steps=60
    python -m creditlib.train task=spider model=smollm2 trainer=default rollout.max_tokens=64
    python -m creditlib.train -m advantage=grpo,gdpo seed=0,1,2   # a sweep: a folder a job

A run writes config.yaml, metrics.jsonl, summary.json, evaluations/ and checkpoints/ into run.dir. The same
command with the same folder resumes it. docs/runs.md says more.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from creditlib import cli
from creditlib.config import RunConfig
from creditlib.types import Task


def train(config: RunConfig, task: Task | None = None) -> dict[str, Any]:
    """Train to the end, resuming where `run.dir` says; the summary (see docs/runs.md).

    Args:
        config: the run's settings.
        task: a ready task; None: the one that ``config.task`` names.
    """
    from accelerate import Accelerator

    from creditlib import assemble
    from creditlib.parts import build_task
    from creditlib.trainer.checkpoint import RunDirectory
    from creditlib.trainer.loop import Trainer
    from creditlib.trainer.metrics import require_trackers
    from creditlib.trainer.processes import Processes
    from creditlib.trainer.progress import Display
    from creditlib.trainer.prompts import training_prompts

    assemble.quiet_libraries()
    require_trackers(config.log.trackers)
    accelerator = Accelerator(
        cpu=config.model.device == "cpu",
        log_with=list(config.log.trackers) or None,
        project_dir=config.run.dir,
    )
    main = accelerator.is_main_process
    display = Display(quiet=not main, bar=config.log.progress)
    directory = RunDirectory(Path(config.run.dir), assemble.plain(config)) if main else None
    try:
        before = Processes(accelerator).from_first(directory.read_summary() if directory else {})
        if before.get("finished"):
            display.complete(config.run.dir)
            display.changes("held-out rewards, before and after training", before["change"])
            accelerator.end_training()
            return before
        if config.log.trackers:
            accelerator.init_trackers("creditlib", config={"run": str(assemble.plain(config))})
        with assemble.at_work(task or build_task(config.task)) as ready:
            policy = assemble.build_policy(config.model, config.seed)
            encoder = assemble.build_encoder(policy, config.prompt)
            engine = assemble.build_engine(policy, encoder, config.rollout, config.seed)
            prompts = training_prompts(ready)
            assemble.check_prompts(prompts, policy, encoder, config.rollout.max_tokens)
            models = assemble.build_reward_models(config.reward_model, policy)
            for model in models.values():
                model.check(prompts)
            trainer = Trainer(config, ready, policy, engine, accelerator, directory, display, prompts, models)
            summary = trainer.run()
        display.changes("held-out rewards, before and after training", summary.get("change", {}))
        display.say(f"everything is in {config.run.dir}")
        accelerator.end_training()
        return summary
    finally:
        if directory:
            directory.close()


if __name__ == "__main__":
    sys.exit(cli.main(train, schema=RunConfig, config_name="train", about=__doc__ or ""))
