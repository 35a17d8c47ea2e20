"""Verdicts: the word, the margin, the bits, and the n past which a number format loses the difference."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

import separatrix as sx
from cases import BASE, spike
from separatrix.core.numbers import format_exact
from separatrix.core.numbers.formats import TORCH_NAMES, round_to
from separatrix.exact.engines import Sampling, dense
from separatrix.exact.engines.outcome import Neuron, combine_neurons
from separatrix.exact.verdicts import DELTA, lost_from
from separatrix.exact.verdicts.words import word_for
from separatrix.mechanisms import Linear, Softmax, mechanism_from, mechanism_named
from separatrix.mechanisms.custom import wrap


@pytest.mark.parametrize(
    ("spelling", "changes", "word"),
    [
        ("softmax", {}, "distinguishes"),
        ("linear", {}, "blind"),
        ("softmax", {"a1": "0.7"}, "partial"),
        ("softmax", {"a1": "0.7", "form": "identity"}, "blind"),
    ],
)
def test_the_word(spelling: str, changes: dict[str, object], word: str) -> None:
    assert sx.verdict("spike", spelling, **{**BASE, **changes}).word == word


def test_delta_moves_the_word() -> None:
    assert sx.verdict("spike", "softmax", **BASE, delta="0.0002").word == "partial"
    assert sx.verdict("spike", "softmax", **BASE, delta="0.0003").word == "distinguishes"


def test_the_word_is_decided_exactly() -> None:
    """P is 1 - 8.7e-19 here: as a float it is 1."""
    point = {**BASE, "n": 2_000_000, "d": 2002, "m": 60}
    assert sx.verdict("spike", "softmax", **point, delta="1e-18").word == "distinguishes"
    assert sx.verdict("spike", "softmax", **point, delta="1e-19").word == "partial"
    assert sx.verdict("spike", "softmax", **point, delta="1e-19", engine="closed").word == "undecided"


def test_margins_keep_their_digits() -> None:
    """Spikes that differ in the 61st digit have a margin with all of its own."""
    near = "1." + "0" * 60 + "1"
    found = sx.verdict("spike", "softmax", **{**BASE, "a0": "1", "a1": near})
    assert found.outcome.margin == pytest.approx(2.46493e-61, rel=1e-5)


def test_few_draws_leave_it_undecided() -> None:
    found = sx.verdict("spike", "softmax", **BASE, engine="grouped", sampling=sx.Sampling(draws=20))
    assert found.word == "undecided"
    assert found.outcome.interval[0] < 0.99


@pytest.mark.parametrize(
    ("spelling", "n", "margin"),
    [
        ("softmax", 10**3, 1.1952),
        ("softmax", 10**6, 1.19998),
        ("linear", 10**3, 0.00596576),
        ("linear", 10**6, 5.98964e-6),
    ],
)
def test_margins_of_theory_3(spelling: str, n: int, margin: float) -> None:
    found = sx.verdict("spike", spelling, **{**BASE, "n": n})
    assert found.outcome.margin == pytest.approx(margin, rel=5e-5)
    assert found.bits == pytest.approx(math.log2(found.outcome.v1 / found.outcome.margin))


def test_json_has_the_promised_fields() -> None:
    shown = sx.verdict("spike", "softmax", **BASE, noise_sd="0.5").as_json()
    promised = "construction mechanism parameters engine neuron fire_d0 fire_d1 distinguish interval margin bits"
    assert set(promised.split()) | {"verdict"} <= set(shown)
    assert shown["neuron"]["p0"] == "58995545081408665808387/633825300114114700748351602688"
    assert shown["interval"] == [shown["distinguish"]] * 2
    assert shown["parameters"] == {**BASE, "form": "ones"}
    assert shown["auc"] == pytest.approx(0.9545, abs=1e-3)
    assert sum(Fraction(shown["neuron"][name]) for name in ("p0", "p1", "q")) > 1
    json.dumps(shown, allow_nan=False)


@pytest.mark.parametrize("engine", ["certified", "closed", "grouped"])
def test_bits_of_a_d1_that_vanishes_beside_d0(engine: str) -> None:
    """v1 is no more than rounding of v0: as the sum of v0 and the margin it would be 0."""
    found = sx.verdict("injectivity", "softmax", n=10**20, m=12, query=3, factor="0.01", engine=engine)
    v1 = 1 / (1 + (10**20 - 1) * 10 ** (-20 * 0.03))
    assert found.outcome.v1 == pytest.approx(v1, rel=1e-12, abs=0)
    assert found.bits == pytest.approx(math.log2(v1), rel=1e-12)
    found = sx.verdict("plain", "power:beta=50", n=50, m=12, peak="0.01", engine=engine)
    ratio = (0.01 * math.log(50) / math.log(1.5)) ** 50
    assert found.outcome.v1 == pytest.approx(ratio / (ratio + 49), rel=1e-12, abs=0)
    assert found.bits == pytest.approx(math.log2(50 * ratio / 49), rel=1e-12)


def test_a_margin_of_zero_has_no_bits() -> None:
    """At n=1e40 the linear margin is below what sampled float64 sums can show."""
    found = sx.verdict("spike", "linear", **{**BASE, "n": 10**40}, engine="grouped")
    assert found.bits == math.inf or found.bits > 50
    json.dumps(found.as_json(), allow_nan=False)


@given(x=st.fractions(min_value=Fraction(1, 10**6), max_value=10**6), bits=st.integers(2, 60))
def test_rounding_is_to_the_nearest(x: Fraction, bits: int) -> None:
    rounded = round_to(x, bits)
    odd = rounded.numerator // (rounded.numerator & -rounded.numerator)
    assert odd.bit_length() <= bits
    assert abs(rounded - x) <= x / 2**bits
    assert float(round_to(x, 53)) == float(x)


def test_softmax_is_never_lost_and_linear_is() -> None:
    assert set(lost_from(spike(), Softmax()).values()) == {None}
    assert None not in lost_from(spike(a1="1/3"), Softmax()).values()
    lost = lost_from(spike(), Linear())
    assert list(lost) == ["bf16", "fp16", "fp32", "fp64"]
    sizes = [n for n in lost.values() if n is not None]
    assert sizes == sorted(sizes)
    assert all(n % 100 == 0 for n in sizes)


@pytest.mark.parametrize(
    ("spelling", "changes"), [("linear", {}), ("linear", {"a1": "0.3"}), ("power:beta=2", {"a1": "0.4"})]
)
@pytest.mark.parametrize("name", ["bf16", "fp16"])
def test_the_table_is_what_dense_runs_show(spelling: str, changes: dict[str, object], name: str) -> None:
    """Run in that format, the labels differ at half the n and are the same number at twice the n."""
    mechanism = mechanism_named(spelling)
    n = lost_from(spike(**changes), mechanism)[name]
    assert n is not None
    if 2 * n > (200_000 if spelling == "linear" else 30_000):
        pytest.skip(f"lost from n={n}: a dense run at twice that takes too long for a test")
    dtype = getattr(torch, TORCH_NAMES[name])
    half, twice = (spike(**{**changes, "n": size // 100 * 100}) for size in (n / 2, 2 * n))
    assert dense.probe(half, mechanism, 1, dtype) > dense.probe(half, mechanism, 0, dtype)
    assert dense.probe(twice, mechanism, 1, dtype) == dense.probe(twice, mechanism, 0, dtype)


def test_fp32_loses_it_later_than_dense_can_show() -> None:
    n = lost_from(spike(), Linear())["fp32"]
    assert n is not None
    assert n > 10**8
    largest = spike(n=50_000)
    assert dense.probe(largest, Linear(), 1, torch.float32) > dense.probe(largest, Linear(), 0, torch.float32)


def test_wrong_options() -> None:
    for options in ({"delta": 0}, {"delta": "0.6"}, {"noise": 0}, {"delta": "x"}):
        with pytest.raises(sx.UsageError):
            sx.verdict("spike", "softmax", **BASE, **options)


def scaled(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v


def test_a_hidden_scale_is_said() -> None:
    few = Sampling(draws=2)
    found = sx.verdict("spike", scaled, {**BASE, "n": 200, "form": "identity"}, sampling=few)
    assert found.remarks == ("It divides its logits by sqrt(width), 10.1 here; scaled:scale=sqrt undoes it.",)
    assert found.remarks[0] in found._repr_html_()
    assert found.as_json()["remarks"] == [*found.remarks, found.theorem]
    narrow = sx.verdict("spike", scaled, {**BASE, "n": 200}, sampling=few)
    assert narrow.remarks == ("It divides its logits by sqrt(width), which is 1 here: keys have width 1.",)
    unscaled = mechanism_from(scaled, scale="sqrt")
    assert sx.verdict("spike", unscaled, {**BASE, "n": 200}, sampling=few).remarks == ()


def test_a_fixed_scale_is_said() -> None:
    halved = wrap(lambda q, k, v: (q @ k.mT / 2).softmax(-1) @ v, "mine")
    found = sx.verdict("spike", halved, {**BASE, "n": 200}, sampling=Sampling(draws=2))
    assert found.remarks == ("At width 64 its logits are 0.5 <q, k>; mine:scale=2 undoes it.",)


def test_drawn_weights_are_said_and_the_answer_stays() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.map = nn.Linear(8, 8)

        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return (self.map(q) @ self.map(k).mT).softmax(-1) @ v  # type: ignore[no-any-return]

    point: dict[str, object] = {**BASE, "n": 200}
    first, second = (sx.verdict("spike", Net, point, sampling=Sampling(draws=2)) for _ in range(2))
    assert first.as_json() == second.as_json()
    assert first.remarks == (
        "The scale of its logits could not be measured; if it divides them by sqrt(width), ask Net:scale=sqrt,seed=0.",
        "Its weights were drawn with seed 0; another seed= draws others.",
    )
    other = sx.verdict("spike", mechanism_from(Net, seed=1), point, sampling=Sampling(draws=2))
    assert other.outcome.margin != first.outcome.margin


@pytest.mark.parametrize(
    ("mechanism", "word", "tau"),
    [
        ("identity-features:normalised=no", "saturated", None),
        ("gated-delta", "saturated", "1"),
        ("softmax", "distinguishes", None),
        ("linear", "blind", None),
    ],
)
def test_a_reader_that_fires_on_both_labels_is_saturated(mechanism: str, word: str, tau: str | None) -> None:
    found = sx.verdict("spike", mechanism, **BASE)
    assert found.word == word
    saturated = [remark for remark in found.remarks if "saturated" in remark]
    assert len(saturated) == (word == "saturated")
    assert found.as_json()["working_tau"] == (tau if tau is not None else found.as_json()["working_tau"])
    if found.working_threshold is not None:
        working = format_exact(found.working_threshold.tau)
        assert f"With tau = {working} it distinguishes" in saturated[0]
        assert sx.verdict("spike", mechanism, **{**BASE, "tau": working}).word == "distinguishes"
    several = sx.verdict("spike", ["softmax", mechanism], **BASE)
    assert any("saturated" in remark for remark in several.remarks) == (word == "saturated")


@pytest.mark.parametrize(
    ("p0", "p1", "only", "m", "word"),
    [
        (Fraction(1, 2), Fraction(1, 2), Fraction(0), 1, "saturated"),  # P(both) is exactly 1/2
        (Fraction(1, 2) - Fraction(1, 2**90), Fraction(1, 2), Fraction(1, 2**90), 1, "blind"),
        (Fraction(3, 4), Fraction(1, 4), Fraction(0), 1, "blind"),  # it fires on D0 rather than on D1
        (Fraction(0), Fraction(0), Fraction(0), 5, "blind"),
        (Fraction(1), Fraction(1), Fraction(0), 5, "saturated"),
        (Fraction(1, 4), Fraction(1, 4), Fraction(0), 2, "blind"),
        (Fraction(1, 4), Fraction(1, 4), Fraction(0), 3, "saturated"),
        (Fraction(1, 4), Fraction(3, 4), Fraction(1, 2), 1, "partial"),
    ],
)
def test_saturation_is_decided_exactly(p0: Fraction, p1: Fraction, only: Fraction, m: int, word: str) -> None:
    outcome = combine_neurons(m, *(2 * (Neuron(p0, p1, only),)), undecided_count=0, v0=0.0, v1=1.0, margin=1.0)
    assert word_for(outcome, m, DELTA) == word
