"""Right and wrong calls for BFCL's questions, and the official checker's verdicts on them, frozen.

`answer_key` and `choose` are pure functions of the questions, so the fixture stores no text: only verdicts, 0
or 1, and a checksum of each hundred texts. To make `bfcl_verdicts.json` again, in an environment of its own
(nothing else of bfcl-eval's is needed)::

    pip install --no-deps bfcl-eval==2026.3.23
    python tests/conformance/bfcl_mutations.py --bfcl <data>/toolcall/bfcl
"""

from __future__ import annotations

import argparse
import importlib
import json
import random
import sys
import types
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

Question = Mapping[str, Any]  # id, category, function, ground_truth
Calls = list[tuple[str, dict[str, Any]]]

CATEGORIES = (
    "simple_python multiple parallel parallel_multiple live_simple live_multiple live_parallel "
    "live_parallel_multiple".split()
)
KEYS = ("first", "last", "bare")


def questions(folder: Path) -> list[Question]:
    """The questions about Python functions that have possible answers."""
    found = []
    for category in CATEGORIES:
        name = f"BFCL_v4_{category}.json"
        answers = {row["id"]: row["ground_truth"] for row in _rows(folder / "possible_answer" / name)}
        for row in _rows(folder / name):
            found.append(
                {
                    "id": row["id"],
                    "category": category,
                    "function": row["function"],
                    "ground_truth": answers[row["id"]],
                }
            )
    return found


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text().splitlines():
        yield json.loads(line)


# --------------------------------------------------------------------------- calls


def answer_key(question: Question, kind: str) -> Calls:
    """Calls that the possible answers allow: the first or last value of each parameter, or without every
    parameter that may be left out.
    """
    pick = -1 if kind == "last" else 0
    return _choose(question, lambda values: values[pick], omit=kind == "bare")


def _choose(question: Question, choose: Callable[[list[Any]], Any], *, omit: bool) -> Calls:
    calls: Calls = []
    for answer in question["ground_truth"]:
        name, parameters = next(iter(answer.items()))
        arguments = {}
        for parameter, values in parameters.items():
            if "" in values and omit:
                continue
            if wanted := [value for value in values if value != ""]:
                arguments[parameter] = _plain(choose(wanted))
        calls.append((name, arguments))
    return calls


def _plain(value: Any) -> Any:
    """A dict among the answers has a list of allowed values for each key."""
    if isinstance(value, dict):
        return {
            key: _plain(own[0] if isinstance(own, list) and own else own)
            for key, own in value.items()
            if own != [""]
        }
    return [_plain(own) for own in value] if isinstance(value, list) else value


def as_list(calls: Calls) -> str:
    """In BFCL's prompt format."""
    written = [
        f"{name}({', '.join(f'{key}={value!r}' for key, value in own.items())})" for name, own in calls
    ]
    return f"[{', '.join(written)}]"


def as_block(calls: Calls) -> str:
    """In RLLA's format; tuples become lists."""
    lines = [json.dumps({"name": name, "parameters": own}) for name, own in calls]
    return "<tool_call>\n" + "\n".join(lines) + "\n</tool_call>"


# --------------------------------------------------------------------------- kinds of change

Change = Callable[[Calls, random.Random], Any]  # in place; True or None: done, False: does not apply


def _argument(kind: type | tuple[type, ...], edit: Callable[[Any, random.Random], Any]) -> Change:
    """Change the value of one argument of this type."""

    def change(calls: Calls, rng: random.Random) -> bool:
        places = [(own, key) for _, own in calls for key, value in own.items() if _is(value, kind)]
        if not places:
            return False
        own, key = rng.choice(places)
        before = own[key]
        own[key] = edit(before, rng)
        return repr(own[key]) != repr(before)

    return change


def _is(value: Any, kind: type | tuple[type, ...]) -> bool:
    return type(value) in (kind if isinstance(kind, tuple) else (kind,))


def _any_argument(edit: Callable[[dict[str, Any], str, random.Random], None]) -> Change:
    def change(calls: Calls, rng: random.Random) -> bool:
        places = [(own, key) for _, own in calls for key in own]
        if not places:
            return False
        own, key = rng.choice(places)
        edit(own, key, rng)
        return True

    return change


def _rename(own: dict[str, Any], key: str, rng: random.Random) -> None:
    own[rng.choice([key + "_", key.upper(), key[:-1]]) or "x"] = own.pop(key)


def _calls(edit: Callable[[Calls, random.Random], None]) -> Change:
    def change(calls: Calls, rng: random.Random) -> bool:
        before = list(calls)
        edit(calls, rng)
        return calls != before

    return change


def _swap_values(calls: Calls, rng: random.Random) -> bool:
    """Two arguments of one call trade places."""
    places = [own for _, own in calls if len(own) > 1]
    if not places:
        return False
    own = rng.choice(places)
    first, second = rng.sample(sorted(own), 2)
    own[first], own[second] = own[second], own[first]
    return True


def _misspell(text: str, rng: random.Random) -> str:
    at = rng.randrange(len(text)) if text else 0
    return text[:at] + text[at + 1 :]


def _punctuate(text: str, rng: random.Random) -> str:
    return rng.choice([text.replace(" ", ", "), text.replace(" ", "_"), text + ".", f"-{text}", f" {text} "])


def _list(edit: Callable[[list[Any], random.Random], Any]) -> Change:
    return _argument(list, lambda value, rng: edit(list(value), rng))


def _dict(edit: Callable[[dict[str, Any], random.Random], Any]) -> Change:
    return _argument(dict, lambda value, rng: edit(dict(value), rng))


def _without_one(value: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    if value:
        value.pop(rng.choice(sorted(value)))
    return value


def _change_inside(value: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    if value:
        key = rng.choice(sorted(value))
        value[key] = rng.choice([str(value[key]), 1, True, None, [value[key]], value[key]])
    return value


KINDS: dict[str, Change] = {
    "none": lambda calls, rng: True,
    "drop_argument": _any_argument(lambda own, key, rng: own.pop(key)),
    "rename_argument": _any_argument(_rename),
    "empty": _any_argument(lambda own, key, rng: own.update({key: ""})),
    "null": _any_argument(lambda own, key, rng: own.update({key: None})),
    "as_text": _any_argument(lambda own, key, rng: own.update({key: str(own[key])})),
    "in_list": _any_argument(lambda own, key, rng: own.update({key: [own[key]]})),
    "add_argument": _calls(lambda calls, rng: rng.choice(calls)[1].update({"extra": 1})),
    "swap_values": _swap_values,
    "add_one": _argument((int, float), lambda value, rng: value + 1),
    "negate": _argument((int, float), lambda value, rng: -value),
    "whole_as_decimal": _argument(int, lambda value, rng: float(value)),
    "decimal_as_whole": _argument(float, lambda value, rng: int(value)),
    "whole_as_flag": _argument(int, lambda value, rng: bool(value)),
    "not": _argument(bool, lambda value, rng: not value),
    "flag_as_whole": _argument(bool, lambda value, rng: int(value)),
    "flag_as_lower_text": _argument(bool, lambda value, rng: str(value).lower()),
    "case": _argument(str, lambda value, rng: value.upper()),
    "punctuate": _argument(str, _punctuate),
    "misspell": _argument(str, _misspell),
    "text_as_number": _argument(str, lambda value, rng: rng.choice([0, 1.5, True])),
    "reverse_list": _list(lambda value, rng: value[::-1]),
    "shorten_list": _list(lambda value, rng: value[:-1]),
    "lengthen_list": _list(lambda value, rng: [*value, *(value[:1] or [0])]),
    "as_tuple": _list(lambda value, rng: tuple(value)),
    "decimal_items": _list(lambda value, rng: [float(own) if type(own) is int else own for own in value]),
    "whole_items": _list(lambda value, rng: [int(own) if type(own) is float else own for own in value]),
    "text_items": _list(lambda value, rng: [str(own) for own in value]),
    "upper_items": _list(lambda value, rng: [own.upper() if type(own) is str else own for own in value]),
    "dict_drop": _dict(_without_one),
    "dict_add": _dict(lambda value, rng: {**value, "extra": 1}),
    "dict_change": _dict(_change_inside),
    "drop_call": _calls(lambda calls, rng: calls.pop(rng.randrange(len(calls))) and None),
    "repeat_call": _calls(lambda calls, rng: calls.append(rng.choice(calls))),
    "reverse_calls": _calls(lambda calls, rng: calls.reverse()),
    "rename_call": _calls(lambda calls, rng: calls.append((calls[-1][0] + "s", calls.pop()[1]))),
}


def mutate(question: Question, kind: str, index: int) -> Calls | None:
    """Calls with one kind of change, or None if that does not apply; values and left-out parameters are drawn
    at random.
    """
    rng = random.Random(f"{question['id']}:{kind}:{index}")
    calls = _choose(question, rng.choice, omit=rng.random() < 0.5)
    calls = json.loads(json.dumps(calls))
    calls = [(name, own) for name, own in calls]
    return None if KINDS[kind](calls, rng) is False else calls


def choose(found: Sequence[Question], count: int) -> Iterator[tuple[Question, str, int, Calls]]:
    """`count` changed calls: questions in turn, each with the kind that was used least so far and applies."""
    used = dict.fromkeys(KINDS, 0)
    for index in range(count):
        question = found[index * 7919 % len(found)]
        for kind in sorted(KINDS, key=lambda kind: used[kind]):
            if (calls := mutate(question, kind, index)) is not None:
                used[kind] += 1
                yield question, kind, index, calls
                break


def checksum(texts: Sequence[str]) -> str:
    return f"{zlib.crc32(chr(0).join(texts).encode()):08x}"


# --------------------------------------------------------------------------- texts for the decoder

TEXTS = (
    "",
    "[]",
    "abc",
    "f",
    "f()",
    "[f()]",
    "[f(x=1)]",
    "f(x=1), g(y=2)",
    "[f(x=1)",
    "f(x=1)]",
    "[f(x=1),]",
    "[f(x=1,)]",
    "```\n[f(x=1)]\n```",
    "```python\n[f(x=1)]\n```",
    "Sure: [f(x=1)]",
    "[f(x=1)] done",
    "'[f(x=1)]'",
    "[f(1, 2)]",
    "[f(1, x=2)]",
    "[f(x=1, 2)]",
    "[f(x=1, x=2)]",
    "[f(x=true)]",
    "[f(x=-1)]",
    "[f(x=+1)]",
    "[f(x=--1)]",
    "[f(x=1e5, y=1_000, z=0x1f)]",
    "[f(x=01)]",
    "[f(x='a' 'b')]",
    "[f(x='it\\'s \\u00e9\\n')]",
    "[f(x=r'a\\d')]",
    "[f(x='''a\nb''')]",
    "[f(x='a\nb')]",
    "[f(x=(1, 2), y=(1,), z=(1), w=())]",
    "[f(x={'a': [1, {'b': None}]})]",
    "[f(x={1, 2})]",
    "[f(x=[1 2])]",
    "[f(x=a.b)]",
    "[f(from=1)]",
    "[a.b.c(x=1)]",
    "[a . b(x = 1)]",
    "[f(x=1)  # note\n]",
    "[[f(x=1)]]",
    "[f(x=1)][0]",
    "{'f': 1}",
    "[" * 300 + "]" * 300,
    "[f(x=" + "[" * 40 + "]" * 40 + ")]",
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bfcl", type=Path, required=True)
    found = questions(parser.parse_args().bfcl)
    verdict, decode = _official()
    keys = {
        f"{question['id']} {kind}": verdict(question, as_list(answer_key(question, kind)))
        for question in found
        for kind in KEYS
    }
    texts = [(question, as_list(calls)) for question, _, _, calls in choose(found, 10_000)]
    hundreds = [texts[start : start + 100] for start in range(0, len(texts), 100)]
    frozen = {
        "origin": {
            "package": "bfcl-eval 2026.3.23: model_handler.utils.default_decode_ast_prompting, "
            "eval_checker.ast_eval.ast_checker.ast_checker; an exception counts as not valid",
            "command": "python tests/conformance/bfcl_mutations.py --bfcl <data>/toolcall/bfcl",
        },
        "answer keys": {"count": len(keys), "not valid": sorted(key for key in keys if not keys[key])},
        "mutations": [
            f"{checksum([text for _, text in own])} {''.join(f'{verdict(*each):d}' for each in own)}"
            for own in hundreds
        ],
        "decoded": [decode(text) for text in TEXTS],
    }
    Path(__file__).with_name("bfcl_verdicts.json").write_text(json.dumps(frozen, indent=1) + "\n")


def _official() -> tuple[Callable[[Question, str], bool], Callable[[str], str]]:
    """The official decoder and checker, imported without the model clients that their package asks for."""
    config = types.ModuleType("bfcl_eval.constants.model_config")
    plain = type("Config", (), {"underscore_to_dot": False})
    config.MODEL_CONFIG_MAPPING = defaultdict(lambda: plain)  # type: ignore[attr-defined]
    stand_ins: dict[str, Sequence[str]] = {
        "bfcl_eval.utils": [],
        "bfcl_eval.model_handler.parser.java_parser": ["parse_java_function_call"],
        "bfcl_eval.model_handler.parser.js_parser": ["parse_javascript_function_call"],
        "tenacity": [
            "retry",
            "retry_if_exception_message",
            "retry_if_exception_type",
            "wait_random_exponential",
        ],
    }
    sys.modules[config.__name__] = config
    for name, attributes in stand_ins.items():
        sys.modules[name] = types.ModuleType(name)
        for attribute in attributes:
            setattr(sys.modules[name], attribute, lambda *_, **__: lambda function: function)
    utils: Any = importlib.import_module("bfcl_eval.model_handler.utils")
    checker: Any = importlib.import_module("bfcl_eval.eval_checker.ast_eval.ast_checker")
    python = importlib.import_module("bfcl_eval.constants.enums").Language.PYTHON

    def verdict(question: Question, text: str) -> bool:
        try:
            calls = utils.default_decode_ast_prompting(text)
            arguments = (question["function"], calls, question["ground_truth"], python, question["category"])
            return bool(checker.ast_checker(*arguments, "any")["valid"])
        except Exception:  # noqa: BLE001 - whatever the official code raises
            return False

    def decode(text: str) -> str:
        try:
            return repr(utils.default_decode_ast_prompting(text))
        except Exception:  # noqa: BLE001 - whatever the official code raises
            return "fails"

    return verdict, decode


if __name__ == "__main__":
    main()
