"""The documentation says what is true: its Python runs, its commands compose, its links lead somewhere."""

from __future__ import annotations

import ast
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from creditlib import registry
from creditlib.compose import compose_jobs, compose_one
from creditlib.config import RunConfig
from creditlib.parts import check_parts
from creditlib.types import CreditlibError
from tests.analysis import fake
from tests.trainer import world

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def blocks(page: Path, info: str) -> list[str]:
    """The fenced blocks of a page under an info string; ``python notest`` is another one than ``python``."""
    return re.findall(rf"^```{info}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_your_own_data_and_reward(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = ROOT / "docs" / "your_own.md"
    (rows,) = blocks(page, "json")
    (code,) = blocks(page, "python")
    assert len([line for line in code.splitlines() if line.strip()]) <= 20
    monkeypatch.chdir(tmp_path)
    Path("questions.jsonl").write_text(rows)
    Path("mine.py").write_text(code)
    summary = runpy.run_path("mine.py")["summary"]
    assert summary["finished"]
    lines = [json.loads(line) for line in Path("runs/lists/metrics.jsonl").read_text().splitlines()]
    names = {name for line in lines for name in line}
    assert any("length" in name for name in names)
    assert any("variety" in name for name in names)


def test_a_run_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The Python of docs/runs.md reads what a run has written."""
    run = fake.write_run(tmp_path / "runs" / "x", fake.config(), fake.metrics(3))
    fake.write_ledger(run, fake.sql_responses([1, 2, 3]))
    monkeypatch.chdir(tmp_path)
    for code in blocks(ROOT / "docs" / "runs.md", "python"):
        exec(code, {})
    printed = capsys.readouterr().out
    assert "'weight/execution_mean': " in printed and "| execution  | violated" in printed


def test_settings_for_a_real_run() -> None:
    (code,) = blocks(ROOT / "docs" / "your_own.md", "python notest")
    variables: dict[str, Any] = {}
    exec(code, variables)
    config = RunConfig.parse(compose_one("train", variables["settings"]))
    check_parts(config)
    assert config.trainer.steps == 200


def test_a_strategy_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example in CONTRIBUTING.md, as another package would bring it along."""
    (code,) = blocks(ROOT / "CONTRIBUTING.md", "python")
    (tmp_path / "their_credit.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)

    def entry_points(*, group: str) -> tuple[EntryPoint, ...]:
        return (EntryPoint("early", "their_credit:Early", group),) if group == "creditlib.credit" else ()

    monkeypatch.setattr(registry, "entry_points", entry_points)
    assert registry.describe("credit", "early").startswith("Early tokens")
    steps = {}
    for decay in (1.0, 0.5):
        run = world.config(credit="early", credit__decay=decay)
        check_parts(run)
        steps[decay] = world.trainer(run, world.policy()).step(1)
    assert steps[1.0]["credit/ess"] == pytest.approx(1) and steps[1.0]["credit/max_weight"] == pytest.approx(
        1
    )
    assert steps[0.5]["credit/ess"] < 0.9 and steps[0.5]["grad_norm"] > 0

    monkeypatch.delattr(registry.get("credit", "early"), "needs")
    with pytest.raises(CreditlibError, match="Early lacks needs"):
        check_parts(world.config(credit="early"))


def test_a_constraint_of_ones_own(tmp_path: Path) -> None:
    """The example in docs/verifiers/instructions.md, as another package: workers know it, too."""
    page = ROOT / "docs" / "verifiers" / "instructions.md"
    (code,) = (block for block in blocks(page, "python") if "@constraint" in block)
    (entry,) = blocks(page, "toml")
    (tmp_path / "my_package").mkdir()
    (tmp_path / "my_package" / "constraints.py").write_text(code)
    installed = tmp_path / "theirs-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Name: theirs\nVersion: 1.0\n")
    (entry_point,) = tomllib.loads(entry)["project"]["entry-points"]["creditlib.constraints"].items()
    (installed / "entry_points.txt").write_text("[creditlib.constraints]\n" + " = ".join(entry_point))
    judged = (
        "from verifiers.instructions import InstructionVerifier, Job\n"
        "with InstructionVerifier(workers=1) as verifier:\n"
        "    ((found,),) = verifier.check_many([Job('I am 7.', [{'id': 'mine:no_digits'}])])\n"
        "print(found.score, found.reason, found.info, *found.spans)\n"
    )
    paths = os.pathsep.join([str(tmp_path), str(ROOT)])
    found = subprocess.check_output(
        [sys.executable, "-c", judged], env={**os.environ, "PYTHONPATH": paths}, text=True
    )
    assert found == "0.0 1 digits Do not use any digits. Span(start=5, end=6, part='digit')\n"


@pytest.mark.parametrize("credit", ["datc", "p2t", "red", "routed"])
def test_a_reward_model_that_is_missing_is_told_before_anything_is_loaded(credit: str) -> None:
    routes = {"credit.by_reward": {"format": "datc"}} if credit == "routed" else {}
    values = compose_one("train", {"task": "text2sql", "credit": credit, **routes})
    with pytest.raises(CreditlibError, match=f"credit={credit} looks into a reward model, and this run has"):
        check_parts(RunConfig.parse(values))


@pytest.mark.parametrize(
    "command", ["train", "sft", "evaluate", "export", "make_tiny", "reward_model", "make_tiny_reward"]
)
def test_commands_in_docstrings_start_a_line(command: str) -> None:
    """--help shows them, and a reader copies them."""
    text = ast.get_docstring(ast.parse((ROOT / "creditlib" / f"{command}.py").read_text())) or ""
    lines = [line for line in text.splitlines() if "python -m creditlib" in line]
    assert lines and all(re.match(r"    python -m creditlib\.\w+\b", line) for line in lines)
    assert all(line.count("python -m") == 1 for line in lines)


def commands() -> list[str]:
    found = []
    for page in PAGES:
        found += re.findall(r"python -m creditlib\.train([^`\n#|]*)", page.read_text(encoding="utf-8"))
    return sorted({command.strip() for command in found})


@pytest.mark.parametrize("command", commands())
def test_commands_compose(command: str) -> None:
    arguments = [word for word in shlex.split(command) if word not in {"-m", "--help", "--cfg"}]
    if "--config-dir" in arguments or "..." in command:
        pytest.skip("speaks of the reader's own files")
    for job in compose_jobs("train", arguments, multirun="-m" in command.split()):
        check_parts(RunConfig.parse(job.values))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"(`+).*?\1", "", page.read_text(encoding="utf-8"))  # code shows links that are none
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
