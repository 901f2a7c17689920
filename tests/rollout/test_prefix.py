"""Prompts read once and continued: the logits of every step are those of a full forward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor

from creditlib.rollout.prefix import RepeatedPrefix
from creditlib.rollout.shared import SharedPrefix, supports_shared_prefix

PROMPTS = [[7, 8, 9, 10, 11, 12, 13], [14, 15], [16] * 30, [9, 8]]


def check_against_full_forwards(
    prefix_type: Any, model: Any, prompts: list[list[int]], groups: list[int]
) -> None:
    def full(ids: list[int]) -> Tensor:
        logits: Tensor = model(input_ids=torch.tensor([ids])).logits[0, -1]
        return logits

    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        prefix = prefix_type(model, prompts)
        torch.testing.assert_close(
            prefix.logits_NV, torch.stack([full(p) for p in prompts]), rtol=1e-9, atol=1e-9
        )
        rows = prefix.rows(torch.tensor(groups), 8)
        sequences = [list(prompts[group]) for group in groups]
        for step in range(8):
            tokens = torch.randint(0, 61, (len(sequences),), generator=generator)
            for sequence, token in zip(sequences, tokens.tolist(), strict=True):
                sequence.append(token)
            expected = torch.stack([full(sequence) for sequence in sequences])
            torch.testing.assert_close(rows.step(tokens), expected, rtol=1e-9, atol=1e-9)
            kept = {1: [0, 5, 2, 3, 4], 3: [3, 0, 2], 5: [0]}.get(step)
            if kept:
                rows.keep(torch.tensor(kept))
                sequences = [sequences[row] for row in kept]


@pytest.mark.parametrize("prefix_type", [RepeatedPrefix, SharedPrefix])
@pytest.mark.parametrize("groups", [[0, 0, 1, 1, 2, 2], [2, 0, 1, 0, 0, 3]])
def test_equals_full_forwards(
    family: str, prefix_type: Any, groups: list[int], make_model: Callable[..., Any]
) -> None:
    model = make_model(family)
    assert supports_shared_prefix(model)
    check_against_full_forwards(prefix_type, model, PROMPTS, groups)


def test_prompts_are_read_in_parts_that_fit(
    make_model: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_model("llama")
    longest: list[int] = []
    model.model.register_forward_pre_hook(
        lambda module, args, inputs: longest.append(inputs["input_ids"].numel()), with_kwargs=True
    )
    monkeypatch.setattr("creditlib.rollout.shared.READ_TOKENS", 8)
    prompts = [[7, 8, 9], [10, 11, 12], [13, 14, 15], [16, 17, 18], [19] * 30]
    check_against_full_forwards(SharedPrefix, model, prompts, [0, 1, 2, 3, 4, 0])
    assert longest[:3] == [6, 6, 30]  # two at a time; the long one does not fit, and is read alone


@pytest.mark.parametrize("prefix_type", [RepeatedPrefix, SharedPrefix])
def test_prompts_of_one_length(prefix_type: Any, make_model: Callable[..., Any]) -> None:
    check_against_full_forwards(
        prefix_type, make_model("llama"), [[7, 8, 9], [10, 11, 12]], [0, 0, 0, 1, 1, 1]
    )


@pytest.mark.parametrize("prefix_type", [RepeatedPrefix, SharedPrefix])
def test_a_prefix_can_be_continued_twice(prefix_type: Any, make_model: Callable[..., Any]) -> None:
    model = make_model("llama")
    with torch.no_grad():
        prefix = prefix_type(model, PROMPTS)
        logits = []
        for _ in range(2):
            rows = prefix.rows(torch.tensor([2, 1]), 4)
            rows.step(torch.tensor([3, 4]))
            logits.append(rows.step(torch.tensor([5, 6])))
    assert torch.equal(*logits)


def small(family: str, **changes: Any) -> Any:
    config = transformers.AutoConfig.for_model(
        family,
        vocab_size=61,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        **changes,
    )
    torch.manual_seed(0)
    return transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float64).eval()


@pytest.mark.parametrize(
    ("family", "changes"),
    [
        ("gemma2", {"sliding_window": 4}),
        ("gemma2", {"layer_types": ["full_attention"] * 2, "attn_logit_softcapping": 0.5}),
        ("gemma3_text", {"sliding_window": 4}),
        ("mistral", {"sliding_window": 4}),
    ],
)
def test_special_attention_takes_the_general_way(family: str, changes: dict[str, Any]) -> None:
    model = small(family, **changes)
    assert not supports_shared_prefix(model)
    check_against_full_forwards(RepeatedPrefix, model, PROMPTS, [2, 0, 1, 0, 0, 3])


def test_learned_positions_and_full_heads() -> None:
    config = transformers.GPT2Config(
        vocab_size=61, n_embd=32, n_layer=2, n_head=4, n_positions=64, bos_token_id=1, eos_token_id=2
    )
    model = transformers.GPT2LMHeadModel(config).double().eval()
    for prefix_type in (RepeatedPrefix, SharedPrefix):
        check_against_full_forwards(prefix_type, model, PROMPTS, [0, 0, 1, 1, 2, 2])


def test_attention_of_its_own_making_is_found_out(
    make_model: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A layer that never asks for the registered attention function would not see the prompt."""
    model = make_model("llama")
    monkeypatch.setattr("creditlib.rollout.shared.shared_prefix_decoding", lambda model: torch.no_grad())
    assert not supports_shared_prefix(model)


def test_the_models_own_attention_is_back_after_an_error(make_model: Callable[..., Any]) -> None:
    model = make_model("llama")
    before = model.config._attn_implementation
    with torch.no_grad():
        rows = SharedPrefix(model, PROMPTS).rows(torch.tensor([0]), 1)
        with pytest.raises(IndexError):
            rows.step(torch.tensor([10**6]))
    assert model.config._attn_implementation == before
