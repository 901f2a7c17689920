"""Verdicts a second of the tool-call verifier, on BFCL's answer keys and RLLA's ground truths.

    CREDITLIB_DATA=<data folder> python -m benchmarks.toolcall_verdicts [--workers 2] [--repeats 5]

Each reference is answered rightly and wrongly. `cold` includes starting the workers; `warm` is the best of
the repeats; `one process` is the same without workers.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    data = Path(os.environ.get("CREDITLIB_DATA", ".")) / "toolcall"
    try:
        jobs = {"RLLA": list(rlla_jobs(data / "rlla")), "BFCL": list(bfcl_jobs(data / "bfcl"))}
    except OSError as error:
        raise MissingDataError(
            f"no tool-calling data: {error}; set CREDITLIB_DATA to the folder above toolcall"
        ) from error
    for name, own in jobs.items():
        seconds = []
        with ToolCallVerifier(workers=options.workers) as verifier:
            for _ in range(1 + options.repeats):
                start = time.perf_counter()
                checks = verifier.check_many(own)
                seconds.append(time.perf_counter() - start)
        judge = Judge()
        start = time.perf_counter()
        for job in own:
            judge(job)
        alone = time.perf_counter() - start
        right = sum(check["correctness"].score == 3 for check in checks)
        print(f"{name}: {len(own)} verdicts, {options.workers} workers, {right} right")
        print(f"cold        {len(own) / seconds[0]:8,.0f} verdicts/s")
        print(f"warm        {len(own) / min(seconds[1:]):8,.0f} verdicts/s")
        print(f"one process {len(own) / alone:8,.0f} verdicts/s, {1e6 * alone / len(own):.0f} us each")


if __name__ == "__main__":
    main()
