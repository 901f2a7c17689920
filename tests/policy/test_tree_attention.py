"""Attention block by block against attention under the tree's mask."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import creditlib.policy.tree_attention as tree_attention_module
from creditlib.policy.scoring import Scorer
from creditlib.policy.tree import PrefixTree
from creditlib.policy.tree_attention import TreeBlocks, tree_attention

from .test_tree import SEQUENCES

CPU = torch.device("cpu")


# Whatever a block's size: flash attention, plain products, and plain products of a few queries or leaves.
KERNELS = {"flash": {"SMALL": 0, "FEW": 0}, "plain": {"SMALL": 1 << 30}, "pieces": {"SMALL": 64, "FEW": 8}}


@pytest.fixture(autouse=True, scope="module", params=KERNELS)
def kernel(request: pytest.FixtureRequest) -> Iterator[None]:
    """All ways to compute a block."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in KERNELS[request.param].items():
            patch.setattr(tree_attention_module, name, value)
        yield


def masked(query: Tensor, key: Tensor, value: Tensor, tree: PrefixTree, scale: float) -> Tensor:
    """The oracle: one dense product, everything but the ancestors masked away."""
    repeats = query.shape[1] // key.shape[1]
    key, value = (x.repeat_interleave(repeats, 1) for x in (key, value))
    scores = query @ key.transpose(2, 3) * scale
    scores = scores.masked_fill(~torch.from_numpy(tree.ancestor_mask()), -torch.inf)
    return (scores.softmax(-1) @ value).transpose(1, 2)


def inputs(length: int, heads: int, kv_heads: int, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    generator = torch.Generator().manual_seed(length)
    return [
        torch.randn(1, count, length, 8, generator=generator, dtype=dtype).requires_grad_()
        for count in (heads, kv_heads, kv_heads)
    ]


def compare(tree: PrefixTree, tensors: list[Tensor], tolerance: float, scale: float = 0.7) -> None:
    blocks = TreeBlocks.of(tree, CPU)
    have, _ = tree_attention(None, *tensors, None, tree_blocks=blocks, scaling=scale)
    want = masked(*tensors, tree, scale)
    torch.testing.assert_close(have, want, rtol=tolerance, atol=tolerance)
    upstream = torch.randn(want.shape, dtype=want.dtype, generator=torch.Generator().manual_seed(1))
    wanted = torch.autograd.grad(want, tensors, upstream)
    for one, other in zip(torch.autograd.grad(have, tensors, upstream), wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)


@given(SEQUENCES, st.integers(1, 4), st.sampled_from([(1, 1), (4, 4), (6, 2)]))
@settings(max_examples=200, deadline=None)
def test_outputs_and_gradients_are_those_under_the_mask(
    sequences: list[list[int]], min_shared: int, heads: tuple[int, int]
) -> None:
    tree = PrefixTree.build(sequences, min_shared=min_shared)
    compare(tree, inputs(len(tree), *heads), 1e-11)


@pytest.mark.parametrize(("prompt", "response"), [(700, 40), (3, 600)])
def test_segments_longer_than_the_kernels_own_blocks(prompt: int, response: int) -> None:
    rng = np.random.default_rng(0)
    stem = rng.integers(0, 50, prompt).tolist()
    sequences = [stem + rng.integers(0, 50, response + 37 * i).tolist() for i in range(3)]
    tree = PrefixTree.build(sequences)
    compare(tree, inputs(len(tree), 2, 1), 1e-11)


def test_scores_far_apart_leave_no_nan_in_padding() -> None:
    # Leaves of lengths 4 to 7 are one batch; a padded row's own scores would overflow if they were looked at.
    tree = PrefixTree.build([[0, 1, 2, 3], [5, 1, 2, 3, 4, 6, 7], [9, 9, 9, 9, 9]])
    tensors = [tensor.detach().mul(60).requires_grad_() for tensor in inputs(len(tree), 2, 2)]
    compare(tree, tensors, 1e-9)


def test_half_precision_is_merged_in_float32() -> None:
    tree = PrefixTree.build([[1, 2, 3, 4, 5], [1, 2, 3, 7, 8, 9], [1, 2, 6]])
    tensors = inputs(len(tree), 4, 2, torch.bfloat16)
    have, _ = tree_attention(None, *tensors, None, tree_blocks=TreeBlocks.of(tree, CPU), scaling=0.7)
    assert have.dtype == torch.bfloat16
    want = masked(*(tensor.double() for tensor in tensors), tree, 0.7)
    assert (have.double() - want).abs().max() < 2 * torch.finfo(torch.bfloat16).eps * want.abs().max()


def test_models_score_block_by_block_where_they_hand_on_keywords(make_model, family: str) -> None:
    scorer = Scorer(make_model(family).double())
    assert scorer.packing == "tree"
    assert scorer.blocks


def test_dropout_needs_the_mask(make_model) -> None:
    model = make_model("llama")
    for layer in model.model.layers:
        layer.self_attn.attention_dropout = 0.1
    scorer = Scorer(model)
    assert scorer.packing == "tree"
    assert not scorer.blocks


def test_mask_and_blocks_give_the_same_scores(make_model, family: str) -> None:
    model = make_model(family)
    prompts = [list(range(3, 20)), list(range(3, 15)), [40, 41]]
    sequences = [
        [*prompt, *answer] for prompt in prompts for answer in ([21, 22, 23], [21, 30], [31, 5, 6, 7])
    ]
    lengths, group = [3, 2, 4] * 3, [0, 0, 0, 1, 1, 1, 2, 2, 2]
    results = []
    for blocks in (True, False):
        scorer = Scorer(model)
        scorer.blocks = blocks
        logps, entropy = scorer.forward_sequences(sequences, lengths, group, width=5)
        gradient = torch.autograd.grad((logps + entropy).sum(), model.get_input_embeddings().weight)[0]
        results.append((logps, entropy, gradient))
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-11)
