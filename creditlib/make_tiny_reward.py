"""Make the embedded tiny reward model, which prefers right answers of the embedded policy to wrong ones.

    python -m creditlib.make_tiny_reward     # writes creditlib/assets/tiny_reward, 15 minutes on 2 cores
    python -m creditlib.make_tiny_reward reward.max_steps=50 out=/tmp/tiny_reward run.dir=/tmp/tiny_reward_run

The embedded policy answers the training questions of the embedded text-to-SQL sample; an answer that returns
what the reference returns is preferred to one that does not. The model that learns these preferences reads
text alone, so it can be wrong, and a policy can learn to please it: text-to-SQL's verifier shows how far.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from creditlib import cli
from creditlib.config import (
    Count,
    LogConfig,
    ModelConfig,
    PairSettings,
    PromptConfig,
    RewardModelConfig,
    RewardModelRun,
    RolloutConfig,
    RunFolder,
    Section,
    Seed,
)
from creditlib.reward_model import reward_model
from creditlib.types import CreditlibError, Message, Prompt


class MakeTinyRewardConfig(Section):
    seed: Seed = 0
    task: dict[str, Any]
    model: ModelConfig
    prompt: PromptConfig = PromptConfig()
    rollout: RolloutConfig
    reward: PairSettings
    verdict: str  # the reward that says which answers are right
    samples: Count  # answers a question
    pairs_per_question: Count  # at most
    held_out: str  # split of the task to measure on
    log: LogConfig = LogConfig()
    run: RunFolder
    out: str


class AnswerPair(NamedTuple):
    messages: tuple[Message, ...]
    chosen: str
    rejected: str


class AnswerPairs(NamedTuple):
    train: Sequence[AnswerPair]
    held_out: Sequence[AnswerPair]
    dropped: dict[str, int]


def make(config: MakeTinyRewardConfig) -> None:
    """Sample, judge, train, save at `config.out`."""
    pairs = answer_pairs(config)
    summary = reward_model(
        RewardModelRun(
            seed=config.seed,
            pairs={"_target_": f"{__name__}.AnswerPairs"},
            model=config.model,
            reward=config.reward,
            log=config.log,
            run=config.run,
        ),
        pairs,
    )
    save(config, summary)


def save(config: MakeTinyRewardConfig, summary: dict[str, Any]) -> None:
    """Half of the size at `config.out`, with a model card."""
    from creditlib.policy.load_reward import load_reward_model

    scorer, tokenizer = load_reward_model(RewardModelConfig(path=config.run.dir), "run")
    folder = Path(config.out)
    scorer.model.bfloat16().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / "README.md").write_text(model_card(summary, config), encoding="utf-8")
    print(f"saved at {folder}")


def answer_pairs(config: MakeTinyRewardConfig) -> AnswerPairs:
    """Pairs of a right and a wrong answer to each question that has both."""
    from creditlib import assemble
    from creditlib.parts import build_task
    from creditlib.rewards.table import build_table

    with assemble.at_work(build_task(config.task)) as task:
        policy = assemble.build_policy(config.model, config.seed)
        encoder = assemble.build_encoder(policy, config.prompt)
        engine = assemble.build_engine(policy, encoder, config.rollout, config.seed)
        column = task.reward_names.index(config.verdict)
        generator = random.Random(config.seed)
        found: dict[str, list[AnswerPair]] = {}
        for split in ("train", config.held_out):
            prompts = task.prompts(split)
            pairs: list[AnswerPair] = []
            for start in range(0, len(prompts), 32):
                some = prompts[start : start + 32]
                rollout = engine.generate(some, samples=config.samples, step=0)
                scores = build_table(rollout, task).scores_BK[:, column].tolist()
                answers: list[tuple[set[str], set[str]]] = [(set(), {task.target(prompt)}) for prompt in some]
                for group, text, score in zip(rollout.group_B.tolist(), rollout.texts, scores, strict=True):
                    answers[group][int(score == 1.0)].add(text)
                for prompt, (wrong, right) in zip(some, answers, strict=True):
                    pairs += _pairs(
                        prompt, sorted(right), sorted(wrong), config.pairs_per_question, generator
                    )
                print(
                    f"{split}: {start + len(some)} of {len(prompts)} questions, {len(pairs)} pairs",
                    flush=True,
                )
            found[split] = pairs
    if not found["train"] or not found[config.held_out]:
        raise CreditlibError("no question has both a right and a wrong answer")
    return AnswerPairs(found["train"], found[config.held_out], {})


def _pairs(
    prompt: Prompt, right: list[str], wrong: list[str], most: int, generator: random.Random
) -> list[AnswerPair]:
    combinations = [(one, other) for one in right for other in wrong]
    chosen = generator.sample(combinations, min(most, len(combinations)))
    return [AnswerPair(prompt.messages or (), one, other) for one, other in chosen]


def model_card(summary: dict[str, Any], config: MakeTinyRewardConfig) -> str:
    """What the model is, for whoever finds it in a folder."""
    return (
        "---\nlicense: apache-2.0\nlibrary_name: transformers\n---\n\n"
        "# creditlib's tiny reward model\n\nThe transformer of creditlib's tiny policy with a head of one "
        f"label, trained in {summary['step']} updates on {summary['training_pairs']} pairs of the policy's "
        "own answers to synthetic questions about invented databases, right ones preferred. It ranks "
        f"{summary['accuracy']:.1%} of {summary['pairs']:.0f} pairs right whose questions it has not seen; "
        f"length alone ranks {summary['length_accuracy']:.1%}. It is there to try preference alignment on in "
        "minutes.\n\nMade by `python -m creditlib.make_tiny_reward`; no data of others went into it.\n"
    )


if __name__ == "__main__":
    sys.exit(cli.main(make, schema=MakeTinyRewardConfig, config_name="make_tiny_reward", about=__doc__ or ""))
