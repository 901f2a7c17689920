"""Uniform credit in this project is GRPO and GDPO in TRL: the same advantages, losses and gradients.

TRL samples from a tiny random Llama, scores and computes its loss; then the same tokens, log-probs and
rewards go through creditlib. One difference is meant: rows without any reward count in TRL's denominators and
not in ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from creditlib import registry
from creditlib.credit.uniform import Uniform

pytest.importorskip("trl", reason="needs TRL: pip install 'creditlib[trl]'")

from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
from trl import GRPOConfig, GRPOTrainer

NAN = math.nan
GENERATIONS, PROMPTS, MAX_TOKENS = 4, ("a b c", "d e"), 6
WEIGHTS = (1.0, 0.5)
PLAIN = [[1, 0], [1, 1], [0, 0.25], [1, 1], [1, 3], [1, -3], [0.5, 3], [1, 0]]
MISSING = [[1, NAN], [NAN, NAN], [0, 0.25], [1, 1], [1, 3], [1, NAN], [1, NAN], [NAN, NAN]]
CONSTANT = [[0.1, 0.3]] * 4 + [[NAN, NAN]] * 3 + [[1, 2]]


def make_trainer(
    make_model: Callable[..., Any], folder: Path, rewards: list[list[float]], **settings: Any
) -> Any:
    words = ["<pad>", "<s>", "</s>", *(f"w{n}" for n in range(53)), *"abcde"]
    tokenizer = Tokenizer(models.WordLevel({word: n for n, word in enumerate(words)}, unk_token="<pad>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    special = {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>"}

    def reward(k: int) -> Callable[..., list[float | None]]:
        def score(completions: list[str], **_: Any) -> list[float | None]:
            return [None if math.isnan(row[k]) else float(row[k]) for row in rewards]

        score.__name__ = f"reward_{k}"
        return score

    arguments = GRPOConfig(
        output_dir=str(folder),
        per_device_train_batch_size=len(rewards),
        num_generations=GENERATIONS,
        max_completion_length=MAX_TOKENS,
        reward_weights=list(WEIGHTS),
        bf16=False,
        gradient_checkpointing=False,
        use_cpu=True,
        report_to=[],
        **settings,
    )
    trainer = GRPOTrainer(
        model=make_model("llama", torch.float32, vocab=len(words)),
        reward_funcs=[reward(0), reward(1)],
        args=arguments,
        train_dataset=Dataset.from_list([{"prompt": prompt} for prompt in PROMPTS]),
        processing_class=PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special),
    )
    trainer.current_gradient_accumulation_steps = 1
    trainer.model.train()
    return trainer


def trl_rollout(trainer: Any) -> dict[str, Tensor]:
    torch.manual_seed(5)
    prompts = [{"prompt": prompt} for prompt in PROMPTS for _ in range(GENERATIONS)]
    rollout: dict[str, Tensor] = trainer._generate_and_score_completions(prompts)
    return rollout


def logps_of(model: Any, rollout: dict[str, Tensor]) -> Tensor:
    """Log-probs of the completion in the plainest way, (B, T)."""
    ids_BL = torch.cat([rollout["prompt_ids"], rollout["completion_ids"]], 1)
    mask_BL = torch.cat([rollout["prompt_mask"], rollout["completion_mask"]], 1)
    logps_BLV = model(input_ids=ids_BL, attention_mask=mask_BL).logits[:, :-1].log_softmax(-1)
    width = rollout["completion_ids"].shape[1]
    return logps_BLV.gather(2, ids_BL[:, 1:, None]).squeeze(2)[:, -width:]


@dataclass
class Case:
    """The same loss in both projects."""

    trl: dict[str, Any]
    loss: str
    settings: dict[str, Any] = field(default_factory=dict)
    advantage: str = "grpo"
    rule: dict[str, Any] = field(default_factory=dict)


CASES = {
    "grpo": Case({"loss_type": "grpo"}, "grpo"),
    "grpo_kl": Case({"loss_type": "grpo", "use_bias_correction_kl": False}, "grpo", {"kl_coef": 0.3}),
    "grpo_kl_unbiased": Case({"loss_type": "grpo"}, "grpo", {"kl_coef": 0.3, "kl_unbiased": True}),
    "grpo_dual": Case({"loss_type": "grpo", "delta": 1.4}, "grpo", {"dual_clip": 1.4}),
    "grpo_batch_scale": Case(
        {"loss_type": "grpo", "scale_rewards": "batch"}, "grpo", rule={"scale": "batch"}
    ),
    "gdpo": Case(
        {"loss_type": "grpo", "multi_objective_aggregation": "normalize_then_sum"}, "grpo", advantage="gdpo"
    ),
    "bnpo": Case({"loss_type": "bnpo"}, "grpo", {"aggregation": "token-mean"}),
    "dapo": Case({"loss_type": "dapo", "epsilon_high": 0.28}, "dapo"),
    "dapo_correction": Case(
        {"loss_type": "dapo", "epsilon_high": 0.28, "use_bias_correction_kl": False},
        "dapo",
        {"correction": "token_truncate", "correction_high": 1.2, "kl_coef": 0.1},
    ),
    "dr_grpo": Case(
        {"loss_type": "dr_grpo", "scale_rewards": "none"},
        "dr_grpo",
        {"max_tokens": MAX_TOKENS},
        rule={"scale": "none"},
    ),
    "gspo": Case(
        {
            "loss_type": "grpo",
            "importance_sampling_level": "sequence",
            "epsilon": 3e-4,
            "epsilon_high": 4e-4,
        },
        "gspo_token",
    ),
    "gspo_wide": Case(
        {"loss_type": "grpo", "importance_sampling_level": "sequence", "epsilon": 0.1, "epsilon_high": 0.1},
        "gspo_token",
        {"clip_low": 0.1, "clip_high": 0.1},
    ),
    "cispo": Case({"loss_type": "cispo", "epsilon_high": 1.3}, "cispo", {"ratio_max": 1.3}),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_same_loss_and_gradient(case: Case, make_model: Callable[..., Any], tmp_path: Path) -> None:
    trainer = make_trainer(make_model, tmp_path, PLAIN, **case.trl)
    model = trainer.model
    rollout = trl_rollout(trainer)
    mask_BT = rollout["completion_mask"].bool()
    lengths_B = mask_BT.sum(1)
    assert len(set(lengths_B.tolist())) > 1, "responses of one length would not tell the aggregations apart"

    loss = registry.build("loss", case.loss, **case.settings)
    with torch.no_grad():
        now_BT = logps_of(model, rollout)
    generator = torch.Generator().manual_seed(1)
    old_BT, ref_BT, sampler_BT = (
        now_BT + 0.4 * torch.randn(now_BT.shape, generator=generator) for _ in range(3)
    )
    correction_BT = loss.importance_weights(old_BT, sampler_BT, mask_BT) if loss.needs_correction else None
    rollout["old_per_token_logps"], rollout["ref_per_token_logps"] = old_BT, ref_BT
    trainer.beta = loss.kl_coef  # set here, since TRL would load a reference model by its hub id
    if correction_BT is not None:
        trainer.use_vllm = trainer.vllm_importance_sampling_correction = True
        rollout["importance_sampling_ratio"] = correction_BT
    expected = trainer._compute_loss(model, rollout)
    expected_gradients = torch.autograd.grad(expected, list(model.parameters()))
    expected = expected.detach()

    rule = registry.build("advantage", case.advantage, weights=WEIGHTS, **case.rule)
    group_B = torch.arange(len(PROMPTS)).repeat_interleave(GENERATIONS)
    context: Any = SimpleNamespace(
        advantages=rule(torch.tensor(PLAIN), group_B), rollout=SimpleNamespace(mask_BT=mask_BT)
    )
    token = loss.token_loss(
        logps_of(model, rollout),
        old_BT,
        Uniform().assign(context).advantages_BT,
        mask_BT,
        ref_logps_BT=ref_BT,
        correction_BT=correction_BT,
    )
    value = loss.partial_loss(token, loss.denominators(mask_BT))
    gradients = torch.autograd.grad(value, list(model.parameters()))
    torch.testing.assert_close(value.detach(), expected, rtol=1e-5, atol=1e-6)
    flat = [torch.cat([gradient.flatten() for gradient in each]) for each in (gradients, expected_gradients)]
    assert (flat[0] - flat[1]).norm() <= 1e-5 * flat[1].norm()
    assert flat[1].norm() > 0
    assert token.stats.sums["clipped_low"] + token.stats.sums["clipped_high"] > 0, "no bound was met"


@pytest.mark.parametrize("rewards", [PLAIN, MISSING, CONSTANT], ids=["plain", "missing", "constant"])
@pytest.mark.parametrize(
    ("trl_settings", "advantage", "settings"),
    [
        ({"scale_rewards": "group"}, "grpo", {}),
        ({"scale_rewards": "batch"}, "grpo", {"scale": "batch"}),
        ({"scale_rewards": "none"}, "grpo", {"scale": "none"}),
        ({"multi_objective_aggregation": "normalize_then_sum"}, "gdpo", {}),
    ],
    ids=["sum_then_normalize", "batch", "none", "normalize_then_sum"],
)
def test_same_advantages(
    trl_settings: dict[str, Any],
    advantage: str,
    settings: dict[str, Any],
    rewards: list[list[float]],
    make_model: Callable[..., Any],
    tmp_path: Path,
) -> None:
    expected_B = trl_rollout(make_trainer(make_model, tmp_path, rewards, **trl_settings))["advantages"]
    rule = registry.build("advantage", advantage, weights=WEIGHTS, **settings)
    group_B = torch.arange(len(PROMPTS)).repeat_interleave(GENERATIONS)
    # Where rewards are constant TRL leaves rounding over eps (about 1e-3); ours is exactly 0.
    tolerance = 2e-3 if rewards is CONSTANT else 1e-5
    total_B = rule(torch.tensor(rewards), group_B).total_B
    torch.testing.assert_close(total_B, expected_B, rtol=1e-5, atol=tolerance)
