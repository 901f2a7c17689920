"""Adapters folded into the weights for as long as a block lasts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from peft.tuners.tuners_utils import BaseTunerLayer
from torch import Tensor, nn

# Below single precision a small update is rounded away against its weight, and the sampler would no longer be the policy.
_EXACT_ENOUGH = (torch.float32, torch.float64)


@contextmanager
def merged_adapters(model: nn.Module) -> Iterator[None]:
    """Run the block with LoRA's updates added to the weights: a forward pass then costs what it costs without adapters.

    The original weights are kept and put back, the very same tensors, also after an exception: nothing is subtracted, so
    nothing drifts. Layers stay as they are, and keep adding their adapter to their output, when their weights are not float32 or
    float64, when they share their weight with another layer, or when they are merged already. Costs a second copy of
    the adapted weights meanwhile; the adapters and optimizer states are untouched. No-op without adapters.
    """
    uses = Counter(id(parameter) for _, parameter in model.named_parameters(remove_duplicate=False))
    originals: list[tuple[nn.Parameter, Tensor]] = []
    merged: list[BaseTunerLayer] = []
    try:
        for layer in model.modules():
            if not isinstance(layer, BaseTunerLayer) or layer.merged or layer.disable_adapters:
                continue
            parameters = list(layer.get_base_layer().parameters(recurse=False))
            if not parameters or any(p.dtype not in _EXACT_ENOUGH or uses[id(p)] > 1 for p in parameters):
                continue
            for parameter in parameters:
                originals.append((parameter, parameter.data))
                parameter.data = parameter.data.clone()
            merged.append(layer)
            with torch.no_grad():
                layer.merge()
        yield
    finally:
        for layer in merged:
            layer.merged_adapters.clear()
        for parameter, data in originals:
            parameter.data = data
