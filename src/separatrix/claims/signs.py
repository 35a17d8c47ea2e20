"""Theory 3.2, exact probabilities: the sign states against all sign vectors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np

from separatrix.claims import _literal as literal
from separatrix.claims._base import BASE, Finding, Point, Points, Setting, claim
from separatrix.claims._tools import on_grid, relative_error, spike
from separatrix.constructions.spike import Spike
from separatrix.core.tensors import one_thread
from separatrix.exact.engines import Sampling, certified, dense
from separatrix.exact.engines.tally import binomial_interval
from separatrix.mechanisms import Linear, Mechanism, Power, Softmax

TIE: Setting = {"n": 16, "d": 6, "a0": "0.05", "a1": "0.7", "b": "0.55", "c": "0.3", "form": "identity"}
SMALL: Setting = {"n": 12, "d": 8, "a0": "0.05", "a1": "0.9", "b": "0.55", "c": "0.3", "form": "ones"}
ENUMERATED: tuple[tuple[Mechanism, Setting], ...] = (
    (Linear(), SMALL),
    (Linear(), {**SMALL, "n": 18, "form": "identity"}),
    (Linear(), TIE),
    (Power(beta=3), {**SMALL, "n": 10, "d": 7}),
    (Softmax(), {**SMALL, "n": 24, "d": 10}),
    (Softmax(), {**SMALL, "n": 16, "d": 10, "a1": "1.2", "form": "identity"}),
    (Softmax(), {**SMALL, "n": 7, "d": 9, "b": "0.7", "a1": "0.8"}),
)
ROW_KINDS = {"ones": ("spike", "rest"), "identity": ("spike", "mate", "other +", "other -")}
"""The kinds of query rows in each form; rows of other blocks differ by the sign of their own block."""
PINNED: tuple[tuple[Mechanism, Setting], ...] = tuple(
    (mechanism, {**SMALL, "n": n, "d": d, "a0": "0.4", "b": "0.3", "c": "0.8", "form": form})
    for form in ROW_KINDS
    for mechanism, n, d in ((Linear(), 8, 4), (Power(beta=2), 18, 5), (Softmax(), 18, 5), (Softmax(), 4, 6))
)
"""Points with c > b and a0 > b, where every kind of row has the largest pre-activation for some signs, above
0. The last has one token in a block and so no mates."""
Vectors = Sequence[Sequence[Any]]
APART, BESIDE = 1e-5, Fraction(1, 10**6)
"""Relative: levels closer than this are left out, and how far beside a level tau is put."""
AWAY = 1e-9
"""A float64 pre-activation this far from tau, relative to tau, is on the side it says."""


@dataclass(frozen=True)
class Enumeration:
    """The pre-activations of every sign vector on dense tokens."""

    peaks: tuple[list[Any], list[Any]]
    """The largest pre-activation over the rows for each sign vector, on D0 and on D1."""
    tau: Any
    """The usual threshold."""
    deciding_kinds: frozenset[str]
    """The kinds of rows that on both labels have the largest pre-activation for some signs, above 0."""
    closest: float
    """The least distance of a pre-activation from tau, relative to tau."""
    is_lawful: bool
    """Whether the pre-activation is the same for all vectors of a triple and a P, and grows with P."""

    @property
    def fires(self) -> tuple[list[bool], list[bool]]:
        """Whether each sign vector fires, on D0 and on D1."""
        on_d0, on_d1 = ([peak > self.tau for peak in peaks] for peaks in self.peaks)
        return on_d0, on_d1

    @property
    def probabilities(self) -> tuple[Fraction, Fraction, Fraction]:
        """P(fires on D0), on D1, and on D1 only."""
        total, (on_d0, on_d1) = len(self.peaks[0]), self.fires
        only = sum(b and not a for a, b in zip(on_d0, on_d1, strict=True))
        return Fraction(sum(on_d0), total), Fraction(sum(on_d1), total), Fraction(only, total)

    def thresholds(self) -> list[Fraction]:
        """Return values just below and just above every positive pre-activation with no other close to it.

        Together they pin every pre-activation: one that is off by more than BESIDE changes a count.
        """
        levels = sorted({*self.peaks[0], *self.peaks[1]})
        gaps = [math.inf, *(float((b - a) / abs(b)) for a, b in pairwise(levels) if b), math.inf]
        clear = [
            level
            for level, below, above in zip(levels, gaps, gaps[1:], strict=False)
            if level > 0 and min(below, above) > APART
        ]
        return [Fraction(level) * (1 + side * BESIDE) for level in clear for side in (-1, 1)]

    def float_engine_error(self, mechanism: Mechanism, setting: Setting) -> float:
        """Return the largest error of the float64 engine's p0, p1 and `only` at all `thresholds()`.

        The expected values are counts over all sign vectors. Thresholds lie far enough from every
        pre-activation for float64 comparisons to be right, and counts over 2^d are exact in float64, so
        correct code has an error of exactly 0.
        """
        taus = self.thresholds()
        levels = np.array(self.peaks, dtype=float)[:, :, None]
        on_d0, on_d1 = levels > np.array(taus, dtype=float)
        expected = np.array([on_d0.mean(0), on_d1.mean(0), (on_d1 & ~on_d0).mean(0)])
        grid = on_grid(mechanism, {"m": 1, **setting}, tau=taus)
        return float(np.abs(np.array([grid.p0, grid.p1, grid.only]) - expected).max())


def enumerate_signs(construction: Spike, mechanism: Mechanism, row: int = 0) -> Enumeration:
    """Try every sign vector with the spike in `row`: in rationals, and for softmax in float64."""
    if isinstance(mechanism, Softmax):
        n = float(construction.n)
        return _enumerate(construction, row, float, lambda z: n**z, 1e-12)
    beta = int(mechanism.parameters.beta) if isinstance(mechanism, Power) else 1
    return _enumerate(construction, row, Fraction, lambda z: z**beta, 0.0)


def _enumerate(
    construction: Spike,
    row: int,
    number: Callable[[Fraction], literal.Scalar],
    kernel: Callable[[literal.Scalar], literal.Scalar],
    rounding: float,
) -> Enumeration:
    n, d, form, size = construction.n, construction.d, construction.form, construction.block_size
    b, c = number(construction.b), number(construction.c)
    signs = literal.sign_vectors(d)
    classes = [literal.sign_class(y, row // size) for y in signs]
    tau, closest, is_lawful = number(construction.c + Fraction(1, 10)), math.inf, True
    label_peaks, deciding = [], []
    for a in (construction.a0, construction.a1):
        rows = literal.outputs(literal.spike_matrix(n, d, number(a), b, c, row), form, kernel)
        peaks = literal.peaks(rows, signs)
        label_peaks.append(peaks)
        deciding.append(_deciding_kinds(rows, signs, row, size, form))
        closest = min(closest, *(abs(float(peak - tau)) / float(tau) for peak in peaks))
        by_class = dict(zip(classes, peaks, strict=True))
        is_lawful &= all(abs(by_class[key] - x) <= rounding for key, x in zip(classes, peaks, strict=True))
        is_lawful &= all(
            by_class[y_1, y_k, y_d, plus] < by_class[y_1, y_k, y_d, plus + 1]
            for y_1, y_k, y_d, plus in by_class
            if plus < d - 3
        )
    d0, d1 = label_peaks
    return Enumeration((d0, d1), tau, deciding[0] & deciding[1], closest, is_lawful)


def _deciding_kinds(rows: Vectors, signs: Vectors, spike: int, size: int, form: str) -> frozenset[str]:
    """Return the kinds of rows that, for some signs, exceed 0 and every row of another kind."""
    kinds = set()
    # Most rows are equal: one of each is enough.
    distinct = {tuple(row): j for j, row in enumerate(rows)}
    for y in signs:
        best: dict[str, Any] = {}
        for row, j in distinct.items():
            kind = _row_kind(j, y, spike, size, form)
            value = sum(x * s for x, s in zip(row, y, strict=True))
            best[kind] = max(best.get(kind, value), value)
        (kind, top), *runners_up = sorted(best.items(), key=lambda item: float(item[1]), reverse=True)
        if top > 0 and (not runners_up or float(top - runners_up[0][1]) > AWAY):
            kinds.add(kind)
    return frozenset(kinds)


def _row_kind(j: int, y: Sequence[int], spike: int, size: int, form: str) -> str:
    if j == spike:
        return "spike"
    if form == "ones":
        return "rest"
    return "mate" if j // size == spike // size else f"other {'+' if y[1 + j // size] > 0 else '-'}"


@claim("exact-probability", "3.2", "ours")
def exact_probability() -> Finding:
    """A pre-activation depends on the signs only through (y_1, y_k3, y_d) and P, and grows with P; so p0, p1
    and q are exact fractions k/2^d.

    Certified fractions against all 2^d sign vectors; and with tau just below and just above every
    pre-activation there is, so that each kind of row decides some of the counts. The float64 engine is
    compared with the same counts at every such tau.
    """
    points = Points(probability_point(*case) for case in ENUMERATED)
    points += [pinned_point(*case) for case in PINNED]
    vectors, taus = sum(points.sign_vectors), sum(points.thresholds)
    return points.conclude(
        f"p0, p1 and P(fires on D1 only) equal the counts over all 2^d sign vectors at {len(ENUMERATED)} "
        f"settings, {vectors:.0f} vectors in all, and for {taus:.0f} tau beside the pre-activations of "
        f"{len(PINNED)} more, in which every kind of row decides; the float64 engine is off by "
        f"{points.float_error.max:.1g} at most",
        f"equal fractions; ties at {points.closest_to_tau.count(0)} of {len(ENUMERATED)} settings",
    )


def pinned_point(mechanism: Mechanism, setting: Setting) -> Point:
    """Check equal fractions for every tau beside a pre-activation, and that every kind of row decides."""
    construction = spike(setting)
    enumeration = enumerate_signs(construction, mechanism, construction.n - 1)
    kinds = set(ROW_KINDS[setting["form"]]) - ({"mate"} if construction.block_size == 1 else set())
    if setting["form"] == "ones" and not isinstance(mechanism, Softmax):
        # A power of the logit gives all rows the same weights, so no kind of row is ahead of the others.
        kinds = set()
    wrong = sum(1 for _ in wrong_thresholds(enumeration, mechanism, setting))
    float_error, deciding = enumeration.float_engine_error(mechanism, setting), enumeration.deciding_kinds
    holds = not wrong and float_error == 0 and deciding >= kinds and enumeration.is_lawful
    results = {"thresholds": len(enumeration.thresholds()), "wrong": wrong, "float_error": float_error}
    return Point({**setting, "mechanism": mechanism.spelled}, holds, **results, deciding=", ".join(sorted(deciding)))


def wrong_thresholds(enumeration: Enumeration, mechanism: Mechanism, setting: Setting) -> Iterator[Fraction]:
    """Yield every tau beside a pre-activation at which certified fractions are not the enumerated ones."""
    for tau in enumeration.thresholds():
        count = certified.count(spike(setting, tau=tau), mechanism)
        neuron = (count.low.p0, count.low.p1, count.low.only)
        if not count.is_decided or neuron != replace(enumeration, tau=tau).probabilities:
            yield tau


def probability_point(mechanism: Mechanism, setting: Setting) -> Point:
    """Check equal fractions, one value a class, growth with P; and that no float64 tie is left open."""
    construction = spike(setting)
    enumeration = enumerate_signs(construction, mechanism, construction.n // 2)
    count = certified.count(construction, mechanism)
    neuron = (count.low.p0, count.low.p1, count.low.only)
    is_decided = count.is_decided and (not isinstance(mechanism, Softmax) or enumeration.closest > AWAY)
    float_error = enumeration.float_engine_error(mechanism, setting)
    is_exact = enumeration.probabilities == neuron and float_error == 0
    counts, fractions = (", ".join(map(str, p)) for p in (enumeration.probabilities, neuron))
    results: Setting = {"enumerated": counts, "certified": fractions, "float_error": float_error}
    results |= {"sign_vectors": len(enumeration.peaks[0]), "closest_to_tau": enumeration.closest}
    parameters = {**setting, "mechanism": mechanism.spelled}
    return Point(parameters, is_decided and enumeration.is_lawful and is_exact, **results)


SIGN_DRAWS = 2000
MAX_SD_AWAY = 4
"""Standard deviations that a sampled probability may be away from the formula."""
HITS, INTERVAL_DRAWS = (0, 3, 197, 200), 200
"""The cases for which the ends of binomial intervals are checked."""
TUPLES: tuple[tuple[Mechanism, Setting], ...] = (
    (Linear(), {**SMALL, "n": 8, "d": 6, "m": 2}),
    (Linear(), {**TIE, "m": 2}),
    (Softmax(), {**SMALL, "n": 6, "d": 5, "m": 3}),
)
SAMPLED: tuple[tuple[Mechanism, Setting], ...] = (
    (Softmax(), {**BASE, "n": 200, "d": 22, "m": 10, "form": "ones"}),
    (Linear(), {**BASE, "n": 100, "d": 22, "m": 10, "form": "ones"}),
    (Softmax(), {**BASE, "n": 100, "d": 12, "m": 10, "form": "identity"}),
)


def formula(p0: Fraction, only: Fraction, m: int) -> Fraction:
    """Return (1-p0)^m - q^m, with q = 1 - p0 - only the probability of firing on neither."""
    return (1 - p0) ** m - (1 - p0 - only) ** m


@claim("distinguish-formula", "3.2", "ours")
def distinguish_formula() -> Finding:
    """P(tells apart) = (1-p0)^m - q^m.

    All m-tuples of sign vectors at small d; sampled networks on dense tokens at larger d, with the ends of
    their intervals compared with sums of binomial probabilities.
    """
    points = Points(tuples_point(*case) for case in TUPLES)
    with one_thread():
        points += [sampled_point(*case) for case in SAMPLED]
    points += [interval_point(hits, confidence) for hits in HITS for confidence in (0.99, 0.999)]
    return points.conclude(
        f"equal on all {sum(points.tuples):.0f} tuples of sign vectors at small d; inside the 99.9% interval "
        f"of {SIGN_DRAWS} networks drawn on dense tokens at {len(SAMPLED)} settings",
        f"equal on tuples; {points.sd_away.max:.1f} standard deviations when sampled",
    )


def tuples_point(mechanism: Mechanism, setting: Setting) -> Point:
    """Check the formula against a count over all m-tuples of sign vectors."""
    construction = spike(setting)
    states = list(zip(*enumerate_signs(construction, mechanism).fires, strict=True))
    tuples = list(product(states, repeat=construction.m))
    hits = sum(not any(d0 for d0, _ in neurons) and any(d1 for _, d1 in neurons) for neurons in tuples)
    neuron = certified.count(construction, mechanism).low
    expected, share = formula(neuron.p0, neuron.only, construction.m), Fraction(hits, len(tuples))
    engine = certified.solve(construction, mechanism).distinguish
    holds = share == expected and relative_error(engine, expected) < 1e-14
    results = {"tuples": len(tuples), "enumerated": str(share), "formula": str(expected)}
    return Point({**setting, "mechanism": mechanism.spelled}, holds, **results)


def sampled_point(mechanism: Mechanism, setting: Setting) -> Point:
    """Check the formula against networks drawn on dense tokens."""
    construction = spike(setting)
    outcome = dense.solve(construction, mechanism, Sampling(draws=SIGN_DRAWS, seed=1, confidence=0.999))
    neuron = certified.count(construction, mechanism).low
    expected = float(formula(neuron.p0, neuron.only, construction.m))
    p, (low, high) = outcome.distinguish, outcome.interval
    sd_away = abs(p - expected) / (expected * (1 - expected) / SIGN_DRAWS) ** 0.5
    holds = low <= expected <= high and low <= p <= high and sd_away < MAX_SD_AWAY
    results = {"formula": expected, "sampled": p, "low": low, "high": high, "sd_away": sd_away}
    return Point({**setting, "mechanism": mechanism.spelled}, holds, **results)


def interval_point(hits: int, confidence: float) -> Point:
    """Check the ends of a binomial interval against their definition, with the tails summed term by term.

    At the lower end, P[Bin >= hits] is half of what the confidence leaves out; at the upper end,
    P[Bin <= hits] is. Without a hit the lower end is 0, with hits only the upper end is 1.
    """
    low, high = binomial_interval(hits, INTERVAL_DRAWS, confidence)
    doubt = (1 - confidence) / 2
    tail_error = max(
        relative_error(sum(binomial_probability(k, p) for k in counts), doubt)
        for p, counts in ((low, range(hits, INTERVAL_DRAWS + 1)), (high, range(hits + 1)))
        if 0 < p < 1
    )
    has_ends = (low == 0) == (hits == 0) and (high == 1) == (hits == INTERVAL_DRAWS)
    parameters = {"hits": hits, "draws": INTERVAL_DRAWS, "confidence": confidence}
    holds = has_ends and 0 <= low < high <= 1 and tail_error < 1e-9
    return Point(parameters, holds, low=low, high=high, tail_error=tail_error)


def binomial_probability(k: int, p: float) -> float:
    """Return P[Bin(INTERVAL_DRAWS, p) = k], from its definition."""
    return math.comb(INTERVAL_DRAWS, k) * p**k * (1 - p) ** (INTERVAL_DRAWS - k)
