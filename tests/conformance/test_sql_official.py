"""Our verdicts against the official scripts', frozen in sql_verdicts.json, on Spider's dev set.

The official verdicts come from the public code (sql_mutations.py tells how); every disagreement is named in
`DISAGREEMENTS` and explained in docs/verifiers/sql.md. None is known: on these queries the rules coincide.
"""

from __future__ import annotations

import json
import os
import runpy
from pathlib import Path
from typing import Any

import pytest

from verifiers.sql import Job, SqlVerifier

HERE = Path(__file__).parent
RULES: dict[str, dict[str, Any]] = {  # in the order of the digits of a frozen verdict
    "test-suite, DISTINCT kept": {"mode": "spider"},
    "test-suite, DISTINCT removed": {"mode": "spider", "keep_distinct": False},
    "BIRD": {"mode": "bird"},
}
DISAGREEMENTS: dict[str, dict[int, str]] = {rule: {} for rule in RULES}  # index of the gold -> why


@pytest.fixture(scope="module")
def spider() -> Path:
    folder = os.environ.get("CREDITLIB_DATA")
    if not folder:
        pytest.skip("CREDITLIB_DATA is not set: the folder above text2sql/spider")
    return Path(folder) / "text2sql" / "spider"


@pytest.fixture(scope="module")
def frozen() -> Any:
    return json.loads((HERE / "sql_verdicts.json").read_text())


@pytest.mark.parametrize("rule", RULES)
def test_verdicts_are_the_official_ones(rule: str, spider: Path, frozen: Any) -> None:
    mutations = runpy.run_path(str(HERE / "sql_mutations.py"))
    examples = json.loads((spider / "dev.json").read_text())

    def job(index: int, query: str) -> Job:
        name = examples[index]["db_id"]
        path = spider / "database" / name / f"{name}.sqlite"
        return Job(f"<sql>{query}</sql>", str(path), examples[index]["query"])

    golds = [job(index, example["query"]) for index, example in enumerate(examples)]
    indices, variants, expected = [], [], []
    for line in frozen["mutations"]:
        index, kind, checksum, verdicts = line.split()
        query = mutations["mutate"](examples[int(index)]["query"], kind, int(index))
        assert mutations["checksum"](query) == checksum, "the mutator or the data is not what was frozen"
        indices.append(int(index))
        variants.append(job(int(index), query))
        expected.append(int(verdicts[list(RULES).index(rule)]))

    with SqlVerifier(**RULES[rule]) as verifier:
        assert frozen["golds"] == {"count": len(golds), "not 111": {}}
        assert all(checks["execution"].score == 1 for checks in verifier.check_many(golds))
        found = [checks["execution"].score for checks in verifier.check_many(variants)]
    different = {i for i, ours, theirs in zip(indices, found, expected, strict=True) if ours != theirs}
    assert len(found) == 1000
    assert different == set(DISAGREEMENTS[rule])
    assert 200 < sum(expected) < 800  # the sample tells right from wrong


def test_every_training_gold_passes(spider: Path) -> None:
    """Limits, the authorizer and strict identifiers reject none of Spider's own queries."""
    examples = json.loads((spider / "train_spider.json").read_text())
    jobs = [
        Job(
            f"<sql>{example['query']}</sql>",
            str(spider / "database" / example["db_id"] / f"{example['db_id']}.sqlite"),
            example["query"],
        )
        for example in examples
    ]
    with SqlVerifier() as verifier:
        wrong = [
            job.gold
            for job, checks in zip(jobs, verifier.check_many(jobs), strict=True)
            if any(check.score != 1 for check in checks.values())
        ]
    assert wrong == []
