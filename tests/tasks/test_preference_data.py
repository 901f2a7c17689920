"""Prompts and pairs in the forms that people publish them in, and what is wrong with some."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from creditlib.types import CreditlibError, MissingDataError
from tasks.preference_data import Pair, PreferencePairs, as_pair, as_prompt, split_by_prompt
from tasks.sources import read_rows


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


WANT = Pair((user("q"),), "good", "bad")


@pytest.mark.parametrize(
    "row",
    [
        {"prompt": "q", "chosen": "good", "rejected": "bad"},
        {"prompt": [user("q")], "chosen": [assistant("good")], "rejected": [assistant("bad")]},
        {"prompt": "q", "chosen": [user("q"), assistant("good")], "rejected": [user("q"), assistant("bad")]},
        {"chosen": [user("q"), assistant("good")], "rejected": [user("q"), assistant("bad")]},
        {"chosen": "\n\nHuman: q\n\nAssistant: good", "rejected": "\n\nHuman: q\n\nAssistant: bad"},
        {"instruction": "q", "output_1": "good", "output_2": "bad", "preference": 1},
        {"instruction": "q", "output_1": "bad", "output_2": "good", "preference": 2.0},
        {"instruction": "q", "input": "", "output_1": "good", "output_2": "bad", "preference": 1},
        {"input": "q", "output_1": "bad", "output_2": "good", "label": 2},
    ],
)
def test_forms_of_pairs(row: dict[str, Any]) -> None:
    assert as_pair(row) == WANT


def test_a_conversation_of_several_turns() -> None:
    found = as_pair(
        {
            "chosen": "\n\nHuman: a\n\nAssistant: b\n\nHuman: c\n\nAssistant: good\n\nindeed",
            "rejected": "\n\nHuman: a\n\nAssistant: b\n\nHuman: c\n\nAssistant: bad",
        }
    )
    assert found == Pair((user("a"), assistant("b"), user("c")), "good\n\nindeed", "bad")


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"instruction": "q", "output_1": "a", "output_2": "b", "preference": 0}, "tie"),
        ({"instruction": "q", "output_1": "a", "output_2": "b", "preference": None}, "tie"),
        ({"instruction": "q", "output_1": "a", "output_2": "b", "preference": 1.5}, "tie"),
        ({"prompt": "q", "chosen": "a ", "rejected": "a"}, "the same"),
        ({"prompt": "q", "chosen": "a"}, "KeyError: 'rejected'"),
        ({"prompt": "q", "chosen": None, "rejected": "b"}, "no messages"),
        ({"prompt": "q", "chosen": ["x"], "rejected": "b"}, "TypeError"),
        ({"prompt": [], "chosen": "a", "rejected": "b"}, "no messages"),
        ({"chosen": "a", "rejected": "b"}, "no prompt"),
        (
            {"chosen": [user("q"), assistant("a")], "rejected": [user("r"), assistant("b")]},
            "other conversations",
        ),
        (
            {
                "chosen": "\n\nHuman: q\n\nAssistant: a\n\nHuman: r",
                "rejected": "\n\nHuman: q\n\nAssistant: b",
            },
            "other conversations",
        ),
        ({"prompt": "q", "chosen": [user("a")], "rejected": "b"}, "not the assistant's"),
        ({"instruction": "q", "output_1": "a", "output_2": "b", "preference": True}, "tie"),
        ({"instruction": 7, "output_1": "a", "output_2": "b", "preference": 1}, "expected a text"),
    ],
)
def test_rows_that_are_no_pair_say_why(row: dict[str, Any], why: str) -> None:
    found = as_pair(row)
    assert isinstance(found, str) and why in found


def test_files_of_every_kind(tmp_path: Path) -> None:
    rows = [{"prompt": f"q{i}", "chosen": "good", "rejected": "bad"} for i in range(4)]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "a.jsonl").write_text(lines, encoding="utf-8")
    (tmp_path / "b.json").write_text(json.dumps(rows), encoding="utf-8")
    (tmp_path / "c.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "d.parquet")
    for name in ("a.jsonl", "b.json", "c.jsonl.gz", "d.parquet"):
        assert [row for _, row in read_rows(name, str(tmp_path))] == rows
    found = PreferencePairs(sources=("a.jsonl", "d.parquet"), data=str(tmp_path), share=0.25).load()
    assert (len(found.train), len(found.held_out)) == (6, 2)  # by prompt, so both copies on one side
    assert not {pair.messages[0]["content"] for pair in found.train} & {
        pair.messages[0]["content"] for pair in found.held_out
    }


def test_bad_rows_are_counted_and_the_others_kept(tmp_path: Path) -> None:
    good = [json.dumps({"prompt": f"q{i}", "chosen": "good", "rejected": "bad"}) for i in range(5)]
    bad = [
        "{",
        "[1]",
        json.dumps({"prompt": "q", "chosen": "x", "rejected": "x"}),
        "\udc80".encode("utf-8", "replace").decode(),
    ]
    (tmp_path / "a.jsonl").write_text(
        "\n".join([*good, *bad, "", json.dumps({"prompt": "q", "chosen": "y" * 99, "rejected": "x"})])
    )
    found = PreferencePairs(sources=("a.jsonl",), data=str(tmp_path), max_chars=50).load()
    assert len(found.train) + len(found.held_out) == 5
    assert found.dropped == {
        "no JSON object": 3,
        "both answers are the same": 1,
        "an answer of more than 50 characters": 1,
    }


def test_held_out_prompts_are_not_trained_on(tmp_path: Path) -> None:
    for name, questions in (("a", "pqr"), ("b", "rs")):
        rows = [{"prompt": q, "chosen": "good", "rejected": "bad"} for q in questions]
        (tmp_path / f"{name}.json").write_text(json.dumps(rows))
    found = PreferencePairs(sources=("a.json",), held_out=("b.json",), data=str(tmp_path)).load()
    assert [pair.messages[0]["content"] for pair in found.train] == ["p", "q"]
    assert [pair.messages[0]["content"] for pair in found.held_out] == ["r", "s"]
    assert found.dropped["its prompt is held out"] == 1
    limited = PreferencePairs(sources=("a.json",), held_out=("b.json",), data=str(tmp_path), limit=1).load()
    assert len(limited.train) == 1 and len(limited.held_out) == 2


def test_the_split_is_the_same_each_time() -> None:
    pairs = [Pair((user(f"q{i % 50}"),), "good", f"bad{i}") for i in range(200)]
    train, held_out = split_by_prompt(pairs, 0.2)
    assert (len(train), len(held_out)) == (160, 40)
    assert split_by_prompt(pairs[::-1], 0.2)[1] == held_out[::-1]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sources": ()}, "pairs.sources is empty"),
        ({"sources": ("none.jsonl",)}, "none.jsonl is not there"),
        ({"sources": ("torn.jsonl.gz",)}, "cannot be read"),
        ({"sources": ("object.json",)}, "there are no training pairs in object.json: 1 rows"),
        ({"sources": ("ties.json",)}, "no training pairs.*2 rows: a tie"),
        ({"sources": ("one.json",)}, "all 1 pairs are of one prompt"),
        ({"sources": ("one.json",), "share": 1.0}, "a share between 0 and 1"),
        ({"sources": ("one.json",), "limit": -2}, "expected at least 1"),
    ],
)
def test_sources_that_cannot_be_used(settings: dict[str, Any], message: str, tmp_path: Path) -> None:
    (tmp_path / "torn.jsonl.gz").write_bytes(gzip.compress(b"{}\n" * 1000)[:-9])
    (tmp_path / "object.json").write_text("{}")
    tie = {"instruction": "q", "output_1": "a", "output_2": "b", "preference": 0}
    (tmp_path / "ties.json").write_text(json.dumps([tie, tie]))
    (tmp_path / "one.json").write_text(json.dumps([{"prompt": "q", "chosen": "a", "rejected": "b"}]))
    with pytest.raises(CreditlibError, match=message):
        PreferencePairs(data=str(tmp_path), **settings).load()


@pytest.mark.parametrize(
    ("row", "want"),
    [
        ({"prompt": "q"}, (user("q"),)),
        ({"prompt": [user("q")]}, (user("q"),)),
        ({"messages": [user("q"), assistant("a")]}, (user("q"),)),
        ({"instruction": "q", "input": "x"}, (user("q\n\nx"),)),
        ({"instruction": "q", "input": ""}, (user("q"),)),
        ({"turns": ["q", "r"]}, (user("q"),)),
        ({"turns": [{"content": "q"}]}, (user("q"),)),
        ({"chosen": "\n\nHuman: q\n\nAssistant: a"}, (user("q"),)),
        ({"question": "q"}, (user("q"),)),
        ({"prompt": None, "messages": [user("q")]}, (user("q"),)),
        ({"prompt": [user("q"), assistant("a")]}, (user("q"),)),
    ],
)
def test_forms_of_prompts(row: dict[str, Any], want: Any) -> None:
    assert as_prompt(row) == want


def test_what_asks_nothing() -> None:
    for row in ({"chosen": "an answer"}, {"messages": [assistant("a")]}, {"messages": []}):
        with pytest.raises(ValueError, match="no messages"):
            as_prompt(row)


def test_an_answer_may_quote_a_dialogue_and_an_instruction_may_have_an_input() -> None:
    quoted = "Sure:\n\nHuman: hi\n\nAssistant: hello"
    found = as_pair({"prompt": "q", "chosen": quoted, "rejected": "bad"})
    assert isinstance(found, Pair) and found.chosen == quoted
    row = {"instruction": "q", "input": "x", "output_1": "a", "output_2": "b", "preference": 1}
    found = as_pair(row)
    assert isinstance(found, Pair) and found.messages == as_prompt(row) == (user("q\n\nx"),)


def test_nested_beyond_what_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("[" * 200_000)
    assert list(read_rows("a.jsonl", str(tmp_path))) == [("line 1", None)]


# --------------------------------------------------------------------------- public data

DATA = os.environ.get("CREDITLIB_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="CREDITLIB_DATA is not set: no public data to read")


@needs_data
def test_alpaca_evals_judged_pairs() -> None:
    folder = Path(str(DATA)) / "preference" / "alpaca_eval"
    names = tuple(sorted(path.name for path in folder.glob("annot-*.json")))
    found = PreferencePairs(sources=names, data=str(folder), max_chars=10**6).load()
    total = sum(len(json.loads((folder / name).read_text())) for name in names)
    assert total == 3220
    assert len(found.train) + len(found.held_out) + sum(found.dropped.values()) == total
    assert len(found.train) + len(found.held_out) > 3000


@needs_data
def test_hh_rlhf_llmbar_and_prompts() -> None:
    folder = Path(str(DATA)) / "preference"
    rows = [row for _, row in read_rows("hh-rlhf/harmless-base-test.jsonl.gz", str(folder))]
    assert len(rows) == 2312
    pairs = [as_pair(row) for row in rows if row is not None]
    assert sum(isinstance(pair, Pair) for pair in pairs) > 2200
    for path in sorted((folder / "llmbar").glob("*.json")):
        found = [as_pair(row) for row in json.loads(path.read_text())]
        others = [own for own in found if not isinstance(own, Pair)]
        assert others in ([], ["both answers are the same"]), path.name
    for name in (
        "mt_bench/question.jsonl",
        "arena_hard/question-v0.1.jsonl",
        "arena_hard/question-v2.0.jsonl",
    ):
        assert all(
            row is not None and as_prompt(row)[0]["role"] == "user" for _, row in read_rows(name, str(folder))
        )


def test_places_are_those_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"a": 1}\n\n\xff{"a": 2}\n{"a": 3}')
    found = list(read_rows("a.jsonl", str(tmp_path)))
    assert found == [("line 1", {"a": 1}), ("line 3", None), ("line 4", {"a": 3})]
    (tmp_path / "b.json").write_text('[{"a": 1}, 2]')
    assert list(read_rows("b.json", str(tmp_path))) == [("row 1", {"a": 1}), ("row 2", None)]


def test_a_hub_id_that_cannot_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    for library in ("huggingface_hub.constants", "datasets.config"):  # the environment was read long ago
        monkeypatch.setattr(f"{library}.HF_HUB_OFFLINE", True)
    with pytest.raises(MissingDataError, match="cannot load nobody/nothing, split train, from the hub"):
        list(read_rows("nobody/nothing:train"))
