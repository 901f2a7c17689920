"""Where in a response a reward's distance lies: on what its verifier reads, on few tokens, on which parts.

After Table 4 and Figure 6 of MRTPO (Zhai et al. 2026). What the paper leaves open is decided thus: shares
are taken within each response and then averaged, so that a long response counts as much as a short one, as it
does in the weights; a ratio is that of the averages.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from creditlib.trainer.metrics import ratio_interval

Array = NDArray[np.float64]
Key = tuple[int, str, int]  # step, prompt, index within the prompt's group
Outcome = Literal["satisfied", "violated", "pooled"]

LEAST = 5  # cases that a number must rest on
TOP = (0.05, 0.1, 0.2)
ROUNDING = 1e-6  # the highest score comes from a float32

_RELEVANCE = "relevance/"
_OUTCOMES: dict[Outcome, tuple[bool | None, ...]] = {
    "satisfied": (True,),
    "violated": (False,),
    "pooled": (True, False, None),
}


@dataclass(frozen=True)
class Case:
    """One reward of one response of T tokens, with a distance that is not zero everywhere."""

    response: Hashable  # tells responses apart
    kind: str  # what the reward's column means for this response
    satisfied: bool | None  # is the score the highest there is; None: not known
    distance_T: Array  # finite, not negative
    read_T: NDArray[np.bool_] | None = None  # tokens that the verifier read; None: it did not say
    part_T: Sequence[str] = ()  # what part of the response each token is

    @property
    def share_T(self) -> Array:
        """Each token's share of the distance."""
        share_T: Array = self.distance_T / self.distance_T.sum()
        return share_T


@dataclass(frozen=True)
class Localization:
    """Mean shares of the tokens that a verifier read; NaN where there are too few cases."""

    kind: str
    outcome: Outcome
    cases: int
    distance: float
    tokens: float
    ratio: float  # distance over tokens, 1 where the distance is spread evenly
    low: float  # of the ratio's 95 % interval
    high: float


@dataclass(frozen=True)
class Concentration:
    """Mean share of the distance that the tokens with most of it hold; NaN where there are too few cases."""

    kind: str
    cases: int
    first: float  # of the one token with most
    top: Mapping[float, float]  # of a fraction of the tokens; a part of a token counts in part


@dataclass(frozen=True)
class PartShare:
    """Mean shares of the tokens of a part; NaN where there are too few cases."""

    kind: str
    part: str  # "": of no part
    cases: int
    distance: float
    tokens: float
    ratio: float


def logged_responses(
    tokens: pa.Table, responses: Iterable[Mapping[str, Any]]
) -> Iterator[tuple[Key, dict[str, NDArray[Any]], Mapping[str, Any]]]:
    """Each response that is in both files of a ledger, which are written one after the other.

    Yields:
        Its step, prompt and index, the columns of its tokens, and its line.
    """
    said = {(row["step"], row["prompt"], row["response"]): row for row in responses}
    columns = {name: tokens[name].to_numpy(zero_copy_only=False) for name in tokens.column_names}
    starts = np.flatnonzero(columns["position"] == 0)
    for start, end in pairwise([*starts, tokens.num_rows]):
        own = {name: values[start:end] for name, values in columns.items()}
        key = (int(own["step"][0]), str(own["prompt"][0]), int(own["response"][0]))
        if key in said:
            yield key, own, said[key]


def read_cases(tokens: pa.Table, responses: Iterable[Mapping[str, Any]]) -> list[Case]:
    """The cases of a ledger: rewards whose distance was computed and is not zero everywhere.

    Args:
        tokens: tokens.parquet, or some responses of it.
        responses: objects of responses.jsonl. Responses that are in one of the two alone are left out.
    """
    cases = []
    for key, columns, said in logged_responses(tokens, responses):
        for name, reward in said["rewards"].items():
            distance_T = columns[_RELEVANCE + name].astype(np.float64)
            if reward.get("measure") != "distance":
                continue  # shares are of what is never negative
            if reward["score"] is None or not distance_T.sum() > 0:  # NaN is not either
                continue
            read_T = columns[f"read/{name}"]
            cases.append(
                Case(
                    response=key,
                    kind=reward["kind"],
                    satisfied=None if reward["best"] is None else reward["score"] > reward["best"] - ROUNDING,
                    distance_T=distance_T,
                    read_T=None if read_T[0] is None else read_T.astype(np.bool_),
                    part_T=tuple(columns["part"]),
                )
            )
    return cases


def localization(
    cases: Iterable[Case], *, least: int = LEAST, draws: int = 2000, seed: int = 0
) -> list[Localization]:
    """How much of the distance lies on the tokens that the verifier read, for each kind (MRTPO, Table 4).

    Cases without such tokens are left out. Intervals are from `draws` bootstrap samples of responses.
    """
    rows = []
    for kind, own in _by_kind(cases).items():
        read = [case for case in own if case.read_T is not None and case.read_T.any()]
        for outcome, states in _OUTCOMES.items():
            chosen = [case for case in read if case.satisfied in states]
            distance_C = np.array([case.share_T[case.read_T].sum() for case in chosen])
            tokens_C = np.array([np.mean(case.read_T) for case in chosen if case.read_T is not None])
            distance, share = _mean(distance_C, least), _mean(tokens_C, least)
            low = high = math.nan
            if len(chosen) >= least:
                clusters = [case.response for case in chosen]
                low, high = ratio_interval(
                    clusters, distance_C.tolist(), tokens_C.tolist(), seed=seed, draws=draws
                )
            rows.append(
                Localization(kind, outcome, len(chosen), distance, share, distance / share, low, high)
            )
    return rows


def concentration(
    cases: Iterable[Case], *, top: Sequence[float] = TOP, least: int = LEAST
) -> list[Concentration]:
    """How much of the distance the tokens with most of it hold, for each kind (MRTPO, Figure 6).

    A fraction f of the tokens holds at least the share f, and exactly f where the distance is spread evenly.
    """
    rows = []
    for kind, own in _by_kind(cases).items():
        first_C = np.array([case.share_T.max() for case in own])
        held = {part: _mean(np.array([_held(case, part) for case in own]), least) for part in top}
        rows.append(Concentration(kind, len(own), _mean(first_C, least), held))
    return rows


def by_part(cases: Iterable[Case], *, least: int = LEAST) -> list[PartShare]:
    """How much of the distance lies on each part of a response, for each kind (MRTPO, Figure 6)."""
    rows = []
    for kind, own in _by_kind(case for case in cases if len(case.part_T)).items():
        for part in dict.fromkeys(part for case in own for part in case.part_T):
            of_part = [np.array(case.part_T) == part for case in own]
            shares_C = [case.share_T[part_T].sum() for case, part_T in zip(own, of_part, strict=True)]
            distance = _mean(np.array(shares_C), least)
            tokens = _mean(np.array([part_T.mean() for part_T in of_part]), least)
            rows.append(PartShare(kind, part, len(own), distance, tokens, distance / tokens))
    return rows


def render(cases: Sequence[Case], *, least: int = LEAST) -> str:
    """All three as Markdown tables; shares in %, "–" where there are too few cases."""
    if not cases:
        return "There are no distances: strategies that replay responses log them, as credit=mrtpo does."
    located = [
        (row.kind, row.outcome, str(row.cases), _percent(row.distance), _percent(row.tokens), _ratio(row))
        for row in localization(cases, least=least)
    ]
    held = [
        (row.kind, str(row.cases), _percent(row.first), *map(_percent, row.top.values()))
        for row in concentration(cases, least=least)
    ]
    parts = [
        (
            row.kind,
            row.part or "none",
            str(row.cases),
            _percent(row.distance),
            _percent(row.tokens),
            _number(row.ratio),
        )
        for row in by_part(cases, least=least)
    ]
    tops = [f"top {fraction:.0%}" for fraction in TOP]
    return "\n".join(
        (
            "Distance on the tokens that the verifier reads, with the ratio's 95 % interval:\n",
            _table(("reward", "responses", "cases", "Dist.", "Tok.", "Ratio"), located),
            "Distance held by the tokens with most of it:\n",
            _table(("reward", "cases", "first token", *tops), held),
            "Distance by part of the response:\n",
            _table(("reward", "part", "cases", "Dist.", "Tok.", "Ratio"), parts),
        )
    )


def _by_kind(cases: Iterable[Case]) -> dict[str, list[Case]]:
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(case.kind, []).append(case)
    return groups


def _mean(values_C: Array, least: int) -> float:
    return float(values_C.mean()) if len(values_C) >= max(least, 1) else math.nan


def _held(case: Case, fraction: float) -> float:
    """Share of the distance that the top `fraction` of the tokens hold."""
    so_far = np.concatenate([[0.0], np.sort(case.share_T)[::-1].cumsum()])
    return float(np.interp(fraction * len(case.share_T), np.arange(len(so_far)), so_far))


def _percent(share: float) -> str:
    return "–" if math.isnan(share) else f"{100 * share:.1f}"


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.2f}"


def _ratio(row: Localization) -> str:
    interval = "" if math.isnan(row.low) else f" [{row.low:.2f}, {row.high:.2f}]"
    return _number(row.ratio) + interval


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table that also reads well as plain text; words are left, numbers right."""
    lines = [header, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    words = header.index("cases")  # the columns before it
    aligned = [
        [
            cell.ljust(width) if i < words else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        for line in lines
    ]
    rule = ["-" * width if i < words else "-" * (width - 1) + ":" for i, width in enumerate(widths)]
    return "".join("| " + " | ".join(line) + " |\n" for line in (aligned[0], rule, *aligned[1:]))
