"""The Jensen-Shannon divergence of next-token distributions."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

_BLOCK = 1 << 18  # probabilities compared at a time: what stays in the cache is several times as fast


def js_divergence(logits_p_TV: Tensor, logits_q_TV: Tensor) -> Tensor:
    """JSD(p, q) = KL(p|m)/2 + KL(q|m)/2 with m = (p + q)/2, in nats, between 0 and ln 2 (Lin 1991).

    Args:
        logits_p_TV: (T, V); -inf is probability 0.
        logits_q_TV: likewise.

    Returns:
        (T,) float32, float64 for logits in float64, without gradient. NaN where a row is no distribution (all
        -inf, NaN, or +inf).
    """
    if logits_p_TV.shape != logits_q_TV.shape:
        raise ValueError(
            f"expected logits alike in shape, found {(*logits_p_TV.shape,)} and {(*logits_q_TV.shape,)}"
        )
    dtype = torch.promote_types(logits_p_TV.dtype, logits_q_TV.dtype)
    p_TV, q_TV = (probabilities(logits_TV.detach().to(dtype)) for logits_TV in (logits_p_TV, logits_q_TV))
    same_T = torch.arange(len(p_TV), device=p_TV.device)
    return compare_rows(js, p_TV, same_T, q_TV, same_T)


def probabilities(logits_TV: Tensor) -> Tensor:
    """Softmax in float32 at least, to all its digits."""
    p_TV = torch.softmax(logits_TV, -1, dtype=torch.promote_types(logits_TV.dtype, torch.float32))
    # softmax adds up term after term, which costs the last digits with a vocabulary of 100,000; sum does not.
    return p_TV.div_(p_TV.sum(-1, keepdim=True))


def compare_rows(
    divergence: Callable[[Tensor, Tensor, Tensor], Tensor],
    p_MV: Tensor,
    p_T: Tensor,
    q_MV: Tensor,
    q_T: Tensor,
) -> Tensor:
    """`divergence` of row `p_T[t]` of `p_MV` and row `q_T[t]` of `q_MV`, (T,), a few rows at a time.

    Args:
        divergence: of two (R, V) that it may overwrite, with room for two more, (2, R, V).
    """
    rows = max(1, _BLOCK // max(1, p_MV.shape[1]))
    # One piece of memory for all: new pages for every few rows would take most of the time.
    memory_4RV = p_MV.new_empty((4, min(rows, len(p_T)), p_MV.shape[1]))
    pieces = []
    for some_p, some_q in zip(p_T.split(rows), q_T.split(rows), strict=True):
        p_RV, q_RV = memory_4RV[:2, : len(some_p)]
        torch.index_select(p_MV, 0, some_p, out=p_RV)
        torch.index_select(q_MV, 0, some_q, out=q_RV)
        pieces.append(divergence(p_RV, q_RV, memory_4RV[2:, : len(some_p)]))
    return torch.cat(pieces)


def js(p_TV: Tensor, q_TV: Tensor, room_2TV: Tensor) -> Tensor:
    """JSD of probabilities, (T,); overwrites all that it is given.

    Each KL is summed as m (u log u - u + 1) with u = p/m. What is added sums to zero over the vocabulary, but
    no term is negative then, and where p and q are close, the rounding of u hardly matters.
    """
    tiny = torch.finfo(p_TV.dtype).tiny  # stands for 0, whose logarithm times 0 would be NaN
    m_TV, log_TV = room_2TV
    torch.add(p_TV, q_TV, out=m_TV).mul_(0.5).clamp_(min=tiny)
    terms_TV = _excess(p_TV.div_(m_TV).clamp_(min=tiny), log_TV)
    terms_TV.add_(_excess(q_TV.div_(m_TV).clamp_(min=tiny), log_TV))
    return terms_TV.mul_(m_TV).sum(-1).div_(2).clamp_(min=0)


def _excess(u: Tensor, log: Tensor) -> Tensor:
    """u log u - (u - 1), in place of `u`; `log` is room for the logarithm."""
    torch.log(u, out=log).mul_(u)
    return torch.sub(log, u.sub_(1), out=u)


def top_k_js(k: int) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """`js` of coarser distributions: the `k` tokens likeliest under m, and all others as one.

    Merging tokens only loses information, so it is a lower bound (data processing inequality).
    """

    def coarse_js(p_TV: Tensor, q_TV: Tensor, room_2TV: Tensor) -> Tensor:
        if k >= p_TV.shape[1]:
            return js(p_TV, q_TV, room_2TV)
        kept_Tk = torch.add(p_TV, q_TV, out=room_2TV[0]).topk(k, dim=1).indices
        p_Tk, q_Tk = _coarse(p_TV, kept_Tk), _coarse(q_TV, kept_Tk)
        return js(p_Tk, q_Tk, p_Tk.new_empty((2, *p_Tk.shape)))

    return coarse_js


def _coarse(p_TV: Tensor, kept_Tk: Tensor) -> Tensor:
    """Overwrites `p_TV`."""
    p_Tk = p_TV.gather(1, kept_Tk)
    # 1 less the kept ones would be rounding where they are nearly all.
    rest_T1 = p_TV.scatter_(1, kept_Tk, 0.0).sum(1, keepdim=True)
    return torch.cat([p_Tk, rest_T1], 1)
