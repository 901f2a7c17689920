"""The parent's side: responses and their constraints in, checks out."""

from __future__ import annotations

import difflib
import importlib
import math
import pkgutil
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.metadata import entry_points
from typing import Any, get_args

from creditlib.types import Check, CreditlibError, Span
from verifiers.instructions.answer import Answer
from verifiers.instructions.constraint import (
    CONSTRAINTS,
    Constraint,
    Finding,
    Mode,
    UnverifiableError,
)
from verifiers.instructions.nltk_text import require_official
from verifiers.pool import Failure, Pooled, WorkerPool

FAMILIES = ("ifeval", "ifbench", "muldimif")  # packages beside this module whose files hold constraints
_THINKING = re.compile(r"\s*<think>.*?</think>\s*", re.DOTALL)
_END_OF_THINKING = re.compile(r"</think>\s*")
_FIRST_LINE = re.compile(r"[^\n]*\n?")
_WORDLIKE = re.compile(
    r"[^\W_\u115f\u1160\u3164\uffa0]"
)  # letters and digits, without letters that print nothing
_UNSEEN = frozenset("\u2800\ufffc\ufffd")  # symbols that stand for nothing


@dataclass(frozen=True)
class Job:
    """One response to judge, and its constraints: ``{"id": "keywords:existence", "kwargs": {...}}`` each."""

    response: str
    constraints: Sequence[Mapping[str, Any]]


class Judge:
    """Judges one response after the other, in the process that made it."""

    def __init__(self, mode: Mode = "sound", loose: bool = False) -> None:
        if mode not in get_args(Mode):
            raise CreditlibError(f"unknown mode {mode!r}: expected one of {', '.join(get_args(Mode))}")
        if mode == "official":
            require_official()
        self.mode, self.loose = mode, loose
        load_constraints()

    def __call__(self, job: Job) -> list[Check]:
        """One check for each constraint, in order."""
        start = answer_start(job.response) if self.mode == "sound" else 0
        whole, *others = dict.fromkeys(self._variants(job.response[start:]))
        variants = [
            Answer(text) for text in (whole, *(text for text in others if self._says_something(text)))
        ]
        empty = not self._says_something(whole)
        return [self._check(own, variants, start, empty) for own in job.constraints]

    def _says_something(self, text: str) -> bool:
        """The public scripts take any text that is not blank for an answer."""
        return has_content(text) if self.mode == "sound" else bool(text.strip())

    def _variants(self, text: str) -> Iterator[str]:
        """The answer as it is and, where that is asked for, as IFEval's loose reading has it: without its
        first line, its last line or both, and each of these without asterisks.
        """
        yield text
        if not self.loose:
            return
        after_first = text[_FIRST_LINE.match(text).end() :].strip()  # type: ignore[union-attr]
        before_last = text.rpartition("\n")[0].strip()
        inner = after_first.rpartition("\n")[0].strip()
        for variant in (after_first, before_last, inner):
            yield variant
        for variant in (text, after_first, before_last, inner):
            yield variant.replace("*", "")

    def _check(self, wanted: Mapping[str, Any], variants: Sequence[Answer], start: int, empty: bool) -> Check:
        try:
            kind, arguments = read_constraint(wanted)
            checker = kind.checker(self.mode)
            info = kind.wording(arguments)
            finding: Finding = checker(variants[0], **arguments)
            passed, reason = finding.passed, finding.reason
            for variant in variants[1:]:
                if not passed and checker(variant, **arguments).passed:
                    passed, reason = True, f"kept in the loose reading ({reason})"
        except UnverifiableError as problem:
            return _unverifiable(problem)
        if empty:  # else silence would keep every prohibition
            passed, reason = False, "the answer is empty"
        spans = finding.spans
        if start:
            spans = tuple(Span(own.start + start, own.end + start, own.part) for own in spans)
        return Check(float(passed), reason, info, spans)


class InstructionVerifier(Pooled):
    """Judges responses in worker processes.

    Args:
        mode: ``"sound"``, what a person would say, or ``"official"``, what the public checkers say.
        loose: IFEval's loose reading: kept, if it is kept without the first line, the last one, or asterisks.
        workers: number of worker processes, started at the first call.
        seconds: CPU time that one response may take.
        wall_seconds: the same by the clock.
        memory_mb: address space of one worker.
    """

    def __init__(
        self,
        *,
        mode: Mode = "sound",
        loose: bool = False,
        workers: int = 2,
        seconds: float = 2.0,
        wall_seconds: float = 30.0,
        memory_mb: int = 1024,
    ) -> None:
        Judge(mode, loose)  # a mistake is told here, not by a worker
        self._limits = {"seconds": seconds, "wall_seconds": wall_seconds}
        self._pool: WorkerPool[Job, list[Check]] = WorkerPool(
            Judge, (mode, loose), workers=workers, memory_mb=memory_mb
        )

    def check_many(self, jobs: Sequence[Job]) -> list[list[Check]]:
        """One check for each constraint of each job, in order."""
        answers = self._pool.map(jobs, **self._limits)
        return [
            [_given_up(answer, own) for own in job.constraints] if isinstance(answer, Failure) else answer
            for job, answer in zip(jobs, answers, strict=True)
        ]


def check(
    response: str, *, constraints: Sequence[Mapping[str, Any]], mode: Mode = "sound", loose: bool = False
) -> dict[str, Check]:
    """Judge one response in this process: a check under "0", "1", ... for each constraint.

    A constraint that cannot be checked, whatever the answer, has the score NaN and the flag
    ``data:constraint``.

    Args:
        response: what the policy wrote. The sound mode reads what stands behind its thinking.
        constraints: ``{"id": "keywords:existence", "kwargs": {"keywords": ["moon"]}}`` each.
        mode: ``"sound"`` or ``"official"``.
        loose: IFEval's loose reading.
    """
    found = Judge(mode, loose)(Job(response, constraints))
    return {str(index): own for index, own in enumerate(found)}


@cache
def load_constraints() -> None:
    """Import all modules of constraints, which enters these into `CONSTRAINTS`: our families', and those that
    installed packages name as entry points of the group ``creditlib.constraints``.
    """
    for package in FAMILIES:
        folder = importlib.import_module(f"verifiers.instructions.{package}")
        for module in pkgutil.iter_modules(folder.__path__):
            importlib.import_module(f"{folder.__name__}.{module.name}")
    for entry in entry_points(group="creditlib.constraints"):
        entry.load()


def read_constraint(wanted: Mapping[str, Any]) -> tuple[Constraint, dict[str, Any]]:
    """The constraint that is meant, and its arguments.

    Raises:
        UnverifiableError: there is no such constraint, or not with these arguments.
    """
    if not isinstance(wanted, Mapping):
        raise UnverifiableError(f'expected {{"id": ..., "kwargs": {{...}}}}, found {wanted!r:.80}')
    id, given = wanted.get("id"), wanted.get("kwargs") or {}
    kind = CONSTRAINTS.get(id) if isinstance(id, str) else None
    if kind is None:
        raise UnverifiableError(f"there is no constraint {id!r}{_nearest(id) if isinstance(id, str) else ''}")
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        raise UnverifiableError(f"kwargs of {id}: expected arguments by name, found {given!r:.80}")
    return kind, kind.arguments(given)


@lru_cache(maxsize=1024)  # the same id comes with many responses
def _nearest(id: str) -> str:
    without_family = [own for own in CONSTRAINTS if own.endswith(f":{id}")]
    close = without_family or difflib.get_close_matches(id, CONSTRAINTS, n=1, cutoff=0.75)
    return f". Did you mean {close[0]!r}?" if close else ""


def problem_of(wanted: Mapping[str, Any], mode: Mode) -> str:
    """Why a constraint cannot be checked, whatever the answer; "" if it can. An empty answer tells."""
    try:
        kind, arguments = read_constraint(wanted)
        kind.checker(mode)(Answer(""), **arguments)
    except UnverifiableError as problem:
        return str(problem)
    return ""


def answer_start(response: str) -> int:
    """Where the answer begins behind a block of thinking, whose `<think>` the prompt may have; thinking that
    never ends has no answer.
    """
    if thinking := _THINKING.match(response):
        return thinking.end()
    if response.lstrip().startswith("<think>"):
        return len(response)
    end = _END_OF_THINKING.search(response)
    return end.end() if end and "<think>" not in response[: end.start()] else 0


def has_content(text: str) -> bool:
    """Whether there is a letter, a digit, a symbol or a dash ("-" can be the answer to "+ or -?"); stops,
    quotes and markup alone say nothing.
    """
    if _WORDLIKE.search(text):
        return True
    return any(unicodedata.category(sign) in ("Sc", "Sm", "So", "Pd") for sign in set(text) - _UNSEEN)


def _given_up(failure: Failure, wanted: Mapping[str, Any]) -> Check:
    try:
        kind, arguments = read_constraint(wanted)
        info = kind.wording(arguments)
    except UnverifiableError as problem:
        return _unverifiable(problem)
    return Check(0.0, f"checking was given up: {failure.detail}", info, flags=(failure.flag,))


def _unverifiable(problem: UnverifiableError) -> Check:
    return Check(math.nan, f"cannot be checked: {problem}", flags=("data:constraint",))
