"""Adapters folded into the weights for as long as a block lasts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from peft.tuners.tuners_utils import BaseTunerLayer
from torch import Tensor, nn

# In half precision an update is mostly rounded away against its weight: the sampler would not be the policy.
_PRECISE = (torch.float32, torch.float64)


@contextmanager
def merged_adapters(model: nn.Module) -> Iterator[None]:
    """Run the block with LoRA's updates added to the weights, so that a forward costs what it costs without
    adapters.

    The original weights are set aside and put back, the very same tensors, after an exception too: nothing is
    subtracted, so nothing drifts. Meanwhile the adapted weights take twice their memory. A layer keeps
    computing its adapter apart if its weight is not float32 or float64, is shared with another layer (tied
    embeddings), or is merged already. Without adapters nothing happens.
    """
    uses = Counter(id(parameter) for _, parameter in model.named_parameters(remove_duplicate=False))
    originals: list[tuple[nn.Parameter, Tensor]] = []
    merged: list[BaseTunerLayer] = []
    try:
        for module in model.modules():
            if not isinstance(module, BaseTunerLayer) or module.merged or module.disable_adapters:
                continue
            parameters = list(module.get_base_layer().parameters(recurse=False))
            if not parameters or any(p.dtype not in _PRECISE or uses[id(p)] > 1 for p in parameters):
                continue
            for parameter in parameters:
                originals.append((parameter, parameter.data))
                parameter.data = parameter.data.clone()  # merging writes in place
            merged.append(module)
            with torch.no_grad():
                module.merge()
        yield
    finally:
        for layer in merged:
            layer.merged_adapters.clear()
        for parameter, data in originals:
            parameter.data = data
