"""Prompts in, texts out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from creditlib.rollout.encode import PromptEncoder, stop_ids
from creditlib.types import CreditlibError, Prompt

CHAT = Prompt(id="c", task="words", messages=({"role": "user", "content": "w7 w8"},))
TEXT = Prompt(id="t", task="words", text="w7 w8")


def test_chat_opens_the_assistants_turn_with_one_bos(make_tokenizer: Callable[..., Any]) -> None:
    assert PromptEncoder(make_tokenizer()).encode(CHAT) == (1, 4, 7, 8, 3, 5)


@pytest.mark.parametrize("adds", ["<s> $A", "<s> $A </s>"])
def test_text_gets_bos_once_and_never_eos(make_tokenizer: Callable[..., Any], adds: str) -> None:
    encoder = PromptEncoder(make_tokenizer(chat=False, adds=adds), style="text")
    assert encoder.encode(TEXT) == (1, 7, 8)
    assert encoder.encode(Prompt(id="t", task="words", text="<s> w7 w8")) == (1, 7, 8)


def test_text_of_a_tokenizer_without_bos(make_tokenizer: Callable[..., Any]) -> None:
    assert PromptEncoder(make_tokenizer(adds="$A"), style="text").encode(TEXT) == (7, 8)


def test_text_style_joins_messages(make_tokenizer: Callable[..., Any]) -> None:
    seen = []

    class Recorder(PromptEncoder):
        def _ids(self, text: str, *, special: bool) -> list[int]:
            seen.append(text)
            return super()._ids(text, special=special)

    messages = ({"role": "system", "content": "w6"}, {"role": "user", "content": "w7 w8"})
    encoder = Recorder(make_tokenizer(chat=False), style="text")
    assert encoder.encode(Prompt(id="c", task="words", messages=messages)) == (1, 6, 7, 8)
    assert set(seen) == {"w6\n\nw7 w8\n\n"}


def test_no_chat_template(make_tokenizer: Callable[..., Any]) -> None:
    with pytest.raises(CreditlibError, match=r"prompt\.style=text"):
        PromptEncoder(make_tokenizer(chat=False))


def test_plain_text_in_chat_style(make_tokenizer: Callable[..., Any]) -> None:
    with pytest.raises(CreditlibError, match=r"'t'.*prompt\.style=text"):
        PromptEncoder(make_tokenizer()).encode(TEXT)


@pytest.mark.parametrize(
    ("ending", "opened"),
    [("", ""), ("<think>\n", "<think>\n"), ("<think>\n\n</think>\n\n", ""), ("<think>", "<think>")],
)
def test_thinking_that_the_template_opens(
    make_tokenizer: Callable[..., Any], ending: str, opened: str
) -> None:
    tokenizer = make_tokenizer()
    tokenizer.chat_template += "{% if add_generation_prompt %}{{ " + repr(ending) + " }}{% endif %}"
    assert PromptEncoder(tokenizer).opened == opened
    assert PromptEncoder(tokenizer, "text").opened == ""


def test_too_long(make_tokenizer: Callable[..., Any]) -> None:
    with pytest.raises(CreditlibError, match=r"'c' has 6 tokens.*prompt\.max_tokens=5"):
        PromptEncoder(make_tokenizer(), max_tokens=5).encode(CHAT)
    PromptEncoder(make_tokenizer(), max_tokens=6).encode(CHAT)


def test_empty(make_tokenizer: Callable[..., Any]) -> None:
    with pytest.raises(CreditlibError, match="'e' has no tokens"):
        PromptEncoder(make_tokenizer(adds="$A"), style="text").encode(Prompt(id="e", task="words", text=""))


def test_decode_drops_the_stop_token_alone(make_tokenizer: Callable[..., Any]) -> None:
    encoder = PromptEncoder(make_tokenizer())
    assert encoder.decode([7, 8, 3], {2, 3}) == "w7 w8"
    assert encoder.decode([4, 7], {2, 3}) == "<user> w7"  # a special token that a verifier may look for
    assert encoder.decode([7, 2, 3], {3}) == "w7 </s>"
    assert encoder.decode([3], {3}) == ""


def test_stop_ids_from_everywhere(make_tokenizer: Callable[..., Any], make_model: Callable[..., Any]) -> None:
    model = make_model("llama")
    assert stop_ids(model, make_tokenizer(chat=False)) == (2,)
    assert stop_ids(model, make_tokenizer()) == (2, 3)  # the template closes a turn with <end>
    model.generation_config.eos_token_id = [9, 10]
    model.config.eos_token_id = 11
    assert stop_ids(model, make_tokenizer()) == (2, 3, 9, 10, 11)
