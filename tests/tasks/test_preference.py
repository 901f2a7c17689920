"""The preference task: prompts from files, or the embedded questions; verifiable rewards beside a model's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from creditlib.parts import check_task
from creditlib.types import CreditlibError, MissingDataError, ReplayTask
from tasks.preference import Preference
from tasks.text2sql import Text2SQL


def words(prompt: Any, text: str) -> float:
    return min(len(text.split()), 10) / 10


def write(path: Path, rows: list[Any]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path.name


def test_prompts_from_files(tmp_path: Path) -> None:
    train = write(tmp_path / "a.jsonl", [{"prompt": f"q{i}"} for i in range(10)])
    held = write(tmp_path / "b.jsonl", [{"turns": ["r", "s"]}])
    task = Preference(train=train, evaluation={"held": held}, data=str(tmp_path), limit=5)
    assert check_task(task, "task") is task and isinstance(task, ReplayTask)
    assert [prompt.messages[0]["content"] for prompt in task.prompts("train") if prompt.messages] == [
        "q0", "q2", "q4", "q6", "q8",
    ]  # fmt: skip
    assert task.eval_splits == ("held",) and task.prompts("held")[0].messages == (
        {"role": "user", "content": "r"},
    )
    assert task.reward_names == () and task.bounds == {}
    assert task.verify(task.prompts("held"), ["x"]) == [{}]
    assert task.information(task.prompts("held")[0], {}) == {}
    plain = Preference(train=train, data=str(tmp_path), style="text")
    assert plain.prompts("train")[0].text == "q0\n\n"


def test_a_function_as_a_reward_beside_it(tmp_path: Path) -> None:
    train = write(tmp_path / "a.jsonl", [{"prompt": "q"}])
    task = Preference(train=train, data=str(tmp_path), rewards=(f"{__name__}.words",))
    assert task.reward_names == ("words",)
    assert task.verify(task.prompts("train"), ["a b c"])[0]["words"].score == pytest.approx(0.3)
    with pytest.raises(CreditlibError, match="import path of a function"):
        Preference(train=train, data=str(tmp_path), rewards=("nowhere.function",))


def test_the_embedded_questions_and_their_rewards() -> None:
    task = Preference(rewards=("execution",))
    sample = Text2SQL(example_values=1)
    try:
        assert len(task.prompts("train")) == len(sample.prompts("train")) > 2000
        prompt = task.prompts("train")[0]
        assert prompt.messages == sample.prompts("train")[0].messages
        target = task.target(prompt)
        (found,) = task.verify([prompt], [target])
        assert list(found) == ["execution"] and found["execution"].score == 1.0
        told = task.information(prompt, found)
        assert "Reference:" in told["execution"]
        rendered = task.render(prompt, {"execution": told["execution"]})
        assert rendered.messages and told["execution"] in rendered.messages[-1]["content"]
        assert {span.part for span in task.parts(target)} > {"tag"}
    finally:
        task.close()
        sample.close()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"train": "none.jsonl"}, "none.jsonl is not there"),
        ({"train": "bad.jsonl"}, r"2 of 3 rows have no prompt.*line 2: KeyError"),
        ({"train": "empty.jsonl"}, "there are no rows"),
        ({"evaluation": {"held": "bad.jsonl"}}, r"task.evaluation needs task.train"),
        ({"rewards": ("spelling",)}, "has no reward 'spelling', only format, executable, execution"),
    ],
)
def test_what_cannot_be_asked(settings: dict[str, Any], message: str, tmp_path: Path) -> None:
    write(tmp_path / "bad.jsonl", [{"prompt": "q"}, {"text": "q"}, []])
    write(tmp_path / "empty.jsonl", [])
    with pytest.raises((CreditlibError, MissingDataError), match=message):
        Preference(data=str(tmp_path), **settings)
