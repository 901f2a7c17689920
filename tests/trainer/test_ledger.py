"""The ledger: which responses it takes, what it says of them, and that it never ends a run."""

from __future__ import annotations

import json
import math
import os
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from transformers import AutoTokenizer

from creditlib.analysis.localization import read_cases
from creditlib.trainer import files
from creditlib.trainer.ledger import Ledger, choose_rows, spread_steps, token_schema
from creditlib.types import Advantages, Check, Prompt, RewardTable, Rollout, Scores, Span, TokenCredit
from tasks.simple import SimpleTask

TINY = Path(__file__).resolve().parents[2] / "creditlib" / "assets" / "tiny"
EOS = 2
NAMES = ("format", "execution")
# Two responses each to two prompts, in mixed order. The third is one token, the last ends inside a character.
GROUPS = (1, 0, 0, 1)
TEXTS = ("<sql>é</sql>", "SELECT 1", "", "a\ufffd")


def task(kind: type[SimpleTask]) -> SimpleTask:
    return kind("t", prompts=["first"], rewards={name: lambda prompt, text: 1.0 for name in NAMES})


class Tagged(SimpleTask):
    """A task that can say more of a response."""

    def parts(self, text: str) -> list[Span]:
        return [Span(0, 5, "tag")] if text.startswith("<sql>") else []

    def information(self, prompt: Prompt, checks: Mapping[str, Check]) -> dict[str, str]:
        return {"execution": f"{prompt.id}: {checks['execution'].reason}"}

    def render(self, prompt: Prompt, information: Mapping[str, str]) -> Prompt:
        return prompt


@pytest.fixture(scope="module")
def tiny() -> Any:
    return AutoTokenizer.from_pretrained(TINY)


@pytest.fixture
def rollout(tiny: Any) -> Rollout:
    rows = [[*tiny(text)["input_ids"], EOS] for text in TEXTS[:3]]
    rows.append(tiny("a中")["input_ids"][:2])
    width = max(map(len, rows))
    mask_BT = torch.tensor([[t < len(row) for t in range(width)] for row in rows])
    return Rollout(
        prompts=(Prompt("p0", "t", text="first"), Prompt("p1", "t", text="second")),
        prompt_ids=tuple(tuple(tiny(text)["input_ids"]) for text in ("first", "second")),
        group_B=torch.tensor(GROUPS),
        ids_BT=torch.tensor([row + [0] * (width - len(row)) for row in rows]),
        mask_BT=mask_BT,
        texts=TEXTS,
        sampler_logps_BT=-torch.arange(1.0, 5)[:, None] * mask_BT,
        sampler_mass_BT=torch.ones(mask_BT.shape),
        finish=("stop", "stop", "stop", "length"),
    )


@pytest.fixture
def values(rollout: Rollout) -> dict[str, Any]:
    """All that `write` takes but the step."""
    nan = math.nan
    checks = (
        (
            Check(1.0, "right", spans=(Span(0, 5, "tag"), Span(6, 12, "tag"))),
            Check(0.0, "wrong \u2028 \ud800"),
        ),
        (Check(0.0, "no tag", flags=("data:odd",)), Check(1.0, "equal", spans=(Span(7, 8, "query"),))),
        (Check(nan, "nothing"), Check(nan, "nothing")),
        (Check(0.0), Check(nan)),
    )
    table = RewardTable(
        NAMES,
        torch.tensor([[check.score for check in row] for row in checks]),
        (("format", "c1"), ("format", "c2"), ("format", "c2"), ("format", "c1")),
        torch.tensor([[0.0, 1.0], [-3.0, math.inf]]),
        checks,
    )
    advantages = Advantages(
        torch.tensor([[1.0, -0.5], [-1.0, 2.0], [0.0, 0.0], [-1.0, 0.0]]), torch.tensor([0.25] * 4)
    )
    mask_BT = rollout.mask_BT
    torch.manual_seed(0)
    weights_BKT = torch.rand(4, 2, mask_BT.shape[1]) * mask_BT[:, None]
    distances_BKT = torch.rand(weights_BKT.shape).masked_fill(~mask_BT[:, None], nan)
    distances_BKT[2] = nan
    credit = TokenCredit.combine(
        advantages,
        weights_BKT,
        mask_BT,
        relevance_BKT=distances_BKT,
        measure_K=("distance",) * weights_BKT.shape[1],
    )
    return {
        "rollout": rollout,
        "table": table,
        "advantages": advantages,
        "credit": credit,
        "scores": Scores(None, None),
        "advantages_BT": credit.advantages_BT * 2,
        "task": task(Tagged),
    }


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def ledger(tmp_path: Path, tiny: Any, said: list[str]) -> Ledger:
    return make(tmp_path, tiny, said)


def make(folder: Path, tokenizer: Any, said: list[str], responses: int = 8) -> Ledger:
    return Ledger(folder, NAMES, tokenizer, steps={1, 3}, responses=responses, say=said.append)


def lines(folder: Path) -> list[dict[str, Any]]:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    text = (folder / "responses.jsonl").read_text()
    return [json.loads(line, parse_constant=refuse) for line in text.splitlines()]


def steps(folder: Path) -> tuple[list[int], list[int]]:
    """The steps in the two files."""
    tokens = pq.read_table(folder / "tokens.parquet")["step"].to_pylist()
    return sorted(set(tokens)), sorted({line["step"] for line in lines(folder)})


# --------------------------------------------------------------------------- what is chosen


@pytest.mark.parametrize(
    ("total", "count", "expected"),
    [
        (10, 0, []),
        (10, 1, [10]),
        (10, 2, [1, 10]),
        (10, 4, [1, 4, 7, 10]),
        (3, 20, [1, 2, 3]),
        (1, 20, [1]),
        (100, 5, [1, 26, 51, 76, 100]),
    ],
)
def test_steps_are_spread_over_the_run(total: int, count: int, expected: list[int]) -> None:
    assert sorted(spread_steps(total, count)) == expected


def test_any_number_of_steps_is_spread_evenly() -> None:
    for total in range(2, 60):
        for count in range(2, total + 1):
            found = sorted(spread_steps(total, count))
            assert (len(found), found[0], found[-1]) == (count, 1, total)
            assert np.ptp(np.diff(found)) <= 1


def test_the_ledger_is_due_at_its_steps(ledger: Ledger) -> None:
    assert [step for step in range(5) if ledger.due(step)] == [1, 3]


def test_extremes_of_each_group_come_first() -> None:
    #            0    1    2    3    4    5    6    7    8
    total_B = [0.0, 5.0, 1.0, 2.0, 7.0, 3.0, 4.0, 4.0, -1.0]
    group_B = [0, 0, 1, 0, 1, 1, 2, 2, 0]
    assert choose_rows(total_B, group_B, 2) == [1, 8]
    assert choose_rows(total_B, group_B, 4) == [1, 2, 4, 8]
    assert choose_rows(total_B, group_B, 6) == [0, 1, 2, 3, 4, 8]
    assert choose_rows(total_B, group_B, 7) == [0, 1, 2, 3, 4, 5, 8]
    assert choose_rows(total_B, group_B, 8) == [0, 1, 2, 3, 4, 5, 6, 8], (
        "the group that shows nothing is last"
    )
    assert choose_rows(total_B, group_B, 99) == list(range(9))
    assert choose_rows(total_B, group_B, 1) == [1]
    assert choose_rows([], [], 5) == []


# --------------------------------------------------------------------------- what is written


def test_a_row_for_each_token(tmp_path: Path, ledger: Ledger, values: dict[str, Any], tiny: Any) -> None:
    ledger.write(3, **values)
    table = pq.read_table(tmp_path / "tokens.parquet")
    assert table.schema == token_schema(NAMES)
    rollout, credit = values["rollout"], values["credit"]
    rows = table.to_pylist()
    assert len(rows) == int(rollout.mask_BT.sum())
    samples = (0, 0, 1, 1)
    i = 0
    for b in range(4):
        for t in range(int(rollout.lengths_B[b])):
            row = rows[i]
            i += 1
            assert (row["step"], row["prompt"]) == (3, f"p{GROUPS[b]}")
            assert (row["response"], row["position"]) == (samples[b], t)
            assert row["token_id"] == rollout.ids_BT[b, t]
            assert row["token"] == tiny.decode([row["token_id"]])
            assert row["logp"] == -(b + 1)
            assert row["advantage"] == pytest.approx(2 * credit.advantages_BT[b, t].item(), abs=1e-6)
            for k, name in enumerate(NAMES):
                weight = credit.weights_BKT[b, k, t].item()
                assert row[f"weight/{name}"] == pytest.approx(weight, abs=1e-7)
                earned = values["advantages"].by_reward_BK[b, k].item() * weight
                assert row[f"advantage/{name}"] == pytest.approx(earned, abs=1e-6)
                distance = credit.relevance_BKT[b, k, t].item()
                assert row[f"relevance/{name}"] == pytest.approx(distance, abs=1e-7, nan_ok=True)
    assert i == len(rows)


def test_characters_parts_and_what_was_read(tmp_path: Path, ledger: Ledger, values: dict[str, Any]) -> None:
    ledger.write(1, **values)
    rows = pq.read_table(tmp_path / "tokens.parquet").to_pylist()
    first = [row for row in rows if (row["prompt"], row["response"]) == ("p1", 0)]
    text = TEXTS[0]
    assert text[first[0]["start"] : first[0]["end"]].startswith("<")
    accent = [row for row in first if row["start"] <= 5 < row["end"]]
    assert [(row["start"], row["end"]) for row in accent] == [(5, 6)] * 2, "é is two tokens, each covers it"
    for row in first:
        stop = row["token_id"] == EOS
        assert (row["start"] == row["end"] == len(text)) == stop
        assert row["part"] == ("tag" if row["start"] < 5 else "")
        assert row["read/format"] == (row not in accent and not stop)
        assert row["read/execution"] is None, "the check has no spans"
    (one,) = [row for row in rows if (row["prompt"], row["response"]) == ("p0", 1)]
    assert (one["start"], one["end"], one["part"]) == (0, 0, "")
    assert math.isnan(one["relevance/format"]) and one["weight/format"] > 0
    last = [row for row in rows if (row["prompt"], row["response"]) == ("p1", 1)]
    assert [(row["start"], row["end"], row["token"]) for row in last] == [(0, 1, "a"), (1, 2, "\ufffd")]


def test_parts_behind_what_the_chat_template_has_opened(
    tmp_path: Path, ledger: Ledger, values: dict[str, Any]
) -> None:
    """`Tagged` finds a tag at the beginning alone."""
    values["rollout"] = replace(values["rollout"], opened="<sq", texts=("l>é</sql>", *TEXTS[1:]))
    ledger.write(1, **values)
    rows = pq.read_table(tmp_path / "tokens.parquet").to_pylist()
    first = [row for row in rows if (row["prompt"], row["response"]) == ("p1", 0)]
    assert all((row["part"] == "tag") == (row["start"] < 2) for row in first) and first[0]["part"] == "tag"


def test_a_line_for_each_response(tmp_path: Path, ledger: Ledger, values: dict[str, Any]) -> None:
    ledger.write(1, **values)
    first, second, third, fourth = lines(tmp_path)
    assert first == {
        "step": 1,
        "prompt": "p1",
        "response": 0,
        "question": "second",
        "text": "<sql>é</sql>",
        "finish": "stop",
        "rewards": {
            "format": {
                "kind": "format",
                "score": 1.0,
                "best": 1.0,
                "advantage": 1.0,
                "reason": "right",
                "information": None,
                "flags": [],
                "spans": [[0, 5, "tag"], [6, 12, "tag"]],
                "measure": "distance",
            },
            "execution": {
                "kind": "c1",
                "score": 0.0,
                "best": None,  # unbounded
                "advantage": -0.5,
                "reason": "wrong \u2028 \ud800",
                "information": "p1: wrong \u2028 \ud800",
                "flags": [],
                "spans": [],
                "measure": "distance",
            },
        },
        "advantage": 0.75,
        "offset": 0.25,
    }
    assert second["rewards"]["format"]["flags"] == ["data:odd"]
    assert third["rewards"]["format"]["score"] is None
    assert (fourth["finish"], fourth["text"], fourth["response"]) == ("length", "a\ufffd", 1)


def test_what_is_written_can_be_analysed(tmp_path: Path, ledger: Ledger, values: dict[str, Any]) -> None:
    ledger.write(1, **values)
    cases = read_cases(pq.read_table(tmp_path / "tokens.parquet"), lines(tmp_path))
    found = [(case.response[1:], case.kind, case.satisfied) for case in cases]  # type: ignore[index]
    assert found == [
        (("p1", 0), "format", True),
        (("p1", 0), "c1", None),
        (("p0", 0), "format", False),
        (("p0", 0), "c2", None),
        (("p1", 1), "format", False),
    ]
    rows = [case.read_T is None for case in cases]
    assert rows == [False, True, True, False, True]
    distance_T = values["credit"].relevance_BKT[0, 0][values["rollout"].mask_BT[0]]
    assert cases[0].distance_T == pytest.approx(distance_T.numpy())


def test_log_probs_distances_and_parts_may_be_missing(
    tmp_path: Path, ledger: Ledger, values: dict[str, Any]
) -> None:
    old_BT = values["rollout"].sampler_logps_BT - 10
    values |= {"scores": Scores(old_BT, None), "task": task(SimpleTask)}
    values["credit"] = replace(values["credit"], relevance_BKT=None)
    ledger.write(1, **values)
    table = pq.read_table(tmp_path / "tokens.parquet")
    assert set(table["logp"].to_pylist()) == {-11, -12, -13, -14}
    assert set(table["part"].to_pylist()) == {""}
    assert np.isnan(table["relevance/format"].to_numpy()).all()


def test_a_process_without_responses_writes_nothing(
    tmp_path: Path, ledger: Ledger, values: dict[str, Any]
) -> None:
    empty = torch.zeros(0, 2)
    rollout = replace(values["rollout"], group_B=torch.zeros(0, dtype=torch.long), texts=())
    ledger.write(1, **values | {"rollout": rollout, "advantages": Advantages(empty, empty[:, 0])})
    assert not list(tmp_path.iterdir())


def test_the_number_of_responses_is_bounded(
    tmp_path: Path, tiny: Any, values: dict[str, Any], said: list[str]
) -> None:
    ledger = make(tmp_path, tiny, said, responses=3)
    for step in (1, 3):
        ledger.write(step, **values)
    assert [line["step"] for line in lines(tmp_path)] == [1, 1, 1, 3, 3, 3]
    keys = pq.read_table(tmp_path / "tokens.parquet").select(["step", "prompt", "response"]).to_pylist()
    found = list(dict.fromkeys(tuple(key.values()) for key in keys))
    assert found == [(line["step"], line["prompt"], line["response"]) for line in lines(tmp_path)]


# --------------------------------------------------------------------------- resuming and failing


def test_rewinding(tmp_path: Path, ledger: Ledger, values: dict[str, Any], said: list[str]) -> None:
    ledger.rewind(-1)
    assert not list(tmp_path.iterdir()), "nothing to forget"
    for step in (1, 2, 5):
        ledger.write(step, **values)
    once = [(tmp_path / name).read_bytes() for name in ("tokens.parquet", "responses.jsonl")]
    ledger.rewind(5)
    assert [(tmp_path / name).read_bytes() for name in ("tokens.parquet", "responses.jsonl")] == once
    ledger.rewind(4)
    assert steps(tmp_path) == ([1, 2], [1, 2])
    ledger.write(5, **values)
    assert [(tmp_path / name).read_bytes() for name in ("tokens.parquet", "responses.jsonl")] == once
    ledger.write(2, **values)
    assert steps(tmp_path) == ([1, 2], [1, 2]), "a step is not in the files twice, and later ones are gone"
    assert len(lines(tmp_path)) == 8
    ledger.rewind(-1)
    assert steps(tmp_path) == ([], [])
    assert not said


def refuse_to_write(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Callable[[], None]:
    """As a read-only folder does, for root as well; gives back what ends it."""
    own = open

    def refuse(path: Any, mode: str = "r", *rest: Any, **named: Any) -> Any:
        if Path(path).parent == folder and "w" in mode:
            raise OSError(30, os.strerror(30), str(path))
        return own(path, mode, *rest, **named)

    monkeypatch.setattr(files, "open", refuse, raising=False)
    return lambda: monkeypatch.delattr(files, "open")


def test_a_read_only_folder_is_told_once(
    tmp_path: Path, ledger: Ledger, values: dict[str, Any], said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    writable = refuse_to_write(monkeypatch, tmp_path)
    for step in (1, 3):
        ledger.write(step, **values)
    (message,) = said
    assert "\n" not in message
    assert message.startswith("the token ledger is not written: cannot write ")
    assert message.endswith(": Read-only file system; training goes on")
    writable()
    ledger.write(5, **values)
    assert steps(tmp_path) == ([5], [5]), "there is room again"


def test_a_full_disk_leaves_what_was_there(
    tmp_path: Path, ledger: Ledger, values: dict[str, Any], said: list[str]
) -> None:
    ledger.write(1, **values)
    (tmp_path / ".tokens.parquet.new").symlink_to("/dev/full")
    ledger.write(3, **values)
    assert pq.read_table(tmp_path / "tokens.parquet")["step"].to_pylist().count(3) == 0
    assert "No space left on device" in said[0]
    ledger.write(5, **values)
    assert steps(tmp_path)[0] == [1, 5]


def test_a_folder_that_is_gone(tmp_path: Path, tiny: Any, values: dict[str, Any], said: list[str]) -> None:
    make(tmp_path / "gone", tiny, said).write(1, **values)
    assert len(said) == 1 and "No such file or directory" in said[0]


@pytest.mark.parametrize("name", ["tokens.parquet", "responses.jsonl"])
def test_damaged_files(
    tmp_path: Path, ledger: Ledger, values: dict[str, Any], said: list[str], name: str
) -> None:
    ledger.write(1, **values)
    damaged = random.Random(0).randbytes(1000)
    (tmp_path / name).write_bytes(damaged)
    ledger.rewind(0)
    ledger.write(3, **values)
    assert len(said) == 1 and f"cannot read {tmp_path / name}" in said[0] and "\n" not in said[0]
    assert (tmp_path / name).read_bytes() == damaged


def test_a_file_of_other_rewards(
    tmp_path: Path, ledger: Ledger, values: dict[str, Any], said: list[str]
) -> None:
    pq.write_table(pa.table({"step": [1]}), tmp_path / "tokens.parquet")
    ledger.write(3, **values)
    assert "columns of other rewards" in said[0]


def test_a_folder_whose_name_looks_like_a_column(tmp_path: Path, tiny: Any, values: dict[str, Any]) -> None:
    said: list[str] = []
    folder = tmp_path / "seed=0"
    folder.mkdir()
    for step in (1, 3):
        make(folder, tiny, said).write(step, **values)
    assert steps(folder) == ([1, 3], [1, 3]) and not said
