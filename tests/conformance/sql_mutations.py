"""Wrong and equivalent variants of Spider's dev golds, and the official scripts' verdicts on them, frozen.

`mutate` is a pure function of (query, kind, index), so the fixture stores no SQL: only the gold's index, the
kind of change, a checksum of the variant and the verdicts. To make `sql_verdicts.json` again, with the two
official repositories cloned::

    python tests/conformance/sql_mutations.py --spider <data>/text2sql/spider \\
        --test-suite <taoyds/test-suite-sql-eval> --bird <bird-bench/mini_dev>/evaluation
"""

from __future__ import annotations

import argparse
import importlib
import json
import random
import re
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

_TOKEN = re.compile(r"""'[^']*'|"[^"]*"|\d+(?:\.\d+)?|\w+|<=|>=|<>|!=|\s+|.""", re.DOTALL)
_END_OF_CLAUSE = {"group", "having", "order", "limit", "union", "except", "intersect", ")"}


def _words(tokens: Sequence[str], word: str) -> list[int]:
    return [i for i, token in enumerate(tokens) if token.lower() == word]


def _drop(word: str) -> Callable[[list[str], random.Random], list[str] | None]:
    def change(tokens: list[str], rng: random.Random) -> list[str] | None:
        places = _words(tokens, word)
        if not places:
            return None
        i = rng.choice(places)
        return tokens[:i] + tokens[i + 1 :]

    return change


def _drop_clause(word: str) -> Callable[[list[str], random.Random], list[str] | None]:
    """Remove a clause up to the next one at the same depth."""

    def change(tokens: list[str], rng: random.Random) -> list[str] | None:
        places = _words(tokens, word)
        if not places:
            return None
        start = rng.choice(places)
        depth = 0
        end = start + 1
        while end < len(tokens) and not (depth == 0 and tokens[end].lower() in _END_OF_CLAUSE | {";"}):
            depth += {"(": 1, ")": -1}.get(tokens[end], 0)
            end += 1
        return tokens[:start] + tokens[end:]

    return change


def _swap(pairs: dict[str, str]) -> Callable[[list[str], random.Random], list[str] | None]:
    """Replace one of the tokens that are keys."""

    def change(tokens: list[str], rng: random.Random) -> list[str] | None:
        places = [i for i, token in enumerate(tokens) if token.lower() in pairs]
        if not places:
            return None
        i = rng.choice(places)
        return [*tokens[:i], pairs[tokens[i].lower()], *tokens[i + 1 :]]

    return change


def _items(tokens: list[str]) -> tuple[int, int, list[list[str]]] | None:
    """Start, end and items of the first SELECT's list."""
    start = _words(tokens, "select")[0] + 1
    items: list[list[str]] = [[]]
    depth = 0
    for end in range(start, len(tokens)):
        token = tokens[end]
        depth += {"(": 1, ")": -1}.get(token, 0)
        if depth == 0 and token.lower() == "from":
            return start, end, items
        if depth == 0 and token == ",":
            items.append([])
        elif token.lower() == "distinct" and not "".join(items[0]).strip():
            start, items = end + 1, [[]]
        else:
            items[-1].append(token)
    return None


def _select_list(
    edit: Callable[[list[list[str]]], list[list[str]] | None],
) -> Callable[[list[str], random.Random], list[str] | None]:
    def change(tokens: list[str], rng: random.Random) -> list[str] | None:
        found = _items(tokens)
        items = edit(found[2]) if found else None
        if found is None or items is None:
            return None
        listed = [",", *[token for item in items for token in (*item, ",")]][1:-1]
        return [*tokens[: found[0]], " ", *listed, " ", *tokens[found[1] :]]

    return change


def _change_number(tokens: list[str], rng: random.Random) -> list[str] | None:
    places = [i for i, token in enumerate(tokens) if token.isdigit()]
    if not places:
        return None
    i = rng.choice(places)
    return [*tokens[:i], str(int(tokens[i]) + rng.choice((-1, 1, 10))), *tokens[i + 1 :]]


def _change_text(tokens: list[str], rng: random.Random) -> list[str] | None:
    places = [i for i, token in enumerate(tokens) if token[0] in "'\"" and len(token) > 3]
    if not places:
        return None
    i = rng.choice(places)
    return [*tokens[:i], tokens[i][:-2] + tokens[i][-1], *tokens[i + 1 :]]


def _misspell(tokens: list[str], rng: random.Random) -> list[str] | None:
    places = [i for i, token in enumerate(tokens) if re.fullmatch(r"[A-Za-z_]{5,}", token)]
    i = rng.choice(places)
    return [*tokens[:i], tokens[i][:-1], *tokens[i + 1 :]]


def _repeat_rows(tokens: list[str], rng: random.Random) -> list[str] | None:
    if _words(tokens, "order") or _words(tokens, "limit"):
        return None
    return [*tokens, " UNION ALL ", *tokens]


def _add_order(tokens: list[str], rng: random.Random) -> list[str] | None:
    return None if _words(tokens, "order") or _words(tokens, "limit") else [*tokens, " ORDER BY 1 DESC"]


def _wrap(tokens: list[str], rng: random.Random) -> list[str] | None:
    return ["SELECT * FROM (", *tokens, ")"]


KINDS: dict[str, Callable[[list[str], random.Random], list[str] | None]] = {
    "drop_distinct": _drop("distinct"),
    "add_distinct": lambda tokens, rng: [tokens[0], " DISTINCT", *tokens[1:]],
    "swap_columns": _select_list(lambda items: [items[1], items[0], *items[2:]] if len(items) > 1 else None),
    "rotate_columns": _select_list(lambda items: [*items[1:], items[0]] if len(items) > 2 else None),
    "drop_column": _select_list(lambda items: items[:-1] if len(items) > 1 else None),
    "duplicate_column": _select_list(lambda items: [items[0], *items]),
    "drop_where": _drop_clause("where"),
    "drop_group": _drop_clause("group"),
    "drop_having": _drop_clause("having"),
    "drop_order": _drop_clause("order"),
    "drop_limit": _drop_clause("limit"),
    "flip_direction": _swap({"asc": "DESC", "desc": "ASC"}),
    "operator": _swap({"=": "!=", "!=": "=", ">": ">=", ">=": ">", "<": "<=", "<=": "<"}),
    "and_or": _swap({"and": "OR", "or": "AND"}),
    "aggregate": _swap({"count": "max", "max": "min", "min": "max", "sum": "avg", "avg": "sum"}),
    "set_operation": _swap({"union": "UNION ALL", "except": "INTERSECT", "intersect": "UNION"}),
    "number": _change_number,
    "text": _change_text,
    "misspell": _misspell,
    "repeat_rows": _repeat_rows,
    "add_order": _add_order,
    "wrap": _wrap,
}


def mutate(query: str, kind: str, index: int) -> str | None:
    """The variant of `query`, or None if this kind of change does not apply."""
    tokens = _TOKEN.findall(query.strip().rstrip(";"))
    changed = KINDS[kind](tokens, random.Random(f"{kind}:{index}"))
    return None if changed is None or changed == tokens else "".join(changed)


def choose(queries: Sequence[str], count: int) -> list[tuple[int, str, str]]:
    """`count` triples (index, kind, variant): one for each gold, the rarest applicable kind so far, so that
    kinds are balanced.
    """
    used = dict.fromkeys(KINDS, 0)
    chosen = []
    for index, query in enumerate(queries[:count]):
        variants = {kind: mutate(query, kind, index) for kind in KINDS}
        kind = min((kind for kind in KINDS if variants[kind]), key=lambda kind: used[kind])
        used[kind] += 1
        chosen.append((index, kind, str(variants[kind])))
    return chosen


def checksum(sql: str) -> str:
    return f"{zlib.crc32(sql.encode()):08x}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for option in ("--spider", "--test-suite", "--bird"):
        parser.add_argument(option, type=Path, required=True)
    options = parser.parse_args()
    sys.path[:0] = [str(options.test_suite), str(options.bird)]
    suite: Any = importlib.import_module("exec_eval")
    bird: Any = importlib.import_module("evaluation_ex")
    examples = json.loads((options.spider / "dev.json").read_text())
    golds = [example["query"] for example in examples]

    with tempfile.TemporaryDirectory() as folder:  # the official scripts open databases for writing
        databases = shutil.copytree(options.spider / "database", Path(folder) / "database")

        def verdicts(index: int, query: str) -> str:
            name = examples[index]["db_id"]
            path = str(databases / name / f"{name}.sqlite")
            kept, removed = (
                suite.eval_exec_match(path, query, golds[index], False, keep, False) for keep in (True, False)
            )
            result = bird.execute_model(query, golds[index], path, index, 30.0, "SQLite")
            return f"{kept}{removed}{result['res']}"

        frozen = {
            "origin": {
                "spider": "taoyds/test-suite-sql-eval, exec_eval.py of 14784c3: eval_exec_match, plug_value "
                "off; first digit with keep_distinct, second without (parse.remove_distinct)",
                "bird": "bird-bench/mini_dev 47f116d, evaluation/evaluation_ex.py: execute_model, 30 s; "
                "third digit",
                "command": "python tests/conformance/sql_mutations.py --spider … --test-suite … --bird …",
            },
            "golds": [verdicts(index, gold) for index, gold in enumerate(golds)],
            "mutations": [
                f"{index} {kind} {checksum(sql)} {verdicts(index, sql)}"
                for index, kind, sql in choose(golds, 1000)
            ],
        }
    golds_not_passing = {i: digits for i, digits in enumerate(frozen["golds"]) if digits != "111"}
    frozen["golds"] = {"count": len(golds), "not 111": golds_not_passing}
    Path(__file__).with_name("sql_verdicts.json").write_text(json.dumps(frozen, indent=1) + "\n")


if __name__ == "__main__":
    main()
