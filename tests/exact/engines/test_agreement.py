"""Random constructions and mechanisms: all engines that apply give one answer."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from separatrix.constructions import CONSTRUCTIONS, Construction
from separatrix.exact.engines import ENGINES, EngineRefusal, Outcome, Sampling, solve
from separatrix.mechanisms import Mechanism, ScoreMechanism, examples, mechanism_named

SAMPLING = Sampling(draws=200, confidence=0.9999)
EXTRA = ("identity-features:normalised=no", "topk:k=1", "power:beta=1", "causal-linear:normalised=yes")
MECHANISMS: dict[str, Mechanism] = {each.spelled: each for each in (*examples(), *map(mechanism_named, EXTRA))}
KERNELS = [name for name, each in MECHANISMS.items() if isinstance(each, ScoreMechanism)]
"""Those that can be certified are drawn half of the time."""
ROUNDING = 1e-12


def tenths(low: int, high: int) -> st.SearchStrategy[Fraction]:
    return st.integers(low, high).map(lambda k: Fraction(k, 10))


BLOCKS: dict[str, st.SearchStrategy[object]] = {
    "a0": tenths(0, 3),
    "a1": tenths(5, 20),
    "b": tenths(1, 8),
    "c": tenths(1, 5),
    "tau": st.none() | tenths(1, 9),
}
SPIKED: dict[str, st.SearchStrategy[object]] = {"a0": tenths(0, 4), "a1": tenths(5, 20)}
AROUND: dict[str, dict[str, st.SearchStrategy[object]]] = {
    "spike": {**BLOCKS, "form": st.sampled_from(["ones", "identity"])},
    "plain": {"peak": tenths(5, 40), "base": tenths(12, 25), "spread": st.just(0) | st.just(Fraction(1, 10))},
    "cross": {**BLOCKS, "r_Q": tenths(2, 20)},
    "injectivity": {"query": tenths(2, 15), "factor": tenths(2, 40), "gap": tenths(0, 20)},
    "duplication": {"r0": st.integers(1, 3), "r1": st.integers(1, 4), "tau": tenths(5, 30)},
    "routing": {"scale": tenths(5, 100), "a": tenths(2, 20), "b": tenths(0, 9)},
    "parity": {"scale": tenths(2, 20), "a": tenths(2, 20), "b": tenths(0, 9)},
    "dispersion": {**SPIKED, "gap": tenths(0, 50)},
    "critical": {**SPIKED, "gamma": tenths(2, 30), "rho": tenths(0, 10)},
    "averaging": {"q": st.integers(1, 3), "gap": tenths(0, 25), "tau": tenths(1, 9)},
    "location": {**BLOCKS, "gap": tenths(0, 25)},
    "regression": {**SPIKED, "tau": tenths(5, 40)},
    "recall": {"width": st.sampled_from([6, 12]), "scale": tenths(5, 60), "tau": tenths(1, 9)},
    "majority": {"noise": tenths(0, 10), "groups": st.integers(1, 3), "gap": tenths(0, 25)},
    "spikes": {"k": st.integers(2, 4), **SPIKED, "b": tenths(1, 9)},
    "level": {"levels": st.integers(3, 6), "at": st.integers(0, 1), "gap": tenths(0, 25)},
    "rough": {**BLOCKS, "spikes": st.integers(1, 3), "noise": st.sampled_from([0, Fraction(1, 50)])},
}
"""Parameters around the example of each construction."""
LENGTHS: dict[str, st.SearchStrategy[int]] = {
    "routing": st.sampled_from([4, 6, 8]),
    "parity": st.sampled_from([2, 4, 8]),
    "regression": st.sampled_from([4, 8, 12]),
    "averaging": st.integers(6, 14),
    "recall": st.integers(2, 9),
    **dict.fromkeys(("spike", "cross", "location"), st.sampled_from([4, 8, 12])),
}
"""Where not every small n will do; blocks are 4, with d = 6."""
WIDTHS: dict[str, object] = dict.fromkeys(("spike", "cross", "location", "rough"), 6)


@st.composite
def points(draw: st.DrawFn) -> Construction:
    """A small point near the example of any construction."""
    name = draw(st.sampled_from(list(CONSTRUCTIONS)))
    kind = CONSTRUCTIONS[name]
    drawn = {key: draw(strategy) for key, strategy in AROUND[name].items()}
    chosen = {key: value for key, value in drawn.items() if value is not None}
    if name in WIDTHS:
        chosen["d"] = WIDTHS[name]
    n = draw(LENGTHS.get(name, st.integers(4, 14)))
    return kind.read({**kind.example, **chosen, "n": n, "m": draw(st.integers(1, 6))})


def test_every_construction_is_drawn() -> None:
    assert AROUND.keys() == CONSTRUCTIONS.keys()


def answers(point: Construction, mechanism: Mechanism) -> dict[str, Outcome]:
    """What each engine that applies says."""
    found = {}
    for engine in [*ENGINES][1:]:
        with suppress(EngineRefusal):
            found[engine] = solve(point, mechanism, engine, SAMPLING if ENGINES[engine].draws else None)
    return found


@settings(
    max_examples=240,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(point=points(), spelled=st.sampled_from(KERNELS) | st.sampled_from(list(MECHANISMS)))
@example(point=CONSTRUCTIONS["routing"].read({"n": 8, "m": 3, "b": 0}), spelled="elu")
def test_all_engines_that_apply_agree(point: Construction, spelled: str) -> None:
    found = answers(point, MECHANISMS[spelled])
    _counted_agree(found)
    _sampled_agree(found)


def _counted_agree(found: dict[str, Outcome]) -> None:
    """Certified and exact are the same number, or neither decides."""
    if "certified" not in found:
        return
    low, high = found["certified"].interval
    assert (low == high) == ("closed" in found)
    if low == high:
        truth, floats = found["certified"], found["closed"]
        for name in ("distinguish", "p0", "p1", "only", "fire_d0", "fire_d1"):
            assert float(getattr(floats, name)) == pytest.approx(float(getattr(truth, name)), abs=ROUNDING)
        _same_margins(truth, floats, ROUNDING)


def _sampled_agree(found: dict[str, Outcome]) -> None:
    """Intervals of sampled answers meet each other and hold the counted one."""
    for one in found.values():
        for other in found.values():
            assert one.interval[0] <= other.interval[1] + ROUNDING
            _same_margins(one, other, 1e-9)


def _same_margins(one: Outcome, other: Outcome, within: float) -> None:
    size = within * (abs(one.v0) + abs(one.v1) + 1)
    assert abs(one.v0 - other.v0) <= size
    assert abs(one.margin - other.margin) <= size


def test_a_disagreement_is_noticed() -> None:
    point, mechanism = CONSTRUCTIONS["dispersion"].read({"n": 10, "m": 3}), mechanism_named("softmax")
    found = answers(point, mechanism)
    assert set(found) == set(ENGINES) - {"auto"}
    other = solve(CONSTRUCTIONS["dispersion"].read({"n": 1000, "m": 3}), mechanism)
    for engine in [*ENGINES][1:]:
        with pytest.raises(AssertionError):
            _sampled_agree({**found, engine: other})
    with pytest.raises(AssertionError):
        _counted_agree({**found, "closed": other})


MISSING: dict[str, set[str]] = {"routing": {"certified"}, "rough": {"certified", "closed", "grouped"}}
"""Cosines are not rational, and noise has no closed form and no groups."""


@pytest.mark.parametrize("name", CONSTRUCTIONS)
def test_all_engines_are_compared_where_they_should_apply(name: str) -> None:
    kind = CONSTRUCTIONS[name]
    small: dict[str, object] = {**kind.example, "n": 8, "m": 2}
    small |= {"d": 6} if name in WIDTHS else {}
    small |= {"q": 2} if name == "averaging" else {}
    found = answers(kind.read(small), mechanism_named("softmax"))
    assert found.keys() == set(ENGINES) - {"auto"} - MISSING.get(name, set())
