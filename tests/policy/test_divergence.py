"""The Jensen-Shannon divergence against scipy and against its definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon
from torch import Tensor

from creditlib.policy.divergence import compare_rows, js, js_divergence, probabilities, top_k_js


def scipys(p_TV: Tensor, q_TV: Tensor) -> np.ndarray:
    p, q = (torch.softmax(x.double(), -1).numpy() for x in (p_TV, q_TV))
    p[p < 1e-300], q[q < 1e-300] = 0, 0  # scipy divides by their mean, which may be 0
    return np.nan_to_num(jensenshannon(p, q, axis=1)) ** 2  # NaN: the root of -1e-17


def test_golden_value() -> None:
    p, q = (torch.tensor([row]).log() for row in ([0.7, 0.2, 0.1], [0.1, 0.2, 0.7]))
    divergence = js_divergence(p, q).item()
    assert divergence == pytest.approx(0.253102, abs=1e-6)
    assert divergence / math.log(2) == pytest.approx(0.365148, abs=1e-6)
    assert math.sqrt(divergence) == pytest.approx(0.503092, abs=1e-6)


@pytest.mark.parametrize("vocabulary", [5, 1536, 152_000])
@pytest.mark.parametrize("move", [0.0, 1e-4, 1e-2, 1.0, 30.0])
def test_random_logits_against_scipy(vocabulary: int, move: float) -> None:
    generator = torch.Generator().manual_seed(vocabulary)
    p = torch.randn(6, vocabulary, generator=generator) * torch.tensor([0.1, 1, 4, 10, 40, 200])[:, None]
    q = p + move * torch.randn(6, vocabulary, generator=generator)
    have = js_divergence(p, q)
    assert have.dtype == torch.float32
    np.testing.assert_allclose(have.numpy(), scipys(p, q), atol=1e-6)
    if move == 0:
        assert (have < 1e-30).all()


def test_small_divergences_keep_their_digits() -> None:
    # The square root turns an error of 1e-7 in the divergence into a distance of 3e-4.
    generator = torch.Generator().manual_seed(0)
    p = 3 * torch.randn(20, 50_000, generator=generator)
    q = p + 1e-4 * torch.randn(20, 50_000, generator=generator)
    want = js_divergence(p.double(), q.double())
    assert 1e-10 < want.mean() < 1e-8
    torch.testing.assert_close(js_divergence(p, q).double(), want, rtol=0.02, atol=0)


def test_one_hot_and_impossible_tokens() -> None:
    p, q = torch.full((3, 9), -torch.inf), torch.full((3, 9), -torch.inf)
    p[:, 2] = 0
    q[0, 2], q[1, 5] = 0, 0
    q[2, [2, 5]] = 0
    want = [0, math.log(2)]
    have = js_divergence(p, q)
    assert have[:2].tolist() == pytest.approx(want, abs=1e-6)
    np.testing.assert_allclose(have.numpy(), scipys(p, q), atol=1e-6)


LOGITS = st.lists(st.floats(-1e4, 1e4) | st.just(-math.inf), min_size=4, max_size=4).filter(
    lambda row: max(row) > -math.inf
)


@given(LOGITS, LOGITS)
@settings(max_examples=500, deadline=None)
def test_bounds_and_symmetry(p: list[float], q: list[float]) -> None:
    there, back = (js_divergence(torch.tensor([a]), torch.tensor([b])).item() for a, b in ((p, q), (q, p)))
    assert 0 <= there <= math.log(2) + 1e-6
    assert there == pytest.approx(back, abs=1e-7)


def test_bfloat16_logits_are_compared_in_float32() -> None:
    p, q = torch.randn(4, 300).bfloat16(), torch.randn(4, 300).bfloat16()
    torch.testing.assert_close(js_divergence(p, q), js_divergence(p.float(), q.float()))


def test_top_k_is_a_lower_bound_that_ends_at_the_whole() -> None:
    torch.manual_seed(0)
    p, q = probabilities(4 * torch.randn(30, 400)), probabilities(4 * torch.randn(30, 400))
    exact, same_T = js_divergence(p.log(), q.log()), torch.arange(30)
    estimates = [compare_rows(top_k_js(k), p, same_T, q, same_T) for k in (1, 5, 50, 400, 4000)]
    for coarse, finer in zip(estimates, [*estimates[1:], exact], strict=True):
        assert (coarse <= finer + 1e-6).all()
    torch.testing.assert_close(estimates[-1], exact)
    assert (estimates[0] < exact - 1e-3).any()


def test_rows_are_compared_as_asked() -> None:
    torch.manual_seed(0)
    p, q = probabilities(torch.randn(4, 200_000)), probabilities(torch.randn(3, 200_000))
    p_T, q_T = torch.tensor([0, 3, 3, 1, 0, 2, 2]), torch.tensor([2, 0, 1, 1, 2, 0, 2])
    torch.testing.assert_close(compare_rows(js, p, p_T, q, q_T), js_divergence(p[p_T].log(), q[q_T].log()))


def test_top_k_keeps_the_mass_of_the_rest() -> None:
    p, q = torch.tensor([[0.5, 0.3, 0.1, 0.1]]), torch.tensor([[0.1, 0.1, 0.5, 0.3]])
    same = torch.arange(1)
    # Likeliest under the mean are the first and the third (0.3 each); the others are one.
    want = js_divergence(torch.tensor([[0.5, 0.1, 0.4]]).log(), torch.tensor([[0.1, 0.5, 0.4]]).log())
    torch.testing.assert_close(compare_rows(top_k_js(2), p, same, q, same), want)


def test_top_k_of_peaked_distributions_stays_below_the_whole() -> None:
    """Their rest is smaller than the rounding of 1 less the kept ones."""
    torch.manual_seed(0)
    p = probabilities(8 * torch.randn(200, 1000))
    q = probabilities(p.log() + 1e-3 * torch.randn(200, 1000))
    same = torch.arange(200)
    exact, coarse = (compare_rows(own, p, same, q, same) for own in (js, top_k_js(50)))
    assert (coarse <= exact * 1.001 + 1e-12).all()


def test_what_is_no_pair_of_distributions() -> None:
    logits = torch.randn(2, 5, requires_grad=True)
    assert not js_divergence(logits, torch.randn(2, 5).double()).requires_grad
    for other in (torch.randn(3, 5), torch.randn(2, 6)):
        with pytest.raises(ValueError, match="alike in shape"):
            js_divergence(logits, other)


def test_rounding_makes_no_divergence_negative() -> None:
    torch.manual_seed(0)
    logits = 5 * torch.randn(2000, 300)
    assert (js_divergence(logits, logits + 1e-6 * torch.randn(2000, 300)) >= 0).all()
