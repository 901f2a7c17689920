"""A response as a reward model reads it: in its own chat template, the sampled tokens as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from jinja2 import TemplateError

from creditlib.policy.reward_scorer import Text
from creditlib.policy.tree import common_prefix
from creditlib.rollout.encode import plain_text
from creditlib.types import CreditlibError, Prompt, Rollout

_MARK = "creditlib-response"  # stands for a response while a template is taken apart


@dataclass(frozen=True)
class Reading:
    """The text, and for each sampled token its place in `text.rest`, or -1 where it has none."""

    text: Text
    places: tuple[int, ...]


class _Frame(NamedTuple):
    before: str
    after: str
    before_ids: tuple[int, ...]
    after_ids: tuple[int, ...]


class ConversationReader:
    """Puts responses into a reward model's conversations.

    With a chat template, a response stands where the template puts an assistant's message. Without one, or
    for a prompt that is plain text, it follows the prompt's tokens and ends with the tokenizer's end token.

    Args:
        tokenizer: the reward model's.
        shared: how many tokens the policy has, where the reward model reads them as they are; ids from there
            on stand for nothing. None: texts are tokenised anew, and no token has a place.
    """

    def __init__(self, tokenizer: Any, *, shared: int | None) -> None:
        self._tokenizer, self._shared = tokenizer, shared

    def read(self, rollout: Rollout) -> list[Reading]:
        """Every response of a rollout."""
        frames = [self._frame(prompt) for prompt in rollout.prompts]
        found = []
        for row, (group, length) in enumerate(
            zip(rollout.group_B.tolist(), rollout.lengths_B.tolist(), strict=True)
        ):
            # The stop token is left to the ending that the reward model knows.
            ids = rollout.ids_BT[row, : length - (rollout.finish[row] == "stop")].tolist()
            kept = [t for t, token in enumerate(ids) if self._shared is None or token < self._shared]
            said = tuple(ids[t] for t in kept)
            frame, prompt = frames[group], rollout.prompts[group]
            if frame is None:
                text, places = self._plain(prompt, rollout.prompt_ids[group], said, rollout.texts[row])
            else:
                text, places = self._in_turn(prompt, frame, said, rollout.texts[row])
            places_T = [-1] * length
            for t, place in zip(kept, places, strict=False):  # no places: a vocabulary of its own
                places_T[t] = place
            found.append(Reading(text, tuple(places_T)))
        return found

    def check(self, prompts: Sequence[Prompt]) -> None:
        """See that the template takes every prompt.

        Raises:
            CreditlibError: one that it does not.
        """
        for prompt in prompts:
            self._frame(prompt)

    def read_text(self, prompt: Prompt, text: str) -> Text:
        """A response that nobody sampled, as text."""
        frame = self._frame(prompt)
        if frame is None:
            return self._plain(prompt, (), (), text)[0]
        return self._in_turn(prompt, frame, (), text)[0]

    def _in_turn(
        self, prompt: Prompt, frame: _Frame, said: tuple[int, ...], text: str
    ) -> tuple[Text, Sequence[int]]:
        whole = self._render(prompt, text)
        if self._shared is not None and whole == frame.before + text + frame.after:
            return Text(frame.before_ids, (*said, *frame.after_ids) or self._end()), range(len(said))
        # The template edits the message: it strips spaces, or leaves thoughts out and says so before it.
        # Where all is as before any message, no token of the response has a partner.
        ids = self._ids(whole)
        same = common_prefix(ids[:-1], frame.before_ids)
        before, rest = ids[:same], ids[same:] or self._end()
        return Text(before, rest), () if self._shared is None else _matched(said, rest)

    def _plain(
        self, prompt: Prompt, prompt_ids: tuple[int, ...], said: tuple[int, ...], text: str
    ) -> tuple[Text, Sequence[int]]:
        if self._shared is not None:
            return Text(prompt_ids, (*said, *self._end())), range(len(said))
        before = self._tokenizer(plain_text(prompt))["input_ids"]
        return Text(tuple(before), (*self._ids(text), *self._end())), ()

    def _frame(self, prompt: Prompt) -> _Frame | None:
        """What the template writes before and after a response; None where there are no turns."""
        if prompt.messages is None or not self._tokenizer.chat_template:
            return None
        before, _, after = self._render(prompt, _MARK).rpartition(_MARK)
        return _Frame(before, after, self._ids(before), self._ids(after))

    def _render(self, prompt: Prompt, text: str) -> str:
        messages = [
            *(dict(message) for message in prompt.messages or ()),
            {"role": "assistant", "content": text},
        ]
        try:
            return str(self._tokenizer.apply_chat_template(messages, tokenize=False))
        except TemplateError as error:
            raise CreditlibError(
                f"the reward model's chat template ({self._tokenizer.name_or_path}) does not take prompt "
                f"{prompt.id!r}, whose roles are {', '.join(turn['role'] for turn in messages)}: {error}"
            ) from error

    def _ids(self, text: str) -> tuple[int, ...]:
        return tuple(self._tokenizer(text, add_special_tokens=False)["input_ids"])

    def _end(self) -> tuple[int, ...]:
        """The token that ends a text, since one must be read."""
        end = self._tokenizer.eos_token_id
        return (end if end is not None else 0,)


def _matched(said: Sequence[int], rest: Sequence[int]) -> list[int]:
    """Places of the tokens of `said` in `rest`, in order, each token to an equal one."""
    places = [-1] * len(said)
    for a, b, size in SequenceMatcher(None, said, rest, autojunk=False).get_matching_blocks():
        places[a : a + size] = range(b, b + size)
    return places
