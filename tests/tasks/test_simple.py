"""A reader's own prompts and rewards as a task."""

from __future__ import annotations

import math
from typing import Any

import pytest

from creditlib.types import Check, CreditlibError, Prompt, Task
from tasks.simple import SimpleTask


def right(prompt: Prompt, response: str) -> float:
    return float(response == prompt.reference["answer"])


def short(prompt: Prompt, response: str) -> Check | None:
    return Check(0.5, "so so") if response else None


def make(**changes: Any) -> SimpleTask:
    settings: dict[str, Any] = {
        "prompts": [{"prompt": "1 + 1?", "answer": "2"}, {"prompt": "2 + 2?", "answer": "4"}],
        "rewards": {"right": right, "short": short},
        "eval_prompts": [{"prompt": [{"role": "user", "content": "3 + 3?"}], "answer": "6"}],
        "targets": lambda prompt: prompt.reference["answer"],
    }
    return SimpleTask("sums", **{**settings, **changes})


def test_it_is_a_task() -> None:
    task = make()
    assert isinstance(task, Task)
    assert (task.name, task.reward_names, task.eval_splits) == ("sums", ("right", "short"), ("eval",))
    assert task.bounds == {"right": (0.0, 1.0), "short": (0.0, 1.0)}
    first, second = task.prompts("train")
    assert first.messages == ({"role": "user", "content": "1 + 1?"},)
    assert first.id == "sums/train/0" and task.prompts("eval")[0].id == "sums/eval/0"
    assert task.target(second) == "4"
    checks = task.verify([first, second], ["2", ""])
    assert checks[0] == {"right": Check(1.0), "short": Check(0.5, "so so")}
    assert checks[1]["right"].score == 0.0
    assert math.isnan(checks[1]["short"].score)
    task.close()


def test_prompts_may_be_texts_or_prompts_and_splits_may_be_named() -> None:
    ready = Prompt("mine", "sums", text="plain")
    task = make(prompts=["hello", ready], eval_prompts={"easy": ["a"], "hard": ["b"]}, targets=None)
    assert task.prompts("train")[0].messages == ({"role": "user", "content": "hello"},)
    assert task.prompts("train")[1] is ready
    assert task.eval_splits == ("easy", "hard")
    assert make(eval_prompts=()).eval_splits == ()
    with pytest.raises(CreditlibError, match="targets="):
        task.target(ready)
    with pytest.raises(CreditlibError, match="no split 'test'"):
        task.prompts("test")


def test_an_exception_in_a_reward_names_the_reward_and_the_prompt() -> None:
    def broken(prompt: Prompt, response: str) -> float:
        return 1 / len(response)

    task = make(rewards={"broken": broken})
    with pytest.raises(CreditlibError, match=r"'broken'.*'sums/train/1' raised ZeroDivisionError") as caught:
        task.verify(task.prompts("train"), ["a", ""])
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize(
    ("returned", "message"),
    [("yes", "returned 'yes'; expected a number"), (3.0, r"outside of 0.0 to 1.0.*bounds=")],
)
def test_a_reward_must_return_a_number_within_its_bounds(returned: Any, message: str) -> None:
    task = make(rewards={"odd": lambda prompt, response: returned})
    with pytest.raises(CreditlibError, match=message):
        task.verify(task.prompts("train")[:1], ["x"])


def test_declared_bounds_widen_what_a_reward_may_return() -> None:
    task = make(rewards={"wide": lambda prompt, response: -3}, bounds={"wide": (-3, 3)})
    assert task.verify(task.prompts("train")[:1], ["x"])[0]["wide"].score == -3.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"prompts": []}, "at least one prompt"),
        ({"bounds": {"speed": (0, 2)}}, "speed"),
        ({"eval_prompts": {"train": ["a"]}}, "'train' is the training split"),
        ({"prompts": [{"question": "?"}]}, "sums/train/0: expected a text"),
        ({"prompts": [3]}, "sums/train/0: expected a text"),
    ],
)
def test_settings_that_make_no_sense(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(CreditlibError, match=message):
        make(**changes)
