"""Tree, padded and micro-batched scoring are one function: the same log-probs, entropies, losses and
gradients.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers
from torch import Tensor

from creditlib.policy.head import Head, selected_logps
from creditlib.policy.scoring import Scorer, micro_batches
from creditlib.policy.trunk import tree_obstacle
from creditlib.types import CreditlibError, Prompt, Rollout


def make_rollout(vocab: int = 61, *, temperature: float = 0.8, seed: int = 0) -> Rollout:
    """Three prompts, groups out of order, one empty response, one pair of equal responses."""
    generator = torch.Generator().manual_seed(seed)

    def tokens(n: int) -> list[int]:
        return torch.randint(3, vocab, (n,), generator=generator).tolist()

    prompts = tuple(Prompt(f"p{n}", "test", text="x") for n in range(3))
    group_B = torch.tensor([0, 1, 0, 2, 1, 0, 2, 1])
    stem = tokens(2)
    responses = [
        tokens(5),
        tokens(3),
        [*stem, *tokens(4)],
        [*stem, 7],
        tokens(6),
        [*stem, 9, 8],
        [],
        [*stem, 7],
    ]
    responses[7] = responses[1]
    width = max(map(len, responses)) + 1
    ids_BT = torch.zeros(len(responses), width, dtype=torch.long)
    mask_BT = torch.zeros(len(responses), width, dtype=torch.bool)
    for row, response in enumerate(responses):
        ids_BT[row, : len(response)] = torch.tensor(response, dtype=torch.long)
        mask_BT[row, : len(response)] = True
    zeros = torch.zeros(ids_BT.shape)
    return Rollout(
        prompts=prompts,
        prompt_ids=(tuple(tokens(9)), tuple(tokens(4)), tuple(tokens(6))),
        group_B=group_B,
        ids_BT=ids_BT,
        mask_BT=mask_BT,
        texts=("",) * 8,
        sampler_logps_BT=zeros,
        sampler_mass_BT=zeros + 1,
        finish=("stop",) * 8,
        temperature=temperature,
    )


def dense(model: Any, rollout: Rollout) -> tuple[Tensor, Tensor]:
    """The obvious way: one response at a time, all logits."""
    logps, entropies = (
        torch.zeros(rollout.ids_BT.shape, dtype=torch.float64),
        torch.zeros(rollout.ids_BT.shape).double(),
    )
    for row, length in enumerate(rollout.lengths_B.tolist()):
        prompt = rollout.prompt_ids[int(rollout.group_B[row])]
        ids = torch.tensor([[*prompt, *rollout.ids_BT[row, :length].tolist()]])
        log_p = torch.log_softmax(model(input_ids=ids).logits[0].double() / rollout.temperature, -1)
        for t in range(length):
            at = log_p[len(prompt) - 1 + t]
            logps[row, t] = at[rollout.ids_BT[row, t]]
            entropies[row, t] = -(at.exp() * at).sum()
    return logps, entropies


@pytest.mark.parametrize("packing", ["tree", "padded"])
def test_scores_equal_the_dense_oracle(make_model, family: str, packing: str) -> None:
    model, rollout = make_model(family), make_rollout()
    with torch.no_grad():
        want, want_entropy = dense(model, rollout)
        logps, entropy = Scorer(model, packing).forward(rollout, range(8))
    torch.testing.assert_close(logps, want, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(entropy, want_entropy, rtol=1e-9, atol=1e-9)


def gradients(
    model: Any, rollout: Rollout, packing: str, micro_batch: int | None
) -> tuple[Tensor, Tensor, Tensor]:
    scorer = Scorer(model, packing)
    weight_BT = torch.sin(torch.arange(rollout.ids_BT.numel(), dtype=torch.float64)).view(
        rollout.ids_BT.shape
    )
    out_BT, total = torch.zeros(rollout.ids_BT.shape, dtype=torch.float64), torch.zeros(()).double()
    model.zero_grad()
    for rows in micro_batches(rollout, range(8), micro_batch):
        logps, entropy = scorer.forward(rollout, rows, entropy_grad=True)
        loss = (weight_BT[rows] * logps + 0.1 * entropy).sum()
        loss.backward()
        out_BT[rows] = logps.detach().double()
        total += loss.detach()
    grads = [
        parameter.grad.double().flatten() for parameter in model.parameters() if parameter.grad is not None
    ]
    return out_BT, total, torch.cat(grads)


@pytest.mark.parametrize("dtype, tolerance", [(torch.float64, 1e-10), (torch.float32, 1e-5)])
def test_tree_padded_and_micro_batches_give_the_same_gradients(make_model, family, dtype, tolerance) -> None:
    model, rollout = make_model(family, dtype), make_rollout()
    want = gradients(model, rollout, "padded", None)
    for packing, micro_batch in [("tree", None), ("tree", 3), ("tree", 1), ("padded", 3)]:
        have = gradients(model, rollout, packing, micro_batch)
        for a, b in zip(have, want, strict=True):
            assert ((a - b).norm() / b.norm()).item() <= tolerance, (packing, micro_batch)


@pytest.mark.parametrize("frozen", [True, False])
@pytest.mark.parametrize("chunk", [1, 4, 100])
def test_head_in_chunks_equals_all_at_once(make_model, frozen: bool, chunk: int) -> None:
    model = make_model("llama")
    model.lm_head.weight.requires_grad_(not frozen)
    hidden = torch.randn(7, 32, dtype=torch.float64, requires_grad=True)
    targets = torch.tensor([3, 4, 5, 3, 60, 0, 1])
    logps, entropy = selected_logps(Head(model), hidden, targets, temperature=1.7, chunk=chunk)
    log_p = torch.log_softmax(model.lm_head(hidden) / 1.7, -1)
    want = log_p[torch.arange(7), targets]
    torch.testing.assert_close(logps, want)
    torch.testing.assert_close(entropy, -(log_p.exp() * log_p).sum(-1))
    weights = torch.arange(7.0, dtype=torch.float64)
    (want_grad,) = torch.autograd.grad((want * weights).sum(), hidden, retain_graph=True)
    (have_grad,) = torch.autograd.grad((logps * weights).sum(), hidden)
    torch.testing.assert_close(have_grad, want_grad)
    assert not entropy.requires_grad


def test_logits_with_a_softcap_are_the_models_own(make_model) -> None:
    model = make_model("llama")
    model.config.final_logit_softcapping = 2.0
    with pytest.raises(CreditlibError, match="output layer"):
        Scorer(model)  # a llama applies no cap, so the self-check must see the difference


def test_a_model_with_a_sliding_window_is_scored_padded_and_says_why(make_model) -> None:
    model = make_model("llama")
    model.config.sliding_window = 4
    scorer = Scorer(model)
    assert scorer.packing == "padded"
    assert "sliding window of 4" in (scorer.fallback_reason or "")
    with pytest.raises(CreditlibError, match=r"packing=tree: .*sliding window"):
        Scorer(model, "tree")


def test_layer_types_other_than_full_attention_are_an_obstacle(make_model) -> None:
    config = make_model("qwen2").config
    assert tree_obstacle(config) is None
    config.layer_types = ["full_attention", "sliding_attention"]
    assert "sliding_attention" in (tree_obstacle(config) or "")


def test_a_model_that_ignores_the_mask_falls_back(make_model, monkeypatch) -> None:
    model = make_model("llama")
    forward = model.model.forward
    monkeypatch.setattr(
        model.model, "forward", lambda attention_mask=None, **rest: forward(**rest)
    )  # plain causal
    scorer = Scorer(model)
    assert scorer.packing == "padded" and "other numbers" in (scorer.fallback_reason or "")


def test_logps_leaves_training_mode_and_gradients_alone(make_model) -> None:
    model, rollout = make_model("llama"), make_rollout()
    model.train()
    logps = Scorer(model).logps(rollout, micro_batch=3)
    assert model.training and not logps.requires_grad
    with torch.no_grad():
        torch.testing.assert_close(logps, dense(model.eval(), rollout)[0], rtol=1e-9, atol=1e-9)


def special(kind: str) -> Any:
    """Models whose attention cannot run block by block."""
    torch.manual_seed(0)
    sizes = {"vocab_size": 61, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    if kind == "dropout under another name":
        config = transformers.GPT2Config(vocab_size=61, n_embd=32, n_layer=2, n_head=4, n_positions=64)
        assert config.attn_pdrop > 0
    elif kind == "values of another width":
        config = transformers.DeepseekV3Config(
            **sizes, intermediate_size=48, num_key_value_heads=4, q_lora_rank=8, kv_lora_rank=8,
            qk_rope_head_dim=4, qk_nope_head_dim=8, v_head_dim=8, first_k_dense_replace=2,
        )  # fmt: skip
    else:
        config = transformers.FalconConfig(**sizes, alibi=False, bos_token_id=1, eos_token_id=2)
    return transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()


@pytest.mark.parametrize(
    "kind", ["dropout under another name", "values of another width", "a mask that must be there"]
)
def test_attention_that_cannot_run_in_blocks_runs_under_the_mask(kind: str) -> None:
    model = special(kind)
    scorer = Scorer(model)
    assert scorer.packing == "tree" and not scorer.blocks
    assert not model.training
    sequences, lengths, group = [[5, 6, 7, 8, 9], [5, 6, 7, 10], [11, 12, 13]], [2, 1, 2], [0, 0, 1]
    have, want = (
        s.forward_sequences(sequences, lengths, group, width=2)[0] for s in (scorer, Scorer(model, "padded"))
    )
    torch.testing.assert_close(have, want, rtol=1e-4, atol=1e-5)
    model.train()
    scorer.forward_sequences(sequences, lengths, group, width=2)[0].sum().backward()


def test_gradient_checkpointing_gives_the_same_gradients(make_model) -> None:
    sequences, lengths, group = [[5, 6, 7, 8, 9], [5, 6, 7, 10], [11, 12, 13]], [2, 1, 2], [0, 0, 1]
    gradients = []
    for checkpointing in (False, True):
        model = make_model("llama")
        if checkpointing:
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        scorer = Scorer(model)
        assert scorer.packing == "tree" and scorer.blocks is not checkpointing
        model.train()
        scorer.forward_sequences(sequences, lengths, group, width=2)[0].sum().backward()
        gradients.append(torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]))
    torch.testing.assert_close(*gradients, rtol=1e-9, atol=1e-11)
