"""Log-probabilities of sampled tokens under a policy, with or without gradient.

Hidden states come first (`creditlib.policy.trunk`), then the head in chunks (`creditlib.policy.head`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from creditlib.policy.head import Head, selected_logps
from creditlib.policy.modes import evaluating
from creditlib.policy.tree import Packed, PrefixTree, pack, pad
from creditlib.policy.tree_attention import pack_blocks
from creditlib.policy.trunk import MIN_SHARED, Packing, Trunk
from creditlib.types import CreditlibError, Rollout


class _Gather(NamedTuple):
    """Which flat hidden state predicts which token (M of them), and where (row, t) finds its result (M =
    nothing).
    """

    source_M: np.ndarray
    target_M: np.ndarray
    index_RT: np.ndarray


class _Predicting(NamedTuple):
    """Hidden states that predict tokens, the tokens, and where (row, t) finds its own (M = nothing)."""

    hidden_MD: Tensor
    targets_M: Tensor
    index_RT: Tensor

    def spread(self, values_M: Tensor) -> Tensor:
        """(R, T, ...) from (M, ...), 0 where there is nothing."""
        return torch.cat([values_M, values_M.new_zeros(1, *values_M.shape[1:])])[self.index_RT]


class Scorer(Trunk):
    """Scores responses under `model` (a transformers causal LM, or a PEFT model around one).

    Args:
        model: the policy; trained in place elsewhere, here only called.
        packing: as `creditlib.policy.trunk.Trunk` has it.
    """

    def __init__(self, model: Any, packing: Packing = "auto") -> None:
        super().__init__(model, packing)
        self.head = Head(self.base)
        with evaluating(model):
            self._check_head()

    def forward(
        self, rollout: Rollout, rows: Sequence[int], *, entropy_grad: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Log-probs and entropies of the responses `rows`, (R, T) each in the order of `rows`, 0 outside the
        mask.

        At the rollout's temperature, over the full vocabulary. T is the rollout's width. Gradient flows
        unless it is off.
        """
        states = self._predicting(*_of_rollout(rollout, rows), width=rollout.ids_BT.shape[1])
        return self._selected(states, rollout.temperature, entropy_grad)

    def forward_sequences(
        self,
        sequences: Sequence[Sequence[int]],
        responses: Sequence[int],
        trees: Sequence[int],
        *,
        width: int,
        temperature: float = 1.0,
        entropy_grad: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """Log-probs and entropies of the last `responses[r]` tokens of each sequence, (R, width) each.

        Args:
            sequences: token ids, prompt and response.
            responses: length of each response.
            trees: sequences with the same number share one prefix tree (they need have nothing in common);
                where attention runs block by block, all do.
            width: columns of the result.
            temperature: divides the logits.
            entropy_grad: whether the entropy gets a gradient.
        """
        states = self._predicting(sequences, responses, trees, width=width)
        return self._selected(states, temperature, entropy_grad)

    def _predicting(
        self,
        sequences: Sequence[Sequence[int]],
        responses: Sequence[int],
        trees: Sequence[int],
        *,
        width: int,
    ) -> _Predicting:
        if self.packing == "tree":
            packed, gather = self._tree(sequences, trees, responses, width)
        else:
            packed, gather = _padded(sequences, responses, width, self.device)
        source_M, targets_M, index_RT = (torch.from_numpy(part).to(self.device) for part in gather)
        return _Predicting(self.hidden(packed).flatten(0, 1)[source_M], targets_M, index_RT)

    def _selected(
        self, states: _Predicting, temperature: float, entropy_grad: bool = False
    ) -> tuple[Tensor, Tensor]:
        logps_M, entropy_M = selected_logps(
            self.head, states.hidden_MD, states.targets_M, temperature=temperature, entropy_grad=entropy_grad
        )
        return states.spread(logps_M), states.spread(entropy_M)

    def logps(self, rollout: Rollout, micro_batch: int | None = None) -> Tensor:
        """(B, T) log-probs of the whole rollout, in eval mode and without gradient."""
        return self._whole(rollout, micro_batch, keep=False)[0]

    def logps_and_hidden(self, rollout: Rollout, micro_batch: int | None = None) -> tuple[Tensor, Tensor]:
        """`logps`, and (B, T, D) the hidden states that predict each token, 0 outside the mask."""
        logps_BT, hidden_BTD = self._whole(rollout, micro_batch, keep=True)
        assert hidden_BTD is not None
        return logps_BT, hidden_BTD

    @torch.no_grad()
    def _whole(
        self, rollout: Rollout, micro_batch: int | None, *, keep: bool
    ) -> tuple[Tensor, Tensor | None]:
        shape = rollout.ids_BT.shape
        out_BT = torch.zeros(shape, dtype=torch.float32, device=self.device)
        hidden_BTD = None
        if keep:
            size = self.backbone.config.get_text_config().hidden_size
            hidden_BTD = torch.zeros(*shape, size, dtype=self.backbone.dtype, device=self.device)
        with evaluating(self.model):
            for rows in micro_batches(rollout, range(len(rollout.texts)), micro_batch):
                states = self._predicting(*_of_rollout(rollout, rows), width=shape[1])
                logps_RT, _ = self._selected(states, rollout.temperature)
                rows_R = torch.tensor(rows, device=self.device)
                out_BT = out_BT.to(logps_RT.dtype)
                out_BT[rows_R] = logps_RT
                if hidden_BTD is not None:
                    hidden_BTD[rows_R] = states.spread(states.hidden_MD)
        return out_BT, hidden_BTD

    def _tree(
        self, sequences: Sequence[Sequence[int]], groups: Sequence[int], responses: Sequence[int], width: int
    ) -> tuple[Packed, _Gather]:
        members: dict[int, list[int]] = {}
        for row, group in enumerate(groups):
            # A mask grows with the square of its tree; blocks don't, and let prompts share what they can.
            members.setdefault(0 if self.blocks else group, []).append(row)
        trees = [
            PrefixTree.build([sequences[row] for row in own], min_shared=MIN_SHARED if self.blocks else 1)
            for own in members.values()
        ]
        packed = pack_blocks(trees[0], self.device) if self.blocks else pack(trees, self.device)
        sources: list[np.ndarray] = []
        targets: list[np.ndarray] = []
        index_RT = np.full((len(sequences), width), -1)
        for tree, own, offset in zip(trees, members.values(), packed.row_offsets, strict=True):
            # Every token of a response is one node of the tree, scored once however many responses hold it.
            ends = [path[len(path) - responses[row] :] for row, path in zip(own, tree.paths, strict=True)]
            nodes, inverse = np.unique(np.concatenate(ends), return_inverse=True)
            first = sum(len(part) for part in sources)
            at = 0
            for row in own:
                index_RT[row, : responses[row]] = first + inverse[at : at + responses[row]]
                at += responses[row]
            sources.append(offset + tree.parent_L[nodes])
            targets.append(tree.ids_L[nodes])
        source_M = np.concatenate(sources)
        index_RT[index_RT < 0] = len(source_M)
        return packed, _Gather(source_M, np.concatenate(targets), index_RT)

    def _check_head(self) -> None:
        """Hidden states through `Head` must be the model's own logits, or every log-prob would be silently
        wrong.
        """
        base = self.base
        ids = torch.arange(4, device=self.device)[None] % base.config.get_text_config().vocab_size
        with torch.no_grad():
            want = base(input_ids=ids, use_cache=False).logits
            have = self.head(self.hidden(pad(ids.tolist(), self.device)))
        if not torch.allclose(want.float(), have.float(), rtol=1e-2, atol=1e-2):
            raise CreditlibError(
                f"{type(base).__name__} does something to its logits after the output layer that creditlib "
                f"does not know (largest difference {(want - have).abs().max():.3g}): it cannot train here"
            )


def _of_rollout(rollout: Rollout, rows: Sequence[int]) -> tuple[list[tuple[int, ...]], list[int], list[int]]:
    """Token ids of prompt and response, the length of the response, and the group, of these rows."""
    lengths, group = rollout.lengths_B.tolist(), rollout.group_B.tolist()
    sequences = [
        (*rollout.prompt_ids[group[row]], *rollout.ids_BT[row, : lengths[row]].tolist()) for row in rows
    ]
    return sequences, [lengths[row] for row in rows], [group[row] for row in rows]


def _padded(
    sequences: Sequence[Sequence[int]], responses: Sequence[int], width: int, device: torch.device
) -> tuple[Packed, _Gather]:
    packed = pad(sequences, device)
    sources, targets = [], []
    index_RT = np.full((len(sequences), width), sum(responses))
    at = 0
    for row, (sequence, length) in enumerate(zip(sequences, responses, strict=True)):
        start = len(sequence) - length
        sources.append(packed.row_offsets[row] + np.arange(start - 1, len(sequence) - 1))
        targets.append(np.asarray(sequence[start:], np.int64))
        index_RT[row, :length] = np.arange(at, at + length)
        at += length
    return packed, _Gather(np.concatenate(sources), np.concatenate(targets), index_RT)


def micro_batches(rollout: Rollout, rows: Sequence[int], size: int | None) -> Iterator[list[int]]:
    """`rows` in pieces of at most `size` responses, groups kept together as far as that allows."""
    group = rollout.group_B.tolist()
    ordered = sorted(rows, key=lambda row: group[row])
    step = size or max(len(ordered), 1)
    for start in range(0, len(ordered), step):
        yield ordered[start : start + step]
