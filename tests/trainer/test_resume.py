"""A run that was killed and resumed writes what one that was not would have written."""

from __future__ import annotations

import errno
import json
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from creditlib.config import RunConfig
from creditlib.trainer import checkpoint
from creditlib.trainer.checkpoint import CheckpointError, RunDirectory
from creditlib.types import CreditlibError
from tests.trainer import world

RUNS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "full": ({}, {"loss__kl_coef": 0.1, "trainer__schedule": "linear", "trainer__minibatches": 2}),
    "tied": ({"tied": True}, {"loss": "dapo", "trainer__epochs": 2}),
    "dropout": ({"lora": True, "dropout": 0.3}, {"loss__kl_coef": 0.1, "trainer__epochs": 2}),
    "dynamic": ({"lora": True}, {"trainer__dynamic_sampling": True, "advantage": "grpo"}),
    "bfloat16": ({"dtype": torch.bfloat16}, {"trainer__learning_rate": 1e-4}),
}


class KilledError(BaseException):
    """Stands for kill -9: nobody catches it."""


def start(
    folder: Path,
    name: str = "full",
    prepare: Callable[[world.Trainer], None] = lambda run: None,
    **settings: Any,
) -> dict[str, Any]:
    """One start of a run, in a new policy; its summary."""
    shape, own = RUNS[name]
    run = world.config(folder, trainer__steps=5, eval__limit=3, eval__every=3, **own, **settings)
    policy = world.policy(**{"dtype": torch.float32, **shape})
    torch.manual_seed(123)  # as a run's seed would
    with world.run_folder(run) as directory:
        trainer = world.trainer(run, policy, engine=world.engine(policy), directory=directory)
        prepare(trainer)
        return trainer.run()


def lines(folder: Path) -> list[dict[str, Any]]:
    return [
        world.without_times(json.loads(line)) for line in (folder / "metrics.jsonl").read_text().splitlines()
    ]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Folders of runs that nothing disturbed."""
    folders: dict[str, Path] = {}

    def folder(name: str) -> Path:
        if name not in folders:
            folders[name] = tmp_path_factory.mktemp(name) / "run"
            summary = start(folders[name], name)
            assert summary["finished"] and summary["resumed_from"] == []
        return folders[name]

    return folder


def die_in(name: str, at: int) -> Callable[[world.Trainer], None]:
    """Die in the at-th call (from 1) of one of the trainer's methods, or after it where `name` ends in +."""

    def prepare(run: world.Trainer) -> None:
        owner, _, method = name.rstrip("+").rpartition(".")
        target = getattr(run, owner) if owner else run
        original, calls = getattr(target, method), [0]

        def dying(*arguments: Any, **settings: Any) -> Any:
            calls[0] += 1
            if calls[0] == at and not name.endswith("+"):
                raise KilledError
            result = original(*arguments, **settings)
            if calls[0] == at:
                raise KilledError
            return result

        setattr(target, method, dying)

    return prepare


DEATHS = {
    "before the first checkpoint": ("_save", 1),
    "between metrics and checkpoint": ("_write+", 3),
    "in a later evaluation": ("evaluator.run", 2),
    "at the end": ("_save+", 4),
}


@pytest.mark.parametrize("name", RUNS)
def test_killed_again_and_again(name: str, whole: Callable[[str], Path], tmp_path: Path) -> None:
    folder = tmp_path / "run"
    deaths = 0
    for method, at in (
        ("evaluator.run", 1),
        ("optimizer.step", 2),
        ("_write+", 3),
        ("_save+", 1),
        ("optimizer.step", 1),
    ):
        with pytest.raises(KilledError):
            start(folder, name, die_in(method, at))
        deaths += 1
    summary = start(folder, name)
    assert summary["finished"]
    assert len(summary["resumed_from"]) == deaths
    assert lines(folder) == lines(whole(name))
    assert summary["change"] == json.loads((whole(name) / "summary.json").read_text())["change"]
    for step in (4, 5):
        for file in sorted((whole(name) / f"checkpoints/step-{step:06d}").glob("*.safetensors")):
            assert file.read_bytes() == (folder / "checkpoints" / f"step-{step:06d}" / file.name).read_bytes()


@pytest.mark.parametrize("moment", DEATHS)
def test_every_moment(moment: str, whole: Callable[[str], Path], tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with pytest.raises(KilledError):
        start(folder, "dropout", die_in(*DEATHS[moment]))
    assert not json.loads((folder / "summary.json").read_text())["finished"]
    summary = start(folder, "dropout")
    assert lines(folder) == lines(whole("dropout"))
    assert len(summary["resumed_from"]) == 1


def test_a_half_written_checkpoint_is_swept_away(whole: Callable[[str], Path], tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with pytest.raises(KilledError):
        start(folder, "full", die_in("_save", 3))
    partial = folder / "checkpoints" / ".partial-abc"
    shutil.copytree(folder / "checkpoints" / "step-000002", partial)
    (partial / "trainer.pt").unlink()
    assert start(folder, "full")["resumed_from"] == [2]
    assert not partial.exists()
    assert lines(folder) == lines(whole("full"))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("file", "damage"),
    [
        ("trainer.pt", Path.unlink),
        ("trainer.pt", flip),
        ("model.safetensors", cut),
        ("model.safetensors", flip),
        ("checksums.json", cut),
        ("tokenizer.json", Path.unlink),
    ],
)
def test_damage_is_noticed(file: str, damage: Callable[[Path], None], tmp_path: Path) -> None:
    run, policy = world.config(tmp_path / "run"), world.policy()
    said: list[str] = []
    with world.run_folder(run) as directory:
        for step in (999_999, 1_000_000):
            folder = directory.save(step, policy.model, policy.tokenizer, {"step": step}, keep=2)
        assert directory.newest_whole(said.append) == 1_000_000 and not said
        damage(folder / file)
        assert directory.newest_whole(said.append) == 999_999
        assert "checkpoint of step 1000000 is damaged" in said[0] and (file in said[0] or damage is cut)
        assert directory.steps() == [999_999]


def test_a_damaged_checkpoint_gives_way_to_the_one_before(
    whole: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    with pytest.raises(KilledError):
        start(folder, "full", die_in("_save+", 3))
    flip(folder / "checkpoints" / "step-000004" / "model.safetensors")
    said: list[str] = []
    summary = start(folder, "full", lambda run: setattr(run.display, "say", said.append))
    assert "checkpoint of step 4 is damaged" in said[0] and "resuming after step 2" in said[1]
    assert summary["resumed_from"] == [2]
    assert lines(folder) == lines(whole("full"))
    assert (folder / "checkpoints" / "damaged-step-000004").is_dir()


def test_no_whole_checkpoint_is_left(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with pytest.raises(KilledError):
        start(folder, "full", die_in("_save+", 2))
    before = (folder / "metrics.jsonl").read_text()
    for step in (0, 2):
        flip(folder / "checkpoints" / f"step-{step:06d}" / "trainer.pt")
    for _ in range(2):  # it stays an error: nothing is started over behind one's back
        with pytest.raises(CreditlibError, match=r"every checkpoint is damaged.*another run.dir"):
            start(folder, "full")
    assert (folder / "metrics.jsonl").read_text() == before


@pytest.mark.parametrize("kilobytes", [8, 100], ids=["the model does not fit", "the optimizer does not fit"])
def test_a_full_disk(kilobytes: int, whole: Callable[[str], Path], tmp_path: Path) -> None:
    """A limit on file sizes makes real writes fail, in safetensors or torch; the run says so and goes on."""
    folder = tmp_path / "run"
    said: list[str] = []
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def prepare(run: world.Trainer) -> None:
        run.display.say = said.append  # type: ignore[method-assign]
        save = run._save

        def limited(step: int, *, must: bool = False) -> None:
            if step in (2, 5):
                resource.setrlimit(resource.RLIMIT_FSIZE, (kilobytes << 10, hard))
            try:
                save(step, must=must)
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

        run._save = limited  # type: ignore[method-assign]

    with pytest.raises(
        CheckpointError, match=r"checkpoint of step 5 .*(File too large|os error 27|writing file).*Make room"
    ):
        start(folder, "full", prepare)  # the last one must be there
    assert "could not write the checkpoint of step 2" in said[0] and "training goes on" in said[0]
    assert not list((folder / "checkpoints").glob(".partial-*"))
    assert start(folder, "full")["resumed_from"] == [4]
    assert lines(folder) == lines(whole("full"))


FULL = (OSError(errno.ENOSPC, "No space left on device"), RuntimeError("PytorchStreamWriter failed"))


@pytest.mark.parametrize("error", FULL)
def test_each_library_has_its_own_error_for_a_full_disk(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise error

    run, policy = world.config(tmp_path / "run"), world.policy()
    with world.run_folder(run) as directory:
        directory.save(1, policy.model, policy.tokenizer, {"step": 1}, keep=1)
        monkeypatch.setattr(torch, "save", full)
        with pytest.raises(CheckpointError, match="checkpoint of step 2"):
            directory.save(2, policy.model, policy.tokenizer, {"step": 2}, keep=1)
        assert directory.steps() == [1] and directory.newest_whole(print) == 1


def test_a_disk_that_is_full_by_the_time_of_the_checksums(tmp_path: Path) -> None:
    class Filling:
        """Stands for a tokenizer whose files are the last that fit."""

        def save_pretrained(self, folder: Path) -> None:
            for name in ("checksums.json", ".checksums.json.new"):
                (folder / name).symlink_to("/dev/full")

    run, policy = world.config(tmp_path / "run"), world.policy()
    with world.run_folder(run) as directory:
        with pytest.raises(CheckpointError, match=r"checkpoint of step 1 .*No space left"):
            directory.save(1, policy.model, Filling(), {"step": 1}, keep=1)
        assert not list(directory.checkpoints.iterdir())


def test_the_saved_configuration_is_the_same(tmp_path: Path) -> None:
    run = world.config(tmp_path / "run", loss="gspo_token", advantage__weights=[1.0, 0.5, 2.0])
    with world.run_folder(run):
        saved = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    assert RunConfig.parse(saved) == run


def test_another_configuration_is_refused(tmp_path: Path) -> None:
    run, policy = world.config(tmp_path / "run"), world.policy()
    world_folder = world.run_folder
    with world_folder(world.config(tmp_path / "run", seed=9)):
        pass
    with world_folder(run) as directory:  # nothing was trained yet, so nothing is lost
        directory.save(1, policy.model, policy.tokenizer, {"step": 1}, keep=1)
    other = world.config(tmp_path / "run", seed=3, trainer__learning_rate=0.5, loss="dapo")
    with pytest.raises(CreditlibError) as caught, world_folder(other):
        pass
    message = str(caught.value)
    assert "seed: 0 there, 3 now" in message
    assert "trainer.learning_rate: 0.001 there, 0.5 now" in message
    assert "loss.name: 'grpo' there, 'dapo' now" in message
    assert "trainer.steps" not in message
    free = world.config(tmp_path / "run", log={"samples": 9, "progress": False}, trainer__keep_checkpoints=7)
    with world_folder(free):
        pass
    (tmp_path / "run" / "config.yaml").write_text("a: [")
    with pytest.raises(CreditlibError, match=r"config\.yaml cannot be read"), world_folder(run):
        pass


def test_two_runs_on_one_folder(tmp_path: Path) -> None:
    run = world.config(tmp_path / "run")
    refused = pytest.raises(CreditlibError, match="another run is writing there")
    with world.run_folder(run), refused, world.run_folder(run):
        pass
    with world.run_folder(run) as directory:  # released
        (directory.path / "metrics.jsonl").touch()
    code = (
        "import fcntl, sys; file = open(sys.argv[1], 'w'); fcntl.flock(file, fcntl.LOCK_EX); "
        "print(1, flush=True); input()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "run" / ".lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None and holder.stdout.readline() == b"1\n"
    with pytest.raises(CreditlibError, match="another run is writing there"), world.run_folder(run):
        pass
    holder.kill()
    holder.wait()
    with world.run_folder(run):  # a lock dies with its process
        pass


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file" / "run", Path("/proc/nothing"), Path("a\0b"), Path("a\ud800")):
        with (
            pytest.raises(CreditlibError, match=f"run.dir={place}: cannot write there"),
        ):
            RunDirectory(place, {})


def test_old_checkpoints_go(tmp_path: Path) -> None:
    start(tmp_path / "run", "tied", trainer__checkpoint_every=1, trainer__keep_checkpoints=3)
    names = sorted(path.name for path in (tmp_path / "run" / "checkpoints").iterdir())
    assert names == ["step-000003", "step-000004", "step-000005"]


def test_killed_while_an_old_checkpoint_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, policy = world.config(tmp_path / "run"), world.policy()

    def half(folder: Path, **_: Any) -> None:
        if folder.exists():
            (folder / "trainer.pt").unlink()
            raise KilledError

    with world.run_folder(run) as directory:
        directory.save(1, policy.model, policy.tokenizer, {"step": 1}, keep=1)
        with monkeypatch.context() as patch, pytest.raises(KilledError):
            patch.setattr(shutil, "rmtree", half)
            directory.save(2, policy.model, policy.tokenizer, {"step": 2}, keep=1)
    with world.run_folder(run) as directory:
        assert [path.name for path in directory.checkpoints.iterdir()] == ["step-000002"]


@pytest.mark.parametrize("content", ['{"fin', "[]", "\xff"])
def test_a_damaged_summary_is_named(content: str, tmp_path: Path) -> None:
    with world.run_folder(world.config(tmp_path / "run")) as directory:
        (directory.path / "summary.json").write_text(content, encoding="latin-1")
        with pytest.raises(CreditlibError, match=r"summary\.json is damaged .*delete it; the checkpoints"):
            directory.read_summary()


def test_random_generators_continue() -> None:
    import random

    import numpy as np

    saved = checkpoint.random_state()
    first = (random.random(), np.random.rand(), torch.rand(1).item())
    checkpoint.restore_random_state(saved)
    assert (random.random(), np.random.rand(), torch.rand(1).item()) == first


def test_a_checkpoint_of_another_model_is_refused(tmp_path: Path) -> None:
    run = world.config(tmp_path / "run")
    small = world.random_model("llama", torch.float32, vocab=world.VOCABULARY, layers=1)
    with world.run_folder(run) as directory:
        folder = directory.save(1, small, world.tokenizer(), {"step": 1}, keep=1)
    with pytest.raises(CreditlibError, match=r"does not fit the model: missing.*model\.lora"):
        checkpoint.load_weights(world.policy(dtype=torch.float32), folder)


def test_an_empty_folder_is_a_new_run(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "run", {"a": 1})
    assert directory.newest_whole(print) is None and directory.read_summary() == {}
    directory.close()


def test_a_run_that_never_began_leaves_no_folder(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    for folder in (tmp_path / "new", there):
        RunDirectory(folder, {"seed": 1}).close()
    assert not (tmp_path / "new").exists()
    assert list(there.iterdir()) == []
    begun = RunDirectory(tmp_path / "begun", {"seed": 1})
    (begun.path / "metrics.jsonl").write_text("{}\n")
    begun.close()
    assert (tmp_path / "begun" / "config.yaml").is_file()
