"""Preference alignment: answer prompts so that a reward model likes the answers.

The reward model is a part of the run (``reward_model=...``) and gives the reward; this module asks. Prompts
come from files or hub data sets (`tasks.preference_data` says in which forms), or, for trying things out with
the embedded models, from the embedded text-to-SQL sample.

Verifiable rewards may stand beside the reward model's: of the text-to-SQL sample, or functions of
(prompt, response) anywhere on the import path. With weight 0 (``advantage.weights``) such a reward is
watched and not trained on, which shows whether the policy only pleases its reward model.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence

from creditlib.types import Check, CreditlibError, MissingDataError, Prompt, ReplayTask, Span
from tasks.preference_data import Messages, as_prompt
from tasks.settings import Style
from tasks.simple import Reward, SimpleTask
from tasks.sources import read_rows
from tasks.sql_data import spread
from tasks.text2sql import Text2SQL

_SHOWN = 3


class Preference:
    """Prompts to be answered in a way that people prefer.

    Args:
        name: the task's name.
        train: file or hub data set with training prompts; None: the embedded text-to-SQL sample.
        evaluation: split -> file or hub data set with held-out prompts.
        data: folder that names of files are relative to.
        rewards: verifiable rewards beside the reward model's: names of rewards of text-to-SQL for its sample,
            else import paths of functions (`tasks.simple`), each called as the function is.
        style: ``chat``, or ``text`` for base models.
        limit: so many training prompts, spread evenly; None: all.

    Raises:
        MissingDataError: a source that is not there or has no prompts.
        CreditlibError: an unknown reward.
    """

    def __init__(
        self,
        *,
        name: str = "preference",
        train: str | None = None,
        evaluation: Mapping[str, str] | None = None,
        data: str | None = None,
        rewards: tuple[str, ...] = (),
        style: Style = "chat",
        limit: int | None = None,
    ) -> None:
        self._name = name
        if train is None:
            if evaluation:
                raise CreditlibError(
                    "task.evaluation needs task.train: the embedded sample has splits of its own"
                )
            sample = Text2SQL(style=style, example_values=1)  # as the embedded policy knows it
            if unknown := [reward for reward in rewards if reward not in sample.reward_names]:
                raise CreditlibError(
                    f"task.rewards: the embedded sample has no reward {unknown[0]!r}, only "
                    f"{', '.join(sample.reward_names)}"
                )
            self._base: ReplayTask = sample
            self.reward_names = tuple(rewards)
        else:
            self._base = SimpleTask(
                name,
                prompts=_prompts(name, "train", train, data, style),
                rewards=_functions(rewards),
                eval_prompts={
                    split: _prompts(name, split, source, data, style)
                    for split, source in (evaluation or {}).items()
                },
            )
            self.reward_names = self._base.reward_names
        train_prompts = self._base.prompts("train")
        self._train = [train_prompts[i] for i in spread(len(train_prompts), limit)]

    @property
    def name(self) -> str:
        return self._name

    @property
    def eval_splits(self) -> tuple[str, ...]:
        return self._base.eval_splits

    @property
    def bounds(self) -> Mapping[str, tuple[float, float]]:
        return {name: self._base.bounds[name] for name in self.reward_names}

    def prompts(self, split: str) -> Sequence[Prompt]:
        """The prompts of ``"train"`` or of a held-out split."""
        return self._train if split == "train" else self._base.prompts(split)

    def target(self, prompt: Prompt) -> str:
        """A good response, where the prompts come with one."""
        return self._base.target(prompt)

    def verify(self, prompts: Sequence[Prompt], texts: Sequence[str]) -> list[dict[str, Check]]:
        """The verifiable rewards; nothing where there are none."""
        if not self.reward_names:
            return [{} for _ in texts]
        found = self._base.verify(prompts, texts)
        return [{name: checks[name] for name in self.reward_names} for checks in found]

    def information(self, prompt: Prompt, checks: Mapping[str, Check]) -> Mapping[str, str]:
        """What the verifiable rewards' verifiers went by, for credit=mrtpo and credit=routed."""
        if not self.reward_names:
            return {}
        return self._base.information(prompt, checks)

    def render(self, prompt: Prompt, information: Mapping[str, str]) -> Prompt:
        """`prompt` with this information."""
        return self._base.render(prompt, information)

    def parts(self, text: str) -> Sequence[Span]:
        """Labelled stretches of a response, where the prompts' own task knows some."""
        return self._base.parts(text) if isinstance(self._base, Text2SQL) else ()

    def close(self) -> None:
        self._base.close()


def _prompts(task: str, split: str, source: str, data: str | None, style: Style) -> list[Prompt]:
    found: list[Messages] = []
    problems: list[str] = []
    for place, row in read_rows(source, data):
        try:
            if row is None:
                raise ValueError("no JSON object")
            found.append(as_prompt(row))
        except (KeyError, TypeError, ValueError, IndexError) as error:
            problems.append(f"{place}: {type(error).__name__}: {error}")
    if problems or not found:
        raise MissingDataError(
            f"{source}: {len(problems)} of {len(problems) + len(found)} rows have no prompt that can be read "
            f"({'; '.join(problems[:_SHOWN]) or 'there are no rows'}). Expected one of prompt, messages, "
            "instruction, question, turns, chosen"
        )
    prompts = []
    for number, messages in enumerate(found):
        prompt = Prompt(f"{task}/{split}/{number}", task, messages=messages)
        if style == "text":
            text = "".join(f"{message['content']}\n\n" for message in messages)
            prompt = Prompt(prompt.id, task, text=text)
        prompts.append(prompt)
    return prompts


def _functions(paths: Sequence[str]) -> dict[str, Reward]:
    """By the last part of their path, which is the reward's name."""
    found: dict[str, Reward] = {}
    for path in paths:
        name = path.rpartition(".")[2]
        if name in found:
            raise CreditlibError(
                f"task.rewards: two functions are called {name}, and a reward has its own name"
            )
        found[name] = _function(path)
    return found


def _function(path: str) -> Reward:
    module, _, name = path.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise CreditlibError(
            f"task.rewards: expected the import path of a function of (prompt, response), found {path!r} "
            f"({error})"
        ) from error
    if not callable(found):
        raise CreditlibError(f"task.rewards: {path} is no function but {found!r}")
    reward: Reward = found
    return reward
