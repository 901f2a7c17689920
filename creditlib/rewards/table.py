"""From a verifier's findings to the reward table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from creditlib.types import Check, CreditlibError, RewardReading, RewardTable, Rollout, Verifier

ROUNDING = 1e-6  # scores and bounds are float32
NOT_APPLICABLE = Check(math.nan, "does not apply to this prompt")


def build_table(rollout: Rollout, verifier: Verifier) -> RewardTable:
    """Judge every response of the rollout.

    A reward that a response has no finding for is NaN.

    Raises:
        CreditlibError: the verifier gave another number of findings, an undeclared reward, something else
            than `Check` describes, or a score outside the declared bounds, which group statistics would
            spread over other responses.
    """
    names = verifier.reward_names
    prompts = [rollout.prompts[group] for group in rollout.group_B.tolist()]
    findings = verifier.verify(prompts, [rollout.opened + text for text in rollout.texts])
    if len(findings) != len(prompts):
        raise CreditlibError(f"the verifier returned {len(findings)} findings for {len(prompts)} responses")
    findings = [
        {
            name: _plain(check, rollout, f"prompt {prompt.id!r}: reward {name!r}")
            for name, check in finding.items()
        }
        for prompt, finding in zip(prompts, findings, strict=True)
    ]
    for prompt, finding in zip(prompts, findings, strict=True):
        _check(prompt.id, finding, names, verifier.bounds)
    checks = tuple(tuple(finding.get(name, NOT_APPLICABLE) for name in names) for finding in findings)
    scores_BK = torch.tensor([[check.score for check in row] for row in checks], dtype=torch.float32)
    bounds_K2 = torch.tensor([verifier.bounds[name] for name in names], dtype=torch.float32)
    kind_BK = tuple(
        tuple(name if check.kind is None else check.kind for name, check in zip(names, row, strict=True))
        for row in checks
    )
    return RewardTable(names, scores_BK.view(len(prompts), len(names)), kind_BK, bounds_K2, checks)


def _plain(check: Check, rollout: Rollout, where: str) -> Check:
    """The finding in plain types: scores and places may be numpy's, spans may be any three values."""
    try:
        score = float(check.score)
        spans = rollout.in_texts((int(start), int(end), str(part)) for start, end, part in check.spans)
    except (TypeError, ValueError) as error:
        raise CreditlibError(
            f"{where}: expected a number as score and (start, end, part) as spans, found {check!r} ({error})"
        ) from error
    for name, text in (("reason", check.reason), ("info", check.info or ""), ("kind", check.kind or "")):
        if not isinstance(text, str):
            raise CreditlibError(f"{where}: expected a text as {name}, found {text!r}")
    return replace(check, score=score, spans=spans)


def _check(
    prompt: str, finding: Mapping[str, Check], names: Sequence[str], bounds: Mapping[str, tuple[float, float]]
) -> None:
    if unknown := set(finding) - set(names):
        raise CreditlibError(
            f"prompt {prompt!r}: the verifier scored {sorted(unknown)}, declared are {list(names)}"
        )
    for name, check in finding.items():
        low, high = bounds[name]
        if not (math.isnan(check.score) or low <= check.score <= high):
            raise CreditlibError(
                f"prompt {prompt!r}: reward {name!r} is {check.score}, outside its declared bounds "
                f"[{low}, {high}]"
            )


def join_tables(tables: Sequence[RewardTable]) -> RewardTable:
    """The rows of all tables (of one verifier), in order."""
    first = tables[0]
    return RewardTable(
        first.names,
        torch.cat([table.scores_BK for table in tables]),
        tuple(kinds for table in tables for kinds in table.kind_BK),
        first.bounds_K2,
        tuple(row for table in tables for row in table.checks),
        {name: _join_readings([table.readings[name] for table in tables]) for name in first.readings},
    )


def select_rows(table: RewardTable, rows: Sequence[int]) -> RewardTable:
    return RewardTable(
        table.names,
        table.scores_BK[list(rows)],
        tuple(table.kind_BK[row] for row in rows),
        table.bounds_K2,
        tuple(table.checks[row] for row in rows),
        {name: _select_reading(reading, rows) for name, reading in table.readings.items()},
    )


def _select_reading(reading: RewardReading, rows: Sequence[int]) -> RewardReading:
    def chosen(part: Tensor | None) -> Tensor | None:
        return None if part is None else part[list(rows)]

    return RewardReading(
        reading.score_B[list(rows)],
        reading.read_BT[list(rows)],
        chosen(reading.gradients_BTD),
        chosen(reading.values_BS),
    )


def _join_readings(readings: Sequence[RewardReading]) -> RewardReading:
    """One below the other, as wide as the widest."""
    width = max(reading.read_BT.shape[1] for reading in readings)

    def joined(parts: Sequence[Tensor | None]) -> Tensor | None:
        there = [part for part in parts if part is not None]
        missing = [width - reading.read_BT.shape[1] for reading in readings]
        if not there:
            return None
        return torch.cat(
            [
                torch.cat([part, part.new_zeros(len(part), more, *part.shape[2:])], 1)
                for part, more in zip(there, missing, strict=True)
            ]
        )

    read_BT = joined([reading.read_BT for reading in readings])
    assert read_BT is not None
    return RewardReading(
        torch.cat([reading.score_B for reading in readings]),
        read_BT,
        joined([reading.gradients_BTD for reading in readings]),
        joined([reading.values_BS for reading in readings]),
    )


def varying_rewards(scores_BK: Tensor, group_B: Tensor) -> Tensor:
    """(N, K) bool for the N groups in order of their id: does reward k vary between the group's responses."""
    groups = group_B.unique()
    varies_NK = torch.zeros(len(groups), scores_BK.shape[1], dtype=torch.bool)
    for n, group in enumerate(groups):
        rows_GK = scores_BK[group_B == group]
        low_K = rows_GK.nan_to_num(nan=math.inf).amin(0)
        high_K = rows_GK.nan_to_num(nan=-math.inf).amax(0)
        varies_NK[n] = high_K > low_K
    return varies_NK


def applicable_rewards(scores_BK: Tensor, group_B: Tensor) -> Tensor:
    """(N, K) bool for the N groups in order of their id: does reward k apply to any response of the group."""
    valid_BK = ~scores_BK.isnan()
    return torch.stack([valid_BK[group_B == group].any(0) for group in group_B.unique()])


def cells_by_kind(kind_BK: Sequence[Sequence[str]]) -> dict[str, tuple[list[int], list[int]]]:
    """What the columns mean -> rows and columns of its cells, in order of appearance. Cells that mean nothing
    are left out.
    """
    found: dict[str, tuple[list[int], list[int]]] = {}
    for b, kinds in enumerate(kind_BK):
        for k, kind in enumerate(kinds):
            if kind:
                rows, columns = found.setdefault(kind, ([], []))
                rows.append(b)
                columns.append(k)
    return found


def perfect_B(scores_BK: Tensor, bounds_K2: Tensor) -> Tensor:
    """1 where a response has the best score of every reward that applies and has a best one, else 0; NaN
    where there is no such reward, (B,) float64.
    """
    best_K = bounds_K2[:, 1]
    counts_BK = ~scores_BK.isnan() & best_K.isfinite()
    missed_B = (counts_BK & (scores_BK < best_K - ROUNDING)).any(1)
    return (~missed_B).double().masked_fill(~counts_BK.any(1), math.nan)


def earned_B(scores_BK: Tensor, bounds_K2: Tensor) -> Tensor:
    """How much of what it could a response has earned: the mean over rewards that apply and have bounds of
    the score's place between the worst (0) and the best (1); NaN where there is no such reward, (B,) float64.
    """
    low_K, high_K = bounds_K2.double().unbind(1)
    places_BK = (scores_BK.double() - low_K) / (high_K - low_K)
    bounded_K = bounds_K2.isfinite().all(1) & (high_K > low_K)
    return places_BK.masked_fill(~bounded_K, math.nan).nanmean(1)
