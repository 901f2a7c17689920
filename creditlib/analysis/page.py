"""The report as one HTML file that needs nothing else: data, style and script are inside."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Sequence
from importlib import resources
from itertools import groupby
from string import Template
from typing import Any

import numpy as np
from numpy.typing import NDArray

from creditlib.analysis.charts import OUTCOMES, REWARD, Chart, Series, station_seconds
from creditlib.analysis.contents import Contents, Relevance
from creditlib.analysis.curves import curve, thin
from creditlib.analysis.evaluations import Outcome
from creditlib.analysis.responses import Response
from creditlib.analysis.runs import Group, Run

POINTS = 300  # of a curve: more than a chart has pixels to tell apart
SCRIPTS = ("dom.js", "charts.js", "tables.js", "credit.js", "main.js")  # each uses those before it


def render(contents: Contents, made: str) -> str:
    """The page as text; `made` says by what and when.

    Whatever a model wrote is data there, never markup: it stands in a JSON block without any ``<``, is shown
    as text nodes, and the page's policy lets no script run but its own.
    """
    script = "\n".join(_asset(name) for name in SCRIPTS)
    style = _asset("page.css")
    data = json.dumps(page_data(contents, made), separators=(",", ":"), allow_nan=False)
    policy = f"default-src 'none'; style-src {_source(style)}; script-src {_source(script)}"
    return Template(_asset("page.html")).substitute(
        title="creditlib report", policy=policy, style=style, script=script, data=data.replace("<", "\\u003c")
    )


def page_data(contents: Contents, made: str) -> dict[str, Any]:
    """What the page's script draws, as plain values; NaN is null."""
    groups = contents.groups
    runs = sum(len(group.runs) for group in groups)
    what = f", {len(groups)} curves" if len(groups) > 1 else f" of {groups[0].label}"
    rewards = next(own.charts for own in contents.sections if own.name == "rewards")
    return {
        "title": f"{runs} run{'s' * (runs != 1)}{what}",
        "made": made,
        "window": contents.window,
        "notes": contents.notes,
        "groups": [_group(group, index, rewards) for index, group in enumerate(groups)],
        "sections": [
            {"name": own.name, "charts": [_chart(chart) for chart in own.charts]} for own in contents.sections
        ],
        "evaluation": [_outcome(outcome) for outcome in contents.outcomes],
        "seconds": [station_seconds(group) for group in groups],
        "replays": _replays(groups, contents.window),
        "relevance": [_relevance(own) for own in contents.relevance],
        "responses": [_response(response) for response in contents.responses],
    }


def _group(group: Group, index: int, rewards: Sequence[Chart]) -> dict[str, Any]:
    last = {
        chart.title: _number(series.curve.last)
        for chart in rewards
        for series in chart.series
        if series.group == index
    }
    settings = group.runs[0].settings
    credit = [str(settings[key]) for key in ("credit.control", "credit.name") if settings.get(key)]
    return {
        "label": group.label,
        "seeds": group.seeds,
        "credit": " ".join(credit) or "this run",
        "rewards": last,
        "runs": [_run(run) for run in group.runs],
    }


def _run(run: Run) -> dict[str, Any]:
    return {
        "name": run.folder.name,
        "step": run.step,
        "steps": run.steps,
        "finished": run.finished,
        "resumed": run.resumed_from,
        "written": f"{run.written:%Y-%m-%d %H:%M}" if run.written else None,
        "notes": run.notes,
    }


def _chart(chart: Chart) -> dict[str, Any]:
    return {
        "title": chart.title,
        "meaning": chart.meaning,
        "bounds": chart.bounds,
        "series": [_series(series) for series in chart.series],
    }


def _series(series: Series) -> dict[str, Any]:
    arrays = vars(thin(series.curve, POINTS)).items()
    columns = {
        name.removesuffix("_S"): [_number(value) for value in array.tolist()] for name, array in arrays
    }
    return {"group": series.group, "role": series.role, **columns}


def _outcome(outcome: Outcome) -> dict[str, Any]:
    intervals = {"before": outcome.before, "after": outcome.after, "change": outcome.change}
    plain = {name: interval and _row(interval) for name, interval in intervals.items()}
    runs = [[_number(before), _number(after)] for before, after in outcome.runs]
    return {**vars(outcome), **plain, "runs": runs}


def _replays(groups: Sequence[Group], window: int) -> list[dict[str, Any]]:
    """What became of each reward lately, where a strategy replays: distance, floor, shares of responses."""
    rows = []
    for index, group in enumerate(groups):
        metrics = dict.fromkeys(key for run in group.runs for row in run.train for key in row)
        for reward in [key.removeprefix(REWARD) for key in metrics if key.startswith(REWARD)]:
            if f"credit/{OUTCOMES[0]}/{reward}" not in metrics:
                continue
            row: dict[str, Any] = {"group": index, "reward": reward}
            for name in ("distance", *OUTCOMES):
                row[name] = _last(group, f"credit/{name}/{reward}", window)
            rows.append(row | {"floor": _last(group, "credit/floor", window)})
    return rows


def _last(group: Group, metric: str, window: int) -> float | None:
    found = curve(group, metric, window)
    return None if found is None else _number(found.last)


def _relevance(own: Relevance) -> dict[str, Any]:
    return {
        "group": own.group,
        "located": [_row(row) for row in own.located],
        "held": [
            {**_row(row), "top": [[size, _number(share)] for size, share in row.top.items()]}
            for row in own.held
        ],
        "parts": [_row(row) for row in own.parts],
    }


def _row(row: object) -> dict[str, Any]:
    """The fields of a dataclass."""
    return {name: _number(value) if isinstance(value, float) else value for name, value in vars(row).items()}


def _response(response: Response) -> dict[str, Any]:
    numbers = [response.logp_T, response.advantage_T]
    for own in response.rewards:
        numbers += [own.relevance_T, own.weight_T, own.advantage_T]
    pairs = enumerate(zip(response.tokens, response.pieces, strict=True))
    return {
        "group": response.group,
        "run": response.run.folder.name,
        "step": response.step,
        "prompt": response.prompt,
        "index": response.index,
        "question": response.question,
        "finish": response.finish,
        "pieces": response.pieces,
        "tokens": {t: token for t, (token, piece) in pairs if token != piece},
        "parts": response.parts,
        "advantage": response.advantage,
        "numbers": base64.b64encode(np.stack(numbers).astype("<f4").tobytes()).decode("ascii"),
        "rewards": [
            {
                "name": own.name,
                "kind": own.kind,
                "score": own.score,
                "best": own.best,
                "advantage": own.advantage,
                "reason": own.reason,
                "information": own.information,
                "measure": own.measure,
                "temperature": own.temperature,
                "flags": own.flags,
                "read": None if own.read_T is None else _ranges(own.read_T),
            }
            for own in response.rewards
        ],
    }


def _ranges(mask_T: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Where the mask is true, as pairs of first and one past the last."""
    ranges = []
    for value, run in groupby(enumerate(mask_T.tolist()), key=lambda pair: pair[1]):
        places = [place for place, _ in run]
        if value:
            ranges.append((places[0], places[-1] + 1))
    return ranges


def _number(value: float | None) -> float | None:
    """As JSON can hold it; five digits are more than a chart shows."""
    if value is None or not math.isfinite(value):
        return None
    return value if isinstance(value, int) else float(f"{value:.5g}")


def _asset(name: str) -> str:
    return resources.files("creditlib.analysis").joinpath("web", name).read_text(encoding="utf-8")


def _source(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
