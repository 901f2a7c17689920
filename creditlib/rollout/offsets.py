"""Which characters of a response each of its tokens wrote.

Sampled ids are never encoded again (token in, token out), so the offsets come from decoding: a token wrote
what the text grows by with it. A token that ends in the middle of a character covers the whole of it, and so
does the token that completes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerBase

from creditlib.types import Span

Offsets = list[tuple[int, int]]

_UNFINISHED = "\ufffd"  # what decoders write for bytes that are no character, or not one yet
# Most tokens to go back for a boundary between characters. A character has 4 bytes and a token at least one,
# so a few are always enough for byte-level vocabularies. Those that fall back to bytes decode a run of them
# as a whole, and a run that is text has a boundary every 4 tokens.
_LOOK_BACK = 16


def text_of(tokenizer: PreTrainedTokenizerBase, ids: Sequence[int]) -> str:
    """The text of `ids`, special tokens included and nothing tidied up."""
    return str(tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False))


def token_offsets(tokenizer: PreTrainedTokenizerBase, ids: Sequence[int], text: str) -> Offsets:
    """Start and end of each token's characters in `text`, in time linear in the number of tokens.

    Args:
        tokenizer: decoded `ids` to `text`.
        ids: of a response.
        text: theirs, with or without the stop token, which lies at (len(text), len(text)) in the latter case.

    Returns:
        One (start, end) a token. Tokens that share a character overlap.
    """
    lengths: list[int] = []  # characters of the text up to and with each token
    alone: list[int] = []  # characters of a token behind an unfinished one, decoded by itself
    first, boundary = 0, 0  # the last two tokens that began with a character of their own
    length = 0
    for i, token in enumerate(ids):
        first = max(first, i - _LOOK_BACK)
        before, after = text_of(tokenizer, ids[first:i]), text_of(tokenizer, ids[first : i + 1])
        length += len(after) - len(before)
        lengths.append(length)
        alone.append(len(text_of(tokenizer, [token])) if before.endswith(_UNFINISHED) else 0)
        if not after.endswith(_UNFINISHED):
            first, boundary = boundary, i + 1
    # Where a vocabulary falls back to bytes, the text shrinks when they become characters; what stays counts.
    ends = np.minimum.accumulate(np.array(lengths[::-1], dtype=np.int64))[::-1].tolist()
    offsets: Offsets = []
    start, size = 0, len(text)
    for end, by_itself in zip(ends, alone, strict=True):
        # Bytes that go on with a character are each written as unfinished when alone; there they add nothing.
        shared = by_itself > end - start
        offsets.append((min(max(start - shared, 0), size), min(max(end, 0), size)))
        start = end
    return offsets


def tokens_in(offsets: Offsets, spans: Sequence[Span], length: int) -> NDArray[np.bool_]:
    """(T,) bool: does the token share a character with one of the spans of a text of `length` characters."""
    read = np.zeros(length, dtype=np.bool_)
    for span in spans:
        read[max(span.start, 0) : max(span.end, 0)] = True
    so_far = np.concatenate([[0], read.cumsum()])
    starts_T, ends_T = np.array(offsets, dtype=np.int64).reshape(-1, 2).T
    return np.asarray(so_far[ends_T] > so_far[starts_T])


def token_parts(offsets: Offsets, spans: Sequence[Span], length: int) -> list[str]:
    """The part that most of a token's characters lie in, the first of several; "" outside all spans."""
    part_of = [""] * length
    for span in spans:
        for i in range(max(span.start, 0), min(span.end, length)):
            part_of[i] = span.part
    found = []
    for start, end in offsets:
        counts = Counter(part for part in part_of[start:end] if part)
        found.append(max(counts, key=counts.__getitem__, default=""))
    return found
