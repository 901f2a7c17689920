"""metrics.jsonl, trackers, intervals and the schedule."""

from __future__ import annotations

import importlib.util
import json
import math
from pathlib import Path

import pytest

from creditlib.train import train
from creditlib.trainer.metrics import MetricsLog, mean_interval, require_trackers
from creditlib.trainer.optimizer import learning_rate
from creditlib.trainer.processes import Processes
from creditlib.types import CreditlibError
from tests.trainer import world


def test_lines_are_json_whatever_the_numbers(tmp_path: Path) -> None:
    log = MetricsLog(tmp_path / "metrics.jsonl")
    log.write({"step": 1, "loss": math.nan, "grad_norm": math.inf, "reward": 0.1})

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    (row,) = [json.loads(line, parse_constant=refuse) for line in log.path.read_text().splitlines()]
    assert row == {"step": 1, "loss": None, "grad_norm": None, "reward": 0.1}


def test_rewind_forgets_later_steps_and_a_line_cut_short(tmp_path: Path) -> None:
    log = MetricsLog(tmp_path / "metrics.jsonl")
    for step in (0, 1, 2, 2, 3):
        log.write({"step": step, "value": 0.1 * step, "nothing": math.nan})
    whole = log.path.read_text().splitlines(keepends=True)
    with open(log.path, "a") as file:
        file.write('{"step": 4, "val')
    log.rewind(3)
    assert log.path.read_text() == "".join(whole)
    log.rewind(2)
    assert log.path.read_text() == "".join(whole[:4])
    log.rewind(-1)
    assert log.path.read_text() == ""


@pytest.mark.parametrize("line", ['{"step": 1, "val', "[1]", "{}", '{"step": "1"}', "\xff"])
def test_a_damaged_line_is_named(line: str, tmp_path: Path) -> None:
    log = MetricsLog(tmp_path / "metrics.jsonl")
    log.write({"step": 0})
    with open(log.path, "a", encoding="latin-1") as file:
        file.write(f"{line}\n")
    with pytest.raises(CreditlibError, match=r"metrics\.jsonl, line 2, is damaged .*delete the line"):
        log.rewind(0)


def test_a_disk_that_is_full(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").symlink_to("/dev/full")
    with pytest.raises(CreditlibError, match=r"cannot write .*metrics.jsonl: No space left on device"):
        MetricsLog(tmp_path / "metrics.jsonl").write({"step": 1})


@pytest.mark.parametrize("name", ["trackio", "tensorboard", "wandb"])
def test_missing_trackers_are_told(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda package: None)
    with pytest.raises(CreditlibError, match=f"log.trackers names {name}.*pip install {name}"):
        require_trackers([name])


def test_missing_trackers_stop_a_run_before_anything_loads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name, *rest: None if name == "wandb" else find(name, *rest)
    )
    config = world.config(
        tmp_path / "x", log={"trackers": ["wandb"]}, model={"name": "hf", "path": "/nowhere"}
    )
    with pytest.raises(CreditlibError, match=r"log\.trackers names wandb"):
        train(config, world.Words())
    assert not (tmp_path / "x").exists()


def test_the_bootstrap_on_two_values() -> None:
    """Resampling 0 and 1 gives 0, 1/2, 1 with probabilities 1/4, 1/2, 1/4: the interval is all of it."""
    assert mean_interval([0.0, 1.0]) == (0.5, 0.0, 1.0)
    assert mean_interval([0.25] * 5) == (0.25, 0.25, 0.25)
    assert mean_interval([0.25, math.nan]) == (0.25, 0.25, 0.25)
    assert all(math.isnan(value) for value in mean_interval([math.nan]))


def test_the_bootstrap_on_many_values() -> None:
    """100 zeros and 300 ones: p = 3/4, and the binomial's quantiles 283 and 317 of 400."""
    mean, low, high = mean_interval([0.0] * 100 + [1.0] * 300)
    assert mean == 0.75
    assert low == pytest.approx(283 / 400, abs=0.006) and high == pytest.approx(317 / 400, abs=0.006)


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("constant", [0.5, 1.0, 1.0, 1.0, 1.0, 1.0]),
        ("linear", [0.5, 1.0, 1.0, 0.75, 0.5, 0.25]),
        ("cosine", [0.5, 1.0, 1.0, (1 + math.sqrt(0.5)) / 2, 0.5, (1 - math.sqrt(0.5)) / 2]),
    ],
)
def test_schedules(schedule: str, expected: list[float]) -> None:
    run = world.config(
        trainer__steps=6, trainer__warmup_steps=2, trainer__schedule=schedule, trainer__learning_rate=2.0
    )
    rates = [learning_rate(run.trainer, step) for step in range(1, 7)]
    assert rates == pytest.approx([2 * factor for factor in expected])


def test_one_process_speaks_to_itself() -> None:
    alone = Processes()
    assert alone.gather({"a": 1}) == [{"a": 1}] and alone.from_first("x") == "x"
    assert alone.sum([1.0, 2.0]) == [1.0, 2.0]
    assert math.isnan(alone.sum([math.nan])[0]) and alone.sum([math.inf]) == [math.inf]
