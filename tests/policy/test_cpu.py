"""oneDNN products are torch's, forward and backward."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from creditlib.policy import cpu


@pytest.fixture
def slow_mkl(monkeypatch: pytest.MonkeyPatch) -> None:
    if not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        pytest.skip("this torch carries no oneDNN")
    monkeypatch.setattr(cpu, "mkl_is_slow", lambda: True)


@pytest.mark.parametrize("shape", [(7, 24), (3, 5, 24), (1, 24)])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.usefixtures("slow_mkl")
def test_a_moved_layer_gives_the_same_output_and_gradients(shape: tuple[int, ...], bias: bool) -> None:
    torch.manual_seed(0)
    plain = nn.Linear(24, 40, bias=bias)
    moved = cpu.use_onednn(copy.deepcopy(plain))
    assert type(moved) is cpu.OneDnnLinear and type(copy.deepcopy(moved)) is cpu.OneDnnLinear
    x = torch.randn(shape, requires_grad=True)
    weight = torch.randn(*shape[:-1], 40)
    (x_grad,) = torch.autograd.grad((plain(x) * weight).sum(), x, retain_graph=True)
    (plain(x) * weight).sum().backward()
    y = x.detach().requires_grad_()
    out = moved(y)
    torch.testing.assert_close(out, plain(x))
    (out * weight).sum().backward()
    torch.testing.assert_close(y.grad, x_grad)
    for a, b in zip(moved.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad)


@pytest.mark.usefixtures("slow_mkl")
def test_other_types_and_empty_inputs_take_torchs_way() -> None:
    layer = cpu.use_onednn(nn.Linear(4, 3))
    assert layer(torch.zeros(0, 4)).shape == (0, 3)
    double = layer.double()
    x = torch.randn(2, 4, dtype=torch.float64)
    assert torch.equal(double(x), torch.nn.functional.linear(x, double.weight, double.bias))
    assert double.state_dict().keys() == nn.Linear(4, 3).state_dict().keys()
