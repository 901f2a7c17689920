"""DATC's direction score: closed form against automatic differentiation through the bridge."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from creditlib.credit.datc import direction_scores
from creditlib.policy.direction import directions
from creditlib.policy.replay import SamplingPolicy
from creditlib.policy.scoring import Scorer
from creditlib.types import CreditlibError
from tests.conftest import random_model


def bridge(
    logits_TV: Tensor, actions_T: Tensor, grads_TD: Tensor, embedding_VD: Tensor
) -> tuple[Tensor, Tensor]:
    """Gradients in the logits of a reward with these embedding gradients, and of log p(a), by autograd."""
    logits_TV = logits_TV.clone().requires_grad_()
    p_TV = torch.softmax(logits_TV, -1)
    soft_TD = p_TV @ embedding_VD
    embedded_TD = soft_TD + (embedding_VD[actions_T] - soft_TD).detach()
    (g_TV,) = torch.autograd.grad((embedded_TD * grads_TD).sum(), logits_TV, retain_graph=True)
    logp_T = torch.log_softmax(logits_TV, -1).gather(1, actions_T[:, None])
    (k_TV,) = torch.autograd.grad(logp_T.sum(), logits_TV)
    return g_TV, k_TV


def problem(seed: int, spread: float, masked: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    tokens, vocab, width = 300, 41, 7  # more tokens than are held at a time
    logits_TV = spread * torch.randn(tokens, vocab, dtype=torch.float64, generator=generator)
    if masked:
        hidden_TV = torch.rand(tokens, vocab, generator=generator) < 0.3
        hidden_TV[:, 0] = False
        logits_TV[hidden_TV] = -torch.inf
    actions_T = torch.multinomial(torch.softmax(logits_TV, -1), 1, generator=generator)[:, 0]
    grads_TD = torch.randn(tokens, width, dtype=torch.float64, generator=generator)
    embedding_VD = 5 + torch.randn(vocab, width, dtype=torch.float64, generator=generator)
    return logits_TV, actions_T, grads_TD, embedding_VD


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("spread", [0.1, 3.0, 40.0])
@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_the_closed_form_is_the_dense_gradient(spread: float, masked: bool, temperature: float) -> None:
    logits_TV, actions_T, grads_TD, embedding_VD = problem(1, spread, masked)
    logits_TV = logits_TV / temperature
    g_TV, k_TV = bridge(logits_TV, actions_T, grads_TD, embedding_VD)
    have_T = direction_scores(logits_TV, actions_T, grads_TD, embedding_VD, sigma=0.7)
    torch.testing.assert_close(have_T, (g_TV * k_TV).sum(1) / 0.7, rtol=1e-10, atol=1e-10)
    found = directions(logits_TV, actions_T, grads_TD @ embedding_VD.T)
    torch.testing.assert_close(found.gradient_norm_M, g_TV.norm(dim=1), rtol=1e-10, atol=1e-10)
    # 1 - p_a of a token that is all but certain has no more digits than this.
    torch.testing.assert_close(found.update_norm_M, k_TV.norm(dim=1), rtol=1e-10, atol=1e-7)


def test_golden_values() -> None:
    logits_TV = torch.tensor([[0.5, -1, 0, 2, 0.3]], dtype=torch.float64)
    grads_TD = torch.tensor([[1, -2, 0.5]], dtype=torch.float64)
    embedding_VD = torch.arange(15, dtype=torch.float64).reshape(5, 3) / 10
    action_T = torch.tensor([2])
    assert direction_scores(logits_TV, action_T, grads_TD, embedding_VD, 1.0).item() == pytest.approx(
        0.0283942, abs=5e-8
    )
    found = directions(logits_TV, action_T, grads_TD @ embedding_VD.T)
    assert (found.gradient_norm_M * found.update_norm_M).item() == pytest.approx(0.0828886, abs=5e-8)


def test_a_masked_token_cannot_have_been_sampled() -> None:
    logits_TV, actions_T, grads_TD, embedding_VD = problem(2, 1.0, False)
    logits_TV[5, actions_T[5]] = -torch.inf
    with pytest.raises(CreditlibError, match="sampled token is masked"):
        direction_scores(logits_TV, actions_T, grads_TD, embedding_VD, 1.0)


def test_the_policy_gives_the_same_from_its_hidden_states() -> None:
    """In pieces, at a temperature, for a reward model that knows fewer tokens, and for two at once."""
    model = random_model("llama")
    generator = torch.Generator().manual_seed(4)
    hidden_MD = torch.randn(200, 32, dtype=torch.float64, generator=generator)
    actions_M = torch.randint(0, 50, (200,), generator=generator)
    rewards = [
        (
            torch.randn(200, width, dtype=torch.float64, generator=generator),
            torch.randn(50, width, dtype=torch.float64, generator=generator),
        )
        for width in (9, 5)
    ]
    logits_MV = model.lm_head(hidden_MD).detach()[:, :50] / 0.8
    found = SamplingPolicy(Scorer(model)).directions(hidden_MD, actions_M, rewards, temperature=0.8)
    parts = [direction_scores(logits_MV, actions_M, *reward, sigma=1.0) for reward in rewards]
    torch.testing.assert_close(found.score_M, parts[0] + parts[1])


def test_a_reward_model_in_half_precision_loses_no_more_than_its_weights_do() -> None:
    """What all embeddings have in common takes no digits from what sets them apart."""
    model = random_model("llama", torch.float32)
    generator = torch.Generator().manual_seed(4)
    hidden_MD = torch.randn(50, 32, generator=generator)
    actions_M = torch.randint(0, 61, (50,), generator=generator)
    gradients_ME = torch.randn(50, 300, generator=generator).bfloat16()
    embedding_VE = (0.2 + 0.02 * torch.randn(61, 300, generator=generator)).bfloat16()
    found = SamplingPolicy(Scorer(model)).directions(hidden_MD, actions_M, [(gradients_ME, embedding_VE)])
    logits_MV = model.lm_head(hidden_MD).detach().double()
    want_M = direction_scores(logits_MV, actions_M, gradients_ME.double(), embedding_VE.double(), 1.0)
    assert ((found.score_M - want_M).norm() / want_M.norm()) < 1e-4
