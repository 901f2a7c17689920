"""Train a reward model on preference pairs, for credit=datc, p2t and red, and for any run's reward.

    python -m creditlib.reward_model pairs=alpaca_eval pairs.data=alpaca_eval model=smollm2 reward.minutes=20
    python -m creditlib.reward_model pairs.sources=[mine.jsonl] model=hf model.path=Qwen/Qwen3-0.6B
    python -m creditlib.train task=preference reward_model=hf reward_model.preference.path=runs/reward-smollm2

The base model gets a head of one label and learns to score the preferred answer higher. How well it ranks
pairs of prompts that it has not seen stands in summary.json, beside what the length of the answers alone
would tell.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from creditlib import cli
from creditlib.config import RewardModelRun
from creditlib.types import CreditlibError


def reward_model(config: RewardModelRun, pairs: Any = None) -> dict[str, Any]:
    """Train, measure on held-out pairs, save; the summary.

    Args:
        config: the run's settings.
        pairs: ready pairs (`tasks.preference_data.Pairs`); None: those that ``config.pairs`` names.
    """
    from creditlib import assemble
    from creditlib.parts import build_class
    from creditlib.policy.cpu import fast_float32_matmul
    from creditlib.policy.load import context_length, resolve
    from creditlib.policy.load_reward import new_reward_model
    from creditlib.trainer.checkpoint import RunDirectory
    from creditlib.trainer.files import write_json
    from creditlib.trainer.fitting import fit
    from creditlib.trainer.metrics import MetricsLog, Stopwatch
    from creditlib.trainer.pairs import PairTrainer, describe_report, encode_pairs, plan_pairs, report
    from creditlib.trainer.progress import Display
    from creditlib.trainer.supervised import describe

    assemble.require_one_process("training a reward model", "creditlib.reward_model")
    assemble.quiet_libraries()
    display = Display(bar=config.log.progress)
    directory = RunDirectory(Path(config.run.dir), assemble.plain(config))
    try:
        if (done_before := directory.read_summary()).get("finished"):
            display.complete(directory.path)
            return done_before
        found = build_class(config.pairs, "pairs").load() if pairs is None else pairs
        for why, count in found.dropped.items():
            display.say(f"{count} rows left out: {why}")
        assemble.set_seeds(config.seed)
        model, tokenizer = new_reward_model(config.model)
        train, long = encode_pairs(found.train, tokenizer, context_length(model))
        held_out, longer = encode_pairs(found.held_out, tokenizer, context_length(model))
        if long + longer:
            display.say(
                f"{long + longer} pairs left out: longer than the model's {context_length(model)} positions"
            )
        if not train or not held_out:
            raise CreditlibError(
                f"{len(train)} pairs to learn and {len(held_out)} held out are short enough: choose a model "
                "with more positions, or other pairs"
            )
        log = MetricsLog(directory.path / "metrics.jsonl")
        log.rewind(-1)
        trainer = PairTrainer(model, config.reward)
        planned = plan_pairs(train, config.reward, config.seed)
        display.say(
            f"{len(train)} pairs to learn in {len(planned)} updates ({config.reward.epochs} epochs), "
            f"{len(held_out)} held out; {describe(model)}"
        )
        watch = Stopwatch()
        with fast_float32_matmul(), watch("training"):
            done = fit(
                planned,
                trainer.update,
                minutes=config.reward.minutes,
                phase="reward",
                title="reward model",
                shown=["loss", "accuracy"],
                display=display,
                log=log,
            )
            model.eval()
            measured = report(train, held_out, trainer.margins(held_out))
        directory.save(done, model, tokenizer, {"step": done}, keep=1)
        summary = {
            "finished": True,
            "step": done,
            "base": resolve(config.model),
            "training_pairs": len(train),
            **measured,
            **watch.metrics(),
        }
        write_json(directory.path / "summary.json", summary)
        display.say(describe_report(measured))
        display.say(
            f"the model is in {config.run.dir}; use it with reward_model=hf "
            f"reward_model.preference.path={config.run.dir}"
        )
        return summary
    finally:
        directory.close()


if __name__ == "__main__":
    sys.exit(cli.main(reward_model, schema=RewardModelRun, config_name="reward_model", about=__doc__ or ""))
