"""How far a reward's gradient points along the update of a sampled token, in the policy's logit space.

At a position with next-token probabilities p and sampled token a, a reward model with the input embeddings W
(in the policy's order of tokens) has the gradient f with respect to the embedding it was given. The
straight-through bridge e = p W + sg[W_a - p W] takes it to the policy's logits. With v = W f and
mu = <p, v>::

    g = p * (v - mu)          gradient of the reward in the logits
    k = 1_a - p               gradient of log p(a), the direction in which the token's update moves them
    d = <g, k> = p_a (v_a - mu) - sum_b p_b^2 (v_b - mu)

Logits are those that are sampled from, divided by the temperature.
"""

from __future__ import annotations

import torch
from torch import Tensor

from creditlib.types import Directions


def directions(logits_MV: Tensor, actions_M: Tensor, values_MV: Tensor) -> Directions:
    """d = <g, k> and the norms of g and k, in the precision of the logits. Overwrites `values_MV`.

    Args:
        logits_MV: -inf is probability 0.
        actions_M: the sampled tokens, none of them impossible.
        values_MV: v = W f.
    """
    a_M1 = actions_M[:, None]
    p_MV = torch.softmax(logits_MV, -1)
    # About their mean and not about 0: what all tokens have in common would only add rounding.
    values_MV.sub_(torch.linalg.vecdot(p_MV, values_MV)[:, None])
    p_M, value_M = p_MV.gather(1, a_M1)[:, 0], values_MV.gather(1, a_M1)[:, 0]
    gradient_MV = values_MV.mul_(p_MV)
    score_M = p_M * value_M - torch.linalg.vecdot(p_MV, gradient_MV)
    update_M = (1 - 2 * p_M + torch.linalg.vecdot(p_MV, p_MV)).clamp(min=0)
    return Directions(score_M, torch.linalg.vector_norm(gradient_MV, dim=-1), update_M.sqrt())
