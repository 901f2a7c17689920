"""The text of ``--help``, made from configs/: the first line of each file says what it is, comments say what
settings mean.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from creditlib import registry
from creditlib.compose import (
    GOES_WITH,
    compose_choices,
    compose_one,
    configs_folder,
    default_options,
    options,
)

OPTIONS = """\
  key=value          choose an option of a group, or change a setting
  -m, --multirun     run every combination of key=a,b,c and key=range(0,3), each in a run folder of its own
  --cfg              print the composed configuration instead of running
  --config-dir DIR   read config groups of your own beside ours (DIR/task/mine.yaml gives task=mine)
  -h, --help         this text; with credit=mrtpo before it, the settings of that option"""


def help_text(config_name: str, about: str, overrides: Sequence[str] = ()) -> str:
    """What the command does, its groups with their options, the settings with their values."""
    folder = configs_folder()
    top = folder / f"{config_name}.yaml"
    values, chosen = compose_one(config_name, overrides), compose_choices(config_name, overrides)
    options_block = ["groups and their options (* is chosen):"]
    for group, choice in chosen.items():
        options_block.append(f"  {group}=")
        if default_options(config_name, folder)[group] is None:
            options_block.append(f"  {'*' if choice is None else ' '} {'null':<14} none")
        options_block += [
            f"  {'*' if option == choice else ' '} {option:<14} {_describe(group, option, folder)}"
            for option in options(group, [folder])
        ]
    explained = meanings(top, "")
    for group, choice in chosen.items():
        explained |= meanings(folder / group / f"{choice}.yaml", f"{group}.")
    settings_block = ["settings:"]
    settings_block += [
        f"  {_show(values, key):<44} {meaning}"
        for key, meaning in explained.items()
        if GOES_WITH not in key.split(".")
    ]
    usage = f"usage: python -m creditlib.{config_name} [option ...] [key=value ...]\n\n{OPTIONS}"
    return "\n\n".join([about.strip(), usage, "\n".join(options_block), "\n".join(settings_block)])


def _describe(group: str, option: str, folder: Path) -> str:
    file = folder / group / f"{option}.yaml"
    if not file.is_file():
        return registry.describe(group, option)
    lines = file.read_text(encoding="utf-8").splitlines()
    return next((line[2:] for line in lines if line.startswith("# ") and not line.startswith("# @")), "")


def meanings(file: Path, prefix: str) -> dict[str, str]:
    """The comments behind the settings of a file and of the file that it builds on, by dotted key."""
    if not file.is_file():
        return {}
    text = file.read_text(encoding="utf-8")
    base = (yaml.safe_load(text) or {}).get("defaults", []) if prefix else []
    found: dict[str, str] = {}
    for name in base:
        found |= meanings(file.with_name(f"{name}.yaml"), prefix)
    path: list[str] = []
    for line in text.splitlines():
        if match := re.match(r"( *)(\w+):(?:.*?  # (.*))?", line):
            indent, key, meaning = match.groups()
            path[len(indent) // 2 :] = [key]
            if meaning:
                found[prefix + ".".join(path)] = meaning
    return found


def _show(values: Mapping[str, Any], key: str) -> str:
    value: Any = values
    for part in key.split("."):
        value = value.get(part, "(required)")
    return f"{key}={'null' if value is None else str(value).lower() if isinstance(value, bool) else value}"
