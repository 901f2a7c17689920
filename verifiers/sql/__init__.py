"""Text-to-SQL: is the response well formed, does its query run, does it return what the gold returns?

Flags that a `Check` may carry (`docs/verifiers/sql.md` explains them):

Problems of the data, never the policy's fault:
    data:database       the file is corrupt, no database or has changes outside it; executable, execution NaN
    data:gold_fails     the gold does not run; execution is NaN
    data:gold_timeout   the gold exceeds its own limits; execution is NaN
    data:gold_rows      the gold returns too many rows to compare; execution is NaN
    data:empty_gold     the gold returns no rows, so any empty result passes
    data:gold_quotes    the gold runs only because an unknown name in double quotes passes for a text
    data:gold_tie       a tie under LIMIT decides what the gold returns
    data:order_tie      the gold's ORDER BY leaves the order of its rows open

Limits met by the prediction:
    timeout:steps       too many SQLite steps (deterministic)
    timeout:cpu         too much CPU time, its steps being slow in themselves
    timeout:wall        too much time by the clock; depends on the machine, should stay rare
    limit:memory        out of memory
    worker:died         its worker process ended, twice
    result:rows         too many rows to compare
    compare:budget      the search for matching columns was given up; counted as different
"""

from verifiers.sql.limits import GOLD_LIMITS, Limits
from verifiers.sql.verifier import Job, SqlVerifier, check

__all__ = ["GOLD_LIMITS", "Job", "Limits", "SqlVerifier", "check"]
