"""Your own prompts and reward functions as a task; `docs/your_own.md` trains on one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

from creditlib.types import Check, CreditlibError, Prompt

Reward = Callable[[Prompt, str], float | Check | None]
Item = str | Mapping[str, Any] | Prompt


class SimpleTask:
    """Wraps prompts and reward functions into a task.

    A prompt is a text (it becomes a user's message), a mapping with a text or a list of chat messages under
    ``"prompt"``, or a `Prompt`. What else the mapping holds goes to `Prompt.reference`, where reward
    functions find it.

    Args:
        name: the task's name.
        prompts: what to train on.
        rewards: name -> function of (prompt, response). It returns a number, a `Check` (which also says why
            and where), or None where the reward does not apply. None at all where a reward model judges.
        eval_prompts: held-out prompts: one split, named "eval", or several (name -> prompts).
        targets: prompt -> a response that earns every reward; only the warm start needs it.
        bounds: name -> least and greatest value of a reward that isn't within 0 and 1.

    Raises:
        CreditlibError: no prompts, bounds of an unknown reward, or a prompt of another form.
    """

    def __init__(
        self,
        name: str,
        *,
        prompts: Sequence[Item],
        rewards: Mapping[str, Reward],
        eval_prompts: Sequence[Item] | Mapping[str, Sequence[Item]] = (),
        targets: Callable[[Prompt], str] | None = None,
        bounds: Mapping[str, tuple[float, float]] | None = None,
    ) -> None:
        if not prompts:
            raise CreditlibError(f"task {name!r} needs at least one prompt")
        if unknown := set(bounds or {}) - set(rewards):
            raise CreditlibError(
                f"task {name!r}: bounds of {sorted(unknown)}, but rewards are {list(rewards)}"
            )
        if not isinstance(eval_prompts, Mapping):
            eval_prompts = {"eval": eval_prompts} if eval_prompts else {}
        if "train" in eval_prompts:
            raise CreditlibError(f"task {name!r}: 'train' is the training split's name, choose another")
        self._name = name
        self._rewards = dict(rewards)
        self._targets = targets
        self._bounds = {**dict.fromkeys(rewards, (0.0, 1.0)), **(bounds or {})}
        self._splits = {
            split: tuple(_prompt(item, f"{name}/{split}/{index}", name) for index, item in enumerate(items))
            for split, items in {"train": prompts, **eval_prompts}.items()
        }

    @property
    def name(self) -> str:
        return self._name

    @property
    def eval_splits(self) -> tuple[str, ...]:
        return tuple(split for split in self._splits if split != "train")

    def prompts(self, split: str) -> Sequence[Prompt]:
        """The prompts of ``"train"`` or of a held-out split."""
        if split not in self._splits:
            raise CreditlibError(f"task {self.name!r} has no split {split!r}, only {', '.join(self._splits)}")
        return self._splits[split]

    def target(self, prompt: Prompt) -> str:
        """A response that earns every reward, from `targets`."""
        if self._targets is None:
            raise CreditlibError(
                f"task {self.name!r} has no target responses; a warm start needs SimpleTask(..., targets=...)"
            )
        return self._targets(prompt)

    @property
    def reward_names(self) -> tuple[str, ...]:
        return tuple(self._rewards)

    @property
    def bounds(self) -> Mapping[str, tuple[float, float]]:
        return self._bounds

    def verify(self, prompts: Sequence[Prompt], texts: Sequence[str]) -> list[dict[str, Check]]:
        """Call every reward function on every response.

        Raises:
            CreditlibError: a reward function raised, or returned something else than it should.
        """
        return [
            {reward: self._check(reward, prompt, text) for reward in self._rewards}
            for prompt, text in zip(prompts, texts, strict=True)
        ]

    def information(self, prompt: Prompt, checks: Mapping[str, Check]) -> dict[str, str]:
        """What reward functions gave as the `Check.info` of their findings, for credit=mrtpo."""
        return {reward: check.info for reward, check in checks.items() if check.info}

    def render(self, prompt: Prompt, information: Mapping[str, str]) -> Prompt:
        """`prompt` with this information in lines at its end.

        A fact that the prompt states as well is not removed by leaving it out: derive a class that takes it
        out of the prompt where that matters.
        """
        lines = "".join(f"\n{text}" for text in information.values())
        if prompt.messages is None:
            return replace(prompt, text=f"{prompt.text}{lines}")
        *before, last = prompt.messages
        return replace(prompt, messages=(*before, {**last, "content": last["content"] + lines}))

    def close(self) -> None:
        """Nothing to end: reward functions run in this process."""

    def _check(self, reward: str, prompt: Prompt, text: str) -> Check:
        where = f"reward {reward!r} of task {self.name!r} on prompt {prompt.id!r}"
        try:
            found = self._rewards[reward](prompt, text)
        except Exception as error:  # anything may go wrong in code that isn't ours
            raise CreditlibError(
                f"{where} raised {type(error).__name__}: {error}. The response was {text[:200]!r}"
            ) from error
        if isinstance(found, Check):
            check = found
        elif found is None:
            check = Check(math.nan, "does not apply")
        elif isinstance(found, Real):
            check = Check(float(found))
        else:
            raise CreditlibError(f"{where} returned {found!r}; expected a number, a Check or None")
        low, high = self._bounds[reward]
        if not (math.isnan(check.score) or low <= check.score <= high):
            raise CreditlibError(
                f"{where} returned {check.score}, outside of {low} to {high}: mend the function, or declare "
                f"SimpleTask(..., bounds={{{reward!r}: (least, greatest)}})"
            )
        return check


def _prompt(item: Item, prompt_id: str, task: str) -> Prompt:
    if isinstance(item, Prompt):
        return item
    row = {"prompt": item} if isinstance(item, str) else item
    asked = row.get("prompt") if isinstance(row, Mapping) else None
    if isinstance(asked, str):
        asked = [{"role": "user", "content": asked}]
    if not isinstance(asked, list | tuple) or not asked:
        raise CreditlibError(
            f"prompt {prompt_id}: expected a text, a Prompt, or a mapping with a text or a list of messages "
            f"under 'prompt'; found {item!r:.80}"
        )
    reference = {key: value for key, value in row.items() if key != "prompt"}
    return Prompt(prompt_id, task, messages=tuple(asked), reference=reference)
