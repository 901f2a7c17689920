"""The training loop. A step is the seven stations of `creditlib.types`, in this order, in `Trainer.step`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from accelerate import Accelerator
from torch import Tensor

from creditlib import registry
from creditlib.config import RunConfig
from creditlib.credit.controls import Controlled, needs_for
from creditlib.policy.load import Policy, adapter_off, context_length, reference_model
from creditlib.policy.loss import PolicyLoss
from creditlib.policy.replay import SamplingPolicy
from creditlib.policy.scoring import Scorer
from creditlib.rewards.judge import Judge
from creditlib.rewards.models import RewardModel
from creditlib.rollout.encode import PromptEncoder
from creditlib.trainer.batch import credit_metrics, whitening_over_processes
from creditlib.trainer.checkpoint import (
    CheckpointError,
    RunDirectory,
    load_state,
    load_weights,
    random_state,
    restore_random_state,
)
from creditlib.trainer.collect import Collector
from creditlib.trainer.contexts import TaskContexts
from creditlib.trainer.evaluation import Evaluator, load_answers, paired_change, save_answers, summarise
from creditlib.trainer.files import write_json
from creditlib.trainer.interrupt import interruptible
from creditlib.trainer.ledger import Ledger, spread_steps
from creditlib.trainer.match import check_fit
from creditlib.trainer.metrics import MetricsLog, Stopwatch, recent_means
from creditlib.trainer.optimizer import Optimizer
from creditlib.trainer.processes import Processes
from creditlib.trainer.progress import Display, credit_note
from creditlib.trainer.prompts import PromptStream, training_prompts
from creditlib.trainer.update import Lesson, Updater
from creditlib.types import (
    AdvantageRule,
    Advantages,
    CreditStrategy,
    Prompt,
    ReplayTask,
    RewardTable,
    Rollout,
    RolloutEngine,
    Scores,
    Task,
)

T = TypeVar("T")


@dataclass(frozen=True)
class Context:
    """What a credit strategy may look at (`creditlib.types.CreditContext`)."""

    rollout: Rollout
    table: RewardTable
    scores: Scores
    advantages: Advantages
    step: int
    total_steps: int
    policy: SamplingPolicy | None
    contexts: TaskContexts | None
    reward_models: Mapping[str, RewardModel]
    reward_weights: Sequence[float]
    seed: int
    processes: Processes

    def gather(self, value: T) -> list[T]:
        """`value` of every process."""
        return self.processes.gather(value)


class Trainer:
    """Trains one policy on one task.

    Args:
        config: the run's settings.
        task: prompts and verifier.
        policy: trained in place.
        engine: samples from `policy`.
        accelerator: the processes, and trackers.
        directory: where the run writes; None on all processes but the first.
        display: what a person sees.
        prompts: the task's training prompts, where the caller has read them already.
        reward_models: rewards beside the task's, by name.

    Raises:
        CreditlibError: parts that do not fit the task or the run, or a model that cannot be trained.
    """

    def __init__(
        self,
        config: RunConfig,
        task: Task,
        policy: Policy,
        engine: RolloutEngine,
        accelerator: Accelerator,
        directory: RunDirectory | None,
        display: Display,
        prompts: Sequence[Prompt] | None = None,
        reward_models: Mapping[str, RewardModel] | None = None,
    ) -> None:
        self.config, self.settings = config, config.trainer
        self.task, self.policy = task, policy
        self.accelerator, self.directory, self.display = accelerator, directory, display
        self.processes = Processes(accelerator)
        self.rule: AdvantageRule = registry.build(
            "advantage", config.advantage.name, **config.advantage.hyperparameters
        )
        self.strategy: CreditStrategy = registry.build(
            "credit", config.credit.name, **config.credit.hyperparameters
        )
        if config.credit.control:
            self.strategy = Controlled(self.strategy, config.credit.control, config.seed)
        self.loss: PolicyLoss = registry.build("loss", config.loss.name, **config.loss.hyperparameters)
        self.reward_models = dict(reward_models or {})
        self.judge = Judge(task, self.reward_models, lambda reward: needs_for(self.strategy, reward))
        weights = self._reward_weights()
        check_fit(config, self.strategy, task, self.reward_models, self.judge.names, weights, policy.source)
        self.prompts = PromptStream(training_prompts(task) if prompts is None else prompts, config.seed)
        self.collector = Collector(engine, self.judge, self.prompts, self.settings, self.processes, weights)
        self.evaluator = Evaluator(task, self.judge, engine, config.eval, self.processes)
        self.scorer = Scorer(policy.model, self.settings.packing)
        if self.scorer.fallback_reason:
            display.say(f"padded scoring instead of the prefix tree: {self.scorer.fallback_reason}")
        self.reference = self._reference()
        self.optimizer = Optimizer(
            policy.model,
            betas=self.settings.betas,
            weight_decay=self.settings.weight_decay,
            max_grad_norm=self.settings.max_grad_norm,
            processes=self.processes,
        )
        self.updater = Updater(
            self.scorer, self.loss, self.optimizer, self.settings, self.processes, display.say
        )
        self.log = MetricsLog(directory.path / "metrics.jsonl") if directory else None
        self.ledger = self._ledger()
        self.resumed_from: list[int] = []

    def _ledger(self) -> Ledger | None:
        if not self.directory or not self.config.ledger.steps:
            return None
        return Ledger(
            self.directory.path,
            self.judge.names,
            self.policy.tokenizer,
            steps=spread_steps(self.settings.steps, self.config.ledger.steps),
            responses=self.config.ledger.responses,
            say=self.display.say,
        )

    def _reward_weights(self) -> Sequence[float]:
        """Of the advantage rule, which may well have none."""
        weights: Sequence[float] | None = getattr(self.rule, "weights", None)
        return [1.0] * len(self.judge.names) if weights is None else weights

    # ----------------------------------------------------------------------- a step

    def step(self, step: int) -> dict[str, float]:
        """Sample, judge, score, credit, update; the step's metrics."""
        watch = Stopwatch()
        collected = self.collector.collect(step, watch)
        rollout, table, batch = collected.rollout, collected.table, collected.batch
        with watch("score"):
            scores = self._score(rollout)
        with watch("credit"):
            active_B = self._active(rollout, table)
            counted_BT = rollout.mask_BT & active_B[:, None]
            advantages = batch.advantages(self.rule, rollout.ids_BT.device).only(active_B)
            credit = self.strategy.assign(self._context(step, rollout, table, scores, advantages))
            advantages_BT = credit.advantages_BT
            if self.rule.norm == "token":
                whitening = whitening_over_processes(advantages_BT, counted_BT, self.processes)
                advantages_BT = whitening(advantages_BT, counted_BT)
                advantages = whitening.of_responses(advantages, active_B)
        with watch("update"):
            metrics = self.updater.run(step, Lesson(rollout, scores, advantages_BT, active_B), batch)
        if self.ledger and self.ledger.due(step):
            self.ledger.write(step, rollout, table, advantages, credit, scores, advantages_BT, self.task)
        self._show(step, rollout, table, advantages_BT)
        metrics |= credit_metrics(credit, advantages, advantages_BT, counted_BT, self.processes)
        return metrics | batch.metrics() | {"prompts_drawn": float(collected.drawn)} | watch.metrics()

    def _context(
        self, step: int, rollout: Rollout, table: RewardTable, scores: Scores, advantages: Advantages
    ) -> Context:
        """What the strategy needs, and nothing that costs and is not asked for."""
        needs = self.strategy.needs
        policy = contexts = None
        if "policy" in needs:
            policy = SamplingPolicy(self.scorer, self.settings.micro_batch)
        if "contexts" in needs:
            assert isinstance(self.task, ReplayTask)  # check_fit has seen to it
            encoder = PromptEncoder(self.policy.tokenizer, self.config.prompt.style)
            limit = context_length(self.policy.model)
            contexts = TaskContexts(rollout, table, self.task, encoder, limit)
        return Context(
            rollout,
            table,
            scores,
            advantages,
            step,
            self.settings.steps,
            policy,
            contexts,
            self.reward_models,
            self._reward_weights(),
            self.config.seed,
            self.processes,
        )

    def _score(self, rollout: Rollout) -> Scores:
        """Old and reference log-probs, where something needs them."""
        updates = self.settings.epochs * self.settings.minibatches
        old_BT = ref_BT = hidden_BTD = None
        if "hidden" in self.strategy.needs:
            old_BT, hidden_BTD = self.scorer.logps_and_hidden(rollout, self.settings.micro_batch)
        elif self.loss.needs_old(updates) or self.loss.needs_correction:
            old_BT = self._logps(self.scorer, rollout)
        if self.loss.needs_reference and self.reference is not None:
            ref_BT = self._logps(self.reference, rollout)
        elif self.loss.needs_reference:
            with adapter_off(self.policy.model):
                ref_BT = self._logps(self.scorer, rollout)
        return Scores(old_BT, ref_BT, hidden_BTD)

    def _logps(self, scorer: Scorer, rollout: Rollout) -> Tensor:
        if not rollout.texts:  # dynamic sampling may leave a process without a row
            return torch.zeros_like(rollout.sampler_logps_BT)
        return scorer.logps(rollout, self.settings.micro_batch)

    def _active(self, rollout: Rollout, table: RewardTable) -> Tensor:
        """Rows that count: some reward applies, and not truncated where those are left out."""
        active_B = table.valid_B(self._reward_weights())
        if self.settings.mask_truncated:
            finished = [finish != "length" for finish in rollout.finish]
            active_B = active_B & torch.tensor(finished, dtype=torch.bool)
        return active_B.to(rollout.ids_BT.device)

    def _reference(self) -> Scorer | None:
        """A frozen policy for the KL term; None without one, or where switching the adapter off is enough."""
        model = reference_model(self.policy) if self.loss.needs_reference else None
        return None if model is None else Scorer(model, self.settings.packing)

    def _show(self, step: int, rollout: Rollout, table: RewardTable, advantages_BT: Tensor) -> None:
        if self.config.log.samples and rollout.texts and (step == 1 or step % self.config.log.every == 0):
            mean_B = advantages_BT.sum(1) / rollout.lengths_B.clamp(min=1)
            self.display.samples(step, rollout, table, mean_B.tolist(), self.config.log.samples)

    # ----------------------------------------------------------------------- the run

    def run(self) -> dict[str, Any]:
        """Train to the end, resuming where the run folder says; the summary.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed. After the first press the step is finished and saved.
        """
        done = self._resume()
        if done is None:
            done = 0
            self._evaluate(0)
            self._save(0)
        self._write_summary(done)
        with (
            self.display.progress("training", self.settings.steps, done) as bar,
            interruptible() as interrupted,
        ):
            for step in range(done + 1, self.settings.steps + 1):
                metrics = self.step(step)
                self._write({"step": step, "phase": "train", **metrics})
                last = step == self.settings.steps
                if last or _due(step, self.config.eval.every):
                    self._evaluate(step)
                stopping = any(self.processes.gather(interrupted()))
                if last or stopping or _due(step, self.settings.checkpoint_every):
                    self._save(step, must=last or stopping)
                bar.advance(_note(metrics))
                if stopping and not last:
                    self._write_summary(step)
                    self.display.say(f"stopped after step {step}; the same command goes on from there")
                    raise KeyboardInterrupt
        if self.log and (note := credit_note(self.log.rows())):
            self.display.say(note)
        return self._write_summary(self.settings.steps, finished=True)

    def _evaluate(self, step: int) -> None:
        if not self.evaluator.enabled:
            return
        watch = Stopwatch()
        with watch("evaluation"):
            answers = self.evaluator.run()
        metrics = summarise(answers)
        self._write({"step": step, "phase": "eval", **metrics, **watch.metrics()})
        if self.directory:
            save_answers(self._answers_path(step), answers)
        when = f"after step {step}" if step else "before training"
        self.display.accuracy(f"held-out rewards {when}", metrics)

    def _answers_path(self, step: int) -> Path:
        assert self.directory is not None
        return self.directory.path / "evaluations" / f"step-{step:06d}.jsonl"

    def _write(self, row: Mapping[str, Any]) -> None:
        if self.log:
            self.log.write(row)
        self.accelerator.log(
            {key: value for key, value in row.items() if isinstance(value, float)}, step=row["step"]
        )

    def _save(self, step: int, *, must: bool = False) -> None:
        """Write a checkpoint. If that fails, say so and go on, unless this one `must` be there."""
        state = {
            "step": step,
            "optimizer": self.optimizer.state_dict(),
            "position": self.prompts.position,
            "skipped_in_a_row": self.updater.skipped_in_a_row,
            "random": self.processes.gather(random_state()),
        }
        if self.directory:
            try:
                self.directory.save(
                    step, self.policy.model, self.policy.tokenizer, state, self.settings.keep_checkpoints
                )
            except CheckpointError as error:
                if must:
                    raise
                self.display.say(f"{error}\ntraining goes on; earlier checkpoints are untouched")
        self.processes.wait()

    def _resume(self) -> int | None:
        """Load the newest whole checkpoint; its step, or None for a new run."""
        step = None
        if self.directory and self.log:
            step = self.directory.newest_whole(self.display.say)
            self.log.rewind(-1 if step is None else step)
            if self.ledger:
                self.ledger.rewind(-1 if step is None else step)
            summary = self.directory.read_summary()
            self.resumed_from = list(summary.get("resumed_from", []))
            if summary or step is not None:
                self.resumed_from.append(step or 0)
            self._write_summary(step or 0)
        found = self.processes.from_first(
            (step, str(self.directory.folder(step))) if self.directory and step is not None else None
        )
        if found is None:
            return None
        step, folder = found[0], Path(found[1])
        state = load_state(folder)
        load_weights(self.policy, folder)
        self.optimizer.load_state_dict(state["optimizer"])
        self.prompts.position = state["position"]
        self.updater.skipped_in_a_row = state["skipped_in_a_row"]
        restore_random_state(state["random"][self.processes.rank % len(state["random"])])
        self.display.say(f"resuming after step {step}")
        return step

    def _write_summary(self, step: int, *, finished: bool = False) -> dict[str, Any]:
        if not self.directory:
            return {}
        changes: dict[str, Any] = {}
        before, after = self._answers_path(0), self._answers_path(self.settings.steps)
        if finished and before.exists() and after.exists():
            changes = paired_change(load_answers(before), load_answers(after))
        recent = recent_means(self.log.rows()) if finished and self.log else {}
        summary = {
            "finished": finished,
            "step": step,
            "resumed_from": self.resumed_from,
            "packing": self.scorer.packing,
            "fallback_reason": self.scorer.fallback_reason,
            "change": changes,
            "recent": recent,
        }
        write_json(self.directory.path / "summary.json", summary)
        return summary


def _due(step: int, every: int) -> bool:
    return bool(every) and step % every == 0


def _note(metrics: Mapping[str, float]) -> str:
    """The rewards, for the progress bar; of many, what they come to."""
    rewards = {key.partition("/")[2]: value for key, value in metrics.items() if key.startswith("reward/")}
    if len(rewards) > 4:
        rewards = {name: metrics[f"response/{name}"] for name in ("earned", "perfect")}
    return "  ".join(f"{name} {value:.2f}" for name, value in rewards.items())
