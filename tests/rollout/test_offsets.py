"""Character offsets of sampled tokens, against two slow oracles."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models
from transformers import AutoTokenizer, PreTrainedTokenizerFast
from transformers.convert_slow_tokenizer import bytes_to_unicode

from creditlib.rollout import offsets
from creditlib.rollout.offsets import text_of, token_offsets, token_parts, tokens_in
from creditlib.types import Span
from tests.rollout.conftest import words_tokenizer

TINY = Path(__file__).resolve().parents[2] / "creditlib" / "assets" / "tiny"
EOS = 2
TEXTS = [
    "",
    "SELECT count(*) FROM t",
    "naïve é",
    "中国 歌手",
    "😀",
    "👩‍👩‍👧 a 🇫🇷",
    "\ufffd real \ufffd",
    "a\n\n\tb  ",
]


@cache
def tiny_tokenizer() -> Any:
    return AutoTokenizer.from_pretrained(TINY)


@pytest.fixture
def tiny() -> Any:
    return tiny_tokenizer()


def straddling() -> PreTrainedTokenizerFast:
    """Byte-level tokens that end and begin in the middle of characters, and contain the ends of two."""
    letters = bytes_to_unicode()
    pieces = [bytes([i]) for i in range(256)]
    pieces += ["中".encode()[:2], "中".encode()[2:] + "国".encode()[:1], "国".encode()[1:] + b"a"]
    pieces += [
        b" " + "😀".encode()[:2],
        "😀".encode()[2:],
        "😀".encode()[2:] + b" b",
        "é".encode()[1:] + b"\xc3",
    ]
    vocabulary = {"".join(letters[byte] for byte in piece): i for i, piece in enumerate(pieces)}
    core = Tokenizer(models.BPE(vocabulary, []))
    core.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=core)


def falling_back() -> PreTrainedTokenizerFast:
    """As Llama 2 and Gemma do it: pieces with a marked space, and single bytes for what has no piece."""
    pieces = ["<unk>", "</s>", "▁a", "▁", "b", "▁中", "é"] + [f"<0x{i:02X}>" for i in range(256)]
    core = Tokenizer(models.BPE({piece: i for i, piece in enumerate(pieces)}, [], byte_fallback=True))
    core.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return PreTrainedTokenizerFast(tokenizer_object=core, eos_token="</s>")


STRADDLING, FALLING_BACK = straddling(), falling_back()


def bytes_of(tokenizer: Any, ids: Sequence[int]) -> list[bytes]:
    letters = {letter: byte for byte, letter in bytes_to_unicode().items()}
    return [bytes(letters[c] for c in token) for token in tokenizer.convert_ids_to_tokens(list(ids))]


def by_bytes(tokenizer: Any, ids: Sequence[int]) -> list[tuple[int, int]]:
    """For byte-level vocabularies: note the character of each byte, and look where a token's bytes are."""
    pieces = bytes_of(tokenizer, ids)
    data = b"".join(pieces)
    character_of: list[int] = []
    count = done = 0
    while done < len(data):
        try:
            valid, broken = data[done:].decode(), 0
        except UnicodeDecodeError as error:
            valid, broken = data[done : done + error.start].decode(), error.end - error.start
        for letter in valid:
            character_of += [count] * len(letter.encode())
            count += 1
        if broken:
            character_of += [count] * broken
            count += 1
        done += len(valid.encode()) + broken
    found, at = [], 0
    for piece in pieces:
        mine = character_of[at : at + len(piece)]
        found.append((mine[0], mine[-1] + 1))
        at += len(piece)
    return found


def by_prefixes(tokenizer: Any, ids: Sequence[int]) -> list[int]:
    """Ends for any vocabulary: decode every prefix; what a later prefix takes back was never there."""
    lengths = [len(text_of(tokenizer, ids[: i + 1])) for i in range(len(ids))]
    return [min(lengths[i:]) for i in range(len(ids))]


@pytest.mark.parametrize("text", TEXTS)
def test_text_that_was_written_by_the_tiny_policy(tiny: Any, text: str) -> None:
    ids = tiny(text)["input_ids"]
    found = token_offsets(tiny, [*ids, EOS], text)
    assert found == [*by_bytes(tiny, ids), (len(text), len(text))]
    assert {i for start, end in found for i in range(start, end)} == set(range(len(text)))


def test_by_hand(tiny: Any) -> None:
    """The tiny vocabulary has bytes for 中 (three tokens) and é (two)."""
    ids = tiny("he中é")["input_ids"]
    assert token_offsets(tiny, [*ids, EOS], "he中é") == [(0, 2), *[(2, 3)] * 3, (3, 4), (3, 4), (4, 4)]


def test_special_tokens_inside_a_response_are_text(tiny: Any) -> None:
    ids = [*tiny("a")["input_ids"], EOS, 0, *tiny("b")["input_ids"]]
    assert text_of(tiny, ids) == "a</s><pad>b"
    assert token_offsets(tiny, [*ids, EOS], "a</s><pad>b") == [(0, 1), (1, 5), (5, 10), (10, 11), (11, 11)]


@pytest.mark.parametrize("bytes_kept", [1, 2, 3])
def test_a_response_that_ends_inside_a_character(tiny: Any, bytes_kept: int) -> None:
    ids = tiny("a😀")["input_ids"][: 1 + bytes_kept]
    text = text_of(tiny, ids)
    assert text == "a\ufffd"
    assert token_offsets(tiny, ids, text) == [(0, 1)] + [(1, 2)] * bytes_kept
    assert token_offsets(tiny, [*ids, EOS], text)[-1] == (2, 2)


def test_nothing_and_the_stop_token_alone(tiny: Any) -> None:
    assert token_offsets(tiny, [], "") == []
    assert token_offsets(tiny, [EOS], "") == [(0, 0)]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, len(STRADDLING) - 1), max_size=40))
def test_any_bytes_in_any_order(ids: list[int]) -> None:
    assert token_offsets(STRADDLING, ids, text_of(STRADDLING, ids)) == by_bytes(STRADDLING, ids)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(256, len(STRADDLING) - 1), max_size=60))
def test_tokens_that_share_their_characters(ids: list[int]) -> None:
    """Chains without a boundary between tokens, longer than what is looked back."""
    assert token_offsets(STRADDLING, ids, text_of(STRADDLING, ids)) == by_bytes(STRADDLING, ids)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 1535), min_size=1, max_size=60))
def test_whatever_the_tiny_policy_may_sample(ids: list[int]) -> None:
    tokenizer = tiny_tokenizer()
    assert token_offsets(tokenizer, ids, text_of(tokenizer, ids)) == by_bytes(tokenizer, ids)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(["a", " a", "b", "中", " 中", "国家", "é", "😀", "ß"]), max_size=12))
def test_falling_back_to_bytes(words: list[str]) -> None:
    """Valid text in a vocabulary that has single bytes for most of it."""
    tokenizer = FALLING_BACK
    pieces = {"a": [4], " a": [2], "b": [4], " 中": [5], "é": [6]}
    ids = [i for word in words for i in pieces.get(word, [7 + byte for byte in word.encode()])]
    text = text_of(tokenizer, ids)
    found = token_offsets(tokenizer, [*ids, 1], text)
    assert [end for _, end in found] == [*by_prefixes(tokenizer, ids), len(text)]
    covered = {i for start, end in found for i in range(start, end)}
    assert covered == set(range(len(text)))
    assert all(end - start == 1 for (start, end), i in zip(found, ids, strict=False) if i >= 7)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 262), max_size=40))
def test_falling_back_to_bytes_that_mean_nothing(ids: list[int]) -> None:
    text = text_of(FALLING_BACK, ids)
    found = token_offsets(FALLING_BACK, ids, text)
    assert len(found) == len(ids)
    assert all(0 <= start <= end <= len(text) for start, end in found)


def test_a_vocabulary_that_joins_words_with_spaces() -> None:
    tokenizer = words_tokenizer()
    assert text_of(tokenizer, [6, 7, 10]) == "w6 w7 w10"
    assert token_offsets(tokenizer, [6, 7, 10, 2], "w6 w7 w10") == [(0, 2), (2, 5), (5, 9), (9, 9)]


def test_the_time_is_linear(tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens decoded for a response of unfinished characters alone, which has no boundary to start from."""
    decoded: list[int] = []

    def counting(tokenizer: Any, ids: Sequence[int]) -> str:
        decoded.append(len(ids))
        return text_of(tokenizer, ids)

    monkeypatch.setattr(offsets, "text_of", counting)
    unfinished = tiny.convert_tokens_to_ids("Ã")
    token_offsets(tiny, [unfinished] * 400, "\ufffd" * 400)
    assert sum(decoded) < 400 * 40


def test_tokens_that_a_checker_read() -> None:
    found = [(0, 2), (2, 5), (4, 5), (5, 5)]
    spans = [Span(0, 1, "x"), Span(4, 99, "y"), Span(-3, 0, "z")]
    assert tokens_in(found, spans, 5).tolist() == [True, True, True, False]
    assert tokens_in(found, [Span(3, 4, "x")], 5).tolist() == [False, True, False, False]
    assert tokens_in(found, [], 5).tolist() == [False] * 4
    assert tokens_in([], [Span(0, 1, "x")], 0).tolist() == []


def test_the_part_of_a_token() -> None:
    text = " SELECT a=b;"
    spans = [
        Span(1, 7, "keyword"),
        Span(8, 9, "column"),
        Span(9, 10, "operator"),
        Span(10, 11, "value"),
        Span(11, 40, "other"),
    ]
    found = [(0, 7), (7, 9), (8, 11), (9, 11), (10, 12), (12, 12), (7, 8)]
    labels = token_parts(found, spans, len(text))
    assert labels == ["keyword", "column", "column", "operator", "value", "", ""]
