"""What the processes of a run tell each other. With one process, nothing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TypeVar

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list, gather_object
from torch import Tensor

T = TypeVar("T")


class Processes:
    """All communication of a run. Every method is collective: all processes call it, in the same order.

    Args:
        accelerator: knows the processes; None: there is only this one.
    """

    def __init__(self, accelerator: Accelerator | None = None) -> None:
        self.rank: int = accelerator.process_index if accelerator else 0
        self.count: int = accelerator.num_processes if accelerator else 1

    def gather(self, value: T) -> list[T]:
        """Everyone's `value`, in order of rank. Tensors must be on the CPU."""
        if self.count == 1:
            return [value]
        everyone: list[T] = gather_object([value])
        return everyone

    def from_first(self, value: T) -> T:
        """The `value` of the first process."""
        if self.count == 1:
            return value
        box = [value]
        broadcast_object_list(box)
        return box[0]

    def sum(self, values: Sequence[float]) -> list[float]:
        """Sums over processes, exactly rounded, so the same everywhere. NaN and infinity pass through."""
        return [_fsum(column) for column in zip(*self.gather(list(values)), strict=True)]

    def sum_in_place(self, tensors: Iterable[Tensor]) -> None:
        """Each tensor becomes its sum over processes."""
        if self.count > 1:
            for tensor in tensors:
                torch.distributed.all_reduce(tensor)

    def wait(self) -> None:
        """Until everyone is here."""
        if self.count > 1:
            torch.distributed.barrier()


def _fsum(values: Sequence[float]) -> float:
    # math.fsum raises where infinities of both signs meet
    return math.fsum(values) if all(map(math.isfinite, values)) else sum(values)
