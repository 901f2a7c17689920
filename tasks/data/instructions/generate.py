"""Makes the embedded instruction prompts, and an endless stream of pairs to pre-train a small policy on.

``python -m tasks.data.instructions.generate`` writes, beside this file, ``train.jsonl``,
``new_prompts.jsonl`` (of the same kind, none of them in training) and ``new_mixtures.jsonl`` (with
constraints together that training only asks for apart). The same seed gives the same prompts.

Every constraint list can be kept: each row has an answer, ``target``, that keeps all of it, as
`verifiers.instructions` says.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

from tasks.data.instructions.compose import NEW_MIXTURES, Example, compose, draw_kinds
from verifiers.instructions import check

SEED = 20
LEAST, MOST = 5, 13  # constraints a prompt
LONGEST = 190  # characters of an answer: about 60 tokens
SIZES = {"train": 1000, "new_prompts": 200, "new_mixtures": 200}


def stream(seed: int, *, fewer: float = 0.4) -> Iterator[Example]:
    """Endless examples without the mixtures that are held out.

    A share `fewer` of them has one constraint less than a prompt may have, as a prompt of a replay that
    leaves one out: the answer is to show nothing of what is not told.
    """
    rng = Random(seed)
    while True:
        yield _example(rng, rng.randint(LEAST, MOST) - (rng.random() < fewer))


def build(seed: int = SEED) -> dict[str, list[dict[str, Any]]]:
    """The rows of each split."""
    seen: set[str] = set()
    return {split: _rows(Random(f"{seed} {split}"), split, size, seen) for split, size in SIZES.items()}


def _rows(rng: Random, split: str, size: int, seen: set[str]) -> list[dict[str, Any]]:
    """`size` rows, as many with each number of constraints; their answers are not in `seen`."""
    mixtures = sorted(map(sorted, NEW_MIXTURES))
    found: list[dict[str, Any]] = []
    while len(found) < size:
        count = LEAST + len(found) % (MOST - LEAST + 1)
        mixture = mixtures[len(found) % len(mixtures)] if split == "new_mixtures" else None
        example = _example(rng, count, mixture)
        if example.answer not in seen and keeps_all(example):
            seen.add(example.answer)
            found.append(
                {
                    "prompt": example.request,
                    "constraints": list(example.constraints),
                    "target": example.answer,
                }
            )
    return found


def _example(rng: Random, count: int, mixture: Sequence[str] | None = None) -> Example:
    """An example with `count` constraints: with a mixture that is held out, or without any."""
    while True:
        kinds = draw_kinds(rng, count, never=() if mixture else NEW_MIXTURES, asked=mixture or ())
        example = compose(rng, kinds)
        if len(kinds) == count and len(example.answer) <= LONGEST:
            return example


def keeps_all(example: Example) -> bool:
    """Whether the answer keeps every constraint, as a person would say."""
    return all(
        found.score == 1.0 for found in check(example.answer, constraints=example.constraints).values()
    )


def write(folder: Path, seed: int = SEED) -> None:
    """Write the splits into `folder`."""
    for split, rows in build(seed).items():
        _write_rows(folder / f"{split}.jsonl", rows)


def _write_rows(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    write(Path(__file__).parent)
