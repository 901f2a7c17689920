"""Responses a second of the instruction verifier, ten constraints each.

    python -m benchmarks.instruction_verdicts [--workers 2] [--repeats 5]
    CREDITLIB_DATA=<data folder> python -m benchmarks.instruction_verdicts     # and long public answers

The embedded prompts with ten constraints, each answered with its target; and IFBench's sample answers, each
against ten of IFEval's and IFBench's public constraints, drawn with a seed. Constraints that ask for a
language are drawn apart, since telling one takes as long as a hundred others.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

from benchmarks.verdicts import measure, measure_alone, options
from creditlib.compose import compose_one
from creditlib.parts import build_task
from tasks.instruction_data import load_rows
from verifiers.instructions import InstructionVerifier, Job
from verifiers.instructions.verifier import Judge

CONSTRAINTS = 10
LANGUAGES = ("language:response_language", "change_case:english_lowercase", "change_case:english_capital")
REPEATED = 10  # times that the embedded prompts are judged in one call


def embedded_jobs() -> list[Job]:
    task: Any = build_task(compose_one("train", {"task": "instructions"})["task"])
    prompts = [own for own in task.prompts("train") if len(own.reference["constraints"]) == CONSTRAINTS]
    return [Job(task.target(own), own.reference["constraints"]) for own in prompts] * REPEATED


def public_jobs(folder: Path, *, languages: bool) -> list[Job]:
    files = ("ifeval/input_data.jsonl", "ifbench/IFBench_test.jsonl")
    rows = [row for file in files for row in load_rows(file, str(folder))]
    chosen = [own for row in rows for own in row.constraints if languages or own["id"] not in LANGUAGES]
    generator = random.Random(0)
    samples = (folder / "ifbench/sample_output.jsonl").read_text(encoding="utf-8").splitlines()
    return [Job(json.loads(line)["response"], generator.sample(chosen, CONSTRAINTS)) for line in samples]


def main() -> None:
    found = options(__doc__)
    sets = {"embedded prompts": embedded_jobs()}
    if data := os.environ.get("CREDITLIB_DATA"):
        folder = Path(data) / "instructions"
        sets["public, without languages"] = public_jobs(folder, languages=False)
        sets["public, with languages"] = public_jobs(folder, languages=True)
    for name, jobs in sets.items():
        words = sum(len(job.response.split()) for job in jobs) / len(jobs)
        print(f"{name}: {len(jobs)} responses of {words:.0f} words, {found.workers} workers")
        measure(InstructionVerifier(workers=found.workers), jobs, found.repeats)
        measure_alone(Judge(), jobs)


if __name__ == "__main__":
    main()
