"""Text-to-SQL: write the query that answers a question about a database.

Three rewards, each 0 or 1: `format` (the query stands between the tags), `executable` (it runs) and
`execution` (it returns what the reference query returns). `verifiers.sql` judges; this module asks.

A prompt is made of sections. The schema comes first, so that all prompts about a database begin with the same
tokens::

    <instruction>
    Schema:
     singer(id number primary key, name text 'ana bell' 'tom reed', age number 23 41)
    Format: <sql>one SQLite query</sql>
    Question: how many singers are older than 30?

A replay tells what a reward's verifier goes by: the format rests on the template, executability on the
schema, execution on the reference query. `replay` words it, with the facts in braces::

    {format}   the template                  {schema}   the schema
    {query}    the reference query           {message}  what SQLite said to this response

A fact that `replay` restates is nowhere else in the prompts of replays, so leaving it out removes what it
says. A sentence with the schema or the template stands where that stands in the prompt as asked (with both:
where the first that it names stands), every other sentence at the end.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Literal, get_args

from creditlib.types import Check, CreditlibError, MissingDataError, Prompt, Span
from tasks.data.text2sql.generate import stream
from tasks.replays import check_replay, placed, sometimes_replayed, worded
from tasks.settings import Style, expect_at_least, expect_one_of, expect_positive
from tasks.splits import VerifierOnDemand, expect_files, source_of, sources_of
from tasks.sql_data import Layout, Row, find_databases, read_rows, read_schemas, spread
from tasks.sql_schema import Schema, serialise, with_examples
from verifiers.sql import Job, Limits, SqlVerifier
from verifiers.sql.parts import parts

Mode = Literal["spider", "bird"]

EMBEDDED = Path(__file__).parent / "data" / "text2sql"
REWARDS = ("format", "executable", "execution")
SCHEMA, FORMAT = "Schema:\n{schema}", "Format: {format}"  # as every prompt says them
REPLAY = {"format": FORMAT, "executable": SCHEMA, "execution": "Reference: {query}"}
FACTS = ("format", "schema", "query", "message")
IN_PROMPT = {"schema": SCHEMA, "format": FORMAT}  # facts that a prompt states as asked, in this order


@dataclass(frozen=True)
class Text2SQL(VerifierOnDemand):
    """The task with its settings; ``configs/task/text2sql.yaml`` says what each is for.

    Raises:
        MissingDataError: `data` or a file named in it is missing.
        CreditlibError: a setting has no such value.
    """

    name: str = "text2sql"
    data: str | None = None
    layout: Layout = "spider"
    train: str | None = "train.json"
    evaluation: Mapping[str, str] = field(
        default_factory=lambda: {"new_questions": "new_questions.json", "new_databases": "new_databases.json"}
    )
    tables: Sequence[str] = ("tables.json",)
    databases: Sequence[str] = ("database",)
    limit: int | None = None
    mode: Mode = "spider"
    tags: Sequence[str] = ("<sql>", "</sql>")
    workers: int = 2
    steps: int = Limits.steps
    seconds: float = Limits.seconds
    wall_seconds: float = Limits.wall_seconds
    style: Style = "chat"
    instruction: str = "Write one SQLite query that answers the question."
    example_values: int = 2
    schema_max_chars: int = 6000
    replay: Mapping[str, str | None] = field(default_factory=lambda: dict(REPLAY))

    def __post_init__(self) -> None:
        expect_one_of("layout", self.layout, get_args(Layout))
        expect_one_of("mode", self.mode, get_args(Mode))
        expect_one_of("style", self.style, get_args(Style))
        if len(self.tags) != 2 or not all(self.tags) or self.tags[0] == self.tags[1]:
            raise CreditlibError(f"expected task.tags to be two different texts, found {list(self.tags)!r}")
        expect_at_least("limit", self.limit, 1)
        expect_at_least("example_values", self.example_values, 0)
        expect_at_least("schema_max_chars", self.schema_max_chars, 1)
        expect_at_least("workers", self.workers, 1)
        expect_at_least("steps", self.steps, 1)
        expect_positive("seconds", self.seconds)
        expect_positive("wall_seconds", self.wall_seconds)
        check_replay(self.replay, REWARDS, FACTS)
        expect_files(
            self._folder,
            (*self._files.values(), *self.tables),
            data="text-to-SQL",
            embedded="task=text2sql task.data=null",
            settings="task.train, task.evaluation or task.tables",
        )

    # ------------------------------------------------------------------ what to ask

    @property
    def eval_splits(self) -> tuple[str, ...]:
        return tuple(self.evaluation)

    def prompts(self, split: str) -> list[Prompt]:
        """The prompts of ``"train"`` or of a split in `evaluation`, in the file's order.

        Raises:
            CreditlibError: no such split.
            MissingDataError: a row lacks something, or its database or schema is missing or unreadable.
        """
        rows = read_rows(self._folder / source_of(split, self._files, self.name), self.layout)
        chosen = spread(len(rows), self.limit if split == "train" else None)
        folders = [self._folder / name for name in self.databases]
        paths = find_databases((rows[index].db_id for index in chosen), folders)
        schemas = {db_id: self._schema_text(db_id, path) for db_id, path in paths.items()}
        prompts = []
        for index in chosen:
            row = rows[index]
            prompt_id = f"{self.name}/{split}/{index}"
            prompts.append(self.compose(row, schemas[row.db_id], id=prompt_id, database=paths[row.db_id]))
        return prompts

    def compose(self, row: Row, schema: str, *, id: str, database: Path | None = None) -> Prompt:
        """The prompt for one question about a database that `schema` describes (see `describe`).

        Without a `database` the prompt can be asked and trained on, not verified.
        """
        reference = {
            "db_id": row.db_id,
            "database": None if database is None else str(database),
            "gold": row.sql,
            "question": row.question,
            "evidence": row.evidence,
            "schema": schema,
        }
        facts = self._facts(reference)
        return self._compose(id, reference, [sentence.format(**facts) for sentence in IN_PROMPT.values()], [])

    def describe(self, schema: Schema) -> str:
        """The schema as prompts of this task show it."""
        return serialise(schema, example_values=self.example_values, max_chars=self.schema_max_chars)

    def target(self, prompt: Prompt) -> str:
        """The reference query between the tags."""
        return self._tagged(prompt.reference["gold"])

    def information(self, prompt: Prompt, checks: Mapping[str, Check]) -> dict[str, str]:
        """What each reward's verifier went by in judging a response, in the words of `replay`."""
        executable = checks.get("executable")
        facts = self._facts(prompt.reference, message=(executable and executable.info) or "")
        return worded(self.replay, facts)

    def render(self, prompt: Prompt, information: Mapping[str, str]) -> Prompt:
        """`prompt` with the given rewards' information, as `information` words it, and no others'."""
        facts = self._facts(prompt.reference)
        stated = {fact: sentence.format(**facts) for fact, sentence in IN_PROMPT.items()}
        places, end = placed(self.replay, information, stated)
        return self._compose(prompt.id, prompt.reference, [*chain(*places.values())], end)

    def _facts(self, reference: Mapping[str, Any], message: str = "") -> dict[str, str]:
        """The facts by name; `message` is SQLite's, on a response."""
        return {
            "format": self._tagged("one SQLite query"),
            "schema": reference["schema"],
            "query": reference["gold"],
            "message": message,
        }

    def _compose(
        self, id: str, reference: Mapping[str, Any], before: Sequence[str], after: Sequence[str]
    ) -> Prompt:
        """The prompt from its question and what stands before and after it."""
        hint = reference["evidence"]
        asked = [*([f"Hint: {hint}"] if hint else []), f"Question: {reference['question']}"]
        # What comes last is shared least: all before it begins like the prompt as it was asked.
        body = "\n".join([*before, *asked, *after])
        if self.style == "text":
            text = "\n".join(part for part in (self.instruction, body, "Answer:\n") if part)
            return Prompt(id, self.name, text=text, reference=reference)
        system = ({"role": "system", "content": self.instruction},) if self.instruction else ()
        messages = (*system, {"role": "user", "content": body})
        return Prompt(id, self.name, messages=messages, reference=reference)

    def synthetic(self, seed: int) -> Iterator[tuple[Prompt, str]]:
        """Endless (prompt, response) pairs on invented databases, to train a small model on; not verifiable.

        Three in five are prompts as they are asked; the others tell everything, or everything but one
        reward's information, as replays do.
        """
        generator = random.Random(seed)
        for number, example in enumerate(stream(seed)):
            row = Row(example.schema.db_id, example.question, example.sql)
            prompt = self.compose(row, self.describe(example.schema), id=f"{self.name}/synthetic/{number}")
            yield sometimes_replayed(self, prompt, generator), self.target(prompt)

    # ------------------------------------------------------------------ how to judge

    @property
    def reward_names(self) -> tuple[str, ...]:
        return REWARDS

    @property
    def bounds(self) -> Mapping[str, tuple[float, float]]:
        return dict.fromkeys(REWARDS, (0.0, 1.0))

    def verify(self, prompts: Sequence[Prompt], texts: Sequence[str]) -> list[dict[str, Check]]:
        """Judge each response against its prompt's reference, in parallel worker processes."""
        jobs = [
            Job(response=text, database=prompt.reference["database"], gold=prompt.reference["gold"])
            for prompt, text in zip(prompts, texts, strict=True)
        ]
        return self._verifier.check_many(jobs)

    def parts(self, text: str) -> list[Span]:
        """What the characters of a response are: tags, keywords, tables, columns, values, operators."""
        opening, closing = self.tags
        return parts(text, (opening, closing))

    # ------------------------------------------------------------------ inside

    @property
    def _folder(self) -> Path:
        return EMBEDDED if self.data is None else Path(self.data).expanduser()

    @property
    def _files(self) -> dict[str, str]:
        """Each split's file."""
        return sources_of(self.train, self.evaluation)

    @cached_property
    def _schemas(self) -> dict[str, Schema]:
        return read_schemas(self._folder / name for name in self.tables)

    @cached_property
    def _verifier(self) -> SqlVerifier:
        opening, closing = self.tags
        limits = Limits(steps=self.steps, seconds=self.seconds, wall_seconds=self.wall_seconds)
        return SqlVerifier(mode=self.mode, tags=(opening, closing), workers=self.workers, limits=limits)

    def _schema_text(self, db_id: str, path: Path) -> str:
        if db_id not in self._schemas:
            raise MissingDataError(
                f"no schema for database {db_id} in {', '.join(self.tables)}. Add it, or change task.tables."
            )
        return self.describe(with_examples(self._schemas[db_id], path, self.example_values))

    def _tagged(self, sql: str) -> str:
        return f"{self.tags[0]}{sql}{self.tags[1]}"
