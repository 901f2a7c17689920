"""Held-out accuracy of a policy, with intervals, and the paired change between two evaluations."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from creditlib.config import EvalConfig
from creditlib.rewards.judge import Judge
from creditlib.rewards.table import cells_by_kind, earned_B, perfect_B
from creditlib.trainer.files import finite, make_folder, write_atomically
from creditlib.trainer.metrics import mean_interval
from creditlib.trainer.processes import Processes
from creditlib.types import CreditlibError, Prompt, RolloutEngine, Task

EVALUATION_STEP = -1  # in the random streams: the same each time, so that two evaluations pair up
QUESTION_SEED = 0  # which questions a limit keeps: the same for every run, whatever its seed


@dataclass(frozen=True)
class Answer:
    """The responses to one prompt of one split, and the means of their rewards and lengths. `mode`:
    ``sampled`` or ``greedy``. Where a reward means something else on each prompt it goes by what it means,
    ``earned`` is the mean of those that apply and ``perfect`` the share of responses with all of them."""

    split: str
    mode: str
    prompt: str
    rewards: Mapping[str, float]
    tokens: float
    texts: tuple[str, ...]


class Evaluator:
    """Puts the same held-out questions each time, with the same random streams.

    Args:
        task: gives the questions.
        judge: judges the answers.
        engine: samples under the current policy.
        config: splits, number of questions, sampled and greedy responses.
        processes: each asks every `processes.count`-th question.

    Raises:
        CreditlibError: an unknown split, or two questions of a split with the same id.
    """

    def __init__(
        self,
        task: Task,
        judge: Judge,
        engine: RolloutEngine,
        config: EvalConfig,
        processes: Processes | None = None,
    ) -> None:
        self._judge, self._engine, self._config = judge, engine, config
        self._processes = processes or Processes()
        self.questions: dict[str, list[Prompt]] = {}
        for split in config.splits if config.splits is not None else task.eval_splits:
            if split not in task.eval_splits:
                raise CreditlibError(
                    f"eval.splits: task {task.name} has no split {split!r}, only {list(task.eval_splits)}"
                )
            prompts = list(task.prompts(split))
            if len({prompt.id for prompt in prompts}) < len(prompts):
                raise CreditlibError(
                    f"task {task.name}, split {split!r}: two prompts have the same id, so that answers "
                    "cannot be paired"
                )
            if config.limit is not None and config.limit < len(prompts):
                prompts = random.Random(QUESTION_SEED).sample(prompts, config.limit)
            self.questions[split] = prompts

    @property
    def enabled(self) -> bool:
        return any(self.questions.values())

    def run(self) -> list[Answer]:
        """Everyone's answers to all questions: `eval.samples` sampled responses each, and a greedy one."""
        modes = [("sampled", self._config.samples, False)] + (
            [("greedy", 1, True)] if self._config.greedy else []
        )
        answers: list[Answer] = []
        for split, prompts in self.questions.items():
            own = prompts[self._processes.rank :: self._processes.count]
            for mode, samples, greedy in modes:
                everyone = self._processes.gather(self._ask(split, mode, own, samples, greedy))
                found = {answer.prompt: answer for theirs in everyone for answer in theirs}
                answers += [found[prompt.id] for prompt in prompts]
        return answers

    def _ask(
        self, split: str, mode: str, prompts: Sequence[Prompt], samples: int, greedy: bool
    ) -> list[Answer]:
        if not prompts:
            return []
        rollout = self._engine.generate(prompts, samples=samples, step=EVALUATION_STEP, greedy=greedy)
        table = self._judge(rollout, look=False)
        group_B = rollout.group_B.cpu()
        rewards: list[dict[str, float]] = [{} for _ in prompts]
        cells = cells_by_kind(table.kind_BK)
        for kind, (rows, columns) in cells.items():
            values_C, group_C = table.scores_BK[rows, columns].double(), group_B[rows]
            for n in group_C.unique().tolist():
                rewards[n][kind] = values_C[group_C == n].nanmean().item()
        slots = set(cells) - set(table.names)  # many small rewards: what counts is all of them together
        answers = []
        for n, prompt in enumerate(prompts):
            rows_G = (group_B == n).nonzero()[:, 0]
            if slots:
                scores_GK = table.scores_BK[rows_G]
                rewards[n]["earned"] = earned_B(scores_GK, table.bounds_K2).nanmean().item()
                rewards[n]["perfect"] = perfect_B(scores_GK, table.bounds_K2).nanmean().item()
            length = rollout.lengths_B.cpu()[rows_G].double().mean().item()
            texts = tuple(rollout.texts[row] for row in rows_G.tolist())
            answers.append(Answer(split, mode, prompt.id, rewards[n], length, texts))
        return answers


def summarise(answers: Sequence[Answer]) -> dict[str, float]:
    """``eval/<split>/<mode>/<reward>`` with ``_low`` and ``_high``, the 95 % interval over questions."""
    metrics: dict[str, float] = {}
    for (split, mode), own in _by_split(answers).items():
        for name in _names(own):
            mean, low, high = mean_interval([answer.rewards.get(name, math.nan) for answer in own])
            key = f"eval/{split}/{mode}/{name}"
            metrics |= {key: mean, f"{key}_low": low, f"{key}_high": high}
        metrics[f"eval/{split}/{mode}/tokens"] = sum(answer.tokens for answer in own) / len(own)
    return metrics


def paired_change(before: Sequence[Answer], after: Sequence[Answer]) -> dict[str, dict[str, float]]:
    """Per split, mode and reward (and over all splits): before, after, and the difference with its paired
    95 % interval."""
    earlier = {(answer.split, answer.mode, answer.prompt): answer for answer in before}
    changes: dict[str, dict[str, float]] = {}
    groups = _by_split(after)
    for mode in dict.fromkeys(mode for _, mode in groups):
        groups[("all", mode)] = [answer for answer in after if answer.mode == mode]
    for (split, mode), own in groups.items():
        pairs = [
            (earlier[(a.split, a.mode, a.prompt)], a) for a in own if (a.split, a.mode, a.prompt) in earlier
        ]
        for name in _names(own):
            both = [(old.rewards.get(name, math.nan), new.rewards.get(name, math.nan)) for old, new in pairs]
            both = [(old, new) for old, new in both if not math.isnan(old) and not math.isnan(new)]
            if not both:
                continue
            change, low, high = mean_interval([new - old for old, new in both])
            changes[f"{split}/{mode}/{name}"] = {
                "before": sum(old for old, _ in both) / len(both),
                "after": sum(new for _, new in both) / len(both),
                "change": change,
                "low": low,
                "high": high,
                "questions": len(both),
            }
    return changes


def _names(answers: Sequence[Answer]) -> list[str]:
    """Rewards that some answer has. What they come to is last, though later answers may have others."""
    names = dict.fromkeys(name for answer in answers for name in answer.rewards)
    return sorted(names, key=("earned", "perfect").__contains__)


def _by_split(answers: Sequence[Answer]) -> dict[tuple[str, str], list[Answer]]:
    groups: dict[tuple[str, str], list[Answer]] = {}
    for answer in answers:
        groups.setdefault((answer.split, answer.mode), []).append(answer)
    return groups


def save_answers(path: Path, answers: Sequence[Answer]) -> None:
    """One JSON object a line; a reward that did not apply is null.

    Raises:
        CreditlibError: it cannot be written there.
    """
    make_folder(path.parent, str(path.parent))
    write_atomically(path, "".join(json.dumps(finite(vars(answer))) + "\n" for answer in answers))


def load_answers(path: Path) -> list[Answer]:
    """What `save_answers` wrote.

    Raises:
        CreditlibError: a line is not as it was written.
    """
    answers = []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n")[:-1], start=1):
        try:
            row = json.loads(line)
            rewards = {name: math.nan if value is None else value for name, value in row["rewards"].items()}
            answers.append(Answer(**{**row, "rewards": rewards, "texts": tuple(row["texts"])}))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CreditlibError(
                f"{path}, line {number}, is damaged ({error}): delete the file; the checkpoints are "
                "whole, and the same command goes on without these answers"
            ) from error
    return answers
