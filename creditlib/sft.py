"""Warm start: teach a policy a task's reference responses before reinforcement learning.

    python -m creditlib.sft task=spider model=smollm2 sft.minutes=20
    python -m creditlib.train task=spider model=smollm2 model.path=runs/sft-spider-smollm2-seed0

Cross-entropy on the response alone. The result is a run folder: `model.path` takes it, as does
`from_pretrained` its checkpoint.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from creditlib import cli
from creditlib.config import SftConfig
from creditlib.types import Task


def sft(config: SftConfig, task: Task | None = None) -> dict[str, Any]:
    """Train on the references of the task's training prompts; evaluate before and after.

    Returns:
        The summary: updates, and held-out rewards before and after with their paired change.
    """
    from creditlib import assemble
    from creditlib.parts import build_task
    from creditlib.policy.scoring import Scorer
    from creditlib.rewards.judge import Judge
    from creditlib.trainer.checkpoint import RunDirectory
    from creditlib.trainer.evaluation import Evaluator, paired_change, summarise
    from creditlib.trainer.files import write_json
    from creditlib.trainer.fitting import fit
    from creditlib.trainer.metrics import MetricsLog
    from creditlib.trainer.progress import Display
    from creditlib.trainer.prompts import training_prompts
    from creditlib.trainer.supervised import Supervised, describe, plan

    assemble.require_one_process("warm start", "creditlib.sft")
    assemble.quiet_libraries()
    display = Display(bar=config.log.progress)
    directory = RunDirectory(Path(config.run.dir), assemble.plain(config))
    try:
        if (done_before := directory.read_summary()).get("finished"):
            display.complete(directory.path)
            return done_before
        with assemble.at_work(task or build_task(config.task)) as ready:
            policy = assemble.build_policy(config.model, config.seed)
            encoder = assemble.build_encoder(policy, config.prompt)
            engine = assemble.build_engine(policy, encoder, config.rollout, config.seed)
            models = assemble.build_reward_models(config.reward_model, policy)
            evaluator = Evaluator(ready, Judge(ready, models), engine, config.eval)
            log = MetricsLog(directory.path / "metrics.jsonl")
            log.rewind(-1)
            examples = assemble.training_examples(ready, training_prompts(ready), policy, encoder)
            scorer = Scorer(policy.model)
            if scorer.fallback_reason:
                display.say(f"padded scoring instead of the prefix tree: {scorer.fallback_reason}")
            before = evaluator.run() if evaluator.enabled else []
            if before:
                log.write({"step": 0, "phase": "eval", **summarise(before)})
                display.accuracy("held-out rewards before the warm start", summarise(before))
            display.say(f"{len(examples)} examples; {describe(policy.model)}")

            supervised = Supervised(scorer, config.sft)
            planned = plan(examples, config.sft, config.seed)
            done = fit(
                planned,
                lambda trees, progress: supervised.update(examples, trees, progress),
                minutes=config.sft.minutes,
                phase="sft",
                title="warm start",
                shown=["loss"],
                display=display,
                log=log,
            )
            policy.model.eval()
            directory.save(done, policy.model, policy.tokenizer, {"step": done}, keep=1)
            after = evaluator.run() if evaluator.enabled else []
            if after:
                log.write({"step": done, "phase": "eval", **summarise(after)})
        change = paired_change(before, after) if after else {}
        summary = {"finished": True, "step": done, "change": change}
        write_json(directory.path / "summary.json", summary)
        display.changes("held-out rewards, before and after the warm start", change)
        display.say(f"the model is in {config.run.dir}; train it with model.path={config.run.dir}")
        return summary
    finally:
        directory.close()


if __name__ == "__main__":
    sys.exit(cli.main(sft, schema=SftConfig, config_name="sft", about=__doc__ or ""))
