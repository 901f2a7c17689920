"""From prompts to token ids, and from sampled ids to the text that verifiers read."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from creditlib.types import CreditlibError, Prompt

PromptStyle = Literal["chat", "text"]


class PromptEncoder:
    """Renders prompts for a tokenizer.

    Args:
        tokenizer: the policy's tokenizer.
        style: ``"chat"`` renders messages with the tokenizer's chat template and opens the assistant's turn. ``"text"``,
            for base models, takes `Prompt.text`, or the messages' contents with an empty line after each.
        max_tokens: longest prompt accepted; None leaves the limit to the model.

    Raises:
        CreditlibError: `style` is chat and the tokenizer has no chat template.
    """

    def __init__(
        self, tokenizer: PreTrainedTokenizerBase, style: PromptStyle = "chat", max_tokens: int | None = None
    ) -> None:
        if style == "chat" and not tokenizer.chat_template:
            raise CreditlibError(
                f"prompt.style=chat needs a chat template and the tokenizer {tokenizer.name_or_path!r} has none: "
                "set prompt.style=text"
            )
        self.tokenizer = tokenizer
        self.style = style
        self.max_tokens = max_tokens

    def encode(self, prompt: Prompt) -> tuple[int, ...]:
        """The prompt's token ids.

        Raises:
            CreditlibError: the prompt is empty, longer than `max_tokens`, or plain text under the chat style.
        """
        ids = self._chat(prompt) if self.style == "chat" else self._text(prompt)
        if not ids:
            raise CreditlibError(f"prompt {prompt.id!r} has no tokens; a policy needs at least one to continue from")
        if self.max_tokens is not None and len(ids) > self.max_tokens:
            raise CreditlibError(
                f"prompt {prompt.id!r} has {len(ids)} tokens, more than the {self.max_tokens} that prompt.max_tokens allows: "
                "raise prompt.max_tokens or shorten the prompt"
            )
        return tuple(ids)

    def decode(self, ids: Sequence[int], stop_ids: Collection[int] = ()) -> str:
        """The text of a sampled response without its stop token.

        Other special tokens stay: tags such as ``<think>`` are special in some vocabularies, and a verifier that does not see
        them calls every response malformed.
        """
        if ids and ids[-1] in stop_ids:
            ids = ids[:-1]
        text = self.tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False)
        assert isinstance(text, str)
        return text

    def _chat(self, prompt: Prompt) -> list[int]:
        if prompt.messages is None:
            raise CreditlibError(f"prompt {prompt.id!r} is plain text, not chat messages: set prompt.style=text")
        messages = [dict(message) for message in prompt.messages]
        rendered = self.tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        return self._ids(str(rendered), special=False)  # the template has written BOS where the model wants one

    def _text(self, prompt: Prompt) -> list[int]:
        text = prompt.text
        if text is None:
            text = "".join(f"{message['content']}\n\n" for message in prompt.messages or ())
        ids = self._ids(text, special=False)
        # Only the beginning of what the tokenizer adds is wanted: some append EOS, after which nothing would follow.
        bos = self.tokenizer.bos_token_id
        if self._ids(text, special=True)[:1] == [bos] and ids[:1] != [bos]:
            ids = [bos, *ids]
        return ids

    def _ids(self, text: str, *, special: bool) -> list[int]:
        return list(self.tokenizer(text, add_special_tokens=special)["input_ids"])


def stop_ids(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> tuple[int, ...]:
    """All tokens that end a response, sorted: those of the generation config, the model's config and the tokenizer, and the
    one with which the chat template closes an assistant's turn."""
    found: set[int] = set()
    for source in (model.generation_config, model.config.get_text_config(decoder=True), tokenizer):
        eos = getattr(source, "eos_token_id", None)
        found.update([eos] if isinstance(eos, int) else eos or ())
    end = _end_of_turn(tokenizer) if tokenizer.chat_template else None
    return tuple(sorted(found if end is None else found | {end}))


def _end_of_turn(tokenizer: PreTrainedTokenizerBase) -> int | None:
    content = "the answer"
    turns = [{"role": "user", "content": "a question"}, {"role": "assistant", "content": content}]
    rendered = str(tokenizer.apply_chat_template(turns, tokenize=False))
    tail = tokenizer(rendered.rpartition(content)[2].lstrip(), add_special_tokens=False)["input_ids"]
    return tail[0] if tail and tail[0] in tokenizer.all_special_ids else None
