"""The report's figures for papers: PNG files with reward curves, held-out results and localization."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from creditlib.analysis.charts import Chart
from creditlib.analysis.contents import Contents
from creditlib.analysis.evaluations import Outcome
from creditlib.analysis.runs import Group
from creditlib.types import CreditlibError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The colours and dashes of the page's curves, in light.
COLOURS = ("#332288", "#b0446a", "#1f7f71", "#7a7a1c", "#882255", "#4d6f92", "#5b5b5b")
DASHES: tuple[Any, ...] = (
    "-",
    (0, (7, 3)),
    (0, (2, 3)),
    (0, (9, 3, 2, 3)),
    (0, (4, 2)),
    (0, (12, 4)),
    (0, (1, 2)),
)
DPI = 300
ACROSS = 3  # panels in a row
PANEL = (2.3, 1.75)  # inches
RATIOS = [2.0**power for power in range(-4, 8)]  # ticks of a logarithmic axis
STYLE: Any = {
    "text.parse_math": False,  # names may hold a $
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.titlesize": 8,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
}


def require_matplotlib() -> None:
    """Raise where it is not installed."""
    if importlib.util.find_spec("matplotlib") is None:
        raise CreditlibError(
            "--figures draws with matplotlib, which is not installed: pip install 'creditlib[report]'"
        )


def save_figures(contents: Contents, folder: Path) -> list[Path]:
    """Draw what the runs have data for; the files that were written.

    Raises:
        CreditlibError: matplotlib is not installed, or `folder` cannot be written.
    """
    require_matplotlib()
    import matplotlib

    with matplotlib.rc_context(STYLE):
        rewards = next(section.charts for section in contents.sections if section.name == "rewards")
        figures = {
            "rewards": _rewards(rewards, contents.groups),
            "evaluation": _evaluation(contents.outcomes, contents.groups),
            "localization": _localization(contents),
        }
        written = []
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name, figure in figures.items():
                if figure is not None:
                    written.append(folder / f"{name}.png")
                    figure.savefig(written[-1], dpi=DPI)
        except OSError as error:
            raise CreditlibError(f"--figures {folder}: cannot write there ({error.strerror})") from error
    return written


def _rewards(charts: Sequence[Chart], groups: Sequence[Group]) -> Figure | None:
    """A panel a reward: mean of the seeds' trailing means, with their range."""
    if not charts:
        return None
    figure, panels = _panels(len(charts))
    for chart, axes in zip(charts, panels, strict=True):
        for series in chart.series:
            curve, look = series.curve, _look(series.group)
            axes.plot(curve.steps_S, curve.mean_S, label=groups[series.group].label, **look)
            axes.fill_between(
                curve.steps_S, curve.low_S, curve.high_S, color=look["color"], alpha=0.15, linewidth=0
            )
        axes.set_title(chart.title, loc="left")
        low, high = chart.bounds
        axes.set_ylim(low, None if high is None else high * 1.02)
    for axes in panels[-ACROSS:]:  # the lowest of each column
        axes.set_xlabel("step")
    _legend(figure, panels[0])
    return figure


def _evaluation(outcomes: Sequence[Outcome], groups: Sequence[Group]) -> Figure | None:
    """A panel a split, decoding and scale: before (hollow), after (solid), with intervals over questions."""
    kinds = list(dict.fromkeys((outcome.split, outcome.mode) for outcome in outcomes))
    if not kinds:
        return None
    scales = _scales(outcomes)
    most = max(map(len, scales))
    cells = [(split, mode, rewards) for split, mode in kinds for rewards in scales]
    figure, panels = _panels(len(cells), height=0.5 + 0.22 * most * len(groups))
    first: dict[str, Axes] = {}  # panel of each scale
    for (split, mode, rewards), axes in zip(cells, panels, strict=True):
        for outcome in outcomes:
            if (outcome.split, outcome.mode) != (split, mode) or outcome.reward not in rewards:
                continue
            colour = _look(outcome.group)["color"]
            row = rewards.index(outcome.reward) * (len(groups) + 0.7) + outcome.group
            for interval, shift, face in ((outcome.before, -0.14, "white"), (outcome.after, 0.14, colour)):
                if interval is not None:
                    axes.plot([interval.low, interval.high], [row + shift] * 2, color=colour, linewidth=0.9)
                    axes.plot(
                        interval.mean, row + shift, "o", color=colour, markerfacecolor=face, markersize=3.5
                    )
        middle = (len(groups) - 1) / 2
        axes.set_yticks([k * (len(groups) + 0.7) + middle for k in range(len(rewards))], rewards)
        axes.invert_yaxis()
        axes.set_title(f"{split}, {mode}", loc="left")
        axes.sharex(first.setdefault(rewards[0], axes))
    figure.supxlabel("mean over held-out questions; hollow: before training", fontsize=STYLE["font.size"])
    if len(groups) > 1:
        for index, group in enumerate(groups):
            panels[0].plot([], [], "o", color=_look(index)["color"], markersize=3.5, label=group.label)
    _legend(figure, panels[0])
    return figure


def _scales(outcomes: Sequence[Outcome]) -> list[list[str]]:
    """Rewards that share an axis: those between 0 and 1, and every other one alone."""
    wide = {
        outcome.reward
        for outcome in outcomes
        for own in (outcome.before, outcome.after)
        if own is not None and (own.low < 0 or own.high > 1)
    }
    rewards = list(dict.fromkeys(outcome.reward for outcome in outcomes))
    shares = [reward for reward in rewards if reward not in wide]
    return [*([shares] if shares else []), *([reward] for reward in rewards if reward in wide)]


def _localization(contents: Contents) -> Figure | None:
    """A panel a curve: ratio of the distance to the tokens that the verifier read, 1 = even."""
    found = [own for own in contents.relevance if any(not math.isnan(row.ratio) for row in own.located)]
    if not found:
        return None
    kinds = list(dict.fromkeys(row.kind for own in found for row in own.located))
    figure, panels = _panels(len(found), height=0.5 + 0.5 * len(kinds))
    places = {"satisfied": (-0.25, "^"), "violated": (0.0, "v"), "pooled": (0.25, "o")}
    for own, axes in zip(found, panels, strict=True):
        colour = _look(own.group)["color"]
        axes.axvline(1, color="black", linewidth=0.6)
        for outcome, (shift, marker) in places.items():
            rows = [row for row in own.located if row.outcome == outcome and not math.isnan(row.ratio)]
            at = [kinds.index(row.kind) + shift for row in rows]
            axes.hlines(
                at, [row.low for row in rows], [row.high for row in rows], color=colour, linewidth=0.9
            )
            face = colour if outcome == "pooled" else "white"
            ratios = [row.ratio for row in rows]
            axes.plot(ratios, at, marker, color=colour, markerfacecolor=face, markersize=4, label=outcome)
        axes.set_xscale("log", base=2)
        low, high = axes.get_xlim()
        low, high = min(low, 0.45), max(high, 2.2)
        axes.set_xticks([tick for tick in RATIOS if low <= tick <= high])
        axes.set_xlim(low, high)
        axes.xaxis.set_major_formatter("{x:g}")
        axes.minorticks_off()
        axes.set_yticks(range(len(kinds)), kinds)
        axes.set_ylim(len(kinds) - 0.5, -0.5)
        axes.set_title(contents.groups[own.group].label, loc="left")
    figure.supxlabel("share of distance / share of tokens", fontsize=STYLE["font.size"])
    _legend(figure, panels[0])
    return figure


def _panels(count: int, height: float = PANEL[1]) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure

    across = min(count, ACROSS)
    down = math.ceil(count / ACROSS)
    figure = Figure(figsize=(PANEL[0] * max(across, 1.6), height * down), layout="constrained")
    return figure, [figure.add_subplot(down, across, index + 1) for index in range(count)]


def _look(group: int) -> dict[str, Any]:
    return {
        "color": COLOURS[group % len(COLOURS)],
        "linestyle": DASHES[(group + group // len(COLOURS)) % len(DASHES)],
    }


def _legend(figure: Figure, axes: Axes) -> None:
    """One for the whole figure, above the panels, where there is more than one thing to tell apart."""
    handles, labels = axes.get_legend_handles_labels()
    if len(labels) > 1:
        figure.legend(handles, labels, loc="outside upper left", ncols=min(len(labels), 4))
