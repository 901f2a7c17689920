"""The training loop. A step is the seven stations of `creditlib.types`, in this order, in `Trainer.step`."""

from __future__ import annotations

import contextlib
import math
import random
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from torch import Tensor

from creditlib import registry
from creditlib.config import RunConfig, TrainerConfig
from creditlib.policy.load import Policy, adapter_off, reference_model
from creditlib.policy.loss import LossStats, PolicyLoss
from creditlib.policy.scoring import Scorer, micro_batches
from creditlib.rewards.table import build_table, join_tables, select_rows, varying_rewards
from creditlib.rollout.batch import join, select_groups
from creditlib.trainer.batch import GlobalBatch, whiten_over_processes
from creditlib.trainer.checkpoint import RunDirectory, random_state, restore_random_state, write_json
from creditlib.trainer.evaluation import Answer, Evaluator, load_answers, paired_change, save_answers, summarise
from creditlib.trainer.metrics import MetricsLog, Stopwatch
from creditlib.trainer.progress import Display
from creditlib.types import (
    AdvantageRule,
    Advantages,
    CreditlibError,
    CreditStrategy,
    Prompt,
    RewardTable,
    Rollout,
    RolloutEngine,
    Scores,
    Task,
    TokenCredit,
)


@dataclass(frozen=True)
class Context:
    """What a credit strategy may look at (`creditlib.types.CreditContext`)."""

    rollout: Rollout
    table: RewardTable
    scores: Scores
    advantages: Advantages
    step: int
    total_steps: int
    policy: Scorer | None


class PromptStream:
    """Training prompts in a new random order each epoch; all it remembers is how many it gave."""

    def __init__(self, prompts: Sequence[Prompt], seed: int) -> None:
        self._prompts, self._seed = prompts, seed
        self.position = 0

    def take(self, count: int) -> list[Prompt]:
        taken = [self._prompts[self._index(self.position + i)] for i in range(count)]
        self.position += count
        return taken

    def _index(self, position: int) -> int:
        epoch, place = divmod(position, len(self._prompts))
        if getattr(self, "_epoch", None) != epoch:
            self._epoch = epoch
            self._order = list(range(len(self._prompts)))
            random.Random(f"prompts-{self._seed}-{epoch}").shuffle(self._order)
        return self._order[place]


class Trainer:
    """Trains one policy on one task.

    Args:
        config: the run's settings.
        task: prompts and verifier.
        policy: trained in place.
        engine: samples from `policy`.
        accelerator: processes and devices.
        directory: where the run writes; None on all processes but the first.
        display: what a person sees.
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
    ) -> None:
        self.config, self.task, self.policy, self.engine = config, task, policy, engine
        self.accelerator, self.directory, self.display = accelerator, directory, display
        self.settings: TrainerConfig = config.trainer
        self.rule: AdvantageRule = registry.build("advantage", config.advantage.name, **config.advantage.hyperparameters)
        self.strategy: CreditStrategy = registry.build("credit", config.credit.name, **config.credit.hyperparameters)
        self.loss: PolicyLoss = registry.build("loss", config.loss.name, **config.loss.hyperparameters)
        self.scorer = Scorer(policy.model, self.settings.packing)
        self.reference = self._reference()
        self.parameters = [parameter for parameter in policy.model.parameters() if parameter.requires_grad]
        self.optimizer = torch.optim.AdamW(
            self.parameters,
            lr=self.settings.learning_rate,
            betas=self.settings.betas,
            weight_decay=self.settings.weight_decay,
        )
        self.prompts = PromptStream(task.prompts("train"), config.seed)
        self.evaluator = Evaluator(
            task, engine, config.eval, rank=accelerator.process_index, world=accelerator.num_processes
        )
        self.skipped_in_a_row = 0
        self.log = MetricsLog(directory.path / "metrics.jsonl") if directory else None
        self.resumed_from: list[int] = []

    # ----------------------------------------------------------------------- a step

    def step(self, step: int) -> dict[str, float]:
        """Sample, judge, credit, update; the step's metrics."""
        watch = Stopwatch()
        rollout, table, batch, dropped = self._collect(step, watch)
        with watch("score"):
            scores = self._score(rollout)
        with watch("credit"):
            advantages = batch.advantages(self.rule, rollout.ids_BT.device)
            credit = self.strategy.assign(self._context(rollout, table, scores, advantages, step))
            active_B = self._active(rollout, table)
            advantages_BT = credit.advantages_BT
            if self.rule.norm == "token":
                advantages_BT = whiten_over_processes(advantages_BT, rollout.mask_BT & active_B[:, None])
        with watch("update"):
            metrics = self._update(step, rollout, scores, advantages_BT, active_B, batch)
        if self.display and (step == 1 or step % self.config.log.every == 0) and self.config.log.samples:
            mean_B = advantages_BT.sum(1) / rollout.lengths_B.clamp(min=1)
            self.display.samples(step, rollout, table, mean_B.tolist(), self.config.log.samples)
        metrics |= batch.metrics() | credit_metrics(credit, advantages_BT, rollout.mask_BT)
        return metrics | {"groups_dropped": float(dropped)} | watch.metrics()

    def _collect(self, step: int, watch: Stopwatch) -> tuple[Rollout, RewardTable, GlobalBatch, int]:
        """Rollouts with their rewards. With dynamic sampling, groups in which no reward varies are replaced by new ones."""
        rank, world = self.accelerator.process_index, self.accelerator.num_processes
        wanted, rounds = self.settings.prompts_per_step, 1 + self.settings.max_resamples * self.settings.dynamic_sampling
        rollouts: list[Rollout] = []
        tables: list[RewardTable] = []
        numbers: list[int] = []  # global number of each of this process's prompts
        for attempt in range(rounds):
            drawn = self.prompts.take(wanted)
            with watch("rollout"):
                rollouts.append(
                    self.engine.generate(drawn[rank::world], samples=self.settings.responses_per_prompt, step=step)
                )
            with watch("verify"):
                tables.append(build_table(rollouts[-1], self.task))
            numbers += [attempt * wanted + n for n in range(wanted)][rank::world]
            rollout, table = join(rollouts), join_tables(tables)
            batch = GlobalBatch.gather(rollout, table, numbers)
            if not self.settings.dynamic_sampling:
                return rollout, table, batch, 0
            alive = varying_rewards(batch.scores_BK, batch.group_B).any(1)
            kept = batch.group_B.unique()[alive][:wanted].tolist()
            if len(kept) == wanted:
                break
        kept = kept or batch.group_B.unique()[:wanted].tolist()  # nothing varies anywhere: a step without a signal
        mine = [n for n, number in enumerate(numbers) if number in set(kept)]
        chosen, rows = select_groups(rollout, mine)
        table = select_rows(table, rows)
        batch = GlobalBatch.gather(chosen, table, [numbers[n] for n in mine])
        return chosen, table, batch, len(rollouts) * wanted - len(kept)

    def _score(self, rollout: Rollout) -> Scores:
        """Old and reference log-probs, where something needs them."""
        updates = self.settings.epochs * self.settings.minibatches
        old_BT = ref_BT = None
        if self.loss.needs_old(updates) or self.loss.needs_correction or "policy" in self.strategy.needs:
            old_BT = self.scorer.logps(rollout, self.settings.micro_batch)
        if self.loss.needs_reference:
            if self.reference is None:
                with adapter_off(self.policy.model):
                    ref_BT = self.scorer.logps(rollout, self.settings.micro_batch)
            else:
                ref_BT = self.reference.logps(rollout, self.settings.micro_batch)
        return Scores(old_BT, ref_BT)

    def _context(
        self, rollout: Rollout, table: RewardTable, scores: Scores, advantages: Advantages, step: int
    ) -> Context:
        policy = self.scorer if "policy" in self.strategy.needs else None
        return Context(rollout, table, scores, advantages, step, self.settings.steps, policy)

    def _active(self, rollout: Rollout, table: RewardTable) -> Tensor:
        """Rows that count: some reward applies, and not truncated where those are left out."""
        active_B = table.valid_B.to(rollout.ids_BT.device)
        if self.settings.mask_truncated:
            finished = [finish != "length" for finish in rollout.finish]
            active_B = active_B & torch.tensor(finished, device=active_B.device)
        return active_B

    def _update(
        self,
        step: int,
        rollout: Rollout,
        scores: Scores,
        advantages_BT: Tensor,
        active_B: Tensor,
        batch: GlobalBatch,
    ) -> dict[str, float]:
        """All optimizer updates of one rollout."""
        correction_BT = None
        if self.loss.needs_correction:
            assert scores.old_logps_BT is not None
            correction_BT = self.loss.importance_weights(scores.old_logps_BT, rollout.sampler_logps_BT, rollout.mask_BT)
        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.learning_rate * lr_factor(self.settings, step)
        records = []
        self.policy.model.train()
        for _ in range(self.settings.epochs):
            for rows in self._minibatches(batch):
                records.append(self._update_once(rollout, rows, scores, advantages_BT, active_B, correction_BT))
        self.policy.model.eval()
        means = {key: float(np.mean([record[key] for record in records])) for key in records[0]}
        return means | {"learning_rate": self.optimizer.param_groups[0]["lr"]}

    def _minibatches(self, batch: GlobalBatch) -> Iterator[list[int]]:
        """This process's rows of each optimizer update: whole groups, the same groups whatever the number of processes."""
        own_groups = batch.group_B[batch.local_B]
        for groups in batch.group_B.unique().tensor_split(self.settings.minibatches):
            yield torch.isin(own_groups, groups).nonzero()[:, 0].tolist()

    def _update_once(
        self,
        rollout: Rollout,
        rows: list[int],
        scores: Scores,
        advantages_BT: Tensor,
        active_B: Tensor,
        correction_BT: Tensor | None,
    ) -> dict[str, float]:
        """One optimizer update over `rows`, accumulated over micro-batches and processes; skipped where it is not finite."""
        loss = self.loss
        mine = loss.denominators(rollout.mask_BT[rows], active_B[rows])
        denominators = type(mine)(*self._sum([mine.tokens, mine.sequences]))
        self.optimizer.zero_grad(set_to_none=True)
        total, entropy, stats = 0.0, 0.0, None
        for micro in micro_batches(rollout, rows, self.settings.micro_batch) if rows else ():
            logps_RT, entropy_RT = self.scorer.forward(rollout, micro, entropy_grad=loss.needs_entropy)
            token = loss.token_loss(
                logps_RT,
                None if scores.old_logps_BT is None else scores.old_logps_BT[micro],
                advantages_BT[micro],
                rollout.mask_BT[micro],
                active_B=active_B[micro],
                ref_logps_BT=None if scores.ref_logps_BT is None else scores.ref_logps_BT[micro],
                correction_BT=None if correction_BT is None else correction_BT[micro],
                entropy_BT=entropy_RT if loss.needs_entropy else None,
            )
            partial = loss.partial_loss(token, denominators)
            partial.backward()
            total += partial.item()
            entropy += entropy_RT.detach()[token.mask_BT].sum().item()
            stats = token.stats if stats is None else stats + token.stats
        self._sum_gradients()
        norm = torch.nn.utils.clip_grad_norm_(self.parameters, self.settings.max_grad_norm or math.inf).item()
        total, entropy = self._sum([total, entropy])
        finite = math.isfinite(norm) and math.isfinite(total)
        if finite:
            self.optimizer.step()
        self._count_skipped(finite, total, norm)
        return {
            "loss": total,
            "grad_norm": norm,
            "entropy": entropy / max(denominators.tokens, 1.0),
            "skipped": float(not finite),
            **self._loss_metrics(stats),
        }

    def _count_skipped(self, finite: bool, loss: float, norm: float) -> None:
        self.skipped_in_a_row = 0 if finite else self.skipped_in_a_row + 1
        if finite:
            return
        self.display.say(f"update skipped: loss {loss}, gradient norm {norm}; the weights stay as they were")
        if self.skipped_in_a_row >= self.settings.max_skipped_updates:
            raise CreditlibError(
                f"{self.skipped_in_a_row} updates in a row were not finite: stopping. The last checkpoint is whole. "
                "Try a lower trainer.learning_rate, model.dtype=float32, or a tighter loss clip"
            )

    def _sum_gradients(self) -> None:
        """Add the gradients of all processes; denominators are global already, so nothing is averaged."""
        if self.accelerator.num_processes == 1:
            return
        for parameter in self.parameters:  # a process without rows must take part too
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            parameter.grad = self.accelerator.reduce(parameter.grad, "sum")

    def _sum(self, values: Sequence[float]) -> list[float]:
        if self.accelerator.num_processes == 1:
            return list(values)
        tensor = torch.tensor(values, dtype=torch.float64, device=self.accelerator.device)
        summed: Tensor = self.accelerator.reduce(tensor, "sum")
        return summed.tolist()

    def _loss_metrics(self, stats: LossStats | None) -> dict[str, float]:
        if self.accelerator.num_processes == 1:
            return {f"loss/{name}": value for name, value in stats.means().items()} if stats else {}
        from accelerate.utils import gather_object

        everyone = [own for own in gather_object([stats]) if own is not None]
        total = everyone[0]
        for own in everyone[1:]:
            total = total + own
        return {f"loss/{name}": value for name, value in total.means().items()}

    def _reference(self) -> Scorer | None:
        """A frozen policy for the KL term; None where none is needed, or where switching the adapter off is enough."""
        if not self.loss.needs_reference:
            return None
        model = reference_model(self.policy)
        return None if model is None else Scorer(model, self.settings.packing)

    # ----------------------------------------------------------------------- the run

    def run(self) -> dict[str, Any]:
        """Train to the end, resuming where the run folder says; the summary."""
        done = self._resume()
        first = self._evaluate(0) if done is None else None
        if done is None:
            done = 0
            self._save(0)
        self._write_summary(done, finished=False)
        with self.display.progress("training", self.settings.steps, done) as bar, interruptible() as interrupted:
            for step in range(done + 1, self.settings.steps + 1):
                metrics = self.step(step)
                self._write({"step": step, "phase": "train", **metrics})
                last = step == self.settings.steps
                if last or (self.config.eval.every and step % self.config.eval.every == 0):
                    self._evaluate(step)
                stopping = interrupted()
                every = self.settings.checkpoint_every
                if last or stopping or (every and step % every == 0):
                    self._save(step, must=last or stopping)
                bar.advance(_note(metrics, self.task.reward_names))
                if stopping and not last:
                    self._write_summary(step, finished=False)
                    self.display.say(f"stopped after step {step}; the same command goes on from there")
                    raise KeyboardInterrupt
        del first
        return self._write_summary(self.settings.steps, finished=True)

    def _evaluate(self, step: int) -> list[Answer]:
        if not self.evaluator.enabled:
            return []
        watch = Stopwatch()
        with watch("evaluation"):
            answers = self._gather(self.evaluator.run())
        metrics = summarise(answers)
        self._write({"step": step, "phase": "eval", **metrics, **watch.metrics()})
        if self.directory:
            save_answers(self._answers_path(step), answers)
        self.display.accuracy(f"held-out accuracy after step {step}" if step else "held-out accuracy before training", metrics)
        return answers

    def _gather(self, answers: list[Answer]) -> list[Answer]:
        if self.accelerator.num_processes == 1:
            return answers
        from accelerate.utils import gather_object

        everyone: list[Answer] = gather_object(answers)
        return sorted(everyone, key=lambda answer: (answer.split, answer.mode, answer.prompt))

    def _answers_path(self, step: int) -> Any:
        assert self.directory is not None
        return self.directory.path / "evaluations" / f"step-{step:06d}.jsonl"

    def _write(self, row: dict[str, Any]) -> None:
        if self.log:
            self.log.write(row)
        self.accelerator.log({k: v for k, v in row.items() if isinstance(v, float)}, step=row["step"])

    def _save(self, step: int, *, must: bool = False) -> None:
        """Write a checkpoint. A full disk is told and survived, unless this one `must` be there."""
        state = {
            "step": step,
            "optimizer": self.optimizer.state_dict(),
            "position": self.prompts.position,
            "skipped_in_a_row": self.skipped_in_a_row,
            "random": self._gather_random_states(),
        }
        if self.directory:
            try:
                self.directory.save(step, self.policy.model, self.policy.tokenizer, state, self.settings.keep_checkpoints)
            except (OSError, RuntimeError) as error:  # torch and safetensors report a full disk as either
                message = f"could not write the checkpoint of step {step} to {self.directory.path}: {error}"
                if must:
                    raise CreditlibError(f"{message}. Make room and run the same command again") from error
                self.display.say(f"{message}; training goes on, earlier checkpoints are untouched")
        self.accelerator.wait_for_everyone()

    def _gather_random_states(self) -> list[Any]:
        if self.accelerator.num_processes == 1:
            return [random_state()]
        from accelerate.utils import gather_object

        states: list[Any] = gather_object([random_state()])
        return states

    def _resume(self) -> int | None:
        """Load the newest checkpoint; its step, or None for a new run."""
        found: list[Any] = [None]
        if self.directory:
            steps = self.directory.steps()
            summary = self.directory.read_summary()
            self.resumed_from = list(summary.get("resumed_from", []))
            step = steps[-1] if steps else None
            if step is not None or summary:
                self.resumed_from.append(step or 0)
            assert self.log is not None
            self.log.rewind(-1 if step is None else step)
            if step is not None:
                found = [(step, self.directory.load_state(step), str(self.directory.folder(step)))]
        if self.accelerator.num_processes > 1:
            from accelerate.utils import broadcast_object_list

            broadcast_object_list(found)
        if found[0] is None:
            self._write_summary(0, finished=False)
            return None
        step, state, folder = found[0]
        load_weights(self.policy, folder)
        self.optimizer.load_state_dict(state["optimizer"])
        self.prompts.position = state["position"]
        self.skipped_in_a_row = state["skipped_in_a_row"]
        states = state["random"]
        restore_random_state(states[self.accelerator.process_index % len(states)])
        self.display.say(f"resuming after step {step}")
        return int(step)

    def _write_summary(self, step: int, *, finished: bool) -> dict[str, Any]:
        if not self.directory:
            return {}
        changes: dict[str, Any] = {}
        before, after = self._answers_path(0), self._answers_path(self.settings.steps)
        if finished and before.exists() and after.exists():
            changes = paired_change(load_answers(before), load_answers(after))
        summary = {
            "finished": finished,
            "step": step,
            "resumed_from": self.resumed_from,
            "packing": self.scorer.packing,
            "fallback_reason": self.scorer.fallback_reason,
            "change": changes,
        }
        write_json(self.directory.path / "summary.json", summary)
        return summary


def credit_metrics(credit: TokenCredit, advantages_BT: Tensor, mask_BT: Tensor) -> dict[str, float]:
    """How concentrated the weights are (ESS over T: 1 is uniform), and the final token advantages."""
    mask_B1T = mask_BT[:, None]
    weights_BKT = credit.weights_BKT.masked_fill(~mask_B1T, 0.0)
    total_BK, square_BK = weights_BKT.sum(2), weights_BKT.square().sum(2)
    ess_BK = total_BK.square() / square_BK.clamp(min=1e-30) / mask_BT.sum(1, keepdim=True).clamp(min=1)
    valid_T = advantages_BT[mask_BT]
    return {
        "credit/ess": ess_BK.mean().item(),
        "credit/max_weight": weights_BKT.amax().item(),
        "advantage/mean": valid_T.mean().item(),
        "advantage/std": valid_T.std(unbiased=False).item(),
        **{f"credit/{name}": value for name, value in credit.diagnostics.items()},
    }


def lr_factor(settings: TrainerConfig, step: int) -> float:
    """The schedule's factor for the updates of rollout `step` (from 1)."""
    if step <= settings.warmup_steps:
        return step / settings.warmup_steps
    share = (step - settings.warmup_steps - 1) / max(settings.steps - settings.warmup_steps, 1)
    if settings.schedule == "linear":
        return 1.0 - share
    if settings.schedule == "cosine":
        return 0.5 * (1.0 + math.cos(math.pi * share))
    return 1.0


def load_weights(policy: Policy, folder: str) -> None:
    """Put a checkpoint's weights into the policy that is already there, all of them or an error."""
    from pathlib import Path

    from safetensors.torch import load_file

    tensors: dict[str, Tensor] = {}
    for file in sorted(Path(folder).glob("*.safetensors")):
        tensors |= load_file(file)
    if policy.is_adapter:
        from peft import set_peft_model_state_dict

        result = set_peft_model_state_dict(policy.model, tensors)
    else:
        result = policy.model.load_state_dict(tensors, strict=False)
        policy.model.tie_weights()
    tied = set(getattr(policy.model, "all_tied_weights_keys", None) or ())
    missing = [key for key in result.missing_keys if key not in tied and (not policy.is_adapter or "lora_" in key)]
    if missing or result.unexpected_keys:
        raise CreditlibError(f"checkpoint {folder} does not fit the model: missing {missing[:3]}, unexpected {result.unexpected_keys[:3]}")


@contextlib.contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Ctrl-C once: finish the step, save, stop. Twice: stop at once."""
    pressed = False

    def handle(_signal: int, _frame: Any) -> None:
        nonlocal pressed
        if pressed:
            raise KeyboardInterrupt
        pressed = True

    try:
        former = signal.signal(signal.SIGINT, handle)
    except ValueError:  # not the main thread: leave signals alone
        yield lambda: False
        return
    try:
        yield lambda: pressed
    finally:
        signal.signal(signal.SIGINT, former)


def _note(metrics: dict[str, float], names: Sequence[str]) -> str:
    return "  ".join(f"{name} {metrics[f'reward/{name}']:.2f}" for name in names[:4])
