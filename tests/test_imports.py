"""The import rule: each part knows only what stands below it."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FILES = sorted(
    path for package in ("creditlib", "tasks", "verifiers") for path in (ROOT / package).rglob("*.py")
)

# From the bottom to the top. A part may import its own floor and those below.
FLOORS = (
    {"types"},
    {"config", "registry", "compose", "parts", "help"},
    {"policy"},
    {"credit", "objective", "advantage", "rollout", "rewards"},
    {"trainer", "analysis"},
    {
        "cli",
        "assemble",
        "train",
        "sft",
        "make_tiny",
        "make_tiny_reward",
        "export",
        "evaluate",
        "report",
        "reward_model",
        "integrations",
        "",
    },
)
FLOOR_OF = {part: floor for floor, parts in enumerate(FLOORS) for part in parts}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path) for path in FILES}


def imported(path: Path) -> Iterator[tuple[str, int]]:
    """Modules that a file imports anywhere, inside functions and for type checkers too, with the line."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute here"
            assert node.module is not None
            for alias in node.names:
                deeper = f"{node.module}.{alias.name}"
                yield (deeper if deeper in MODULES else node.module), node.lineno


def part_of(module: str) -> str:
    return [*module.split("."), ""][1]


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_imports_go_down(path: Path) -> None:
    module = module_name(path)
    package = module.partition(".")[0]
    for target, line in imported(path):
        where = f"{path.relative_to(ROOT)}:{line} imports {target}"
        top = target.partition(".")[0]
        if top not in {"creditlib", "tasks", "verifiers", "tests", "benchmarks"}:
            continue
        if package == "verifiers":
            assert top == "verifiers" or target == "creditlib.types", where
        elif package == "tasks":
            assert top in {"tasks", "verifiers"} or target == "creditlib.types", where
        else:
            assert top == "creditlib", where
            mine, theirs = part_of(module), part_of(target)
            assert mine in FLOOR_OF, f"{module}: say in FLOORS where it stands"
            assert FLOOR_OF[theirs] <= FLOOR_OF[mine], f"{where}, which stands above it"
            if mine == theirs == "credit" and module.count(".") == 2:
                assert target in {module, "creditlib.credit"}, (
                    f"{where}: what two methods share goes down a floor"
                )


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("creditlib", "torch"),
        ("creditlib.types", "torch"),
        ("creditlib.cli", "torch"),
        ("creditlib.registry", "torch"),
        ("verifiers.sql", "torch"),
        ("verifiers.toolcall", "torch"),
        ("verifiers.instructions", "torch"),
        ("tasks.text2sql", "torch"),
        ("tasks.toolcall", "torch"),
        ("tasks.instructions", "torch"),
        ("verifiers.pool", "numpy"),
    ],
)
def test_light_modules_stay_light(module: str, absent: str) -> None:
    code = f"import {module}, sys; assert {absent!r} not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, timeout=60)
