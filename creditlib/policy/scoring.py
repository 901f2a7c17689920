"""Log-probabilities of sampled tokens under a policy, with or without gradient.

`Scorer` runs the prefix tree where the model allows it and plain padded rows where it does not; the numbers
are the same. Hidden states come first, then the head in chunks (`creditlib.policy.head`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from creditlib.policy.attention import UnsupportedAttentionError
from creditlib.policy.head import Head, selected_logps
from creditlib.policy.modes import evaluating
from creditlib.policy.tree import Packed, PrefixTree, attention_bias, pack, pad, run_levels
from creditlib.policy.tree_attention import pack_blocks, tree_attending
from creditlib.types import CreditlibError, Rollout

Packing = Literal["auto", "tree", "padded"]

_MIN_SHARED = 8  # tokens that a branching point must save to be worth a block of attention of its own


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


class Scorer:
    """Scores responses under `model` (a transformers causal LM, or a PEFT model around one).

    Args:
        model: the policy; trained in place elsewhere, here only called.
        packing: ``tree`` shares prefixes, ``padded`` does not, ``auto`` takes the tree where it is right for
            this model. `fallback_reason` says why it is not, `blocks` whether the tree's attention runs
            block by block instead of under a mask.
    """

    def __init__(self, model: Any, packing: Packing = "auto") -> None:
        base = model.get_base_model() if hasattr(model, "peft_config") else model
        self.model = model
        self.backbone: Any = getattr(base, base.base_model_prefix)
        self.head = Head(base)
        self.fallback_reason: str | None = None
        self.blocks = False
        with evaluating(model):
            self._check_head(base)
            if packing != "padded":
                self.fallback_reason = tree_obstacle(base.config) or self._tree_mismatch()
                self.blocks = not self.fallback_reason and self._blocks_agree()
            if packing == "tree" and self.fallback_reason:
                raise CreditlibError(
                    f"trainer.packing=tree: {self.fallback_reason}; use trainer.packing=auto or padded"
                )
            if packing == "auto":
                packing = "padded" if self.fallback_reason else "tree"
        self.packing = packing

    @property
    def device(self) -> torch.device:
        device: torch.device = self.backbone.device
        return device

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

    @torch.no_grad()
    def hidden_states(self, sequences: Sequence[Sequence[int]]) -> tuple[Tensor, list[np.ndarray]]:
        """Last hidden states of all tokens, (L, D), and for each sequence where in them its tokens are.

        Without gradient, in the model's present mode. Equal beginnings are one where the packing is a tree.
        """
        if self.packing == "padded":
            packed = pad(sequences, self.device)
            paths = [
                offset + np.arange(len(sequence))
                for offset, sequence in zip(packed.row_offsets, sequences, strict=True)
            ]
            return self.hidden(packed).flatten(0, 1), paths
        tree = PrefixTree.build(sequences, min_shared=_MIN_SHARED)
        if self.blocks:
            return self.hidden(pack_blocks(tree, self.device))[0], list(tree.paths)
        return run_levels(self.backbone, [tree], self.device)[0], list(tree.paths)

    def hidden(self, packed: Packed) -> Tensor:
        """(R, L, D) last hidden states."""
        inputs = {"input_ids": packed.ids_RL, "position_ids": packed.positions_RL, "use_cache": False}
        if packed.mask is None:
            with tree_attending(self.backbone):
                output = self.backbone(**inputs, tree_blocks=packed.blocks)
        else:
            output = self.backbone(**inputs, attention_mask=attention_bias(packed.mask, self.backbone.dtype))
        hidden_RLD: Tensor = output.last_hidden_state
        return hidden_RLD

    def _tree(
        self, sequences: Sequence[Sequence[int]], groups: Sequence[int], responses: Sequence[int], width: int
    ) -> tuple[Packed, _Gather]:
        members: dict[int, list[int]] = {}
        for row, group in enumerate(groups):
            # A mask grows with the square of its tree; blocks don't, and let prompts share what they can.
            members.setdefault(0 if self.blocks else group, []).append(row)
        trees = [
            PrefixTree.build([sequences[row] for row in own], min_shared=_MIN_SHARED if self.blocks else 1)
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

    def _check_head(self, base: Any) -> None:
        """Hidden states through `Head` must be the model's own logits, or every log-prob would be silently
        wrong.
        """
        ids = torch.arange(4, device=self.device)[None] % base.config.get_text_config().vocab_size
        with torch.no_grad():
            want = base(input_ids=ids, use_cache=False).logits
            have = self.head(self.hidden(pad(ids.tolist(), self.device)))
        if not torch.allclose(want.float(), have.float(), rtol=1e-2, atol=1e-2):
            raise CreditlibError(
                f"{type(base).__name__} does something to its logits after the output layer that creditlib "
                f"does not know (largest difference {(want - have).abs().max():.3g}): it cannot train here"
            )

    def _tree_mismatch(self) -> str | None:
        """Try a small tree under a mask against the same sequences alone; None if they agree."""
        name = type(self.backbone).__name__
        try:
            difference = self._difference(lambda tree: pack([tree], self.device))
        except (TypeError, ValueError, RuntimeError) as error:
            return f"{name} takes no 4-D attention mask ({error})"
        if not difference <= self._tolerance:
            return f"{name} gave other numbers for a packed tree (relative difference {difference:.1e})"
        return None

    def _blocks_agree(self) -> bool:
        """Whether attention block by block gives this model's numbers, and goes on doing so in training."""
        # What is checkpointed is computed again in the backward pass, when the model's own attention is back.
        if self.device.type != "cpu" or getattr(self.backbone, "is_gradient_checkpointing", False):
            return False
        training = self.model.training
        try:
            agree = self._difference(lambda tree: pack_blocks(tree, self.device)) <= self._tolerance
            self.model.train()  # dropout within attention shows only now
            self._difference(lambda tree: pack_blocks(tree, self.device))
        except (UnsupportedAttentionError, TypeError, ValueError, RuntimeError):
            return False
        finally:
            self.model.train(training)
        return agree

    @property
    def _tolerance(self) -> float:
        return 1e-4 if self.backbone.dtype in (torch.float32, torch.float64) else 5e-2

    @torch.no_grad()
    def _difference(self, packing: Callable[[PrefixTree], Packed]) -> float:
        """Of a small tree's hidden states from those of its sequences alone, relative."""
        vocab = self.backbone.config.get_text_config().vocab_size
        stem = [(7 * i + 3) % vocab for i in range(6)]
        sequences = [
            [*stem, (11 * i + j) % vocab, (5 * i + 3 * j) % vocab, (i + j) % vocab]
            for i, j in ((1, 2), (3, 5), (1, 6))
        ]
        tree = PrefixTree.build(sequences)
        packed = self.hidden(packing(tree))[0].double()
        alone = self.hidden(pad(sequences, self.device)).double()
        together = torch.stack([packed[torch.from_numpy(path).to(self.device)] for path in tree.paths])
        return float((together - alone).norm() / alone.norm())


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


def tree_obstacle(config: Any) -> str | None:
    """Why the prefix tree would be wrong for models of this configuration, or None if nothing speaks against
    it.
    """
    text = config.get_text_config()
    special = sorted(set(getattr(text, "layer_types", None) or []) - {"full_attention"})
    if special:
        return f"{config.model_type} has {', '.join(special)} layers"
    if not getattr(text, "layer_types", None) and getattr(text, "sliding_window", None):
        return f"{config.model_type} attends within a sliding window of {text.sliding_window} tokens"
    if getattr(text, "alibi", False):
        return f"{config.model_type} takes positions from the attention mask (ALiBi)"
    if config._attn_implementation not in ("sdpa", "eager"):
        return f"attention implementation {config._attn_implementation} takes no 4-D mask"
    return None


def micro_batches(rollout: Rollout, rows: Sequence[int], size: int | None) -> Iterator[list[int]]:
    """`rows` in pieces of at most `size` responses, groups kept together as far as that allows."""
    group = rollout.group_B.tolist()
    ordered = sorted(rows, key=lambda row: group[row])
    step = size or max(len(ordered), 1)
    for start in range(0, len(ordered), step):
        yield ordered[start : start + step]
