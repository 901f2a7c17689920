"""A tokenizer of a few words, for random models that have none."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

SPECIAL = ["<pad>", "<s>", "</s>", "<end>", "<user>", "<assistant>"]
TEMPLATE = (
    "{{ '<s>' }}{% for m in messages %}{{ ' <' + m['role'] + '> ' + m['content'] + ' <end>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ ' <assistant>' }}{% endif %}"
)


def words_tokenizer(*, chat: bool = True, adds: str = "<s> $A") -> PreTrainedTokenizerFast:
    """Ids 0 to 5 are special, id n is the word wn. `adds` is what the tokenizer puts around a text."""
    vocabulary = {word: index for index, word in enumerate([*SPECIAL, *(f"w{n}" for n in range(6, 61))])}
    core = Tokenizer(models.WordLevel(vocabulary, unk_token="<pad>"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    core.post_processor = processors.TemplateProcessing(single=adds, special_tokens=[("<s>", 1), ("</s>", 2)])
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
        additional_special_tokens=SPECIAL[3:],
        chat_template=TEMPLATE if chat else None,
    )


@pytest.fixture
def make_tokenizer() -> Callable[..., PreTrainedTokenizerFast]:
    return words_tokenizer
