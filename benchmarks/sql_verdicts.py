"""Verdicts a second of the SQL verifier: every Spider dev gold judged against itself.

    CREDITLIB_DATA=<data folder> python -m benchmarks.sql_verdicts [--workers 2] [--repeats 5]

`cold` includes starting the workers and running every gold; `warm` is the best of the repeats, with golds
cached, as in training after the first epoch. The queries of one batch are all different, since the verifier
runs equal ones once.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from benchmarks.verdicts import measure, options
from creditlib.types import MissingDataError
from verifiers.sql import Job, SqlVerifier


def spider_jobs(folder: Path) -> list[Job]:
    """One right response for each question of Spider's dev set."""
    try:
        examples = json.loads((folder / "dev.json").read_text())
    except OSError as error:
        raise MissingDataError(
            f"no Spider data: {error}; set CREDITLIB_DATA to the folder above text2sql/spider"
        ) from error
    jobs = []
    for i, example in enumerate(examples):
        database = folder / "database" / example["db_id"] / f"{example['db_id']}.sqlite"
        jobs.append(Job(f"<sql>{example['query']} -- {i}</sql>", str(database), example["query"]))
    return jobs


def main() -> None:
    found = options(__doc__)
    jobs = spider_jobs(Path(os.environ.get("CREDITLIB_DATA", ".")) / "text2sql" / "spider")
    print(f"{len(jobs)} verdicts, {found.workers} workers")
    checks = measure(SqlVerifier(workers=found.workers), jobs, found.repeats)
    print(f"{sum(check['execution'].score != 1 for check in checks)} not 1")


if __name__ == "__main__":
    main()
