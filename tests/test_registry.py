"""Names to parts: everything listed can be made, and every mistake gets a message that names the way out."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from creditlib import registry
from creditlib.advantage.gdpo import Gdpo
from creditlib.policy.loss import CispoLoss, DrGrpoLoss
from creditlib.types import CreditlibError

EVERYTHING = [(group, name) for group in registry.BUILT_IN for name in registry.BUILT_IN[group]]


@pytest.mark.parametrize(("group", "name"), EVERYTHING)
def test_every_name_leads_to_a_described_class(group: str, name: str) -> None:
    part = registry.get(group, name)
    line = registry.describe(group, name)
    assert part.__doc__ is not None and part.__doc__.startswith(line)
    assert 20 < len(line) <= 105 and line.endswith(".")


def test_build() -> None:
    assert registry.build("advantage", "gdpo") == Gdpo()
    assert registry.build("advantage", "gdpo", weights=[1, 0.5], norm="none") == Gdpo((1, 0.5), norm="none")
    assert registry.build("loss", "dr_grpo", max_tokens=64) == DrGrpoLoss(max_tokens=64)
    assert registry.build("loss", "cispo", ratio_max=2) == CispoLoss(ratio_max=2.0)


@pytest.mark.parametrize(
    ("arguments", "hyperparameters", "message"),
    [
        (("advantages", "gdpo"), {}, "Did you mean 'advantage'"),
        (("advantage", "gdppo"), {}, "advantage=gdppo: no such advantage. Did you mean 'gdpo'"),
        (("advantage", "xxxxxx"), {}, "Known: gdpo, grpo"),
        (
            ("loss", "grpo"),
            {"clip_hi": 0.3},
            "loss.clip_hi: loss=grpo has no such setting. Did you mean 'clip_high'",
        ),
        (("loss", "grpo"), {"clip_high": "0.3"}, "loss.clip_high must be float, found '0.3'"),
        (("loss", "grpo"), {"clip_high": True}, "loss.clip_high must be float, found True"),
        (("loss", "grpo"), {"kl_estimator": "k4"}, "loss.kl_estimator must be one of k1, k2, k3, found 'k4'"),
        (("loss", "grpo"), {"max_tokens": 1.5}, "loss.max_tokens must be int or null, found 1.5"),
        (("loss", "grpo"), {"clip_high": -1.0}, "loss.clip_high must be at least 0"),
        (("advantage", "grpo"), {"weights": [1.0, "2"]}, "advantage.weights must be tuple"),
        (("rollout", "hf"), {}, "rollout.model: rollout=hf needs this setting"),
    ],
)
def test_mistakes_are_explained(
    arguments: tuple[str, str], hyperparameters: dict[str, Any], message: str
) -> None:
    with pytest.raises(CreditlibError) as caught:
        registry.build(*arguments, **hyperparameters)
    assert message in str(caught.value)


def plug_in(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    def entry_points(*, group: str) -> tuple[EntryPoint, ...]:
        return (EntryPoint(name, value, group),) if group == "creditlib.advantage" else ()

    monkeypatch.setattr(registry, "entry_points", entry_points)


def test_other_packages_add_names(monkeypatch: pytest.MonkeyPatch) -> None:
    plug_in(monkeypatch, "theirs", "creditlib.advantage.gdpo:Gdpo")
    assert registry.names("advantage") == ["grpo", "gdpo", "theirs"]
    assert registry.names("credit") == list(registry.BUILT_IN["credit"])
    assert registry.build("advantage", "theirs", eps=0.5) == Gdpo(eps=0.5)
    assert registry.describe("advantage", "theirs").startswith("GDPO")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("not_there.advantage:Rule", "advantage=theirs cannot be imported from not_there.advantage"),
        ("creditlib.advantage.gdpo:Rule", "advantage=theirs must lead to a class"),
        ("creditlib.advantage.gdpo", "advantage=theirs must lead to a class"),
    ],
)
def test_a_broken_plug_in_is_named(monkeypatch: pytest.MonkeyPatch, value: str, message: str) -> None:
    plug_in(monkeypatch, "theirs", value)
    with pytest.raises(CreditlibError, match=message):
        registry.build("advantage", "theirs")
    registry.main()  # listing still works


def test_a_plug_in_cannot_replace_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    plug_in(monkeypatch, "gdpo", "theirs:Gdpo")
    with pytest.raises(CreditlibError, match=r"advantage=gdpo of .* is taken"):
        registry.build("advantage", "gdpo")


def test_the_listing_has_a_line_each_and_loads_no_torch() -> None:
    code = (
        "import runpy, sys; runpy.run_module('creditlib.registry', run_name='__main__'); "
        "sys.exit('torch' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for group, name in EVERYTHING:
        assert group in run.stdout.splitlines()
        assert any(
            line.split(maxsplit=1)[:1] == [name] and len(line) > 40 for line in run.stdout.splitlines()
        ), name
