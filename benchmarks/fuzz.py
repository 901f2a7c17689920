"""Random and mutated responses through the instruction and tool-call verifiers: does any exception escape?

    CREDITLIB_DATA=<data folder> python -m benchmarks.fuzz                  # 100,000 responses, seed 0
    python -m benchmarks.fuzz --count 5000 --seed 1                         # without it: the embedded data

A response is the right answer to some prompt, one changed at random, or random text from letters of many
scripts, marks, markup and control characters. It is judged for prompts drawn at random, in both modes.
Whatever a check says must be within bounds: its score, its spans. The slowest responses are told.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from creditlib.compose import compose_one
from creditlib.parts import build_task
from creditlib.types import Check
from verifiers.instructions.muldimif import constraint_of
from verifiers.instructions.verifier import Job as InstructionJob
from verifiers.instructions.verifier import Judge as InstructionJudge
from verifiers.toolcall import BOUNDS
from verifiers.toolcall import Job as ToolJob
from verifiers.toolcall.verifier import Judge as ToolJudge

CONSTRAINTS = 10  # judged of each response
PIECES = (
    *"abcxyz ABC 019.,;:!?'\"()[]{}<>*_-#|/\\=&%$@^~`\n\n\t\r",
    *("\x00", "\ud800", "\u200d", "\u202e", "\u00a0", "\u2028", "\u0301"),
    *("é", "ß", "İ", "你", "す", "ع", "ह", "😀"),
    *("the ", "river ", "and ", "Section 1\n", "* ", "- ", "***\n", "**", "<<", ">>", "[x]", "P.S. "),
    *("\r\n", "```json\n", "<think>", "</think>", "<tool_call>\n", "\n</tool_call>", "<response>"),
    *("</response>", "<|im_start|>assistant", '{"name": "f", "parameters": {"a": 1}}', "{}", "null", "NaN"),
    *("1e999", "-0", "true", "[f(x=1)]", "f(", "="),
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    data = os.environ.get("CREDITLIB_DATA")
    generator = random.Random(options.seed)
    constraints, answers = instructions(Path(data) if data else None)
    tools, calls = tool_calls(Path(data) if data else None)
    print(f"{len(constraints)} constraints, {len(tools)} tool-call prompts; {options.count} responses")
    judges = [(mode, InstructionJudge(mode), ToolJudge(mode, True)) for mode in ("sound", "official")]  # type: ignore[arg-type]
    slowest: list[tuple[float, str, str]] = []
    verdicts: Counter[str] = Counter()
    for _ in range(options.count):
        response = draw(generator, answers if generator.random() < 0.5 else calls)
        chosen = generator.sample(constraints, CONSTRAINTS)
        prompt = generator.choice(tools)
        for mode, instruction, tool in judges:
            start = time.process_time()
            found = instruction(InstructionJob(response, chosen))
            middle = time.process_time()
            judged = tool(ToolJob(response, **prompt))
            end = time.process_time()
            for check in found:
                verdicts[f"instructions {mode} {check.score:g}"] += 1
                sound(check, response, (0.0, 1.0))
            for name, check in judged.items():
                verdicts[f"{name} {mode} {'nan' if math.isnan(check.score) else check.score > 0}"] += 1
                sound(check, response, BOUNDS[name])
            slowest += [
                (middle - start, f"instructions {mode}", response),
                (end - middle, f"tools {mode}", response),
            ]
        slowest = sorted(slowest, reverse=True)[:5]
    for verdict, count in sorted(verdicts.items()):
        print(f"{verdict}: {count}")
    for seconds, what, response in slowest:
        print(f"{1000 * seconds:.1f} ms, {what}, {len(response)} characters: {response[:60]!r}")


def sound(check: Check, response: str, bounds: tuple[float, float]) -> None:
    """What a check says lies where it may."""
    low, high = bounds
    assert math.isnan(check.score) or low <= check.score <= high, check
    assert all(0 <= start <= end <= len(response) for start, end, _ in check.spans), check
    assert not math.isnan(check.score) or check.reason, check
    json.dumps([check.reason, check.info]).encode()


def draw(generator: random.Random, answers: Sequence[str]) -> str:
    """A right answer, a changed one, or random text."""
    kind = generator.random()
    if kind < 0.4:
        size = min(int(generator.expovariate(1 / 40)), 2000)
        return "".join(generator.choice(PIECES) for _ in range(size))
    text = generator.choice(answers)
    for _ in range(0 if kind < 0.5 else generator.randint(1, 6)):
        start, end = sorted(generator.randint(0, len(text)) for _ in range(2))
        change = generator.randrange(4)
        if change == 0:
            text = text[:start] + text[end:]
        elif change == 1:
            text = text[:start] + generator.choice(PIECES) + text[start:]
        elif change == 2:
            text = text[:end] + text[start:end] + text[end:]
        else:
            text = text[:start] + text[start:end].swapcase() + text[end:]
    return text


def instructions(data: Path | None) -> tuple[list[Mapping[str, Any]], list[str]]:
    """Constraints of the embedded and the public prompts, and answers."""
    task: Any = build_task(compose_one("train", {"task": "instructions"})["task"])
    prompts = task.prompts("train")
    found = [own for prompt in prompts for own in prompt.reference["constraints"]]
    answers = [task.target(prompt) for prompt in prompts]
    if data is not None:
        folder = data / "instructions"
        for file in ("ifeval/input_data.jsonl", "ifbench/IFBench_test.jsonl"):
            for line in (folder / file).read_text(encoding="utf-8").splitlines():
                row = json.loads(line)
                pairs = zip(row["instruction_id_list"], row["kwargs"], strict=True)
                found += [{"id": id, "kwargs": kwargs} for id, kwargs in pairs]
        for row in json.loads((folder / "muldimif/test.json").read_text(encoding="utf-8")):
            found += [constraint_of(own) for own in row["constraints"]]
        samples = (folder / "ifbench/sample_output.jsonl").read_text(encoding="utf-8").splitlines()
        answers += [json.loads(line)["response"] for line in samples]
    return found, answers


def tool_calls(data: Path | None) -> tuple[list[dict[str, Any]], list[str]]:
    """References of tool-call prompts, as `ToolJob` takes them, and answers."""
    settings: list[dict[str, Any]] = [{"task": "toolcall"}]
    if data is not None:
        folder = data / "toolcall"
        settings.append({"task": "rlla", "task.data": str(folder / "rlla"), "task.train": "rlla_sft.json"})
        settings.append({"task": "bfcl", "task.data": str(folder / "bfcl")})
    jobs, answers = [], []
    for own in settings:
        task: Any = build_task(compose_one("train", own)["task"])
        for split in (*(["train"] if task.train else []), *task.eval_splits):
            for prompt in task.prompts(split):
                reference = prompt.reference
                if reference["gold"] is not None:
                    jobs.append({"gold": reference["gold"]})
                else:
                    jobs.append({"functions": reference["functions"], "answers": reference["answers"]})
                answers.append(task.target(prompt))
    return jobs, answers


if __name__ == "__main__":
    main()
