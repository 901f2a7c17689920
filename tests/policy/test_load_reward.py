"""Reward models from folders and runs, and what is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from creditlib.assemble import build_reward_models
from creditlib.config import LoraConfig, ModelConfig, RewardModelConfig, RewardModelRun
from creditlib.policy.load import Policy, load_policy
from creditlib.policy.load_reward import load_reward_model, new_reward_model
from creditlib.policy.reward_scorer import RewardScorer, Text
from creditlib.reward_model import reward_model
from creditlib.types import CreditlibError
from tests.conftest import random_reward_model
from tests.trainer import world


def test_the_embedded_one_reads_the_embedded_policys_tokens() -> None:
    policy = load_policy(ModelConfig())
    found = build_reward_models({"preference": RewardModelConfig(name="tiny")}, policy)
    model = found["preference"]
    assert model.differences == "" and model.shared == 1536
    assert model.embedding_VE.shape == (1536, 160) and model.null_E.shape == (160,)
    assert model.scorer.caches and model.scorer.context_length == 1024


def write_pairs(folder: Path) -> None:
    rows = [
        {
            "prompt": f"count the {noun}s.",
            "chosen": f"<sql>SELECT count(*) FROM {noun}</sql>",
            "rejected": wrong,
        }
        for noun in ("singer", "ward", "hotel", "ship", "farm", "team", "city", "guest")
        for wrong in (f"<sql>SELECT {noun}</sql>", f"count(*) FROM {noun}")
    ]
    (folder / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def train(folder: Path, **model: Any) -> dict[str, Any]:
    write_pairs(folder)
    return reward_model(
        RewardModelRun.parse(
            {
                "pairs": {
                    "_target_": "tasks.preference_data.PreferencePairs",
                    "sources": ["pairs.jsonl"],
                    "data": str(folder),
                    "share": 0.25,
                },
                "model": model,
                "reward": {"epochs": 3, "batch": 4, "learning_rate": 1e-3},
                "log": {"progress": False},
                "run": {"dir": str(folder / "run")},
            }
        )
    )


@pytest.mark.parametrize("lora", [None, {"r": 4}])
def test_a_trained_one_is_loaded_as_it_was_measured(lora: Any, tmp_path: Path) -> None:
    summary = train(tmp_path, lora=lora)
    assert summary["finished"] and summary["step"] == 9 and summary["accuracy"] == 1.0
    assert summary["training_pairs"] == 12 and summary["pairs"] == 4
    assert 0 <= summary["length_accuracy"] <= 1 and len(summary["calibration"]) == 4
    again = train(tmp_path, lora=lora)
    assert again["accuracy"] == summary["accuracy"]  # it is there, and not trained again
    scorer, tokenizer = load_reward_model(RewardModelConfig(path=str(tmp_path / "run"), dtype="float32"), "x")
    assert len(tokenizer) == 1536
    good, bad = (
        (*tokenizer(text, add_special_tokens=False)["input_ids"], 2)
        for text in ("<sql>SELECT count(*) FROM bank</sql>", "<sql>SELECT bank</sql>")
    )
    before = tuple(tokenizer("count the banks.\nAnswer:\n", add_special_tokens=False)["input_ids"])
    one, other = scorer.read([Text(before, good), Text(before, bad)], gradients=True)
    assert one.score > other.score and one.gradients_SE is not None and one.gradients_SE.abs().sum() > 0
    assert not any(parameter.requires_grad for parameter in scorer.model.parameters())
    # transformers alone reads the folder as well, padding included.
    if lora is None:
        from transformers import AutoModelForSequenceClassification

        folder = max((tmp_path / "run/checkpoints").iterdir())
        plain = AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32)
        ids = torch.tensor([[*before, *good], [*before, *bad, *[0] * (len(good) - len(bad))]])
        assert plain(input_ids=ids).logits[:, 0].tolist() == pytest.approx([one.score, other.score], abs=1e-4)


def test_what_is_no_reward_model(tmp_path: Path) -> None:
    tiny = ModelConfig()
    policy = load_policy(tiny)
    with pytest.raises(CreditlibError, match=r"is no reward model: it has no weights for score.weight"):
        load_reward_model(RewardModelConfig(path=policy.source), "reward_model.preference")
    with pytest.raises(CreditlibError, match=r"reward_model.preference.path=\./nothing: no such folder"):
        load_reward_model(RewardModelConfig(path="./nothing"), "reward_model.preference")
    with pytest.raises(CreditlibError, match=r"reward_model.preference.device=quantum"):
        load_reward_model(RewardModelConfig(name="tiny", device="quantum"), "reward_model.preference")
    two = random_reward_model("llama", torch.float32)
    two.config.num_labels = 2
    two.score = torch.nn.Linear(32, 2, bias=False)
    two.save_pretrained(tmp_path / "two")
    world.tokenizer().save_pretrained(tmp_path / "two")
    with pytest.raises(CreditlibError, match="has 2 labels; a reward model has one"):
        load_reward_model(RewardModelConfig(path=str(tmp_path / "two")), "reward_model.preference")


def test_another_vocabulary_is_told_apart(tmp_path: Path) -> None:
    random_reward_model("llama", torch.float32).save_pretrained(tmp_path / "other")
    world.tokenizer().save_pretrained(tmp_path / "other")
    sections = {"preference": RewardModelConfig(path=str(tmp_path / "other"), dtype="float32")}
    model = build_reward_models(sections, load_policy(ModelConfig()))["preference"]
    assert "tokens are missing" in model.differences


def test_an_adapter_is_no_base(tmp_path: Path) -> None:
    load_policy(ModelConfig(lora=LoraConfig(r=2))).model.save_pretrained(tmp_path / "adapter")
    with pytest.raises(CreditlibError, match="holds an adapter; fold it into its base first"):
        new_reward_model(ModelConfig(name="hf", path=str(tmp_path / "adapter")))
    with pytest.raises(CreditlibError, match="holds an adapter for CAUSAL_LM"):
        load_reward_model(RewardModelConfig(path=str(tmp_path / "adapter")), "reward_model.preference")


def test_pairs_that_are_all_too_long(tmp_path: Path) -> None:
    rows = [{"prompt": f"q{n}", "chosen": "SELECT " * 2000, "rejected": "x"} for n in range(4)]
    (tmp_path / "long.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = RewardModelRun.parse(
        {
            "pairs": {
                "_target_": "tasks.preference_data.PreferencePairs",
                "sources": [str(tmp_path / "long.jsonl")],
                "max_chars": 10**6,
            },
            "model": {},
            "log": {"progress": False},
            "run": {"dir": str(tmp_path / "run")},
        }
    )
    with pytest.raises(CreditlibError, match="0 pairs to learn and 0 held out are short enough"):
        reward_model(config)


def test_gradient_checkpointing_is_taken(tmp_path: Path) -> None:
    model, _ = new_reward_model(ModelConfig(gradient_checkpointing=True))
    assert model.is_gradient_checkpointing
    summary = train(tmp_path, gradient_checkpointing=True)
    assert summary["accuracy"] == 1.0


def test_the_embedded_one_with_another_policy(tmp_path: Path) -> None:
    other = random_reward_model("llama", torch.float32)
    policy = Policy(other, world.tokenizer(), "theirs")
    with pytest.raises(CreditlibError, match="is the embedded one"):
        build_reward_models({"preference": RewardModelConfig(name="tiny")}, policy)


def test_a_padding_token_anywhere_in_the_vocabulary() -> None:
    for pad in (7, 19, 42, 60):
        model = random_reward_model("llama")
        model.config.pad_token_id = pad
        assert RewardScorer(model, "padded").caches
