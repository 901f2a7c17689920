"""Cutting and joining rollouts."""

from __future__ import annotations

from dataclasses import replace

import torch

from creditlib.rollout.batch import join, select_groups
from creditlib.types import Rollout
from tests.trainer import world

PER_TOKEN = ("ids_BT", "mask_BT", "sampler_logps_BT", "sampler_mass_BT")


def rollout(count: int, step: int) -> Rollout:
    return world.Scripted().generate(world.prompts(count), samples=3, step=step)


def rows(rollout: Rollout) -> list[tuple[object, ...]]:
    """Each response with all that belongs to it, without padding."""
    return [
        (
            rollout.prompts[group].id,
            rollout.prompt_ids[group],
            rollout.ids_BT[b, : rollout.lengths_B[b]].tolist(),
            rollout.sampler_logps_BT[b, : rollout.lengths_B[b]].tolist(),
            rollout.sampler_mass_BT[b, : rollout.lengths_B[b]].tolist(),
            rollout.texts[b],
            rollout.finish[b],
        )
        for b, group in enumerate(rollout.group_B.tolist())
    ]


def test_select_groups_whose_rows_are_scattered() -> None:
    sampled = replace(rollout(4, step=1), opened="<think>")
    order = torch.randperm(12, generator=torch.Generator().manual_seed(0)).tolist()
    scattered = replace(
        sampled,
        group_B=sampled.group_B[order],
        **{name: getattr(sampled, name)[order] for name in PER_TOKEN},
        texts=tuple(sampled.texts[b] for b in order),
        finish=tuple(sampled.finish[b] for b in order),
    )
    chosen, kept = select_groups(scattered, [3, 1])
    assert [prompt.id for prompt in chosen.prompts] == ["train/3", "train/1"]
    assert rows(chosen) == [rows(scattered)[row] for row in kept]
    assert sorted(kept) == kept and len(kept) == 6
    assert chosen.opened == join([chosen, chosen]).opened == "<think>"
    assert set(chosen.group_B.tolist()) == {0, 1}


def test_select_nothing() -> None:
    chosen, kept = select_groups(rollout(2, step=1), [])
    assert kept == [] and chosen.ids_BT.shape[0] == 0 and chosen.group_B.dtype == torch.int64


def test_join_pads_to_the_widest() -> None:
    parts = [rollout(2, step=1), rollout(3, step=2), rollout(1, step=5)]
    parts[2] = replace(parts[2], **{name: getattr(parts[2], name)[:, :3] for name in PER_TOKEN})
    joined = join(parts)
    assert rows(joined) == [row for part in parts for row in rows(part)]
    assert joined.ids_BT.shape == joined.mask_BT.shape == (18, max(part.ids_BT.shape[1] for part in parts))
    assert joined.mask_BT.dtype == torch.bool
    assert (joined.sampler_mass_BT[~joined.mask_BT] == 1).all() and not joined.sampler_logps_BT[
        ~joined.mask_BT
    ].any()
    assert joined.group_B.tolist() == [g for g in range(6) for _ in range(3)]
    assert join(parts[:1]) is parts[0]
