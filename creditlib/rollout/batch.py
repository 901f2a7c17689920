"""Cutting and joining rollouts."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

from creditlib.types import Rollout


def select_groups(rollout: Rollout, groups: Sequence[int]) -> tuple[Rollout, list[int]]:
    """The responses to prompts `groups`, renumbered in that order, and the rows they had."""
    renumber = {group: n for n, group in enumerate(groups)}
    rows = [row for row, group in enumerate(rollout.group_B.tolist()) if group in renumber]
    group_B = torch.tensor(
        [renumber[int(rollout.group_B[row])] for row in rows], device=rollout.group_B.device
    )
    return (
        Rollout(
            prompts=tuple(rollout.prompts[group] for group in groups),
            prompt_ids=tuple(rollout.prompt_ids[group] for group in groups),
            group_B=group_B.long(),
            ids_BT=rollout.ids_BT[rows],
            mask_BT=rollout.mask_BT[rows],
            texts=tuple(rollout.texts[row] for row in rows),
            sampler_logps_BT=rollout.sampler_logps_BT[rows],
            sampler_mass_BT=rollout.sampler_mass_BT[rows],
            finish=tuple(rollout.finish[row] for row in rows),
            temperature=rollout.temperature,
            opened=rollout.opened,
        ),
        rows,
    )


def join(rollouts: Sequence[Rollout]) -> Rollout:
    """One rollout of all prompts and responses, in order, padded to the widest."""
    if len(rollouts) == 1:
        return rollouts[0]
    width = max(rollout.ids_BT.shape[1] for rollout in rollouts)

    def widened(tensors: Sequence[Tensor], value: float) -> Tensor:
        return torch.cat([pad(tensor, (0, width - tensor.shape[1]), value=value) for tensor in tensors])

    shifts = [sum(len(rollout.prompts) for rollout in rollouts[:i]) for i in range(len(rollouts))]
    return Rollout(
        prompts=tuple(prompt for rollout in rollouts for prompt in rollout.prompts),
        prompt_ids=tuple(ids for rollout in rollouts for ids in rollout.prompt_ids),
        group_B=torch.cat([rollout.group_B + shift for rollout, shift in zip(rollouts, shifts, strict=True)]),
        ids_BT=widened([rollout.ids_BT for rollout in rollouts], 0),
        mask_BT=widened([rollout.mask_BT for rollout in rollouts], False),
        texts=tuple(text for rollout in rollouts for text in rollout.texts),
        sampler_logps_BT=widened([rollout.sampler_logps_BT for rollout in rollouts], 0.0),
        sampler_mass_BT=widened([rollout.sampler_mass_BT for rollout in rollouts], 1.0),
        finish=tuple(finish for rollout in rollouts for finish in rollout.finish),
        temperature=rollouts[0].temperature,
        opened=rollouts[0].opened,
    )
