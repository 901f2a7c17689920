"""tokens.parquet and responses.jsonl: of some responses, what each token earned from each reward, and why.

A few responses of a few steps, which are chosen in advance, so the size is bounded. docs/runs.md says what
the columns and keys mean.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from creditlib.rollout.offsets import text_of, token_offsets, token_parts, tokens_in
from creditlib.trainer.files import RESPONSES, TOKENS, finite, write_atomically
from creditlib.types import (
    Advantages,
    CreditlibError,
    Dissects,
    ReplayTask,
    RewardTable,
    Rollout,
    Scores,
    Task,
    TokenCredit,
)


class Ledger:
    """Writes both files. Where it cannot, that is said once, tried again at the next step, and ends no run.

    With several processes the first one writes, about the responses that it sampled itself.

    Args:
        folder: the run's.
        names: of the rewards.
        tokenizer: the policy's.
        steps: the steps to log, see `spread_steps`.
        responses: most responses a step.
        say: tells a person why nothing is written.
    """

    def __init__(
        self,
        folder: Path,
        names: Sequence[str],
        tokenizer: PreTrainedTokenizerBase,
        *,
        steps: Collection[int],
        responses: int,
        say: Callable[[str], None],
    ) -> None:
        self._tokens, self._responses = folder / TOKENS, folder / RESPONSES
        self._schema = token_schema(names)
        self._tokenizer = tokenizer
        self._steps, self._count = frozenset(steps), responses
        self._say, self._said = say, False

    def due(self, step: int) -> bool:
        return step in self._steps

    def rewind(self, step: int) -> None:
        """Forget what came after `step`. Negative: forget all."""
        self._put(step, [], [])

    def write(
        self,
        step: int,
        rollout: Rollout,
        table: RewardTable,
        advantages: Advantages,
        credit: TokenCredit,
        scores: Scores,
        advantages_BT: Tensor,
        task: Task,
    ) -> None:
        """Log some responses of a step, in place of what the files hold of it and of later ones.

        Args:
            step: of the run.
            rollout: this process's responses, and so all that follow.
            table: their rewards.
            advantages: what each earned.
            credit: how that went to the tokens.
            scores: their old log-probs; the sampler's stand in where there are none.
            advantages_BT: of the tokens, as the loss takes them.
            task: labels the characters of a response and words what replays tell, where it can.
        """
        logps_BT = rollout.sampler_logps_BT if scores.old_logps_BT is None else scores.old_logps_BT
        values = _Step(
            step, rollout, table, advantages, credit, logps_BT, advantages_BT, task, self._tokenizer
        )
        rows = choose_rows(advantages.total_B.tolist(), rollout.group_B.tolist(), self._count)
        tokens = [pa.Table.from_pydict(values.tokens(row), schema=self._schema) for row in rows]
        self._put(step - 1, tokens, [values.response(row) for row in rows])

    def _put(self, last: int, tokens: Sequence[pa.Table], responses: Sequence[Mapping[str, Any]]) -> None:
        """Keep the rows of steps up to `last` and put new ones behind them."""
        try:
            lines, table = _read_lines(self._responses), _read_tokens(self._tokens, self._schema)
            kept = [line for line, step in lines if step <= last]
            if responses or len(kept) < len(lines):
                kept += [json.dumps(finite(response)) + "\n" for response in responses]
                write_atomically(self._responses, "".join(kept))
            kept_table = table.filter(pc.field("step") <= last)
            if tokens or len(kept_table) < len(table):
                content = io.BytesIO()
                pq.write_table(pa.concat_tables([kept_table, *tokens]), content, compression="zstd")
                write_atomically(self._tokens, content.getvalue())
        except CreditlibError as error:
            if not self._said:
                self._say(f"the token ledger is not written: {error}; training goes on")
            self._said = True


def spread_steps(total: int, count: int) -> frozenset[int]:
    """`count` of the steps 1 to `total`, evenly spread, the first and the last of them included."""
    count = min(count, total)
    return frozenset(total - i * (total - 1) // max(count - 1, 1) for i in range(count))


def choose_rows(total_B: Sequence[float], group_B: Sequence[int], count: int) -> list[int]:
    """At most `count` responses to look at, in order.

    Each group gives its best and its worst by advantage, then each its second best and second worst, and so
    on. Groups whose responses all earn the same show nothing, so they come last.
    """
    groups: dict[int, list[int]] = {}
    for row in sorted(range(len(total_B)), key=lambda row: -total_B[row]):
        groups.setdefault(group_B[row], []).append(row)
    turns: list[tuple[bool, int, int, list[int]]] = []
    for group, rows in groups.items():
        same = total_B[rows[0]] == total_B[rows[-1]]
        for turn in range(math.ceil(len(rows) / 2)):
            turns.append((same, turn, group, list(dict.fromkeys((rows[turn], rows[-1 - turn])))))
    chosen = [row for _, _, _, pair in sorted(turns) for row in pair]
    return sorted(chosen[:count])


def token_schema(names: Sequence[str]) -> pa.Schema:
    """Columns of tokens.parquet for rewards of these names."""
    fields = [
        ("step", pa.int32()),
        ("prompt", pa.string()),
        ("response", pa.int32()),
        ("position", pa.int32()),
        ("token_id", pa.int32()),
        ("token", pa.string()),
        ("start", pa.int32()),
        ("end", pa.int32()),
        ("logp", pa.float32()),
        ("advantage", pa.float32()),
        ("part", pa.string()),
    ]
    for name in names:
        fields += [(f"{kind}/{name}", pa.float32()) for kind in ("relevance", "weight", "advantage")]
        fields.append((f"read/{name}", pa.bool_()))
    return pa.schema(fields)


@dataclass(frozen=True)
class _Step:
    """What a step's rows are made of."""

    step: int
    rollout: Rollout
    table: RewardTable
    advantages: Advantages
    credit: TokenCredit
    logps_BT: Tensor
    advantages_BT: Tensor
    task: Task
    tokenizer: PreTrainedTokenizerBase

    def tokens(self, row: int) -> dict[str, Any]:
        """Columns of `token_schema`, for the tokens of one response."""
        text = self.rollout.texts[row]
        mask_T = self.rollout.mask_BT[row].cpu().numpy()
        ids = self.rollout.ids_BT[row].cpu().numpy()[mask_T].tolist()
        offsets = token_offsets(self.tokenizer, ids, text)
        parts = self.task.parts(self.rollout.opened + text) if isinstance(self.task, Dissects) else ()
        columns: dict[str, Any] = {
            **{name: [value] * len(ids) for name, value in self._key(row).items()},
            "position": range(len(ids)),
            "token_id": ids,
            "token": [text_of(self.tokenizer, [token]) for token in ids],
            "start": [start for start, _ in offsets],
            "end": [end for _, end in offsets],
            "logp": _floats(self.logps_BT[row])[mask_T],
            "advantage": _floats(self.advantages_BT[row])[mask_T],
            "part": token_parts(offsets, self.rollout.in_texts(parts), len(text)),
        }
        relevance_BKT = self.credit.relevance_BKT
        for k, name in enumerate(self.table.names):
            weights_T = _floats(self.credit.weights_BKT[row, k])[mask_T]
            read = self.table.checks[row][k].spans
            if relevance_BKT is None:
                columns[f"relevance/{name}"] = np.full(len(ids), np.nan, np.float32)
            else:
                columns[f"relevance/{name}"] = _floats(relevance_BKT[row, k])[mask_T]
            columns[f"weight/{name}"] = weights_T
            columns[f"advantage/{name}"] = self.advantages.by_reward_BK[row, k].item() * weights_T
            columns[f"read/{name}"] = tokens_in(offsets, read, len(text)) if read else [None] * len(ids)
        return columns

    def response(self, row: int) -> dict[str, Any]:
        """One line of responses.jsonl."""
        group = int(self.rollout.group_B[row])
        information: Mapping[str, str] = {}
        if isinstance(self.task, ReplayTask):
            information = self.task.information(self.rollout.prompts[group], self.table.checks_of(row))
        rewards = {}
        for k, name in enumerate(self.table.names):
            check = self.table.checks[row][k]
            rewards[name] = {
                "kind": self.table.kind_BK[row][k],
                "score": check.score,
                "best": self.table.bounds_K2[k, 1].item(),
                "advantage": self.advantages.by_reward_BK[row, k].item(),
                "reason": check.reason,
                "information": information.get(name),
                "flags": list(check.flags),
                "spans": [list(span) for span in check.spans],
                "measure": self.credit.measure_K[k] if self.credit.measure_K else "",
                **{note: own_BK[row, k].item() for note, own_BK in self.credit.notes_BK.items()},
            }
        return {
            **self._key(row),
            "question": text_of(self.tokenizer, self.rollout.prompt_ids[group]),
            "text": self.rollout.texts[row],
            "finish": self.rollout.finish[row],
            "rewards": rewards,
            "advantage": self.advantages.total_B[row].item(),
            "offset": self.advantages.offset_B[row].item(),
        }

    def _key(self, row: int) -> dict[str, Any]:
        prompt, sample = self.rollout.names[row]
        return {"step": self.step, "prompt": prompt, "response": sample}


def _floats(values_T: Tensor) -> NDArray[np.float32]:
    return np.asarray(values_T.detach().float().cpu().numpy())


def _read_lines(path: Path) -> list[tuple[str, int]]:
    """Each line with its step."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        return [(line, json.loads(line)["step"]) for line in lines]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CreditlibError(f"cannot read {path}: {error}") from error


def _read_tokens(path: Path, schema: pa.Schema) -> pa.Table:
    try:
        table = pq.read_table(path, partitioning=None)  # a folder named seed=0 is no column
    except FileNotFoundError:
        return schema.empty_table()
    except (OSError, pa.ArrowException) as error:
        raise CreditlibError(f"cannot read {path}: {error}") from error
    if not table.schema.equals(schema):
        raise CreditlibError(f"{path} has columns of other rewards")
    return table
