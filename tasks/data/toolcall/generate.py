"""Makes the embedded tool-calling sample, and an endless stream of examples to pre-train a small policy on.

``python -m tasks.data.toolcall.generate`` writes, beside this file, ``tools.json`` (JSON Schema),
``train.json``, ``new_questions.json`` (about the tools of training) and ``new_tools.json`` (about tools that
training never sees). The same seed gives the same sample.

No leak: no question and no list of calls is in two splits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from random import Random
from typing import Any

from tasks.data.toolcall.invented import invent
from tasks.data.toolcall.known import NEW, TRAINING
from tasks.data.toolcall.model import Tool
from tasks.data.toolcall.questions import Offer, Request, ask
from tasks.toolcall_data import as_lines, signature

SEED = 20
TRAIN = 1800
NEW_QUESTIONS = 300
NEW_TOOLS = 300

NEW_NAMES = frozenset(tool.name for tool in chain(*NEW.values()))


def size(tool: Tool) -> int:
    """Characters that a tool takes in a prompt."""
    return len(signature(tool.function))


# ------------------------------------------------------------------ the endless stream


def stream(seed: int, *, tools: int = 5, questions: int = 8) -> Iterator[Request]:
    """Endless requests for invented tools, `questions` for each set of `tools`. None is called as one of
    the new tools of the sample.
    """
    rng = Random(seed)
    while True:
        made: dict[str, Tool] = {}
        while len(made) < tools:
            tool = invent(rng, held_out=NEW_NAMES)
            made[tool.name] = tool
        offer = Offer(rng, [[tool] for tool in made.values()], size)
        for _ in range(questions):
            yield ask(offer)


# ------------------------------------------------------------------ the embedded sample


def build(seed: int = SEED) -> dict[str, list[Request]]:
    """The requests of each split."""
    train = list(islice(_different(Random(f"{seed} train"), TRAINING), TRAIN))
    known = {key for request in train for key in _keys(request)}
    new = _different(Random(f"{seed} new questions"), TRAINING, known)
    return {
        "train": train,
        "new_questions": list(islice(new, NEW_QUESTIONS)),
        "new_tools": list(islice(_different(Random(f"{seed} new tools"), NEW, known), NEW_TOOLS)),
    }


def _different(
    rng: Random, tools: Mapping[str, Sequence[Tool]], known: Collection[str] = ()
) -> Iterator[Request]:
    """Requests whose questions differ from each other, and from `known` ones in the calls as well."""
    asked: set[str] = set()
    offer = Offer(rng, list(tools.values()), size)
    while True:
        request = ask(offer)
        if request.question not in asked and not any(key in known for key in _keys(request)):
            asked.add(request.question)
            yield request


def _keys(request: Request) -> list[str]:
    """What must not be in two splits: the question without its punctuation, and the calls."""
    return [re.sub(r"\W+", " ", request.question).strip(), *filter(None, [as_lines(request.calls)])]


def write(folder: Path, seed: int = SEED) -> None:
    """Write the sample into `folder`."""
    every = chain(*TRAINING.values(), *NEW.values())
    _write_rows(folder / "tools.json", [tool.function for tool in every])
    for split, requests in build(seed).items():
        _write_rows(folder / f"{split}.json", [row(request) for request in requests])


def row(request: Request) -> dict[str, Any]:
    """A request in the layout `tasks.toolcall_data` calls plain."""
    return {
        "kind": request.kind,
        "tools": [tool.name for tool in request.tools],
        "question": request.question,
        "calls": list(request.calls),
    }


def _write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """One row a line, so that a change of the sample reads well in a diff."""
    path.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    write(Path(__file__).parent)
