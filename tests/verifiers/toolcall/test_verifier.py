"""The verifier's interface, its workers, and what is wrong with references."""

from __future__ import annotations

import json
import math
import os
import runpy
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from creditlib.types import CreditlibError
from verifiers.pool import Failure, WorkerPool
from verifiers.toolcall import Job, ToolCallVerifier, check

CALL = '<tool_call>\n{"name": "f", "parameters": {"x": 1}}\n</tool_call>'
GOLD = f"<think>a</think>\n{CALL}"
FUNCTIONS = [{"name": "f", "parameters": {"properties": {"x": {"type": "integer"}}, "required": ["x"]}}]


def function(properties: Any, required: Any = ()) -> list[dict[str, Any]]:
    return [{"name": "f", "parameters": {"properties": properties, "required": list(required)}}]


def test_many_jobs_in_order() -> None:
    jobs = [Job(GOLD.replace("1", str(i)), gold=GOLD) for i in range(40)]
    jobs.append(Job(CALL, functions=FUNCTIONS, answers=[{"f": {"x": [1]}}]))
    jobs.append(Job("<response>no</response>", functions=FUNCTIONS))
    with ToolCallVerifier(think=False) as verifier:
        found = verifier.check_many(jobs)
        assert verifier.check_many([]) == []
    assert found == [
        check(job.response, gold=job.gold, functions=job.functions, answers=job.answers, think=False)
        for job in jobs
    ]
    scores = [own["correctness"].score for own in found]
    assert scores == [*(3 if i == 1 else 1 for i in range(40)), 3, 3]


def test_modes() -> None:
    with ToolCallVerifier("official", workers=1) as verifier:
        assert verifier.check_many([Job(GOLD.replace("1", "true"), gold=GOLD)])[0]["correctness"].score == 3
    with pytest.raises(CreditlibError, match="unknown mode 'strict': expected one of sound, official"):
        ToolCallVerifier("strict")  # type: ignore[arg-type]


def test_a_response_that_takes_too_long_is_given_up() -> None:
    verifier = ToolCallVerifier(workers=1, seconds=1e-6)
    with verifier:
        found = verifier.check_many([Job("[f(x=[" + "1," * 9000 + "])]", functions=FUNCTIONS)])[0]
    assert (found["format"].score, found["correctness"].score) == (0, -3)
    assert found["correctness"].flags == ("timeout:cpu",)


@pytest.mark.parametrize("mode", ["sound", "official"])
def test_what_the_reference_says_outlives_giving_up(mode: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WorkerPool, "map", lambda self, jobs, **limits: [Failure("cpu", "slow")] * len(jobs))
    response = "[f(x=1)]"
    unreadable = "<tool_call>\n{\n</tool_call>"
    jobs = [
        Job(response, gold=unreadable),
        Job(response, functions=FUNCTIONS, answers=[{"f": {"x": 1}}]),
        Job(response, functions=FUNCTIONS, answers=[{"f": {"x": [1]}}]),
        Job(response, gold=CALL),
    ]
    with ToolCallVerifier(mode, workers=1) as verifier:
        gold, answers, *good = (own["correctness"] for own in verifier.check_many(jobs))
    for found, flag in ((gold, "data:gold"), (answers, "data:answers")):
        assert math.isnan(found.score) and found.flags == (flag, "timeout:cpu")
    for found in good:
        assert (found.score, found.flags) == (-3, ("timeout:cpu",))
        assert found.info == '{"name": "f", "parameters": {"x": 1}}'


def test_a_ground_truth_without_tags_has_no_empty_official_form() -> None:
    for response, score in (("anything", 0), ("", 0), ("<think>a</think>", 1)):
        for think in (True, False):
            found = check(response, gold="<think>a</think>", mode="official", think=think)
            assert found["format"].score == score


def test_one_kind_of_reference() -> None:
    with pytest.raises(CreditlibError, match=r"either gold .* or functions .*, got neither"):
        Job(GOLD)
    with pytest.raises(CreditlibError, match="got both"):
        Job(GOLD, gold=GOLD, functions=FUNCTIONS)
    with pytest.raises(CreditlibError, match="answers go with functions"):
        Job(GOLD, gold=GOLD, answers=[{"f": {}}])


@pytest.mark.parametrize(
    "gold, format_score",
    [
        ("", math.nan),
        ("[f(x=1)]", math.nan),
        ("<tool_call>\n{}\n</tool_call>", 1),
        ("<tool_call>\n</tool_call>", 1),
        ("<tool_call>\n" + '{"name": "f", "parameters": {"x": NaN}}' + "\n</tool_call>", 1),
        (CALL + " and more", 1),
    ],
)
def test_ground_truths_that_are_none(gold: str, format_score: float) -> None:
    checks = check(GOLD, gold=gold)
    assert checks["format"].score == pytest.approx(format_score, nan_ok=True)
    assert math.isnan(checks["correctness"].score)
    assert checks["correctness"].flags == ("data:gold",)
    assert checks["correctness"].reason.startswith("the ground truth is none: ")


ONE = {"x": {"type": "integer"}}


def nested(deep: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(deep - 1):
        value = [value]
    return value


@pytest.mark.parametrize(
    "functions, answers, flags",
    [
        ([{"parameters": {}}], [{"f": {}}], ("data:functions",)),
        (["f"], None, ("data:functions",)),
        (function(ONE, [["x"]]), [{"f": {"x": [1]}}], ("data:functions",)),
        ([{"name": "f", "parameters": {"properties": ONE, "required": True}}], None, ("data:functions",)),
        (function({"x": {"type": [["integer"]]}}), [{"f": {"x": [1]}}], ("data:functions",)),
        (function({"x": {"items": {"type": {}}}}), [{"f": {"x": [1]}}], ("data:functions",)),
        (FUNCTIONS, [{"g": {"x": [1]}}], ("data:answers",)),
        (FUNCTIONS, [{"f": {"x": 1}}], ("data:answers",)),
        (FUNCTIONS, [{"f": {"x": [1]}, "g": {}}], ("data:answers",)),
        (FUNCTIONS, [{"f": {"x": []}}], ("data:answers",)),  # live_simple_106, _112
        (function(ONE), [{"f": {"x": []}}], ("data:answers",)),  # it may be left out, but not here
        (FUNCTIONS, [{"f": {}}], ("data:answers",)),  # live_multiple_964
        (FUNCTIONS, [{"f": {"x": [1], "z": [2]}}], ("data:answers", "data:unknown_parameter")),  # ..._862
        (FUNCTIONS, [{"f": {"x": [""]}}], ("data:answers",)),  # neither left out nor a number
        (FUNCTIONS, [{"f": {"x": [math.nan, math.inf]}}], ("data:answers",)),  # no JSON
        (function({"x": {"type": "dict"}}, ["x"]), [{"f": {"x": [{"a": []}]}}], ("data:answers",)),
        (function({"x": {"type": "array"}}, ["x"]), [{"f": {"x": [nested(65)]}}], ("data:answers",)),
        (function(ONE, ["z"]), [{"f": {"z": ["", 1]}}], ("data:answers", "data:unknown_parameter")),
    ],
)
def test_references_that_cannot_be_satisfied(functions: Any, answers: Any, flags: tuple[str, ...]) -> None:
    found = check(GOLD, functions=functions, answers=answers)["correctness"]
    assert math.isnan(found.score)
    assert found.flags == flags
    official = check(GOLD, functions=functions, answers=answers, mode="official")["correctness"]
    assert official.score == -3 or math.isnan(official.score)
    assert official.flags == flags


@pytest.mark.parametrize(
    ("schema", "answers"),
    [
        ({"type": "integer"}, [math.nan, 2]),
        ({"type": "integer", "default": 5}, [""]),
        ({"type": "string"}, [""]),
        ({"type": "array"}, [nested(65), nested(64)]),
        ({"type": "dict"}, [{"a": [math.inf, 1], "b": ["", math.nan], "c": [{"d": []}, {"d": [2]}]}]),
    ],
)
def test_the_call_that_is_told_is_one_that_is_right(schema: Any, answers: Any) -> None:
    reference = {"functions": function({"x": schema}, ["x"]), "answers": [{"f": {"x": answers}}]}
    told = check(GOLD, **reference)["correctness"].info
    found = check(f"<tool_call>\n{told}\n</tool_call>", **reference)["correctness"]
    assert (found.score, found.flags) == (3, ())


def test_a_parameter_that_the_function_lacks_may_be_left_out() -> None:
    """parallel_multiple_12 and 26."""
    answers = [{"f": {"x": [1], "z": [2, ""]}}]
    assert check(GOLD, functions=FUNCTIONS, answers=answers)["correctness"].score == 3
    wrong = check("[f(x=1, z=2)]", functions=FUNCTIONS, answers=answers)["correctness"]
    assert (wrong.score, wrong.flags) == (-3, ("data:unknown_parameter",))


def test_an_empty_text_as_the_only_answer() -> None:
    """live_multiple_507."""
    functions = function({"x": {"type": "string"}}, ["x"])
    for value, score in (("''", 3), ("'-'", -3), ("'a'", -3)):
        assert (
            check(f"[f(x={value})]", functions=functions, answers=[{"f": {"x": [""]}}])["correctness"].score
            == score
        )
    info = check("", functions=functions, answers=[{"f": {"x": [""]}}])["correctness"].info
    assert info == '{"name": "f", "parameters": {"x": ""}}'


@pytest.mark.parametrize(
    "schema, answer, value",
    [
        ({"type": "HashMap"}, {"limit": [50]}, '{"limit": 50}'),
        ({"type": "ArrayList", "items": {"type": "long"}}, [1, 2], "[1, 2]"),
        ({"type": "Boolean"}, True, "True"),
        ({"type": "no such type"}, 1, "1"),
        ({}, "a", "'A'"),
    ],
)
def test_types_of_other_languages_and_unknown_ones(schema: Any, answer: Any, value: str) -> None:
    functions, answers = function({"x": schema}), [{"f": {"x": [answer]}}]
    assert check(f"[f(x={value})]", functions=functions, answers=answers)["correctness"].score == 3
    assert check("[f(x='other')]", functions=functions, answers=answers)["correctness"].score == -3


@pytest.mark.parametrize(
    "kinds, answer, right, wrong",
    [
        (["string", "null"], "a", "'A'", "None"),
        (["string", "null"], None, "None", "''"),
        (["integer", "null"], 1, "1", "1.0"),
        (["integer", "number"], 1, "1.0", "'1'"),
        (["integer", "string"], 1, "'1'", "1.0"),
        ([], 1, "1.0", "2"),
    ],
)
def test_several_types(kinds: list[str], answer: Any, right: str, wrong: str) -> None:
    """Any of them will do; the official rules know no such thing."""
    reference: Any = {"functions": function({"x": {"type": kinds}}), "answers": [{"f": {"x": [answer]}}]}
    assert check(f"[f(x={right})]", **reference)["correctness"].score == 3
    assert check(f"[f(x={wrong})]", **reference)["correctness"].score == -3
    official = check(f"[f(x={right})]", mode="official", **reference)["correctness"]
    assert math.isnan(official.score) and official.flags == ("data:types",)


def test_official_rules_know_python_only() -> None:
    functions, answers = function({"x": {"type": "String"}}), [{"f": {"x": ["a"]}}]
    found = check("[f(x='a')]", functions=functions, answers=answers, mode="official")["correctness"]
    assert math.isnan(found.score)
    assert found.flags == ("data:types",)


@pytest.mark.parametrize(
    "document", [{"name": "f"}, {"name": "f", "parameters": {}}, {"name": "f", "parameters": None}]
)
def test_functions_without_parameters(document: Any) -> None:
    for mode in ("sound", "official"):
        assert check("[f()]", functions=[document], answers=[{"f": {}}], mode=mode)["correctness"].score == 3
        assert (
            check("[f(x=1)]", functions=[document], answers=[{"f": {}}], mode=mode)["correctness"].score == -3
        )


# --------------------------------------------------------------------------- public data


@pytest.fixture(scope="module")
def data() -> Path:
    folder = os.environ.get("CREDITLIB_DATA")
    if not folder:
        pytest.skip("CREDITLIB_DATA is not set: the folder above toolcall")
    return Path(folder) / "toolcall"


def test_every_ground_truth_of_rlla_is_right(data: Path) -> None:
    rows = [json.loads(line) for line in (data / "rlla" / "rlla_test_80.jsonl").read_text().splitlines()]
    golds = [row["reward_model"]["ground_truth"] for row in rows]
    golds += [row["output"] for row in json.loads((data / "rlla" / "rlla_sft.json").read_text())]
    official_fails = 0
    for gold in golds:
        checks = check(gold, gold=gold)
        assert checks["format"].score == 1
        wanted = 3 if checks["correctness"].info else 0
        assert checks["correctness"].score == wanted
        official = check(gold, gold=gold, mode="official")["correctness"]
        official_fails += official.flags == ("data:gold",)
        assert official.score == wanted or math.isnan(official.score)
    assert (len(golds), official_fails) == (480, 17)


def test_every_answer_of_bfcl_is_right(data: Path) -> None:
    """The reference calls of all 2,501 questions, those about Java and JavaScript too, but four."""
    unsatisfiable = set()
    count = 0
    for path in sorted((data / "bfcl" / "possible_answer").glob("*.json")):
        questions = [json.loads(line) for line in (data / "bfcl" / path.name).read_text().splitlines()]
        answers = [json.loads(line) for line in path.read_text().splitlines()]
        for question, answer in zip(questions, answers, strict=True):
            reference = {"functions": question["function"], "answers": answer["ground_truth"]}
            info = check("", **reference)["correctness"].info
            found = check(f"<tool_call>\n{info}\n</tool_call>", think=False, **reference)
            count += 1
            assert found["format"].score == 1
            if found["correctness"].flags[:1] == ("data:answers",):
                unsatisfiable.add(question["id"])
            else:
                assert found["correctness"].score == 3, (question["id"], found["correctness"].reason)
    assert count == 2501
    assert unsatisfiable == {
        "live_simple_106-63-0",
        "live_simple_112-68-0",
        "live_multiple_862-181-3",
        "live_multiple_964-207-0",
    }


def test_sound_verdicts_on_mutated_calls(data: Path) -> None:
    """Where the sound mode differs from the official one on 10,000 mutated calls."""
    mutations = runpy.run_path(str(Path(__file__).parents[2] / "conformance" / "bfcl_mutations.py"))
    stricter, laxer = Counter[str](), Counter[str]()
    for question, kind, _, calls in mutations["choose"](mutations["questions"](data / "bfcl"), 10_000):
        reference = {"functions": question["function"], "answers": question["ground_truth"]}
        text = mutations["as_list"](calls)
        official = check(text, mode="official", **reference)["correctness"].score
        sound = check(text, **reference)["correctness"].score
        if not math.isnan(sound) and sound != official:
            (stricter if sound < official else laxer)[kind] += 1
    assert stricter == {
        "misspell": 12,  # 2023-0401, 1.23 for 1.2.3
        "punctuate": 87,  # -2023, -tennis, manager@example.com.
        "dict_change": 2,  # True for 1
        "shorten_list": 3,  # [] where the parameter may be left out
    }
    assert laxer == {
        "as_tuple": 142,
        "whole_items": 24,  # in a list of floats
        "flag_as_lower_text": 12,  # where the schema says text, the answer is False
        "punctuate": 1,  # " dontcare " for "dontcare", where the schema says a whole number
    }
