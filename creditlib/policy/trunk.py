"""A transformer without its head, over sequences that share beginnings.

`Trunk` runs the prefix tree where the model allows it and plain padded rows where it does not; the numbers
are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from creditlib.policy.attention import UnsupportedAttentionError
from creditlib.policy.modes import evaluating
from creditlib.policy.tree import Packed, PrefixTree, attention_bias, pack, pad, run_levels
from creditlib.policy.tree_attention import pack_blocks, tree_attending
from creditlib.types import CreditlibError

Packing = Literal["auto", "tree", "padded"]

MIN_SHARED = 8  # tokens that a branching point must save to be worth a block of attention of its own


class Trunk:
    """The transformer of `model` (of transformers, with any head, or a PEFT model around one).

    Args:
        model: trained in place elsewhere, here only called.
        packing: ``tree`` shares prefixes, ``padded`` does not, ``auto`` takes the tree where it is right for
            this model. `fallback_reason` says why it is not, `blocks` whether the tree's attention runs
            block by block instead of under a mask.

    Raises:
        CreditlibError: the tree is asked for, and is not right for this model.
    """

    def __init__(self, model: Any, packing: Packing = "auto") -> None:
        self.model = model
        self.base: Any = model.get_base_model() if hasattr(model, "peft_config") else model
        self.backbone: Any = getattr(self.base, self.base.base_model_prefix)
        self.fallback_reason: str | None = None
        self.blocks = False
        if packing != "padded":
            with evaluating(model):
                self.fallback_reason = tree_obstacle(self.base.config) or self._tree_mismatch()
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

    def hidden_states(self, sequences: Sequence[Sequence[int]]) -> tuple[Tensor, list[np.ndarray]]:
        """Last hidden states of all tokens, (L, D), and for each sequence where in them its tokens are.

        In the model's present mode, with gradient unless it is off. Equal beginnings are one where the
        packing is a tree.
        """
        if self.packing == "padded":
            packed = pad(sequences, self.device)
            paths = [
                offset + np.arange(len(sequence))
                for offset, sequence in zip(packed.row_offsets, sequences, strict=True)
            ]
            return self.hidden(packed).flatten(0, 1), paths
        tree = PrefixTree.build(sequences, min_shared=MIN_SHARED)
        if self.blocks:
            return self.hidden(pack_blocks(tree, self.device))[0], list(tree.paths)
        if torch.is_grad_enabled():
            return self.hidden(pack([tree], self.device))[0], list(tree.paths)
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
