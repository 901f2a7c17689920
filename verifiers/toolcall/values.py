"""Values as people read them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

_LONGEST = 80
_MENTIONED = 3


def shown(value: Any) -> str:
    """A value in a reason: as JSON, cut where it is long."""
    text = as_json(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def as_call(name: str, arguments: Mapping[str, Any]) -> str:
    """A call as one line of JSON in RLLA's format."""
    return as_json({"name": name, "parameters": arguments})


def listed(problems: Sequence[str]) -> str:
    """The first problems in one sentence."""
    more = len(problems) - _MENTIONED
    return "; ".join([*problems[:_MENTIONED], *([f"and {more} more"] if more > 0 else [])])


def named(name: str) -> str:
    """A name that a response gives, in a reason."""
    return _writable(name[:_LONGEST])


def as_json(value: Any) -> str:
    return _writable(json.dumps(value, ensure_ascii=False, default=str))


def _writable(text: str) -> str:
    """Lone surrogates, which no file takes, are escaped."""
    return text.encode("utf-8", "backslashreplace").decode()
