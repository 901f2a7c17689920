"""Reading runs, whatever state they are in, and telling apart which are one curve."""

from __future__ import annotations

from pathlib import Path

import pytest

from creditlib.analysis.runs import Group, find_runs, group_runs, read_lines, read_run
from creditlib.types import CreditlibError
from tests.analysis import fake


def groups_of(folder: Path, *changes: dict[str, object]) -> list[Group]:
    paths = [
        fake.write_run(folder / f"run{number}", fake.config(**change), fake.metrics(2), evaluations=())
        for number, change in enumerate(changes)
    ]
    return group_runs(find_runs(paths)[0])


def test_runs_that_differ_only_in_the_seed_are_one_curve(tmp_path: Path) -> None:
    groups = groups_of(
        tmp_path,
        {"seed": 0},
        {"seed": 1, "run__dir": "elsewhere", "log__every": 3, "trainer__checkpoint_every": 7},
        {"seed": 0, "credit__name": "mrtpo"},
    )
    assert [(group.label, len(group.runs), group.seeds) for group in groups] == [
        ("uniform", 2, "2 seeds"),
        ("mrtpo", 1, "1 seed"),
    ]


def test_warm_starts_and_reward_models_are_no_curves(tmp_path: Path) -> None:
    run = fake.write_run(tmp_path / "run", fake.config(), fake.metrics(2), evaluations=())
    for name, phase in (("start", "sft"), ("reward", "reward")):
        settings = {key: value for key, value in fake.config().items() if key != "trainer"}
        fake.write_run(tmp_path / name, settings, [{"step": 1, "phase": phase, "loss": 0.7}], evaluations=())
    found, others = find_runs([tmp_path])
    assert [own.folder for own in found] == [run]
    assert others == [str(tmp_path / "reward"), str(tmp_path / "start")]


def test_a_seed_that_was_run_twice_counts_once(tmp_path: Path) -> None:
    (group,) = groups_of(tmp_path, {"seed": 0}, {"seed": 1}, {"seed": 1, "run__dir": "again"})
    assert group.seeds == "3 runs of 2 seeds"


@pytest.mark.parametrize(
    ("changes", "labels"),
    [
        ([{}], ["uniform gdpo"]),
        # What follows from the choice of an option is not said.
        ([{}, {"credit__name": "mrtpo", "credit__beta": 0.5}], ["uniform", "mrtpo"]),
        (
            [{}, *({"credit__name": "mrtpo", "credit__beta": beta} for beta in (0.25, 0.5))],
            ["uniform", "mrtpo beta=0.25", "mrtpo beta=0.5"],
        ),
        ([{"trainer__steps": 5}, {"trainer__steps": 9}], ["trainer.steps=5", "trainer.steps=9"]),
        # Two settings with the same last name are told by their whole names.
        (
            [{"loss__eps": 1, "advantage__eps": 1}, {"loss__eps": 2, "advantage__eps": 3}],
            ["gdpo advantage.eps=1 loss.eps=1", "gdpo advantage.eps=3 loss.eps=2"],
        ),
        # The method beside its settings.
        (
            [{"credit__control": None}, {"credit__control": "shuffled"}],
            ["uniform", "uniform control=shuffled"],
        ),
        # Nothing to say of one of them: its folder's name.
        ([{"eval__every": None}, {"eval__every": 5}], ["run0", "eval.every=5"]),
    ],
)
def test_labels_say_what_differs(tmp_path: Path, changes: list[dict[str, object]], labels: list[str]) -> None:
    assert [group.label for group in groups_of(tmp_path, *changes)] == labels


def test_a_setting_that_an_older_run_lacks_is_no_label(tmp_path: Path) -> None:
    first, second = groups_of(
        tmp_path, {"credit__name": "mrtpo"}, {"task__new": 1, "credit__name": "uniform"}
    )
    assert (first.label, second.label) == ("mrtpo", "uniform")


def test_a_killed_run_is_read_as_far_as_it_came(tmp_path: Path) -> None:
    run = fake.write_run(tmp_path / "run", fake.config(), fake.metrics(5), finished=False)
    with open(run / "metrics.jsonl", "a") as file:
        file.write('{"step": 6, "phase": "tr')
    (run / "summary.json").unlink()
    read = read_run(run)
    assert (read.step, read.steps, read.finished, read.notes) == (5, 40, False, ())
    assert read.written is not None


def test_a_run_without_a_step_says_so(tmp_path: Path) -> None:
    run = fake.write_run(tmp_path / "run", fake.config(), [], finished=False, evaluations=())
    assert read_run(run).notes == ("no step yet",)
    (run / "metrics.jsonl").unlink()
    assert read_run(run).written is None
    assert [group.label for group in group_runs([read_run(run)])] == ["uniform gdpo"]


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    run = fake.write_run(tmp_path / "run", fake.config(), fake.metrics(2))
    (run / "config.yaml").write_text("seed: [")
    (run / "summary.json").write_text("{")
    with open(run / "metrics.jsonl", "ab") as file:
        file.write(b'\xff\xfe{"step": 3}\n[1]\n{"step": 4, "phase": "train"}\n')
    read = read_run(run)
    assert read.step == 4
    assert [note.split(":")[0] for note in read.notes] == [
        "metrics.jsonl",
        "metrics.jsonl",
        "config.yaml cannot be read",
        "summary.json cannot be read",
        "no config.yaml, so it is a curve of its own",
    ]
    assert group_runs([read])[0].label == "run"


def test_a_last_line_without_its_end_is_no_line(tmp_path: Path) -> None:
    notes: list[str] = []
    (tmp_path / "lines").write_text('{"a": 1}\n{"a": 2}')
    assert read_lines(tmp_path / "lines", notes) == [{"a": 1}]
    assert not notes
    assert read_lines(tmp_path / "absent", notes) == []


def test_what_is_no_run_is_left_out_or_refused(tmp_path: Path) -> None:
    run = fake.write_run(tmp_path / "runs" / "a", fake.config(), fake.metrics(1))
    other = tmp_path / "report.html"
    other.write_text("")
    found, others = find_runs([run, other, run])
    assert [read.folder for read in found] == [run]
    assert others == [str(other)]
    with pytest.raises(CreditlibError, match="no such folder"):
        find_runs([tmp_path / "runs" / "*"])
    with pytest.raises(CreditlibError, match=r"no run in .*report\.html: a run is a folder"):
        find_runs([other])
    second = fake.write_run(tmp_path / "runs" / "b", fake.config(), fake.metrics(1))
    inside, others = find_runs([tmp_path / "runs", run])  # a folder stands for the runs in it
    assert [read.folder for read in inside] == [run, second] and others == []
    (tmp_path / "runs" / "a").rename(tmp_path / "elsewhere")
    assert len(find_runs([tmp_path / "elsewhere", tmp_path / "runs" / ".." / "elsewhere"])[0]) == 1
