"""Does any answer of 50,000 characters take a constraint more than 50 ms?

    CREDITLIB_DATA=<data folder> python -m benchmarks.long_answers
    CREDITLIB_DATA=<data folder> python -m benchmarks.long_answers --mode official

Every constraint of IFEval and IFBench, and of MulDimIF one text for each kind of rule, against answers that
are a short piece again and again: what each checker looks for, what nearly looks like it, very short lines,
many scripts. A verdict is timed as a whole, cutting into words, sentences and lines included, in CPU time,
and again where it took too long (other programs run, too): the least time counts. Fails if one is too long.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from creditlib.trainer.progress import Display
from tasks.instruction_data import load_rows
from verifiers.instructions.answer import Answer
from verifiers.instructions.constraint import UnverifiableError
from verifiers.instructions.muldimif.families import rules_of
from verifiers.instructions.muldimif.ids import PAIRS, constraint_id
from verifiers.instructions.muldimif.layout import layout_of
from verifiers.instructions.verifier import Job, Judge

LONG = 50_000  # characters of an answer
LIMIT = 0.05  # seconds
TRIES = 5  # of a verdict that takes longer
RATIO = 16  # of a verdict's time in tests to that of cutting into lines
SHOWN = 10

Found = TypeVar("Found")

MARKS = "()[]{}<>\"'“”‘’`-–_*#.,;:!?|/\\=~@1aAéZ中你😀\n\r\t\0 \xa0\u2028\ud800\u200b\u200d\u202e\u0301。！İß"
PIECES = (
    "\n\n¦\r\n¦\n ¦ \n\n¦<<¦>>¦**¦***¦\n***\n¦()¦(]¦[a¦][¦([{}])¦"
    "a ¦a. ¦a.¦A. ¦A.B. ¦ab ¦1 ¦1. ¦1.¦1,¦Mr. ¦p. ¦?!¦!? ¦.\"¦!?\n¦...a¦I A ¦word ¦cat's ¦level ¦the and ¦"
    "you ¦one two ¦ice cream¦ice ¦tea ¦cat¦a@¦a-¦a_¦a/¦http://¦www.¦a://¦http://a.b ¦"
    "e\u0301¦\u0915\u094d\u0937\u093f¦\u202e\u05e9\u05dc\u05d5\u05dd ¦\uff8a¦学¦学 ¦学。¦あ。¦你好！¦"
    "\U0001f3f4\U000e0067¦\U0001f469\u200d\U0001f469¦a😀\n¦a 😀.\n¦é ¦\u0645\u0631\u062d\u0628\u0627 ¦"
    "B\n¦1\n¦a\n=\n¦a\n--\n¦a\n\n¦\n-\n¦-\n¦*\n¦#\n¦# a\n¦## a\n\n¦> q\n¦* ¦- ¦* a.\n¦- a\n¦- a\n\n¦1. a\n¦"
    "*a¦** a¦******¦* *a¦* \n¦\n* a¦ - a\n¦---\n¦***\n¦```\n¦~~~\n¦**a**\n¦"
    "| a ¦|-¦a|\n¦a.|\n¦|a\n¦|\n¦| a |\n|---|\n¦\\|¦|-|\n¦"
    '<a ¦<a "¦<a b="c">¦<i>¦</i>¦<em><i>¦<i>a b c</i> d ¦<think>¦</think>¦{}¦{"a":¦[1,¦""¦'
    '\'\'¦"a" ¦\'a "b ¦"",¦"a,¦,""x¦\t"¦"a"\t¦a,b\n¦a;b,¦'
    "Question ¦Question 1:\n¦Question 1: a\nA) b\n¦A) a\n¦P.S. ¦\np.s. x¦Section 1 ¦\nSECTION 1¦"
    "My answer is yes.¦Any other questions?¦My Answer: ¦war ¦it\n\n¦1800-01-01,¦Zimbabwe\n¦eagle bald ¦"
    "Word end.\n¦Emma ¦Only output this sentence here, ¦a a a a a a a a a a a a a\n"
).split("¦")
ANSWERS = (
    *(piece * (LONG // len(piece)) for piece in (*MARKS, *PIECES)),
    *("." * LONG + "x", "*" * LONG + "x", " " * LONG + ".", "[" * 10 + " " * LONG, "<<" + " " * LONG + ">>"),
    *('"' + "x" * LONG + '"', "```json\n" + " " * LONG, "tea" + " " * LONG + "pot"),
    "Write a poem " + " " * LONG + "about",
    *("- a\n" + "b\n" * (LONG // 2), "- a\n" + " b\n" * (LONG // 3), "# a\n" + "b. " * (LONG // 3)),
    *("| a |\n|---|\n" + "| b |\n" * (LONG // 6), "a|a\n-|-\n" + "b|\n" * (LONG // 3)),
    "Question My Answer: SEPARATOR Zimbabwe\n" + "x " * (LONG // 2) + 'a"</i>',
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mode", choices=("sound", "official"), default="sound")
    options = parser.parse_args()
    data = os.environ.get("CREDITLIB_DATA")
    if not data:
        sys.exit(
            "CREDITLIB_DATA is not set: expected the folder that holds instructions/ with the public sets"
        )
    wanted = public_constraints(Path(data) / "instructions")
    judge = Judge(options.mode)
    found: dict[str, list[tuple[float, str, str]]] = defaultdict(list)
    gc.disable()  # going through all objects can take longer than a verdict
    with Display().progress("long answers", len(wanted)) as bar:
        for family, constraint in wanted:
            for answer in ANSWERS:
                found[family].append((_verdict(judge, constraint, answer), f"{constraint}", answer))
            bar.advance()
    print(f"{options.mode}: {len(wanted)} constraints, {len(ANSWERS)} answers of {LONG:,} characters")
    for family, times in found.items():
        over = sum(own[0] > LIMIT for own in times)
        times.sort(reverse=True)
        print(f"{family}: {over} of {len(times):,} verdicts over {1000 * LIMIT:.0f} ms. The slowest:")
        for took, constraint, answer in times[:SHOWN]:
            print(f"  {1000 * took:6.1f} ms  {answer[:12]!a:16} {constraint:.120}")
    sys.exit(any(own[0] > LIMIT for times in found.values() for own in times))


def timed(
    job: Callable[[], Found], limit: float = LIMIT, before: Callable[[], object] = lambda: None
) -> tuple[float, Found]:
    """CPU time of `job`, each time after `before`, and what it found. The time is the least of `TRIES`, if
    the first takes a little longer than `limit`; with the limit 0 the least of all.
    """
    least = float("inf")
    for _ in range(TRIES):
        before()
        start = time.process_time()
        found = job()
        least = min(least, time.process_time() - start)
        if least <= limit or (limit and least > 10 * limit):
            break
    return least, found


def _verdict(judge: Judge, constraint: Mapping[str, Any], answer: str, limit: float = LIMIT) -> float:
    """CPU time of a verdict, as `timed` has it, without what constraints of the same answer share."""
    took, [check] = timed(lambda: judge(Job(answer, [constraint])), limit, before=layout_of.cache_clear)
    # All of these can be checked; not everybody has the data that some official readings need.
    assert check.score in (0.0, 1.0) or judge.mode == "official", (constraint, check)
    assert all(0 <= start < end <= len(answer) for start, end, _ in check.spans), constraint
    return took


def slow(constraint: Mapping[str, Any], answers: Sequence[str] = ANSWERS) -> list[tuple[float, str]]:
    """Answers whose verdict takes longer than tests allow: seconds, and how they begin."""
    judge = Judge()
    judge(Job("Warm up.", [constraint]))
    limit = allowed()
    found = [(_verdict(judge, constraint, own, limit), own[:12]) for own in answers]
    return [own for own in found if own[0] > limit and own[0] > allowed()]


def allowed() -> float:
    """Seconds that a verdict may take in tests, which must not fail where machines are slow or busy: `RATIO`
    times what cutting 25,000 lines takes just now, twice as long as the slowest take. What is not linear
    takes seconds.
    """
    return RATIO * timed(lambda: Answer("B\n" * (LONG // 2)).lines, limit=0)[0]


def public_constraints(folder: Path) -> list[tuple[str, Mapping[str, Any]]]:
    """The first public constraint of each id, of MulDimIF of each kind of rule, with its set's name."""
    found: dict[Any, tuple[str, Mapping[str, Any]]] = {}
    families = {constraint_id(*pair): family for pair, family in PAIRS.items()}
    for name, file in (
        ("IFEval", "ifeval/input_data.jsonl"),
        ("IFBench", "ifbench/IFBench_test.jsonl"),
        ("MulDimIF", "muldimif/test.json"),
    ):
        for own in (own for row in load_rows(file, str(folder)) for own in row.constraints):
            kinds = [own["id"]]
            if family := families.get(own["id"]):
                try:
                    rules = rules_of(family, own["kwargs"]["text"])
                except UnverifiableError:
                    continue
                kinds = [_kind(rule) for rule in rules]
            for kind in kinds:
                found.setdefault(kind, (name, own))
    return list(found.values())


def _kind(rule: Any) -> tuple[str, ...]:
    """What decides how a rule is checked: its class, and what it counts or reads where."""
    fields = ("unit", "scope", "case", "kind", "variety", "what")
    return type(rule).__name__, *(str(getattr(rule, own, "")) for own in fields)


if __name__ == "__main__":
    main()
