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
from string import Formatter
from typing import Any, Literal, get_args

from creditlib.types import Check, CreditlibError, MissingDataError, Prompt, Span
from tasks.data.text2sql.generate import stream
from tasks.sql_data import Layout, Row, find_databases, read_rows, read_schemas, spread
from tasks.sql_schema import Schema, serialise, with_examples
from verifiers.sql import Job, Limits, SqlVerifier
from verifiers.sql.parts import parts

Mode = Literal["spider", "bird"]
Style = Literal["chat", "text"]

EMBEDDED = Path(__file__).parent / "data" / "text2sql"
REWARDS = ("format", "executable", "execution")
SCHEMA, FORMAT = "Schema:\n{schema}", "Format: {format}"  # as every prompt says them
REPLAY = {"format": FORMAT, "executable": SCHEMA, "execution": "Reference: {query}"}
FACTS = ("format", "schema", "query", "message")
IN_PROMPT = {"schema": SCHEMA, "format": FORMAT}  # facts that a prompt states as asked, in this order


@dataclass(frozen=True)
class Text2SQL:
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
        for setting, value, allowed in (
            ("layout", self.layout, get_args(Layout)),
            ("mode", self.mode, get_args(Mode)),
            ("style", self.style, get_args(Style)),
        ):
            if value not in allowed:
                raise CreditlibError(
                    f"expected task.{setting} to be one of {', '.join(allowed)}; found {value!r}"
                )
        if len(self.tags) != 2 or not all(self.tags) or self.tags[0] == self.tags[1]:
            raise CreditlibError(f"expected task.tags to be two different texts, found {list(self.tags)!r}")
        for bounded, number, least in (
            ("limit", self.limit, 1),
            ("example_values", self.example_values, 0),
            ("schema_max_chars", self.schema_max_chars, 1),
            ("workers", self.workers, 1),
            ("steps", self.steps, 1),
        ):
            if number is not None and number < least:
                raise CreditlibError(f"expected task.{bounded} to be at least {least}, found {number}")
        for limit, seconds in (("seconds", self.seconds), ("wall_seconds", self.wall_seconds)):
            if seconds <= 0:
                raise CreditlibError(f"expected task.{limit} to be more than 0, found {seconds}")
        if unknown := set(self.replay) - set(REWARDS):
            raise CreditlibError(f"task.replay.{min(unknown)}: no such reward, only {', '.join(REWARDS)}")
        for reward, wording in self._wordings.items():
            known = ", ".join(f"{{{fact}}}" for fact in FACTS)
            try:
                facts = _mentioned(wording)
                wording.format(**dict.fromkeys([*facts, *FACTS], ""))
            except (ValueError, TypeError, LookupError, AttributeError) as error:
                raise CreditlibError(
                    f"task.replay.{reward}: {error} in {wording!r}; facts stand in braces ({known}), and a "
                    "brace itself is written twice"
                ) from None
            if unknown := set(facts) - set(FACTS):
                raise CreditlibError(
                    f"task.replay.{reward}: {{{min(unknown)}}} is no fact; there are {known}"
                )
        if "train" in self.evaluation:
            raise CreditlibError("task.evaluation: 'train' is the training split's name, choose another")
        if not self._folder.is_dir():
            raise MissingDataError(
                f"expected a folder of text-to-SQL data at {self._folder}, found none. "
                "Set task.data to it, or task.data=null for the embedded sample."
            )
        for file in (*self._files.values(), *self.tables):
            if not (self._folder / file).is_file():
                raise MissingDataError(
                    f"no file {file} in {self._folder}. Set task.data to the folder that holds it, "
                    "or change its name in task.train, task.evaluation or task.tables."
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
        if split not in self._files:
            raise CreditlibError(
                f"task {self.name} has no split {split!r}, only {', '.join(self._files)}. "
                "Name its file in task.train or task.evaluation."
            )
        rows = read_rows(self._folder / self._files[split], self.layout)
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
        # Without its fact a sentence says nothing.
        return {
            reward: wording.format(**facts)
            for reward, wording in self._wordings.items()
            if all(facts[fact] for fact in _mentioned(wording))
        }

    def render(self, prompt: Prompt, information: Mapping[str, str]) -> Prompt:
        """`prompt` with the given rewards' information, as `information` words it, and no others'."""
        if unknown := set(information) - set(self._wordings):
            raise CreditlibError(
                f"no reward {sorted(unknown)} in task.replay, which words {', '.join(self._wordings)}"
            )
        facts = self._facts(prompt.reference)
        restated = {fact for wording in self._wordings.values() for fact in _mentioned(wording)}
        # What each place of the prompt says: a fact's own place what restates it, the end what restates none.
        places: dict[str, list[str]] = {
            fact: [] if fact in restated else [sentence.format(**facts)]
            for fact, sentence in IN_PROMPT.items()
        }
        end: list[str] = []
        for reward, text in information.items():
            stated = [fact for fact in _mentioned(self._wordings[reward]) if fact in places]
            (places[stated[0]] if stated else end).append(text)
        return self._compose(prompt.id, prompt.reference, [*chain(*places.values())], end)

    def _facts(self, reference: Mapping[str, Any], message: str = "") -> dict[str, str]:
        """The facts by name; `message` is SQLite's, on a response."""
        return {
            "format": self._tagged("one SQLite query"),
            "schema": reference["schema"],
            "query": reference["gold"],
            "message": message,
        }

    @property
    def _wordings(self) -> dict[str, str]:
        """`replay` without the rewards that are not to be replayed."""
        return {reward: wording for reward, wording in self.replay.items() if wording is not None}

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
            if generator.random() < 0.4:
                told = self.information(prompt, {})
                left_out = generator.choice([None, *told])
                prompt = self.render(prompt, {key: text for key, text in told.items() if key != left_out})
            yield prompt, self.target(prompt)

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

    def close(self) -> None:
        """Stop the worker processes; verifying again would start new ones."""
        if "_verifier" in self.__dict__:
            self._verifier.close()
            del self.__dict__["_verifier"]

    # ------------------------------------------------------------------ inside

    @property
    def _folder(self) -> Path:
        return EMBEDDED if self.data is None else Path(self.data).expanduser()

    @property
    def _files(self) -> dict[str, str]:
        """Each split's file."""
        return {**({} if self.train is None else {"train": self.train}), **self.evaluation}

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


def _mentioned(wording: str) -> list[str]:
    """The names in braces."""
    return [name for _, name, _, _ in Formatter().parse(wording) if name is not None]
