"""The run folder: its lock, its configuration, and checkpoints that are either whole or absent."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import random
import shutil
import tempfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from safetensors import SafetensorError
from safetensors.torch import load_file

from creditlib.config import FREE_TO_CHANGE
from creditlib.policy.folders import STATE, STEP_FOLDER, checkpoint_folder, checkpoint_steps
from creditlib.policy.load import Policy
from creditlib.trainer.files import MAKE_ROOM, make_folder, write_atomically
from creditlib.types import CreditlibError

CHECKSUMS = "checksums.json"  # CRC-32 of every other file of a checkpoint


class CheckpointError(CreditlibError):
    """A checkpoint could not be written."""


class RunDirectory:
    """Everything a run writes. Opening it takes the lock, which dies with the process, however it dies.

    Args:
        path: the folder; made if absent.
        config: the run's configuration as plain values; a folder with checkpoints of another one refuses.
    """

    def __init__(self, path: Path, config: Mapping[str, Any]) -> None:
        self.path = path
        self.checkpoints = path / "checkpoints"
        self._found = path.exists()
        make_folder(self.checkpoints, f"run.dir={path}")
        try:
            self._lock = open(path / ".lock", "w")  # noqa: SIM115 - held for the life of the run
        except OSError as error:
            raise CreditlibError(f"run.dir={path}: cannot write there ({error.strerror})") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock.close()
            raise CreditlibError(
                f"run.dir={path}: another run is writing there; choose another run.dir"
            ) from error
        try:
            self._claim(config)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Release the lock. Where nothing was computed, the folder goes: what stopped the run came too early
        for it to be one.
        """
        with contextlib.suppress(OSError):  # a folder more does no harm
            if {path.name for path in self.path.iterdir()} <= {".lock", "config.yaml", "checkpoints"}:
                self.checkpoints.rmdir()  # fails where there is a checkpoint
                (self.path / "config.yaml").unlink(missing_ok=True)
                (self.path / ".lock").unlink()
                if not self._found:
                    self.path.rmdir()
        self._lock.close()

    def _claim(self, config: Mapping[str, Any]) -> None:
        saved = self.path / "config.yaml"
        for leftover in self.checkpoints.glob(".partial-*"):  # a save or a removal that a kill cut short
            shutil.rmtree(leftover, ignore_errors=True)
        if saved.is_file() and any(self.checkpoints.iterdir()):  # else there is nothing to go on from
            try:
                before = yaml.safe_load(saved.read_text(encoding="utf-8"))
            except (OSError, ValueError, yaml.YAMLError) as error:
                raise CreditlibError(f"{saved} cannot be read: {error}") from error
            if difference := _differences(before, config):
                raise CreditlibError(
                    f"run.dir={self.path} holds a run with another configuration:\n"
                    + "\n".join(f"  {key}: {old!r} there, {new!r} now" for key, old, new in difference)
                    + "\nChoose another run.dir, or delete the folder to start over"
                )
        write_atomically(saved, yaml.safe_dump(dict(config), sort_keys=False))

    def read_summary(self) -> dict[str, Any]:
        """summary.json, or nothing.

        Raises:
            CreditlibError: the file is not as it was written.
        """
        path = self.path / "summary.json"
        if not path.is_file():
            return {}
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(found, dict):
                raise ValueError(f"expected an object, found {type(found).__name__}")
        except (OSError, ValueError) as error:
            raise CreditlibError(
                f"{path} is damaged ({error}): delete it; the checkpoints are whole, and the same command "
                "goes on from the last one"
            ) from error
        return found

    def steps(self) -> list[int]:
        """Steps with a complete checkpoint, oldest first."""
        return sorted(checkpoint_steps(self.checkpoints))

    def folder(self, step: int) -> Path:
        return checkpoint_folder(self.checkpoints, step)

    def save(self, step: int, model: Any, tokenizer: Any, state: Mapping[str, Any], keep: int) -> Path:
        """Write a checkpoint beside its final place, then rename it there; drop all but the newest `keep`.

        Raises:
            CheckpointError: the disk is full or gone. Earlier checkpoints are untouched then.
        """
        try:
            final = self._save(step, model, tokenizer, state)
        except (OSError, RuntimeError, SafetensorError) as error:  # each library has its own for a full disk
            raise CheckpointError(
                f"could not write the checkpoint of step {step} to {self.checkpoints}: {error}. {MAKE_ROOM}"
            ) from error
        for old in self.steps()[:-keep]:
            with contextlib.suppress(OSError):  # one too many does no harm
                self._remove(old)
        return final

    def _remove(self, step: int) -> None:
        """Delete a checkpoint: under another name, so that a kill leaves no half of one."""
        doomed = self.checkpoints / f".partial-removed-{self.folder(step).name}"
        shutil.rmtree(doomed, ignore_errors=True)
        os.replace(self.folder(step), doomed)
        shutil.rmtree(doomed, ignore_errors=True)

    def _save(self, step: int, model: Any, tokenizer: Any, state: Mapping[str, Any]) -> Path:
        scratch = Path(tempfile.mkdtemp(prefix=".partial-", dir=self.checkpoints))
        try:
            model.save_pretrained(scratch)
            tokenizer.save_pretrained(scratch)
            with open(scratch / STATE, "wb") as file:  # given a path, torch would hide why it could not write
                torch.save(dict(state), file)
            checksums = {str(path.relative_to(scratch)): _checksum(path) for path in _files(scratch)}
            (scratch / CHECKSUMS).write_text(json.dumps(checksums, indent=2), encoding="utf-8")
            for path in (*_files(scratch), scratch):
                _sync(path)  # before the rename makes them count
            final = self.folder(step)
            if final.exists():
                self._remove(step)
            scratch.chmod(0o755)  # mkdtemp makes it private
            os.replace(scratch, final)
            _sync(self.checkpoints)
        except BaseException:
            shutil.rmtree(scratch, ignore_errors=True)
            raise
        return final

    def newest_whole(self, say: Callable[[str], None]) -> int | None:
        """Step of the newest checkpoint whose files are as they were written; None where there is none.

        Damaged ones are told through `say` and set aside under another name.

        Raises:
            CreditlibError: there are checkpoints, and all are damaged.
        """
        found = [match for path in self.checkpoints.iterdir() if (match := STEP_FOLDER.match(path.name))]
        steps = sorted((int(match[1]) for match in found), reverse=True)
        damaged: dict[int, str] = {}
        while len(damaged) < len(steps) and (damage := _damage(self.folder(steps[len(damaged)]))):
            damaged[steps[len(damaged)]] = damage
        if steps and len(damaged) == len(steps):
            raise CreditlibError(
                f"run.dir={self.path}: every checkpoint is damaged ({damaged}), so the run cannot go on. "
                "Choose another run.dir, or delete the folder to start over"
            )
        for late, damage in damaged.items():
            aside = self.checkpoints / f"damaged-{self.folder(late).name}"
            shutil.rmtree(aside, ignore_errors=True)
            os.replace(self.folder(late), aside)
            say(f"the checkpoint of step {late} is damaged ({damage}); it is now {aside}")
        return steps[len(damaged)] if steps else None


def load_state(folder: Path) -> dict[str, Any]:
    """What a checkpoint holds beside the model: `RunDirectory.save`'s state, on the CPU."""
    state: dict[str, Any] = torch.load(folder / STATE, map_location="cpu", weights_only=True)
    return state


def load_weights(policy: Policy, folder: Path) -> None:
    """Put a checkpoint's weights into the policy that is already there, all of them or an error."""
    tensors: dict[str, torch.Tensor] = {}
    for file in sorted(folder.glob("*.safetensors")):
        tensors |= load_file(file)
    if policy.is_adapter:
        from peft import set_peft_model_state_dict

        result: Any = set_peft_model_state_dict(policy.model, tensors)
        missing = [key for key in result.missing_keys if "lora_" in key]
    else:
        own = policy.model.state_dict(keep_vars=True)
        result = policy.model.load_state_dict(tensors, strict=False)
        loaded = {id(own[key]) for key in tensors if key in own}
        # Weights that are tied are saved under one of their names.
        missing = [key for key in result.missing_keys if id(own[key]) not in loaded]
    if missing or result.unexpected_keys:
        raise CreditlibError(
            f"checkpoint {folder} does not fit the model: missing {missing[:3]}, unexpected "
            f"{result.unexpected_keys[:3]}. It was written with another model.path or model.lora, or the "
            "model at model.path has changed: put that back, or choose another run.dir to start over"
        )


def random_state() -> dict[str, Any]:
    """Every global generator of this process, for dropout and other people's code; sampling has its own."""
    name, keys, *rest = np.random.get_state()
    state = {
        "python": random.getstate(),
        "numpy": (name, torch.from_numpy(np.asarray(keys, np.int64)), *rest),
        "torch": torch.get_rng_state(),
    }
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.get_rng_state()
    return state


def restore_random_state(state: Mapping[str, Any]) -> None:
    random.setstate(state["python"])
    name, keys, *rest = state["numpy"]
    np.random.set_state((name, keys.numpy().astype(np.uint32), *rest))
    torch.set_rng_state(state["torch"])
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state(state["cuda"])


def _differences(before: Any, now: Any, prefix: str = "") -> list[tuple[str, Any, Any]]:
    if prefix in FREE_TO_CHANGE or before == now:
        return []
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        keys = [*before, *(key for key in now if key not in before)]
        found = []
        for key in keys:
            found += _differences(before.get(key), now.get(key), f"{prefix}.{key}" if prefix else str(key))
        return found
    return [(prefix, before, now)]


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _checksum(path: Path) -> int:
    crc = 0
    with open(path, "rb") as file:
        while block := file.read(1 << 22):
            crc = zlib.crc32(block, crc)
    return crc


def _damage(folder: Path) -> str | None:
    """What is wrong with a checkpoint's files, or None."""
    try:
        checksums: dict[str, int] = json.loads((folder / CHECKSUMS).read_text(encoding="utf-8"))
        for name, expected in checksums.items():
            if _checksum(folder / name) != expected:
                return f"{name} is not as it was written"
    except FileNotFoundError as error:
        return f"{Path(error.filename).name} is missing"
    except (OSError, ValueError) as error:
        return str(error)
    return None


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
