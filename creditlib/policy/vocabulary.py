"""Do two models share a vocabulary? What one of them samples is then read by the other token by token."""

from __future__ import annotations

import json
from itertools import takewhile
from typing import Any

_SHOWN = 3  # differences of a kind that are spelled out


def vocabulary_differences(policy: Any, other: Any, rows: int) -> list[str]:
    """What makes `other` read another text than `policy` wrote, in words; empty where nothing does.

    More tokens in `other` are no difference, nor are other roles of special tokens: padding, say.

    Args:
        policy: the policy's tokenizer.
        other: another model's tokenizer.
        rows: of that model's input embeddings.
    """
    own, theirs = policy.get_vocab(), other.get_vocab()
    found = []
    if missing := sorted(own.keys() - theirs.keys(), key=own.__getitem__):
        found.append(
            _list(f"{len(missing)} tokens are missing", [f"{token!r} (id {own[token]})" for token in missing])
        )
    if moved := [token for token in own.keys() & theirs.keys() if own[token] != theirs[token]]:
        moved.sort(key=own.__getitem__)
        shown = [f"{token!r} is {own[token]} and {theirs[token]}" for token in moved]
        found.append(_list(f"{len(moved)} tokens have another id", shown))
    if (most := max(own.values(), default=-1)) >= rows:
        found.append(f"its input embeddings have {rows} rows, but token ids go up to {most}")
    one, another = _model(policy), _model(other)
    if one is not None and another is not None:
        if one.get("type") != another.get("type"):
            found.append(f"the kinds of tokenizer are {one.get('type')} and {another.get('type')}")
        elif (merges := _merges(one)) != (others := _merges(another)):
            same = takewhile(lambda pair: pair[0] == pair[1], zip(merges, others, strict=False))
            place = sum(1 for _ in same)
            found.append(f"the merges differ ({len(merges)} and {len(others)}), from number {place + 1} on")
    # Special or not, a token that was added is never cut into pieces.
    plain = sorted(
        token
        for token in set(policy.all_special_tokens) - set(other.all_special_tokens)
        if token in theirs and theirs[token] not in other.added_tokens_decoder
    )
    if plain:
        found.append(_list(f"{len(plain)} special tokens are plain text there", list(map(repr, plain))))
    return found


def _list(what: str, items: list[str]) -> str:
    rest = "" if len(items) <= _SHOWN else ", ..."
    return f"{what}: {', '.join(items[:_SHOWN])}{rest}"


def _model(tokenizer: Any) -> dict[str, Any] | None:
    """What a fast tokenizer says of its algorithm."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return None
    found: dict[str, Any] = json.loads(backend.to_str())["model"]
    return found


def _merges(model: dict[str, Any]) -> list[tuple[str, ...]]:
    """In order; older files join the two parts with a space."""
    return [
        tuple(merge.split(" ")) if isinstance(merge, str) else tuple(merge)
        for merge in model.get("merges") or ()
    ]
