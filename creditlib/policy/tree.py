"""The prefix tree: token sequences that share a beginning, held once.

The G responses to a prompt share the prompt, and often their own first tokens; the replay contexts of one
response share whatever they have in common. A `PrefixTree` is the trie of equal token prefixes, flattened so
that a parent comes before its children. It assumes no layout: what is equal is shared.

Three ways to run a causal transformer over it give the hidden states that each sequence would have alone:

* in one row, its attention block by block (`creditlib.policy.tree_attention`): the cheapest, on CPUs;
* in one row with an ancestor mask (`pack`): wherever a model takes a mask, with gradient;
* level by level with a KV cache (`run_levels`): without gradient, where attention block by block cannot run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from transformers import DynamicCache

if TYPE_CHECKING:
    from creditlib.policy.tree_attention import TreeBlocks

SHARED_PART = 0.5  # sequences that begin with this part of the shorter one in common are worth one tree


@dataclass(frozen=True)
class Segment:
    """A run `start:end` of packed tokens without a branch in it, below segment `parent` (-1: a root)."""

    start: int
    end: int
    parent: int


@dataclass(frozen=True)
class PrefixTree:
    """L packed tokens; `paths[s]` are the packed indices of the tokens of sequence s, root first."""

    ids_L: np.ndarray  # int64
    depth_L: np.ndarray  # int64, a token's position in its own sequence
    parent_L: np.ndarray  # int64, packed index of the token before it; -1 at a root
    paths: tuple[np.ndarray, ...]

    @staticmethod
    def build(sequences: Sequence[Sequence[int]], *, min_shared: int = 1) -> PrefixTree:
        """The trie of `sequences` (none of them empty).

        Args:
            sequences: token ids; equal prefixes become one path.
            min_shared: open a new branching point only where it saves this many tokens. 1 shares all;
                level-by-level execution runs better with fewer, longer segments.
        """
        arrays = [np.asarray(sequence, dtype=np.int64) for sequence in sequences]
        order = sorted(range(len(arrays)), key=lambda s: arrays[s].tolist())
        paths: list[np.ndarray] = [np.empty(0, np.int64)] * len(arrays)
        fresh_ids: list[np.ndarray] = []
        fresh_parents: list[np.ndarray] = []
        size, previous, path = 0, np.empty(0, np.int64), np.empty(0, np.int64)
        branches = [0]  # depths on the current path at which something already branches off
        for s in order:
            tokens = arrays[s]
            shared = common_prefix(previous, tokens)
            branches = [depth for depth in branches if depth <= shared]
            if shared - branches[-1] >= min_shared:
                branches.append(shared)
            # A sequence that ends inside the previous one is already there: no branch, nothing to save.
            depth = shared if shared == len(tokens) else branches[-1]
            new = np.arange(size, size + len(tokens) - depth)
            path = np.concatenate([path[:depth], new])
            paths[s] = path
            fresh_ids.append(tokens[depth:])
            fresh_parents.append(np.concatenate([[path[depth - 1] if depth else -1], new[:-1]])[: len(new)])
            size += len(new)
            previous = tokens
        parent_L = np.concatenate(fresh_parents).astype(np.int64)
        depth_L = np.empty(size, np.int64)
        for path in paths:
            depth_L[path] = np.arange(len(path))
        return PrefixTree(np.concatenate(fresh_ids), depth_L, parent_L, tuple(paths))

    def __len__(self) -> int:
        return len(self.ids_L)

    def ancestor_mask(self) -> np.ndarray:
        """(L, L) bool: may token i attend to token j, that is, is j on i's path."""
        mask_LL = np.zeros((len(self), len(self)), dtype=bool)
        done = np.zeros(len(self), dtype=bool)
        for path in self.paths:
            new = path[~done[path]]
            rows = np.zeros((len(new), len(self)), dtype=bool)
            rows[:, path] = self.depth_L[path][None, :] <= self.depth_L[new][:, None]
            mask_LL[new] = rows
            done[path] = True
        return mask_LL

    def segments(self) -> list[Segment]:
        """The tree as unbranched runs, parents first."""
        children_L = np.zeros(len(self), np.int64)
        inner = self.parent_L[self.parent_L >= 0]
        np.add.at(children_L, inner, 1)
        position_L = np.arange(len(self))
        starts_L = (self.parent_L != position_L - 1) | (self.parent_L < 0)
        starts_L[1:] |= children_L[self.parent_L[1:]] > 1
        starts = np.flatnonzero(starts_L)
        segment_of_L = np.cumsum(starts_L) - 1
        ends = [*starts[1:].tolist(), len(self)]
        return [
            Segment(
                int(start),
                int(end),
                int(segment_of_L[self.parent_L[start]]) if self.parent_L[start] >= 0 else -1,
            )
            for start, end in zip(starts, ends, strict=True)
        ]


def common_prefix(a: Sequence[int] | np.ndarray, b: Sequence[int] | np.ndarray) -> int:
    """Number of equal first tokens."""
    length = min(len(a), len(b))
    different = np.flatnonzero(np.asarray(a[:length]) != np.asarray(b[:length]))
    return int(different[0]) if len(different) else length


def families(sequences: Sequence[tuple[int, ...]]) -> list[list[int]]:
    """Indices of the sequences, in families worth a tree: each shares `SHARED_PART` with the one before it in
    order.
    """
    found: list[list[int]] = []
    for i in sorted(range(len(sequences)), key=lambda i: sequences[i]):
        if found:
            before = sequences[found[-1][-1]]
            if common_prefix(before, sequences[i]) >= SHARED_PART * min(len(before), len(sequences[i])):
                found[-1].append(i)
                continue
        found.append([i])
    return found


@dataclass(frozen=True)
class Packed:
    """Model inputs: R rows of at most L tokens. `row_offset[r]` + a packed index of tree r is a flat index
    into (R x L).
    """

    ids_RL: Tensor
    positions_RL: Tensor
    mask: Tensor | None  # (R, 1, L, L) bool for trees, (R, L) for plain padding; None: `blocks` say it
    row_offsets: tuple[int, ...]
    blocks: TreeBlocks | None = None  # of the one tree, see `creditlib.policy.tree_attention`


def pack(trees: Sequence[PrefixTree], device: torch.device) -> Packed:
    """One tree a row, right padded, with the ancestor mask. Padding attends to itself alone, so that nothing
    is NaN.
    """
    width = max(len(tree) for tree in trees)
    ids_RL = np.zeros((len(trees), width), np.int64)
    positions_RL = np.zeros((len(trees), width), np.int64)
    mask_RLL = np.zeros((len(trees), width, width), bool)
    mask_RLL[:, np.arange(width), np.arange(width)] = True
    for row, tree in enumerate(trees):
        ids_RL[row, : len(tree)] = tree.ids_L
        positions_RL[row, : len(tree)] = tree.depth_L
        mask_RLL[row, : len(tree), : len(tree)] = tree.ancestor_mask()
    return Packed(
        torch.from_numpy(ids_RL).to(device),
        torch.from_numpy(positions_RL).to(device),
        torch.from_numpy(mask_RLL)[:, None].to(device),
        tuple(row * width for row in range(len(trees))),
    )


def pad(sequences: Sequence[Sequence[int]], device: torch.device) -> Packed:
    """One sequence a row, right padded: what every causal model understands, and the oracle of the tree."""
    width = max(len(sequence) for sequence in sequences)
    ids_RL = torch.zeros(len(sequences), width, dtype=torch.long)
    mask_RL = torch.zeros(len(sequences), width, dtype=torch.long)
    for row, sequence in enumerate(sequences):
        ids_RL[row, : len(sequence)] = torch.as_tensor(sequence, dtype=torch.long)
        mask_RL[row, : len(sequence)] = 1
    positions_RL = torch.arange(width).expand(len(sequences), width)
    offsets = tuple(row * width for row in range(len(sequences)))
    return Packed(ids_RL.to(device), positions_RL.to(device), mask_RL.to(device), offsets)


def attention_bias(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """A bool mask as the additive one that every attention implementation takes; 2-D padding masks pass
    through.
    """
    if mask.ndim == 2:
        return mask
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(
        ~mask, torch.finfo(dtype).min
    )


@torch.no_grad()
def run_levels(backbone: Any, trees: Sequence[PrefixTree], device: torch.device) -> list[Tensor]:
    """Hidden states of every packed token of every tree, (L, D) each, level by level with a KV cache.

    All segments at one depth (counted in segments) run as one batch over the caches of their parents.

    Args:
        backbone: the transformer without its head; called with ids, mask, positions and cache.
        trees: built with a `min_shared` of several tokens for speed; any tree is right.
        device: where the model lives.
    """
    segments = [(row, tree.segments()) for row, tree in enumerate(trees)]
    level = [(row, s) for row, own in segments for s, segment in enumerate(own) if segment.parent < 0]
    own_segments = dict(segments)
    children: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for row, own in segments:
        for s, segment in enumerate(own):
            if segment.parent >= 0:
                children.setdefault((row, segment.parent), []).append((row, s))
    hidden: list[Tensor | None] = [None] * len(trees)
    cache = DynamicCache(config=backbone.config)
    past_mask = torch.zeros(len(level), 0, dtype=torch.bool, device=device)
    while level:
        runs = [own_segments[row][s] for row, s in level]
        width = max(run.end - run.start for run in runs)
        ids = torch.zeros(len(runs), width, dtype=torch.long)
        positions = torch.zeros(len(runs), width, dtype=torch.long)
        real = torch.zeros(len(runs), width, dtype=torch.bool)
        for i, ((row, _), run) in enumerate(zip(level, runs, strict=True)):
            ids[i, : run.end - run.start] = torch.from_numpy(trees[row].ids_L[run.start : run.end])
            positions[i, : run.end - run.start] = torch.from_numpy(trees[row].depth_L[run.start : run.end])
            real[i, : run.end - run.start] = True
        ids, positions, real = ids.to(device), positions.to(device), real.to(device)
        causal = torch.ones(width, width, dtype=torch.bool, device=device).tril()
        own_mask = causal[None] & (real[:, None, :] | torch.eye(width, dtype=torch.bool, device=device)[None])
        mask = torch.cat([past_mask[:, None, :].expand(-1, width, -1), own_mask], dim=2)[:, None]
        output = backbone(
            input_ids=ids,
            attention_mask=attention_bias(mask, backbone.dtype),
            position_ids=positions,
            past_key_values=cache,
            use_cache=True,
        )
        states = output.last_hidden_state
        for i, ((row, _), run) in enumerate(zip(level, runs, strict=True)):
            store = hidden[row]
            if store is None:
                store = states.new_zeros(len(trees[row]), states.shape[-1])
                hidden[row] = store
            store[run.start : run.end] = states[i, : run.end - run.start]
        following = [(i, child) for i, node in enumerate(level) for child in children.get(node, ())]
        if not following:
            break
        parents = torch.tensor([i for i, _ in following], device=device)
        cache.batch_select_indices(parents)
        past_mask = torch.cat([past_mask, real], dim=1)[parents]
        level = [child for _, child in following]
    return [store for store in hidden if store is not None]
