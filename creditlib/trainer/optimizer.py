"""AdamW in single precision whatever the model's own, over all processes; the learning rate's schedule."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from creditlib.config import TrainerConfig
from creditlib.trainer.processes import Processes
from creditlib.types import CreditlibError

_PRECISE = (torch.float32, torch.float64)


class Optimizer:
    """AdamW over the parameters that have a gradient.

    A bfloat16 weight keeps 8 bits, so an update below 1/512 of its size, as RL makes them, would be rounded
    away. Such weights train as float32 copies, which also collect the gradients; the model gets the rounded
    copies. Weights of higher precision, as adapters are, are trained as they are.

    Args:
        model: the policy.
        betas: of AdamW.
        weight_decay: of AdamW.
        max_grad_norm: gradients are clipped to this norm; None: they are not.
        processes: gradients are summed over them; None: there is only this one.

    Raises:
        CreditlibError: the model has no trainable parameter.
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        betas: tuple[float, float],
        weight_decay: float,
        max_grad_norm: float | None,
        processes: Processes | None = None,
    ) -> None:
        self._processes = processes or Processes()
        self._max_norm = math.inf if max_grad_norm is None else max_grad_norm
        self._weights = [parameter for parameter in model.parameters() if parameter.requires_grad]
        if not self._weights:
            raise CreditlibError(
                "no parameter of the model is trainable: model.path must lead to a model whose weights are "
                "not frozen, or model.lora must give it an adapter (model.lora.r=16)"
            )
        self.parameters = [
            weight if weight.dtype in _PRECISE else nn.Parameter(weight.detach().float())
            for weight in self._weights
        ]
        self._copies = [(w, p) for w, p in zip(self._weights, self.parameters, strict=True) if w is not p]
        # The rate is an argument of each step.
        self._adamw = torch.optim.AdamW(self.parameters, lr=0.0, betas=betas, weight_decay=weight_decay)

    def zero_grad(self) -> None:
        self._adamw.zero_grad(set_to_none=True)

    def accumulate(self) -> None:
        """Take over the gradients of a backward pass; call it after each."""
        for weight, parameter in self._copies:
            if weight.grad is None:
                continue
            parameter.grad = (
                weight.grad.float() if parameter.grad is None else parameter.grad.add_(weight.grad)
            )
            weight.grad = None

    def reduce(self) -> float:
        """Sum the gradients over processes and clip them; the norm before, the same on all processes."""
        if self._processes.count > 1:
            for parameter in self.parameters:  # a process without rows must take part too
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
            self._processes.sum_in_place(
                parameter.grad for parameter in self.parameters if parameter.grad is not None
            )
        return float(torch.nn.utils.clip_grad_norm_(self.parameters, self._max_norm))

    def step(self, learning_rate: float) -> None:
        for group in self._adamw.param_groups:
            group["lr"] = learning_rate
        self._adamw.step()
        for weight, parameter in self._copies:
            weight.data.copy_(parameter.data)

    def state_dict(self) -> dict[str, Any]:
        return {
            "adamw": self._adamw.state_dict(),
            "copies": [parameter.data for _, parameter in self._copies],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict`; the model's own weights are loaded apart."""
        self._adamw.load_state_dict(state["adamw"])
        copies: list[Tensor] = state["copies"]
        for (_, parameter), saved in zip(self._copies, copies, strict=True):
            parameter.data.copy_(saved)


def learning_rate(settings: TrainerConfig, step: int) -> float:
    """The rate of all updates of rollout `step` (from 1): warm-up, then the schedule."""
    if step <= settings.warmup_steps:
        return settings.learning_rate * step / settings.warmup_steps
    share = (step - settings.warmup_steps - 1) / max(settings.steps - settings.warmup_steps, 1)
    factor = {
        "constant": 1.0,
        "linear": 1.0 - share,
        "cosine": 0.5 * (1.0 + math.cos(math.pi * share)),
    }[settings.schedule]
    return settings.learning_rate * factor
