"""The order in which training prompts are drawn."""

from __future__ import annotations

import random
from collections.abc import Sequence

from creditlib.types import CreditlibError, Prompt


class PromptStream:
    """Every prompt once an epoch, in a new random order each epoch.

    The order is a function of the seed alone, so `position`, the number of prompts given so far, is all that
    a checkpoint needs to keep.
    """

    def __init__(self, prompts: Sequence[Prompt], seed: int) -> None:
        if not prompts:
            raise CreditlibError("the task has no training prompts")
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
