"""Prompts and preference pairs from files and `datasets` ids, in the formats that people publish them in.

A source is a file or a data set of the hub (`tasks.sources`). Pairs are rows of any of these forms::

    {"prompt": text or messages, "chosen": text or messages, "rejected": ...}
    {"chosen": messages, "rejected": messages}          the messages before the last are the prompt
    {"chosen": "\\n\\nHuman: ... \\n\\nAssistant: ...", "rejected": ...}                    HH-RLHF
    {"instruction": text, "output_1": text, "output_2": text, "preference": 1 or 2}         AlpacaEval
    {"input": text, "output_1": text, "output_2": text, "label": 1 or 2}                    LLMBar
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from creditlib.types import CreditlibError, Message, MissingDataError
from tasks.sources import Row, read_rows

Messages = tuple[Message, ...]

_TURN = re.compile(r"\n\n(Human|Assistant):")
_ROLES = {"Human": "user", "Assistant": "assistant"}


@dataclass(frozen=True)
class Pair:
    """Two answers to a prompt, of which people preferred one."""

    messages: Messages
    chosen: str
    rejected: str


@dataclass(frozen=True)
class Pairs:
    """Pairs of one or more sources, split by prompt.

    Attributes:
        train: to learn from.
        held_out: whose prompts are not among those of `train`.
        dropped: why rows gave no pair -> how many.
    """

    train: Sequence[Pair]
    held_out: Sequence[Pair]
    dropped: Mapping[str, int]


class PreferencePairs:
    """Where preference pairs come from, and how they are split.

    Args:
        sources: files or hub ids to learn from.
        held_out: files or hub ids to measure on; none: a share of the prompts of `sources`.
        share: that share.
        data: folder that names of files are relative to.
        max_chars: longest answer; pairs with a longer one are left out.
        limit: so many training pairs at most; None: all.

    Raises:
        MissingDataError: a source that is not there or cannot be read, or that has no pairs.
    """

    def __init__(
        self,
        *,
        sources: tuple[str, ...],
        held_out: tuple[str, ...] = (),
        share: float = 0.2,
        data: str | None = None,
        max_chars: int = 4000,
        limit: int | None = None,
    ) -> None:
        if not sources:
            raise MissingDataError(
                "pairs.sources is empty: name files or hub ids (owner/name:split) with pairs"
            )
        if not held_out and not 0 < share < 1:
            raise CreditlibError(f"pairs.share={share}: expected a share between 0 and 1 to hold out")
        if limit is not None and limit < 1:
            raise CreditlibError(f"pairs.limit={limit}: expected at least 1, or null for all")
        self._sources, self._held_out, self._share = tuple(sources), tuple(held_out), share
        self._data, self._max_chars, self._limit = data, max_chars, limit

    def load(self) -> Pairs:
        """Read all sources."""
        dropped: Counter[str] = Counter()
        train = self._read(self._sources, dropped)
        if self._held_out:
            held_out = self._read(self._held_out, dropped)
            asked = {_asked(pair.messages) for pair in held_out}
            overlapping = [pair for pair in train if _asked(pair.messages) in asked]
            if overlapping:
                dropped["its prompt is held out"] += len(overlapping)
            train = [pair for pair in train if _asked(pair.messages) not in asked]
        else:
            read = train
            train, held_out = split_by_prompt(read, self._share)
            if read and not held_out:
                raise MissingDataError(
                    f"all {len(read)} pairs are of one prompt, so none can be held out: name other "
                    "sources, or pairs.held_out"
                )
        for name, pairs in (("training", train), ("held-out", held_out)):
            if not pairs:
                reasons = (
                    "; ".join(f"{count} rows: {why}" for why, count in dropped.most_common()) or "no rows"
                )
                raise MissingDataError(
                    f"there are no {name} pairs in {', '.join(self._sources + self._held_out)}: {reasons}"
                )
        if self._limit is not None:
            train = train[: self._limit]
        return Pairs(train, held_out, dict(dropped))

    def _read(self, sources: Sequence[str], dropped: Counter[str]) -> list[Pair]:
        found: list[Pair] = []
        for source in sources:
            for _, row in read_rows(source, self._data):
                pair = "no JSON object" if row is None else as_pair(row)
                if isinstance(pair, Pair) and max(len(pair.chosen), len(pair.rejected)) > self._max_chars:
                    pair = f"an answer of more than {self._max_chars} characters"
                if isinstance(pair, Pair):
                    found.append(pair)
                else:
                    dropped[pair] += 1
        return found


def split_by_prompt(pairs: Sequence[Pair], share: float) -> tuple[list[Pair], list[Pair]]:
    """Training pairs and `share` held out, so that no prompt is on both sides. The same split each time."""
    import random

    asked = sorted({_asked(pair.messages) for pair in pairs})
    random.Random("preference pairs").shuffle(asked)
    held = set(asked[: max(1, round(share * len(asked)))]) if len(asked) > 1 else set()
    return (
        [pair for pair in pairs if _asked(pair.messages) not in held],
        [pair for pair in pairs if _asked(pair.messages) in held],
    )


def as_pair(row: Row) -> Pair | str:
    """The pair that a row is, or why it is none."""
    try:
        found = _compared(row) if "output_1" in row else _chosen(row)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        return f"fields that are missing or of another form ({type(error).__name__}: {error})"
    if isinstance(found, str):
        return found
    if found.chosen.strip() == found.rejected.strip():
        return "both answers are the same"
    return found


def _compared(row: Row) -> Pair | str:
    """AlpacaEval's and LLMBar's form."""
    verdict = row["preference"] if "preference" in row else row["label"]
    if verdict not in (1, 2) or isinstance(verdict, bool):
        return "a tie, or no verdict"
    asked = _instruction(row) if "instruction" in row else _text(row["input"])
    answers = _text(row["output_1"]), _text(row["output_2"])
    chosen, rejected = answers if verdict == 1 else answers[::-1]
    return Pair(({"role": "user", "content": asked},), chosen, rejected)


def _chosen(row: Row) -> Pair | str:
    both = [_turns(row[side]) for side in ("chosen", "rejected")]
    if row.get("prompt") is not None:
        messages = as_messages(row["prompt"])
        answers = [turns[-1]["content"] for turns in both]
    else:
        if min(map(len, both)) < 2:
            raise ValueError("no prompt")
        messages = both[0][:-1]
        if _asked(messages) != _asked(both[1][:-1]):
            return "the two answers follow other conversations"
        answers = [turns[-1]["content"] for turns in both]
    if {turns[-1]["role"] for turns in both} != {"assistant"}:
        raise ValueError("the last turn is not the assistant's")
    return Pair(messages, answers[0], answers[1])


def _turns(said: Any) -> Messages:
    """Messages, a conversation in HH-RLHF's form, or an answer alone."""
    if not isinstance(said, str):
        return as_messages(said)
    parts = _TURN.split(said)
    if parts[0] or len(parts) == 1:  # an answer may quote a dialogue
        return ({"role": "assistant", "content": said},)
    return tuple(
        {"role": _ROLES[who], "content": text.strip()}
        for who, text in zip(parts[1::2], parts[2::2], strict=True)
    )


def as_messages(asked: Any) -> Messages:
    """A text or a list of messages as messages.

    Raises:
        TypeError, ValueError, KeyError: it is neither.
    """
    if isinstance(asked, str):
        return ({"role": "user", "content": asked},)
    if not asked:
        raise ValueError("no messages")
    return tuple({"role": _text(message["role"]), "content": _text(message["content"])} for message in asked)


def as_prompt(row: Row) -> Messages:
    """The conversation that a row asks to be continued: under ``prompt``, ``messages``, ``instruction`` (with
    ``input``), ``question``, ``turns`` (the first of them), or what stands before a chosen answer.

    Raises:
        TypeError, ValueError, KeyError, IndexError: none of these.
    """
    messages = _asked_in(row)
    if messages[-1:] and messages[-1]["role"] == "assistant":
        messages = messages[:-1]
    if not messages:
        raise ValueError("no messages")
    return messages


def _asked_in(row: Row) -> Messages:
    if row.get("prompt") is not None:
        return as_messages(row["prompt"])
    if row.get("messages") is not None:
        return as_messages(row["messages"])
    if row.get("instruction") is not None:
        return as_messages(_instruction(row))
    if row.get("turns") is not None:
        first = row["turns"][0]
        return as_messages(first if isinstance(first, str) else first["content"])
    return _turns(row["chosen"]) if row.get("chosen") is not None else as_messages(row["question"])


def _instruction(row: Row) -> str:
    """With the input that it speaks of, where there is one."""
    more = row.get("input")
    return _text(row["instruction"]) + (f"\n\n{_text(more)}" if more else "")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a text, found {type(value).__name__}")
    return value


def _asked(messages: Messages) -> str:
    return json.dumps([[message["role"], message["content"]] for message in messages])
