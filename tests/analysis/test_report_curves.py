"""Curves, and held-out results, against numbers that can be checked by eye and against slow oracles."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from creditlib.analysis.charts import OUTCOMES, sections, station_seconds
from creditlib.analysis.curves import curve, thin, trailing_mean
from creditlib.analysis.evaluations import outcomes
from creditlib.analysis.runs import Group, find_runs, group_runs
from creditlib.credit import mrtpo
from creditlib.trainer.metrics import mean_interval
from tests.analysis import fake

NAN = math.nan


def test_trailing_mean() -> None:
    assert trailing_mean(np.array([1.0, 3.0, 8.0, 4.0]), 2).tolist() == [1, 2, 5.5, 6]
    assert trailing_mean(np.array([1.0, 3.0, 8.0]), 1).tolist() == [1, 3, 8]
    assert trailing_mean(np.array([2.0, NAN, 6.0]), 9).tolist() == [2, 2, 4]


def group_with(folder: Path, *values: list[float | None]) -> Group:
    """A run for each list of values of ``reward/x`` at steps 1, 2, ..."""
    paths = []
    for seed, own in enumerate(values):
        lines = [{"step": step, "phase": "train", "reward/x": value} for step, value in enumerate(own, 1)]
        paths.append(fake.write_run(folder / str(seed), fake.config(seed=seed), lines, evaluations=()))
    (group,) = group_runs(find_runs(paths)[0])
    return group


def test_a_curve_sums_up_its_seeds(tmp_path: Path) -> None:
    found = curve(group_with(tmp_path, [0, 4], [2, 6], [4, 8], [10, 14]), "reward/x", 2)
    assert found is not None
    assert found.steps_S.tolist() == [1, 2]
    assert found.raw_S.tolist() == [4, 8]
    assert found.mean_S.tolist() == [4, 6]  # trailing means are 0 2, 2 4, 4 6, 10 12
    assert (found.low_S.tolist(), found.high_S.tolist()) == ([0, 2], [10, 12])
    assert found.median_S.tolist() == [3, 5]
    assert (found.lower_S.tolist(), found.upper_S.tolist()) == ([1.5, 3.5], [5.5, 7.5])
    assert found.runs_S.tolist() == [4, 4]
    assert found.last == 6


def test_a_run_that_ended_early_counts_as_far_as_it_came(tmp_path: Path) -> None:
    found = curve(group_with(tmp_path, [1, 1, 1], [3]), "reward/x", 5)
    assert found is not None
    assert found.mean_S.tolist() == [2, 1, 1]
    assert found.runs_S.tolist() == [2, 1, 1]


def test_null_is_no_number(tmp_path: Path) -> None:
    group = group_with(tmp_path, [None, 1, None])
    found = curve(group, "reward/x", 1)
    assert found is not None
    assert found.steps_S.tolist() == [2]
    assert curve(group, "reward/y", 1) is None
    assert all(not own.charts for own in sections([group_with(tmp_path / "b", [None])], 1))


def test_thinning_keeps_the_ends(tmp_path: Path) -> None:
    found = curve(group_with(tmp_path, [float(i) for i in range(100)]), "reward/x", 1)
    assert found is not None
    thinned = thin(found, 7)
    assert len(thinned.steps_S) == 7
    assert (thinned.steps_S[0], thinned.steps_S[-1]) == (1, 100)
    assert thinned.mean_S.tolist() == [step - 1 for step in thinned.steps_S]
    assert thin(found, 100) is found


def test_each_metric_has_one_chart(tmp_path: Path) -> None:
    lines = fake.metrics(3, mrtpo=True)
    for line in lines:
        line["credit/surprise"] = 0.5  # of a strategy that we do not know
    run = fake.write_run(tmp_path / "run", fake.config(), lines)
    found = {own.name: own.charts for own in sections(group_runs(find_runs([run])[0]), 10)}
    assert [chart.title for chart in found["rewards"]] == list(fake.REWARDS)
    titles = [chart.title for chart in found["credit"]]
    assert titles == [
        "evenness",
        "largest weight",
        *(f"distance: {name}" for name in fake.REWARDS),
        "surprise",
    ]
    roles = [[series.role for series in chart.series] for chart in found["credit"]]
    assert roles == [["value"]] * 2 + [["value", "floor"]] * 3 + [["value"]]


def test_evaluations_during_training_are_curves(tmp_path: Path) -> None:
    key = "eval/held_out/greedy/format"
    lines: list[dict[str, object]] = [
        {"step": step, "phase": "eval", key: step / 4, f"{key}_low": 0.0, "eval/held_out/greedy/tokens": 9.0}
        for step in (0, 2, 4)
    ]
    for number, charts in ((2, 0), (3, 1)):
        run = fake.write_run(tmp_path / str(number), fake.config(), lines[:number], evaluations=())
        groups = group_runs(find_runs([run])[0])
        (found,) = (own.charts for own in sections(groups, 10) if own.name == "evaluation")
        assert len(found) == charts
    assert found[0].title == "held_out/greedy/format"
    assert found[0].series[0].curve.mean_S.tolist() == [0, 0.5, 1]  # no trailing means


@pytest.mark.parametrize(("values", "bounds"), [([0, 1], (0, 1)), ([-3, 1], (None, None))])
def test_rewards_within_0_and_1_share_an_axis(
    tmp_path: Path, values: list[float | None], bounds: tuple[float | None, float | None]
) -> None:
    (chart,) = sections([group_with(tmp_path, values)], 1)[0].charts
    assert chart.bounds == bounds


def test_seconds_are_a_steps(tmp_path: Path) -> None:
    lines = [
        {"step": 1, "phase": "train", "seconds/rollout": 2.0, "seconds/score": 1.0},
        {"step": 2, "phase": "train", "seconds/rollout": 4.0},
    ]
    run = fake.write_run(tmp_path / "run", fake.config(), lines)
    (group,) = group_runs(find_runs([run])[0])
    assert station_seconds(group) == {"rollout": 3.0, "score": 0.5}


def test_held_out_results_of_one_run_are_those_of_its_summary(tmp_path: Path) -> None:
    from creditlib.trainer.evaluation import load_answers, paired_change

    run = fake.write_run(tmp_path / "run", fake.config(), fake.metrics(2), evaluations=(0, 20, 40))
    files = [run / "evaluations" / f"step-{step:06d}.jsonl" for step in (0, 40)]
    expected = paired_change(*(load_answers(file) for file in files))
    found = outcomes(group_runs(find_runs([run])[0]))
    assert len(found) == 3  # rewards
    for own in found:
        wanted = expected[f"{own.split}/{own.mode}/{own.reward}"]
        assert own.after is not None and own.change is not None
        assert (own.before.mean, own.after.mean) == pytest.approx((wanted["before"], wanted["after"]))
        change = (own.change.mean, own.change.low, own.change.high)
        assert change == (wanted["change"], wanted["low"], wanted["high"])
        assert own.questions == wanted["questions"]


def test_a_question_counts_with_its_mean_over_the_seeds(tmp_path: Path) -> None:
    runs = [
        fake.write_run(tmp_path / str(seed), fake.config(seed=seed), fake.metrics(2)) for seed in range(3)
    ]
    found = outcomes(group_runs(find_runs(runs)[0]))[0]
    scores = []
    for run in runs:
        text = (run / "evaluations" / "step-000000.jsonl").read_text()
        lines = [json.loads(line) for line in text.splitlines()]
        scores.append([line["rewards"][found.reward] for line in lines][: found.questions])
    low_high = mean_interval([float(value) for value in np.mean(scores, 0)])[1:]
    assert (found.before.low, found.before.high) == pytest.approx(low_high)
    assert [before for before, _ in found.runs] == pytest.approx(np.mean(scores, 1))


def test_a_run_with_one_evaluation_has_no_change(tmp_path: Path) -> None:
    started = fake.write_run(tmp_path / "a", fake.config(), fake.metrics(2), evaluations=(0,))
    (group,) = group_runs(find_runs([started])[0])
    found = outcomes([group])
    assert all(own.after is None and own.change is None for own in found)
    # Next to a run with both it would compare different runs before and after, so it waits.
    both = fake.write_run(tmp_path / "b", fake.config(seed=1), fake.metrics(2))
    alone = outcomes(group_runs(find_runs([both])[0]))
    (group,) = group_runs(find_runs([started, both])[0])
    assert outcomes([group]) == alone


def test_rewards_that_do_not_apply_are_left_out(tmp_path: Path) -> None:
    run = fake.write_run(tmp_path / "run", fake.config(), fake.metrics(1), evaluations=())
    asked = [{"a": 1.0, "b": None}, {"a": None, "b": None}]
    rows = [{"split": "s", "mode": "m", "prompt": str(n), "rewards": own} for n, own in enumerate(asked)]
    for step in (0, 1):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (run / "evaluations" / f"step-{step}.jsonl").write_text(text)
    (found,) = outcomes(group_runs(find_runs([run])[0]))
    assert (found.reward, found.questions, found.before.mean) == ("a", 1, 1.0)


def test_the_outcomes_are_those_that_mrtpo_reports() -> None:
    assert set(OUTCOMES) == set(mrtpo.OUTCOMES)


def test_a_held_out_reward_that_never_applies_has_no_chart(tmp_path: Path) -> None:
    lines = [*fake.metrics(3), *({"step": step, "phase": "eval"} for step in (0, 1, 3))]
    for line in lines:
        if line["phase"] == "eval":
            for reward, mean in (("rare", None), ("is_low", 0.5), ("tokens", 12.0)):
                line |= {f"eval/s/m/{reward}": mean}
                if reward != "tokens":  # the mean length, which has no interval
                    line |= {f"eval/s/m/{reward}_low": mean, f"eval/s/m/{reward}_high": mean}
    run = fake.write_run(tmp_path / "run", fake.config(), lines)
    found = {own.name: own.charts for own in sections(group_runs(find_runs([run])[0]), 10)}
    assert [chart.title for chart in found["evaluation"]] == ["s/m/is_low"]


def test_a_seed_that_is_still_going_does_not_count_as_trained(tmp_path: Path) -> None:
    done = fake.write_run(tmp_path / "a", fake.config(), fake.metrics(2), evaluations=(0, 10, 40))
    alone = outcomes(group_runs(find_runs([done])[0]))
    going = fake.write_run(tmp_path / "b", fake.config(seed=1), fake.metrics(2), evaluations=(0, 10))
    (group,) = group_runs(find_runs([done, going])[0])
    assert outcomes([group]) == alone


def test_numbers_that_are_none_are_left_out(tmp_path: Path) -> None:
    values = [10**400, "high", True, None, 0.25]
    lines = [{"step": n, "phase": "train", "reward/x": value} for n, value in enumerate(values)]
    run = fake.write_run(tmp_path / "run", fake.config(), lines, evaluations=())
    found = curve(group_runs(find_runs([run])[0])[0], "reward/x", 10**13)
    assert found is not None and found.raw_S.tolist() == [0.25]
