"""The embedded instruction prompts and their stream: what is shipped is what the script makes, and it is
sound.
"""

from __future__ import annotations

import inspect
import itertools
import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tasks.data.instructions import generate, wordings
from tasks.data.instructions.compose import CLASHES, GROUPS, KINDS, NEW_MIXTURES, compose, draw_kinds, mixes
from tasks.instructions import EMBEDDED, Instructions
from verifiers.instructions import check
from verifiers.instructions.constraint import CONSTRAINTS

SPLITS = ("train", "new_prompts", "new_mixtures")


@pytest.fixture(scope="module")
def rows() -> dict[str, list[dict[str, Any]]]:
    return {
        split: [json.loads(line) for line in (EMBEDDED / f"{split}.jsonl").read_text().splitlines()]
        for split in SPLITS
    }


def test_the_script_makes_what_is_shipped(tmp_path: Path) -> None:
    generate.write(tmp_path)
    for split in SPLITS:
        assert (tmp_path / f"{split}.jsonl").read_bytes() == (EMBEDDED / f"{split}.jsonl").read_bytes()


def test_sizes(rows: dict[str, list[dict[str, Any]]]) -> None:
    assert {split: len(found) for split, found in rows.items()} == generate.SIZES
    assert sum(path.stat().st_size for path in EMBEDDED.glob("*.jsonl")) < 1_300_000
    for found in rows.values():
        numbers = Counter(len(row["constraints"]) for row in found)
        assert set(numbers) == set(range(5, 14))
        assert max(numbers.values()) - min(numbers.values()) <= 1


def test_every_answer_keeps_every_constraint(rows: dict[str, list[dict[str, Any]]]) -> None:
    for row in itertools.chain(*rows.values()):
        for found in check(row["target"], constraints=row["constraints"]).values():
            assert (found.score, found.flags) == (1.0, ()), (row, found)


def test_nothing_leaks(rows: dict[str, list[dict[str, Any]]]) -> None:
    lists = [
        json.dumps([row["prompt"], sorted(map(json.dumps, row["constraints"]))])
        for row in itertools.chain(*rows.values())
    ]
    assert len(set(lists)) == len(lists)
    answers = [row["target"] for row in itertools.chain(*rows.values())]
    assert len(set(answers)) == len(answers)


def test_every_constraint_occurs_and_each_once_a_prompt(rows: dict[str, list[dict[str, Any]]]) -> None:
    for split, found in rows.items():
        used = Counter(own["id"] for row in found for own in row["constraints"])
        assert set(used) == set(wordings._WORDINGS), split
        assert min(used.values()) >= len(found) / 100
        for row in found:
            texts = [json.dumps(own) for own in row["constraints"]]
            assert len(set(texts)) == len(texts)


def test_wordings_take_the_constraints_arguments() -> None:
    Instructions()  # loads the families
    for id, says in wordings._WORDINGS.items():
        arguments = list(inspect.signature(CONSTRAINTS[id].sound).parameters)[1:]
        assert sorted(inspect.signature(says).parameters) == sorted(arguments), id


def test_different_lists_read_differently(rows: dict[str, list[dict[str, Any]]]) -> None:
    task = Instructions()
    texts = [message["content"] for prompt in task.prompts("train") for message in prompt.messages or ()]
    assert len(set(texts)) == len(texts)


# ------------------------------------------------------------------ lengths


def _lengths(tokenizer: Any) -> tuple[list[int], list[int]]:
    from creditlib.rollout.encode import PromptEncoder

    task, encoder = Instructions(), PromptEncoder(tokenizer)
    prompts = [prompt for split in SPLITS for prompt in task.prompts(split)]
    answers = tokenizer([task.target(prompt) for prompt in prompts], add_special_tokens=False)["input_ids"]
    return [len(encoder.encode(prompt)) for prompt in prompts], list(map(len, answers))


def test_prompts_and_answers_are_short_for_a_tokenizer_of_their_kind() -> None:
    """A vocabulary as large as the embedded policy's, learnt from the stream."""
    from creditlib.make_tiny import train_tokenizer

    pairs = itertools.islice(Instructions(style="text").synthetic(0), 2000)
    tokenizer = train_tokenizer((f"{prompt.text}{target}" for prompt, target in pairs), 1536)
    prompts, answers = _lengths(tokenizer)
    assert max(prompts) <= 120
    assert max(answers) <= 60


# ------------------------------------------------------------------ how kinds are drawn


def test_kinds_go_together() -> None:
    rng = Random(0)
    group = {kind: number for number, own in enumerate(GROUPS) for kind in own}
    for _ in range(3000):
        kinds = draw_kinds(rng, rng.randint(4, 13), never=NEW_MIXTURES)
        assert len({group[kind] for kind in kinds}) == len(kinds)
        assert not mixes(kinds, CLASHES | NEW_MIXTURES)
    for pair in NEW_MIXTURES:
        assert not pair & set() and not mixes(pair, CLASHES)
        assert set(pair) <= set(draw_kinds(rng, 9, asked=sorted(pair)))


def test_training_never_asks_for_a_held_out_mixture_and_the_held_out_prompts_do(
    rows: dict[str, list[dict[str, Any]]],
) -> None:
    found = {split: [mixes(_kinds(row), NEW_MIXTURES) for row in rows[split]] for split in SPLITS}
    assert not any(found["train"]) and not any(found["new_prompts"]) and all(found["new_mixtures"])
    examples = itertools.islice(generate.stream(5), 2000)
    assert not any(mixes(example.kinds, NEW_MIXTURES) for example in examples)


def _kinds(row: dict[str, Any]) -> set[str]:
    """Kinds that may be meant by a row's constraints; those of one id are not told apart."""
    ids = {own["id"] for own in row["constraints"]}
    return {kind for kind in KINDS if compose(Random(0), [kind]).constraints[0]["id"] in ids}


# ------------------------------------------------------------------ the stream


def test_the_stream_is_a_function_of_its_seed() -> None:
    first, again, other = (list(itertools.islice(generate.stream(seed), 200)) for seed in (7, 7, 8))
    assert first == again != other


def test_answers_of_the_stream_keep_their_constraints() -> None:
    wrong = [
        example for example in itertools.islice(generate.stream(3), 1500) if not generate.keeps_all(example)
    ]
    assert not wrong, wrong[:3]


def test_a_prompt_shows_nothing_that_is_not_asked_for() -> None:
    for example in itertools.islice(generate.stream(2), 1500):
        signs = {
            "title": "<<",
            "postscript": "P.S.",
            "placeholders": "[",
            "highlights": " *",
            "quotation": '"',
        }
        for kind, sign in signs.items():
            assert (sign in example.answer) <= (kind in example.kinds), (kind, example)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_alone_and_with_each_that_it_goes_with(kind: str) -> None:
    rng = Random(kind)
    partners = [own for own in KINDS if not mixes({kind, own}, CLASHES) and not _same_group(kind, own)]
    for partner in partners:
        example = compose(rng, [kind, partner])
        assert generate.keeps_all(example), example


def _same_group(one: str, other: str) -> bool:
    return any({one, other} <= set(group) for group in GROUPS)
