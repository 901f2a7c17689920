"""The decisions of both modes, row by row as docs/verifiers/toolcall.md lists them."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from verifiers.toolcall import check

HERE = Path(__file__).parent
CASES = runpy.run_path(str(HERE / "cases.py"))
RLLA: dict[str, Any] = CASES["RLLA"]
BFCL: dict[str, Any] = CASES["BFCL"]
DOCUMENT = HERE.parents[2] / "docs" / "verifiers" / "toolcall.md"


def approx(expected: tuple[float, float]) -> Any:
    return pytest.approx(expected, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("mode", ["official", "sound"])
@pytest.mark.parametrize("case", RLLA)
def test_rlla(case: str, mode: Any) -> None:
    own = RLLA[case]
    checks = check(own.response, gold=own.gold, mode=mode)
    assert (checks["format"].score, checks["correctness"].score) == approx(getattr(own, mode))


@pytest.mark.parametrize("mode", ["official", "sound"])
@pytest.mark.parametrize("case", BFCL)
def test_bfcl(case: str, mode: Any) -> None:
    own = BFCL[case]
    checks = check(own.response, **bfcl_reference(own), mode=mode)
    assert checks["correctness"].score == (3 if getattr(own, mode) else -3), checks["correctness"].reason


def bfcl_reference(own: Any) -> dict[str, Any]:
    parameters = {"type": "dict", "properties": own.properties, "required": ["x"]}
    return {
        "functions": [{"name": "f", "parameters": parameters}],
        "answers": [{"f": answer} for answer in own.answers],
    }


def test_the_document_lists_these_rows() -> None:
    rows = {}
    for table in DOCUMENT.read_text().split("\n\n"):
        if table.startswith("| case |"):
            for line in table.splitlines()[2:]:
                case, official, sound, _ = line.removeprefix("|").removesuffix("|").split(" | ")
                rows[case.strip()] = [official.strip(), sound.strip()]
    for case, own in RLLA.items():
        assert rows.pop(case, None) == [_figures(own.official), _figures(own.sound)], case
    for case, own in BFCL.items():
        assert rows.pop(case, None) == [_verdict(own.official), _verdict(own.sound)], case
    assert rows == {}


def _figures(scores: tuple[float, float]) -> str:
    return ", ".join("NaN" if score != score else f"{score:.2f}".rstrip("0").rstrip(".") for score in scores)


def _verdict(valid: bool) -> str:
    return "right" if valid else "wrong"
