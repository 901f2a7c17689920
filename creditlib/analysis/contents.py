"""What a report is about, computed once for the page and for the figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from creditlib.analysis.charts import Section, sections
from creditlib.analysis.evaluations import Outcome, outcomes
from creditlib.analysis.localization import (
    Case,
    Concentration,
    Localization,
    PartShare,
    by_part,
    concentration,
    localization,
    read_cases,
)
from creditlib.analysis.responses import Response, RunLedger, choose_responses, read_ledgers
from creditlib.analysis.runs import Group, Run, group_runs


@dataclass(frozen=True)
class Relevance:
    """Where a group's distances lie, over all responses in its ledgers."""

    group: int
    located: tuple[Localization, ...]
    held: tuple[Concentration, ...]
    parts: tuple[PartShare, ...]


@dataclass(frozen=True)
class Contents:
    """Everything that a report shows. `notes` say what could not be read."""

    groups: tuple[Group, ...]
    window: int  # of the trailing means, in steps
    sections: tuple[Section, ...]
    outcomes: tuple[Outcome, ...]
    responses: tuple[Response, ...]
    relevance: tuple[Relevance, ...]  # of the groups that have distances
    notes: tuple[str, ...]


def gather(runs: Sequence[Run], *, window: int, responses: int) -> Contents:
    """Read and sum up the runs.

    Args:
        runs: from `creditlib.analysis.runs.find_runs`.
        window: trailing means are over this many steps.
        responses: at most this many responses from the ledgers.
    """
    groups = group_runs(runs)
    ledgers, notes = read_ledgers(groups)
    return Contents(
        groups=tuple(groups),
        window=window,
        sections=sections(groups, window),
        outcomes=tuple(outcomes(groups)),
        responses=tuple(choose_responses(ledgers, responses)),
        relevance=tuple(_relevance(ledgers)),
        notes=tuple(notes),
    )


def _relevance(ledgers: Sequence[RunLedger]) -> Iterator[Relevance]:
    cases: dict[int, list[Case]] = {}
    for ledger in ledgers:
        own = read_cases(ledger.tokens, ledger.responses)
        name = str(ledger.run.folder)  # two runs may have logged the same response of the same prompt
        cases.setdefault(ledger.group, []).extend(
            replace(case, response=(name, case.response)) for case in own
        )
    for group, found in cases.items():
        if found:
            located, held, parts = localization(found), concentration(found), by_part(found)
            yield Relevance(group, tuple(located), tuple(held), tuple(parts))
