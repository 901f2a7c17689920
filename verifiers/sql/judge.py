"""The worker's side of the verifier: runs golds and predictions and compares them."""

from __future__ import annotations

import pickle
from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache

from verifiers.sql.compare import Mode, Row, compare
from verifiers.sql.limits import Limits
from verifiers.sql.sandbox import DatabaseError, Outcome, Sandbox
from verifiers.sql.tokens import orders_rows, strict_identifiers, tie_breaks, tokenize, without_distinct


@dataclass(frozen=True)
class Gold:
    """A gold query's result. `error` says why it has none; `rows` is pickled, since the parent only passes it
    on.
    """

    rows: bytes = b""
    ordered: bool = False
    error: str | None = None
    flags: tuple[str, ...] = ()
    lenient: bool = False  # runs only because SQLite takes an unknown name in double quotes for a text


@dataclass(frozen=True)
class GoldTask:
    database: str
    query: str


@dataclass(frozen=True)
class Task:
    database: str
    query: str
    gold: Gold


@dataclass(frozen=True)
class Verdict:
    """What came of a prediction; None = cannot be said, for want of a usable database.

    Where the gold has no result, `execution` means nothing.
    """

    executable: bool | None
    executable_reason: str
    executable_flags: tuple[str, ...]
    execution: bool | None
    execution_reason: str
    execution_flags: tuple[str, ...]


class Judge:
    """The handler that runs in the pool's workers."""

    def __init__(self, mode: Mode, limits: Limits, gold_limits: Limits, keep_distinct: bool) -> None:
        self._mode = mode
        self._limits = limits
        self._gold_limits = gold_limits
        self._keep_distinct = keep_distinct
        self._sandbox = Sandbox()

    def __call__(self, task: GoldTask | Task) -> Gold | Verdict:
        return self._run_gold(task) if isinstance(task, GoldTask) else self._judge(task)

    def _run_gold(self, task: GoldTask) -> Gold:
        query = self._prepare(task.query)
        try:
            outcome = self._execute_gold(task.database, query)
            ordered = self._mode == "spider" and orders_rows(tokenize(query))
            if outcome.error is not None:
                timed_out = any(flag.startswith("timeout:") for flag in outcome.flags)
                return Gold(
                    error=outcome.error, flags=("data:gold_timeout" if timed_out else "data:gold_fails",)
                )
            if outcome.truncated:
                error = f"it returns {outcome.total} rows, too many to compare"
                return Gold(error=error, flags=("data:gold_rows",))
            strict = strict_identifiers(query, tokenize(query))
            lenient = strict != query and self._execute_gold(task.database, strict).error is not None
            flags: tuple[str, ...] = ("data:gold_quotes",) if lenient else ()
            if not outcome.rows:
                return Gold(pickle.dumps([]), ordered, flags=("data:empty_gold", *flags), lenient=lenient)
            flags += self._find_ties(task.database, query, outcome.columns, ordered)
        except DatabaseError as problem:
            return Gold(error=str(problem), flags=("data:database",))
        return Gold(pickle.dumps(outcome.rows), ordered, flags=flags, lenient=lenient)

    def _find_ties(self, database: str, query: str, columns: int, ordered: bool) -> tuple[str, ...]:
        """Flags of a gold whose result depends on how SQLite happens to break ties."""
        variants = tie_breaks(query, columns)
        if variants is None:
            return ()
        up, down = (self._execute_gold(database, variant) for variant in variants)
        if up.error is not None or down.error is not None:
            return ()
        if Counter(up.rows) != Counter(down.rows):
            return ("data:gold_tie",)
        return ("data:order_tie",) if ordered and up.rows != down.rows else ()

    def _execute_gold(self, database: str, query: str) -> Outcome:
        return self._sandbox.run(database, query, self._gold_limits, keep_rows=self._gold_limits.rows)

    def _judge(self, task: Task) -> Verdict:
        gold_rows = _load_rows(task.gold.rows) if task.gold.error is None else []
        query = self._prepare(task.query)
        if not task.gold.lenient:  # else what the gold may do, its prediction may
            query = strict_identifiers(query, tokenize(query))
        # A result as large as the gold's must be kept whole, or nothing could be equal to it.
        keep_rows = max(self._limits.rows, len(gold_rows) + 1)
        megabytes = max(self._limits.megabytes, len(task.gold.rows) // 1_000_000 + 1)
        limits = replace(self._limits, megabytes=megabytes)
        try:
            outcome = self._sandbox.run(task.database, query, limits, keep_rows=keep_rows)
        except DatabaseError as problem:
            reason = f"the database cannot be used: {problem}"
            return Verdict(None, reason, ("data:database",), None, reason, ("data:database",))
        if outcome.error is not None:
            reason = f"the query has no result: {outcome.error}"
            return Verdict(False, outcome.error, outcome.flags, False, reason, outcome.flags)
        return Verdict(True, "the query runs", (), *self._compare(gold_rows, outcome, task.gold.ordered))

    def _compare(
        self, gold_rows: list[Row], outcome: Outcome, ordered: bool
    ) -> tuple[bool, str, tuple[str, ...]]:
        if outcome.truncated:
            reason = f"the result has {outcome.total} rows, the gold's {len(gold_rows)}: too many to compare"
            return False, reason, ("result:rows",)
        result = compare(
            gold_rows, outcome.rows, mode=self._mode, ordered=ordered, budget=self._limits.comparisons
        )
        return result.equal, result.reason, result.flags

    def _prepare(self, query: str) -> str:
        return query if self._keep_distinct else without_distinct(query)


@lru_cache(maxsize=64)
def _load_rows(data: bytes) -> list[Row]:
    rows: list[Row] = pickle.loads(data)
    return rows
