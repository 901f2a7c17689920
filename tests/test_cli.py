"""The front door: exit codes, messages, sweeps, help; and that nothing heavy happens before the checks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import creditlib
from creditlib import cli
from creditlib.config import RunConfig
from creditlib.help import help_text
from creditlib.types import CreditlibError, MissingDataError
from tasks.text2sql import Text2SQL

ROOT = Path(__file__).resolve().parent.parent


def call(*arguments: str, error: BaseException | None = None) -> tuple[int, list[RunConfig]]:
    """The exit code of a command, and the configurations that reached it."""
    seen: list[RunConfig] = []

    def command(config: RunConfig) -> None:
        seen.append(config)
        if error is not None:
            raise error

    code = cli.main(command, schema=RunConfig, config_name="train", about="Train.", arguments=arguments)
    return code, seen


def shell(code: str, *, folder: Path, path: tuple[Path, ...] = (ROOT,)) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, path))}
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )


def front_door(*arguments: str) -> str:
    return (
        "import sys; from creditlib import cli; from creditlib.config import RunConfig\n"
        "code = cli.main(print, schema=RunConfig, config_name='train', about='', "
        f"arguments={list(arguments)!r})\n"
        "print(*sorted({'torch', 'transformers', 'datasets'} & set(sys.modules)))\n"
        "sys.exit(code)"
    )


def test_one_run() -> None:
    code, seen = call("trainer.steps=3")
    assert code == 0
    assert [config.trainer.steps for config in seen] == [3]


def test_a_sweep_runs_its_jobs_in_turn(capsys: pytest.CaptureFixture[str]) -> None:
    code, seen = call("-m", "seed=0,1", "advantage=grpo,gdpo")
    assert code == 0
    assert [(config.seed, config.advantage.name) for config in seen] == [
        (0, "grpo"),
        (0, "gdpo"),
        (1, "grpo"),
        (1, "gdpo"),
    ]
    assert "# job 2 of 4: seed=0,advantage=gdpo" in capsys.readouterr().out


def test_a_sweep_is_checked_whole_before_its_first_job(capsys: pytest.CaptureFixture[str]) -> None:
    code, seen = call("-m", "loss.kl_coef=0.1,-1", "seed=0,1")
    assert (code, seen) == (2, [])
    message = capsys.readouterr().err
    assert "loss.kl_coef must be at least 0" in message
    assert "in the job loss.kl_coef=-1,seed=0" in message


@pytest.mark.parametrize("error", [CreditlibError("mend this"), MissingDataError("mend this")])
def test_errors_that_users_can_mend(error: CreditlibError, capsys: pytest.CaptureFixture[str]) -> None:
    code, _ = call(error=error)
    assert code == 2
    assert capsys.readouterr().err == "error: mend this\n"


def test_warnings_come_without_code(tmp_path: Path) -> None:
    code = front_door().replace("main(print", "main(lambda config: warnings.warn('look here')")
    found = shell("import warnings\n" + code, folder=tmp_path)
    assert (found.returncode, found.stderr) == (0, "warning: look here\n")


def test_other_errors_keep_their_traceback() -> None:
    with pytest.raises(ZeroDivisionError):
        call(error=ZeroDivisionError())


def test_ctrl_c(capsys: pytest.CaptureFixture[str]) -> None:
    code, _ = call(error=KeyboardInterrupt())
    assert code == 130
    assert capsys.readouterr().err.strip() == "interrupted"


@pytest.mark.parametrize("argument", ["--steps=3", "--multi", "-x"])
def test_unknown_options(argument: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, seen = call(argument)
    assert (code, seen) == (2, [])
    assert "without dashes" in capsys.readouterr().err


def test_several_values_without_m(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("seed=0,1") == (2, [])
    assert "-m" in capsys.readouterr().err


def test_cfg_prints_and_does_not_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("--cfg", "trainer.steps=7") == (0, [])
    assert "  steps: 7\n" in capsys.readouterr().out


def test_help_shows_groups_and_settings(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("--help") == (0, [])
    text = capsys.readouterr().out
    assert text.startswith("Train.\n\nusage: python -m creditlib.train")
    for line in (
        "  * uniform        every token earns its response's advantage",
        "    grpo           sum the weighted rewards",
        "  trainer.steps=",
        "  trainer.betas=[0.9, 0.98]",
        "rollouts to train on",
    ):
        assert line in text
    assert "credit.beta" not in text
    assert call("credit=mrtpo", "trainer.steps=7", "--help") == (0, [])
    text = capsys.readouterr().out
    for line in ("  * mrtpo ", "  credit.beta=0.5 ", "  credit.control=null ", "  trainer.steps=7 "):
        assert line in text
    assert call("-m", "seed=0,1", "--help") == (0, [])


@pytest.mark.parametrize(
    "command", ["sft", "evaluate", "export", "make_tiny", "reward_model", "make_tiny_reward"]
)
def test_help_of_the_other_commands(command: str) -> None:
    assert f"usage: python -m creditlib.{command}" in help_text(command, "")


def test_a_group_of_the_users_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tmp_path = tmp_path / "a folder"
    (tmp_path / "trainer").mkdir(parents=True)
    (tmp_path / "trainer" / "mine.yaml").write_text("defaults: [default, _self_]\nsteps: 11\n")
    code, seen = call("--config-dir", str(tmp_path), "trainer=mine")
    assert (code, seen[0].trainer.steps) == (0, 11)
    assert call("--config-dir", str(tmp_path), "trainer=mien")[0] == 2
    assert "Did you mean 'mine'?" in capsys.readouterr().err
    assert call("--config-dir", str(tmp_path / "nowhere"))[0] == 2
    (tmp_path / "trainer" / "mine.yaml").write_text("steps: [\n")
    assert call("--config-dir", str(tmp_path), "trainer=mine")[0] == 2


def test_a_task_of_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_tasks.py").write_text(
        "from dataclasses import dataclass\n\n"
        "@dataclass\nclass Mine:\n    path: str\n    limit: int | None = None\n"
    )
    (tmp_path / "task").mkdir()
    (tmp_path / "task" / "mine.yaml").write_text("_target_: my_tasks.Mine\nname: mine\npath: here\n")
    monkeypatch.syspath_prepend(tmp_path)
    own = ("--config-dir", str(tmp_path), "task=mine")
    code, seen = call(*own, "task.limit=3")
    assert (code, seen[0].run.dir) == (0, "runs/mine-tiny-uniform-gdpo-seed0")
    assert call(*own, "task.limit=many")[0] == 2
    assert call(*own, "task.limitt=3")[0] == 2
    assert call(*own, "~task.path")[0] == 2


def test_bad_settings_stop_before_anything_heavy(tmp_path: Path) -> None:
    result = shell(front_door("trainer.stepz=3"), folder=tmp_path)
    assert result.returncode == 2
    assert result.stderr == "error: trainer.stepz: no such setting. Did you mean 'steps'?\n"
    assert result.stdout.strip() == ""  # not even torch
    result = shell(front_door("loss.clip_hi=3"), folder=tmp_path)
    assert result.returncode == 2
    assert "Did you mean 'clip_high'?" in result.stderr
    assert "transformers" not in result.stdout
    assert list(tmp_path.iterdir()) == []


def test_hydra_leaves_no_folders_behind(tmp_path: Path) -> None:
    result = shell(front_door("-m", "seed=0,1"), folder=tmp_path)
    assert result.returncode == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("package", ["verifiers", "tasks"])
def test_another_package_of_the_same_name(package: str, tmp_path: Path) -> None:
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").touch()
    result = shell(front_door(), folder=tmp_path, path=(tmp_path, ROOT))
    assert result.returncode == 2
    assert f"creditlib needs its own package {package!r}" in result.stderr
    assert str(tmp_path / package) in result.stderr
    assert "Traceback" not in result.stderr


def test_another_package_installed_over_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.metadata

    class Other:
        version = "9.9"

        def locate_file(self, path: str) -> Path:
            return ROOT / path

    monkeypatch.setattr(importlib.metadata, "packages_distributions", lambda: {"verifiers": ["other"]})
    monkeypatch.setattr(importlib.metadata, "distribution", lambda name: Other())
    with pytest.raises(CreditlibError, match=r"into which other 9\.9 was installed"):
        cli.compose([])


def test_run_from_python_refuses_what_the_command_refuses() -> None:
    with pytest.raises(CreditlibError, match="Did you mean 'steps'"):
        creditlib.run({"trainer.stepz": 3})
    with pytest.raises(CreditlibError, match="Did you mean 'steps'"):
        creditlib.run(["trainer.stepz=3"])


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (
            "text2sql",
            r"task='text2sql'.*choose one by name in the settings, as in run\(\{\"task\": 'text2sql'",
        ),
        (object(), "is not a task: it lacks .*verify"),
        (Text2SQL, "is a class: make a task of it first"),
    ],
)
@pytest.mark.parametrize("composed", [True, False])
def test_run_from_python_takes_only_ready_tasks(task: Any, message: str, composed: bool) -> None:
    with pytest.raises(CreditlibError, match=message):
        creditlib.run(cli.compose([]) if composed else [], task=task)


def test_help_shows_what_goes_with_a_task() -> None:
    text = help_text("train", "", ["task=preference", "credit=datc"])
    starred = {line.split()[1] for line in text.splitlines() if line.startswith("  * ")}
    assert {"preference", "datc", "grpo_population", "tiny"} <= starred and "gdpo" not in starred
    assert "advantage.std=population" in text and "reward_model.preference.length_window=null" in text
    assert "goes_with" not in text
    assert "  * null           none" in help_text("train", "")
