"""The prefix tree gives every sequence the numbers it would have alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from creditlib.policy.tree import PrefixTree, attention_bias, pack, pad, run_levels

SEQUENCES = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=8), min_size=1, max_size=6)


@given(SEQUENCES, st.integers(1, 4))
@settings(max_examples=300, deadline=None)
def test_paths_spell_the_sequences(sequences: list[list[int]], min_shared: int) -> None:
    tree = PrefixTree.build(sequences, min_shared=min_shared)
    for sequence, path in zip(sequences, tree.paths, strict=True):
        assert tree.ids_L[path].tolist() == sequence
        assert tree.depth_L[path].tolist() == list(range(len(sequence)))
        assert tree.parent_L[path].tolist() == [-1, *path[:-1].tolist()]
    assert (tree.parent_L < np.arange(len(tree))).all()


@given(SEQUENCES)
@settings(max_examples=300, deadline=None)
def test_every_distinct_prefix_is_held_once(sequences: list[list[int]]) -> None:
    prefixes = {tuple(sequence[:n]) for sequence in sequences for n in range(1, len(sequence) + 1)}
    assert len(PrefixTree.build(sequences)) == len(prefixes)


@given(SEQUENCES, st.integers(1, 4))
@settings(max_examples=200, deadline=None)
def test_ancestor_mask_and_segments_against_a_walk_to_the_root(
    sequences: list[list[int]], min_shared: int
) -> None:
    tree = PrefixTree.build(sequences, min_shared=min_shared)
    want = np.zeros((len(tree), len(tree)), bool)
    for i in range(len(tree)):
        j = i
        while j >= 0:
            want[i, j] = True
            j = int(tree.parent_L[j])
    assert (tree.ancestor_mask() == want).all()

    segments = tree.segments()
    assert [s.start for s in segments] == [0, *(s.end for s in segments[:-1])] and segments[-1].end == len(
        tree
    )
    for segment in segments:
        run = range(segment.start + 1, segment.end)
        assert all(tree.parent_L[i] == i - 1 for i in run)
        top = int(tree.parent_L[segment.start])
        assert segment.parent == -1 if top < 0 else segments[segment.parent].end - 1 == top


def test_min_shared_opens_no_branch_that_saves_too_little() -> None:
    sequences = [[1, 2, 3, 4, 5], [1, 2, 3, 4, 6], [1, 2, 3, 9]]
    assert len(PrefixTree.build(sequences)) == 7
    assert len(PrefixTree.build(sequences, min_shared=4)) == 5 + 1 + 4


def test_both_executors_equal_the_sequences_alone(make_model, family: str) -> None:
    model = make_model(family)
    generator = torch.Generator().manual_seed(1)

    def tokens(n: int) -> list[int]:
        return torch.randint(3, 61, (n,), generator=generator).tolist()

    stem, inner = tokens(9), tokens(4)
    first = [[*stem, *tokens(5)], [*stem, *inner, *tokens(3)], [*stem, *inner, *tokens(7)], [*stem, *inner]]
    second = [tokens(4), tokens(12)]
    trees = [PrefixTree.build(first), PrefixTree.build(second)]
    device = torch.device("cpu")
    packed = pack(trees, device)
    with torch.no_grad():
        rows = model.model(
            input_ids=packed.ids_RL,
            attention_mask=attention_bias(packed.mask, torch.float64),
            position_ids=packed.positions_RL,
        ).last_hidden_state
        assert torch.isfinite(rows).all()
        levels = run_levels(model.model, trees, device)
        for tree, sequences, row, level in zip(trees, [first, second], rows, levels, strict=True):
            for sequence, path in zip(sequences, tree.paths, strict=True):
                alone = model.model(input_ids=torch.tensor([sequence])).last_hidden_state[0]
                where = torch.from_numpy(path)
                torch.testing.assert_close(row[where], alone, rtol=1e-10, atol=1e-11)
                torch.testing.assert_close(level[where], alone, rtol=1e-10, atol=1e-11)


def test_padding_is_on_the_right() -> None:
    packed = pad([[5, 6], [7]], torch.device("cpu"))
    assert packed.ids_RL.tolist() == [[5, 6], [7, 0]]
    assert packed.mask.tolist() == [[1, 1], [1, 0]]


@pytest.mark.parametrize("sequences", [[[1]], [[1], [1]], [[1, 2], [1]]])
def test_degenerate_trees(sequences: list[list[int]]) -> None:
    tree = PrefixTree.build(sequences)
    assert len(tree) == max(map(len, sequences))
    assert len(tree.segments()) == 1
