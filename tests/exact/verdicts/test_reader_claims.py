"""Guards of `readers` against claiming too much: ties, bounds that touch, rows that only look equal."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import separatrix as sx
from cases import BASE, spike
from separatrix.core.judgement import Conclusion, ReaderClass
from separatrix.exact.engines import EngineRefusal
from separatrix.exact.outputs._base import Ends, Feature
from separatrix.exact.outputs.floats import FloatOutputs
from separatrix.exact.verdicts.best_threshold import _best_gap
from separatrix.exact.verdicts.linear_reader import Witness
from separatrix.exact.verdicts.rounded_outputs import StoredOutputs, same_number, store_in_format
from separatrix.exact.verdicts.sign_states import Scale, States
from separatrix.mechanisms import Softmax

module = import_module("separatrix.exact.verdicts.readers")  # `verdicts.readers` is the function
WITNESS = Witness((Fraction(1),), Fraction(1), 1, 1.0)


def readings(quiet: tuple[float, float], loud: tuple[float, float]) -> Any:
    """Outputs of which D0 is read within `quiet` and D1 within `loud`."""

    def reading(label: int, weights: object) -> Ends:
        low, high = loud if label else quiet
        return Fraction(low), Fraction(high)

    return SimpleNamespace(reading=reading, features=(Feature(1),))


CONFIRMING, COARSE, REFUTING = (readings((0, 1), (2, 3)), readings((0, 2), (0, 3)), readings((2, 3), (2, 3)))


@pytest.mark.parametrize(
    ("quiet", "loud", "holds", "contradicts"),
    [
        ((0, 0.5), (2, 3), True, False),
        ((0, 1), (2, 3), True, False),  # a reading equal to the threshold does not fire
        ((0, 0.5), (1, 3), False, False),
        ((0, 1.5), (2, 3), False, False),
        ((1, 1.5), (2, 3), False, False),
        ((1.5, 2), (2, 3), False, True),
        ((0, 0.5), (0, 1), False, True),
        ((0, 0.5), (0, 1.5), False, False),
        ((1.5, 2), (0, 1), False, True),
    ],
)
def test_a_witness_fires_above_its_threshold_only(
    quiet: tuple[float, float], loud: tuple[float, float], holds: bool, contradicts: bool
) -> None:
    outputs, mirrored = readings(quiet, loud), readings(loud, quiet)
    assert WITNESS.holds_on(outputs) is holds
    assert WITNESS.contradicts(outputs) is contradicts
    on_d0 = replace(WITNESS, fires_on=0)
    assert (on_d0.holds_on(mirrored), on_d0.contradicts(mirrored)) == (holds, contradicts)


@pytest.mark.parametrize(
    ("proves", "literal", "verified"),
    [
        (True, CONFIRMING, True),
        (False, CONFIRMING, True),
        (True, COARSE, True),  # float64 cannot tell, and the proof stands
        (False, COARSE, False),
        (True, REFUTING, False),
        (False, REFUTING, False),
        (True, None, True),
        (False, None, False),
    ],
)
def test_a_linear_reader_is_verified_by_a_proof_or_the_definition(
    monkeypatch: pytest.MonkeyPatch, proves: bool, literal: Any, verified: bool
) -> None:
    """And by neither if the definition refutes it; None: too many tokens for the definition."""

    def by_definition(*_: object) -> Any:
        if literal is None:
            raise EngineRefusal("too many tokens")
        return literal

    monkeypatch.setattr(module, "by_definition", by_definition)
    outputs = SimpleNamespace(proves=proves, features=(Feature(1),), evidence="made up")
    linear = module._verify(spike(), Softmax(), WITNESS, outputs, 0)
    assert linear.verified is verified


def test_only_proved_rows_are_claimed_to_round_to_equal_ones() -> None:
    """And only in formats in which they certainly do."""
    formats = {
        "bf16": StoredOutputs(True, 0.0, True),
        "fp16": StoredOutputs(None, None, None),
        "fp32": StoredOutputs(False, 1.0, False),
    }
    found = replace(sx.readers("spike", "linear", **BASE), formats=formats)
    stored = [statement.readers for statement in found.statements if "stored in" in statement.readers]
    assert stored == ["every reader of outputs stored in bf16"]
    measured = SimpleNamespace(proves=False, has_equal_rows=False, differ=True, evidence="float64")
    without_proof = replace(found, outputs=measured)
    assert not any("stored in" in statement.readers for statement in without_proof.statements)
    assert Conclusion.CANNOT not in (without_proof.conclusions[name] for name in (ReaderClass.EVERY,))


def test_rows_that_look_equal_defeat_no_reader_without_proof() -> None:
    found = replace(sx.readers("spike", "linear", **BASE), linear=None)
    for proves, conclusion in ((False, Conclusion.UNKNOWN), (True, Conclusion.CANNOT)):
        outputs = SimpleNamespace(proves=proves, has_equal_rows=True, differ=False, evidence="made up")
        assert replace(found, outputs=outputs).conclusions[ReaderClass.EVERY] is conclusion


def test_an_unverified_reader_is_no_claim() -> None:
    found = sx.readers("spike", "linear", **BASE)
    assert found.linear is not None
    for verified, conclusion in ((True, Conclusion.CAN), (False, Conclusion.UNKNOWN)):
        linear = replace(found.linear, verified=verified)
        assert replace(found, linear=linear).conclusions[ReaderClass.LINEAR] is conclusion


def float_rows(d0: list[list[float]], d1: list[list[float]]) -> FloatOutputs:
    outputs = object.__new__(FloatOutputs)
    outputs.rows, outputs.counts = [np.array(d0), np.array(d1)], (len(d0), len(d1))
    outputs.sizes = [np.abs(rows) for rows in outputs.rows]
    outputs.features = tuple(Feature(i + 1) for i in range(len(d0[0])))
    outputs.unit, outputs.probe_weights = (Fraction(1), Fraction(1)), (Fraction(1),) * len(d0[0])
    return outputs


def test_zeros_do_not_differ() -> None:
    """Where nothing is added up there is no allowance for rounding, and no difference either."""
    assert not float_rows([[0.0, 1.0]], [[0.0, 1.0]]).differ
    assert float_rows([[0.0, 1.0]], [[1e-300, 1.0]]).differ


def test_values_that_may_round_either_way_are_neither_equal_nor_different() -> None:
    certain, tie = (Fraction(1),) * 2, (1 + Fraction(1, 2**8) - Fraction(1, 2**40),) * 2
    either = tie[0], 1 + Fraction(1, 2**8) + Fraction(1, 2**40)
    assert same_number(certain, certain, "bf16") is True
    assert same_number(certain, tie, "bf16") is True
    assert same_number(certain, either, "bf16") is None
    assert same_number(either, certain, "bf16") is None
    assert same_number(either, (Fraction(2),) * 2, "bf16") is None


def test_other_multiplicities_are_not_equal_outputs() -> None:
    assert store_in_format(float_rows([[1.0]], [[1.0]]), "bf16").same is True
    assert store_in_format(float_rows([[1.0]], [[1.0], [1.0]]), "bf16").same is None
    assert store_in_format(float_rows([[1.0]], [[2.0]]), "bf16").same is False
    assert store_in_format(float_rows([[1.0]], [[2.0], [2.0]]), "bf16").same is False
    several = [[5.0], [1.0], [1.0]]
    assert store_in_format(float_rows([[1.0], [5.0]], several), "bf16").same is None
    assert store_in_format(float_rows(several, [[1.0], [5.0]]), "bf16").same is None
    nearest = store_in_format(float_rows([[1.0], [5.0]], [[5.0], [1.0], [1.25]]), "bf16")
    assert (nearest.same, nearest.ulps) == (False, 0.25 / 2**-7)


@pytest.mark.parametrize(("distance", "has_gap"), [(10, False), (11, True)])
def test_thresholds_need_a_gap_wider_than_both_errors(distance: int, has_gap: bool) -> None:
    """Pre-activations that are each off by 5 units may be equal if they are 10 apart."""
    scale = Scale(10**100, 5)
    least = 1 + 5
    states = States(([least], [least + distance]), [1], 1, scale, 1, "made up")
    gap = _best_gap([states], Fraction(1, 10))
    assert (gap is not None) is has_gap
    if gap is not None:
        assert least + 5 <= gap[0] * scale.unit < gap[1] * scale.unit <= least + distance - 5
