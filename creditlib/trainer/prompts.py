"""The training prompts: that there are some, that they fit, and the order in which they are drawn."""

from __future__ import annotations

import random
from collections.abc import Sequence

from creditlib.types import CreditlibError, Prompt, Task


def training_prompts(task: Task) -> Sequence[Prompt]:
    """All of the task's training prompts.

    Raises:
        CreditlibError: there are none.
    """
    prompts = task.prompts("train")
    if not prompts:
        raise CreditlibError(
            f"task {task.name} has no training prompts: its split 'train' is empty. Choose other data or "
            "another limit in the settings of the task (task.*)"
        )
    return prompts


def check_lengths(prompts: Sequence[Prompt], lengths: Sequence[int], limit: int, why: str, way: str) -> None:
    """Tell of prompts that are too long before the run meets the first of them, which may be late.

    Args:
        prompts: all that the run may draw.
        lengths: tokens of each, with whatever else must fit.
        limit: the longest that is allowed.
        why: where the limit comes from.
        way: which settings to change.

    Raises:
        CreditlibError: some are longer; with their number and the longest.
    """
    long = sum(length > limit for length in lengths)
    if long:
        longest = max(range(len(lengths)), key=lambda n: lengths[n])
        raise CreditlibError(
            f"{long} of {len(prompts)} training prompts are longer than {limit} tokens, {why}. The longest, "
            f"{prompts[longest].id!r}, has {lengths[longest]}. {way}"
        )


class PromptStream:
    """Every prompt once an epoch, in a new random order each epoch.

    The order is a function of the seed alone, so `position`, the number of prompts given so far, is all that
    a checkpoint needs to keep.

    Args:
        prompts: at least one.
        seed: of the order.
    """

    def __init__(self, prompts: Sequence[Prompt], seed: int) -> None:
        self._prompts, self._seed = prompts, seed
        self.position = 0
        self._epoch, self._order = -1, list(range(len(prompts)))

    def take(self, count: int) -> list[Prompt]:
        """The next `count` prompts."""
        taken = [self._at(position) for position in range(self.position, self.position + count)]
        self.position += count
        return taken

    def _at(self, position: int) -> Prompt:
        epoch, place = divmod(position, len(self._prompts))
        if epoch != self._epoch:
            self._epoch, self._order = epoch, list(range(len(self._prompts)))
            random.Random(f"prompts-{self._seed}-{epoch}").shuffle(self._order)
        return self._prompts[self._order[place]]
