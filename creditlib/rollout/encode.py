"""From prompts to token ids, and from sampled ids to the text that verifiers read."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Literal

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from creditlib.rollout.offsets import text_of
from creditlib.types import CreditlibError, Prompt

PromptStyle = Literal["chat", "text"]

_OPENED = re.compile(r"<think>\s*\Z")


class PromptEncoder:
    """Renders prompts for a tokenizer, and decodes responses.

    Args:
        tokenizer: the policy's.
        style: ``"chat"`` renders messages with the tokenizer's chat template and opens the assistant's turn;
            ``"text"``, for base models, takes `Prompt.text`, or the contents of the messages with an empty
            line after each.
        max_tokens: longest prompt accepted; None leaves the limit to the model.

    Raises:
        CreditlibError: `style` is chat and the tokenizer has no chat template.
    """

    def __init__(
        self, tokenizer: PreTrainedTokenizerBase, style: PromptStyle = "chat", max_tokens: int | None = None
    ) -> None:
        if style == "chat" and not tokenizer.chat_template:
            raise CreditlibError(
                f"prompt.style=chat needs a chat template, but {tokenizer.name_or_path!r} has none in its "
                "tokenizer: set prompt.style=text"
            )
        self.tokenizer = tokenizer
        self.style = style
        self.max_tokens = max_tokens

    def encode(self, prompt: Prompt) -> tuple[int, ...]:
        """The prompt's token ids.

        Raises:
            CreditlibError: the prompt is empty, longer than `max_tokens`, or plain text in the chat style.
        """
        ids = self._chat(prompt) if self.style == "chat" else self._text(prompt)
        if not ids:
            raise CreditlibError(
                f"prompt {prompt.id!r} has no tokens, and a response must continue something"
            )
        if self.max_tokens is not None and len(ids) > self.max_tokens:
            raise CreditlibError(
                f"prompt {prompt.id!r} has {len(ids)} tokens, more than prompt.max_tokens={self.max_tokens}: "
                "raise prompt.max_tokens or shorten the prompt"
            )
        return tuple(ids)

    def decode(self, ids: Sequence[int], stop_ids: Collection[int] = ()) -> str:
        """The text of a response without its stop token.

        Other special tokens stay. Tags such as ``<think>`` are special in some vocabularies, and a verifier
        that never sees them would call every response malformed.
        """
        if ids and ids[-1] in stop_ids:
            ids = ids[:-1]
        return text_of(self.tokenizer, ids)

    @cached_property
    def opened(self) -> str:
        """What the chat template has the assistant say before its first token: the templates of models that
        always think end with ``<think>``. Verifiers read it as the beginning of the response.
        """
        if self.style == "text":
            return ""
        question = [{"role": "user", "content": "a question"}]
        rendered = self.tokenizer.apply_chat_template(question, add_generation_prompt=True, tokenize=False)
        found = _OPENED.search(str(rendered))
        return found[0] if found else ""

    def _chat(self, prompt: Prompt) -> list[int]:
        if prompt.messages is None:
            raise CreditlibError(
                f"prompt {prompt.id!r} is plain text instead of messages: set prompt.style=text"
            )
        messages = [dict(message) for message in prompt.messages]
        rendered = self.tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        return self._ids(
            str(rendered), special=False
        )  # the template writes BOS itself where the model wants one

    def _text(self, prompt: Prompt) -> list[int]:
        text = plain_text(prompt)
        ids = self._ids(text, special=False)
        # Of what the tokenizer adds only BOS is wanted: some tokenizers close with EOS, which leaves nothing
        # to say.
        bos = self.tokenizer.bos_token_id
        if self._ids(text, special=True)[:1] == [bos] and ids[:1] != [bos]:
            ids = [bos, *ids]
        return ids

    def _ids(self, text: str, *, special: bool) -> list[int]:
        return list(self.tokenizer(text, add_special_tokens=special)["input_ids"])


def plain_text(prompt: Prompt) -> str:
    """Its text, or the contents of its messages with an empty line after each."""
    if prompt.text is not None:
        return prompt.text
    return "".join(f"{message['content']}\n\n" for message in prompt.messages or ())


def stop_ids(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> tuple[int, ...]:
    """All tokens that end a response, sorted: the EOS tokens of the generation config, of the model's config
    and of the tokenizer, and the token with which the chat template closes an assistant's turn."""
    found: set[int] = set()
    for source in (model.generation_config, model.config.get_text_config(decoder=True), tokenizer):
        eos = getattr(source, "eos_token_id", None)
        found.update([eos] if isinstance(eos, int) else eos or ())
    if tokenizer.chat_template:
        found.update(_end_of_turn(tokenizer))
    return tuple(sorted(found))


def _end_of_turn(tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """The special token right after an assistant's message, in a list, empty if there is none."""
    answer = "an answer"
    turns = [{"role": "user", "content": "a question"}, {"role": "assistant", "content": answer}]
    rendered = str(tokenizer.apply_chat_template(turns, tokenize=False))
    after = tokenizer(rendered.rpartition(answer)[2].lstrip(), add_special_tokens=False)["input_ids"]
    return [token for token in after[:1] if token in tokenizer.all_special_ids]
