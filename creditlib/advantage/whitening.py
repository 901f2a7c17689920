"""The token step of ``norm=token``: whitening over all valid tokens of the batch, as verl does."""

from __future__ import annotations

import torch
from torch import Tensor


def whiten(advantages_BT: Tensor, mask_BT: Tensor, shift_mean: bool = True) -> Tensor:
    """Token advantages with mean 0 and variance 1 over the valid tokens, 0 elsewhere; float32, detached.

    The statistics are weighted by tokens: long responses count more. They do not split over rewards, which is
    why a rule with ``norm=token`` leaves its columns unscaled and this runs on the token advantages of a
    whole rollout.

    Args:
        advantages_BT: token advantages.
        mask_BT: tokens that count; leave out the rows without any reward.
        shift_mean: False scales the deviations and puts the mean back.

    Returns:
        (B, T); all 0 with fewer than two valid tokens.

    Source: verl, ``masked_whiten`` in ``verl/utils/torch_functional.py`` (eps 1e-8 under the root, ddof 1).
    """
    values_N = advantages_BT[mask_BT].detach().double()
    whitened_BT = torch.zeros_like(advantages_BT, dtype=torch.float32)
    if len(values_N) < 2:
        return whitened_BT
    mean = values_N.mean()
    deviation_N = values_N - mean
    scaled_N = deviation_N / (deviation_N.square().sum() / (len(values_N) - 1) + 1e-8).sqrt()
    whitened_BT[mask_BT] = (scaled_N if shift_mean else scaled_N + mean).float()
    return whitened_BT
