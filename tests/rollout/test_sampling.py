"""One draw: its distribution, its log-probability and what truncation keeps."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from creditlib.policy.streams import stream_key
from creditlib.rollout.sampling import Sampler
from creditlib.types import CreditlibError


def keys(rows: int) -> Tensor:
    return torch.tensor([stream_key(0, 0, "prompt", row) for row in range(rows)])


def kept_by_sorting(probs: Tensor, top_k: int | None, top_p: float) -> Tensor:
    """Top-k, then top-p of the renormalised rest, one token at a time."""
    order = sorted(range(len(probs)), key=lambda v: -float(probs[v]))[:top_k]
    mass = float(probs[order].sum())
    kept = torch.zeros_like(probs, dtype=torch.bool)
    before = 0.0
    for token in order:
        if before >= top_p * mass:
            break
        kept[token] = True
        before += float(probs[token])
    return kept


@pytest.mark.parametrize("vocabulary", [5, 64, 300])
@pytest.mark.parametrize("cut", [(None, 1.0), (4, 1.0), (None, 0.7)])
def test_frequencies_follow_the_softmax(vocabulary: int, cut: tuple[int | None, float]) -> None:
    torch.manual_seed(vocabulary)
    top_k, top_p = cut
    logits = torch.randn(vocabulary, dtype=torch.float64) * 2
    probs = (logits / 0.8).softmax(0)
    probs = probs * kept_by_sorting(probs, top_k, top_p)
    probs = probs / probs.sum()
    n = 40_000
    draw = Sampler(temperature=0.8, top_k=top_k, top_p=top_p).draw(logits.expand(n, -1), keys(n), 3)
    counts = torch.bincount(draw.tokens_R, minlength=vocabulary).double()
    assert (counts[probs == 0] == 0).all()
    frequent = probs * n > 5
    expected = torch.cat((probs[frequent], probs[~frequent].sum()[None])) * n
    observed = torch.cat((counts[frequent], counts[~frequent].sum()[None]))
    bins = expected > 0
    chi_square = float(((observed - expected)[bins] ** 2 / expected[bins]).sum())
    freedom = int(bins.sum()) - 1
    assert chi_square <= freedom + 4 * (2 * freedom) ** 0.5


def test_positions_are_independent() -> None:
    n = 20_000
    logits = torch.zeros(n, 2)
    first, second = (Sampler().draw(logits, keys(n), position).tokens_R.double() for position in (0, 1))
    assert abs(float(torch.corrcoef(torch.stack((first, second)))[0, 1])) < 4 / n**0.5


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
def test_logps_are_the_full_softmax_at_the_temperature(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    logits = (torch.randn(6, 1000) * 5).to(dtype)
    draw = Sampler(temperature=0.5, top_k=7, top_p=0.6).draw(logits, keys(6), 0)
    precise = logits if dtype == torch.float64 else logits.float()
    expected = (precise / 0.5).log_softmax(1).gather(1, draw.tokens_R[:, None])[:, 0]
    torch.testing.assert_close(draw.logps_R, expected)


@pytest.mark.parametrize("cut", [(3, 1.0), (None, 0.5), (None, 0.999), (50, 0.9), (5000, 0.9), (1, 0.1)])
@pytest.mark.parametrize("scale", [0.1, 3.0])
def test_mass_kept(cut: tuple[int | None, float], scale: float) -> None:
    """Nearly flat logits need more candidates than are looked at first."""
    torch.manual_seed(1)
    top_k, top_p = cut
    logits = torch.randn(8, 3000, dtype=torch.float64) * scale
    draw = Sampler(top_k=top_k, top_p=top_p).draw(logits, keys(8), 5)
    for row, probs in enumerate(logits.softmax(1)):
        kept = kept_by_sorting(probs, top_k, top_p)
        assert kept[draw.tokens_R[row]]
        assert float(draw.mass_R[row]) == pytest.approx(float(probs[kept].sum()), rel=1e-12)


def test_without_truncation_the_mass_is_one() -> None:
    assert (Sampler().draw(torch.randn(4, 33), keys(4), 0).mass_R == 1).all()


def test_a_row_draws_the_same_alone() -> None:
    torch.manual_seed(2)
    logits = torch.randn(20, 130)
    sampler = Sampler(top_p=0.9)
    together = sampler.draw(logits, keys(20), 4)
    alone = [sampler.draw(logits[row : row + 1], keys(20)[row : row + 1], 4) for row in range(20)]
    assert torch.equal(together.tokens_R, torch.cat([draw.tokens_R for draw in alone]))


def test_rounding_rarely_changes_the_token() -> None:
    torch.manual_seed(3)
    logits = torch.randn(4000, 500)
    nudged = logits + 1e-4 * torch.randn_like(logits)
    draws = [Sampler().draw(x, keys(4000), 0).tokens_R for x in (logits, nudged)]
    assert int((draws[0] != draws[1]).sum()) < 4000 * 1e-3


def test_greedy_is_the_likeliest_token_with_the_sampling_temperatures_logp() -> None:
    torch.manual_seed(4)
    logits = torch.randn(5, 40)
    draw = Sampler(temperature=2.0, greedy=True).draw(logits, keys(5), 0)
    assert torch.equal(draw.tokens_R, logits.argmax(1))
    torch.testing.assert_close(draw.logps_R, (logits / 2).log_softmax(1).amax(1))


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_diverged_logits_are_told(bad: float) -> None:
    logits = torch.zeros(2, 9)
    logits[1, 3] = bad
    with pytest.raises(CreditlibError, match="diverged"):
        Sampler().draw(logits, keys(2), 0)


def test_forbidden_tokens_are_never_drawn() -> None:
    logits = torch.zeros(2000, 10)
    logits[:, 4:] = -torch.inf
    assert Sampler().draw(logits, keys(2000), 0).tokens_R.max() < 4


@pytest.mark.parametrize("setting", [{"temperature": 0.0}, {"top_p": 0.0}, {"top_p": 1.1}, {"top_k": 0}])
def test_settings_out_of_range(setting: dict[str, float]) -> None:
    with pytest.raises(CreditlibError, match=f"rollout.{next(iter(setting))}"):
        Sampler(**setting)  # type: ignore[arg-type]
