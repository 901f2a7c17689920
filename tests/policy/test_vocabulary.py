"""What makes two vocabularies different."""

from __future__ import annotations

import json
from typing import Any

from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast

from creditlib.config import ModelConfig
from creditlib.policy.load import load_policy
from creditlib.policy.vocabulary import vocabulary_differences
from tests.trainer import world


def edited(tokenizer: Any, **changes: Any) -> Any:
    """The same fast tokenizer with another model section."""
    state = json.loads(tokenizer.backend_tokenizer.to_str())
    state["model"] |= changes
    return PreTrainedTokenizerFast(tokenizer_object=Tokenizer.from_str(json.dumps(state)), eos_token="</s>")


def test_the_same_vocabulary() -> None:
    one, other = world.tokenizer(), world.tokenizer()
    assert vocabulary_differences(one, other, world.VOCABULARY) == []
    other.add_tokens(["<extra>"])  # a padding token of the reward model's own, say
    assert vocabulary_differences(one, other, world.VOCABULARY + 5) == []


def test_missing_and_moved_tokens() -> None:
    one, other = world.tokenizer(), world.tokenizer()
    one.add_tokens([f"<new{i}>" for i in range(5)])
    (found,) = vocabulary_differences(one, other, 99)
    assert found == "5 tokens are missing: '<new0>' (id 61), '<new1>' (id 62), '<new2>' (id 63), ..."
    vocabulary = world.tokenizer().get_vocab()
    vocabulary["w3"], vocabulary["w4"] = vocabulary["w4"], vocabulary["w3"]
    (found,) = vocabulary_differences(world.tokenizer(), edited(other, vocab=vocabulary), 99)
    assert found == "2 tokens have another id: 'w3' is 3 and 4, 'w4' is 4 and 3"


def test_too_few_rows() -> None:
    (found,) = vocabulary_differences(world.tokenizer(), world.tokenizer(), 40)
    assert found == "its input embeddings have 40 rows, but token ids go up to 60"


def test_other_merges() -> None:
    """All ids alike, and yet the same text is cut into other tokens."""
    tokenizer = load_policy(ModelConfig()).tokenizer
    merges = json.loads(tokenizer.backend_tokenizer.to_str())["model"]["merges"]
    merges[7], merges[8] = merges[8], merges[7]
    other = edited(tokenizer, merges=merges)
    other.pad_token, other.bos_token = "<pad>", "<s>"
    assert vocabulary_differences(tokenizer, tokenizer, 1536) == []
    (found,) = vocabulary_differences(tokenizer, other, 1536)
    assert found == f"the merges differ ({len(merges)} and {len(merges)}), from number 8 on"


def test_special_tokens_that_are_plain_text_there_and_other_kinds() -> None:
    one, other = world.tokenizer(), world.tokenizer()
    one.add_special_tokens({"additional_special_tokens": ["w7"]})
    (found,) = vocabulary_differences(one, other, world.VOCABULARY)
    assert found == "1 special tokens are plain text there: 'w7'"
    tiny = load_policy(ModelConfig()).tokenizer
    vocabulary = tiny.get_vocab()
    words = Tokenizer(WordLevel(vocabulary, unk_token="<pad>"))
    plain = PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="<pad>", bos_token="<s>", eos_token="</s>"
    )
    assert vocabulary_differences(tiny, plain, 1536) == ["the kinds of tokenizer are BPE and WordLevel"]
