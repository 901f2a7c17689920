"""Checks of settings that tasks share; a message names the setting, what was expected and what was found."""

from __future__ import annotations

from collections.abc import Sequence

from creditlib.types import CreditlibError


def expect_one_of(setting: str, value: str, allowed: Sequence[str]) -> None:
    """Refuse a value that is not among those allowed."""
    if value not in allowed:
        raise CreditlibError(f"expected task.{setting} to be one of {', '.join(allowed)}; found {value!r}")


def expect_at_least(setting: str, number: int | None, least: int) -> None:
    """Refuse a number that is too small; None is none."""
    if number is not None and number < least:
        raise CreditlibError(f"expected task.{setting} to be at least {least}, found {number}")
