"""Undecided comparisons of the certified engine, and error bounds of the closed form in float64."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from flint import ctx

from cases import spike
from separatrix.constructions import Construction, construction_named
from separatrix.core.parameters import Grid
from separatrix.exact.engines import EngineRefusal, certified, closed
from separatrix.exact.engines.amplitudes import float_values, scale
from separatrix.exact.engines.certified import Threshold, Triple, least_firing
from separatrix.exact.engines.tails import Tails
from separatrix.exact.engines.thresholds import Thresholds
from separatrix.exact.outputs.kernels import rational_model, with_kernel
from separatrix.exact.verdicts import certify
from separatrix.mechanisms import Mechanism, Softmax, mechanism_named

ALL_PLUS: Triple = (1, 1, 1)
BLOCKS = 5


@pytest.mark.parametrize(
    ("sigma", "least", "expected"),
    [
        (0, 0, 0),
        (0, BLOCKS, BLOCKS),
        (1, 0, 1),  # a row of sign + is one of the P
        (1, 1, 1),
        (-1, 0, 0),
        (-1, BLOCKS - 1, BLOCKS - 1),
        (-1, BLOCKS, BLOCKS + 1),  # at P = blocks there is no row of sign -
    ],
)
def test_rows_fire_where_they_exist(sigma: int, least: int, expected: int) -> None:
    threshold = Threshold(1, ALL_PLUS, "other", sigma, least, least)
    for generous in (False, True):
        assert least_firing((threshold,), BLOCKS, 1, ALL_PLUS, generous) == expected
    assert least_firing((threshold,), BLOCKS, 0, ALL_PLUS, False) == BLOCKS + 1
    assert least_firing((threshold,), BLOCKS, 1, (1, 1, -1), False) == BLOCKS + 1


def test_the_first_row_to_fire_counts() -> None:
    thresholds = (Threshold(0, ALL_PLUS, "spike", 0, 2, 4), Threshold(0, ALL_PLUS, "rest", 0, 3, 3))
    assert not thresholds[0].is_decided
    assert thresholds[1].is_decided
    assert least_firing(thresholds, BLOCKS, 0, ALL_PLUS, generous=True) == 2
    assert least_firing(thresholds, BLOCKS, 0, ALL_PLUS, generous=False) == 3


@pytest.mark.parametrize("undecided_label", [0, 1])
def test_each_bound_takes_its_own_side_of_an_undecided_label(
    monkeypatch: pytest.MonkeyPatch, undecided_label: int
) -> None:
    """Rows of one label fire from P = 1 or 3 on, those of the other from 2 on; P counts 3 signs."""

    def threshold(mechanism: object, model: object, label: int, triple: Triple, row: object, sigma: int) -> Threshold:
        least, highest = (1, 3) if label == undecided_label else (2, 2)
        return Threshold(1 if label else 0, triple, "row", 0, least, highest)

    monkeypatch.setattr(certified, "_threshold", threshold)
    count = certified.count(spike(n=16, d=6), Softmax())
    assert not count.is_decided
    eighth = Fraction(1, 8)
    fires_from = {1: 7 * eighth, 2: 4 * eighth, 3: eighth}
    undecided, decided = (fires_from[3], fires_from[1]), (fires_from[2], fires_from[2])
    ends = (undecided, decided) if undecided_label == 0 else (decided, undecided)
    assert (count.low.p0, count.high.p0) == ends[0]
    assert (count.low.p1, count.high.p1) == ends[1]
    assert (count.low.only, count.high.only) == (0, 3 * eighth)
    assert certified.outcome(spike(n=16, d=6), count).evidence.startswith("exact bounds")


def test_both_labels_undecided_leave_the_widest_bounds_of_d1_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """D1 alone is rarest where D0 fires early and D1 late, and most likely the other way round."""
    monkeypatch.setattr(
        certified,
        "_threshold",
        lambda mechanism, model, label, triple, row, sigma: Threshold(label, triple, "row", 0, 1, 3),
    )
    count = certified.count(spike(n=16, d=6), Softmax())
    assert (count.low.p0, count.high.p0) == (count.low.p1, count.high.p1) == (Fraction(1, 8), Fraction(7, 8))
    assert (count.low.only, count.high.only) == (0, Fraction(6, 8))


def test_no_certificate_with_an_undecided_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if the word is certain: the file would state a least count that nobody has shown."""
    monkeypatch.setattr(certified, "PRECISIONS", (40,))
    point = spike(n="1e18")
    assert not certified.count(point, Softmax()).is_decided
    with pytest.raises(EngineRefusal, match="undecided"):
        certify(point, Softmax(), Fraction(1, 100))


def thresholds_at(point: Construction, mechanism: Mechanism) -> Thresholds:
    """The closed form of one point in float64."""
    columns = Grid(point.parameters.complete_values()).columns(type(point).schema)
    model = type(point).block_model(float_values(columns), np.log)
    assert model is not None
    blocks = np.asarray(model.blocks)
    amplitudes = scale(type(point).amplitudes(columns), blocks)
    return Thresholds(with_kernel(mechanism), model, amplitudes, Tails(blocks))


def test_error_bounds_of_attention_ratios_hold() -> None:
    """A ratio is the exponential of a logit in the hundreds, whose rounding error it multiplies."""
    largest = 0.0
    for i in range(40):
        point = construction_named("plain").read({"n": 10**6, "m": 1, "peak": Fraction(4000 + i, 101)})
        excess = thresholds_at(point, Softmax()).excess[1][0]
        model = rational_model(point)
        row = model.rows[1][0]
        assert excess.spike is not None
        assert excess.scale == 1
        with ctx.workprec(2000):
            exact = (Softmax().ratio(row.base, row.spike) - 1) / model.size
            off = abs(float(exact / float(excess.spike) - 1))
        assert off <= excess.error
        largest = max(largest, off)
    assert largest > 1e-14  # more than a few units in the last place


@pytest.mark.parametrize("multiple", [1, 5, 10, 11])
def test_amplitudes_without_a_common_denominator_are_not_taken_as_exact(multiple: int) -> None:
    """Scaling all amplitudes changes nothing for linear attention; ties at n = 1e18 are decided by 1/n."""
    factor = Fraction(multiple * 10**30 + 57, 3 * 10**30 + 1)
    names = {"a0": "0.01", "a1": "1.2", "b": "0.2", "c": "0.1", "tau": "0.2"}
    scaled = {name: factor * Fraction(value) for name, value in names.items()}
    linear = mechanism_named("linear")
    truth = certified.solve(spike(n=10**18), linear)
    found = closed.solve(spike(n=10**18, **scaled), linear)
    assert found.p0 == pytest.approx(float(truth.p0), rel=1e-12)
    assert found.p1 == pytest.approx(float(truth.p1), rel=1e-12)


def test_ratios_that_are_scaled_out_of_range_are_left_to_the_certified_engine() -> None:
    """With y = (1, -1, 1) the spike contributes exactly tau, and its block, 10^-1200 as much, decides."""
    changes = {"n": 10**300, "d": 6, "m": 1, "a1": 2, "b": "1.5", "tau": "0.6", "form": "identity"}
    thresholds = thresholds_at(spike(**changes), Softmax())
    excess = thresholds.excess[1][0]
    assert excess.scale < 1
    assert thresholds._bounds(1, (1, -1, 1), excess, 0, np.asarray(2 / 3)) == (-np.inf, np.inf)
    truth, found = (engine.solve(spike(**changes), Softmax()) for engine in (certified, closed))
    assert found.p0 == pytest.approx(float(truth.p0), rel=1e-12)
    assert found.p1 == pytest.approx(float(truth.p1), rel=1e-12)
    assert found.only == pytest.approx(float(truth.only), rel=1e-12)


def test_undecided_ties_widen_both_bounds() -> None:
    """Where an open tie may take firing from D1, P may be lower by as much, and higher where it is D0's."""
    grid = closed.ProbabilityGrid(
        **{name: np.asarray(value) for name, value in {"p0": 0.25, "p1": 0.5, "only": 0.25}.items()},
        **{name: np.asarray(1.0) for name in ("m", "v0", "v1", "margin")},
        undecided=np.asarray(False),
        open0=np.asarray(0.125),
        open1=np.asarray(0.0625),
    )
    low, high = grid.bounds
    assert low == pytest.approx(0.25 - 0.0625, rel=1e-9)
    assert high == pytest.approx(0.25 + 0.125, rel=1e-9)
    assert grid.error == pytest.approx(0.125, rel=1e-9)


@pytest.mark.parametrize(
    ("p0", "p1", "only", "open0", "open1", "bounds"),
    [
        (0.0, 0.25, 0.25, 0.125, 0.5, (0.0, 1 - 0.625**2)),  # neither p0 nor `only` falls below 0
        (0.25, 0.5, 0.25, 0.25, 0.0, (0.75**2 - 0.5**2, 1 - 0.5**2)),
        (1.0, 1.0, 0.0, 0.0, 0.0, (0.0, 0.0)),
        (0.0, 1.0, 1.0, 0.0, 0.0, (1.0, 1.0)),
    ],
)
def test_bounds_of_two_neurons_stay_probabilities(
    p0: float, p1: float, only: float, open0: float, open1: float, bounds: tuple[float, float]
) -> None:
    names = {"p0": p0, "p1": p1, "only": only, "open0": open0, "open1": open1, "m": 2, "v0": 1, "v1": 1, "margin": 1}
    arrays = {name: np.asarray(float(value)) for name, value in names.items()}
    low, high = closed.ProbabilityGrid(**arrays, undecided=np.asarray(False)).bounds
    assert (float(low), float(high)) == pytest.approx(bounds, rel=1e-9, abs=1e-9)
    assert 0 <= low <= high <= 1


@pytest.mark.parametrize("spelling", ["softmax", "linear", "power:beta=3"])
@pytest.mark.parametrize("form", ["ones", "identity"])
def test_nothing_is_open_where_no_pre_activation_is_near_the_threshold(spelling: str, form: str) -> None:
    """The float64 sums themselves decide, before the certified engine is asked; at a tie they do not."""
    found = thresholds_at(spike(form=form, a1="0.7"), mechanism_named(spelling)).probabilities()
    assert float(np.sum(found.open0)) == float(np.sum(found.open1)) == 0
    at_tie = spike(n=6000, d=62, m=1, tau="5400061/18000100")
    tie = thresholds_at(at_tie, mechanism_named("linear")).probabilities()
    assert 0 < float(np.sum(tie.open0)) + float(np.sum(tie.open1)) < 1e-10
