"""Requests with constraints in the forms that people publish them in, and what is wrong with some."""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from creditlib.types import MissingDataError
from tasks.instruction_data import Row, as_row, load_rows

COMMA = {"id": "punctuation:no_comma", "kwargs": {}}
WORDS = {"id": "length_constraints:number_words", "kwargs": {"relation": "at least", "num_words": 12}}
IFEVAL = {
    "key": 1,
    "prompt": "Write 12 words or more, without commas.",
    "instruction_id_list": [COMMA["id"], WORDS["id"]],
    "kwargs": [{}, WORDS["kwargs"]],
}
HIR = {"id": 7, "prompt": "Write.", "criteria": ["No commas.", "At least 12 words."]}
TRIPLES = [["Content", "Keywords", "Must include 'x'"], ["Length", "Words: At most", "At most 9 words"]]


def _user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def _file(folder: Path, *rows: Any) -> str:
    path = folder / "rows.jsonl"
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return str(path)


# ------------------------------------------------------------------ the forms


def test_ifeval() -> None:
    assert as_row(IFEVAL) == Row((_user(IFEVAL["prompt"]),), (COMMA, WORDS), False, (None, None))  # type: ignore[arg-type]


def test_ifbench_leaves_out_arguments_that_are_not_set() -> None:
    kwargs = [{"N": None, "keyword": None}, {**WORDS["kwargs"], "N": None}]  # type: ignore[dict-item]
    assert as_row({**IFEVAL, "key": "0", "kwargs": kwargs}) == as_row(IFEVAL)
    assert as_row({**IFEVAL, "kwargs": [None, WORDS["kwargs"]]}) == as_row(IFEVAL)


def test_muldimif() -> None:
    row = as_row({"id": "1", "conversations": [_user("Write.")], "constraints": TRIPLES})
    assert [own["id"] for own in row.constraints] == [
        "muldimif:content:keywords",
        "muldimif:length:words_at_most",
    ]
    assert all(
        text in own["kwargs"].values() for own, (*_, text) in zip(row.constraints, TRIPLES, strict=True)
    )
    assert not row.listed and row.messages == (_user("Write."),)


def test_a_conversation_that_was_answered_is_asked_anew() -> None:
    turns = [
        _user("a"),
        {"role": "assistant", "content": "b"},
        _user("c"),
        {"role": "assistant", "content": "d"},
    ]
    row = as_row({"conversations": turns, "constraints": TRIPLES})
    assert row.messages == tuple(turns[:3])


@pytest.mark.parametrize("as_json", [False, True])
def test_hir_with_ifevals_constraints(as_json: bool) -> None:
    truth: Any = {key: IFEVAL[key] for key in ("instruction_id_list", "kwargs")}
    row = as_row({**HIR, "source": "type1", "ground_truth": json.dumps(truth) if as_json else truth})
    assert row == Row((_user("Write."),), (COMMA, WORDS), True, ("No commas.", "At least 12 words."))


def test_hir_with_muldimifs_constraints() -> None:
    truth = {"constraints": TRIPLES, "constraint_pattern": "Listing"}
    row = as_row({**HIR, "source": "type3", "ground_truth": truth})
    assert row.constraints == as_row({"conversations": [_user("x")], "constraints": TRIPLES}).constraints
    assert row.listed and row.texts == ("No commas.", "At least 12 words.")


def test_hir_with_programs_which_are_not_run() -> None:
    truth = {
        "checker": ["[rule] Words", "[llm] Style"],
        "functions": ["raise SystemExit", "raise SystemExit"],
    }
    row = as_row({**HIR, "source": "type4", "ground_truth": truth})
    assert [own["id"] for own in row.constraints] == ["hir:rule", "hir:llm"]
    assert "SystemExit" not in str(row)


def test_our_own() -> None:
    item = {"prompt": "Write.", "constraints": [COMMA, {**WORDS, "text": "be long"}], "target": "a"}
    assert as_row(item) == Row((_user("Write."),), (COMMA, WORDS), True, (None, "be long"), "a")
    assert not as_row({"prompt": "Write.", "constraints": [COMMA], "prose": True}).listed
    assert as_row({"prompt": [_user("Write.")], "constraints": [{"id": COMMA["id"]}]}).constraints == (COMMA,)


def test_files_of_every_kind_say_the_same(tmp_path: Path) -> None:
    rows = [IFEVAL, {**IFEVAL, "key": 2, "prompt": "Again."}]
    (tmp_path / "a.json").write_text(json.dumps(rows))
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with gzip.open(tmp_path / "a.jsonl.gz", "wt") as file:
        file.write("\n\n".join(map(json.dumps, rows)))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    found = [load_rows(f"a.{kind}", str(tmp_path)) for kind in ("json", "jsonl", "jsonl.gz", "parquet")]
    assert all(own == list(map(as_row, rows)) for own in found)


def test_a_hub_id_is_loaded_with_datasets(monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    asked = []

    def load_dataset(name: str, split: str) -> list[Any]:
        asked.append((name, split))
        return [{**HIR, "ground_truth": {key: IFEVAL[key] for key in ("instruction_id_list", "kwargs")}}]

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    (row,) = load_rows("sastpg/HIR-16K:train")
    assert asked == [("sastpg/HIR-16K", "train")] and row.constraints == (COMMA, WORDS)


# ------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("{", "no JSON object"),
        ("[1]", "no JSON object"),
        ("[" * 100_000, "no JSON object"),
        ({}, "expected instruction_id_list, conversations, ground_truth or constraints, found nothing"),
        ({"prompt": "x"}, "ground_truth or constraints, found prompt"),
        ({**IFEVAL, "prompt": None}, "there is no 'prompt'"),
        ({**IFEVAL, "prompt": " "}, "expected the user's request as the last message"),
        ({**IFEVAL, "prompt": 3}, "expected a text or messages as prompt, found 3"),
        ({**IFEVAL, "prompt": ["x"]}, r"expected a text or messages as prompt, found \['x'\]"),
        ({key: IFEVAL[key] for key in ("prompt", "instruction_id_list")}, "there is no 'kwargs'"),
        ({**IFEVAL, "kwargs": [{}]}, "2 ids in instruction_id_list, but 1 kwargs: expected as many"),
        ({**IFEVAL, "kwargs": {}}, "expected a list as kwargs, found dict"),
        ({**IFEVAL, "kwargs": [{}, 3]}, "number_words: expected an object as kwargs, found 3"),
        ({**IFEVAL, "instruction_id_list": [3, 4]}, "expected a text as a constraint's id, found 3"),
        ({**IFEVAL, "instruction_id_list": [], "kwargs": []}, "there are no constraints"),
        ({"conversations": [_user("x")]}, "there is no 'constraints'"),
        ({"conversations": [], "constraints": TRIPLES}, "expected a text or messages as conversations"),
        ({"conversations": [_user("x")], "constraints": []}, "there are no constraints"),
        ({"conversations": [_user("x")], "constraints": [["a", "b"]]}, r"\[category, subtype, text\]"),
        ({"conversations": [_user("x")], "constraints": 3}, "expected a list as constraints, found int"),
        ({**HIR, "ground_truth": "{"}, "ground_truth is no JSON: Expecting property name"),
        ({**HIR, "ground_truth": "[" * 100_000}, "ground_truth is no JSON: maximum recursion depth"),
        ({**HIR, "ground_truth": [1]}, "expected an object as ground_truth, found list"),
        ({**HIR, "ground_truth": {}}, "there is no 'instruction_id_list'"),
        ({**HIR, "criteria": ["a", 3], "ground_truth": {}}, "expected a list of texts as criteria"),
        ({**HIR, "ground_truth": {"constraints": TRIPLES[:1]}}, "2 criteria, but 1 constraints"),
        ({"prompt": "x", "constraints": [COMMA["id"]]}, "expected a constraint as an object with an id"),
        ({"prompt": "x", "constraints": [{"kwargs": {}}]}, "expected a constraint as an object with an id"),
        ({"prompt": "x", "constraints": [{**COMMA, "num": 3}]}, "expected id, kwargs and text, found num"),
        ({"prompt": "x", "constraints": [{**COMMA, "text": 3}]}, "expected a text as text, found 3"),
        ({"prompt": "x", "prose": "no", "constraints": []}, "expected true or false as prose, found 'no'"),
        (
            {"prompt": "x", "prose": True, "constraints": [{**COMMA, "text": "a"}]},
            "punctuation:no_comma: found a text, but a prompt in prose has no list",
        ),
        ({"prompt": "x", "constraints": []}, "there are no constraints"),
        ({"prompt": "x", "constraints": [COMMA], "target": []}, r"expected a text as target, found \[\]"),
    ],
)
def test_rows_that_cannot_be_read_are_told_with_their_line(tmp_path: Path, row: Any, why: str) -> None:
    source = _file(tmp_path, IFEVAL, row)
    with pytest.raises(MissingDataError, match=rf"1 of 2 rows cannot be read \(line 2: .*{why}"):
        load_rows(source)


def test_rows_of_a_list_have_numbers(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps([IFEVAL, {}]))
    with pytest.raises(MissingDataError, match=r"1 of 2 rows cannot be read \(row 2: expected "):
        load_rows("a.json", str(tmp_path))


def test_an_empty_file(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match=r"rows.jsonl has no rows"):
        load_rows(_file(tmp_path))


@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
def test_a_row_over_several_lines(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(json.dumps(IFEVAL, indent=1))
    with pytest.raises(MissingDataError, match=r"cannot be read: expected an object a line, or in a .json"):
        load_rows(name, str(tmp_path))


# ------------------------------------------------------------------ real data

DATA = os.environ.get("CREDITLIB_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="CREDITLIB_DATA is not set: no public data to read")


@needs_data
@pytest.mark.parametrize(
    ("source", "numbers"),
    [
        ("ifeval/input_data.jsonl", {1: 305, 2: 179, 3: 57}),
        ("ifbench/IFBench_test.jsonl", {1: 256, 2: 44}),
        ("muldimif/test.json", {1: 163, 2: 233, 3: 213, 4: 243, 5: 183, 6: 130, 7: 35}),
    ],
)
def test_public_sets(source: str, numbers: dict[int, int]) -> None:
    rows = load_rows(source, f"{DATA}/instructions")
    assert Counter(len(row.constraints) for row in rows) == numbers
    assert not any(row.listed for row in rows)
