"""What a wheel carries, and what it does not."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    pytest.importorskip("hatchling", reason="building a wheel needs the dev extra")
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (file,) = folder.glob("creditlib-*.whl")
    return zipfile.ZipFile(file).namelist()


def test_it_carries_all_that_a_run_reads(wheel: list[str]) -> None:
    for folder, inside in (("configs", "creditlib/configs"), ("tasks/data", "tasks/data")):
        files = {path.relative_to(ROOT / folder) for path in (ROOT / folder).rglob("*") if path.is_file()}
        kept = {path for path in files if "__pycache__" not in path.parts}
        assert {f"{inside}/{path.as_posix()}" for path in kept} <= set(wheel)
    assets = [path for path in (ROOT / "creditlib" / "assets").rglob("*") if path.is_file()]
    assert {path.relative_to(ROOT).as_posix() for path in assets} <= set(wheel)


def test_it_carries_nothing_else(wheel: list[str]) -> None:
    tops = {name.partition("/")[0] for name in wheel}
    (metadata,) = (top for top in tops if top.endswith(".dist-info"))
    assert tops == {"creditlib", "tasks", "verifiers", metadata}
    assert f"{metadata}/licenses/LICENSE" in wheel
    assert not [name for name in wheel if name.endswith(".pyc")]
