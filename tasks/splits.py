"""The splits that a task's settings `train` and `evaluation` name, and the end of a task's verifier."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from creditlib.types import CreditlibError, MissingDataError


def sources_of(train: str | None, evaluation: Mapping[str, str]) -> dict[str, str]:
    """Each split's file or hub id; ``"train"`` where there is one.

    Raises:
        CreditlibError: a held-out split has the training split's name.
    """
    if "train" in evaluation:
        raise CreditlibError("task.evaluation: 'train' is the training split's name, choose another")
    return {**({} if train is None else {"train": train}), **evaluation}


def source_of(split: str, sources: Mapping[str, str], task: str) -> str:
    """The source of one split.

    Raises:
        CreditlibError: there is no such split.
    """
    if split not in sources:
        raise CreditlibError(
            f"task {task} has no split {split!r}, only {', '.join(sources)}. "
            "Name its file in task.train or task.evaluation."
        )
    return sources[split]


def expect_files(folder: Path, files: Iterable[str], *, data: str, embedded: str, settings: str) -> None:
    """Refuse a folder that lacks some of its files.

    Args:
        folder: where they are looked for.
        files: their names.
        data: what the folder holds, for the message.
        embedded: the settings that take the embedded sample instead.
        settings: those that name the files.

    Raises:
        MissingDataError: the folder, or a file in it, is not there.
    """
    if not folder.is_dir():
        raise MissingDataError(
            f"expected a folder of {data} data at {folder}, found none. "
            "Set task.data to it (public data: CREDITLIB_DATA, as docs/configuration.md says), or "
            f"{embedded} for the embedded sample."
        )
    for file in files:
        if not (folder / file).is_file():
            raise MissingDataError(
                f"no file {file} in {folder}. Set task.data to the folder that holds it, "
                f"or change its name in {settings}."
            )


class VerifierOnDemand:
    """A task that makes its verifier when it is first asked: a cached property `_verifier`."""

    def close(self) -> None:
        """Stop the worker processes; verifying again would start new ones."""
        if "_verifier" in self.__dict__:
            self.__dict__.pop("_verifier").close()
