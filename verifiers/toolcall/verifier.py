"""The parent's side: responses in, checks out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from creditlib.types import Check, CreditlibError
from verifiers.pool import Failure, Pooled, WorkerPool
from verifiers.toolcall import bfcl, bfcl_official, rlla
from verifiers.toolcall.response import REPLY, Reading, Wanted, judge_format, read_response
from verifiers.toolcall.schema import Reference, read_reference

Mode = Literal["sound", "official"]

BOUNDS: Mapping[str, tuple[float, float]] = {"format": (0.0, 1.0), "correctness": (rlla.WORST, rlla.BEST)}


@dataclass(frozen=True)
class Job:
    """One response to judge, by one of two kinds of reference.

    Attributes:
        response: what the policy wrote.
        gold: a ground truth in RLLA's format, ``<tool_call>`` or ``<response>`` or both.
        functions: or BFCL's function documents.
        answers: with `functions`, BFCL's `ground_truth` list; None or empty: no call is wanted.
    """

    response: str
    gold: str | None = None
    functions: Sequence[Mapping[str, Any]] | None = None
    answers: Sequence[Mapping[str, Any]] | None = None

    def __post_init__(self) -> None:
        if (self.gold is None) == (self.functions is None):
            raise CreditlibError(
                "a tool-call job needs either gold (RLLA's ground truth) or functions (BFCL's documents), "
                f"got {'neither' if self.gold is None else 'both'}"
            )
        if self.answers and self.functions is None:
            raise CreditlibError("answers go with functions: pass BFCL's function documents too")


class Judge:
    """Judges one response after the other, in the process that made it."""

    def __init__(self, mode: Mode = "sound", think: bool = True) -> None:
        if mode not in get_args(Mode):
            raise CreditlibError(f"unknown mode {mode!r}: expected one of {', '.join(get_args(Mode))}")
        self.mode, self.think = mode, think

    def __call__(self, job: Job) -> dict[str, Check]:
        if job.gold is not None:
            judge = rlla.official if self.mode == "official" else rlla.sound
            return judge(job.response, job.gold, self.think)
        reference = read_reference(job.functions or (), job.answers)
        if self.mode == "official":
            return self._official(job.response, reference)
        reading = read_response(job.response)
        if reference.problem:
            return self._impossible(reading, reference)
        wanted = Wanted(bool(reference.expected), not reference.expected)
        return {
            "format": judge_format(reading, wanted, self.think),
            "correctness": _correctness(reading, reference),
        }

    def _official(self, response: str, reference: Reference) -> dict[str, Check]:
        calls, block = bfcl_official.decode(response)
        decoded = calls is not None and bool(calls)
        form = "calls that can be read" if reference.expected else "no calls that can be read"
        why = block.problem or "the calls can be read"
        checked = Check(float(decoded == bool(reference.expected)), why, form)
        if reference.problem and not reference.expected:
            correctness = _no_reference(reference)
        elif foreign := bfcl_official.foreign_types(reference.expected):
            reason = f"the official rules for Python know no type {', '.join(map(repr, sorted(foreign)))}"
            correctness = Check(math.nan, reason, reference.info, flags=("data:types",))
        else:
            good = bfcl_official.valid(reference.expected, calls or ()) if decoded else not reference.expected
            reason = "the official checker says valid" if good else "the official checker says not valid"
            correctness = _verdict(good, reason, reference, tuple(block.spans))
        return {"format": checked, "correctness": correctness}

    def _impossible(self, reading: Reading, reference: Reference) -> dict[str, Check]:
        if not reference.expected:
            return dict.fromkeys(BOUNDS, _no_reference(reference))
        return {
            "format": judge_format(reading, Wanted(True, False), self.think),
            "correctness": _no_reference(reference),
        }


class ToolCallVerifier(Pooled):
    """Judges tool-calling responses in worker processes.

    Args:
        mode: ``"sound"``, what a person would say, or ``"official"``, what the public code says (ToolRL's
            rewards, BFCL's ast_checker).
        think: whether the format asks for a ``<think>`` block; if not, it allows one.
        workers: number of worker processes, started at the first call.
        seconds: CPU time that one response may take.
        wall_seconds: the same by the clock.
        memory_mb: address space of one worker.
    """

    def __init__(
        self,
        mode: Mode = "sound",
        think: bool = True,
        workers: int = 2,
        *,
        seconds: float = 2.0,
        wall_seconds: float = 30.0,
        memory_mb: int = 1024,
    ) -> None:
        self._judge = Judge(mode, think)  # a mistake is told here, not by a worker
        self._limits = {"seconds": seconds, "wall_seconds": wall_seconds}
        self._pool: WorkerPool[Job, dict[str, Check]] = WorkerPool(
            Judge, (mode, think), workers=workers, memory_mb=memory_mb
        )

    def check_many(self, jobs: Sequence[Job]) -> list[dict[str, Check]]:
        """Judge responses; one dict a job, in order, with the keys "format" and "correctness"."""
        answers = self._pool.map(jobs, **self._limits)
        return [
            self._given_up(job, answer) if isinstance(answer, Failure) else answer
            for job, answer in zip(jobs, answers, strict=True)
        ]

    def _given_up(self, job: Job, failure: Failure) -> dict[str, Check]:
        """The worst scores, but NaN where the reference lets nothing be judged: an empty response tells."""
        reason = f"judging was given up: {failure.detail}"
        found = {}
        for reward, blank in self._judge(replace(job, response="")).items():
            flags = (*blank.flags, failure.flag)
            if math.isnan(blank.score):
                found[reward] = replace(blank, flags=flags)
            else:
                found[reward] = Check(BOUNDS[reward][0], reason, blank.info, flags=flags)
        return found


def check(
    response: str,
    *,
    gold: str | None = None,
    functions: Sequence[Mapping[str, Any]] | None = None,
    answers: Sequence[Mapping[str, Any]] | None = None,
    mode: Mode = "sound",
    think: bool = True,
) -> dict[str, Check]:
    """Judge one response in this process: a dict with the keys "format" (0 or 1) and "correctness" (-3 to 3).

    Args:
        response: what the policy wrote.
        gold: RLLA's ground truth, or:
        functions: BFCL's function documents.
        answers: with them its possible answers; None or empty: no call is wanted.
        mode: ``"sound"`` or ``"official"``.
        think: whether the format asks for a ``<think>`` block.

    Raises:
        CreditlibError: neither or both of `gold` and `functions`, or an unknown mode.
    """
    return Judge(mode, think)(Job(response, gold, functions, answers))


def _correctness(reading: Reading, reference: Reference) -> Check:
    spans = reading.call_spans
    if not reference.expected:
        if reading.tries_calls:
            return _verdict(False, "there is a call, where no call is wanted", reference, spans)
        if reading.markup or not reading.replies:
            return _verdict(False, f"there is no reply between {REPLY[0]} and {REPLY[1]}", reference, spans)
        return _verdict(True, "no call is made, as none is wanted", reference, spans)
    if reading.problem:
        return _verdict(False, reading.problem, reference, spans)
    problem, flags = bfcl.judge(reference.expected, reading.calls)
    return _verdict(not problem, problem or "the calls are right", reference, spans, flags)


def _verdict(good: bool, reason: str, reference: Reference, spans: Any, flags: tuple[str, ...] = ()) -> Check:
    score = rlla.BEST if good else rlla.WORST
    return Check(score, reason, reference.info, spans, flags + reference.flags)


def _no_reference(reference: Reference) -> Check:
    info = reference.info if reference.expected else None
    return Check(math.nan, f"no response could be right: {reference.problem}", info, flags=reference.flags)
