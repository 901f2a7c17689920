"""Every swappable part by group and name: ``python -m creditlib.registry`` lists them.

A name stands for a class that is imported when it is asked for. Other packages add names through entry
points; a strategy of theirs then works like ours, ``credit=theirs`` included::

    [project.entry-points."creditlib.credit"]
    theirs = "their_package.credit:Theirs"
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import importlib.util
import inspect
import sys
import types
import typing
from collections.abc import Collection
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from creditlib.config import nearest
from creditlib.types import CreditlibError

BUILT_IN: dict[str, dict[str, str]] = {
    "advantage": {
        "grpo": "creditlib.advantage.grpo:Grpo",
        "gdpo": "creditlib.advantage.gdpo:Gdpo",
    },
    "credit": {
        "uniform": "creditlib.credit.uniform:Uniform",
        "mrtpo": "creditlib.credit.mrtpo:Mrtpo",
        "datc": "creditlib.credit.datc:Datc",
        "p2t": "creditlib.credit.p2t:P2t",
        "red": "creditlib.credit.red:Red",
        "routed": "creditlib.credit.routed:Routed",
    },
    "loss": {
        "grpo": "creditlib.policy.loss:GrpoLoss",
        "dapo": "creditlib.policy.loss:DapoLoss",
        "dr_grpo": "creditlib.policy.loss:DrGrpoLoss",
        "gspo_token": "creditlib.policy.loss:GspoTokenLoss",
        "cispo": "creditlib.policy.loss:CispoLoss",
    },
    "objective": {},
    "rollout": {
        "hf": "creditlib.rollout.hf:HFRollout",
    },
}


def names(group: str) -> list[str]:
    """The names known in a group, ours first, then those of other packages."""
    return list(_entries(group))


def get(group: str, name: str) -> type[Any]:
    """The class behind a name.

    Raises:
        CreditlibError: unknown group or name (with the nearest known one), or an entry point that leads
            nowhere.
    """
    entries = _entries(group)
    if name not in entries:
        raise CreditlibError(f"{group}={name}: no such {group}. {nearest(name, entries)}")
    module, _, attribute = entries[name].partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute, None)
    except ImportError as error:
        raise CreditlibError(f"{group}={name} cannot be imported from {module}: {error}") from error
    if not isinstance(found, type):
        raise CreditlibError(f"{group}={name} must lead to a class as module:Class, found {entries[name]!r}")
    return found


def build(group: str, name: str, **hyperparameters: Any) -> Any:
    """Make a part from its hyperparameters, the arguments of its class. Lists may stand for tuples.

    Raises:
        CreditlibError: an unknown name; an unknown, missing or wrongly typed hyperparameter; values that the
            part refuses.
    """
    part = get(group, name)
    settings = inspect.signature(part).parameters
    owner = part if dataclasses.is_dataclass(part) else part.__init__
    annotations = typing.get_type_hints(owner, include_extras=True)
    for key in hyperparameters:
        if key not in settings:
            others = [f"{group}={other}" for other in names(group) if key in _settings_of(group, other)]
            advice = f"{' and '.join(others)} has it" if others else nearest(key, settings)
            raise CreditlibError(f"{group}.{key}: {group}={name} has no such setting. {advice}".rstrip())
    for key, setting in settings.items():
        if setting.default is inspect.Parameter.empty and key not in hyperparameters:
            raise CreditlibError(f"{group}.{key}: {group}={name} needs this setting, which is missing")
    checked = {
        key: _check(f"{group}.{key}", annotations[key], value) for key, value in hyperparameters.items()
    }
    return part(**checked)


def describe(group: str, name: str) -> str:
    """The first line of a part's docstring, read from its source: the part's module is not run."""
    module, _, attribute = _entries(group)[name].partition(":")
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        spec = None
    if spec is None or spec.origin is None:
        return f"(cannot be imported: there is no {module})"
    for node in ast.parse(Path(spec.origin).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef) and node.name == attribute:
            return inspect.cleandoc(ast.get_docstring(node) or "").partition("\n")[0]
    return ""


def main() -> None:
    """Print every part with its one-line description."""
    for group in BUILT_IN:
        known = names(group)
        if not known:
            continue
        print(group)
        width = max(map(len, known), default=0)
        for name in known:
            print(f"  {name:<{width}}  {describe(group, name)}".rstrip())
        print()


def _entries(group: str) -> dict[str, str]:
    """Name to ``module:Class``."""
    if group not in BUILT_IN:
        raise CreditlibError(f"{group}: no such group of parts. {nearest(group, BUILT_IN)}")
    entries = dict(BUILT_IN[group])
    for entry in sorted(entry_points(group=f"creditlib.{group}"), key=lambda entry: entry.name):
        if entries.setdefault(entry.name, entry.value) != entry.value:
            package = entry.dist.name if entry.dist else entry.value
            taken = entries[entry.name]
            raise CreditlibError(f"{group}={entry.name} of {package} is taken by {taken}: rename it there")
    return entries


def _check(setting: str, annotation: Any, value: Any) -> Any:
    try:
        # Infinity has no place in JSON, in which configurations are saved; null says "none" there.
        config = ConfigDict(arbitrary_types_allowed=True, allow_inf_nan=False)
        adapter = TypeAdapter(annotation, config=config)
        return adapter.validate_python(_as_tuples(value), strict=True)
    except ValidationError as error:
        found = error.errors()[0]
        reason = found["msg"].lower()
        if found["type"].startswith(("greater_than", "less_than")):  # of the right type, but out of bounds
            raise CreditlibError(f"{setting}={value!r}: {reason}") from None
        raise CreditlibError(
            f"{setting} must be {_expected(annotation)}, found {value!r} ({reason})"
        ) from None


def _expected(annotation: Any) -> str:
    """A type as a person would say it."""
    if typing.get_origin(annotation) is typing.Annotated:
        return _expected(typing.get_args(annotation)[0])  # its bounds are in pydantic's reason
    if typing.get_origin(annotation) is typing.Literal:
        return f"one of {', '.join(map(str, typing.get_args(annotation)))}"
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return " or ".join(_expected(option) for option in typing.get_args(annotation))
    if annotation is type(None):
        return "null"
    plain = isinstance(annotation, type) and not typing.get_args(annotation)
    return annotation.__name__ if plain else str(annotation).replace("typing.", "")


def _settings_of(group: str, name: str) -> Collection[str]:
    try:
        return inspect.signature(get(group, name)).parameters
    except CreditlibError:  # another package's, and broken: not what was asked for
        return ()


def _as_tuples(value: Any) -> Any:
    """Configuration files only know lists; frozen dataclasses hold tuples."""
    return tuple(_as_tuples(item) for item in value) if isinstance(value, list) else value


if __name__ == "__main__":
    try:
        main()
    except CreditlibError as error:
        sys.exit(f"error: {error}")
