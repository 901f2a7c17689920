"""From arguments to composed settings: Hydra puts ``configs/`` together, and a sweep becomes its jobs.

Choices of a group's option (``credit=mrtpo``) go to Hydra. Settings (``trainer.steps=3``) are written into
what Hydra composed and left to the schema to judge, so that a key which does not exist is always told with
its nearest valid name.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import hydra
import yaml
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from creditlib import registry
from creditlib.config import nearest
from creditlib.types import CreditlibError

Values = dict[str, Any]

# Their settings are those of a class.
OPEN_SECTIONS = ("task", "pairs", "credit", "advantage", "loss", "objective")
GOES_WITH = "goes_with"  # in a task's file: options of other groups that come with the task


class Job(NamedTuple):
    """One run of a sweep, or the only one."""

    label: str  # what sets it apart in the sweep, "credit=mrtpo,seed=1"; empty without a sweep
    values: Values


class Setting(NamedTuple):
    key: str  # dotted
    value: Any
    merge: bool = True  # False: a mapping replaces what stands there


@dataclass
class Request:
    """What was asked for, sorted by who deals with it."""

    choices: list[str] = field(default_factory=list)  # overrides of the defaults list, for Hydra
    parts: list[Setting] = field(default_factory=list)  # chosen parts that have no file in configs/
    settings: list[Setting] = field(default_factory=list)


def configs_folder() -> Path:
    """Our own ``configs/``: inside the package when installed from a wheel, beside it in a checkout."""
    package = Path(__file__).resolve().parent
    for folder in (package / "configs", package.parent / "configs"):
        if (folder / "train.yaml").is_file():
            return folder
    raise CreditlibError(
        f"creditlib's configs/ is neither in {package} nor beside it: install creditlib again"
    )


def groups(folders: Sequence[Path]) -> list[str]:
    """Names of the config groups."""
    return sorted({path.name for folder in folders for path in folder.iterdir() if path.is_dir()})


def options(group: str, folders: Sequence[Path]) -> list[str]:
    """What ``group=`` can be: the group's files, and the registered parts that need no file."""
    files = {path.stem for folder in folders for path in (folder / group).glob("*.yaml")}
    registered = registry.names(group) if group in registry.BUILT_IN else ()
    return sorted(files | set(registered))


def default_options(name: str, folder: Path) -> dict[str, str | None]:
    """The groups of a top configuration, each with what it is by default."""
    entries = yaml.safe_load((folder / f"{name}.yaml").read_text(encoding="utf-8"))["defaults"]
    return {group: option for entry in entries if isinstance(entry, dict) for group, option in entry.items()}


def compose_jobs(
    name: str, arguments: Sequence[str], *, multirun: bool = False, folder: str | None = None
) -> list[Job]:
    """Compose ``configs/<name>.yaml`` with arguments in Hydra's grammar: one job, or all those of a sweep.

    Args:
        name: The top configuration: ``train``, ``sft``, ...
        arguments: ``key=value``, ``+key=value`` or ``~key``.
        multirun: Make ``key=a,b`` and ``key=range(0,3)`` a job each.
        folder: A folder with config groups of the user's own, read beside ours.

    Raises:
        CreditlibError: An argument that cannot be read, an unknown option, an interpolation that leads
            nowhere.
    """
    folders = _folders(folder)
    swept, fixed = _parse_all(arguments)
    if not multirun:
        _refuse_sweeps(swept)
    jobs = []
    for chosen in itertools.product(*(_sweep_values(override) for override in swept)):
        overrides = fixed + _parse_all(chosen)[1]
        jobs.append(Job(",".join(chosen), _compose(name, _sort(name, overrides, folders), folders)))
    return _own_folders(jobs)


def compose_one(
    name: str, config: Sequence[str] | Mapping[str, Any], sections: Mapping[str, Any] | None = None
) -> Values:
    """Compose from Python: arguments, or a mapping such as ``{"task": "text2sql", "trainer.steps": 5}``.

    A text under a group's name chooses an option. A mapping is merged into its section, but replaces it where
    it says which part it is for (has `name` or `_target_`); those in `sections` always replace. Values may be
    tuples, paths, and numbers and arrays of numpy and torch.

    Raises:
        CreditlibError: As `compose_jobs`, and where `config` is neither.
    """
    config = _overrides(config)
    folders = _folders(None)
    if isinstance(config, Mapping):
        request = Request()
        for key, value in config.items():
            _add(request, name, key, value, folders)
    else:
        swept, fixed = _parse_all(config)
        _refuse_sweeps(swept)
        request = _sort(name, fixed, folders)
    request.settings += [Setting(key, value, merge=False) for key, value in (sections or {}).items()]
    return _compose(name, request, folders)


# --------------------------------------------------------------------------- inside


def _overrides(config: object) -> Sequence[str] | Mapping[str, Any]:
    """What a caller in Python gave, if it is of the two kinds that `compose_one` takes, in plain values."""
    if isinstance(config, Mapping):
        if odd := [key for key in config if not isinstance(key, str)]:
            raise CreditlibError(
                f'expected the names of settings as keys, as in {{"trainer.steps": 5}}; found {odd[0]!r}'
            )
        return {key: _plain(value) for key, value in config.items()}
    one_text = isinstance(config, str | bytes)
    if one_text or not isinstance(config, Sequence) or not all(isinstance(item, str) for item in config):
        raise CreditlibError(
            'expected settings as a list of texts, ["task=text2sql", "trainer.steps=5"], or as a mapping, '
            f'{{"task": "text2sql", "trainer.steps": 5}}; found {config!r}'
        )
    return config


def _plain(value: Any) -> Any:
    """`value` as YAML could hold it."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value.tolist() if hasattr(value, "tolist") else value  # numbers and arrays of numpy and torch


def _folders(extra: str | None) -> list[Path]:
    ours = configs_folder()
    if extra is None:
        return [ours]
    path = Path(extra).expanduser().resolve()
    if not path.is_dir():
        raise CreditlibError(f"--config-dir {extra}: no such folder")
    return [ours, path]


def _parse(argument: str) -> Override:
    try:
        override = OverridesParser.create().parse_override(argument)
    except HydraException as error:
        reason = str(error).splitlines()[0]
        key, _, value = argument.partition("=")
        quoted = f"{key}='{value}'"
        # What Hydra reads as its own grammar is a text within quotes, of which the shell takes one pair off.
        advice = f'. A text with spaces or any of <>{{}}(): is quoted twice: "{quoted}"' if value else ""
        raise CreditlibError(
            f"cannot read the argument {argument!r}: expected key=value ({reason}){advice}"
        ) from None
    if override.key_or_group.partition(".")[0] == "hydra":
        raise CreditlibError(f"{argument}: Hydra's own settings are not used here; see --help for what is")
    return override


def _parse_all(arguments: Iterable[str]) -> tuple[list[Override], list[Override]]:
    """Overrides with several values, and those with one."""
    parsed = [_parse(argument) for argument in arguments]
    swept = [override for override in parsed if override.is_sweep_override()]
    return swept, [override for override in parsed if not override.is_sweep_override()]


def _refuse_sweeps(swept: Sequence[Override]) -> None:
    for override in swept:
        raise CreditlibError(
            f"{override.input_line}: several values make a sweep, which needs -m "
            "(write a list as [a,b], and a text with a comma in quotes)"
        )


def _sweep_values(override: Override) -> list[str]:
    if not (override.is_choice_sweep() or override.is_range_sweep()):
        raise CreditlibError(
            f"{override.input_line}: a sweep needs listed values, as in seed=0,1 or seed=range(0,3)"
        )
    return [f"{override.get_key_element()}={value}" for value in override.sweep_string_iterator()]


def _sort(name: str, overrides: Iterable[Override], folders: Sequence[Path]) -> Request:
    request = Request()
    for override in overrides:
        if override.is_delete() or override.package is not None:
            request.choices.append(str(override.input_line))
        else:
            _add(request, name, override.key_or_group, override.value(), folders)
    return request


def _add(request: Request, name: str, key: str, value: Any, folders: Sequence[Path]) -> None:
    """Take `key` as the choice of a group's option, or as a setting."""
    if key in groups(folders) and (value is None or isinstance(value, str)):
        _choose(request, name, key, value, folders)
        return
    names_a_part = isinstance(value, Mapping) and bool({"name", "_target_"} & value.keys())
    belongs_to_a_part = key.startswith(tuple(f"{section}." for section in OPEN_SECTIONS))
    request.settings.append(Setting(key, value, merge=not (names_a_part or belongs_to_a_part)))


def _choose(request: Request, name: str, group: str, option: str | None, folders: Sequence[Path]) -> None:
    here = default_options(name, folders[0])
    if group not in here:
        raise CreditlibError(f"{group}={option}: {name} has no such group. Known: {', '.join(sorted(here))}.")
    known = options(group, folders)
    if option is None:
        request.choices.append(f"~{group}")
    elif any((folder / group / f"{option}.yaml").is_file() for folder in folders):
        request.choices.append(f"{group}={option}")
    elif option in known:
        request.choices.append(f"~{group}")
        request.parts.append(Setting(group, {"name": option}, merge=False))
    else:
        raise CreditlibError(f"{group}={option}: no such option. {nearest(option, known)}")


def compose_choices(name: str, arguments: Sequence[str]) -> dict[str, str | None]:
    """The option of each group of a top configuration under these arguments."""
    folders = _folders(None)
    request = _sort(name, _parse_all(arguments)[1], folders)
    chosen = _put_together(name, request, folders).hydra.runtime.choices
    parts = {setting.key: setting.value["name"] for setting in request.parts}
    return {group: parts.get(group, chosen.get(group)) for group in default_options(name, folders[0])}


def _put_together(name: str, request: Request, folders: Sequence[Path]) -> Any:
    """What Hydra makes of the choices, its own configuration beside it."""
    search = ",".join(f"'file://{folder}'" for folder in folders[1:])
    overrides = [f"hydra.searchpath=[{search}]", *request.choices]
    with _hydra(folders[0]):
        composed = hydra.compose(name, overrides=overrides, return_hydra_config=True)
        if more := _companions(name, composed, request, folders):
            composed = hydra.compose(name, overrides=[*overrides, *more], return_hydra_config=True)
    return composed


def _compose(name: str, request: Request, folders: Sequence[Path]) -> Values:
    try:
        composed = _put_together(name, request, folders)
        OmegaConf.set_struct(composed, False)
        del composed["hydra"]
        for key, value, merge in (*request.parts, *request.settings):
            OmegaConf.update(composed, key, value, merge=merge, force_add=True)
        values = OmegaConf.to_container(composed, resolve=True)
    except (HydraException, yaml.YAMLError, OmegaConfBaseException) as error:
        reason = " ".join(str(error).split())
        raise CreditlibError(f"cannot compose the configuration: {reason}") from None
    found = {str(key): value for key, value in _given(values).items()}
    if isinstance(found.get("task"), dict):
        found["task"].pop(GOES_WITH, None)
    return found


def _companions(name: str, composed: Any, request: Request, folders: Sequence[Path]) -> list[str]:
    """What the task's file chooses (`GOES_WITH`) of this command's other groups, where nobody chose: neither
    the user nor an experiment.
    """
    wanted = composed.get("task", {}).get(GOES_WITH) or {}
    if not isinstance(wanted, Mapping):
        raise CreditlibError(
            f"task.{GOES_WITH}: expected options by the name of their group, found {wanted!r}"
        )
    chosen, usual = composed.hydra.runtime.choices, default_options(name, folders[0])
    said = {choice.lstrip("~").partition("=")[0] for choice in request.choices}
    said |= {setting.key for setting in (*request.parts, *request.settings)}
    return [
        f"{group}={option}"
        for group, option in wanted.items()
        if group in usual and group not in said and chosen.get(group) == usual[group]
    ]


def _given(value: Any) -> Any:
    """Without what a file marks as required (``???``) and nobody set: the schema then finds it missing."""
    if not isinstance(value, dict):
        return value
    return {key: _given(inner) for key, inner in value.items() if inner != "???"}


@contextmanager
def _hydra(folder: Path) -> Iterator[None]:
    """Hydra's compose over `folder`, leaving alone a Hydra application that may have called us."""
    state = GlobalHydra.instance()
    outer, state.hydra = state.hydra, None
    try:
        with hydra.initialize_config_dir(str(folder), version_base="1.3", job_name="creditlib"):
            yield
    finally:
        GlobalHydra.instance().hydra = outer


def _own_folders(jobs: list[Job]) -> list[Job]:
    """Give each job of a sweep a run folder of its own: under the common one, where the configured ones are
    not distinct.
    """
    folders = [_run_folder(job) for job in jobs]
    if None in folders or len(set(folders)) == len(jobs):
        return jobs
    for job, folder in zip(jobs, folders, strict=True):
        label = re.sub(r"[^\w.,=+-]", "_", job.label)
        job.values["run"]["dir"] = f"{folder}/{label}"
    if len({_run_folder(job) for job in jobs}) < len(jobs):
        raise CreditlibError("two jobs of the sweep are the same: " + " ".join(job.label for job in jobs))
    return jobs


def _run_folder(job: Job) -> str | None:
    run = job.values.get("run")
    return run.get("dir") if isinstance(run, dict) else None
