"""Files that are either whole or as they were, and JSON without NaN."""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from creditlib.types import CreditlibError


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
