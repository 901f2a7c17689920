"""Tool calling: call the tools that a request needs, with the right arguments, or say that none fits.

Two rewards: `format`, 0 or 1 (thinking, calls and reply stand between their tags), and `correctness`, -3 to 3
(the calls are the reference's). `verifiers.toolcall` judges; this module asks. An answer is ToolRL's::

    <think> ... </think>
    <tool_call>
    {"name": "get_weather", "parameters": {"city": "oslo"}}
    {"name": "set_light", "parameters": {"room": "hall", "level": 20}}
    </tool_call>
    <response> ... </response>

with calls, a reply or both, and thinking where `think` asks for it. Prompts of the layouts ``plain`` (the
embedded sample) and ``bfcl`` are composed here; those of ``rlla`` are asked as they are published.

A replay tells what a reward's verifier goes by: the format rests on the template, correctness on the
reference calls. `replay` words it, with the facts in braces::

    {format}   the template         {tools}   the tools on offer         {calls}   the reference calls

The template and the tools leave their usual place where `replay` restates them: in a plain prompt their
lines, elsewhere their sections (**Output Format**, **Available Tools**). A prompt of RLLA without such a
section has no such fact, and what rests on it is not told.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any, get_args

from creditlib.types import Check, CreditlibError, Prompt, Span
from tasks.data.toolcall.generate import stream
from tasks.replays import check_replay, placed, sometimes_replayed, worded
from tasks.settings import Style, expect_at_least, expect_one_of
from tasks.sources import names_hub
from tasks.splits import VerifierOnDemand, expect_files, source_of, sources_of
from tasks.sql_data import spread
from tasks.toolcall_data import (
    Layout,
    Row,
    as_lines,
    description,
    read_bfcl,
    read_plain,
    read_rlla,
    signature,
    unknown_types,
)
from verifiers.toolcall import BOUNDS, Job, Mode, ToolCallVerifier, parts

Block = tuple[str, str]  # a fact or "", and the stretch of a message that says it

EMBEDDED = Path(__file__).parent / "data" / "toolcall"
REWARDS = ("format", "correctness")
TOOLS, FORMAT = "Tools:\n{tools}", "Format: {format}"  # as every plain prompt says them
HEADINGS = {"tools": "**Available Tools**", "format": "**Output Format**"}  # of sections, in RLLA's order
REPLAY = {"format": FORMAT, "correctness": "Reference: {calls}"}
FACTS = ("format", "tools", "calls")

THINKING = "<think>your thoughts</think>\n"
TEMPLATE = '<tool_call>\n{"name": tool, "parameters": {values}}\n</tool_call> or <response>text</response>'
NO_CALL = "no call is wanted"
REFUSAL = "Sorry, no tool fits."
NOTES = (
    "**Notes**\n"
    "- Write one call a line; several are made at once.\n"
    "- Take each value from the conversation, and leave out what may be left out and nobody asked for.\n"
    "- Where no tool fits, or a value that is needed was not given, make no call and say so in the response."
)
_NEXT_HEADING = re.compile(r"^\*\*.+\*\*$", re.MULTILINE)


@dataclass(frozen=True)
class ToolCall(VerifierOnDemand):
    """The task with its settings; ``configs/task/toolcall.yaml`` says what each is for.

    Raises:
        MissingDataError: `data` or a file named in it is missing.
        CreditlibError: a setting has no such value.
    """

    name: str = "toolcall"
    data: str | None = None
    layout: Layout = "plain"
    train: str | None = "train.json"
    evaluation: Mapping[str, str] = field(
        default_factory=lambda: {"new_questions": "new_questions.json", "new_tools": "new_tools.json"}
    )
    tools: str = "tools.json"
    answers: str = "possible_answer"
    limit: int | None = None
    mode: Mode = "sound"
    think: bool = False
    workers: int = 2
    style: Style = "chat"
    instruction: str = "Call tools."
    replay: Mapping[str, str | None] = field(default_factory=lambda: dict(REPLAY))

    def __post_init__(self) -> None:
        expect_one_of("layout", self.layout, get_args(Layout))
        expect_one_of("mode", self.mode, get_args(Mode))
        expect_one_of("style", self.style, get_args(Style))
        expect_at_least("limit", self.limit, 1)
        expect_at_least("workers", self.workers, 1)
        check_replay(self.replay, REWARDS, FACTS)
        if self.layout == "rlla" and self.instruction:
            raise CreditlibError(
                "task.instruction must be empty with task.layout=rlla, whose prompts bring their own; found "
                f"{self.instruction!r}"
            )
        files = [
            *(own for own in self._sources.values() if self.layout != "rlla" or not names_hub(own)),
            *([self.tools] if self.layout == "plain" else []),
        ]
        if files:
            expect_files(
                self._folder,
                files,
                data="tool-calling",
                embedded="task=toolcall task.data=null",
                settings="task.train, task.evaluation ({}: none held out) or task.tools",
            )

    # ------------------------------------------------------------------ what to ask

    @property
    def eval_splits(self) -> tuple[str, ...]:
        return tuple(self.evaluation)

    def prompts(self, split: str) -> list[Prompt]:
        """The prompts of ``"train"`` or of a split in `evaluation`, in the file's order.

        Raises:
            CreditlibError: no such split.
            MissingDataError: a row lacks something or is malformed.
        """
        rows = self._rows(source_of(split, self._sources, self.name))
        chosen = spread(len(rows), self.limit if split == "train" else None)
        return [self.compose(rows[index], id=f"{self.name}/{split}/{index}") for index in chosen]

    def compose(self, row: Row, *, id: str) -> Prompt:
        """The prompt for one conversation."""
        messages, facts = self._asked(row)
        calls = {"": NO_CALL, None: ""}.get(row.calls, row.calls)
        gold = row.gold
        if self.layout == "plain" and row.calls:  # a part of the calls then earns a part of the reward
            gold = self._answer(row.calls)
        reference = {
            "gold": gold,
            "functions": row.functions,
            "answers": row.answers,
            "target": row.gold or (None if row.calls is None else self._answer(row.calls)),
            "kind": row.kind,
            "messages": messages,
            "facts": {**facts, "calls": calls},
            "flags": ("data:schema",) if unknown_types(row.functions) else (),
        }
        return self._prompt(id, reference, [(role, _joined(blocks)) for role, blocks in messages])

    def target(self, prompt: Prompt) -> str:
        """The recorded answer where the data has one, else the reference calls, or the refusal where none is
        wanted.

        Raises:
            CreditlibError: nobody knows which calls are right.
        """
        target: str | None = prompt.reference["target"]
        if target is None:
            raise CreditlibError(
                f"prompt {prompt.id!r} has no target: its tools or its possible answers cannot be read, so "
                "the right calls are unknown. Mend or remove its row for a warm start"
            )
        return target

    def information(self, prompt: Prompt, checks: Mapping[str, Check]) -> dict[str, str]:
        """What each reward's verifier goes by, in the words of `replay`."""
        return worded(self.replay, prompt.reference["facts"])

    def render(self, prompt: Prompt, information: Mapping[str, str]) -> Prompt:
        """`prompt` with the given rewards' information, as `information` words it, and no others'."""
        messages = prompt.reference["messages"]
        stated = {fact: said.rstrip("\n") for _, blocks in messages for fact, said in blocks if fact}
        places, end = placed(self.replay, information, stated)
        told = []
        for role, blocks in messages:
            said = [(fact, _again(own, places[fact]) if fact else own) for fact, own in blocks]
            told.append((role, _joined(said)))
        role, last = told[-1]
        told[-1] = role, "\n".join([last, *end])
        return self._prompt(prompt.id, prompt.reference, told)

    def synthetic(self, seed: int) -> Iterator[tuple[Prompt, str]]:
        """Endless (prompt, response) pairs about invented tools, to train a small model on.

        Three in five are prompts as they are asked; the others tell everything, or everything but one
        reward's information, as replays do.
        """
        generator = Random(seed)
        for number, request in enumerate(stream(seed)):
            row = Row(
                ({"role": "user", "content": request.question},),
                tuple(tool.function for tool in request.tools),
                as_lines(request.calls),
                kind=request.kind,
            )
            prompt = self.compose(row, id=f"{self.name}/synthetic/{number}")
            yield sometimes_replayed(self, prompt, generator), self.target(prompt)

    # ------------------------------------------------------------------ how to judge

    @property
    def reward_names(self) -> tuple[str, ...]:
        return REWARDS

    @property
    def bounds(self) -> Mapping[str, tuple[float, float]]:
        return BOUNDS

    def verify(self, prompts: Sequence[Prompt], texts: Sequence[str]) -> list[dict[str, Check]]:
        """Judge each response against its prompt's reference, in parallel worker processes.

        ``data:schema`` flags prompts with tools of a type that neither JSON Schema nor BFCL has. Where a
        ground truth of RLLA has no call, ToolRL's correctness is 0 whatever is called, so in the sound mode
        there is no such reward.
        """
        jobs = [_job(text, prompt.reference) for prompt, text in zip(prompts, texts, strict=True)]
        found = self._verifier.check_many(jobs)
        return [
            {**checks, "correctness": self._correctness(checks["correctness"], prompt.reference)}
            for prompt, checks in zip(prompts, found, strict=True)
        ]

    def parts(self, text: str) -> list[Span]:
        """What the characters of a response are: tags, thinking, reply, names, arguments, values."""
        return parts(text)

    # ------------------------------------------------------------------ inside

    @property
    def _folder(self) -> Path:
        return EMBEDDED if self.data is None else Path(self.data).expanduser()

    @property
    def _sources(self) -> dict[str, str]:
        """Each split's file or hub id."""
        return sources_of(self.train, self.evaluation)

    @cached_property
    def _verifier(self) -> ToolCallVerifier:
        return ToolCallVerifier(self.mode, self.think, self.workers)

    @property
    def _template(self) -> str:
        return (THINKING if self.think else "") + TEMPLATE

    def _rows(self, source: str) -> list[Row]:
        if self.layout == "plain":
            return read_plain(source, self._folder, self.tools)
        if self.layout == "bfcl":
            return read_bfcl(source, self._folder, self.answers)
        return read_rlla(source, self._folder)

    def _correctness(self, check: Check, reference: Mapping[str, Any]) -> Check:
        judged = reference["gold"] is None or reference["facts"]["calls"] or math.isnan(check.score)
        if self.mode == "sound" and not judged:
            check = replace(check, score=math.nan, kind="")
        return replace(check, flags=check.flags + reference["flags"])

    def _asked(self, row: Row) -> tuple[list[tuple[str, list[Block]]], dict[str, str]]:
        """The messages in blocks, and the facts that they state."""
        if self.layout == "plain":
            lines = "\n".join(f" {signature(function)}" for function in row.functions)
            facts = {"tools": lines, "format": self._template}
            blocks = [("tools", TOOLS.format(**facts) + "\n"), ("format", FORMAT.format(**facts) + "\n")]
            blocks.append(("", f"Request: {row.messages[0]['content']}"))
            system = [("system", [("", self.instruction)])] if self.instruction else []
            return [*system, ("user", blocks)], facts
        messages = row.messages
        if self.layout == "bfcl":
            said = (
                self.instruction,
                f"{HEADINGS['tools']}\n{description(row.functions)}",
                f"{HEADINGS['format']}\n{self._template}",
                NOTES,
                *(own["content"] for own in messages if own["role"] == "system"),
            )
            others = (own for own in messages if own["role"] != "system")
            messages = ({"role": "system", "content": "\n\n".join(filter(None, said))}, *others)
        split = [
            (own["role"], _sections(own["content"]) if own["role"] == "system" else [("", own["content"])])
            for own in messages
        ]
        facts = {
            fact: said.removeprefix(HEADINGS[fact]).strip("\n")
            for _, blocks in split
            for fact, said in blocks
            if fact
        }
        return split, {**dict.fromkeys(HEADINGS, ""), **facts}

    def _answer(self, calls: str) -> str:
        """An answer that makes these calls, or none."""
        thinking = "<think> I look for tools that fit the request. </think>\n" if self.think else ""
        body = f"<tool_call>\n{calls}\n</tool_call>" if calls else f"<response> {REFUSAL} </response>"
        return thinking + body

    def _prompt(self, id: str, reference: Mapping[str, Any], said: Sequence[tuple[str, str]]) -> Prompt:
        if self.style == "text":
            text = "\n".join([*(content for _, content in said), "Answer:\n"])
            return Prompt(id, self.name, text=text, reference=reference)
        messages = tuple({"role": role, "content": content} for role, content in said)
        return Prompt(id, self.name, messages=messages, reference=reference)


def _sections(text: str) -> list[Block]:
    """A system message in blocks: the sections that state facts, and what stands between them."""
    blocks: list[Block] = []
    at = 0
    for fact, heading in HEADINGS.items():
        own = re.compile(f"^{re.escape(heading)}$", re.MULTILINE).search(text, at)
        if own is None:
            continue
        behind = _NEXT_HEADING.search(text, own.end())
        end = behind.start() if behind else len(text)
        blocks += [("", text[at : own.start()]), (fact, text[own.start() : end])]
        at = end
    return [*blocks, ("", text[at:])]


def _again(said: str, told: Sequence[str]) -> str:
    """What is told in a block's place, with the lines after it that set it apart."""
    apart = said[len(said.rstrip("\n")) :]
    return "".join(own + apart for own in told)


def _joined(blocks: Sequence[Block]) -> str:
    return "".join(said for _, said in blocks)


def _job(response: str, reference: Mapping[str, Any]) -> Job:
    if reference["gold"] is not None:
        return Job(response, gold=reference["gold"])
    return Job(response, functions=reference["functions"], answers=reference["answers"])
