"""Instruction following: does a response keep each of its constraints?

Flags that a `Check` may carry (`docs/verifiers/instructions.md` explains them):

    data:constraint     the constraint is unknown, or its arguments are missing or impossible: score NaN
    timeout:cpu         checking took too much CPU time; all constraints of the response score 0
    timeout:wall        the same by the clock
    limit:memory        checking took too much memory
    worker:died         its worker process ended, twice
"""

from verifiers.instructions.constraint import Finding, Mode
from verifiers.instructions.verifier import InstructionVerifier, Job, check, load_constraints

__all__ = ["Finding", "InstructionVerifier", "Job", "Mode", "check", "load_constraints"]
