"""Instruction following: answer a request and keep each of several constraints on the answer.

One reward for each constraint, 0 or 1: `constraint_1`, `constraint_2`, ... are slots, which mean another
constraint in each prompt (`Check.kind` says which); a prompt with fewer constraints leaves the last ones
empty. `verifiers.instructions` judges; this module asks. `tasks.instruction_data` says in which forms
requests and constraints are read.

Where the constraints stand apart from the request, the prompt lists them::

    <instruction>
    Write about the river.
    - at least 12 words
    - no commas

and a replay has those in its list that it tells, so that leaving one out takes its line away. Where the
request has them in prose, a replay restates them below it, and leaves out one of these::

    Write about the river in at least 12 words and without commas.
    Check: Answer in at least 12 words.
    Check: Do not use any commas.
"""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

from creditlib.types import Check, CreditlibError, MissingDataError, Prompt, Span
from tasks.data.instructions.generate import MOST, stream
from tasks.data.instructions.wordings import short
from tasks.instruction_data import Constraint, Row, load_rows
from tasks.settings import Style, expect_at_least, expect_one_of, expect_positive
from tasks.sources import find_source
from tasks.splits import VerifierOnDemand, source_of, sources_of
from tasks.sql_data import spread
from verifiers.instructions import InstructionVerifier, Job, Mode
from verifiers.instructions.constraint import UnverifiableError
from verifiers.instructions.verifier import Judge, problem_of, read_constraint

Wording = Literal["short", "full"]

EMBEDDED = Path(__file__).parent / "data" / "instructions"
LISTED, RESTATED = "- {}", "Check: {}"
EMPTY = Check(math.nan, "the prompt has no such constraint", kind="")
_SHOWN = 3

# What stands in a response, for `Instructions.parts`; no pattern looks further than the line's or word's end.
_PARTS = re.compile(
    r"(?P<title><<[^<>\n]+>>)|(?P<placeholder>\[[^\[\]\n]*\])|(?P<bullet>^[-*](?= ))|(?P<divider>^\*{3,}$)"
    r"|(?P<number>\d+)|(?P<word>[^\W\d_]+)|(?P<mark>[^\w\s]|_)",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Instructions(VerifierOnDemand):
    """The task with its settings; ``configs/task/instructions.yaml`` says what each is for.

    Raises:
        MissingDataError: a file named in it is missing.
        CreditlibError: a setting has no such value.
    """

    name: str = "instructions"
    data: str | None = None
    train: str | None = "train.jsonl"
    evaluation: Mapping[str, str] = field(
        default_factory=lambda: {"new_prompts": "new_prompts.jsonl", "new_mixtures": "new_mixtures.jsonl"}
    )
    slots: int = 13
    limit: int | None = None
    style: Style = "chat"
    instruction: str = ""
    wording: Wording = "short"
    mode: Mode = "sound"
    loose: bool = False
    workers: int = 2
    seconds: float = 2.0
    wall_seconds: float = 30.0

    def __post_init__(self) -> None:
        expect_one_of("style", self.style, get_args(Style))
        expect_one_of("wording", self.wording, get_args(Wording))
        expect_one_of("mode", self.mode, get_args(Mode))
        expect_at_least("slots", self.slots, 1)
        expect_at_least("limit", self.limit, 1)
        expect_at_least("workers", self.workers, 1)
        expect_positive("seconds", self.seconds)
        expect_positive("wall_seconds", self.wall_seconds)
        for source in self._sources.values():
            try:
                find_source(source, self._folder)
            except MissingDataError as error:
                raise MissingDataError(
                    f"{error}. Set task.data to the folder that holds it (public data: CREDITLIB_DATA, as "
                    "docs/configuration.md says), or change its name in task.train or task.evaluation ({}: "
                    "none held out)"
                ) from None
        Judge(self.mode, self.loose)  # says what the official readings need

    # ------------------------------------------------------------------ what to ask

    @property
    def eval_splits(self) -> tuple[str, ...]:
        return tuple(self.evaluation)

    def prompts(self, split: str) -> list[Prompt]:
        """The prompts of ``"train"`` or of a split in `evaluation`, in the source's order.

        Warns of constraints that cannot be checked: their rewards do not apply.

        Raises:
            CreditlibError: no such split, or a prompt with more constraints than `slots`.
            MissingDataError: the source cannot be read, or has rows without a request or constraints.
        """
        source = source_of(split, self._sources, self.name)
        rows = load_rows(source, self._folder)
        self._check_slots(source, rows)
        self._tell_unverifiable(source, rows)
        return [
            self.compose(rows[index], id=f"{self.name}/{split}/{index}")
            for index in spread(len(rows), self.limit if split == "train" else None)
        ]

    def compose(self, row: Row, *, id: str) -> Prompt:
        """The prompt for one request with its constraints."""
        lines = None
        if row.listed:
            lines = [
                text or _worded(own, self.wording)
                for text, own in zip(row.texts, row.constraints, strict=True)
            ]
        reference = {
            "messages": row.messages,
            "constraints": row.constraints,
            "lines": lines,  # what the list says of each, None: nothing; None: the request says them
            "target": row.target,
        }
        return self._compose(id, reference, [LISTED.format(line) for line in lines or () if line])

    def target(self, prompt: Prompt) -> str:
        """An answer that keeps all constraints, where the data has one."""
        target: str | None = prompt.reference["target"]
        if target is None:
            raise CreditlibError(
                f'prompt {prompt.id!r} has no target; a warm start needs rows with an answer under "target"'
            )
        return target

    def information(self, prompt: Prompt, checks: Mapping[str, Check]) -> dict[str, str]:
        """Each constraint in words: as the prompt lists it, else as the verifier says it."""
        lines = prompt.reference["lines"]
        if lines is None:
            lines = [
                checks[slot].info if slot in checks else _worded(own, "full")
                for slot, own in self._slots(prompt).items()
            ]
        return {slot: line for slot, line in zip(self._slots(prompt), lines, strict=True) if line}

    def render(self, prompt: Prompt, information: Mapping[str, str]) -> Prompt:
        """`prompt` with the given constraints' information, as `information` words it, and no others'."""
        slots = self._slots(prompt)
        if unknown := set(information) - set(slots):
            raise CreditlibError(
                f"prompt {prompt.id!r} has no reward {min(unknown)}, only {', '.join(slots)}"
            )
        line = RESTATED if prompt.reference["lines"] is None else LISTED
        told = [line.format(information[slot]) for slot in slots if slot in information]
        return self._compose(prompt.id, prompt.reference, told)

    def _compose(self, id: str, reference: Mapping[str, Any], below: Sequence[str]) -> Prompt:
        """The prompt from its request and the lines below it."""
        *before, request = reference["messages"]
        body = "\n".join([request["content"], *below])
        if self.style == "text":
            turns = [*([self.instruction] if self.instruction else []), *(turn["content"] for turn in before)]
            return Prompt(id, self.name, text="\n".join([*turns, body, "Answer:\n"]), reference=reference)
        system = ({"role": "system", "content": self.instruction},) if self.instruction else ()
        messages = (*system, *before, {**request, "content": body})
        return Prompt(id, self.name, messages=messages, reference=reference)

    def synthetic(self, seed: int) -> Iterator[tuple[Prompt, str]]:
        """Endless (prompt, response) pairs, to train a small model on.

        Two in five have one constraint less than they might, as replays do that leave one out.

        Raises:
            CreditlibError: `slots` is less than they have constraints.
        """
        if self.slots < MOST:
            raise CreditlibError(
                f"synthetic prompts have up to {MOST} constraints, more than task.slots={self.slots}: set "
                f"task.slots={MOST}"
            )
        for number, example in enumerate(stream(seed)):
            request = ({"role": "user", "content": example.request},)
            texts = (None,) * len(example.constraints)
            row = Row(request, example.constraints, listed=True, texts=texts, target=example.answer)
            yield self.compose(row, id=f"{self.name}/synthetic/{number}"), example.answer

    # ------------------------------------------------------------------ how to judge

    @property
    def reward_names(self) -> tuple[str, ...]:
        return tuple(f"constraint_{number}" for number in range(1, self.slots + 1))

    @property
    def bounds(self) -> Mapping[str, tuple[float, float]]:
        return dict.fromkeys(self.reward_names, (0.0, 1.0))

    def verify(self, prompts: Sequence[Prompt], texts: Sequence[str]) -> list[dict[str, Check]]:
        """Judge each response against its prompt's constraints, in parallel worker processes.

        The constraint's id is the kind of its check; slots that the prompt leaves empty have none.
        """
        jobs = [
            Job(response=text, constraints=prompt.reference["constraints"])
            for prompt, text in zip(prompts, texts, strict=True)
        ]
        empty = dict.fromkeys(self.reward_names, EMPTY)
        return [
            empty
            | {
                slot: replace(check, kind=own["id"])
                for (slot, own), check in zip(self._slots(prompt).items(), found, strict=True)
            }
            for prompt, found in zip(prompts, self._verifier.check_many(jobs), strict=True)
        ]

    def parts(self, text: str) -> list[Span]:
        """What the characters of a response are: titles, placeholders, bullets, dividers, words, marks."""
        return [Span(*match.span(), match.lastgroup) for match in _PARTS.finditer(text) if match.lastgroup]

    # ------------------------------------------------------------------ inside

    @property
    def _folder(self) -> str:
        return str(EMBEDDED) if self.data is None else self.data

    @property
    def _sources(self) -> dict[str, str]:
        """Each split's file or hub id."""
        return sources_of(self.train, self.evaluation)

    @cached_property
    def _verifier(self) -> InstructionVerifier:
        return InstructionVerifier(
            mode=self.mode,
            loose=self.loose,
            workers=self.workers,
            seconds=self.seconds,
            wall_seconds=self.wall_seconds,
        )

    def _slots(self, prompt: Prompt) -> dict[str, Constraint]:
        """The prompt's constraints by the names of their rewards."""
        return dict(zip(self.reward_names, prompt.reference["constraints"], strict=False))

    def _check_slots(self, source: str, rows: Sequence[Row]) -> None:
        most, number = max((len(row.constraints), -index) for index, row in enumerate(rows, start=1))
        if most > self.slots:
            many = sum(len(row.constraints) > self.slots for row in rows)
            raise CreditlibError(
                f"{source}: {many} of {len(rows)} prompts have more constraints than "
                f"task.slots={self.slots}; number {-number} has most. Set task.slots={most}, or shorten "
                "their lists"
            )

    def _tell_unverifiable(self, source: str, rows: Sequence[Row]) -> None:
        found = Counter[str]()
        for row in rows:
            for own in row.constraints:
                if problem := problem_of(own, self.mode):
                    found[problem if repr(own["id"]) in problem else f"{own['id']}: {problem}"] += 1
        if not found:
            return
        why = "; ".join(f"{problem} ({count})" for problem, count in found.most_common(_SHOWN))
        if len(found) > _SHOWN:
            why += f"; and {len(found) - _SHOWN} other reasons"
        every = sum(len(row.constraints) for row in rows)
        if found.total() == every:
            raise CreditlibError(f"{source}: none of its {every} constraints can be checked: {why}")
        warnings.warn(
            f"{source}: {found.total()} of {every} constraints cannot be checked, and their rewards do not "
            f"apply: {why}",
            stacklevel=3,
        )


def _worded(constraint: Constraint, wording: Wording) -> str | None:
    """The constraint in words; None where it cannot be checked."""
    try:
        kind, arguments = read_constraint(constraint)
    except UnverifiableError:
        return None
    compact = short(kind.id, arguments) if wording == "short" else None
    return compact or kind.wording(arguments)
