"""The text-to-SQL task: prompts, replay renderings, settings, verdicts."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from creditlib.types import Check, CreditlibError, MissingDataError, Prompt, Task
from tasks.sql_data import Row
from tasks.text2sql import REWARDS, Text2SQL
from verifiers.sql import Limits

SCHEMA = "singer(id number primary key, name text 'ana bell', age number 23)"
ROW = Row("music", "how many singers are older than 30?", "SELECT count(*) FROM singer WHERE age > 30")


def _body(prompt: Prompt) -> str:
    return prompt.text or "".join(message["content"] for message in prompt.messages or ())


# ------------------------------------------------------------------ prompts


def test_it_is_a_task() -> None:
    task = Text2SQL()
    assert isinstance(task, Task)
    assert task.reward_names == REWARDS == ("format", "executable", "execution")
    assert task.bounds == dict.fromkeys(REWARDS, (0.0, 1.0))
    assert task.eval_splits == ("new_questions", "new_databases")


def test_a_text_prompt_in_full() -> None:
    prompt = Text2SQL(style="text").compose(ROW, SCHEMA, id="p")
    assert prompt.text == (
        "Write one SQLite query that answers the question.\n"
        "Schema:\n"
        "singer(id number primary key, name text 'ana bell', age number 23)\n"
        "Format: <sql>one SQLite query</sql>\n"
        "Question: how many singers are older than 30?\n"
        "Answer:\n"
    )


def test_a_chat_prompt_in_full() -> None:
    task = Text2SQL(tags=("<a>", "</a>"))
    prompt = task.compose(dataclasses.replace(ROW, evidence="old means over 30"), SCHEMA, id="p")
    assert prompt.messages == (
        {"role": "system", "content": "Write one SQLite query that answers the question."},
        {
            "role": "user",
            "content": f"Schema:\n{SCHEMA}\nFormat: <a>one SQLite query</a>\nHint: old means over 30\n"
            "Question: how many singers are older than 30?",
        },
    )
    assert task.target(prompt) == "<a>SELECT count(*) FROM singer WHERE age > 30</a>"
    assert Text2SQL(instruction="").compose(ROW, SCHEMA, id="p").messages[0]["role"] == "user"  # type: ignore[index]


def test_prompts_on_one_database_begin_alike() -> None:
    for style in ("chat", "text"):
        prompts = Text2SQL(style=style).prompts("train")  # type: ignore[arg-type]
        for _, group in itertools.groupby(prompts, key=lambda prompt: prompt.reference["db_id"]):
            bodies = [_body(prompt) for prompt in group]
            shared = os.path.commonprefix(bodies)  # noqa: RUF071 - characters are meant
            assert len(bodies) > 50 and shared.endswith("</sql>\nQuestion: ")


def test_prompts_have_ids_of_their_own_and_a_fixed_order() -> None:
    task = Text2SQL()
    every = [prompt for split in ("train", *task.eval_splits) for prompt in task.prompts(split)]
    assert len({prompt.id for prompt in every}) == len(every)
    assert task.prompts("train") == Text2SQL().prompts("train")
    assert all(Path(prompt.reference["database"]).is_file() for prompt in every)


def test_a_limit_takes_prompts_of_all_databases_and_keeps_their_ids() -> None:
    few = Text2SQL(limit=64).prompts("train")
    full = {prompt.id: prompt for prompt in Text2SQL().prompts("train")}
    assert len(few) == 64 and len({prompt.reference["db_id"] for prompt in few}) == 16
    assert all(full[prompt.id] == prompt for prompt in few)


# ------------------------------------------------------------------ verifier information


def test_the_prompt_as_asked_is_the_replay_that_lacks_the_reference() -> None:
    task = Text2SQL()
    prompt = task.prompts("new_databases")[0]
    told = task.information(prompt, {})
    assert set(told) == set(REWARDS)
    del told["execution"]
    assert task.render(prompt, told) == prompt


@pytest.mark.parametrize("style", ["chat", "text"])
def test_what_is_left_out_is_gone(style: Any) -> None:
    task = Text2SQL(style=style)
    prompt = task.prompts("train")[7]
    told = task.information(prompt, {})
    every = _body(task.render(prompt, told))
    for reward, text in told.items():
        assert every.count(text) == 1
        rest = {key: value for key, value in told.items() if key != reward}
        body = _body(task.render(prompt, rest))
        assert text not in body and all(value in body for value in rest.values())
        assert prompt.reference["question"] in body
    assert "<sql>" not in _body(task.render(prompt, {"executable": "x"}))
    with pytest.raises(CreditlibError, match="no reward"):
        task.render(prompt, {"speed": "x"})


def test_the_wording_of_replays_is_a_setting() -> None:
    task = Text2SQL(replay={"format": None, "executable": "SQLite says: {message}", "execution": "{query}!"})
    prompt = task.prompts("train")[0]
    checks = {"executable": Check(0.0, info="no such table: x")}
    told = task.information(prompt, checks)
    assert told == {
        "executable": "SQLite says: no such table: x",
        "execution": f"{prompt.reference['gold']}!",
    }
    body = _body(task.render(prompt, told))
    assert "Schema:" in body and "Format: <sql>" in body  # what no wording restates stays
    assert body.endswith(f"{told['executable']}\n{told['execution']}")
    assert "executable" not in task.information(prompt, {})  # SQLite said nothing


@pytest.mark.parametrize(
    ("replay", "message"),
    [
        ({"formt": "x"}, r"task\.replay\.formt: no such reward, only format, executable, execution"),
        ({"format": "{tags}"}, r"task\.replay\.format: \{tags\} is no fact; there are \{format\}, "),
        ({"format": "{format"}, r"task\.replay\.format: expected '}' before end of string in '\{format'"),
    ],
)
def test_wordings_that_cannot_be(replay: dict[str, str], message: str) -> None:
    with pytest.raises(CreditlibError, match=message):
        Text2SQL(replay=replay)


def test_synthetic_examples_mix_asked_and_replayed_prompts() -> None:
    task = Text2SQL(style="text")
    pairs = list(itertools.islice(task.synthetic(3), 600))
    asked = sum(
        "Schema:" in _body(p) and "Format:" in _body(p) and "Reference:" not in _body(p) for p, _ in pairs
    )
    assert 600 * 0.6 < asked < 600 * 0.8
    for section in ("Schema:", "Format:"):
        assert any(section not in _body(prompt) for prompt, _ in pairs)
    assert pairs == list(itertools.islice(task.synthetic(3), 600))
    assert all(target == task.target(prompt) for prompt, target in pairs)


# ------------------------------------------------------------------ verdicts


def test_verdicts_and_a_verifier_that_can_be_closed_twice() -> None:
    task = Text2SQL(workers=1, limit=20)
    prompts = task.prompts("train")[:3]
    try:
        texts = [task.target(prompts[0]), "<sql>SELECT nothing FROM nowhere</sql>", "SELECT 1"]
        scores = [[check[reward].score for reward in REWARDS] for check in task.verify(prompts, texts)]
        assert scores == [[1, 1, 1], [1, 0, 0], [0, 0, 0]]
        task.close()
        task.close()
        assert task.verify(prompts[:1], texts[:1])[0]["execution"].score == 1
    finally:
        task.close()


def test_limits_reach_the_verifier() -> None:
    """A query of about a million steps, with a limit above and one below."""
    numbers = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000) SELECT max(i) FROM n"
    )
    verdicts = []
    for steps in (10_000, 20_000_000):
        task = Text2SQL(workers=1, limit=1, steps=steps)
        try:
            (check,) = task.verify(task.prompts("train"), [f"<sql>{numbers}</sql>"])
        finally:
            task.close()
        verdicts.append((check["executable"].score, check["executable"].flags))
    assert verdicts == [(0.0, ("timeout:steps",)), (1.0, ())]


def test_limits_are_those_of_the_verifier_by_default() -> None:
    task, limits = Text2SQL(), Limits()
    assert (task.steps, task.seconds, task.wall_seconds) == (
        limits.steps,
        limits.seconds,
        limits.wall_seconds,
    )


# ------------------------------------------------------------------ bad input


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data folder with one database and one training row."""
    home = tmp_path / "database" / "music"
    home.mkdir(parents=True)
    with closing(sqlite3.connect(home / "music.sqlite")) as connection:
        connection.executescript("CREATE TABLE singer(id, age); INSERT INTO singer VALUES (1, 40);")
    schema = {
        "db_id": "music",
        "table_names_original": ["singer"],
        "column_names_original": [[-1, "*"], [0, "id"], [0, "age"]],
        "column_types": ["text", "number", "number"],
        "primary_keys": [1],
        "foreign_keys": [],
    }
    (tmp_path / "tables.json").write_text(json.dumps([schema]))
    (tmp_path / "train.json").write_text(
        json.dumps([{"db_id": "music", "question": "?", "query": "SELECT 1"}])
    )
    return tmp_path


def _task(folder: Path, **changes: Any) -> Text2SQL:
    return Text2SQL(**{"data": str(folder), "evaluation": {}, **changes})


def test_a_folder_in_spiders_layout(folder: Path) -> None:
    (prompt,) = _task(folder, style="text").prompts("train")
    assert "Schema:\n singer(id number primary key, age number 40)\n" in _body(prompt)


def test_missing_folder_and_files_are_told_when_the_task_is_made(folder: Path) -> None:
    with pytest.raises(MissingDataError, match=r"nowhere, found none.*task\.data=null"):
        _task(folder / "nowhere")
    for setting in ({"train": "a.json"}, {"evaluation": {"dev": "a.json"}}, {"tables": ["a.json"]}):
        with pytest.raises(MissingDataError, match=r"no file a\.json in .*task\.train"):
            _task(folder, **setting)


def test_a_row_without_a_query(folder: Path) -> None:
    (folder / "train.json").write_text(json.dumps([{"db_id": "music", "question": "?"}]))
    with pytest.raises(MissingDataError, match=r"train\.json, row 0: expected a text under 'query'"):
        _task(folder).prompts("train")


def test_a_missing_and_a_corrupt_database_and_a_missing_schema(folder: Path) -> None:
    file = folder / "database" / "music" / "music.sqlite"
    file.write_bytes(b"nonsense" * 100)
    with pytest.raises(MissingDataError, match=r"music\.sqlite can't be read"):
        _task(folder).prompts("train")
    file.unlink()
    with pytest.raises(MissingDataError, match=r"no database for music: .*task\.databases"):
        _task(folder).prompts("train")
    file.touch()
    (folder / "tables.json").write_text((folder / "tables.json").read_text().replace("music", "opera"))
    with pytest.raises(MissingDataError, match="no schema for database music"):
        _task(folder).prompts("train")


def test_evaluation_only(folder: Path) -> None:
    task = _task(folder, train=None, evaluation={"dev": "train.json"})
    assert len(task.prompts("dev")) == 1
    with pytest.raises(CreditlibError, match="no split 'train', only dev"):
        task.prompts("train")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"layout": "wikisql"}, "task.layout to be one of spider, bird"),
        ({"mode": "exact"}, "task.mode"),
        ({"style": "xml"}, "task.style"),
        ({"tags": ("<sql>",)}, "task.tags"),
        ({"tags": ("|", "|")}, "task.tags"),
        ({"limit": 0}, "task.limit to be at least 1, found 0"),
        ({"example_values": -1}, "task.example_values"),
        ({"workers": 0}, "task.workers"),
        ({"steps": 0}, "task.steps"),
        ({"seconds": 0.0}, "task.seconds"),
        ({"wall_seconds": -1.0}, "task.wall_seconds"),
        ({"evaluation": {"train": "train.json"}}, "choose another"),
    ],
)
def test_settings_that_make_no_sense(setting: dict[str, Any], message: str) -> None:
    with pytest.raises(CreditlibError, match=message):
        Text2SQL(**setting)


# ------------------------------------------------------------------ configs and public data

CONFIGS = Path(__file__).parents[2] / "configs" / "task"


@pytest.mark.parametrize("name", ["text2sql", "spider", "bird"])
def test_a_config_names_every_setting(name: str) -> None:
    settings = yaml.safe_load((CONFIGS / f"{name}.yaml").read_text())
    assert settings.pop("_target_") == "tasks.text2sql.Text2SQL"
    assert settings["name"] == name
    assert set(settings) == {field.name for field in dataclasses.fields(Text2SQL)}


DATA = os.environ.get("CREDITLIB_DATA")


@pytest.mark.skipif(not DATA, reason="CREDITLIB_DATA is not set")
def test_spider_and_its_rewordings_are_read() -> None:
    settings = yaml.safe_load((CONFIGS / "spider.yaml").read_text())
    del settings["_target_"]
    settings |= {"data": f"{DATA}/text2sql", "style": "chat"}
    task = Text2SQL(**settings)
    sizes = {split: len(task.prompts(split)) for split in ("train", *task.eval_splits)}
    assert sizes == {"train": 6787, "dev": 1034, "syn": 1034, "realistic": 508, "dk": 535}
    first = {split: task.prompts(split)[0].reference["question"] for split in ("dev", "syn")}
    assert first == {"dev": "How many singers do we have?", "syn": "How many vocalists do we have?"}
    longest = max(len(_body(prompt)) for prompt in task.prompts("train"))
    assert longest < task.schema_max_chars + 500
    singer = task.prompts("dev")[0]
    assert "Singer_ID number primary key, Name text 'Joe Sharp' 'Timbaland'" in _body(singer)
    assert "concert_ID number primary key -> concert.concert_ID" in _body(singer)
