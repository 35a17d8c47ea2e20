"""Counts of draws whose pre-activations lie above, below or within the error of the threshold."""

from __future__ import annotations

from itertools import product

import pytest
import torch

from separatrix.exact.engines import EngineRefusal
from separatrix.exact.engines.tally import Tally, binomial_interval

SILENT, OPEN, FIRES = -1.0, 0.25, 1.0
"""Pre-activations beyond a threshold of 3, whose error is 1/4: the second one may fire or not."""
LEVELS = (SILENT, OPEN, FIRES)


def test_every_pair_of_levels_is_counted_for_what_is_certain() -> None:
    """One neuron each; the interval must hold however the open ones fall."""
    for d0, d1 in product(LEVELS, repeat=2):
        tally = Tally()
        tally.add([torch.tensor([3 + d0]), torch.tensor([3 + d1])], 1, 3.0, 0.25)
        has_fired = [level == FIRES for level in (d0, d1)]
        may_fire = [level != SILENT for level in (d0, d1)]
        assert tally.draws == 1
        assert tally.neurons == tally.fired == tuple(map(int, has_fired))
        assert tally.hits == tally.only == (has_fired[1] and not has_fired[0])
        assert tally.sure == (has_fired[1] and not may_fire[0])
        assert tally.maybe == (may_fire[1] and not has_fired[0])
        assert tally.close == (OPEN in (d0, d1))


def test_a_network_fires_if_one_of_its_neurons_does() -> None:
    """Two networks of three neurons: the first fires on D1 by one neuron, the second on both labels by two."""
    tally = Tally()
    d0 = torch.tensor([SILENT, SILENT, SILENT, FIRES, SILENT, SILENT])
    d1 = torch.tensor([SILENT, FIRES, SILENT, FIRES, FIRES, OPEN])
    tally.add([3 + d0, 3 + d1], 3, 3.0, 0.25)
    tally.add([3 + d0, 3 + d1], 3, 3.0, 0.25)
    assert (tally.draws, tally.neurons, tally.fired) == (4, (2, 6), (2, 4))
    assert (tally.only, tally.hits, tally.sure, tally.maybe, tally.close) == (4, 2, 2, 2, 0)
    assert tally.interval(0.99) == (binomial_interval(2, 4, 0.99)[0], binomial_interval(2, 4, 0.99)[1])


def test_a_pre_activation_exactly_at_the_error_is_open_above_and_silent_below() -> None:
    """It fires for certain only beyond the error, and may fire only within it."""
    tally = Tally()
    tally.add([torch.tensor([2.75, 3.25]), torch.tensor([3.25, 2.75])], 1, 3.0, 0.25)
    assert (tally.fired, tally.hits, tally.sure, tally.maybe, tally.close) == ((0, 0), 0, 0, 1, 2)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_outputs_that_are_not_finite_are_refused(value: float) -> None:
    with pytest.raises(EngineRefusal, match="NaN or overflows the number format"):
        Tally().add([torch.tensor([0.0]), torch.tensor([value])], 1, 0.0, 0.0)


@pytest.mark.parametrize(("hits", "draws"), [(0, 7), (7, 7), (3, 7)])
def test_the_interval_excludes_what_is_rarer_than_the_doubt(hits: int, draws: int) -> None:
    from scipy.stats import binom

    low, high = binomial_interval(hits, draws, 0.9)
    assert low == 0.0 if hits == 0 else binom.sf(hits - 1, draws, low) == pytest.approx(0.05)
    assert high == 1.0 if hits == draws else binom.cdf(hits, draws, high) == pytest.approx(0.05)
