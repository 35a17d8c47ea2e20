"""Results that claim a proof only where bounds decide: error bounds, ties of thresholds, formats, counted rows."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import pytest

from cases import SMALL as SMALL_POINTS
from cases import spike
from separatrix.constructions import Description, TokenGroup, construction_named
from separatrix.exact.engines import EngineRefusal, Sampling, certified
from separatrix.exact.outputs.floats import FloatOutputs
from separatrix.exact.outputs.kernels import KernelRows
from separatrix.exact.outputs.proved import proved_outputs
from separatrix.exact.outputs.strongest import strongest_outputs
from separatrix.exact.verdicts import lost_from
from separatrix.exact.verdicts.best_threshold import best_threshold
from separatrix.exact.verdicts.rounded_outputs import store_in_format
from separatrix.exact.verdicts.sign_states import sign_states
from separatrix.mechanisms import Linear, Softmax, mechanism_named

SMALL = {"n": 40, "d": 6, "m": 5, "a0": "0.05", "a1": "0.5", "b": "0.55", "c": "0.3"}


@pytest.mark.parametrize(("spelling", "is_rational"), [("linear", True), ("softmax", False)])
def test_the_error_of_a_sign_state_covers_every_ball(spelling: str, is_rational: bool) -> None:
    """Rationals have a common denominator; of balls each of the terms may be off by its width and by rounding."""
    point = spike(**SMALL)
    outputs = [output for output, _ in strongest_outputs(point, mechanism_named(spelling))]
    for state in sign_states(point, outputs):
        assert (state.scale.off == 0) is is_rational
        assert is_rational or state.scale.off >= point.signs + 4


def test_proved_outputs_are_those_of_every_position() -> None:
    ((_, place),) = strongest_outputs(spike(**SMALL), Softmax())
    assert place == 0


def test_an_open_bound_at_the_usual_threshold_yields_to_a_proved_equal() -> None:
    """A tie belongs to the usual tau only if it is certain that the probability there is no larger."""
    point, mechanism = spike(**SMALL, tau="0.05"), Softmax()
    outputs = [output for output, _ in strongest_outputs(point, mechanism)]
    usual = certified.solve(point, mechanism)
    best = best_threshold(point, mechanism, outputs, usual, Sampling())
    level = best.outcome.distinguish
    assert best.tau != Fraction("0.05")
    assert level > usual.distinguish
    equal = replace(usual, distinguish=level, interval=(level, level))
    assert best_threshold(point, mechanism, outputs, equal, Sampling()).tau == Fraction("0.05")
    above = math.nextafter(level, 1)
    for interval, tau in (((level, above), best.tau), ((above, above), Fraction("0.05")), ((0.0, 1.0), best.tau)):
        fixed = replace(usual, distinguish=level, interval=interval)
        assert best_threshold(point, mechanism, outputs, fixed, Sampling()).tau == tau, interval


def test_outputs_that_round_to_the_same_numbers_are_no_unit_apart() -> None:
    outputs = proved_outputs(spike(n=10**12), Linear())
    assert not outputs.has_equal_rows
    stored = store_in_format(outputs, "fp16")
    assert (stored.same, stored.ulps, stored.same_probe) == (True, 0.0, True)
    apart = store_in_format(outputs, "fp64")
    assert apart.same is False
    assert apart.ulps is not None
    assert apart.ulps >= 1


def test_a_difference_that_no_format_shows_is_lost_from_the_least_n() -> None:
    """n is a multiple of d - 2 and at least 3."""
    near = "1." + "0" * 60 + "1"
    for d, least in ((4, 4), (5, 3), (6, 4), (102, 100)):
        point = spike(n=100 * (d - 2), d=d, a0="1", a1=near)
        assert set(lost_from(point, Softmax()).values()) == {least}, d


@pytest.mark.parametrize("name", SMALL_POINTS)
def test_rows_in_float64_are_counted_for_either_label(name: str) -> None:
    point = construction_named(name).read(SMALL_POINTS[name])
    outputs = FloatOutputs(point, mechanism_named("softmax"))
    assert outputs.counts == tuple(len(outputs.rows[label]) for label in (0, 1))


def test_scores_that_add_up_to_zero_are_refused() -> None:
    """Two keys of opposite signs cancel for linear attention, and not for its square."""
    groups = (TokenGroup((Fraction(1),), (Fraction(1),), 1), TokenGroup((Fraction(-1),), (Fraction(3),), 1))
    description = Description(((Fraction(1),),), groups)
    point = SimpleNamespace(tau=Fraction(1, 2), logit_base=None, descriptions=(description, description))
    for spelling, mean in (("linear", None), ("power:beta=2", 2)):
        rows = KernelRows(point, mechanism_named(spelling))
        (row,) = rows.rows[0]
        if mean is None:
            with pytest.raises(EngineRefusal, match="linear cannot handle these tokens: the scores of a row add up"):
                rows.outputs(row)
        else:
            assert rows.outputs(row) == (mean,)
