"""Where the special token stands: what is declared of it, and intervals that hold over all places."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch
from torch import Tensor

from benchmarks import _exhaustive_signs as exhaustive_signs
from cases import SMALL
from separatrix.analysis.laws.margins import margin
from separatrix.constructions import CONSTRUCTIONS, Construction, Exchangeable, construction_named
from separatrix.exact.engines import EngineRefusal, Sampling, certified, dense, grouped, solve
from separatrix.exact.outputs.floats import FloatOutputs
from separatrix.exact.outputs.strongest import draw_special_places
from separatrix.exact.outputs.tokens import draw_places, place_matters
from separatrix.mechanisms import Mechanism, examples, mechanism_named

BLOCKS: dict[str, object] = {"n": 8, "d": 6, "m": 2, "a0": "0.01", "a1": "1.2", "b": "0.8", "c": "0.1"}
POINTS: list[tuple[str, dict[str, object]]] = [
    *SMALL.items(),
    ("spike", {**BLOCKS, "form": "ones"}),
    ("spike", {**BLOCKS, "form": "identity"}),
    ("cross", {**BLOCKS, "r_Q": 1}),
    ("location", {**BLOCKS}),
    ("plain", {"n": 6, "m": 2}),
    ("plain", {"n": 6, "m": 2, "spread": "0.4"}),
    ("rough", {**BLOCKS, "n": 9, "noise": "0.1"}),
    ("rough", {**BLOCKS, "n": 9}),
]
"""Every construction, at each of what it can declare."""


def at(name: str, values: dict[str, object]) -> Construction:
    return construction_named(name).read(values)


def distribution(point: Construction, mechanism: Mechanism, place: int) -> Tensor:
    """The peaks of D0 and D1 over all sign vectors, in an order of their own."""
    pairs = exhaustive_signs.peaks(point, mechanism, place).T.numpy()
    near = pairs.round(7)
    return torch.from_numpy(pairs[np.lexsort((near[:, 1], near[:, 0]))])


def places_are_alike(point: Construction, mechanism: Mechanism) -> bool:
    first, *others = (distribution(point, mechanism, place) for place in range(point.n))
    return all(torch.allclose(first, each, rtol=1e-6, atol=1e-6) for each in others)


def test_every_construction_is_here() -> None:
    assert {name for name, _ in POINTS} == set(CONSTRUCTIONS)


@pytest.mark.parametrize(("name", "values"), POINTS, ids=lambda each: str(each)[:60])
def test_what_a_construction_declares_of_places_is_so(name: str, values: dict[str, object]) -> None:
    """Over all sign vectors the pair of peaks is distributed alike at all places, or it is not."""
    point = at(name, values)
    by_products, by_coordinates = mechanism_named("softmax"), mechanism_named("favor:features=8")
    declared = point.exchangeable
    assert places_are_alike(point, by_products) is (declared is not Exchangeable.NOT)
    if declared is not Exchangeable.NOT:
        assert places_are_alike(point, by_coordinates) is (declared is Exchangeable.TOKENS)


@pytest.mark.parametrize("mechanism", examples(), ids=lambda each: each.spelled)
def test_what_a_mechanism_declares_of_coordinates_is_so(mechanism: Mechanism) -> None:
    q, k, v = (torch.rand(1, 1, 9, 5, generator=torch.Generator().manual_seed(s)).double() for s in range(3))
    order = torch.tensor([3, 0, 4, 2, 1])
    causal = mechanism.causality.name == "ALWAYS"
    whole, shuffled = (mechanism(q, k, v, causal=causal), mechanism(q[..., order], k[..., order], v, causal=causal))
    if mechanism.coordinate_free:
        torch.testing.assert_close(whole, shuffled)
    elif mechanism.name in ("favor", "rff", "dpfp"):
        assert not torch.allclose(whole, shuffled, rtol=1e-3)


def test_places_are_drawn_evenly() -> None:
    rng = np.random.default_rng(0)
    for n in (7, 10**30):
        counts = np.bincount([place * 7 // n for place in draw_places(rng, n, 7000)], minlength=7)
        assert counts.sum() == 7000
        assert (abs(counts - 1000) < 120).all()


ROUGH = (
    "rough",
    {"n": 40, "d": 7, "m": 30, "a0": "0.01", "a1": "0.6", "b": "0.05", "c": "0.1", "noise": "0.03", "seed": 3},
)
SPREAD = ("plain", {"n": 8, "m": 4, "base": 1000, "spread": 998, "peak": "0.3", "tau": "0.9"})
COLUMNS = ("spike", {**BLOCKS, "m": 4, "tau": "0.5", "form": "identity"})
DECIDE = (Fraction(1, 100), Fraction(99, 100))
COVERED: list[tuple[str, dict[str, object], str, str, int, tuple[Fraction, ...]]] = [
    (*ROUGH, "softmax", "dense", 60, ()),
    (*ROUGH, "softmax", "dense", 400, DECIDE),
    (*SPREAD, "softmax", "dense", 200, ()),
    (*SPREAD, "softmax", "dense", 400, DECIDE),
    (*COLUMNS, "favor:features=8", "dense", 60, ()),
    (*COLUMNS, "favor:features=8", "grouped", 150, ()),
    (*COLUMNS, "softmax", "dense", 60, ()),
    (*ROUGH, "rff:features=8", "dense", 60, ()),
]
SEEDS = {400: 60, 150: 60}


@pytest.mark.parametrize(("name", "values", "spelled", "engine", "draws", "decide"), COVERED)
def test_intervals_cover_the_truth_over_all_places(
    name: str, values: dict[str, object], spelled: str, engine: str, draws: int, decide: tuple[Fraction, ...]
) -> None:
    """With every sign vector tried at every place for the truth, 95% intervals cover it in 93% or more."""
    point, mechanism = at(name, values), mechanism_named(spelled)
    truth, same = exhaustive_signs.distinguish(point, mechanism)
    assert truth == same
    assert 0.01 < truth < 0.99
    seeds = SEEDS.get(draws, 150)
    found = [solve(point, mechanism, engine, Sampling(draws, seed, decide=decide)) for seed in range(seeds)]
    covered = sum(each.interval[0] <= truth <= each.interval[1] for each in found)
    assert covered >= 0.93 * seeds
    shared = not place_matters(point, mechanism)
    assert all(("its own position" in each.evidence) is not shared for each in found)


def test_the_reported_point() -> None:
    """Few places once made this `blind`, in [0, 0.0018]; over all places P is 0.342."""
    point, softmax = at(*ROUGH), mechanism_named("softmax")
    found = dense.solve(point, softmax, Sampling(2000, 1))
    assert exhaustive_signs.distinguish(point, softmax)[0] == pytest.approx(0.34238, abs=1e-5)
    assert found.interval[0] <= 0.34238 <= found.interval[1]


def test_groups_follow_the_spike_where_coordinates_tell() -> None:
    """Counted tokens are those of literal tokens, wherever the spike is."""
    point = at(*COLUMNS)
    for place in range(point.n):
        tokens = point.dense(1, place, torch.float64), point.token_groups(1, torch.float64, place)
        literal, counted = ([tuple(row.tolist()) for row in each.keys] for each in tokens)
        assert tokens[1].counts is not None
        repeated = [
            row for row, count in zip(counted, tokens[1].counts.tolist(), strict=True) for _ in range(int(count))
        ]
        assert sorted(repeated) == sorted(literal)


def test_the_margin_is_the_least_at_the_places_drawn() -> None:
    """D0 and D1 are compared at one place, not each at its own best."""
    point, softmax = at(*ROUGH), mechanism_named("softmax")
    ends = [exhaustive_signs.peaks(point, softmax, place)[:, 0] / point.unit for place in range(point.n)]
    found = dense.solve(point, softmax, Sampling(400))
    v0, v1 = min(((float(v0), float(v1)) for v0, v1 in ends), key=lambda pair: pair[1] - pair[0])
    assert (found.v0, found.v1, found.margin) == pytest.approx((v0, v1, v1 - v0))


@pytest.mark.parametrize("engine", ["dense", "grouped"])
def test_ties_among_large_numbers_are_too_close_to_call(engine: str) -> None:
    """b and c are 10^4 times tau and cancel down to it: rounding was read as firing, and P was missed."""
    large = {"n": 16, "m": 1, "a0": 0, "a1": "1/3", "b": "100000/7", "c": "500021/70", "tau": "0.3"}
    point, linear = at("spike", {**BLOCKS, **large}), mechanism_named("linear")
    truth = certified.solve(point, linear).distinguish
    found = solve(point, linear, engine, Sampling(draws=500))
    assert truth == 0.0625
    assert "too close to call" in found.evidence
    assert found.interval[0] <= truth <= found.interval[1]


def test_groups_without_counts_are_refused() -> None:
    with pytest.raises(EngineRefusal, match="no two tokens are equal"):
        grouped.solve(at(*ROUGH), mechanism_named("softmax"))


@pytest.mark.parametrize(
    ("name", "values", "spelled", "engine"),
    [(*ROUGH, "softmax", "dense"), (*SPREAD, "softmax", "dense"), (*COLUMNS, "favor:features=8", "grouped")],
)
def test_margins_without_draws_are_the_least_at_a_few_places(
    name: str, values: dict[str, object], spelled: str, engine: str
) -> None:
    point, mechanism = at(name, values), mechanism_named(spelled)
    ends = []
    for place in (0, point.n // 2, point.n - 1):
        tokens = [point.dense(label, place, torch.float64) for label in (0, 1)]
        seen = [x.probe[None, None, :, None] for x in tokens]
        rows = [mechanism(x.queries[None, None], x.keys[None, None], v) for x, v in zip(tokens, seen, strict=True)]
        ends.append(float(rows[1].max() - rows[0].max()) / point.unit)
    assert len({round(each, 9) for each in ends}) > 1
    found = margin(point, mechanism)
    assert (found.engine, found.value) == (engine, pytest.approx(min(ends)))


def test_readers_look_at_several_places_where_they_differ() -> None:
    softmax = mechanism_named("softmax")
    for (name, values), differ in ((ROUGH, True), (COLUMNS, False)):
        point = at(name, values)
        assert (len(draw_special_places(point, softmax)) > 1) is differ
    found = FloatOutputs(at(*ROUGH), softmax, 5)
    assert found.evidence == "float64 on all tokens with the special one at 5, the worst position tried"
    assert "worst position" in FloatOutputs(at(*COLUMNS), mechanism_named("favor:features=8"), 5).evidence
