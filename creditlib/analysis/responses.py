"""Responses from the ledger, chosen to be looked at token by token."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
from numpy.typing import NDArray

from creditlib.analysis.curves import is_number
from creditlib.analysis.localization import Key, logged_responses
from creditlib.analysis.runs import Group, Run, read_lines
from creditlib.trainer.files import RESPONSES, TOKENS

Array = NDArray[np.float32]


@dataclass(frozen=True)
class RewardCredit:
    """One reward of a response: what the verifier said, and where its advantage went (T tokens)."""

    name: str
    kind: str  # what the reward's column means for this response
    score: float | None  # None: does not apply
    best: float | None  # the highest score there is; None: no bound
    advantage: float
    reason: str
    information: str | None  # what a replay tells of it; None: nothing
    flags: tuple[str, ...]
    measure: str  # what the relevance is: a distance, a direction; empty: nothing was computed
    relevance_T: Array  # NaN where it was not computed
    temperature: float | None  # that the allocation took, where there is one
    weight_T: Array
    advantage_T: Array
    read_T: NDArray[np.bool_] | None  # which tokens the verifier read; None where it did not say


@dataclass(frozen=True)
class Response:
    """A logged response. Joined, `pieces` are its text; a token that adds none has the piece ``""``."""

    group: int
    run: Run
    step: int
    prompt: str
    index: int
    question: str
    finish: str
    pieces: tuple[str, ...]  # T
    tokens: tuple[str, ...]  # T
    parts: tuple[str, ...]  # T
    logp_T: Array
    advantage_T: Array
    advantage: float  # of the whole response, as uniform credit would give it to every token
    rewards: tuple[RewardCredit, ...]

    @property
    def moved(self) -> float:
        """How much advantage lies elsewhere than under even credit, in even shares of a token."""
        applying = [own for own in self.rewards if own.score is not None]
        added_T = self.advantage_T - sum((own.advantage_T for own in applying), np.float32(0))
        return math.fsum(
            [
                float(np.nanmean(np.abs(added_T - np.nanmean(added_T)))),
                *(float(np.nanmean(np.abs(own.advantage_T - own.advantage))) for own in applying),
            ]
        )


@dataclass(frozen=True)
class RunLedger:
    """The two files of a run's ledger."""

    group: int
    run: Run
    tokens: pyarrow.Table
    responses: Sequence[Mapping[str, Any]]


def read_ledgers(groups: Sequence[Group]) -> tuple[list[RunLedger], list[str]]:
    """The ledgers of the runs that have one, and what could not be read."""
    notes: list[str] = []
    ledgers = []
    for group, own in enumerate(groups):
        for run in own.runs:
            file = run.folder / TOKENS
            found = read_lines(run.folder / RESPONSES, notes)
            lines = [line for line in found if _is_whole(line)]
            if len(lines) < len(found):
                notes.append(f"{run.folder / RESPONSES}: {len(found) - len(lines)} lines lack something")
            if not (lines and file.is_file()):
                continue
            try:  # without partitioning, or a folder named seed=0 would become a column
                tokens = pyarrow.parquet.read_table(file, partitioning=None)
            except (OSError, pyarrow.ArrowException) as error:
                notes.append(f"{file} cannot be read: {error}")
                continue
            if missing := _columns(lines) - set(tokens.column_names):
                notes.append(f"{file} has no column {min(missing)}, so it is left out")
                continue
            ledgers.append(RunLedger(group, run, tokens, lines))
    return ledgers, notes


def _is_whole(line: Mapping[str, Any]) -> bool:
    """Has a line of responses.jsonl what the page shows."""
    keys = {"step", "prompt", "response", "question", "text", "finish", "rewards", "advantage"}
    own = {"kind", "score", "best", "advantage", "reason", "flags"}
    return (
        keys <= line.keys()
        and is_number(line["advantage"])
        and isinstance(line["rewards"], dict)
        and all(
            isinstance(reward, dict) and own <= reward.keys() and is_number(reward["advantage"])
            for reward in line["rewards"].values()
        )
    )


def _columns(lines: Sequence[Mapping[str, Any]]) -> set[str]:
    """The columns of tokens.parquet that these responses need."""
    rewards = {name for line in lines for name in line["rewards"]}
    plain = {"step", "prompt", "response", "position", "token", "end", "logp", "advantage", "part"}
    return plain | {
        f"{kind}/{name}" for kind in ("relevance", "weight", "advantage", "read") for name in rewards
    }


def choose_responses(ledgers: Sequence[RunLedger], limit: int) -> list[Response]:
    """Up to `limit` responses, as many from each ledger, spread over its steps; from a step those whose
    credit was moved most.
    """
    found = [
        [_response(ledger, *logged) for logged in logged_responses(ledger.tokens, ledger.responses)]
        for ledger in ledgers
    ]
    shares = _shares([len(responses) for responses in found], limit)
    return [response for own, share in zip(found, shares, strict=True) for response in _spread(own, share)]


def _response(ledger: RunLedger, key: Key, rows: Mapping[str, Any], said: Mapping[str, Any]) -> Response:
    rewards = []
    for name, own in said["rewards"].items():
        read = rows[f"read/{name}"]
        rewards.append(
            RewardCredit(
                name=name,
                kind=own["kind"],
                score=own["score"],
                best=own["best"],
                advantage=own["advantage"],
                reason=own["reason"],
                information=own.get("information"),  # an older ledger has none
                flags=tuple(own["flags"]),
                measure=own.get("measure", ""),
                relevance_T=rows[f"relevance/{name}"],
                temperature=own.get("temperature"),
                weight_T=rows[f"weight/{name}"],
                advantage_T=rows[f"advantage/{name}"],
                read_T=None if read[0] is None else read.astype(bool),
            )
        )
    step, prompt, index = key
    return Response(
        group=ledger.group,
        run=ledger.run,
        step=step,
        prompt=prompt,
        index=index,
        question=said["question"],
        finish=said["finish"],
        pieces=_pieces(said["text"], rows["end"]),
        tokens=tuple(rows["token"]),
        parts=tuple(rows["part"]),
        logp_T=rows["logp"],
        advantage_T=rows["advantage"],
        advantage=said["advantage"],
        rewards=tuple(rewards),
    )


def _pieces(text: str, ends: Sequence[int]) -> tuple[str, ...]:
    """Cut the text at the tokens' ends: each character goes to the first token that is part of it."""
    cut = [0, *np.maximum.accumulate(np.minimum(ends, len(text)))]
    cut[-1] = len(text)
    return tuple(text[start:end] for start, end in pairwise(cut))


def _shares(sizes: Sequence[int], limit: int) -> list[int]:
    """Split `limit` over ledgers of these sizes as evenly as they allow, the first ones first."""
    shares = [0] * len(sizes)
    while sum(shares) < min(limit, sum(sizes)):
        open_ = [index for index, size in enumerate(sizes) if shares[index] < size]
        index = min(open_, key=lambda index: shares[index])
        shares[index] += 1
    return shares


def _spread(responses: Sequence[Response], count: int) -> list[Response]:
    """`count` of the responses: the most telling one of each step, then the second of each, and so on; where
    there are more steps than that, steps spread evenly, the first and last among them.
    """
    steps: dict[int, list[Response]] = {}
    for response in responses:
        steps.setdefault(response.step, []).append(response)
    for own in steps.values():
        own.sort(key=lambda response: -response.moved)
    order: list[Response] = []
    rank = 0
    while len(order) < count:
        level = [own[rank] for own in steps.values() if rank < len(own)]
        missing = count - len(order)
        if missing < len(level):
            places = np.linspace(0, len(level) - 1, missing).round().astype(int)
            level = [level[place] for place in places]
        order += level
        rank += 1
    return sorted(order, key=lambda response: (response.step, response.prompt, response.index))
