"""Run folders as a training run writes them, made in a moment, with numbers that a test can foresee."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet

from creditlib.credit.mrtpo import OUTCOMES

REWARDS = ("format", "executable", "execution")
KEYWORDS = {
    "SELECT",
    "FROM",
    "WHERE",
    "JOIN",
    "ON",
    "GROUP",
    "BY",
    "ORDER",
    "LIMIT",
    "AND",
    "count",
    "avg",
    "DESC",
}
QUESTION = (
    "Write one SQLite query that answers the question.\n\n"
    "CREATE TABLE singer (\n  singer_id number, name text, country text, age number\n)\n"
    "CREATE TABLE concert (\n  concert_id number, venue text, year number, singer_id number\n)\n\n{}"
)
JOIN = "SELECT singer.name FROM singer JOIN concert ON singer.singer_id = concert.singer_id"
EXAMPLES = (
    (
        "How many singers older than 30 come from France?",
        "<sql>SELECT count(*) FROM singer WHERE country = 'France' AND age > 30</sql>",
        (1, 1, 1),
    ),
    (
        "Names of singers who gave a concert after 2014?",
        f"<sql>{JOIN} WHERE concert.year >= 2014</sql>",
        (1, 1, 0),
    ),
    (
        "What is the telephone number of each singer?",
        "<sql>SELECT name, telefone FROM singer</sql>",
        (1, 0, 0),
    ),
    (
        "Average age of singers by country, the oldest first?",
        "SELECT country, avg(age) FROM singer GROUP BY country ORDER BY avg(age) DESC",
        (0, 0, 0),
    ),
)
REASONS = {
    ("format", 1): "one query between the tags", ("format", 0): "no <sql> tag",
    ("executable", 1): "runs", ("executable", 0): "no such column: telefone",
    ("execution", 1): "same rows as the reference", ("execution", 0): "3 rows, the reference has 2",
}  # fmt: skip


def config(**changes: Any) -> dict[str, Any]:
    """A run's configuration; changes are dotted keys with ``__`` for the dot."""
    plain: dict[str, Any] = {
        "seed": 0,
        "task": {"_target_": "tasks.text2sql.Text2SQL", "name": "text2sql"},
        "credit": {"name": "uniform"},
        "advantage": {"name": "gdpo"},
        "trainer": {"steps": 40, "checkpoint_every": 25},
        "run": {"dir": "runs/x"},
    }
    for key, value in changes.items():
        section = plain
        *sections, last = key.split("__")
        for name in sections:
            section = section.setdefault(name, {})
        section[last] = value
    return plain


def metrics(
    steps: int, *, seed: int = 0, mrtpo: bool = False, rewards: Sequence[str] = REWARDS
) -> list[dict[str, Any]]:
    """Lines of training that get better with the steps, MRTPO's sooner."""
    random = np.random.default_rng([seed, mrtpo])
    lines = []
    for step in range(1, steps + 1):
        line: dict[str, Any] = {"step": step, "phase": "train"}
        for k, reward in enumerate(rewards):
            pace = (26 if mrtpo else 40) * (0.5 + 0.5 * k)
            level = (0.95 - 0.12 * (k % 4)) * (1 - np.exp(-(step + 8) / pace))
            line[f"reward/{reward}"] = float(np.clip(level + random.normal(0, 0.035), 0, 1))
            line[f"zero_spread/{reward}"] = float(np.clip(level**2 + random.normal(0, 0.03), 0, 1))
        line |= {
            "response/tokens": 34 + 6 * float(np.exp(-step / 15)) + random.normal(0, 0.5),
            "response/truncated": max(0.0, random.normal(0.02, 0.01)),
            "credit/ess": 0.55 + 0.1 * step / steps + random.normal(0, 0.01) if mrtpo else 1.0,
            "credit/max_weight": 6 + random.normal(0, 0.3) if mrtpo else 1.0,
            "advantage/std": 1 + random.normal(0, 0.02),
            "grad_norm": 0.4 + random.normal(0, 0.03),
            "loss/entropy": 0.5 * float(np.exp(-step / 30)) + random.normal(0, 0.01),
            "loss/approx_kl": 1e-4 * random.random(),
            "skipped": 0.0,
            "seconds/rollout": 2.9 + random.normal(0, 0.1),
            "seconds/verify": 0.05,
            "seconds/score": 1.4,
            "seconds/credit": 1.1 if mrtpo else 0.01,
            "seconds/update": 4.3 + random.normal(0, 0.1),
        }
        if mrtpo:
            line["credit/floor"] = 8e-5 * (1 + 0.1 * random.random())
            for k, reward in enumerate(rewards):
                line[f"credit/distance/{reward}"] = (0.008, 0.009, 0.025)[k % 3] * float(
                    np.exp(random.normal(0, 0.1))
                )
                line |= {f"credit/{outcome}/{reward}": 0.0 for outcome in OUTCOMES}
                line[f"credit/below_floor/{reward}"] = 0.1 * k / len(rewards)
                line[f"credit/by_relevance/{reward}"] = 0.7 - 0.1 * k / len(rewards)
                line[f"credit/no_advantage/{reward}"] = 0.3
        lines.append(line)
    return lines


def write_run(
    folder: Path,
    settings: Mapping[str, Any],
    lines: Sequence[Mapping[str, Any]],
    *,
    finished: bool = True,
    evaluations: Sequence[int] = (0, 40),
    splits: Sequence[str] = ("held_out",),
    modes: Sequence[str] = ("greedy",),
    rewards: Sequence[str] = REWARDS,
) -> Path:
    """A run's folder without a ledger."""
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(json.dumps(settings))
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    summary = {"finished": finished, "step": lines[-1]["step"] if lines else 0, "resumed_from": []}
    (folder / "summary.json").write_text(json.dumps(summary))
    (folder / "evaluations").mkdir()
    for step in evaluations:
        random = np.random.default_rng([settings["seed"], step])
        rows = []
        for split, mode, question in product(splits, modes, range(60)):
            chances = {reward: 0.37 + 0.01 * step - 0.04 * k for k, reward in enumerate(rewards)}
            scores = {reward: float(random.random() < chance) for reward, chance in chances.items()}
            row = {"split": split, "mode": mode, "prompt": f"{split}/{question}", "rewards": scores}
            rows.append({**row, "tokens": 30.0, "texts": ["..."]})
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / "evaluations" / f"step-{step:06d}.jsonl").write_text(text)
    return folder


def write_ledger(
    folder: Path, responses: Sequence[tuple[Mapping[str, Any], Mapping[str, Sequence[Any]]]]
) -> None:
    """tokens.parquet and responses.jsonl of responses given as (line, columns)."""
    names = list(responses[0][1])
    table = {name: [value for _, columns in responses for value in columns[name]] for name in names}
    arrays = {name: pyarrow.array(values, _kind(name)) for name, values in table.items()}
    pyarrow.parquet.write_table(pyarrow.table(arrays), folder / "tokens.parquet")
    (folder / "responses.jsonl").write_text("".join(json.dumps(line) + "\n" for line, _ in responses))


def response(
    text: str,
    rewards: Mapping[str, tuple[float | None, float, str]],
    *,
    step: int = 1,
    prompt: str = "q",
    index: int = 0,
    question: str = "?",
    seed: int = 0,
    even: bool = False,
) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """A response whose tokens are its words and signs. `rewards`: name -> (score, advantage, reason).

    Distances are larger on the tags for the first reward and on random words for the others; weights mix them
    half and half with even ones.
    """
    random = np.random.default_rng([seed, step, index])
    ends = [match.end() for match in re.finditer(r"</?sql>|\s*\w+|\s*[^\w\s]+|\s+", text)]
    starts = [0, *ends[:-1]]
    tokens = [text[start:end] for start, end in zip(starts, ends, strict=True)] + ["<|end|>"]
    starts, ends = [*starts, len(text)], [*ends, len(text)]
    length = len(tokens)
    columns: dict[str, list[Any]] = {
        "step": [step] * length,
        "prompt": [prompt] * length,
        "response": [index] * length,
        "position": list(range(length)),
        "token_id": [len(token) for token in tokens],
        "token": tokens,
        "start": starts,
        "end": ends,
        "logp": (-random.exponential(0.3, length)).tolist(),
    }
    parts = [_part(token) for token in tokens]
    line_rewards: dict[str, Any] = {}
    total = np.zeros(length)
    for k, (name, (score, advantage, reason)) in enumerate(rewards.items()):
        tags = np.asarray([part == "tag" for part in parts])
        peaks = tags if k == 0 else (random.random(length) < 0.15) & ~tags
        distance = random.gamma(1.0, 0.002, length) + peaks * random.gamma(4.0, 0.02, length)
        weight = np.ones(length) if even else 0.5 + 0.5 * length * distance / distance.sum()
        spans = [
            [start, end, part]
            for start, end, part in zip(starts, ends, parts, strict=True)
            if end > start and ((part == "tag") == (k == 0))
        ]
        columns |= {
            f"relevance/{name}": (np.full(length, np.nan) if even else distance).tolist(),
            f"weight/{name}": weight.tolist(),
            f"advantage/{name}": (advantage * weight).tolist(),
            f"read/{name}": [((part == "tag") == (k == 0)) if spans else None for part in parts],
        }
        total += advantage * weight
        line_rewards[name] = {
            "kind": name,
            "score": score,
            "best": 1.0,
            "advantage": advantage,
            "reason": reason,
            "information": f"what is known of {name}",
            "flags": [],
            "spans": spans,
            "measure": "" if even else "distance",
        }
    columns |= {"advantage": total.tolist(), "part": parts}
    line = {
        "step": step,
        "prompt": prompt,
        "response": index,
        "question": question,
        "text": text,
        "finish": "stop",
        "rewards": line_rewards,
        "advantage": sum(own[1] for own in rewards.values()),
        "offset": 0.0,
    }
    return line, columns


def sql_responses(steps: Sequence[int], *, seed: int = 0, even: bool = False) -> list[Any]:
    """The examples above at each of the steps, with advantages of both signs."""
    made = []
    for step in steps:
        random = np.random.default_rng([seed, step])
        for index, (question, text, scores) in enumerate(EXAMPLES):
            rewards = {
                name: (
                    float(score),
                    float((1 if score else -1) * (0.3 + random.random())),
                    REASONS[name, score],
                )
                for name, score in zip(REWARDS, scores, strict=True)
            }
            made.append(
                response(text, rewards, step=step, prompt=f"text2sql/train/{index}", index=index % 8,
                         question=QUESTION.format(question), seed=seed, even=even)
            )  # fmt: skip
    return made


def _part(token: str) -> str:
    word = token.strip()
    if word in {"<sql>", "</sql>"}:
        return "tag"
    if word in KEYWORDS:
        return "keyword"
    if word in {"singer", "concert"}:
        return "table"
    if re.fullmatch(r"\d+|'.*|France", word):
        return "value"
    if re.fullmatch(r"\w+", word):
        return "column"
    return "operator" if word and not word.startswith("<|") else ""


def _kind(name: str) -> pyarrow.DataType:
    if name in {"prompt", "token", "part"}:
        return pyarrow.string()
    if name in {"step", "response", "position", "token_id", "start", "end"}:
        return pyarrow.int32()
    return pyarrow.bool_() if name.startswith("read/") else pyarrow.float32()
