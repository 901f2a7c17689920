"""Verdicts a second of the tool-call verifier, on BFCL's answer keys and RLLA's ground truths.

    CREDITLIB_DATA=<data folder> python -m benchmarks.toolcall_verdicts [--workers 2] [--repeats 5]

Each reference is answered rightly and wrongly. `cold` includes starting the workers; `warm` is the best of
the repeats; `one process` is the same without workers.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from benchmarks.verdicts import measure, measure_alone, options
from creditlib.types import MissingDataError
from verifiers.toolcall import Job, ToolCallVerifier
from verifiers.toolcall.schema import read_reference
from verifiers.toolcall.verifier import Judge


def rlla_jobs(folder: Path) -> Iterator[Job]:
    """RLLA's supervised responses, each against its own calls and against the next row's."""
    golds = [row["output"] for row in json.loads((folder / "rlla_sft.json").read_text())]
    for own, other in zip(golds, [*golds[1:], golds[0]], strict=True):
        yield Job(own, gold=own)
        yield Job(other, gold=own)


def bfcl_jobs(folder: Path) -> Iterator[Job]:
    """BFCL's reference calls, each also without its last character."""
    for path in sorted((folder / "possible_answer").glob("*.json")):
        questions = [json.loads(line) for line in (folder / path.name).read_text().splitlines()]
        answers = [json.loads(line)["ground_truth"] for line in path.read_text().splitlines()]
        for question, answer in zip(questions, answers, strict=True):
            info = read_reference(question["function"], answer).info
            for calls in (info, info[:-1]):
                response = f"<think> I call it. </think>\n<tool_call>\n{calls}\n</tool_call>"
                yield Job(response, functions=question["function"], answers=answer)


def main() -> None:
    found = options(__doc__)
    data = Path(os.environ.get("CREDITLIB_DATA", ".")) / "toolcall"
    try:
        jobs = {"RLLA": list(rlla_jobs(data / "rlla")), "BFCL": list(bfcl_jobs(data / "bfcl"))}
    except OSError as error:
        raise MissingDataError(
            f"no tool-calling data: {error}; set CREDITLIB_DATA to the folder above toolcall"
        ) from error
    for name, own in jobs.items():
        print(f"{name}: {len(own)} verdicts, {found.workers} workers")
        checks = measure(ToolCallVerifier(workers=found.workers), own, found.repeats)
        measure_alone(Judge(), own)
        print(f"{sum(check['correctness'].score == 3 for check in checks)} right")


if __name__ == "__main__":
    main()
