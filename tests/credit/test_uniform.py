"""Uniform credit is the response-level method, bit for bit."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from creditlib.credit.uniform import Uniform
from creditlib.types import Advantages


def test_every_token_earns_the_advantage_of_its_response() -> None:
    torch.manual_seed(0)
    advantages = Advantages(torch.randn(5, 3), torch.randn(5))
    mask_BT = torch.arange(7) < torch.tensor([7, 1, 0, 3, 6])[:, None]
    context = SimpleNamespace(advantages=advantages, rollout=SimpleNamespace(mask_BT=mask_BT))
    credit = Uniform().assign(context)  # type: ignore[arg-type]
    assert torch.equal(credit.advantages_BT, advantages.total_B[:, None] * mask_BT)
    assert credit.mean_one and credit.bonus_BT is None
    assert credit.weights_BKT.shape == (5, 3, 7) and (credit.weights_BKT == 1).all()
    assert credit.weights_BKT.untyped_storage().nbytes() == 4
    assert Uniform().needs == frozenset()
