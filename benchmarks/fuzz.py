"""Random and mutated responses through the instruction and tool-call verifiers: does any exception escape?

    CREDITLIB_DATA=<data folder> python -m benchmarks.fuzz                  # 100,000 responses, seed 0
    python -m benchmarks.fuzz --count 5000 --seed 1                         # without it: the embedded data

A response is the right answer to some prompt, one changed at random, or random text from letters of many
scripts, marks, markup and control characters. It is judged for prompts drawn at random, in both modes, and
half of the time what it is judged by is changed too: ground truths, tools, possible answers, constraints.

Whatever a check says must be within bounds: its score, its spans; without a score it flags the data. Tools
are shown to a policy or refused. The calls that a reference says are right must be right, unless it is
flagged: one that nothing satisfies would be a silent verdict. Checks that take long are told, and of what.
"""

from __future__ import annotations

import argparse
import gc
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
from creditlib.types import Check, MissingDataError
from tasks.instruction_data import load_rows
from tasks.toolcall_data import Item, description, read_function, signature, unknown_types
from verifiers.instructions.verifier import Job as InstructionJob
from verifiers.instructions.verifier import Judge as InstructionJudge
from verifiers.toolcall import BOUNDS
from verifiers.toolcall import Job as ToolJob
from verifiers.toolcall.response import CALLS, REPLY
from verifiers.toolcall.rlla import read_gold
from verifiers.toolcall.schema import read_reference
from verifiers.toolcall.verifier import Judge as ToolJudge

CONSTRAINTS = 10  # judged of each response
LIMIT = 0.05  # seconds of CPU time that one check may take
TOLD = 20  # calls that took longer
PIECES = (
    *"abcxyz ABC 019.,;:!?'\"()[]{}<>*_-#|/\\=&%$@^~`\n\n\t\r",
    *("\x00", "\ud800", "\u200d", "\u202e", "\u00a0", "\u2028", "\u0301"),
    *("é", "ß", "İ", "你", "す", "ع", "ह", "😀"),
    *("the ", "river ", "and ", "Section 1\n", "* ", "- ", "***\n", "**", "<<", ">>", "[x]", "P.S. "),
    *("\r\n", "```json\n", "<think>", "</think>", "<tool_call>\n", "\n</tool_call>", "<response>"),
    *("</response>", "<|im_start|>assistant", '{"name": "f", "parameters": {"a": 1}}', "{}", "null", "NaN"),
    *("1e999", "-0", "true", "[f(x=1)]", "f(", "="),
)

WORDS = (
    *("not", "no", "at", "most", "least", "each", "every", "or", "more", "than", "between", "exactly"),
    *("0", "-1", "1000000000000000000000", "2.5", "½", "²", "٣", "三", "twelve", '"', "“", "**", "(", ")"),
)

VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 3, 2**70, 0.5, 1e308, math.nan, math.inf),
    *("", " ", "a", "at least", "integer", "dict", "HashMap", "\x00", "\ud800", "(", "x" * 3000),
    *("a{99999999999}", "[[a", "(" * 3000 + ")" * 3000),
    *(json.loads("[" * deep + "]" * deep) for deep in (40, 70, 120)),
    json.loads('{"properties": {"x": ' * 60 + "1" + "}}" * 60),
    *({"properties": {"x": None}}, {"items": 5, "enum": [None, {}, math.nan]}, {"a": [], "b": [""]}),
    *([], [[]], [None], ["a", "a"], {}, {"type": "array"}, {"type": ["string", "null"]}, {"enum": [1, "1"]}),
    {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x", "y"]},
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
    judges = [(mode, InstructionJudge(mode), ToolJudge(mode, True)) for mode in ("sound", "official")]
    for _, instruction, tool in judges:  # what is loaded once would be the slowest
        instruction(InstructionJob("Hello there. All is well.", constraints))
        tool(ToolJob("", **tools[0]))
    gc.collect()
    gc.freeze()  # the data, so that the collector does not go through it within a verdict
    slow: list[tuple[float, str, str]] = []
    many = 0
    verdicts: Counter[str] = Counter()
    for _ in range(options.count):
        response = draw(generator, answers if generator.random() < 0.5 else calls)
        chosen = generator.sample(constraints, CONSTRAINTS)
        prompt = generator.choice(tools)
        if generator.random() < 0.5:
            chosen = [changed_constraint(generator, own) for own in chosen]
            prompt = changed_reference(generator, prompt)
        told = len(slow)
        try:
            expect_shown(prompt)
            expect_satisfiable(prompt, judges[0][2])
            for mode, instruction, tool in judges:
                start = time.process_time()
                found = instruction(InstructionJob(response, chosen))
                middle = time.process_time()
                judged = tool(ToolJob(response, **prompt))
                end = time.process_time()
                for check in found:
                    verdicts[f"instructions {mode} {check.score:g}"] += 1
                    expect_sound(check, response, (0.0, 1.0))
                for name, check in judged.items():
                    verdicts[f"{name} {mode} {'nan' if math.isnan(check.score) else check.score > 0}"] += 1
                    expect_sound(check, response, BOUNDS[name])
                slow.append((end - middle, f"tools {mode} {prompt!a:.200}", response))
                slow.append((middle - start, f"instructions {mode}, all {CONSTRAINTS} constraints", response))
                if middle - start > LIMIT:
                    slow += [(*one, response) for one in timed(instruction, response, chosen)]
        except Exception:
            print(f"response {response!a}\nconstraints {chosen!a}\nprompt {prompt!a}")
            raise
        many += sum(own[0] > LIMIT for own in slow[told:])
        slow = sorted(slow, reverse=True)[:TOLD]
    for verdict, count in sorted(verdicts.items()):
        print(f"{verdict}: {count}")
    print(f"{many} calls took more than {1000 * LIMIT:.0f} ms. These, or the slowest:")
    for seconds, what, response in [own for own in slow if own[0] > LIMIT] or slow[:5]:
        print(f"{1000 * seconds:.1f} ms, {what}, {len(response)} characters: {response[:60]!a}")


def timed(judge: InstructionJudge, response: str, constraints: Sequence[Any]) -> list[tuple[float, str]]:
    """The time of each constraint by itself, as (seconds, mode and constraint)."""
    found = []
    for own in constraints:
        start = time.process_time()
        judge(InstructionJob(response, [own]))
        found.append((time.process_time() - start, f"instructions {judge.mode} {own!a:.200}"))
    return found


def expect_shown(prompt: Mapping[str, Any]) -> None:
    """Tools can be shown to a policy, or are refused as they are read."""
    for function in prompt.get("functions", ()):
        try:
            known = read_function(Item("here", {}), function)
        except MissingDataError:
            continue
        signature(known)
        description([known])
        unknown_types([known])


def expect_satisfiable(prompt: Mapping[str, Any], judge: ToolJudge) -> None:
    """The answer that a reference itself says is right earns the most there is, or the data is flagged."""
    if "gold" in prompt:
        gold = read_gold(prompt["gold"])
        calls, reply = gold.info or '{"name": "f", "parameters": {}}', gold.wanted.reply
        called = gold.wanted.calls
    else:
        reference = read_reference(prompt["functions"], prompt["answers"])
        calls, called, reply = reference.info, bool(reference.expected), not reference.expected
    answer = f"<think>so</think>\n{CALLS[0]}\n{calls}\n{CALLS[1]}\n" if called else "<think>so</think>\n"
    answer += f"{REPLY[0]} yes {REPLY[1]}" if reply else ""
    for name, check in judge(ToolJob(answer, **prompt)).items():
        most = 0.0 if name == "correctness" and "gold" in prompt and not called else BOUNDS[name][1]
        assert math.isnan(check.score) or check.score == most, (answer, check)


def expect_sound(check: Check, response: str, bounds: tuple[float, float]) -> None:
    """What a check says lies where it may."""
    low, high = bounds
    assert math.isnan(check.score) or low <= check.score <= high, check
    assert all(0 <= start <= end <= len(response) for start, end, _ in check.spans), check
    assert not math.isnan(check.score) or (check.reason and check.flags[0].startswith("data:")), check
    json.dumps([check.reason, check.info])


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


def changed_constraint(generator: random.Random, constraint: Mapping[str, Any]) -> Mapping[str, Any]:
    """A constraint with other arguments, now and then with another id."""
    found = {**constraint, "kwargs": changed(generator, constraint.get("kwargs") or {})}
    return {**found, "id": changed(generator, constraint["id"])} if generator.random() < 0.1 else found


def changed_reference(generator: random.Random, prompt: Mapping[str, Any]) -> dict[str, Any]:
    """A changed ground truth; tools or possible answers with a changed value somewhere."""
    if "gold" in prompt:
        return {"gold": draw(generator, [prompt["gold"]])}
    functions = [changed(generator, own, 0.5) for own in prompt["functions"]]
    answers = [changed(generator, own, 0.3) for own in prompt["answers"]]
    return {"functions": functions, "answers": answers}


def changed(generator: random.Random, value: Any, often: float = 0.7) -> Any:
    """A JSON value with one of its parts left out, doubled, renamed or replaced."""
    if generator.random() > often:
        return value
    if isinstance(value, str) and generator.random() < 0.8:
        return draw(generator, [value]) if generator.random() < 0.5 else reworded(generator, value)
    if isinstance(value, dict) and value and generator.random() < 0.9:
        key = generator.choice([*value])
        rest = {own: value[own] for own in value if own != key}
        change = generator.randrange(6)
        if change == 0:
            return rest
        if change == 1:
            return {**rest, draw(generator, [str(key)]): value[key]}
        return {**value, key: changed(generator, value[key], 0.9)}
    if isinstance(value, list) and value and generator.random() < 0.9:
        at = generator.randrange(len(value))
        change = generator.randrange(6)
        if change == 0:
            return value[:at] + value[at + 1 :]
        if change == 1:
            return [*value, value[at]]
        return [*value[:at], changed(generator, value[at], 0.9), *value[at + 1 :]]
    return generator.choice(VALUES)


def reworded(generator: random.Random, text: str) -> str:
    """A text with some words left out, doubled, swapped or replaced."""
    words = text.split(" ")
    for _ in range(generator.randint(1, 4)):
        one, other = (generator.randrange(len(words)) for _ in range(2))
        change = generator.randrange(4)
        if change == 0:
            words[one : one + 1] = []
        elif change == 1:
            words.insert(one, words[other])
        elif change == 2:
            words[one], words[other] = words[other], words[one]
        else:
            words[one] = generator.choice(WORDS)
        words = words or [""]
    return " ".join(words)


def instructions(data: Path | None) -> tuple[list[Mapping[str, Any]], list[str]]:
    """Constraints of the embedded and the public prompts, and answers."""
    task: Any = build_task(compose_one("train", {"task": "instructions"})["task"])
    prompts = task.prompts("train")
    found = [own for prompt in prompts for own in prompt.reference["constraints"]]
    answers = [task.target(prompt) for prompt in prompts]
    if data is not None:
        folder = data / "instructions"
        for file in ("ifeval/input_data.jsonl", "ifbench/IFBench_test.jsonl", "muldimif/test.json"):
            found += [own for row in load_rows(file, str(folder)) for own in row.constraints]
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
