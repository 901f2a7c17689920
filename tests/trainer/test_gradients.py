"""How a step is cut into pieces (micro-batches, packing, processes) changes nothing; one in plain loops."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from creditlib.trainer.prompts import PromptStream
from tests.trainer import world
from tests.trainer.two_processes import CASES, record

LOSSES: dict[str, dict[str, Any]] = {
    "grpo": {"loss__kl_coef": 0.1},
    "dapo": {"trainer__mask_truncated": True},
    "dr_grpo": {"loss__max_tokens": 7, "advantage": "grpo", "advantage__scale": "none"},
    "gspo_token": {"loss__clip_low": 0.3, "loss__clip_high": 0.3, "loss__correction": "token_truncate"},
    "cispo": {"loss__entropy_coef": 0.01, "loss__correction": "sequence_mask", "advantage__norm": "token"},
}


def gradients(
    loss: str, dtype: torch.dtype, **settings: Any
) -> tuple[list[torch.Tensor], list[dict[str, float]]]:
    run = world.config(loss=loss, trainer__epochs=2, trainer__minibatches=2, **LOSSES[loss], **settings)
    return world.updates_of(world.trainer(run, world.policy(dtype=dtype)))


@cache
def reference(loss: str, dtype: torch.dtype) -> tuple[list[torch.Tensor], list[dict[str, float]]]:
    return gradients(loss, dtype, trainer__packing="padded")


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    ("packing", "micro_batch"), [("padded", 1), ("padded", 3), ("tree", None), ("tree", 3)]
)
def test_pieces_change_nothing(loss: str, packing: str, micro_batch: int | None) -> None:
    for dtype, tolerance in ((torch.float64, 1e-10), (torch.float32, 1e-5)):
        found, metrics = gradients(loss, dtype, trainer__packing=packing, trainer__micro_batch=micro_batch)
        expected, expected_metrics = reference(loss, dtype)
        assert len(found) == len(expected) == 4
        # Later updates start from weights that AdamW moved by the sign of a gradient, so float32 noise grows.
        for update, (have, want) in enumerate(zip(found, expected, strict=True)):
            assert world.relative(have, want) < tolerance * (
                1 if dtype == torch.float64 or not update else 100
            )
        assert metrics[0] == pytest.approx(expected_metrics[0], rel=1e-4, abs=1e-6, nan_ok=True)


def test_the_settings_reach_what_they_should() -> None:
    """The comparison above would hold of a loop that ignores its settings."""
    plain = world.updates_of(world.trainer(world.config(), world.policy()))[0]
    assert len(plain) == 1
    for loss, settings in LOSSES.items():
        run = world.config(loss=loss, trainer__minibatches=2, **settings)
        assert world.relative(world.updates_of(world.trainer(run, world.policy()))[0][0], plain[0]) > 1e-3


@pytest.mark.parametrize("loss", ["grpo", "dapo"])
def test_one_step_in_plain_loops(loss: str) -> None:
    """GDPO's advantages and the loss, with one forward pass a row and a loop over tokens."""
    run = world.config(loss=loss, trainer__mask_truncated=True, trainer__micro_batch=3)
    ((found,), (metrics,)) = world.updates_of(world.trainer(run, world.policy()))
    task, policy = world.Words(), world.policy()
    drawn = PromptStream(task.prompts("train"), 0).take(4)
    rollout = world.Scripted().generate(drawn, samples=4, step=1)
    checks = task.verify([p for p in drawn for _ in range(4)], rollout.texts)
    rows = len(rollout.texts)
    assert set(rollout.finish) == {"stop", "length"}

    total = [0.0] * rows
    unscored = [all(check.score != check.score for check in checks[b].values()) for b in range(rows)]
    assert any(unscored)
    for name in task.reward_names:
        for group in range(4):
            own = [
                b
                for b in range(4 * group, 4 * group + 4)
                if name in checks[b] and checks[b][name].score == checks[b][name].score
            ]
            values = [float(torch.tensor(checks[b][name].score)) for b in own]  # rewards are float32
            if len(own) < 2 or max(values) == min(values):
                continue
            mean = sum(values) / len(values)
            std = (sum((value - mean) ** 2 for value in values) / (len(values) - 1)) ** 0.5
            for b, value in zip(own, values, strict=True):
                total[b] += (value - mean) / (std + 1e-4)
    scored = [total[b] for b in range(rows) if not unscored[b]]
    batch_mean = sum(scored) / len(scored)
    sigma = (sum((value - batch_mean) ** 2 for value in scored) / (len(scored) - 1)) ** 0.5

    counting = [b for b in range(rows) if not unscored[b] and rollout.finish[b] == "stop"]
    tokens = sum(int(rollout.mask_BT[b].sum()) for b in counting)
    objective = torch.zeros((), dtype=torch.float64)
    for b in counting:
        prompt, length = list(rollout.prompt_ids[b // 4]), int(rollout.mask_BT[b].sum())
        ids = prompt + rollout.ids_BT[b, :length].tolist()
        logits = policy.model(torch.tensor([ids])).logits[0]
        for t in range(length):
            logp = logits[len(prompt) + t - 1].log_softmax(-1)[ids[len(prompt) + t]]
            ratio = (logp - logp.detach()).exp()
            share = 1 / tokens if loss == "dapo" else 1 / (length * len(counting))
            objective = objective - ratio * total[b] / (sigma + 1e-4) * share
    objective.backward()
    expected = torch.cat([p.grad.flatten() for p in policy.model.parameters()])
    # Advantages are kept in float32.
    assert world.relative(found, expected) < 1e-6
    assert metrics["loss"] == pytest.approx(objective.item(), rel=1e-6, abs=1e-8)
    assert metrics["grad_norm"] == pytest.approx(expected.norm().item(), rel=1e-6)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start_processes(arguments: list[str], count: int = 2) -> list[subprocess.Popen[str]]:
    """`count` processes of one run, as torchrun and accelerate launch start them."""
    shared = {"WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    return [
        subprocess.Popen(
            [sys.executable, *arguments],
            env={**os.environ, **shared, "RANK": str(rank), "LOCAL_RANK": str(rank), "OMP_NUM_THREADS": "1"},
            cwd=Path(__file__).resolve().parents[2],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(count)
    ]


def test_two_processes_are_one(tmp_path: Path) -> None:
    started = start_processes(["-m", "tests.trainer.two_processes", str(tmp_path)])
    try:
        alone = {name: record(name, tmp_path / "alone") for name in CASES}
        for process in started:
            output = process.communicate(timeout=240)[0]
            assert process.returncode == 0, output
    finally:
        for process in started:
            process.kill()
    together = torch.load(tmp_path / "together.pt")
    for name in CASES:
        have, want = together[name], alone[name]
        assert len(have["gradients"]) == len(want["gradients"]), name
        for mine, other in zip(have["gradients"], want["gradients"], strict=True):
            assert world.relative(mine, other) < 1e-10, name
        assert have["refused"] == want["refused"], name
        assert have.get("order") == want.get("order"), name
        for mine, other in zip(have["metrics"], want["metrics"], strict=True):
            assert mine == pytest.approx(other, rel=1e-5, abs=1e-7, nan_ok=True), name
    assert any(case["updates_lost"] for case in alone.values())
