"""The run folder: its lock, its configuration, and checkpoints that are either whole or absent."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import random
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml

from creditlib.policy.folders import STATE, checkpoint_folder, checkpoint_steps
from creditlib.types import CreditlibError

# Settings that may differ when a run is resumed: they change what is shown and kept, not what is computed.
FREE_TO_CHANGE = ("log", "trainer.checkpoint_every", "trainer.keep_checkpoints", "run")


class RunDirectory:
    """Everything a run writes. Opening it takes the lock, which dies with the process, however it dies.

    Args:
        path: the folder; made if absent.
        config: the run's configuration as plain values; a folder that holds another one refuses.
    """

    def __init__(self, path: Path, config: Mapping[str, Any]) -> None:
        self.path = path
        self.checkpoints = path / "checkpoints"
        try:
            self.checkpoints.mkdir(parents=True, exist_ok=True)
            self._lock = open(path / ".lock", "w")  # noqa: SIM115 - held for the life of the run
        except OSError as error:
            raise CreditlibError(f"run.dir={path}: cannot write there ({error.strerror})") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock.close()
            raise CreditlibError(f"run.dir={path}: another run is writing there; choose another run.dir") from error
        try:
            self._claim(config)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._lock.close()

    def _claim(self, config: Mapping[str, Any]) -> None:
        saved = self.path / "config.yaml"
        if saved.is_file():
            before = yaml.safe_load(saved.read_text())
            if difference := _differences(before, config):
                raise CreditlibError(
                    f"run.dir={self.path} holds a run with another configuration:\n"
                    + "\n".join(f"  {key}: {old!r} there, {new!r} now" for key, old, new in difference)
                    + "\nChoose another run.dir, or delete the folder to start over."
                )
        write_atomically(saved, yaml.safe_dump(dict(config), sort_keys=False))
        for leftover in self.checkpoints.glob(".partial-*"):  # a save that a kill or a full disk cut short
            shutil.rmtree(leftover, ignore_errors=True)

    def read_summary(self) -> dict[str, Any]:
        """summary.json, or nothing."""
        path = self.path / "summary.json"
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        return found

    def steps(self) -> list[int]:
        """Steps with a complete checkpoint, oldest first."""
        return sorted(checkpoint_steps(self.checkpoints))

    def folder(self, step: int) -> Path:
        return checkpoint_folder(self.checkpoints, step)

    def save(self, step: int, model: Any, tokenizer: Any, state: Mapping[str, Any], keep: int) -> Path:
        """Write a checkpoint beside its final place, then rename it there; drop all but the newest `keep`.

        Raises:
            OSError: the disk is full or gone; no earlier checkpoint is touched then.
        """
        scratch = Path(tempfile.mkdtemp(prefix=".partial-", dir=self.checkpoints))
        try:
            model.save_pretrained(scratch)
            tokenizer.save_pretrained(scratch)
            torch.save(dict(state), scratch / STATE)
            _sync(scratch)
            final = self.folder(step)
            if final.exists():
                shutil.rmtree(final)
            scratch.chmod(0o755)  # mkdtemp makes it private
            os.replace(scratch, final)
        except BaseException:
            shutil.rmtree(scratch, ignore_errors=True)
            raise
        for old in self.steps()[:-keep]:
            shutil.rmtree(self.folder(old), ignore_errors=True)
        return final

    def load_state(self, step: int) -> dict[str, Any]:
        state: dict[str, Any] = torch.load(self.folder(step) / STATE, map_location="cpu", weights_only=False)
        return state


def write_atomically(path: Path, text: str) -> None:
    """The whole text or the former file, never half of one."""
    handle, scratch = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(scratch, 0o644)
        os.replace(scratch, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(scratch)
        raise


def write_json(path: Path, value: Any) -> None:
    write_atomically(path, json.dumps(value, indent=2) + "\n")


def random_state() -> dict[str, Any]:
    """Every global generator (sampling has streams of its own; this is for dropout and third-party code)."""
    state: dict[str, Any] = {
        "python": random.getstate(),
        "numpy": np.random.get_state(),
        "torch": torch.get_rng_state(),
    }
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.get_rng_state_all()
    return state


def restore_random_state(state: Mapping[str, Any]) -> None:
    random.setstate(state["python"])
    np.random.set_state(state["numpy"])
    torch.set_rng_state(state["torch"])
    if "cuda" in state:
        torch.cuda.set_rng_state_all(state["cuda"])


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


def _sync(folder: Path) -> None:
    """Force the files to disk before the rename makes them count."""
    for path in (*folder.iterdir(), folder):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
