"""Random streams: the published generator, addressed by position."""

from __future__ import annotations

import pytest
import torch

from creditlib.policy.streams import exponentials, splitmix64, stream_key

# First outputs of the reference implementation (prng.di.unimi.it/splitmix64.c).
REFERENCE = {
    0: [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F, 0xF88BB8A8724C81EC],
    1234567: [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431],
}


@pytest.mark.parametrize("seed", REFERENCE)
def test_outputs_of_the_reference_implementation(seed: int) -> None:
    outputs = splitmix64(torch.tensor([seed]), 0, 4)[0].tolist()
    assert [output % 2**64 for output in outputs] == REFERENCE[seed]


def test_any_part_of_a_stream_without_the_rest() -> None:
    keys = torch.tensor([-5, 0, 2**62])
    whole = splitmix64(keys, 0, 50)
    assert torch.equal(splitmix64(keys, 17, 8), whole[:, 17:25])
    assert torch.equal(splitmix64(keys[1:2], 0, 50), whole[1:2])


def test_key_depends_on_everything_and_on_nothing_else() -> None:
    base = stream_key(0, 1, "a", 2)
    others = [
        stream_key(1, 1, "a", 2),
        stream_key(0, 2, "a", 2),
        stream_key(0, 1, "b", 2),
        stream_key(0, 1, "a", 3),
    ]
    assert len({base, *others}) == 5
    assert stream_key(1, 11, "x", 0) != stream_key(11, 1, "x", 0)
    # Written down: a run resumed on another machine or Python draws the same numbers.
    assert base == 4951402648248184051


def test_exponentials_are_exponential() -> None:
    keys = torch.tensor([stream_key(0, 0, "p", sample) for sample in range(200)])
    draws = exponentials(keys, 0, 500).flatten()
    for threshold in (0.01, 0.1, 0.7, 2.0, 5.0):
        share = float((draws > threshold).double().mean())
        expected = float(torch.tensor(-threshold).exp())
        assert abs(share - expected) < 4 * (expected * (1 - expected) / len(draws)) ** 0.5
    assert draws.min() > 0
    assert draws.isfinite().all()
