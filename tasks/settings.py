"""Settings that tasks share, and their checks. A message names the setting, what was expected and found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from creditlib.types import CreditlibError

Style = Literal["chat", "text"]  # chat messages, or plain text for base models


def expect_one_of(setting: str, value: str, allowed: Sequence[str]) -> None:
    """Refuse a value that is not among those allowed."""
    if value not in allowed:
        raise CreditlibError(f"expected task.{setting} to be one of {', '.join(allowed)}; found {value!r}")


def expect_at_least(setting: str, number: int | None, least: int) -> None:
    """Refuse a number that is too small; None is none."""
    if number is not None and number < least:
        raise CreditlibError(f"expected task.{setting} to be at least {least}, found {number}")


def expect_positive(setting: str, number: float) -> None:
    """Refuse 0 and less."""
    if number <= 0:
        raise CreditlibError(f"expected task.{setting} to be more than 0, found {number}")
