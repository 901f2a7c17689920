"""Replays in one forest against each replay alone and padded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from creditlib.policy.divergence import js_divergence
from creditlib.policy.replay import SamplingPolicy
from creditlib.policy.scoring import Scorer
from creditlib.types import Replay

Pair = tuple[Replay, Replay]


def pairs() -> list[Pair]:
    """Replays like those of a step: two prompts, contexts that begin alike, responses that begin alike."""
    generator = torch.Generator().manual_seed(3)

    def tokens(count: int) -> tuple[int, ...]:
        return tuple(torch.randint(3, 61, (count,), generator=generator).tolist())

    found: list[Pair] = []
    for _ in range(2):
        stem, tail, facts = tokens(20), tokens(3), [tokens(n) for n in (2, 9, 4)]
        start = tokens(9)
        for response in (tokens(6), start + tokens(2), start + tokens(5), start, tokens(1)):
            everything = Replay(stem + facts[0] + facts[1] + facts[2] + tail, response)
            for k in range(3):
                rest = tuple(token for i, fact in enumerate(facts) if i != k for token in fact)
                found.append((everything, Replay(stem + rest + tail, response)))
    return found


def alone(model: Any, one: Replay, other: Replay, temperature: float = 1.0) -> Tensor:
    """The oracle: each replay on its own, all logits at once."""
    logits = []
    for context, response, _ in (one, other):
        ids = torch.tensor([[*context, *response]])
        with torch.no_grad():
            logits.append(model(input_ids=ids).logits[0, len(context) - 1 : -1] / temperature)
    return js_divergence(*logits)


@pytest.mark.parametrize("executor", ["blocks", "levels", "padded"])
def test_every_executor_gives_each_replay_its_own_numbers(
    make_model: Callable[..., Any], family: str, executor: str
) -> None:
    model = make_model(family)
    scorer = Scorer(model, "padded" if executor == "padded" else "auto")
    scorer.blocks = executor == "blocks"
    asked = pairs()
    have = SamplingPolicy(scorer).divergences(asked)
    for (one, other), divergence_T in zip(asked, have, strict=True):
        assert divergence_T.shape == (len(one.response),)
        want = alone(model, one, other)
        torch.testing.assert_close(divergence_T, want.float(), rtol=1e-5, atol=1e-12)
        assert want.max() > 1e-4


def test_float32_replays_agree_with_padded_ones(make_model: Callable[..., Any]) -> None:
    model = make_model("llama", torch.float32)
    asked = pairs()
    forest, rows = Scorer(model), Scorer(model, "padded")
    sequences = [(*context, *response) for pair in asked for context, response, _ in pair]
    states = [scorer.hidden_states(sequences) for scorer in (forest, rows)]
    (packed, packed_paths), (padded, padded_paths) = states
    for one, other in zip(packed_paths, padded_paths, strict=True):
        difference = (packed[one] - padded[other]).norm() / padded[other].norm()
        assert difference < 1e-5
    have, want = (SamplingPolicy(scorer).divergences(asked) for scorer in (forest, rows))
    torch.testing.assert_close(torch.cat(have), torch.cat(want), rtol=0, atol=1e-6)


@pytest.mark.parametrize("tokens", [1, 60, 200])
def test_batches_and_order_change_nothing(make_model: Callable[..., Any], tokens: int) -> None:
    scorer = Scorer(make_model("qwen3"))
    asked = pairs()
    want = SamplingPolicy(scorer).divergences(asked)
    have = SamplingPolicy(scorer, tokens=tokens).divergences(asked[::-1])[::-1]
    torch.testing.assert_close(torch.cat(have), torch.cat(want), rtol=1e-6, atol=1e-12)


def test_temperature_and_top_k(make_model: Callable[..., Any]) -> None:
    model = make_model("llama")
    policy = SamplingPolicy(Scorer(model))
    asked = pairs()[:4]
    exact = policy.divergences(asked, temperature=1.7)
    for (one, other), divergence_T in zip(asked, exact, strict=True):
        torch.testing.assert_close(divergence_T, alone(model, one, other, 1.7).float(), rtol=1e-5, atol=1e-12)
    everything = policy.divergences(asked, temperature=1.7, top_k=61)
    torch.testing.assert_close(torch.cat(everything), torch.cat(exact), rtol=1e-5, atol=1e-9)
    some = policy.divergences(asked, temperature=1.7, top_k=3)
    assert (torch.cat(some) < torch.cat(exact)).all()


def test_noise_is_what_rounding_does(make_model: Callable[..., Any]) -> None:
    again = [(one, one._replace(alone=True)) for one, _ in pairs()[::3]]
    exact, single, half = (
        torch.cat(SamplingPolicy(Scorer(make_model("llama", dtype))).divergences([*pairs(), *again])[30:])
        .sqrt()
        .mean()
        .item()
        for dtype in (torch.float64, torch.float32, torch.bfloat16)
    )
    assert exact < 1e-6
    assert single < 1e-3
    assert single < half < 0.2


def test_replays_need_no_gradient_and_leave_the_mode_alone(make_model: Callable[..., Any]) -> None:
    model = make_model("llama")
    model.train()
    (divergence_T,) = SamplingPolicy(Scorer(model)).divergences(pairs()[:1])
    assert not divergence_T.requires_grad and model.training


def test_a_pair_asked_twice_and_no_pair(make_model: Callable[..., Any]) -> None:
    policy = SamplingPolicy(Scorer(make_model("llama")))
    asked = pairs()[:1] * 2
    one, other = policy.divergences(asked)
    assert torch.equal(one, other)
    assert policy.divergences([]) == []


def test_replays_run_without_dropout(make_model: Callable[..., Any]) -> None:
    model = make_model("llama")
    model.config.attention_dropout = 0.5
    for layer in model.model.layers:
        layer.self_attn.attention_dropout = 0.5
    scorer = Scorer(model, "padded")
    want = SamplingPolicy(scorer).divergences(pairs())
    model.train()
    for one, other in zip(SamplingPolicy(scorer).divergences(pairs()), want, strict=True):
        assert torch.equal(one, other)


def test_a_batch_holds_no_more_tokens_than_it_may(make_model: Callable[..., Any]) -> None:
    scorer = Scorer(make_model("llama"))
    sizes: list[int] = []
    inner = scorer.hidden_states

    def spy(sequences: list[tuple[int, ...]]) -> Any:
        sizes.append(sum(map(len, sequences)))
        return inner(sequences)

    scorer.hidden_states = spy  # type: ignore[method-assign]
    SamplingPolicy(scorer, tokens=10).divergences(pairs())
    assert len(sizes) > 3
    few = max(sizes)
    sizes.clear()
    SamplingPolicy(scorer).divergences(pairs())
    assert len(sizes) == 1 and few < sizes[0] / 3


def test_a_replay_alone_is_the_same_replay(make_model: Callable[..., Any]) -> None:
    asked = pairs()
    again = [(one, one._replace(alone=True)) for one, _ in asked[:3]]
    found = SamplingPolicy(Scorer(make_model("llama"))).divergences([*asked, *again])
    want = SamplingPolicy(Scorer(make_model("llama"))).divergences(asked)
    for one, other in zip(found, want, strict=False):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-12)
    assert all(divergence_T.abs().max() < 1e-12 for divergence_T in found[len(asked) :])
