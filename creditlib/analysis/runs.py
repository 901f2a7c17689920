"""Runs as the report sees them: what their folders hold, and which of them differ only in the seed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from creditlib.config import FREE_TO_CHANGE
from creditlib.types import CreditlibError

SEED = "seed"
NOT_COMPARED = (SEED, *FREE_TO_CHANGE)  # what may differ between runs of one curve
METHODS = ("credit.", "advantage.", "loss.")  # the parts that curves mostly differ in


@dataclass(frozen=True)
class Run:
    """A run's folder. A run that is still going, or was killed, lacks some of it; `notes` say what."""

    folder: Path
    config: Mapping[str, Any]
    train: tuple[Mapping[str, Any], ...]  # lines of metrics.jsonl, oldest first
    evaluations: tuple[Mapping[str, Any], ...]
    finished: bool
    resumed_from: tuple[int, ...]
    written: datetime | None  # when the last line of metrics was written
    notes: tuple[str, ...] = ()

    @property
    def step(self) -> int:
        """The last step that is in the metrics."""
        return int(self.train[-1]["step"]) if self.train else 0

    @property
    def steps(self) -> int | None:
        """How many steps the run is meant to have."""
        steps = self.settings.get("trainer.steps")
        return int(steps) if isinstance(steps, int) else None

    @property
    def trains(self) -> bool:
        """Whether it is, or may become, reinforcement learning: a warm start or a reward model is not."""
        return bool(self.train) or not self.config or "trainer" in self.config

    @property
    def seed(self) -> Any:
        return self.config.get(SEED)

    @property
    def settings(self) -> dict[str, Any]:
        """The configuration with dotted keys."""
        return dict(_flat(self.config, ""))


@dataclass(frozen=True)
class Group:
    """Runs that differ only in the seed, and what sets them apart from the other groups."""

    label: str
    runs: tuple[Run, ...]

    @property
    def seeds(self) -> str:
        """How many seeds, for a person: ``3 seeds``, or ``4 runs of 3 seeds`` where one was run twice."""
        seeds = len({json.dumps(run.seed, default=str) for run in self.runs})
        text = f"{seeds} seed{'s' * (seeds != 1)}"
        return text if seeds == len(self.runs) else f"{len(self.runs)} runs of {text}"


def read_lines(file: Path, notes: list[str]) -> list[dict[str, Any]]:
    """The objects of a JSON-lines file; none where it is absent.

    A last line without its end, which a kill leaves behind or which is being written, is left out silently;
    any other line that is not an object is left out and told in `notes`.
    """
    if not file.is_file():
        return []
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(file.read_bytes().split(b"\n")[:-1], start=1):
        try:
            row = json.loads(line)
        except ValueError:  # not UTF-8, or not JSON
            row = None
        if isinstance(row, dict):
            rows.append(row)
        else:
            notes.append(f"{file.name}: line {number} cannot be read and is left out")
    return rows


def read_run(folder: Path) -> Run:
    """What `creditlib.train` has written into the folder so far."""
    notes: list[str] = []
    metrics = folder / "metrics.jsonl"
    rows = [row for row in read_lines(metrics, notes) if isinstance(row.get("step"), int)]
    train = tuple(row for row in rows if row.get("phase") == "train")
    config = _read_mapping(folder / "config.yaml", yaml.safe_load, notes)
    summary = _read_mapping(folder / "summary.json", json.loads, notes)
    if not train:
        notes.append("no step yet")
    if not config:
        notes.append("no config.yaml, so it is a curve of its own")
    return Run(
        folder=folder,
        config=config,
        train=train,
        evaluations=tuple(row for row in rows if row.get("phase") == "eval"),
        finished=bool(summary.get("finished")),
        resumed_from=tuple(step for step in _list(summary.get("resumed_from")) if isinstance(step, int)),
        written=datetime.fromtimestamp(metrics.stat().st_mtime) if metrics.is_file() else None,
        notes=tuple(notes),
    )


def find_runs(paths: Sequence[str | Path]) -> tuple[list[Run], list[str]]:
    """The runs among `paths`, each once, and the paths that are something else.

    A folder that is no run stands for the runs in it: a sweep's, or all of them.

    Raises:
        CreditlibError: a path does not exist, or there is no run.
    """
    folders: dict[Path, Run] = {}
    others: list[Path] = []
    for path in map(Path, paths):
        if not path.exists():
            raise CreditlibError(f"{path}: no such folder; give the folders of runs, as in runs/*")
        found = [path] if _is_run(path) else sorted(filter(_is_run, path.iterdir())) if path.is_dir() else []
        for folder in found:
            run = read_run(folder)
            if run.trains:
                folders.setdefault(folder.resolve(), run)
            else:
                others.append(folder)
        if not found:
            others.append(path)
    if not folders:
        raise CreditlibError(
            f"no run in {', '.join(map(str, others)) or 'an empty list'}: a run is a folder with config.yaml "
            "or metrics.jsonl, which python -m creditlib.train writes"
        )
    return list(folders.values()), [str(path) for path in others]


def group_runs(runs: Sequence[Run]) -> list[Group]:
    """Put runs together that differ only in the seed; groups are in the order of their first run."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        compared = {key: value for key, value in run.settings.items() if not _under(key, NOT_COMPARED)}
        key = json.dumps(compared, sort_keys=True, default=str) if compared else f"folder {run.folder}"
        groups.setdefault(key, []).append(run)
    members = list(groups.values())
    labels = _labels([own[0].settings for own in members])
    folders = [own[0].folder.name for own in members]
    clear = [label and labels.count(label) == 1 for label in labels]
    named = [
        label if good else f"{label} {folder}".strip()
        for label, good, folder in zip(labels, clear, folders, strict=True)
    ]
    return [Group(label, tuple(own)) for label, own in zip(named, members, strict=True)]


def _labels(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Say of each group what sets it apart: the settings that differ, without those that follow from the
    choice of an option (``credit=mrtpo`` says it all, unless two groups with it have other strengths).
    """
    if len(settings) == 1:
        names = [settings[0].get(key) for key in ("credit.name", "advantage.name")]
        return [" ".join(str(name) for name in names if name)]
    keys = [
        key for key in dict.fromkeys(key for own in settings for key in own) if not _under(key, NOT_COMPARED)
    ]
    shown = []
    for key in keys:
        option = f"{key.partition('.')[0]}.name"
        among: dict[str, set[str]] = {}
        for own in settings:
            if key in own:  # an older version may lack it
                chosen = "" if key == option else str(own.get(option))
                among.setdefault(chosen, set()).add(json.dumps(own[key], default=str))
        if any(len(values) > 1 for values in among.values()):
            if key.startswith(METHODS) and option in keys and option not in shown:
                shown.append(option)  # "mrtpo beta=0.25" says more than "beta=0.25"
            shown.append(key)
    # Settings of the method are known by their last word, unless two of them share it.
    short = {key: key.rpartition(".")[2] if key.startswith(METHODS) else key for key in shown}
    labels = []
    for own in settings:
        words = []
        for key in dict.fromkeys(shown):
            if own.get(key) is None:
                continue
            value = own[key] if isinstance(own[key], str) else json.dumps(own[key], default=str)
            label = short[key] if list(short.values()).count(short[key]) == 1 else key
            words.append(value if key.endswith(".name") else f"{label}={value}")
        labels.append(" ".join(words))
    return labels


def _is_run(path: Path) -> bool:
    return any((path / name).is_file() for name in ("config.yaml", "metrics.jsonl"))


def _under(key: str, sections: Iterable[str]) -> bool:
    return any(key == section or key.startswith(f"{section}.") for section in sections)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _flat(value: Mapping[str, Any], prefix: str) -> Iterable[tuple[str, Any]]:
    for key, inner in value.items():
        if isinstance(inner, Mapping) and inner:
            yield from _flat(inner, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", inner


def _read_mapping(file: Path, parse: Callable[[str], Any], notes: list[str]) -> Mapping[str, Any]:
    if not file.is_file():
        return {}
    try:
        found = parse(file.read_text(encoding="utf-8"))
        json.dumps(found, default=str)  # YAML may refer to itself
    except (OSError, ValueError, yaml.YAMLError):
        found = None
    if isinstance(found, Mapping):
        return found
    notes.append(f"{file.name} cannot be read")
    return {}
