"""The parent's side of the verifier: responses in, checks out."""

from __future__ import annotations

import math
import os
import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from creditlib.types import Check, CreditlibError, MissingDataError, Span
from verifiers.pool import Failure, Pooled, WorkerPool
from verifiers.sql.compare import MODES, Mode
from verifiers.sql.judge import Gold, GoldTask, Judge, Task, Verdict
from verifiers.sql.limits import GOLD_LIMITS, Limits
from verifiers.sql.response import Response, Tags, read_response
from verifiers.sql.sandbox import DatabaseError, stamp
from verifiers.sql.tokens import name_of, tokenize, without_spare_semicolons

DEFAULT_TAGS: Tags = ("<sql>", "</sql>")

_GOLD_RUNS = 3  # a gold runs once for its result and twice to look for ties
_CACHE_MB = 256
_NAMED_IN_ERROR = re.compile(r"no such (?:column|function|table): (.+)|ambiguous column name: (.+)")
_NEAR = re.compile(r'near "(.+)": syntax error', re.DOTALL)

_GoldKey = tuple[str, str, object]  # database, query, stamp of the file


@dataclass(frozen=True)
class Job:
    """One response to judge; `database` is the path of a SQLite file, `gold` the right query on it."""

    response: str
    database: str
    gold: str


class SqlVerifier(Pooled):
    """Judges text-to-SQL responses in worker processes.

    Args:
        mode: ``"spider"`` (bag of rows, any order of columns, order of rows where the gold's outermost query
            orders) or ``"bird"`` (set of rows, columns in order).
        tags: what the query stands between.
        workers: number of worker processes, started at the first call.
        limits: budgets of a prediction.
        gold_limits: budgets of a gold; one that exceeds them is a fault of the data.
        keep_distinct: False removes DISTINCT from both sides first, as Spider's official script does by
            default.
        memory_mb: address space of one worker.
    """

    def __init__(
        self,
        *,
        mode: Mode = "spider",
        tags: Tags = DEFAULT_TAGS,
        workers: int = 2,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        gold_limits: Limits = GOLD_LIMITS,
        keep_distinct: bool = True,
        memory_mb: int = 1024,
    ) -> None:
        if mode not in MODES:
            raise CreditlibError(f"unknown SQL comparison mode {mode!r}: expected one of {', '.join(MODES)}")
        if len(tags) != 2 or not all(tags) or tags[0] == tags[1]:
            raise CreditlibError(f"tags must be two different texts, opening and closing, got {tags!r}")
        self._tags = tags
        self._limits = limits
        self._gold_limits = gold_limits
        self._golds: OrderedDict[_GoldKey, Gold] = OrderedDict()
        self._golds_bytes = 0
        self._pool: WorkerPool[GoldTask | Task, Any] = (
            WorkerPool(  # a Gold for a GoldTask, a Verdict for a Task
                Judge, (mode, limits, gold_limits, keep_distinct), workers=workers, memory_mb=memory_mb
            )
        )

    def check_many(self, jobs: Sequence[Job]) -> list[dict[str, Check]]:
        """Judge responses; one dict a job, with the keys "format", "executable" and "execution".

        Equal queries on equal databases and golds are run once.

        Raises:
            MissingDataError: a job's database file does not exist.
        """
        responses = [read_response(job.response, self._tags) for job in jobs]
        golds = self._run_golds([(job.database, job.gold) for job in jobs])
        tasks = [
            Task(
                os.path.abspath(job.database),
                without_spare_semicolons(response.query or ""),
                golds[job.database, job.gold],
            )
            for job, response in zip(jobs, responses, strict=True)
        ]
        verdicts = self._judge([task for task in tasks if task.query])
        return [
            _checks(response, verdicts[task] if task.query else _no_query(response), task.gold, job.gold)
            for job, response, task in zip(jobs, responses, tasks, strict=True)
        ]

    def gold_flags(self, golds: Sequence[tuple[str, str]]) -> list[tuple[str, ...]]:
        """The data problems of golds, given as (database, query); an empty tuple is a gold to trust.

        Raises:
            MissingDataError: a database file does not exist.
        """
        results = self._run_golds(golds)
        return [results[gold].flags for gold in golds]

    def _judge(self, tasks: Sequence[Task]) -> dict[Task, Verdict]:
        distinct = list(dict.fromkeys(tasks))
        answers = self._pool.map(
            distinct, seconds=self._limits.seconds, wall_seconds=self._limits.wall_seconds
        )
        return {
            task: _failed(answer) if isinstance(answer, Failure) else answer
            for task, answer in zip(distinct, answers, strict=True)
        }

    def _run_golds(self, golds: Sequence[tuple[str, str]]) -> Mapping[tuple[str, str], Gold]:
        """Results of gold queries, each computed once and cached until its file changes."""
        keys = {gold: _gold_key(*gold) for gold in dict.fromkeys(golds)}
        results = {key: self._golds[key] for key in keys.values() if key in self._golds}
        missing = [key for key in keys.values() if key not in results]
        answers = self._pool.map(
            [GoldTask(database, without_spare_semicolons(query)) for database, query, _ in missing],
            seconds=_GOLD_RUNS * self._gold_limits.seconds,
            wall_seconds=_GOLD_RUNS * self._gold_limits.wall_seconds,
        )
        for key, answer in zip(missing, answers, strict=True):
            if isinstance(answer, Failure):
                flag = "data:gold_timeout" if answer.kind in ("cpu", "wall") else "data:gold_fails"
                answer = Gold(error=answer.detail, flags=(flag,))
            results[key] = self._golds[key] = answer
            self._golds_bytes += len(answer.rows)
        for key in results:
            self._golds.move_to_end(key)
        while self._golds_bytes > _CACHE_MB << 20:
            self._golds_bytes -= len(self._golds.popitem(last=False)[1].rows)
        return {gold: results[key] for gold, key in keys.items()}


def check(
    response: str, *, database: str, gold: str, mode: Mode = "spider", tags: Tags = DEFAULT_TAGS
) -> dict[str, Check]:
    """Judge one response: a dict with the keys "format", "executable" and "execution", each scored 0 or 1.

    It starts and ends a worker process; for many responses, `SqlVerifier.check_many` keeps its workers.

    Raises:
        MissingDataError: the database file does not exist.
    """
    with SqlVerifier(mode=mode, tags=tags, workers=1) as verifier:
        return verifier.check_many([Job(response, str(database), gold)])[0]


def _gold_key(database: str, query: str) -> _GoldKey:
    path = os.path.abspath(database)
    try:
        return path, query, stamp(path)
    except DatabaseError as problem:
        raise MissingDataError(f"no database at {problem}; check the data folder the task reads") from problem


def _checks(response: Response, verdict: Verdict, gold: Gold, gold_query: str) -> dict[str, Check]:
    spans = response.query_span
    reason = verdict.executable_reason
    error_spans = _error_spans(response, verdict)
    if gold.error is not None:
        no_result = f"the gold query has no result: {gold.error}"
        execution = Check(math.nan, no_result, gold_query, spans, gold.flags)
    else:
        flags = verdict.execution_flags + gold.flags
        execution = Check(_score(verdict.execution), verdict.execution_reason, gold_query, spans, flags)
    return {
        "format": response.format,
        "executable": Check(
            _score(verdict.executable), reason, reason, spans + error_spans, verdict.executable_flags
        ),
        "execution": execution,
    }


def _score(verdict: bool | None) -> float:
    return math.nan if verdict is None else float(verdict)


def _no_query(response: Response) -> Verdict:
    reason = f"no SQL found: {response.format.reason}"
    return Verdict(False, reason, (), False, reason, ())


def _failed(failure: Failure) -> Verdict:
    """The verdict on a query that took its worker process with it."""
    reason = f"the query was given up: {failure.detail}"
    return Verdict(False, reason, (failure.flag,), False, reason, (failure.flag,))


def _error_spans(response: Response, verdict: Verdict) -> tuple[Span, ...]:
    """The tokens of the query that the engine's error message names."""
    if verdict.executable is not False or response.query is None:
        return ()
    query = response.query
    tokens = tokenize(query)
    if named := _NAMED_IN_ERROR.search(verdict.executable_reason):
        name = (named[1] or named[2]).rpartition(".")[2].lower()
        return tuple(
            Span(response.start + token.start, response.start + token.end, "identifier")
            for token in tokens
            if token.kind in ("word", "double", "quoted") and name_of(token, query) == name
        )
    if near := _NEAR.search(verdict.executable_reason):
        return tuple(
            Span(response.start + token.start, response.start + token.end, "syntax")
            for token in tokens
            if query[token.start : token.end] == near[1]
        )
    return ()
