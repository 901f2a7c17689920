"""The language-model head over chunks of tokens, so that no (B, T, V) tensor ever exists."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

CHUNK = 512  # tokens whose (chunk, V) logits exist at one time


class Head(nn.Module):
    """Hidden states -> logits, as the model itself would do it: its output layer and whatever its family does
    after it.
    """

    def __init__(self, causal_lm: Any) -> None:
        super().__init__()
        self.linear = causal_lm.get_output_embeddings()
        config = causal_lm.config.get_text_config()
        self.softcap: float | None = getattr(config, "final_logit_softcapping", None)
        # Granite divides its logits, Cohere multiplies them.
        self.scale = getattr(config, "logit_scale", None) or 1.0 / (
            getattr(config, "logits_scaling", None) or 1.0
        )

    def forward(self, hidden_MD: Tensor) -> Tensor:
        logits_MV: Tensor = self.linear(hidden_MD)
        if self.scale != 1.0:
            logits_MV = logits_MV * self.scale
        if self.softcap:
            logits_MV = torch.tanh(logits_MV / self.softcap) * self.softcap
        return logits_MV

    @property
    def frozen_linear(self) -> bool:
        """A plain linear map without gradient: then its backward needs no second pass over the logits."""
        plain = (
            type(self.linear) is nn.Linear
            and self.linear.bias is None
            and not self.softcap
            and self.scale == 1.0
        )
        return plain and not self.linear.weight.requires_grad


def selected_logps(
    head: Head,
    hidden_MD: Tensor,
    targets_M: Tensor,
    *,
    temperature: float = 1.0,
    chunk: int = CHUNK,
    entropy_grad: bool = False,
) -> tuple[Tensor, Tensor]:
    """Log-probability of `targets_M` and entropy (nats) of each distribution, both (M,) float32 (float64 in a
    float64 model).

    The softmax is over the full vocabulary at `temperature`. Logits are recomputed in the backward pass,
    chunk by chunk; with a frozen head the gradient of a log-probability, W_a - p W, is made in the forward
    pass and nothing is recomputed.

    Args:
        head: the model's head.
        hidden_MD: hidden states that predict `targets_M`.
        targets_M: token ids.
        temperature: divides the logits.
        chunk: tokens whose logits exist at one time.
        entropy_grad: whether the entropy is differentiated too.
    """
    if head.frozen_linear and not entropy_grad:
        both: tuple[Tensor, Tensor] = _FrozenHead.apply(  # type: ignore[no-untyped-call]
            hidden_MD, head.linear.weight, targets_M, temperature, chunk
        )
        return both
    pieces = []
    for start in range(0, max(len(targets_M), 1), chunk):  # no token at all: one empty piece
        part = slice(start, start + chunk)
        if torch.is_grad_enabled():
            pieces.append(
                checkpoint(_piece, head, hidden_MD[part], targets_M[part], temperature, use_reentrant=False)
            )
        else:
            pieces.append(_piece(head, hidden_MD[part], targets_M[part], temperature))
    logps_M = torch.cat([logps for logps, _ in pieces])
    entropy_M = torch.cat([entropy for _, entropy in pieces])
    return logps_M, entropy_M if entropy_grad else entropy_M.detach()


def _piece(head: Head, hidden_MD: Tensor, targets_M: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    log_p_MV = torch.log_softmax(wide(head(hidden_MD)) / temperature, dim=-1)
    return log_p_MV.gather(1, targets_M[:, None])[:, 0], -(log_p_MV.exp() * log_p_MV).sum(-1)


def wide(logits: Tensor) -> Tensor:
    """In float32 at least."""
    return logits if logits.dtype == torch.float64 else logits.float()


class _FrozenHead(torch.autograd.Function):
    """log p(a) and entropy for logits = h W^T; d log p(a) / d h = (W_a - p W) / temperature, saved by the
    forward pass.
    """

    @staticmethod
    def forward(
        ctx: Any, hidden_MD: Tensor, weight_VD: Tensor, targets_M: Tensor, temperature: float, chunk: int
    ) -> tuple[Tensor, Tensor]:
        wide = torch.float64 if hidden_MD.dtype == torch.float64 else torch.float32
        logps_M = hidden_MD.new_empty(len(targets_M), dtype=wide)
        entropy_M = torch.empty_like(logps_M)
        jacobian_MD = torch.empty_like(hidden_MD) if hidden_MD.requires_grad else None
        for start in range(0, len(targets_M), chunk):
            part = slice(start, start + chunk)
            logits_MV = (hidden_MD[part] @ weight_VD.T).to(wide)
            logits_MV /= temperature
            norm_M = logits_MV.logsumexp(-1)
            logps_M[part] = logits_MV.gather(1, targets_M[part, None])[:, 0] - norm_M
            p_MV = (logits_MV - norm_M[:, None]).exp_()
            entropy_M[part] = norm_M - torch.linalg.vecdot(p_MV, logits_MV)
            if jacobian_MD is not None:
                expected_MD = p_MV.to(weight_VD.dtype) @ weight_VD
                jacobian_MD[part] = (weight_VD[targets_M[part]] - expected_MD) / temperature
        ctx.mark_non_differentiable(entropy_M)
        ctx.save_for_backward(jacobian_MD)
        return logps_M, entropy_M

    @staticmethod
    def backward(ctx: Any, grad_M: Tensor, _grad_entropy_M: Tensor) -> tuple[Tensor | None, ...]:
        (jacobian_MD,) = ctx.saved_tensors
        return (grad_M[:, None] * jacobian_MD).to(jacobian_MD.dtype), None, None, None, None
