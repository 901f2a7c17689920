"""A response as the reward model reads it: the sampled tokens in its own template."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from creditlib.policy.reward_scorer import Text
from creditlib.rewards.conversation import ConversationReader
from creditlib.types import CreditlibError, Finish, Prompt, Rollout
from tests.trainer import world

PLAIN = (
    "{% for m in messages %}{% if m['role'] == 'assistant' %}w50 {{ m['content'] }} w51 w52"
    "{% else %}w40 {{ m['content'] }} w41 {% endif %}{% endfor %}"
)
TRIMMING = PLAIN.replace("{{ m['content'] }} w51", "{{ m['content'].replace('w9 ', '') }} w51")


def tokenizer(template: str | None) -> Any:
    found = world.tokenizer()
    found.chat_template = template
    return found


def rollout(ids: list[int], finish: Finish, *, text: str | None = None, chat: bool = True) -> Rollout:
    prompt = (
        Prompt("p", "t", messages=({"role": "user", "content": "w7 w8"},))
        if chat
        else Prompt("p", "t", text="w7 w8")
    )
    said = ids[:-1] if finish == "stop" else ids
    return Rollout(
        prompts=(prompt,),
        prompt_ids=((33, 34),),  # the policy wrote the prompt in another way
        group_B=torch.zeros(1, dtype=torch.long),
        ids_BT=torch.tensor([ids]),
        mask_BT=torch.ones(1, len(ids), dtype=torch.bool),
        texts=(" ".join(f"w{i}" for i in said) if text is None else text,),
        sampler_logps_BT=torch.zeros(1, len(ids)),
        sampler_mass_BT=torch.ones(1, len(ids)),
        finish=(finish,),
    )


def read(template: str | None, asked: Rollout, *, shared: int | None = 61) -> tuple[Text, tuple[int, ...]]:
    (found,) = ConversationReader(tokenizer(template), shared=shared).read(asked)
    return found.text, found.places


def test_the_sampled_tokens_stand_in_the_templates_turn() -> None:
    text, places = read(PLAIN, rollout([20, 21, 22, world.EOS], "stop"))
    assert text == Text((40, 7, 8, 41, 50), (20, 21, 22, 51, 52))
    assert places == (0, 1, 2, -1)  # the stop token gives way to the template's ending
    text, places = read(PLAIN, rollout([20, 21, 22], "length"))
    assert text.rest == (20, 21, 22, 51, 52) and places == (0, 1, 2)


def test_token_in_token_out() -> None:
    """Ids are not made anew from the text, which may be cut otherwise."""
    text, places = read(PLAIN, rollout([60, 60, 21], "length", text="w20 w21"))
    assert text.rest[:3] == (60, 60, 21) and places == (0, 1, 2)


def test_a_template_that_edits_the_message() -> None:
    text, places = read(TRIMMING, rollout([20, 9, 21, 9, 22, world.EOS], "stop"))
    assert text == Text((40, 7, 8, 41, 50), (20, 21, 22, 51, 52))
    assert places == (0, -1, 1, -1, 2, -1)


def test_a_template_that_begins_otherwise_after_a_message() -> None:
    template = "{% if messages[-1]['content'].startswith('w20') %}w55 {% endif %}" + PLAIN
    text, places = read(template, rollout([20, 21, world.EOS], "stop"))
    assert text.before == () and text.rest == (55, 40, 7, 8, 41, 50, 20, 21, 51, 52)
    assert places == (6, 7, -1)


@pytest.mark.parametrize("chat", [True, False])
def test_without_turns_it_follows_the_prompts_own_tokens(chat: bool) -> None:
    asked = rollout([20, 21, world.EOS], "stop", chat=chat)
    text, places = read(None if chat else PLAIN, asked)
    assert text == Text((33, 34), (20, 21, world.EOS)) and places == (0, 1, -1)


def test_another_vocabulary_reads_the_text() -> None:
    asked = rollout([20, 21, world.EOS], "stop", text="w30 w31 w32")
    text, places = read(PLAIN, asked, shared=None)
    assert text == Text((40, 7, 8, 41, 50), (30, 31, 32, 51, 52)) and places == (-1, -1, -1)


def test_an_empty_response_still_has_something_to_read() -> None:
    text, places = read(PLAIN, rollout([world.EOS], "stop"))
    assert text.rest == (51, 52) and places == (-1,)
    text, _ = read(None, rollout([world.EOS], "stop"))
    assert text.rest == (world.EOS,)
    bare = PLAIN.replace(" w51 w52", "")
    text, _ = read(bare, rollout([world.EOS], "stop"))
    assert text.rest == (world.EOS,)


def test_a_text_that_nobody_sampled() -> None:
    prompt = Prompt("p", "t", messages=({"role": "user", "content": "w7"},))
    reader = ConversationReader(tokenizer(PLAIN), shared=None)
    assert reader.read_text(prompt, "w20 w21") == Text((40, 7, 41, 50), (20, 21, 51, 52))


def test_tokens_of_the_prompt_are_no_partners() -> None:
    """A header that depends on the response, which quotes the prompt; the template leaves the quote out."""
    template = (
        "{% for m in messages %}{% if m['role'] == 'assistant' %}"
        "{{ 'w54 ' if 'w9' in m['content'] else 'w50 ' }}{{ m['content'].split('w9 ')[-1] }} w51"
        "{% else %}w40 {{ m['content'] }} w41 {% endif %}{% endfor %}"
    )
    text, places = read(template, rollout([7, 8, 9, 20, 21, world.EOS], "stop"))
    assert text == Text((40, 7, 8, 41), (54, 20, 21, 51))
    assert places == (-1, -1, -1, 1, 2, -1)


def test_tokens_that_stand_for_nothing_are_left_out() -> None:
    """Models have more rows than their tokenizers have tokens, and may sample one of them."""
    text, places = read(PLAIN, rollout([20, 62, 21, world.EOS], "stop", text="w20 w21"))
    assert text.rest == (20, 21, 51, 52) and places == (0, -1, 1, -1)
    text, places = read(None, rollout([62, 20], "length", text="w20"))
    assert text.rest == (20, world.EOS) and places == (-1, 0)


def test_a_template_that_refuses_a_role() -> None:
    template = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}" + PLAIN
    reader = ConversationReader(tokenizer(template), shared=61)
    good = Prompt("a", "t", messages=({"role": "user", "content": "w7"},))
    bad = Prompt("b", "t", messages=({"role": "system", "content": "w7"}, {"role": "user", "content": "w8"}))
    reader.check([good])
    with pytest.raises(
        CreditlibError, match="does not take prompt 'b', whose roles are system, user, assistant"
    ):
        reader.check([good, bad])
