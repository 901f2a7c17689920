"""A run seen from outside: Ctrl-C, evaluation, what its checkpoints are good for."""

from __future__ import annotations

import json
import math
import os
import resource
import signal
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer

from creditlib.compose import compose_one
from creditlib.config import EvalConfig, EvaluateConfig, ExportConfig, ModelConfig, parse_section
from creditlib.evaluate import evaluate
from creditlib.export import export
from creditlib.policy.load import Policy, load_policy
from creditlib.rewards.judge import Judge
from creditlib.train import train
from creditlib.trainer.evaluation import (
    Answer,
    Evaluator,
    load_answers,
    paired_change,
    save_answers,
    summarise,
)
from creditlib.trainer.interrupt import ECHO, interruptible
from creditlib.types import Check, CreditlibError, Prompt
from tests.trainer import world

ROOT = Path(__file__).resolve().parents[2]

# --------------------------------------------------------------------------- Ctrl-C


class Impatient(world.Words):
    """Somebody presses Ctrl-C while the responses of the second step are judged."""

    def __init__(self, presses: int, pause: float = 0.0) -> None:
        super().__init__()
        self._presses, self._pause, self._calls = presses, pause, 0

    def verify(self, prompts: Any, texts: Any) -> list[dict[str, Check]]:
        self._calls += 1
        if self._calls == 2:
            for _ in range(self._presses):
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(self._pause)
        return super().verify(prompts, texts)


def start(folder: Path, task: world.Words) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    """A start of a run of three steps: its summary, None where Ctrl-C ended it, and the metrics so far."""
    run, policy = world.config(folder, trainer__steps=3), world.policy(dtype=torch.float32)
    former = signal.getsignal(signal.SIGINT)
    summary = None
    try:
        with world.run_folder(run) as directory:
            summary = world.trainer(run, policy, task=task, directory=directory).run()
    except KeyboardInterrupt:
        pass
    assert signal.getsignal(signal.SIGINT) is former
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return summary, [world.without_times(row) for row in rows]


@pytest.mark.parametrize("presses", [1, 2], ids=["once", "with a launcher's echo"])
def test_ctrl_c_finishes_the_step_and_the_same_command_goes_on(presses: int, tmp_path: Path) -> None:
    interrupted, rows = start(tmp_path / "run", Impatient(presses))
    assert interrupted is None
    assert [row["step"] for row in rows] == [1, 2]
    assert (tmp_path / "run" / "checkpoints" / "step-000002").is_dir()
    summary, rows = start(tmp_path / "run", world.Words())
    assert summary is not None and summary["resumed_from"] == [2]
    assert rows == start(tmp_path / "whole", world.Words())[1]


def test_ctrl_c_twice_stops_at_once(tmp_path: Path) -> None:
    interrupted, rows = start(tmp_path / "run", Impatient(2, pause=1.1 * ECHO))
    assert interrupted is None
    assert [row["step"] for row in rows] == [1]
    summary, rows = start(tmp_path / "run", world.Words())
    assert summary is not None and summary["resumed_from"] == [0]
    assert rows == start(tmp_path / "whole", world.Words())[1]


def test_other_threads_leave_signals_alone() -> None:
    found: list[bool] = []

    def work() -> None:
        with interruptible() as pressed:
            found.append(pressed())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [False]


# --------------------------------------------------------------------------- evaluation


def evaluator_of(task: Any, engine: Any, config: EvalConfig) -> Evaluator:
    return Evaluator(task, Judge(task, {}), engine, config)


def answer(prompt: str, reward: float, split: str = "a", mode: str = "greedy") -> Answer:
    return Answer(split, mode, prompt, {"r": reward}, 4.0, ("w5 w6", "w7"))


def test_slots_are_evaluated_by_what_they_mean() -> None:
    config = EvalConfig(limit=None, samples=3)
    answers = evaluator_of(world.Slots(), world.Scripted(), config).run()
    table_of = world.Slots()
    prompts = {prompt.id: prompt for prompt in table_of.prompts("held")}
    for own in answers:
        checks = table_of.verify([prompts[own.prompt]] * len(own.texts), own.texts)
        kinds = {check.kind for row in checks for check in row.values() if check.kind}
        assert set(own.rewards) == {*kinds, "earned", "perfect"}
        for kind in kinds:
            scores = [check.score for row in checks for check in row.values() if check.kind == kind]
            assert own.rewards[kind] == pytest.approx(sum(scores) / len(scores))
        earned = [[check.score for check in row.values() if check.kind] for row in checks]
        assert own.rewards["earned"] == pytest.approx(statistics.fmean(map(statistics.fmean, earned)))
        perfect = [all(check.score == 1 for check in row.values() if check.kind) for row in checks]
        assert own.rewards["perfect"] == pytest.approx(sum(perfect) / len(perfect))
    metrics = summarise(answers)
    sampled = [own for own in answers if own.mode == "sampled"]
    odd = [own.rewards["odd"] for own in sampled if "odd" in own.rewards]
    assert 0 < len(odd) < len(sampled)
    assert metrics["eval/held/sampled/odd"] == pytest.approx(sum(odd) / len(odd))
    assert "held/sampled/even" in paired_change(answers, answers)


def test_what_rewards_come_to_stands_behind_them_all() -> None:
    rewards = ({"a": 1.0, "earned": 1.0, "perfect": 1.0}, {"b": 0.0, "earned": 0.0, "perfect": 0.0})
    answers = [Answer("held", "greedy", str(n), own, 1.0, ("",)) for n, own in enumerate(rewards)]
    names = [key.split("/")[2] for key in paired_change(answers, answers) if key.startswith("held/")]
    assert names == ["a", "b", "earned", "perfect"]


def test_the_paired_change_by_hand() -> None:
    """Differences 0 and 1 on two questions: the bootstrap's means are 0, 1/2, 1. A question that one of the
    evaluations lacks, or that the reward does not apply to, is left out."""
    before = [
        answer("x", 0.0),
        answer("y", 0.5),
        answer("gone", 1.0),
        answer("nan", math.nan),
        answer("z", 0.25, "b"),
    ]
    after = [
        answer("y", 0.5),
        answer("x", 1.0),
        answer("new", 1.0),
        answer("nan", 1.0),
        answer("z", 0.25, "b"),
    ]
    change = paired_change(before, after)
    assert change["a/greedy/r"] == {
        "before": 0.25,
        "after": 0.75,
        "change": 0.5,
        "low": 0.0,
        "high": 1.0,
        "questions": 2,
    }
    assert change["b/greedy/r"]["change"] == change["b/greedy/r"]["low"] == 0.0
    assert change["all/greedy/r"]["questions"] == 3
    assert change["all/greedy/r"]["change"] == pytest.approx(1 / 3)


def test_answers_survive_the_disk_as_json(tmp_path: Path) -> None:
    answers = [answer("x", 0.5), answer("y", math.nan)]
    save_answers(tmp_path / "deep" / "answers.jsonl", answers)
    assert "NaN" not in (tmp_path / "deep" / "answers.jsonl").read_text()
    loaded = load_answers(tmp_path / "deep" / "answers.jsonl")
    assert loaded[0] == answers[0] and math.isnan(loaded[1].rewards["r"])
    assert summarise(loaded)["eval/a/greedy/r"] == 0.5


def test_the_same_questions_and_streams_each_time() -> None:
    policy = world.policy(dtype=torch.float32)
    run = world.config(eval={"limit": 3, "samples": 2})
    evaluator = evaluator_of(world.Words(), world.engine(policy), run.eval)
    first, second = evaluator.run(), evaluator.run()
    assert repr(first) == repr(second)  # NaN is not equal to itself
    task = world.Words()
    questions = {prompt.id: prompt for prompt in task.prompts("held")}
    for answer in first:  # the texts are those that were judged
        assert len(answer.texts) == (2 if answer.mode == "sampled" else 1)
        scores = [
            found["even"].score
            for found in task.verify([questions[answer.prompt]] * len(answer.texts), answer.texts)
        ]
        applying = [score for score in scores if not math.isnan(score)]
        if applying:
            assert answer.rewards["even"] == pytest.approx(sum(applying) / len(applying), rel=1e-6)
    assert len(first) == 6 and {a.mode for a in first} == {"sampled", "greedy"}
    other_seed = evaluator_of(world.Words(), world.engine(policy, seed=9), run.eval)
    assert [a.prompt for a in other_seed.run()] == [a.prompt for a in first]


def test_evaluation_refuses_what_it_cannot_do() -> None:
    class Twins(world.Words):
        def prompts(self, split: str) -> list[Prompt]:
            return [super().prompts(split)[0]] * 2

    engine = world.Scripted()
    with pytest.raises(CreditlibError, match="no split 'test', only"):
        evaluator_of(world.Words(), engine, world.config(eval={"splits": ["test"]}).eval)
    with pytest.raises(CreditlibError, match="two prompts have the same id"):
        evaluator_of(Twins(), engine, world.config().eval)
    assert not evaluator_of(world.Words(), engine, world.config(eval={"limit": 0}).eval).enabled


def test_the_summary_compares_the_end_with_the_beginning(tmp_path: Path) -> None:
    run = world.config(tmp_path / "run", trainer__steps=2, eval={"limit": 5, "every": 1})
    policy = world.policy(dtype=torch.float32)
    with world.run_folder(run) as directory:
        summary = world.trainer(run, policy, engine=world.engine(policy), directory=directory).run()
    files = {n: load_answers(tmp_path / "run" / "evaluations" / f"step-{n:06d}.jsonl") for n in (0, 1, 2)}
    row = summary["change"]["held/sampled/even"]
    for when, step in (("before", 0), ("after", 2)):
        values = [
            a.rewards["even"]
            for a in files[step]
            if a.mode == "sampled" and not math.isnan(a.rewards["even"])
        ]
        if len(values) == 5:
            assert row[when] == pytest.approx(sum(values) / len(values))
    assert row["change"] == pytest.approx(row["after"] - row["before"])
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["change"] == summary["change"]


# --------------------------------------------------------------------------- checkpoints


def saved_base(folder: Path) -> Policy:
    """A full model on disk, which adapters can name as their base."""
    policy = world.policy(dtype=torch.float32)
    policy.model.save_pretrained(folder)
    policy.tokenizer.save_pretrained(folder)
    return policy


def trained(folder: Path, policy: Policy) -> Policy:
    run = world.config(folder, trainer__steps=2)
    with world.run_folder(run) as directory:
        world.trainer(run, policy, directory=directory).run()
    return policy


IDS = torch.arange(3, 33).view(2, 15)


def logits(model: Any) -> torch.Tensor:
    with torch.no_grad():
        found: torch.Tensor = model.eval()(IDS).logits
    return found


def test_full_checkpoints_load_and_export(tmp_path: Path) -> None:
    policy = trained(tmp_path / "run", world.policy(dtype=torch.float32))
    expected = logits(policy.model)
    assert not torch.equal(expected, logits(world.policy(dtype=torch.float32).model))
    checkpoint = tmp_path / "run" / "checkpoints" / "step-000002"
    assert torch.equal(logits(AutoModelForCausalLM.from_pretrained(checkpoint)), expected)
    assert AutoTokenizer.from_pretrained(checkpoint)("w5 w6")["input_ids"] == [5, 6]

    settings = {"model": {"name": "hf", "path": str(tmp_path / "run")}, "out": str(tmp_path / "out")}
    export(ExportConfig.model_validate(settings))
    assert torch.equal(logits(AutoModelForCausalLM.from_pretrained(tmp_path / "out")), expected)
    with pytest.raises(CreditlibError, match="exists already"):
        export(ExportConfig.model_validate(settings))
    with pytest.raises(CreditlibError, match="no adapter to merge"):
        export(ExportConfig.model_validate({**settings, "merge": True, "out": str(tmp_path / "merged")}))


def test_adapter_checkpoints_load_and_export(tmp_path: Path) -> None:
    saved_base(tmp_path / "base")
    lora = {"r": 2, "alpha": 4}
    config = ModelConfig.model_validate(
        {"name": "hf", "path": str(tmp_path / "base"), "lora": lora, "device": "cpu"}
    )
    policy = trained(tmp_path / "run", load_policy(config))
    expected = logits(policy.model)
    checkpoint = tmp_path / "run" / "checkpoints" / "step-000002"
    base = AutoModelForCausalLM.from_pretrained(tmp_path / "base")
    assert not torch.equal(logits(base), expected)
    torch.testing.assert_close(logits(PeftModel.from_pretrained(base, checkpoint)), expected)
    assert AutoTokenizer.from_pretrained(checkpoint)("w5 w6")["input_ids"] == [5, 6]

    settings = {"model": {"name": "hf", "path": str(tmp_path / "run"), "device": "cpu"}}
    export(ExportConfig.model_validate({**settings, "out": str(tmp_path / "adapter")}))
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "base")
    torch.testing.assert_close(logits(PeftModel.from_pretrained(again, tmp_path / "adapter")), expected)
    export(ExportConfig.model_validate({**settings, "merge": True, "out": str(tmp_path / "merged")}))
    merged = AutoModelForCausalLM.from_pretrained(tmp_path / "merged")
    torch.testing.assert_close(logits(merged), expected, rtol=1e-4, atol=1e-4)


def test_exports_to_where_nothing_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved_base(tmp_path / "base")
    (tmp_path / "file").touch()

    def to(out: Path) -> None:
        model = {"name": "hf", "path": str(tmp_path / "base")}
        export(ExportConfig.model_validate({"model": model, "out": str(out)}))

    for out in (Path("/proc/foo/bar"), Path("/proc/self/bar"), tmp_path / "file" / "y"):
        with monkeypatch.context() as patch, pytest.raises(CreditlibError, match=f"^out={out}: cannot write"):
            patch.setattr("creditlib.policy.load.load_saved", None)  # it is told before a model loads
            to(out)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8 << 10, hard))
    try:
        with pytest.raises(CreditlibError, match=r"could not write out=.*Make room there"):
            to(tmp_path / "full" / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not list((tmp_path / "full").iterdir())


def test_exports_are_what_was_trained_whatever_the_settings_say(tmp_path: Path) -> None:
    """Neither the default adapter of model=hf nor its bfloat16 finds its way into an export."""
    saved_base(tmp_path / "base")
    out = tmp_path / "out"
    export(
        parse_section(
            ExportConfig, compose_one("export", ["model=hf", f"model.path={tmp_path / 'base'}", f"out={out}"])
        )
    )
    assert not (out / "adapter_config.json").exists()
    again = AutoModelForCausalLM.from_pretrained(out)
    assert again.dtype == torch.float32
    assert torch.equal(logits(again), logits(world.policy(dtype=torch.float32).model))


def test_an_adapter_that_is_there_wins_over_the_default_one(tmp_path: Path) -> None:
    saved_base(tmp_path / "base")
    settings = {"name": "hf", "path": str(tmp_path / "base"), "device": "cpu"}
    lora = {"r": 2, "alpha": 4, "targets": ["q_proj", "v_proj"]}
    policy = load_policy(ModelConfig.model_validate({**settings, "lora": lora}))
    policy.model.save_pretrained(tmp_path / "adapter")
    policy.tokenizer.save_pretrained(tmp_path / "adapter")

    def again(lora: dict[str, Any] | None) -> Any:
        there = {**settings, "path": str(tmp_path / "adapter"), "lora": lora}
        return load_policy(ModelConfig.model_validate(there)).model.peft_config["default"]

    for same in (None, {}, lora, {"r": 2, "alpha": 4}):
        found = again(same)
        assert (found.r, found.lora_alpha, set(found.target_modules)) == (2, 4, {"q_proj", "v_proj"})
    for other in ({"r": 3}, {**lora, "alpha": 8}, {**lora, "targets": ["q_proj"]}, {**lora, "dropout": 0.1}):
        with pytest.raises(CreditlibError, match=r"holds an adapter with r=2 alpha=4 .*merge=true"):
            again(other)


# --------------------------------------------------------------------------- the command


def test_a_finished_run_shows_its_result_again(tmp_path: Path) -> None:
    saved_base(tmp_path / "base")
    model = {"name": "hf", "path": str(tmp_path / "base"), "device": "cpu"}
    run = world.config(tmp_path / "run", trainer__steps=2, model=model, eval={"limit": 2})
    first = train(run, world.Words())
    assert first["finished"] and first["step"] == 2 and first["change"]
    written = (tmp_path / "run" / "metrics.jsonl").read_text()
    assert train(run, world.Words()) == first
    assert (tmp_path / "run" / "metrics.jsonl").read_text() == written


def test_an_evaluation_into_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    class Asked(world.Words):
        def prompts(self, split: str) -> list[Prompt]:
            raise AssertionError("nobody is asked before the folder is there")

    for place in (Path("/proc/x"), Path("/proc/self"), tmp_path / "file"):
        settings = {
            "task": {"_target_": "tests.trainer.world.Words"},
            "model": {},
            "run": {"dir": str(place)},
        }
        with pytest.raises(CreditlibError, match=f"^run.dir={place}: cannot write there"):
            evaluate(parse_section(EvaluateConfig, settings), Asked())
        with pytest.raises(CreditlibError, match="cannot write there"):
            save_answers(place / "answers.jsonl", [])


@pytest.mark.parametrize("line", ["{", "[]", '{"rewards": {}}', '{"rewards": {}, "texts": [], "more": 1}'])
def test_damaged_answers_are_named(line: str, tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    save_answers(path, [Answer("held", "greedy", "a", {"r": math.nan}, 3.0, ("a\u2028b",))])
    assert load_answers(path)[0].texts == ("a\u2028b",)
    with open(path, "a") as file:
        file.write(f"{line}\n")
    with pytest.raises(CreditlibError, match=r"answers\.jsonl, line 2, is damaged .*delete the file"):
        load_answers(path)


@pytest.mark.slow
def test_kill_9_and_resume_the_real_command(tmp_path: Path) -> None:
    saved_base(tmp_path / "base")
    settings = [
        "task={_target_: tests.trainer.world.Words}",
        "model=hf",
        f"model.path={tmp_path / 'base'}",
        "prompt.style=text",
        "rollout.max_tokens=7",
        "trainer.steps=6",
        "eval.limit=3",
    ]
    command = [sys.executable, "-m", "benchmarks.kill_resume", "--kills", "1", "--", *settings]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=ROOT)
    assert done.returncode == 0 and "lines equal" in done.stdout, done.stdout + done.stderr
