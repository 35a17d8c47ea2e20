"""Draws that have a place each: those at one place go through the mechanism together, and nothing changes."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from benchmarks import _exhaustive_signs as exhaustive_signs
from cases import SMALL
from separatrix.constructions import Construction, construction_named
from separatrix.exact.engines import Sampling, dense, drawing
from separatrix.exact.engines.tally import Tally
from separatrix.exact.outputs.attention import attend
from separatrix.exact.outputs.tokens import draw_places, place_matters
from separatrix.mechanisms import Causality, LastQueryMode, Mechanism, examples, mechanism_named
from separatrix.mechanisms.custom import wrap

BLOCKS: dict[str, object] = {"n": 8, "d": 6, "m": 2, "a0": "0.01", "a1": "1.2", "b": "0.2", "c": "0.1"}
POINTS: dict[str, dict[str, object]] = {
    "spike": {**BLOCKS, "tau": "0.5"},
    "plain": {"n": 6, "m": 2},
    "rough": {**BLOCKS, "n": 9, "noise": "0.1", "tau": "0.3"},
    "injectivity": {**SMALL["injectivity"], "m": 2},
    "spikes": {**SMALL["spikes"], "m": 2},
}
"""Queries at every place or after all tokens, values or signs alone, D0 and D1 with equal keys or not."""
DRAWS = 30


def scores(q: Tensor, k: Tensor) -> Tensor:
    later = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).triu(1)
    return (q @ k.mT).masked_fill(later, -torch.inf)


def looks_back(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return scores(q, k).softmax(-1) @ v


def forgets(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    i = torch.arange(k.shape[-2], dtype=q.dtype)
    return (scores(q, k) + 0.3 * (i - i[:, None])).softmax(-1) @ v


def adds_up(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """A recurrence, token by token, whose weights do not sum to 1."""
    state = torch.zeros(*q.shape[:2], q.shape[-1], v.shape[-1], dtype=q.dtype)
    out = []
    for t in range(q.shape[-2]):
        state = state + k[..., t, :, None] * v[..., t, None, :]
        out.append((q[..., t, None, :] @ state)[..., 0, :])
    return torch.stack(out, dim=-2)


def first_of_the_best(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    best = scores(q, k).argmax(-1, keepdim=True)
    return v.gather(-2, best.expand(*best.shape[:-1], v.shape[-1]))


def bends(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Forgets, and is not linear in values."""
    return forgets(q, k, v * v.abs())


def fades(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Far is far to both sides, and a query alone stands at the first place."""
    i, j = torch.arange(q.shape[-2], dtype=q.dtype)[:, None], torch.arange(k.shape[-2], dtype=q.dtype)
    return (q @ k.mT - 0.3 * (i - j).abs()).softmax(-1) @ v


def point(name: str) -> Construction:
    return construction_named(name).read(POINTS[name])


def one_by_one(construction: Construction, mechanism: Mechanism, seed: int) -> tuple[Any, ...]:
    """Every draw by itself, a sign vector at a time."""
    rng = np.random.default_rng(seed)
    n, m = construction.n, construction.m
    places = draw_places(rng, n, DRAWS)
    signs = 2 * rng.integers(0, 2, (DRAWS, m, construction.signs), dtype=np.int8).astype(float) - 1
    fired, ends = np.zeros((2, DRAWS, m), dtype=bool), []
    for i, place in enumerate(places):
        probes = []
        for label in (0, 1):
            x = construction.dense(label, place, torch.float64)
            vectors = torch.from_numpy(signs[i])
            seen = [y if x.values is None else x.values @ y for y in vectors]
            tops = [
                float(attend(mechanism, x.queries[None], x.keys[None], v[None, :, None], last=x.last).max())
                for v in (*seen, x.probe)
            ]
            fired[label, i] = np.array(tops[:-1]) > construction.threshold
            probes.append(tops[-1] / construction.unit)
        ends.append((probes[0], probes[1]))
    v0, v1 = min(ends, key=lambda pair: pair[1] - pair[0])
    some = fired.any(-1)
    only = (fired[1] & ~fired[0]).mean()
    return fired[0].mean(), fired[1].mean(), only, (some[1] & ~some[0]).mean(), v1 - v0


@pytest.mark.parametrize("name", POINTS)
@pytest.mark.parametrize("mechanism", ["retention", "window:size=3", "delta", forgets, adds_up, bends, fades])
def test_draws_together_are_draws_one_by_one(
    name: str, mechanism: str | Callable[..., Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    construction = point(name)
    attends = mechanism_named(mechanism) if isinstance(mechanism, str) else wrap(mechanism)
    tokens, sampling = ((lambda label, place: construction.dense(label, place, torch.float64)), Sampling(DRAWS, 5))
    found = drawing.sample_places("dense", construction, attends, tokens, sampling)
    got = found.p0, found.p1, found.only, found.distinguish, found.margin
    assert got == pytest.approx(one_by_one(construction, attends, 5), rel=1e-9, abs=1e-9)
    monkeypatch.setattr(drawing, "CACHED", 1 << 10)
    fewer = drawing.sample_places("dense", construction, attends, tokens, sampling)
    assert fewer.evidence == found.evidence


@pytest.mark.parametrize("seed", [0, 1, 7])
def test_draws_that_share_a_place_are_those_of_the_seed(seed: int) -> None:
    """The place is drawn first, then all signs, from one generator; in however many shares they are read."""
    construction, mechanism = point("spike"), mechanism_named("softmax")
    found = dense.solve(construction, mechanism, Sampling(DRAWS, seed))
    rng = np.random.default_rng(seed)
    (place,) = draw_places(rng, construction.n, 1)
    signs = 2 * rng.integers(0, 2, (DRAWS * construction.m, construction.signs), dtype=np.int8).astype(float) - 1
    fired = []
    for label in (0, 1):
        x = construction.dense(label, place, torch.float64)
        assert x.values is not None
        out = attend(mechanism, x.queries[None], x.keys[None], x.values[None], last=x.last)[0]
        fired.append(((out @ torch.from_numpy(signs).mT).amax(0) > construction.threshold).reshape(DRAWS, -1).numpy())
    d0, d1 = fired
    assert (found.p0, found.p1, found.only) == (d0.mean(), d1.mean(), (d1 & ~d0).mean())
    assert (found.fire_d0, found.fire_d1) == (d0.any(1).mean(), d1.any(1).mean())
    assert found.distinguish == (d1.any(1) & ~d0.any(1)).mean()


def test_so_many_signs_are_held_at_once_and_all_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """With little memory the same draws are read in more parts."""
    construction, mechanism = point("rough"), wrap(forgets)
    whole = dense.solve(construction, mechanism, Sampling(DRAWS))
    shares = [5] * 6
    rng = np.random.default_rng(0)
    monkeypatch.setattr(drawing, "ELEMENTS", 10 * construction.m * construction.signs)
    assert [len(places) for places, _ in drawing._draw_batches(rng, construction, shares)] == [10, 10, 10]
    assert dense.solve(construction, mechanism, Sampling(DRAWS)) == whole


@pytest.mark.parametrize(("attends", "linear"), [(forgets, True), (bends, False)])
def test_each_place_is_attended_once(attends: Callable[..., Tensor], linear: bool) -> None:
    """Where values may not be put side by side, each draw goes through by itself."""
    construction, sets = point("rough"), []

    def counts(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        sets.append(len(q))
        return attends(q, k, v)

    mechanism = wrap(counts)
    assert mechanism.linear_in_values is linear
    assert place_matters(construction, mechanism)
    dense.solve(construction, mechanism, Sampling(1))
    sets.clear()
    dense.solve(construction, mechanism, Sampling(DRAWS, 5))
    distinct = len(set(draw_places(np.random.default_rng(5), construction.n, DRAWS)))
    assert distinct == construction.n
    assert sum(sets) == 2 * (distinct if linear else DRAWS)


@pytest.mark.parametrize(
    ("hits_each_look", "costly", "draws"),
    [
        ((25, 25, 49, 100, 200), True, 200),
        ((25, 25, 49, 100, 200), False, 400),
        ((25, 25, 50, 100, 200), True, 400),
        ((0, 0, 0, 0, 0), True, 400),
        ((0, 0, 1, 0, 0), True, 200),
        ((0, 2, 1, 3, 3), True, 400),
        ((12, 12, 0, 0, 0), True, 25),
    ],
    ids=["one miss", "one miss, cheap", "no miss", "no hit", "one hit", "a few hits", "half"],
)
def test_draws_that_cannot_decide_are_not_made(hits_each_look: tuple[int, ...], costly: bool, draws: int) -> None:
    """One miss is too many for 0.99 with 400 draws; six hits in 200 may still come to be more than 0.01."""
    tally, looks = Tally(), iter(hits_each_look)
    sampling = Sampling(400, decide=(Fraction(1, 100), Fraction(99, 100)))
    for more in drawing._until_decided(sampling, tally, costly):
        hits = next(looks)
        tally.draws, tally.sure, tally.maybe = tally.draws + more, tally.sure + hits, tally.maybe + hits
    assert tally.draws == draws


def test_the_order_before_a_query_is_looked_at_where_it_counts() -> None:
    """A query after all tokens does not mind their order, or it does; ties are tried, too."""
    free = [wrap(each) for each in (looks_back, adds_up)]
    minding = [wrap(each) for each in (forgets, first_of_the_best)]
    for mechanism in (*free, *minding):
        assert mechanism.causality is Causality.ALWAYS
        assert not mechanism.order_free(100, 2)
        assert [mechanism.past_order_free(n, 2) for n in (2, 100)] == [mechanism in free] * 2
    assert not free[0].past_order_free(10**6, 2)
    for name in ("injectivity", "spikes"):
        assert [place_matters(point(name), each) for each in (*free, *minding)] == [False] * 2 + [True] * 2
    assert all(place_matters(point(name), free[0]) for name in ("spike", "plain", "rough"))


def fades_from_the_end(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The last query stands beside the last key, however many there are."""
    i = torch.arange(k.shape[-2] - q.shape[-2], k.shape[-2], dtype=q.dtype)[:, None]
    return (q @ k.mT - 0.3 * (i - torch.arange(k.shape[-2], dtype=q.dtype)).abs()).softmax(-1) @ v


def fades_to_one_side(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    i, j = torch.arange(q.shape[-2], dtype=q.dtype)[:, None], torch.arange(k.shape[-2], dtype=q.dtype)
    return (q @ k.mT - 0.3 * (i - j).clamp(min=0)).softmax(-1) @ v


def minds_queries(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return fades_from_the_end(q + 0.1 * q.mean(-2, keepdim=True), k, v * (1 + 1e-3 * q.shape[-2]))


@pytest.mark.parametrize(
    ("attends", "asked"),
    [
        (fades, LastQueryMode.REVERSED),
        (fades_from_the_end, LastQueryMode.ALONE),
        (fades_to_one_side, LastQueryMode.AFTER_OTHERS),
        (minds_queries, LastQueryMode.AFTER_OTHERS),
        (looks_back, LastQueryMode.AFTER_OTHERS),
    ],
)
def test_the_last_query_is_asked_alone_where_that_gives_the_same(
    attends: Callable[..., Tensor], asked: LastQueryMode
) -> None:
    mechanism = wrap(attends)
    assert mechanism.last_query_mode(40, 4) is asked
    drawn = torch.Generator().manual_seed(0)
    q, k, v = (torch.rand(2, n, 4, generator=drawn, dtype=torch.float64) for n in (3, 40, 40))
    found = attend(mechanism, q, k, v, last=True)
    for i in range(3):
        everywhere = q[:, i : i + 1].expand(-1, 40, -1)
        whole = attends(everywhere[:, None], k[:, None], v[:, None])[:, 0, -1]
        assert torch.allclose(found[:, i], whole, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("mechanism", [each for each in examples() if each.takes_first], ids=str)
def test_the_last_query_told_its_place_sees_what_it_sees_after_others(mechanism: Mechanism) -> None:
    assert mechanism.last_query_mode(150, 4) is LastQueryMode.AT_POSITION
    drawn = torch.Generator().manual_seed(0)
    q, k, v = (torch.rand(2, n, 4, generator=drawn, dtype=torch.float64) for n in (3, 150, 150))
    found = attend(mechanism, q, k, v, last=True)
    for i in range(3):
        everywhere = attend(mechanism, q[:, i : i + 1].expand(-1, 150, -1), k, v)[:, -1]
        assert torch.allclose(found[:, i], everywhere, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["injectivity", "spikes"])
@pytest.mark.parametrize("attends", [looks_back, adds_up])
def test_one_place_stands_for_all_where_order_is_nothing(name: str, attends: Callable[..., Tensor]) -> None:
    """What every place and every sign vector give lies in the interval of draws that share a place."""
    construction, mechanism = point(name), wrap(attends)
    truth, same = exhaustive_signs.distinguish(construction, mechanism)
    found = dense.solve(construction, mechanism, Sampling(400, confidence=0.999))
    assert truth == same
    assert found.interval[0] <= truth <= found.interval[1]
    assert "its own position" not in found.evidence


def test_who_holds_scores_is_seen() -> None:
    def raises(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        raise RuntimeError

    assert [wrap(each).holds_scores for each in (looks_back, adds_up, raises)] == [True, False, True]
    assert [mechanism_named(each).holds_scores for each in ("retention", "softmax")] == [False, False]
