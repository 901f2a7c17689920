"""Warm-start batches cover every example once, and their loss is the mean over response tokens."""

from __future__ import annotations

import errno
import json
import math
import random
from pathlib import Path
from typing import Any

import pytest
import torch

from creditlib.config import ModelConfig, SftConfig, SftSettings
from creditlib.policy.load import load_policy
from creditlib.policy.scoring import Scorer
from creditlib.policy.tree import families
from creditlib.rollout.encode import PromptEncoder
from creditlib.sft import sft
from creditlib.train import train
from creditlib.trainer.fitting import Budget
from creditlib.trainer.supervised import Example, Supervised, batches, plan
from creditlib.types import CreditlibError, Prompt
from tests.trainer import world

SCHEMA_A, SCHEMA_B = tuple(range(3, 23)), tuple(range(30, 50))


def examples(count: int = 12) -> list[Example]:
    """Questions about two databases, in turn."""
    made = []
    for i in range(count):
        schema = SCHEMA_A if i % 2 else SCHEMA_B
        made.append(Example((*schema, 50 + i % 5, 51), (4 + i, 5 + i % 3, *range(6, 6 + i % 4), 2)))
    return made


def test_families_are_prompts_with_a_long_common_beginning() -> None:
    found = families([example.prompt for example in [*examples(6), Example((9, 8, 7), (1,))]])
    assert sorted(map(sorted, found)) == [[0, 2, 4], [1, 3, 5], [6]]


@pytest.mark.parametrize("batch, micro_tokens", [(1, 10), (4, 64), (5, 1000), (100, 1000)])
def test_an_epoch_gives_every_example_once(batch: int, micro_tokens: int) -> None:
    made = examples(23)
    epoch = list(batches(made, batch=batch, micro_tokens=micro_tokens, generator=random.Random(0)))
    assert sorted(i for trees in epoch for tree in trees for i in tree) == list(range(23))
    for trees in epoch:
        for tree in trees:
            assert len(tree) <= batch
            assert len({made[i].prompt[0] for i in tree}) == 1, "a tree holds one family"


def test_an_answer_begins_behind_what_the_template_has_opened() -> None:
    policy = load_policy(ModelConfig())
    prompt = Prompt("p", "t", messages=({"role": "user", "content": "a question"},))
    answer = "<think> so </think> yes"
    plain = Example.of(PromptEncoder(policy.tokenizer), prompt, answer)
    policy.tokenizer.chat_template += "{{ '<think>' if add_generation_prompt else '' }}"
    opened = Example.of(PromptEncoder(policy.tokenizer), prompt, answer)
    assert policy.tokenizer.decode(opened.ids) == policy.tokenizer.decode(plain.ids)
    assert policy.tokenizer.decode(opened.response) == " so </think> yes</s>"


def oracle(model: Any, made: list[Example], *, whole: bool) -> torch.Tensor:
    """Mean negative log-likelihood, one example at a time."""
    total, tokens = torch.zeros((), dtype=torch.float64), 0
    for example in made:
        first = 1 if whole else len(example.prompt)
        log_p = torch.log_softmax(model(input_ids=torch.tensor([example.ids])).logits[0], -1)
        for t in range(first, len(example.ids)):
            total = total - log_p[t - 1, example.ids[t]]
            tokens += 1
    return total / tokens


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("micro_tokens", [30, 4096])
def test_the_loss_is_the_mean_over_the_batch(make_model, whole: bool, micro_tokens: int) -> None:
    model, made = make_model("llama"), examples()
    settings = SftSettings(micro_tokens=micro_tokens, learning_rate=1e-3)
    with torch.no_grad():
        want = oracle(model, made, whole=whole).item()
    supervised = Supervised(Scorer(model), settings)
    trees = [[0, 2, 4, 6], [1, 3], [5, 7, 8, 9, 10, 11]]  # sharing changes nothing, nor does its lack
    metrics = supervised.update(made, trees, 0.5, whole=whole)
    assert metrics["loss"] == pytest.approx(want, rel=1e-9)
    with torch.no_grad():
        assert oracle(model, made, whole=whole).item() < want, "an update lowers the loss"


def test_the_rate_warms_up_and_decays_to_nothing(make_model) -> None:
    supervised = Supervised(Scorer(make_model("llama")), SftSettings(learning_rate=1.0, warmup_share=0.1))
    made = examples(2)
    rates = [supervised.update(made, [[0], [1]], p)["learning_rate"] for p in (0.0, 0.05, 0.1, 0.55, 1.0)]
    assert rates[0] < rates[1] < rates[2] == pytest.approx(1.0)
    assert rates[3] == pytest.approx(0.5) and rates[4] == 0.0


def test_a_budget_of_minutes_ends_before_the_updates_do(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("creditlib.trainer.fitting.time.monotonic", lambda: now[0])
    budget = Budget(100, 2.0)
    assert budget.progress(10) == 0.1
    now[0] = 60.0
    assert budget.progress(10) == 0.5
    assert Budget(100, None).progress(100) == 1.0


def test_an_epoch_is_an_epoch_where_trees_do_not_add_up_to_the_batch() -> None:
    """Four databases with three questions each: whole trees, so a batch of 4 takes two of them."""
    made = [Example((*range(10 * d, 10 * d + 9), q), (4, 2)) for d in range(4) for q in range(3)]
    planned = plan(made, SftSettings(batch=4, epochs=3), seed=0)
    assert [sorted(map(len, trees)) for trees in planned] == [[3, 3]] * 6
    for epoch in (planned[:2], planned[2:4], planned[4:]):
        assert sorted(i for trees in epoch for tree in trees for i in tree) == list(range(12))
    assert planned[:2] != planned[2:4]
    assert plan(made, SftSettings(batch=4, epochs=3, max_steps=5), seed=0) == planned[:5]


def test_tiny_updates_of_bfloat16_weights_add_up(make_model) -> None:
    model, made = make_model("llama", torch.bfloat16), examples()
    supervised = Supervised(Scorer(model), SftSettings(learning_rate=1e-6, warmup_share=0.0))
    before = [parameter.detach().clone() for parameter in supervised.fitting.optimizer.parameters]
    for _ in range(3):
        supervised.update(made, [[0, 2], [1, 3]], 0.0)
    moved = torch.cat(
        [
            (p - b).abs().flatten()
            for p, b in zip(supervised.fitting.optimizer.parameters, before, strict=True)
        ]
    )
    assert 1e-7 < moved.max().item() < 1e-5 and (moved > 1e-7).float().mean().item() > 0.3


def test_updates_that_are_not_finite_are_skipped_then_stop_the_warm_start(make_model) -> None:
    made, supervised = examples(), Supervised(Scorer(make_model("llama")), SftSettings(max_skipped_updates=2))
    forward, broken = supervised.scorer.forward_sequences, [True, False, True, True]

    def sometimes_nan(*arguments: Any, **settings: Any) -> Any:
        logps, entropy = forward(*arguments, **settings)
        return (logps * math.nan if broken.pop(0) else logps), entropy

    supervised.scorer.forward_sequences = sometimes_nan  # type: ignore[method-assign]
    assert math.isnan(supervised.update(made, [[0]], 0.5)["loss"])
    assert all(parameter.isfinite().all() for parameter in supervised.fitting.optimizer.parameters)
    assert math.isfinite(supervised.update(made, [[0]], 0.5)["loss"])
    supervised.update(made, [[0]], 0.5)
    with pytest.raises(CreditlibError, match=r"stopped: 2 updates in a row .*sft\.max_skipped_updates"):
        supervised.update(made, [[0]], 0.5)


# --------------------------------------------------------------------------- the command


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("base")
    policy = world.policy(dtype=torch.float32)
    policy.model.save_pretrained(folder)
    policy.tokenizer.save_pretrained(folder)
    return folder


def settings(base: Path, folder: Path, **changes: Any) -> dict[str, Any]:
    """For sft and, with the open sections, for train."""
    values = {
        "task": {"_target_": "tests.trainer.world.Words"},
        "model": {"name": "hf", "path": str(base), "device": "cpu"},
        "prompt": {"style": "text"},
        "rollout": {"max_tokens": 7},
        "sft": {"batch": 4, "learning_rate": 1e-3},
        "eval": {"limit": 2},
        "log": {"progress": False},
        "run": {"dir": str(folder)},
    }
    return values | changes


def test_a_warm_start_trains_on_the_references(base: Path, tmp_path: Path) -> None:
    config = SftConfig.parse(
        settings(base, tmp_path / "run", sft={"batch": 4, "epochs": 2, "learning_rate": 1e-2})
    )
    summary = sft(config, world.Words())
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    losses = [row["loss"] for row in rows if row["phase"] == "sft"]
    assert summary["step"] == len(losses) and losses[-1] < losses[0]
    assert {row["step"] for row in rows if row["phase"] == "eval"} == {0, len(losses)}
    assert (tmp_path / "run" / "checkpoints" / f"step-{len(losses):06d}").is_dir()


class OneLong(world.Words):
    """The tenth of twelve prompts has 30 words, the others 7 at most."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0
        self._prompts["train"][9] = Prompt("train/long", "words", text=" ".join(["w7"] * 30))

    def prompts(self, split: str) -> list[Prompt]:
        self.reads += split == "train"
        return super().prompts(split)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"prompt": {"style": "text", "max_tokens": 29}}, r"longer than 29 tokens.*prompt\.max_tokens"),
        (
            {"rollout": {"max_tokens": 230}},
            r"longer than 26 tokens.*256 positions.*Lower rollout\.max_tokens",
        ),
        (
            {"prompt": {"style": "text", "max_tokens": 20}, "rollout": {"max_tokens": 230}},
            r"longer than 20 tokens.*Raise prompt\.max_tokens",
        ),
        (
            {"prompt": {"style": "text", "max_tokens": 40}, "rollout": {"max_tokens": 230}},
            r"longer than 26 tokens.*Lower rollout\.max_tokens",
        ),
    ],
)
def test_long_prompts_stop_a_training_run_at_its_start(
    limits: dict[str, Any], message: str, base: Path, tmp_path: Path
) -> None:
    task = OneLong()
    run = world.config(
        tmp_path / "run", model={"name": "hf", "path": str(base), "device": "cpu"}, trainer__steps=1, **limits
    )
    with pytest.raises(CreditlibError, match=r"1 of 12 training prompts are " + message) as caught:
        train(run, task)
    assert "'train/long', has 30" in str(caught.value)
    assert not (tmp_path / "run").exists()
    fits = run.model_copy(
        update={
            "prompt": run.prompt.model_copy(update={"max_tokens": 30}),
            "rollout": run.rollout.model_copy(update={"max_tokens": 7}),
        }
    )
    task.reads = 0
    assert train(fits, task)["finished"]  # in the same folder
    assert task.reads == 1


@pytest.mark.parametrize("prompt", [None, 20])
def test_responses_that_leave_no_room_for_prompts(prompt: int | None, base: Path, tmp_path: Path) -> None:
    model = {"name": "hf", "path": str(base), "device": "cpu"}
    limits = {"prompt": {"style": "text", "max_tokens": prompt}, "rollout": {"max_tokens": 256}}
    run = world.config(tmp_path / "run", model=model, **limits)
    with pytest.raises(CreditlibError, match=r"rollout\.max_tokens=256 leaves no room .* 256 positions"):
        train(run, world.Words())


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"prompt": {"style": "text", "max_tokens": 29}}, r"longer than 29 tokens.*'train/long', has 30"),
        ({}, r"longer than 256 tokens.*'train/0', has 304"),
    ],
)
def test_long_prompts_stop_a_warm_start_at_its_start(
    limits: dict[str, Any], message: str, base: Path, tmp_path: Path
) -> None:
    class LongAnswer(OneLong):
        def target(self, prompt: Prompt) -> str:
            return " ".join(["w4"] * (300 if prompt.id == "train/0" else 2))

    with pytest.raises(CreditlibError, match=r"1 of 12 training prompts are " + message):
        sft(SftConfig.parse(settings(base, tmp_path / "run", **limits)), LongAnswer())
    assert not (tmp_path / "run" / "metrics.jsonl").read_text()


def test_a_warm_start_tells_of_padded_scoring(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("creditlib.policy.trunk.tree_obstacle", lambda config: "its attention is odd")
    changes = {"eval": {"limit": 0}, "sft": {"max_steps": 1}}
    sft(SftConfig.parse(settings(base, tmp_path / "run", **changes)), world.Words())
    assert "padded scoring instead of the prefix tree: its attention is odd" in capsys.readouterr().out


def test_a_warm_start_whose_disk_is_full_says_that_it_begins_anew(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(torch, "save", full)
    changes = {"eval": {"limit": 0}, "sft": {"max_steps": 1}}
    with pytest.raises(CreditlibError, match=r"No space left.*a warm start begins anew"):
        sft(SftConfig.parse(settings(base, tmp_path / "run", **changes)), world.Words())


def test_one_process_is_enough(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(CreditlibError, match=r"warm start runs in one process.*python -m creditlib\.sft"):
        sft(SftConfig.parse(settings(base, tmp_path / "run")), world.Words())
    assert not (tmp_path / "run").exists()
