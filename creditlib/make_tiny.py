"""Make the embedded tiny policy: tokenizer, weights and model card, from the tasks' own synthetic streams.

    python -m creditlib.make_tiny                    # writes creditlib/assets/tiny, an hour on 2 cores
    python -m creditlib.make_tiny sft.minutes=2 out=/tmp/tiny

The model is a Llama of a few million parameters. It reads prompts with and without verifier
information, so that replays with and without it mean something to it. It stops well before it has learned all
it could: what is left is for reinforcement learning to show.
"""

from __future__ import annotations

import itertools
import random
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import torch
from pydantic import Field

from creditlib import cli
from creditlib.compose import compose_one
from creditlib.config import Count, Section, Seed, SftSettings
from creditlib.parts import build_task
from creditlib.types import CreditlibError, Prompt

SPECIAL = ("<pad>", "<s>", "</s>")
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ message['content'] }}"
    "{% if message['role'] == 'assistant' %}{{ eos_token }}{% else %}{{ '\\n' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'Answer:\\n' }}{% endif %}"
)
# Words with the space before them, single digits, single marks: names are copied in few pieces, numbers digit
# by digit.
WORDS = r" ?\p{L}+| ?\p{N}|[^\s\p{L}\p{N}]|\s+(?!\S)|\s"


class TinyShape(Section):
    vocab: Count
    hidden: Count
    intermediate: Count
    layers: Count
    heads: Count
    kv_heads: Count
    positions: Count


class MakeTinyConfig(Section):
    seed: Seed = 0
    tasks: dict[str, Annotated[float, Field(gt=0)]]
    shape: TinyShape
    sft: SftSettings
    whole: Annotated[float, Field(ge=0, le=1)]  # share that learns whole texts, before answers alone
    pool: Count  # examples drawn from the stream at a time
    out: str


def examples(tasks: Mapping[str, float], seed: int) -> Iterator[tuple[Prompt, str]]:
    """Endless (prompt, response) pairs of all tasks.

    Args:
        tasks: options of configs/task/, each with its share of the pairs.
        seed: of the streams and of the turns that they take.

    Raises:
        CreditlibError: a task has no synthetic stream.
    """
    streams = []
    for name in tasks:
        task: Any = build_task(compose_one("train", {"task": name})["task"])
        if not hasattr(task, "synthetic"):
            raise CreditlibError(f"task {name} has no synthetic stream of examples to learn from")
        streams.append(task.synthetic(seed))
    generator, shares = random.Random(seed), list(tasks.values())
    while True:
        yield next(generator.choices(streams, shares)[0])


def train_tokenizer(texts: Iterator[str], vocab: int) -> Any:
    """A byte-level BPE tokenizer with our special tokens, as transformers loads it."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(WORDS), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    pad, bos, eos = SPECIAL
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=pad,
        bos_token=bos,
        eos_token=eos,
        clean_up_tokenization_spaces=False,
        chat_template=CHAT_TEMPLATE,
    )


def build_model(shape: TinyShape, seed: int) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=shape.vocab,
            hidden_size=shape.hidden,
            intermediate_size=shape.intermediate,
            num_hidden_layers=shape.layers,
            num_attention_heads=shape.heads,
            num_key_value_heads=shape.kv_heads,
            max_position_embeddings=shape.positions,
            tie_word_embeddings=True,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
        )
    )


def model_card(model: Any, updates: int, config: MakeTinyConfig) -> str:
    """What the model is, for whoever finds it in a folder."""
    millions = sum(parameter.numel() for parameter in model.parameters()) / 1e6
    return (
        "---\nlicense: apache-2.0\nlibrary_name: transformers\n---\n\n"
        f"# creditlib's tiny policy\n\nA Llama of {millions:.2f} million parameters with a vocabulary of "
        f"{config.shape.vocab} tokens, trained from nothing in {updates} updates of {config.sft.batch} "
        f"synthetic examples of {', '.join(config.tasks)}. It writes SQLite queries about invented "
        "databases, calls invented tools and keeps small constraints. It is there to try reinforcement "
        "learning on in minutes, and knows nothing else.\n\n"
        "Made by `python -m creditlib.make_tiny`; no data of others went into it.\n"
    )


def make(config: MakeTinyConfig) -> None:
    """Train tokenizer and model, save both at `config.out`."""
    from creditlib.policy.cpu import fast_float32_matmul
    from creditlib.policy.scoring import Scorer
    from creditlib.rollout.encode import PromptEncoder
    from creditlib.trainer.fitting import Budget
    from creditlib.trainer.progress import Display
    from creditlib.trainer.supervised import Example, Supervised, batches, describe

    pairs = examples(config.tasks, config.seed)
    drawn = itertools.islice(examples(config.tasks, config.seed), 8000)
    sample = (
        "\n".join([*(message["content"] for message in prompt.messages or ()), target])
        for prompt, target in drawn
    )
    tokenizer = train_tokenizer(sample, config.shape.vocab)
    encoder = PromptEncoder(tokenizer)
    model = build_model(config.shape, config.seed)
    scorer = Scorer(model)
    supervised, generator = Supervised(scorer, config.sft), random.Random(config.seed)
    display = Display()
    display.say(describe(model))
    updates = config.sft.max_steps
    budget = Budget(updates, config.sft.minutes)
    done = 0
    with fast_float32_matmul(), display.progress("tiny", updates or 1) as bar:
        while budget.progress(done) < 1.0:
            pool = [
                Example.of(encoder, prompt, target) for prompt, target in itertools.islice(pairs, config.pool)
            ]
            settings = config.sft
            for trees in batches(
                pool, batch=settings.batch, micro_tokens=settings.micro_tokens, generator=generator
            ):
                progress = budget.progress(done)
                if progress >= 1.0:
                    break
                metrics = supervised.update(pool, trees, progress, whole=progress < config.whole)
                done += 1
                bar.advance(f"loss {metrics['loss']:.3f}")
                if done % 100 == 0:
                    display.say(f"{done} updates, {progress:.0%}, loss {metrics['loss']:.3f}")
    folder = Path(config.out)
    model.to(torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / "README.md").write_text(model_card(model, done, config), encoding="utf-8")
    display.say(f"{done} updates; saved at {folder}")


if __name__ == "__main__":
    sys.exit(cli.main(make, schema=MakeTinyConfig, config_name="make_tiny", about=__doc__ or ""))
