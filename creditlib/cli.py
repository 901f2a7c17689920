"""The front door of the commands: read the arguments, check every job, then run one after the other.

`python -m creditlib.train` and its sisters are one call of `main`. Whatever is wrong with a configuration is
told before a model or data is loaded, for all jobs of a sweep, in one message without a traceback.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

from omegaconf import OmegaConf

from creditlib.compose import Job, compose_jobs, compose_one
from creditlib.config import RunConfig, Section, parse_section
from creditlib.help import help_text
from creditlib.parts import check_parts
from creditlib.types import CreditlibError, Task

BAD_INPUT = 2
INTERRUPTED = 130  # 128 + SIGINT, as shells have it

ConfigT = TypeVar("ConfigT", bound=Section)


def main(
    run: Callable[[ConfigT], object],
    *,
    schema: type[ConfigT],
    config_name: str,
    about: str,
    arguments: Sequence[str] | None = None,
) -> int:
    """Run a command from the shell's arguments and return its exit code.

    Args:
        run: What to do with the configuration of each job.
        schema: The type of that configuration.
        config_name: The top file in configs/, without ``.yaml``; also the name of the command's module.
        about: What the command does, with examples: the beginning of ``--help``.
        arguments: Used instead of the shell's.

    Returns:
        0; 2 after a `CreditlibError`, whose message is on stderr; 130 after Ctrl-C.
    """
    formatted: Any = warnings.formatwarning
    warnings.formatwarning = _warning
    try:
        options = _parse(sys.argv[1:] if arguments is None else arguments)
        if options.help:
            print(help_text(config_name, about, [] if options.multirun else options.overrides))
            return 0
        jobs = compose_jobs(
            config_name, options.overrides, multirun=options.multirun, folder=options.config_dir
        )
        configs = [_check(schema, job) for job in jobs]
        for number, (job, config) in enumerate(zip(jobs, configs, strict=True), start=1):
            if job.label:
                print(f"# job {number} of {len(jobs)}: {job.label}", flush=True)
            if options.cfg:
                print(OmegaConf.to_yaml(OmegaConf.create(config.model_dump(mode="json"))), end="")
            else:
                run(config)
    except CreditlibError as error:
        print(f"error: {error}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return INTERRUPTED
    finally:
        warnings.formatwarning = formatted
    return 0


def _warning(message: Warning | str, *_: Any, **__: Any) -> str:
    """A warning as people read it, without the line of code that it comes from."""
    return f"warning: {message}\n"


def compose(config: Sequence[str] | Mapping[str, Any], task: Task | None = None) -> RunConfig:
    """Compose and check a training run's configuration from Python.

    Args:
        config: Overrides as on the command line, or the same as a mapping; see
            `creditlib.compose.compose_one`.
        task: A ready task to train on; the configuration then records its class and its name.
    """
    if task is None:
        parsed = parse_section(RunConfig, compose_one("train", config))
        check_parts(parsed)
        return parsed
    kind = type(task)
    section = {"_target_": f"{kind.__module__}.{kind.__qualname__}", "name": task.name}
    parsed = parse_section(RunConfig, compose_one("train", config, {"task": section}))
    check_parts(parsed, task=False)
    return parsed


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise CreditlibError(
            f"{message} (settings are written without dashes, as in trainer.steps=5; see --help)"
        )


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = _Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("overrides", nargs="*")
    parser.add_argument("-m", "--multirun", action="store_true")
    parser.add_argument("-h", "--help", action="store_true")
    parser.add_argument("--cfg", action="store_true")
    parser.add_argument("--config-dir")
    return parser.parse_intermixed_args(arguments)


def _check(schema: type[ConfigT], job: Job) -> ConfigT:
    try:
        config = parse_section(schema, job.values)
        check_parts(config)
    except CreditlibError as error:
        raise CreditlibError(f"{error}\n  in the job {job.label}" if job.label else str(error)) from None
    return config
