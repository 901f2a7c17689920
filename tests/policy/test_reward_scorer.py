"""A reward model read batch by batch, against each text alone and automatic differentiation."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from creditlib.policy.reward_scorer import RewardScorer, Text
from creditlib.types import CreditlibError
from tests.conftest import FAMILIES, random_reward_model


def texts() -> list[Text]:
    """Two prompts and none, responses of 1 to 9 tokens; one of them twice."""
    generator = torch.Generator().manual_seed(5)

    def tokens(count: int) -> tuple[int, ...]:
        return tuple(torch.randint(3, 61, (count,), generator=generator).tolist())

    first, second = tokens(12), tokens(5)
    found = [Text(first, tokens(n)) for n in (4, 9, 1)] + [Text(second, tokens(n)) for n in (7, 2)]
    return [*found, found[1], Text((), tokens(6))]


def alone(model: Any, text: Text) -> tuple[float, Tensor, Tensor]:
    """The oracle: one row, all of it, the whole gradient; the head at every position."""
    ids = torch.tensor([[*text.before, *text.rest]])
    embedded = model.get_input_embeddings()(ids).detach().requires_grad_()
    states = getattr(model, model.base_model_prefix)(
        inputs_embeds=embedded, use_cache=False
    ).last_hidden_state
    values = model.score(states)[0, :, 0]
    (gradient,) = torch.autograd.grad(values[-1], embedded)
    return values[-1].item(), gradient[0, len(text.before) :], values.detach()


@pytest.mark.parametrize("caches", [True, False])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("tokens", [10_000, 12])
def test_scores_gradients_and_values(family: str, caches: bool, tokens: int) -> None:
    model = random_reward_model(family)
    scorer = RewardScorer(model, "random", tokens)
    assert scorer.caches
    scorer.caches = caches
    asked = texts()
    for text, found in zip(asked, scorer.read(asked, gradients=True, values=True), strict=True):
        score, gradient_SE, values_L = alone(model, text)
        assert found.score == pytest.approx(score, abs=1e-10)
        assert model(input_ids=torch.tensor([[*text.before, *text.rest]])).logits.item() == pytest.approx(
            score
        )
        assert found.gradients_SE is not None and found.values_S is not None
        torch.testing.assert_close(found.gradients_SE, gradient_SE, rtol=1e-9, atol=1e-10)
        torch.testing.assert_close(found.values_S[1:], values_L[len(text.before) :], rtol=1e-9, atol=1e-10)
        if text.before:
            assert found.values_S[0].item() == pytest.approx(values_L[len(text.before) - 1].item(), abs=1e-10)
        else:
            assert found.values_S[0].isnan()


def test_scores_without_more_are_the_same() -> None:
    scorer = RewardScorer(random_reward_model("llama"), "random")
    plain, whole = scorer.read(texts()), scorer.read(texts(), gradients=True)
    assert [one.score for one in plain] == pytest.approx([one.score for one in whole], abs=1e-12)
    assert plain[0].gradients_SE is None and plain[0].values_S is None


def test_float32_does_not_depend_on_the_batch() -> None:
    model = random_reward_model("qwen3", torch.float32)
    together = RewardScorer(model, "random", 10_000).read(texts(), gradients=True)
    apart = RewardScorer(model, "random", 1).read(texts(), gradients=True)
    for one, other in zip(together, apart, strict=True):
        assert one.score == pytest.approx(other.score, rel=1e-5, abs=1e-5)
        assert one.gradients_SE is not None and other.gradients_SE is not None
        scale = other.gradients_SE.abs().max()
        assert ((one.gradients_SE - other.gradients_SE).abs().max() / scale) < 1e-5


def test_nothing_of_the_model_changes() -> None:
    model = random_reward_model("gemma").train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    scorer = RewardScorer(model, "random")
    scorer.read(texts(), gradients=True, values=True)
    assert not model.training
    assert all(not parameter.requires_grad and parameter.grad is None for parameter in model.parameters())
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_the_embeddings_are_those_that_the_transformer_is_given() -> None:
    """Gemma scales its embeddings inside, and the gradient is of what `get_input_embeddings` returns."""
    model = random_reward_model("gemma")
    scorer = RewardScorer(model, "random")
    (text,) = texts()[:1]
    (found,) = scorer.read([text], gradients=True)
    assert found.gradients_SE is not None
    # A small step of the first response token's embedding along the gradient raises the score by its square.
    rows = scorer.embeddings(torch.tensor([[*text.before, *text.rest]]))
    step = torch.zeros_like(rows)
    step[0, len(text.before)] = 1e-7 * found.gradients_SE[0]
    moved = model.score(model.model(inputs_embeds=rows + step).last_hidden_state)[0, -1, 0].item()
    assert (moved - found.score) / 1e-7 == pytest.approx(
        found.gradients_SE[0].square().sum().item(), rel=1e-4
    )


def test_models_that_are_none() -> None:
    model = random_reward_model("llama")
    model.config.num_labels = 2
    with pytest.raises(CreditlibError, match="has 2 labels"):
        RewardScorer(model, "two")
    model = random_reward_model("llama")
    model.score, model.classifier = None, model.score
    with pytest.raises(CreditlibError, match="linear layer"):
        RewardScorer(model, "headless")


def test_a_model_that_does_more_than_its_head_is_refused() -> None:
    model = random_reward_model("llama")
    own = model.forward
    model.forward = lambda **inputs: type("Output", (), {"logits": own(**inputs).logits + 1})()
    with pytest.raises(CreditlibError, match="not its head's output on the last token"):
        RewardScorer(model, "shifted")
