"""Files that are either whole or as they were, and JSON without NaN."""

from __future__ import annotations

import contextlib
import json
import math
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from creditlib.types import CreditlibError

TOKENS, RESPONSES = "tokens.parquet", "responses.jsonl"  # a run's token ledger

# What to do where a run's folder can take no more; what the command does then depends on which it is.
MAKE_ROOM = "Make room there and give the same command again: training resumes, a warm start begins anew"


def make_folder(path: Path, label: str) -> None:
    """Make `path`, with the folders above it, and see that files can be made in it.

    Args:
        path: may be there already.
        label: the folder as messages name it, such as ``run.dir=runs/x``.

    Raises:
        CreditlibError: it cannot be made or written to.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL
        reason = error.strerror if isinstance(error, OSError) else error
        raise CreditlibError(f"{label}: cannot write there ({reason})") from error


def write_atomically(path: Path, content: str | bytes) -> None:
    """The whole content (text as UTF-8) or the former file, never half of one.

    Raises:
        CreditlibError: the disk is full or gone.
    """
    scratch = path.with_name(f".{path.name}.new")
    try:
        with open(scratch, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(scratch, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(scratch)
        raise CreditlibError(f"cannot write {path}: {error.strerror}") from error


def write_json(path: Path, value: Any) -> None:
    """`value` as JSON in a file of its own, as `write_atomically` writes it."""
    write_atomically(path, json.dumps(finite(value), indent=2) + "\n")


def finite(value: Any) -> Any:
    """`value` as JSON can hold it: null stands for NaN and infinity."""
    if isinstance(value, Mapping):
        return {key: finite(inner) for key, inner in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
