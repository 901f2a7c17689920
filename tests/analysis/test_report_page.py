"""The command, the responses it chooses, and a page that nothing a model writes can break."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest

from creditlib import report
from creditlib.analysis.charts import OUTCOMES
from creditlib.analysis.contents import Contents, gather
from creditlib.analysis.page import page_data, render
from creditlib.analysis.responses import choose_responses, read_ledgers
from creditlib.analysis.runs import find_runs, group_runs
from tests.analysis import fake

MADE = "creditlib 1, 2026-11-30"
ONE = {"format": (1.0, 0.5, "right")}


def run_with(folder: Path, responses: list[Any], **changes: Any) -> Path:
    run = fake.write_run(folder, fake.config(**changes), fake.metrics(3), evaluations=())
    fake.write_ledger(run, responses)
    return run


def contents_of(*runs: Path, window: int = 10, responses: int = 50) -> Contents:
    return gather(find_runs(runs)[0], window=window, responses=responses)


def data_in(page: str) -> Any:
    block = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert block
    return json.loads(block[1])


def test_the_command_writes_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = run_with(tmp_path / "run", fake.sql_responses((1,)))
    (tmp_path / "notes.txt").write_text("")
    page = tmp_path / "made" / "page.html"
    assert report.main([str(run), str(tmp_path / "notes.txt"), "--out", str(page), "--window", "2"]) == 0
    out, err = capsys.readouterr()
    assert out == f"the report is in {page}\n"
    assert err == f"{tmp_path / 'notes.txt'} is not a run's folder and is left out\n"
    assert data_in(page.read_text())["window"] == 2


def test_the_command_runs_without_torch(tmp_path: Path) -> None:
    run = run_with(tmp_path / "run", fake.sql_responses((1,)))
    code = f"""
import sys
from creditlib.report import main
assert main([{str(run)!r}]) == 0
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, timeout=60)
    assert (tmp_path / "report.html").is_file()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["runs/*"], "runs/*: no such folder; give the folders of runs, as in runs/*"),
        (
            ["nothing"],
            "no run in nothing: a run is a folder with config.yaml or metrics.jsonl",
        ),
        (["run", "--out", "run/config.yaml/x.html"], "--out run/config.yaml/x.html: cannot make its folder"),
        (["run", "--out", "run"], "cannot write run: Is a directory"),
    ],
)
def test_errors_are_one_clear_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    if "run" in arguments:
        fake.write_run(Path("run"), fake.config(), fake.metrics(1), evaluations=())
    Path("nothing").mkdir()
    assert report.main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: {message}")
    assert error.count("\n") == 1


@pytest.mark.parametrize("option", ["--window", "--responses"])
@pytest.mark.parametrize("value", ["0", "-1", "ten"])
def test_numbers_are_checked(option: str, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        report.main(["run", f"{option}={value}"])
    assert f"expected a whole number of at least 1, found '{value}'" in capsys.readouterr().err


def test_a_run_at_any_moment_makes_a_page(tmp_path: Path) -> None:
    started = fake.write_run(tmp_path / "started", fake.config(), [], finished=False, evaluations=())
    (started / "summary.json").unlink()
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "metrics.jsonl").write_text('{"step": 1, "phase": "train", "reward/x": null}\n{"step": 2, "ph')
    data = data_in(render(contents_of(started, bare), MADE))
    states = {
        run["name"]: (run["step"], run["finished"]) for group in data["groups"] for run in group["runs"]
    }
    assert states == {"started": (0, False), "bare": (1, False)}
    assert (data["responses"], data["relevance"], data["evaluation"]) == ([], [], [])


def test_a_ledger_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    run = run_with(tmp_path / "run", fake.sql_responses((1,)))
    (run / "tokens.parquet").write_bytes(b"PAR1")
    contents = contents_of(run)
    assert contents.responses == ()
    assert "tokens.parquet cannot be read" in contents.notes[0]


def test_responses_in_one_file_alone_are_left_out(tmp_path: Path) -> None:
    run = run_with(tmp_path / "run", fake.sql_responses((1, 2)))
    lines = (run / "responses.jsonl").read_text().splitlines(keepends=True)
    (run / "responses.jsonl").write_text("".join(lines[:4]))  # step 2 is not there yet
    assert {response.step for response in contents_of(run).responses} == {1}


def test_responses_are_shared_among_runs_and_steps(tmp_path: Path) -> None:
    steps = (1, 5, 9, 13, 17)
    small = run_with(tmp_path / "small", fake.sql_responses((3,)), seed=1)
    large = run_with(tmp_path / "large", fake.sql_responses(steps), seed=0)
    ledgers, _ = read_ledgers(group_runs(find_runs([large, small])[0]))

    def chosen(limit: int) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {"large": [], "small": []}
        for response in choose_responses(ledgers, limit):
            found[response.run.folder.name].append(response.step)
        return found

    assert chosen(6) == {"large": [1, 9, 17], "small": [3, 3, 3]}
    assert chosen(11) == {"large": [1, 1, 5, 9, 13, 17, 17], "small": [3] * 4}
    assert chosen(100) == {"large": sorted(steps * 4), "small": [3] * 4}
    assert chosen(1) == {"large": [1], "small": []}


def test_of_a_step_the_response_comes_first_whose_credit_moved_most(tmp_path: Path) -> None:
    quiet = fake.response("a b c d", {"x": (1.0, 0.1, "")}, index=0)
    loud = fake.response("a b c d", {"x": (0.0, -3.0, "")}, index=1)
    even = fake.response("a b c d", {"x": (0.0, -9.0, "")}, index=2, even=True)
    run = run_with(tmp_path / "run", [quiet, loud, even])
    assert [response.index for response in contents_of(run, responses=1).responses] == [1]
    assert [response.index for response in contents_of(run, responses=2).responses] == [0, 1]


def test_the_page_holds_the_ledgers_numbers(tmp_path: Path) -> None:
    run = run_with(tmp_path / "run", fake.sql_responses((1,)))
    table = pyarrow.parquet.read_table(run / "tokens.parquet").to_pandas()
    data = data_in(render(contents_of(run), MADE))
    assert len(data["responses"]) == len(fake.EXAMPLES)
    for response in data["responses"]:
        rows = table[(table.prompt == response["prompt"]) & (table.response == response["index"])]
        numbers = np.frombuffer(base64.b64decode(response["numbers"]), "<f4").reshape(-1, len(rows))
        columns = ["logp", "advantage"]
        for name in fake.REWARDS:
            columns += [f"relevance/{name}", f"weight/{name}", f"advantage/{name}"]
        assert np.array_equal(numbers, rows[columns].to_numpy().T.astype(np.float32), equal_nan=True)
        pieces = [response["tokens"].get(str(t), piece) for t, piece in enumerate(response["pieces"])]
        assert pieces == rows.token.tolist()
        for reward in response["rewards"]:
            wanted = rows[f"read/{reward['name']}"].tolist()
            read = [False if reward["read"] is not None else None] * len(rows)
            for start, end in reward["read"] or ():
                read[start:end] = [True] * (end - start)
            assert read == wanted


def test_a_token_that_shares_a_character_adds_no_text(tmp_path: Path) -> None:
    line, columns = fake.response("abc", ONE)
    line["text"] = "a\N{GRINNING FACE}!"
    columns = {name: (values * 6)[:6] for name, values in columns.items()}
    columns |= {"position": [0, 1, 2, 3, 4, 5], "token": ["a", "\ufffd", "\ufffd", "\ufffd", "!", "<|end|>"]}
    columns |= {"start": [0, 1, 1, 1, 2, 3], "end": [1, 2, 2, 2, 3, 3], "read/format": [None] * 6}
    run = run_with(tmp_path / "run", [(line, columns)])
    (response,) = contents_of(run).responses
    assert response.pieces == ("a", "\N{GRINNING FACE}", "", "", "!", "")
    assert response.rewards[0].read_T is None


HOSTILE = '</script><script>alert(1)</script><!-- <img src=x onerror=alert(2)> & "q" \u2028 $data </style>'


def test_text_of_models_stays_data(tmp_path: Path) -> None:
    question = HOSTILE + "\ud800"  # half a character, as some tokenizers leave behind
    rewards = {HOSTILE: (1.0, 0.5, question)}
    run = run_with(tmp_path / "run", [fake.response(HOSTILE, rewards, prompt=HOSTILE, question=question)])
    page = render(contents_of(run), MADE)
    assert page.count("<script") == page.count("</script") == 2  # the data and the page's own script
    assert page.count("</style") == 1
    (response,) = data_in(page)["responses"]
    assert response["question"] == response["rewards"][0]["reason"] == question
    assert response["prompt"] == response["rewards"][0]["name"] == HOSTILE
    assert "".join(response["pieces"]) == HOSTILE
    page.encode()  # can be written


def test_the_policy_permits_the_pages_own_script_and_style_alone(tmp_path: Path) -> None:
    run = fake.write_run(tmp_path / "run", fake.config(), fake.metrics(1), evaluations=())
    page = render(contents_of(run), MADE)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy
    for tag, directive in (('script type="module"', "script-src"), ("style", "style-src")):
        text = page.partition(f"<{tag}>")[2].partition(f"</{tag.split()[0]}>")[0]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in policy[1]
    assert policy[1].startswith("default-src 'none'; ")
    assert not re.search(r"(src|href)=[\"']?(https?:)?//|url\(|@import|fetch\(|XMLHttp", page)


def test_nothing_that_is_not_finite_reaches_the_page(tmp_path: Path) -> None:
    lines = [{**line, "reward/format": float("nan"), "grad_norm": float("inf")} for line in fake.metrics(2)]
    run = fake.write_run(tmp_path / "run", fake.config(), lines, evaluations=())
    assert "NaN" not in json.dumps(page_data(contents_of(run), MADE))


def test_figures_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="figures need creditlib[report]")
    run = fake.write_run(tmp_path / "run", fake.config(), fake.metrics(3))
    fake.write_ledger(run, fake.sql_responses((1, 2)))
    other = fake.write_run(
        tmp_path / "other", fake.config(credit__name=r"$\foo$"), fake.metrics(3), evaluations=(0,)
    )
    folder = tmp_path / "figures"
    assert (
        report.main([str(run), str(other), "--out", str(tmp_path / "a.html"), "--figures", str(folder)]) == 0
    )
    files = sorted(folder.iterdir())
    assert [file.name for file in files] == ["evaluation.png", "localization.png", "rewards.png"]
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in files)


def test_figures_give_scores_beyond_0_and_1_a_panel_of_their_own() -> None:
    from creditlib.analysis.evaluations import Interval, Outcome
    from creditlib.analysis.figures import _scales

    def outcome(reward: str, low: float, high: float) -> Outcome:
        return Outcome(0, "s", "greedy", reward, 9, Interval((low + high) / 2, low, high), None, None, ())

    rows = [outcome("a", 0.1, 0.4), outcome("b", -3.0, 0.5), outcome("c", 0.0, 1.0), outcome("d", 0.5, 7.0)]
    assert _scales(rows) == [["a", "c"], ["b"], ["d"]]


def test_figures_have_the_pages_colours(tmp_path: Path) -> None:
    from creditlib.analysis import figures, page

    style = page._asset("page.css").partition("@media")[0]
    assert re.findall(r"--s\d: (#\w+)", style) == list(figures.COLOURS)


def test_without_matplotlib_a_message_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    run = fake.write_run(tmp_path / "run", fake.config(), fake.metrics(1), evaluations=())
    page = tmp_path / "a.html"
    assert report.main([str(run), "--out", str(page), "--figures", str(tmp_path / "figures")]) == 2
    assert "pip install 'creditlib[report]'" in capsys.readouterr().err
    assert not page.exists()


def test_what_became_of_each_reward(tmp_path: Path) -> None:
    replayed = fake.write_run(tmp_path / "a", fake.config(credit__name="mrtpo"), fake.metrics(5, mrtpo=True))
    plain = fake.write_run(tmp_path / "b", fake.config(), fake.metrics(5))
    rows = page_data(contents_of(replayed, plain, window=2), MADE)["replays"]
    assert [(row["group"], row["reward"]) for row in rows] == [(0, name) for name in fake.REWARDS]
    shares = {
        name: value for name, value in rows[1].items() if name not in ("group", "reward", "distance", "floor")
    }
    assert shares.keys() == set(OUTCOMES) and sum(shares.values()) == pytest.approx(1, abs=1e-4)
    assert rows[1]["by_relevance"] == pytest.approx(0.7 - 0.1 / 3, abs=1e-4)
    assert 0 < rows[1]["floor"] < rows[1]["distance"]


def test_ledgers_that_lack_something_are_left_out_and_told(tmp_path: Path) -> None:
    run = run_with(tmp_path / "run", fake.sql_responses((1,)))
    lines = (run / "responses.jsonl").read_text()
    broken = {**json.loads(lines.splitlines()[0]), "rewards": {"x": {}}}
    (run / "responses.jsonl").write_text("{}\n" + json.dumps(broken) + "\n" + lines)
    data = page_data(contents_of(run), MADE)
    assert len(data["responses"]) == len(lines.splitlines())
    assert any("2 lines lack something" in note for note in data["notes"])
    tokens = pyarrow.parquet.read_table(run / "tokens.parquet")
    pyarrow.parquet.write_table(tokens.drop_columns(["part"]), run / "tokens.parquet")
    data = page_data(contents_of(run), MADE)
    assert data["responses"] == []
    assert any("has no column part" in note for note in data["notes"])


def test_what_replays_told_reaches_the_page(tmp_path: Path) -> None:
    run = run_with(tmp_path / "run", fake.sql_responses((1,)))
    data = page_data(contents_of(run), MADE)
    told = {reward["name"]: reward["information"] for reward in data["responses"][0]["rewards"]}
    assert told == {name: f"what is known of {name}" for name in fake.REWARDS}
