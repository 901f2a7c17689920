"""The token step against its definition."""

from __future__ import annotations

import math

import pytest
import torch

from creditlib.advantage.whitening import Whitening
from creditlib.types import Advantages


def whiten(values_BT: torch.Tensor, mask_BT: torch.Tensor) -> torch.Tensor:
    return Whitening.over(values_BT[mask_BT])(values_BT, mask_BT)


def test_statistics_are_over_valid_tokens_only() -> None:
    values_BT = torch.tensor([[1.0, 2.0, 1e9], [4.0, math.nan, math.inf]])
    mask_BT = torch.tensor([[True, True, False], [True, False, False]])
    result_BT = whiten(values_BT, mask_BT)
    mean, std = 7 / 3, math.sqrt(((1 - 7 / 3) ** 2 + (2 - 7 / 3) ** 2 + (4 - 7 / 3) ** 2) / 2)
    expected = [(value - mean) / std for value in (1, 2, 4)]
    assert result_BT[mask_BT].tolist() == pytest.approx(expected, abs=1e-6)
    assert (result_BT[~mask_BT] == 0).all()


def test_no_spread_is_exactly_zero() -> None:
    values_BT = torch.full((3, 3), 0.1)
    assert (whiten(values_BT, torch.ones(3, 3, dtype=torch.bool)) == 0).all()


@pytest.mark.parametrize("valid", [0, 1])
def test_too_few_tokens(valid: int) -> None:
    mask_BT = torch.zeros(2, 2, dtype=torch.bool)
    mask_BT.view(-1)[:valid] = True
    assert (whiten(torch.randn(2, 2), mask_BT) == 0).all()


def test_detached() -> None:
    assert not whiten(torch.randn(2, 3, requires_grad=True), torch.ones(2, 3, dtype=torch.bool)).requires_grad


def test_a_response_is_whitened_as_its_tokens_under_uniform_credit_are() -> None:
    torch.manual_seed(0)
    advantages = Advantages(torch.randn(3, 2), torch.randn(3))
    mask_BT = torch.tensor([[True, True], [True, False], [False, False]])
    tokens_BT = advantages.total_B[:, None] * mask_BT
    whitening = Whitening.over(tokens_BT[mask_BT])
    white = whitening.of_responses(advantages, mask_BT.any(1))
    torch.testing.assert_close(white.total_B[:, None] * mask_BT, whitening(tokens_BT, mask_BT))
    assert not white.by_reward_BK[2].any() and white.offset_B[2] == 0
