"""From findings to the reward table, and the verifier's mistakes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from creditlib.rewards.table import (
    applicable_rewards,
    build_table,
    cells_by_kind,
    earned_B,
    join_tables,
    perfect_B,
    select_rows,
    varying_rewards,
)
from creditlib.types import Check, CreditlibError, Prompt, Rollout, Span
from tests.trainer import world

NAN = math.nan


class Says:
    """A verifier with prepared findings."""

    reward_names = ("a", "b")
    bounds: Mapping[str, tuple[float, float]] = {"a": (0.0, 1.0), "b": (-2.0, 2.0)}

    def __init__(self, findings: list[dict[str, Check]]) -> None:
        self._findings = findings
        self.asked: list[tuple[str, str]] = []

    def verify(self, prompts: Sequence[Prompt], texts: Sequence[str]) -> list[dict[str, Check]]:
        self.asked = [(prompt.id, text) for prompt, text in zip(prompts, texts, strict=True)]
        return self._findings

    def close(self) -> None: ...


def rollout() -> Rollout:
    return world.Scripted().generate(world.prompts(2), samples=2, step=1)


def test_what_the_chat_template_has_opened_is_judged_and_has_no_tokens() -> None:
    spans = (Span(0, 7, "tag"), Span(4, 12, "thinking"), Span(12, 15, "tag"))
    verifier = Says([{"a": Check(1.0, spans=spans)}] * 4)
    sampled = replace(rollout(), opened="<think>\n")
    table = build_table(sampled, verifier)
    assert [text for _, text in verifier.asked] == ["<think>\n" + text for text in sampled.texts]
    assert table.checks[0][0].spans == (Span(0, 4, "thinking"), Span(4, 7, "tag"))


def test_rows_are_responses_and_columns_rewards() -> None:
    findings = [
        {"a": Check(1.0, "yes"), "b": Check(-2.0)},
        {"a": Check(0.0)},
        {},
        {"b": Check(NAN), "a": Check(0.5)},
    ]
    verifier, sampled = Says(findings), rollout()
    table = build_table(sampled, verifier)
    assert verifier.asked == [(sampled.prompts[b // 2].id, sampled.texts[b]) for b in range(4)]
    expected = torch.tensor([[1.0, -2.0], [0.0, NAN], [NAN, NAN], [0.5, NAN]])
    torch.testing.assert_close(table.scores_BK, expected, equal_nan=True)
    assert table.valid_B([1.0, 1.0]).tolist() == [True, True, False, True]
    assert table.valid_B([0.0, 2.0]).tolist() == [True, False, False, False]
    assert table.bounds_K2.tolist() == [[0.0, 1.0], [-2.0, 2.0]]
    assert table.checks[0][0].reason == "yes" and table.checks[1][1].reason == "does not apply to this prompt"
    assert table.kind_BK == (("a", "b"),) * 4


def test_a_column_may_mean_something_else_in_each_row() -> None:
    kinds = ("case:lower", "keywords:existence", "", None)
    findings = [{"a": Check(1.0 if kind else NAN, kind=kind)} for kind in kinds]
    assert build_table(rollout(), Says(findings)).kind_BK == (
        ("case:lower", "b"),
        ("keywords:existence", "b"),
        ("", "b"),
        ("a", "b"),
    )


@pytest.mark.parametrize(
    ("findings", "message"),
    [
        ([{"a": Check(1.0)}] * 3, "3 findings for 4 responses"),
        ([{"a": Check(1.0), "c": Check(1.0)}] * 4, r"scored \['c'\], declared are \['a', 'b'\]"),
        ([{"a": Check(1.5)}] * 4, r"reward 'a' is 1.5, outside its declared bounds \[0.0, 1.0\]"),
        ([{"b": Check(math.inf)}] * 4, "reward 'b' is inf"),
    ],
)
def test_a_verifier_that_breaks_its_word(findings: Any, message: str) -> None:
    with pytest.raises(CreditlibError, match=message):
        build_table(rollout(), Says(findings))


def test_select_and_join_keep_rows_together() -> None:
    table = build_table(rollout(), Says([{"a": Check(i / 4, str(i))} for i in range(4)]))
    joined = join_tables([select_rows(table, [3, 0]), select_rows(table, [2])])
    assert joined.scores_BK[:, 0].tolist() == [0.75, 0.0, 0.5]
    assert [row[0].reason for row in joined.checks] == ["3", "0", "2"]
    assert len(joined.kind_BK) == 3
    assert select_rows(table, []).scores_BK.shape == (0, 2)


def test_spread_is_of_each_reward_in_each_group() -> None:
    scores = torch.tensor([[1.0, 0.0], [0.0, 0.0], [NAN, 1.0], [0.5, NAN], [NAN, NAN], [NAN, 0.0]])
    group = torch.tensor([7, 2, 7, 2, 5, 2])  # 7: rows 0, 2; 2: rows 1, 3, 5; 5: row 4
    assert varying_rewards(scores, group).tolist() == [[True, False], [False, False], [False, True]]
    assert applicable_rewards(scores, group).tolist() == [[True, True], [False, False], [True, True]]


def test_findings_become_plain() -> None:
    check = Check(np.float32(0.5), spans=((np.int64(0), np.int64(2), "tag"),))  # type: ignore[arg-type]
    table = build_table(rollout(), Says([{"a": check}, {"a": Check(True)}, {}, {}]))
    assert json.dumps(table.checks[0][0].score) == "0.5" and json.dumps(table.checks[1][0].score) == "1.0"
    (span,) = table.checks[0][0].spans
    assert span == Span(0, 2, "tag") and json.dumps(span) == '[0, 2, "tag"]' and span.part == "tag"


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (Check("high"), "prompt .*: reward 'a': expected a number as score"),  # type: ignore[arg-type]
        (Check(1.0, spans=((0, 1),)), "expected a number as score and .* as spans"),  # type: ignore[arg-type]
        (Check(1.0, info={"k": 1}), "reward 'a': expected a text as info, found {'k': 1}"),  # type: ignore[arg-type]
    ],
)
def test_findings_that_cannot_be(check: Check, message: str) -> None:
    with pytest.raises(CreditlibError, match=message):
        build_table(rollout(), Says([{"a": check}, {}, {}, {}]))


def test_cells_go_by_what_they_mean() -> None:
    kinds = (("lower", "commas", "liked"), ("commas", "", "liked"), ("lower", "lower", "liked"))
    assert cells_by_kind(kinds) == {
        "lower": ([0, 2, 2], [0, 0, 1]),
        "commas": ([0, 1], [1, 0]),
        "liked": ([0, 1, 2], [2, 2, 2]),
    }


def test_what_a_response_has_earned_of_what_it_could() -> None:
    bounds_K2 = torch.tensor([[0.0, 1.0], [-3.0, 3.0], [-math.inf, math.inf], [0.0, math.inf], [2.0, 2.0]])
    scores_BK = torch.tensor([[1.0, 3.0, 9.0], [0.5, 0.0, -9.0], [NAN, -3.0, 1.0], [NAN, NAN, 1.0]])
    scores_BK = torch.cat([scores_BK, torch.full((4, 2), 2.0)], 1)  # without a best, without a choice
    expected = torch.tensor([1.0, 0.5, 0.0, NAN], dtype=torch.float64)
    torch.testing.assert_close(earned_B(scores_BK, bounds_K2), expected, equal_nan=True)


def test_a_perfect_response_has_the_best_of_all_that_apply() -> None:
    bounds_K2 = torch.tensor([[0.0, 1.0], [-3.0, 3.0], [-math.inf, math.inf]])
    scores_BK = torch.tensor([[1.0, 3.0, -9.0], [1.0, NAN, NAN], [1.0, 2.9, 9.0], [NAN, NAN, 4.0]])
    expected = torch.tensor([1.0, 1.0, 0.0, NAN], dtype=torch.float64)
    torch.testing.assert_close(perfect_B(scores_BK, bounds_K2), expected, equal_nan=True)
