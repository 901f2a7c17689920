"""Tool calling: is the response well formed, and are its calls the right ones?

Flags that a `Check` may carry (`docs/verifiers/toolcall.md` explains them):

Problems of the data, never the policy's fault:
    data:gold               RLLA's ground truth cannot be read; correctness NaN, without a block format too
    data:functions          a function without a name, or whose parameters are no JSON Schema; NaN
    data:answers            BFCL's answers cannot be satisfied by any response; correctness NaN
    data:unknown_parameter  they have a parameter that the function lacks
    data:types              official mode: types of Java or JavaScript, or several; correctness NaN

Limits met by the prediction:
    match:budget            too many calls to search for the best assignment; taken in order
    timeout:cpu             judging took too much CPU time; the worst score
    timeout:wall            the same by the clock
    limit:memory            judging took too much memory
    worker:died             its worker process ended, twice
"""

from verifiers.toolcall.calls import Call
from verifiers.toolcall.response import calls_in, parts
from verifiers.toolcall.verifier import BOUNDS, Job, Mode, ToolCallVerifier, check

__all__ = ["BOUNDS", "Call", "Job", "Mode", "ToolCallVerifier", "calls_in", "check", "parts"]
