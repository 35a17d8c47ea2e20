"""Trying every sign vector: exact fractions, ties decided or reported, one answer from every engine."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from flint import arb, fmpq
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cases import SMALL
from separatrix.analysis.maps import map as map_of
from separatrix.constructions import CONSTRUCTIONS, ExactConstruction, construction_named
from separatrix.core.numbers.logforms import LogForm
from separatrix.core.parameters import Grid
from separatrix.exact.engines import EngineRefusal, Outcome, Sampling, certified, closed, solve
from separatrix.exact.engines.enumerated import TooCloseToCall, sign_vectors
from separatrix.exact.outputs.kernels import kernel_rows, same_rows
from separatrix.exact.reader import FourLayerNetwork, fires
from separatrix.exact.verdicts import DELTA, certify, verdict
from separatrix.mechanisms import Mechanism, mechanism_named

KERNELS = ["softmax", "linear", "power:beta=3", "power:beta=1/2", "taylor:order=2"]
OTHERS = ["identity-features:normalised=no", "logn-softmax", "sparsemax", "sigmoid", "elu"]


def made(name: str, **changes: object) -> ExactConstruction:
    """The small point of that name, with changes."""
    point = construction_named(name).read({**SMALL[name], **changes})
    assert isinstance(point, ExactConstruction)
    return point


def test_every_enumerated_construction_has_a_small_point() -> None:
    enumerated = {name for name, kind in CONSTRUCTIONS.items() if issubclass(kind, ExactConstruction)}
    assert set(SMALL) == enumerated


def _literal(point: ExactConstruction, mechanism: Mechanism, label: int) -> list[bool]:
    """What the four-layer network says of literal tokens, one sign vector at a time."""
    return [
        fires(
            FourLayerNetwork(mechanism, torch.tensor([signs], dtype=torch.float64), point.threshold),
            point,
            label,
            spike=point.n // 2,
        )
        for signs in product((1, -1), repeat=point.signs)
    ]


@pytest.mark.parametrize("spelled", ["softmax", "linear", "logn-softmax", "identity-features:normalised=no"])
@pytest.mark.parametrize("name", SMALL)
def test_fractions_are_those_of_the_literal_network(name: str, spelled: str) -> None:
    point, mechanism = made(name), mechanism_named(spelled)
    d0, d1 = (_literal(point, mechanism, label) for label in (0, 1))
    for engine in ("certified", "closed"):
        try:
            found = solve(point, mechanism, engine)
        except EngineRefusal:
            assert engine == "certified"
            assert spelled not in KERNELS or name == "routing"
            continue
        alone = sum(one and not other for other, one in zip(d0, d1, strict=True))
        assert found.p0 == Fraction(sum(d0), len(d0))
        assert found.p1 == Fraction(sum(d1), len(d1))
        assert found.only == Fraction(alone, len(d0))


@pytest.mark.parametrize("spelled", [*KERNELS, *OTHERS])
@pytest.mark.parametrize("name", SMALL)
def test_all_engines_agree(name: str, spelled: str) -> None:
    point, mechanism = made(name), mechanism_named(spelled)
    sampling = Sampling(draws=200, confidence=0.999999)
    reference = closed.solve(point, mechanism)
    if spelled in KERNELS and point.rational:
        _same(certified.solve(point, mechanism), reference)
    for engine in ("grouped", "dense"):
        sampled = solve(point, mechanism, engine, sampling)
        low, high = sampled.interval
        assert low - 1e-12 <= reference.distinguish <= high + 1e-12
        assert sampled.margin == pytest.approx(reference.margin, rel=1e-6, abs=1e-9)


def _same(one: Outcome, other: Outcome) -> None:
    assert (one.p0, one.p1, one.only) == (other.p0, other.p1, other.only)
    assert one.distinguish == other.distinguish
    assert one.v0 == pytest.approx(other.v0, rel=1e-9, abs=1e-12)
    assert one.margin == pytest.approx(other.margin, rel=1e-9, abs=1e-12)


tenths = st.integers(0, 30).map(lambda k: Fraction(k, 10))


@st.composite
def points(draw: st.DrawFn) -> ExactConstruction:
    """Random points of the constructions with two to four kinds of token."""
    name = draw(st.sampled_from(["injectivity", "duplication", "dispersion", "critical", "averaging", "level"]))
    values: dict[str, object] = {"n": draw(st.integers(16, 10**9)), "m": draw(st.integers(1, 30))}
    values["tau"] = draw(st.integers(1, 30)) * Fraction(1, 10)
    if name not in ("critical", "duplication"):
        values["gap"] = draw(tenths)
    return made(name, **{**values, **({"rho": Fraction(1, 3)} if name == "critical" else {})})


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(point=points(), spelled=st.sampled_from(KERNELS))
def test_exact_is_certified_in_floats(point: ExactConstruction, spelled: str) -> None:
    mechanism = mechanism_named(spelled)
    truth = certified.solve(point, mechanism)
    try:
        found = closed.solve(point, mechanism)
    except TooCloseToCall:
        assert truth.interval[0] != truth.interval[1]
        return
    _same(truth, found)


TIE = {"n": 2, "gap": 0}
"""Two equal logits: the pre-activation of D1 is 1/2, which is tau, and does not fire."""


def test_a_rational_tie_does_not_fire() -> None:
    point = made("dispersion", **TIE)
    for engine in (certified, closed):
        assert engine.solve(point, mechanism_named("softmax")).p1 == 0
    assert "2 ties decided exactly" not in certified.solve(point, mechanism_named("softmax")).evidence
    assert "1 ties decided exactly" in closed.solve(point, mechanism_named("softmax")).evidence


def test_a_tie_without_a_kernel_is_never_guessed() -> None:
    point, mechanism = made("dispersion", **TIE), mechanism_named("sparsemax")
    with pytest.raises(TooCloseToCall, match="too close to the threshold for float64; engine grouped"):
        closed.solve(point, mechanism)
    assert "too close to call" in solve(point, mechanism).evidence


def test_a_tie_that_float64_would_call_is_not_called() -> None:
    """A third of 11/10 against 11/30: float64 rounds it to the wrong side."""
    point = made("dispersion", n=3, gap=0, a1="11/10", tau="11/30")
    tokens = point.token_groups(1, torch.float64)
    assert tokens.values is not None
    assert (tokens.values[0] / 3).item() >= point.threshold
    with pytest.raises(TooCloseToCall):
        closed.solve(point, mechanism_named("sparsemax"))
    assert closed.solve(point, mechanism_named("softmax")).p1 == 0


def test_a_tie_between_balls_is_reported_as_undecided() -> None:
    """The scores 5 and 2 of the logits 4 and 1 are rational, but as balls they cannot know it: the output is 5/27."""
    point, mechanism = made("dispersion", tau="5/27"), mechanism_named("taylor:order=1")
    found = certified.solve(point, mechanism)
    assert "comparisons undecided at 32768 bits" in found.evidence
    assert found.interval[0] < found.interval[1]
    with pytest.raises(TooCloseToCall):
        closed.solve(point, mechanism)


def test_a_tie_that_a_polynomial_decides_does_not_fire() -> None:
    """Order 2 cancels the parity of three bits: D1 gives b, which is tau; order 3 does not cancel it."""
    point = made("parity", tau="1/2")
    assert certified.solve(point, mechanism_named("taylor:order=2")).p1 == 0
    assert certified.solve(point, mechanism_named("taylor:order=3")).p1 == Fraction(1, 2)


def test_undecided_comparisons_give_bounds_on_both_labels() -> None:
    """Where D0 is undecided, D1 may fire alone or not, be it undecided itself or sure to fire."""
    point, mechanism = made("dispersion", tau="5/27"), mechanism_named("taylor:order=1")
    tied = point.descriptions[1]
    raised = tuple(replace(kind, value=(kind.value[0] + 1,)) for kind in tied.groups)
    for other in (tied, replace(tied, groups=raised)):
        point.descriptions = (tied, other)
        low, high = certified.solve(point, mechanism).interval
        assert (low, high) == pytest.approx((0, 1 - 0.5**3))


def test_cancelling_scores_are_refused() -> None:
    """Linear scores of a query 0 add up to 0: a ball cannot divide by them, and floats are left undecided."""
    point = made("critical", gamma="1e-6")
    d0, d1 = (replace(each, queries=((Fraction(0),),)) for each in point.descriptions)
    point.descriptions = (d0, d1)
    with pytest.raises(EngineRefusal, match="linear cannot handle these tokens"):
        certified.solve(point, mechanism_named("linear"))
    assert closed.solve(point, mechanism_named("linear")).interval == (0, 1)


def test_overflow_is_refused() -> None:
    point = made("critical", gamma="1e5")
    with pytest.raises(EngineRefusal, match="cannot handle these tokens: its scores overflow"):
        closed.solve(point, mechanism_named("power:beta=1000"))


def test_rows_without_rationals_go_to_floats() -> None:
    with pytest.raises(EngineRefusal, match="tokens of routing are not rational; engine closed"):
        certified.solve(made("routing"), mechanism_named("softmax"))
    assert solve(made("routing"), mechanism_named("softmax")).engine == "closed"


def test_mechanisms_without_kernel_or_counts() -> None:
    point = made("dispersion")
    with pytest.raises(EngineRefusal, match="nothing to certify; engine closed"):
        certified.solve(point, mechanism_named("sparsemax"))
    with pytest.raises(EngineRefusal, match="does not accept counts; engine dense"):
        closed.solve(point, mechanism_named("delta"))
    assert solve(point, mechanism_named("sparsemax")).engine == "closed"
    assert solve(point, mechanism_named("delta"), sampling=Sampling(draws=20)).engine == "dense"


@pytest.mark.parametrize("name", ["recall", "spikes", "regression"])
def test_who_sees_places_is_last_query_mode(name: str) -> None:
    """Asked after all tokens, a sum over the past is a sum over everything, wherever the tokens stand."""
    point = made(name)
    everything = solve(point, mechanism_named("identity-features:normalised=no"))
    past = solve(point, mechanism_named("causal-linear"), sampling=Sampling(draws=50))
    assert (past.v0, past.v1) == pytest.approx((everything.v0, everything.v1), rel=1e-12)
    assert past.interval[0] <= everything.distinguish <= past.interval[1]


def test_too_many_signs_are_refused() -> None:
    assert len(sign_vectors(12)) == 4096
    with pytest.raises(EngineRefusal, match=r"13 signs, too many to try all 2\^13 vectors"):
        sign_vectors(13)


@pytest.mark.parametrize("name", ["injectivity", "duplication", "parity"])
@pytest.mark.parametrize("spelled", ["linear", "power:beta=2"])
def test_equal_rows_are_recognised(name: str, spelled: str) -> None:
    point, mechanism = made(name), mechanism_named(spelled)
    assert same_rows(point, mechanism)
    assert certified.solve(point, mechanism).margin == 0
    assert not same_rows(made("dispersion"), mechanism)


def test_equal_rows_need_no_rational_scores() -> None:
    assert same_rows(made("duplication"), mechanism_named("softmax"))
    assert same_rows(made("duplication"), mechanism_named("taylor:order=3"))
    *_, margin = kernel_rows(made("duplication"), mechanism_named("softmax")).margin()
    assert isinstance(margin, fmpq)
    assert margin == 0
    assert not same_rows(made("injectivity"), mechanism_named("softmax"))


@pytest.mark.parametrize("spelled", ["softmax", "sparsemax"])
def test_grids_are_points(spelled: str) -> None:
    grid = Grid({"m": 5}, ({"n": [4, 30, 200]}, {"gap": ["1", "4"]}))
    kind, mechanism = construction_named("dispersion"), mechanism_named(spelled)
    whole = closed.evaluate(kind, mechanism, grid)
    for index in np.ndindex(3, 2):
        one = closed.solve(kind(grid.at(kind.schema, index)), mechanism)
        assert whole.p1[index] == float(one.p1)
        assert whole.margin[index] == one.margin
        assert whole.distinguish[index] == pytest.approx(one.distinguish, rel=1e-12)
    assert not whole.undecided.any()


def test_a_tie_leaves_the_rest_of_a_grid_answered() -> None:
    grid = Grid({"m": 5, "gap": 0}, ({"n": [2, 3]},))
    whole = closed.evaluate(construction_named("dispersion"), mechanism_named("sparsemax"), grid)
    assert whole.undecided.tolist() == [True, False]
    assert np.isnan(whole.p1).tolist() == [True, False]


def test_places_of_the_special_token_matter_only_to_those_who_see_places() -> None:
    """Softmax gets the same from literal tokens wherever they stand; a window sees the last ones only."""
    point = made("dispersion", gap=3)
    for spelled, places in (("softmax", {True}), ("window:size=3", {True, False})):
        mechanism, seen = mechanism_named(spelled), set()
        for place in range(point.n):
            tokens = point.dense(1, place, torch.float64)
            assert tokens.values is not None
            q = tokens.queries.expand(point.n, -1)
            out = mechanism(q[None, None], tokens.keys[None, None], tokens.values[None, None])[0, 0, -1]
            seen.add(bool(out.item() > 0.5))
        assert seen == places


def test_plain_numbers_are_multiples_of_log_e() -> None:
    two = LogForm.constant(fmpq(2))
    assert abs(two.exp() - arb(2).exp()) < 1e-12
    assert two.over(LogForm.constant(fmpq(3))) == fmpq(2, 3)
    assert abs((two + LogForm.log(fmpq(5))).exp() - 5 * arb(2).exp()) < 1e-12
    assert (two - two).is_zero()


def test_certificates_are_refused_in_one_line() -> None:
    for name in ("routing", "rough"):
        point = construction_named(name).read(construction_named(name).example)
        with pytest.raises(EngineRefusal, match=f"there are no certificates for {name}"):
            certify(point, mechanism_named("softmax"), DELTA)


def test_the_command_line_takes_the_defaults(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from separatrix.cli import main; main()", "verdict", "routing"]
    words = ["linear", "n=8", "m=12", "--certificate", str(tmp_path / "none.json")]
    narrow = {**os.environ, "COLUMNS": "80"}
    done = subprocess.run([*command, *words], capture_output=True, text=True, env=narrow, check=False)
    assert done.returncode == 2
    assert "the tokens of routing are not rational" in done.stderr
    assert not list(tmp_path.iterdir())
    assert verdict("duplication", "linear", n=100, m=12).word == "blind"


@pytest.mark.parametrize("engine", ["auto", "closed", "grouped"])
@pytest.mark.parametrize(
    ("name", "spelled"),
    [("parity", "taylor:order=3"), ("parity", "linear"), ("routing", "linear"), ("routing", "power:beta=4")],
)
def test_what_rounding_leaves_of_equal_labels_is_no_margin(name: str, spelled: str, engine: str) -> None:
    n = {"parity": 64, "routing": 16}[name]
    found = verdict(name, spelled, n=n, m=12, engine=engine)
    assert str(found.outcome.margin) == "0.0"
    assert found.bits == math.inf


def test_margins_that_float64_sums_lose_come_from_the_kernel() -> None:
    """a tanh(s/2)^w, s = scale log n: 2.5e-25 beside 0.5."""
    asked: dict[str, object] = {"n": 1024, "m": 1, "scale": "0.001"}
    margin = math.tanh(0.001 * math.log(1024) / 2) ** 10
    found = verdict("parity", "softmax", **asked, engine="closed")
    assert found.outcome.engine == "closed"
    assert found.outcome.margin == pytest.approx(margin, rel=1e-12, abs=0)
    layer = map_of("parity", "softmax", of="margin", n=1024, scale="0.001:1:2", m="1:2:2").layers[0]
    assert layer.values[0, 0] == pytest.approx(margin, rel=1e-12, abs=0)
