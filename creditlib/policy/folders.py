"""Where models lie on disk: the cache, and the checkpoints inside a run folder."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from creditlib.types import CreditlibError

STATE = (
    "trainer.pt"  # beside the model in a checkpoint; the last file written before the folder gets its name
)
STEP_FOLDER = re.compile(r"step-(\d{6,})$")


def cache_folder() -> Path:
    """``$CREDITLIB_CACHE``, or ~/.cache/creditlib."""
    return Path(os.environ.get("CREDITLIB_CACHE") or Path.home() / ".cache" / "creditlib")


def is_run_folder(path: Path) -> bool:
    return (path / "checkpoints").is_dir()


def checkpoint_folder(checkpoints: Path, step: int) -> Path:
    return checkpoints / f"step-{step:06d}"


def checkpoint_steps(checkpoints: Path) -> Iterator[int]:
    """Steps with a complete checkpoint."""
    for folder in checkpoints.iterdir():
        match = STEP_FOLDER.match(folder.name)
        if match and (folder / STATE).is_file():
            yield int(match[1])


def latest_model(run: Path) -> Path:
    """The newest complete checkpoint of a run folder, which `from_pretrained` loads."""
    steps = sorted(checkpoint_steps(run / "checkpoints"))
    if not steps:
        raise CreditlibError(f"{run} is a run folder without a complete checkpoint yet")
    return checkpoint_folder(run / "checkpoints", steps[-1])
