"""Where a reward's distance lies, on numbers made by hand and against slow oracles."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from creditlib.analysis.localization import (
    Case,
    by_part,
    concentration,
    localization,
    read_cases,
    render,
)


def case(
    distances: list[float],
    read: list[int] | None = None,
    *,
    response: int = 0,
    kind: str = "format",
    satisfied: bool | None = True,
    parts: str = "",
) -> Case:
    read_T = None if read is None else np.array(read, dtype=np.bool_)
    return Case(response, kind, satisfied, np.array(distances), read_T, tuple(parts))


def rows(cases: list[Case], **settings: Any) -> dict[tuple[str, str], Any]:
    return {(row.kind, row.outcome): row for row in localization(cases, **settings)}


# --------------------------------------------------------------------------- localization


def test_shares_by_hand() -> None:
    """3/4 and 1/2 of the distance on 1/2 and 1/4 of the tokens: 62.5 % on 37.5 %, ratio 5/3."""
    found = rows([case([1, 3], [0, 1]), case([2, 1, 0, 1], [1, 0, 0, 0], response=1)], least=2)
    row = found["format", "satisfied"]
    assert (row.cases, row.distance, row.tokens, row.ratio) == (2, 0.625, 0.375, pytest.approx(5 / 3))
    assert found["format", "pooled"] == replace(row, outcome="pooled")
    violated = found["format", "violated"]
    assert violated.cases == 0 and math.isnan(violated.ratio) and math.isnan(violated.low)


def test_even_distances_have_ratio_one() -> None:
    cases = [case([0.3] * n, [1] * (n // 2) + [0] * (n - n // 2), response=n) for n in range(2, 9)]
    row = rows(cases)["format", "pooled"]
    assert row.ratio == pytest.approx(1) and (row.low, row.high) == pytest.approx((1, 1))


def test_outcomes_and_kinds_are_apart_and_pooled() -> None:
    cases = [
        *[case([1, 1], [1, 0], response=i) for i in range(5)],
        *[case([3, 1], [1, 0], response=5 + i, satisfied=False) for i in range(5)],
        case([0, 1], [1, 0], response=10, satisfied=None),
        *[case([1, 9], [1, 0], response=i, kind="length") for i in range(4)],
    ]
    found = rows(cases)
    assert [row.cases for row in found.values()] == [5, 5, 11, 4, 0, 4]
    assert found["format", "satisfied"].distance == 0.5
    assert found["format", "violated"].distance == 0.75
    assert found["format", "pooled"].distance == pytest.approx((5 * 0.5 + 5 * 0.75) / 11)
    assert math.isnan(found["length", "pooled"].distance), "four cases are too few"
    assert rows(cases, least=4)["length", "pooled"].distance == pytest.approx(0.1)


def test_only_cases_with_tokens_that_were_read_count() -> None:
    cases = [case([1, 1]), case([1, 1], [0, 0]), case([1, 1], [1, 0])]
    assert rows(cases, least=1)["format", "pooled"].cases == 1


def test_against_exact_fractions() -> None:
    generator = random.Random(0)
    cases, distance, tokens = [], Fraction(0), Fraction(0)
    for i in range(40):
        length = generator.randrange(1, 30)
        values = [generator.randrange(1, 9) for _ in range(length)]
        read = [1, *(generator.randrange(2) for _ in range(length - 1))]
        cases.append(case([float(value) for value in values], read, response=i))
        distance += Fraction(sum(v for v, r in zip(values, read, strict=True) if r), sum(values))
        tokens += Fraction(sum(read), length)
    row = rows(cases)["format", "pooled"]
    assert row.distance == pytest.approx(float(distance / 40), rel=1e-12)
    assert row.tokens == pytest.approx(float(tokens / 40), rel=1e-12)
    assert row.ratio == pytest.approx(float(distance / tokens), rel=1e-12)
    assert row.low < row.ratio < row.high
    assert rows(cases)["format", "pooled"] == row, "seeded"
    assert rows(cases, seed=1)["format", "pooled"].low != row.low


def test_the_interval_of_two_responses() -> None:
    """Drawing two of the ratios 1 and 2 gives (1, 1), (1, 2), (2, 1), (2, 2): the interval is all of it."""
    cases = [case([1, 1], [1, 0]), case([1, 0], [1, 0], response=1)]
    row = rows(cases, least=1)["format", "pooled"]
    assert (row.low, row.ratio, row.high) == (1, 1.5, 2)


def test_the_interval_of_many_responses() -> None:
    """Half of 400 ratios are 1, half 2: the binomial's quantiles for 400 draws are 180 and 220."""
    cases = [case([1, i % 2], [1, 0], response=i) for i in range(400)]
    row = rows(cases, draws=4000)["format", "pooled"]
    assert (row.low, row.high) == pytest.approx((1 + 180 / 400, 1 + 220 / 400), abs=0.01)


def test_cases_of_one_response_are_drawn_together() -> None:
    """Two constraints of the same kind in one response are no two observations."""
    together = [case([1, i % 2], [1, 0], response=7) for i in range(6)]
    row = rows(together)["format", "pooled"]
    assert row.low == row.ratio == row.high == 1.5


# --------------------------------------------------------------------------- concentration and parts


def test_the_top_tokens_by_hand() -> None:
    """Of ten tokens 5 % is half of the first, 10 % the first, 20 % two; part of one counts in part."""
    distances = [0.0, 1, 5, 0, 0, 2, 0, 0, 0, 2]
    (row,) = concentration([case(distances)], top=(0.05, 0.1, 0.2, 0.25, 0.0, 1.0), least=1)
    assert (row.kind, row.cases, row.first) == ("format", 1, 0.5)
    assert row.top == pytest.approx({0.05: 0.25, 0.1: 0.5, 0.2: 0.7, 0.25: 0.8, 0.0: 0.0, 1.0: 1.0})


def test_the_top_tokens_of_even_distances() -> None:
    cases = [case([2.0] * length) for length in (1, 3, 7, 20, 64)]
    (row,) = concentration(cases)
    assert row.top == pytest.approx({0.05: 0.05, 0.1: 0.1, 0.2: 0.2})
    assert row.first == pytest.approx(np.mean([1 / length for length in (1, 3, 7, 20, 64)]))
    (few,) = concentration(cases[:4])
    assert math.isnan(few.first) and math.isnan(few.top[0.1]) and few.cases == 4


def test_parts_by_hand() -> None:
    cases = [
        case([1, 1, 2, 0], parts="ttk "),
        case([0, 3], parts="kt", response=1),
        case([5.0]),  # a task without parts
    ]
    found = {row.part: row for row in by_part(cases, least=2)}
    assert list(found) == ["t", "k", " "]
    assert (found["t"].distance, found["t"].tokens) == (0.75, 0.5)
    assert (found["k"].distance, found["k"].tokens) == (0.25, 0.375)
    assert (found[" "].distance, found[" "].tokens) == (0, 0.125)
    assert found["t"].ratio == 1.5
    assert math.fsum(row.distance for row in found.values()) == 1
    assert math.fsum(row.tokens for row in found.values()) == 1
    assert math.isnan(by_part(cases)[0].distance)


# --------------------------------------------------------------------------- from a ledger, to a page


def ledger() -> tuple[pa.Table, list[dict[str, Any]]]:
    """Responses of 2, 1, 2 and 1 tokens, with two rewards each."""
    nan = math.nan
    tokens = pa.table(
        {
            "step": pa.array([1, 1, 1, 3, 3, 3], pa.int32()),
            "prompt": ["p", "p", "p", "q", "q", "gone"],
            "response": pa.array([0, 0, 1, 0, 0, 0], pa.int32()),
            "position": pa.array([0, 1, 0, 0, 1, 0], pa.int32()),
            "part": ["tag", "", "tag", "column", "tag", ""],
            "relevance/a": pa.array([0.5, 0.25, nan, 0.0, 0.0, 1.0], pa.float32()),
            "read/a": [True, False, True, True, True, True],
            "relevance/b": pa.array([0.5, nan, 0.75, 1.0, 0.25, 1.0], pa.float32()),
            "read/b": [None, None, None, True, False, True],
        }
    )

    def line(key: tuple[int, str, int], **rewards: tuple[str, float | None, float | None]) -> dict[str, Any]:
        named = {
            name: {"kind": kind, "score": score, "best": best, "measure": "distance"}
            for name, (kind, score, best) in rewards.items()
        }
        return {"step": key[0], "prompt": key[1], "response": key[2], "rewards": named}

    return tokens, [
        line((1, "p", 0), a=("a", 1.0, 1.0), b=("c1", 0.0, 1.0)),
        line((1, "p", 1), a=("a", 0.0, 1.0), b=("c2", 0.3, float(np.float32(0.3)))),
        line((3, "q", 0), a=("a", 1.0, 1.0), b=("c2", 0.0, None)),
        line((5, "unfinished", 0), a=("a", 1.0, 1.0), b=("c2", None, None)),
    ]


def test_cases_of_a_ledger() -> None:
    first, second, third = read_cases(*ledger())
    assert (first.response, first.kind, first.satisfied) == ((1, "p", 0), "a", True)
    assert first.distance_T.tolist() == [0.5, 0.25] and first.part_T == ("tag", "")
    assert first.read_T is not None and first.read_T.tolist() == [True, False]
    # b of the first response has no distance at its second token, a of the second none, a of the third only 0
    assert (second.response, second.kind, second.satisfied) == ((1, "p", 1), "c2", True)
    assert second.read_T is None and second.distance_T.tolist() == [0.75]
    assert (third.response, third.kind, third.satisfied) == ((3, "q", 0), "c2", None)


def test_a_reward_that_does_not_apply_is_no_case() -> None:
    tokens, said = ledger()
    said[0]["rewards"]["a"]["score"] = None
    assert [case.kind for case in read_cases(tokens, said)] == ["c2", "c2"]
    assert read_cases(tokens.slice(0, 0), said) == []


def test_tables_for_a_person() -> None:
    cases = [case([3, 1], [1, 0], parts="t ", response=i) for i in range(5)]
    cases += [case([1.0], [1], kind="length", parts="v")]
    assert render(cases) == (
        "Distance on the tokens that the verifier reads, with the ratio's 95 % interval:\n\n"
        "| reward | responses | cases | Dist. | Tok. |             Ratio |\n"
        "| ------ | --------- | ----: | ----: | ---: | ----------------: |\n"
        "| format | satisfied |     5 |  75.0 | 50.0 | 1.50 [1.50, 1.50] |\n"
        "| format | violated  |     0 |     – |    – |                 – |\n"
        "| format | pooled    |     5 |  75.0 | 50.0 | 1.50 [1.50, 1.50] |\n"
        "| length | satisfied |     1 |     – |    – |                 – |\n"
        "| length | violated  |     0 |     – |    – |                 – |\n"
        "| length | pooled    |     1 |     – |    – |                 – |\n\n"
        "Distance held by the tokens with most of it:\n\n"
        "| reward | cases | first token | top 5% | top 10% | top 20% |\n"
        "| ------ | ----: | ----------: | -----: | ------: | ------: |\n"
        "| format |     5 |        75.0 |    7.5 |    15.0 |    30.0 |\n"
        "| length |     1 |           – |      – |       – |       – |\n\n"
        "Distance by part of the response:\n\n"
        "| reward | part | cases | Dist. | Tok. | Ratio |\n"
        "| ------ | ---- | ----: | ----: | ---: | ----: |\n"
        "| format | t    |     5 |  75.0 | 50.0 |  1.50 |\n"
        "| format |      |     5 |  25.0 | 50.0 |  0.50 |\n"
        "| length | v    |     1 |     – |    – |     – |\n"
    )


def test_nothing_to_show() -> None:
    assert render([]).startswith("There are no distances: ")
    assert not localization([]) and not concentration([]) and not by_part([])
