"""Theory 3.2, exact probabilities: the sign states against every sign vector there is."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np

from separatrix.claims import _literal as literal
from separatrix.claims._base import Finding, Point, claim
from separatrix.claims._tools import BASE, Points, Setting, on_grid, point, relative_error, spike
from separatrix.constructions.spike import Spike
from separatrix.core.tensors import one_thread
from separatrix.exact.engines import Sampling, certified, dense
from separatrix.exact.engines.tally import binomial_interval
from separatrix.mechanisms import Linear, Mechanism, Power, Softmax

TIE: Setting = {"n": 16, "d": 6, "a0": "0.05", "a1": "0.7", "b": "0.55", "c": "0.3", "form": "identity"}
SMALL: Setting = {"n": 12, "d": 8, "a0": "0.05", "a1": "0.9", "b": "0.55", "c": "0.3", "form": "ones"}
SETTINGS: tuple[tuple[Mechanism, Setting], ...] = (
    (Linear(), SMALL),
    (Linear(), {**SMALL, "n": 18, "form": "identity"}),
    (Linear(), TIE),
    (Power(beta=3), {**SMALL, "n": 10, "d": 7}),
    (Softmax(), {**SMALL, "n": 24, "d": 10}),
    (Softmax(), {**SMALL, "n": 16, "d": 10, "a1": "1.2", "form": "identity"}),
    (Softmax(), {**SMALL, "n": 7, "d": 9, "b": "0.7", "a1": "0.8"}),
)
KINDS = {"ones": ("spike", "rest"), "identity": ("spike", "mate", "other +", "other -")}
"""The kinds of query rows in each form; a row of another block is told by the sign of its own block."""
PINNED: tuple[tuple[Mechanism, Setting], ...] = tuple(
    (mechanism, {**SMALL, "n": n, "d": d, "a0": "0.4", "b": "0.3", "c": "0.8", "form": form})
    for form in KINDS
    for mechanism, n, d in ((Linear(), 8, 4), (Power(beta=2), 18, 5), (Softmax(), 18, 5), (Softmax(), 4, 6))
)
"""Points with c > b and a0 > b, where every kind of row has the largest pre-activation for some signs, above
0. The last has one token in a block and so no mates."""
APART, BESIDE = 1e-5, Fraction(1, 10**6)
"""Relative: levels closer than this are left out, and how far beside a level tau is put."""
AWAY = 1e-9
"""A float64 pre-activation this far from tau, relative to tau, is on the side it says."""


@dataclass(frozen=True)
class Enumeration:
    """Every sign vector tried on dense tokens."""

    peaks: tuple[list[Any], list[Any]]
    """The largest pre-activation over the rows for each sign vector, on D0 and on D1."""
    tau: Any
    """The usual threshold."""
    largest_in: tuple[frozenset[str], frozenset[str]]
    """The kinds of rows that alone have the largest pre-activation for some sign vector, above 0."""
    closest: float
    """The least distance of a pre-activation from tau, relative to tau."""
    by_class: bool
    """Whether the pre-activation is one and the same for all vectors of a triple and a P."""
    increasing: bool
    """Whether, for each triple, it grows with P."""

    @property
    def fires(self) -> tuple[list[bool], list[bool]]:
        """Whether each sign vector fires, on D0 and on D1."""
        zero, one = ([peak > self.tau for peak in peaks] for peaks in self.peaks)
        return zero, one

    @property
    def probabilities(self) -> tuple[Fraction, Fraction, Fraction]:
        """P(fires on D0), on D1, and on D1 only."""
        total, (zero, one) = len(self.fires[0]), self.fires
        only = sum(b and not a for a, b in zip(zero, one, strict=True))
        return Fraction(sum(zero), total), Fraction(sum(one), total), Fraction(only, total)

    def thresholds(self) -> list[Fraction]:
        """Just below and just above every positive pre-activation that has no other one close to it.

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
        expected = (on_d0.mean(0), on_d1.mean(0), (on_d1 & ~on_d0).mean(0))
        grid = on_grid(mechanism, {"m": 1, **setting}, tau=taus)
        errors = [
            np.abs(computed - counted)
            for computed, counted in zip((grid.p0, grid.p1, grid.only), expected, strict=True)
        ]
        return float(np.max(errors))


def enumerate_signs(made: Spike, mechanism: Mechanism, row: int = 0) -> Enumeration:
    """Try every sign vector with the spike in `row`: in rationals, and for softmax in float64."""
    if isinstance(mechanism, Softmax):
        n = float(made.n)
        return _enumerate(made, row, float, lambda z: n**z, 1e-12)
    beta = int(mechanism.parameters.beta) if isinstance(mechanism, Power) else 1
    return _enumerate(made, row, Fraction, lambda z: z**beta, 0.0)


def _enumerate(
    made: Spike,
    row: int,
    number: Callable[[Fraction], literal.Scalar],
    kernel: Callable[[literal.Scalar], literal.Scalar],
    rounding: float,
) -> Enumeration:
    given = made.parameters
    signs = literal.sign_vectors(given.d)
    classes = [literal.sign_class(y, row // made.block_size) for y in signs]
    tau, closest = number(given.c + Fraction(1, 10)), float("inf")
    both, largest_in = [], []
    by_class = increasing = True
    for a in (given.a0, given.a1):
        tokens = literal.spiked(made.n, given.d, number(a), number(given.b), number(given.c), row)
        rows = literal.attended(tokens, given.form, kernel)
        peaks = literal.peaks(rows, signs)
        both.append(peaks)
        largest_in.append(_largest_in(rows, signs, row, made.block_size, given.form))
        closest = min(closest, *(abs(float(peak - tau)) / float(tau) for peak in peaks))
        seen = dict(zip(classes, peaks, strict=True))
        by_class &= all(abs(seen[key] - peak) <= rounding for key, peak in zip(classes, peaks, strict=True))
        increasing &= all(
            seen[y_1, y_k, y_d, plus] < seen[y_1, y_k, y_d, plus + 1]
            for y_1, y_k, y_d, plus in seen
            if plus < given.d - 3
        )
    return Enumeration((both[0], both[1]), tau, (largest_in[0], largest_in[1]), closest, by_class, increasing)


def _largest_in(
    rows: Sequence[Sequence[Any]], signs: Sequence[Sequence[int]], spike: int, size: int, form: str
) -> frozenset[str]:
    """The kinds of rows that, for some signs, exceed 0 and every row of another kind."""
    found = set()
    distinct = {tuple(row): j for j, row in enumerate(rows)}
    for y in signs:
        best: dict[str, Any] = {}
        for row, j in distinct.items():
            kind = _kind(j, y, spike, size, form)
            value = sum(x * s for x, s in zip(row, y, strict=True))
            best[kind] = max(best.get(kind, value), value)
        (kind, top), *others = sorted(best.items(), key=lambda item: float(item[1]), reverse=True)
        if top > 0 and (not others or float(top - others[0][1]) > AWAY):
            found.add(kind)
    return frozenset(found)


def _kind(j: int, y: Sequence[int], spike: int, size: int, form: str) -> str:
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
    points = Points(probability_point(*case) for case in SETTINGS)
    settings, ties = len(points), points.values("closest_to_tau").count(0)
    points += [pinned_point(*case) for case in PINNED]
    vectors, thresholds = (sum(points.values(name)) for name in ("sign_vectors", "thresholds"))
    float_error = points.largest("float_error")
    return points.conclude(
        f"p0, p1 and P(fires on D1 only) equal the counts over all 2^d sign vectors at {settings} "
        f"settings, {vectors:.0f} vectors in all, and for {thresholds:.0f} tau beside the pre-activations "
        f"of {len(PINNED)} more, in which every kind of row decides; the float64 engine is off by "
        f"{float_error:.1g} at most",
        f"equal fractions; ties at {ties} of {settings} settings",
    )


def pinned_point(mechanism: Mechanism, setting: Setting) -> Point:
    """One setting: equal fractions for every tau beside a pre-activation, and every kind of row decides."""
    made = spike(setting)
    found = enumerate_signs(made, mechanism, made.n - 1)
    wanted = set(KINDS[setting["form"]]) - ({"mate"} if made.block_size == 1 else set())
    if setting["form"] == "ones" and not isinstance(mechanism, Softmax):
        wanted = set()  # a power of the logit gives all rows the same weights
    wrong = sum(1 for _ in wrong_thresholds(found, mechanism, setting))
    deciding = found.largest_in[0] & found.largest_in[1]
    float_error = found.float_engine_error(mechanism, setting)
    return point(
        {**setting, "mechanism": mechanism.spelled},
        not wrong and float_error == 0 and deciding >= wanted and found.by_class and found.increasing,
        thresholds=len(found.thresholds()),
        wrong=wrong,
        float_error=float_error,
        deciding=", ".join(sorted(deciding)),
    )


def wrong_thresholds(found: Enumeration, mechanism: Mechanism, setting: Setting) -> Iterator[Fraction]:
    """Every tau beside a pre-activation at which certified fractions are not the enumerated ones."""
    for tau in found.thresholds():
        certain = certified.count(spike(setting, tau=tau), mechanism)
        neuron = (certain.low.p0, certain.low.p1, certain.low.only)
        if not certain.decided or neuron != replace(found, tau=tau).probabilities:
            yield tau


def probability_point(mechanism: Mechanism, setting: Setting) -> Point:
    """One setting: equal fractions, one value a class, growth with P; and no float64 tie left open."""
    made = spike(setting)
    found, certain = enumerate_signs(made, mechanism, made.n // 2), certified.count(made, mechanism)
    neuron = (certain.low.p0, certain.low.p1, certain.low.only)
    sure = certain.decided and (not isinstance(mechanism, Softmax) or found.closest > AWAY)
    float_error = found.float_engine_error(mechanism, setting)
    is_exact = found.probabilities == neuron and float_error == 0
    return point(
        {**setting, "mechanism": mechanism.spelled},
        sure and found.by_class and found.increasing and is_exact,
        sign_vectors=len(found.fires[0]),
        enumerated=", ".join(map(str, found.probabilities)),
        certified=", ".join(map(str, neuron)),
        closest_to_tau=found.closest,
        float_error=float_error,
    )


DRAWS = 2000
MAX_SD_AWAY = 4
"""Standard deviations that a sampled probability may be away from the formula."""
HITS, INTERVAL_DRAWS = (0, 3, 197, 200), 200
"""Where the ends of binomial intervals are checked."""
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
    """(1-p0)^m - q^m, with q = 1 - p0 - only the probability of firing on neither."""
    return (1 - p0) ** m - (1 - p0 - only) ** m


@claim("distinguish-formula", "3.2", "ours")
def distinguish_formula() -> Finding:
    """P(tells apart) = (1-p0)^m - q^m.

    All m-tuples of sign vectors at small d; sampled networks on dense tokens at larger d, with the ends of
    their intervals held to sums of binomial probabilities.
    """
    points = Points(_tuples_point(*case) for case in TUPLES)
    with one_thread():
        points += [_sampled_point(*case) for case in SAMPLED]
    points += [interval_point(hits, confidence) for hits in HITS for confidence in (0.99, 0.999)]
    away = points.largest("sd_away")
    return points.conclude(
        f"equal on all {sum(points.values('tuples')):.0f} tuples of sign vectors at small d; inside the "
        f"99.9% interval of {DRAWS} networks drawn on dense tokens at {len(SAMPLED)} settings",
        f"equal on tuples; {away:.1f} standard deviations when sampled",
    )


def _tuples_point(mechanism: Mechanism, setting: Setting) -> Point:
    made = spike(setting)
    states = list(zip(*enumerate_signs(made, mechanism).fires, strict=True))
    tuples = list(product(states, repeat=made.m))
    hits = sum(not any(zero for zero, _ in each) and any(one for _, one in each) for each in tuples)
    neuron = certified.count(made, mechanism).low
    expected, counted = formula(neuron.p0, neuron.only, made.m), Fraction(hits, len(tuples))
    engine = certified.solve(made, mechanism).distinguish
    return point(
        {**setting, "mechanism": mechanism.spelled},
        counted == expected and relative_error(engine, float(expected)) < 1e-14,
        tuples=len(tuples),
        enumerated=str(counted),
        formula=str(expected),
    )


def _sampled_point(mechanism: Mechanism, setting: Setting) -> Point:
    made = spike(setting)
    sampled = dense.solve(made, mechanism, Sampling(draws=DRAWS, seed=1, confidence=0.999))
    neuron = certified.count(made, mechanism).low
    expected = float(formula(neuron.p0, neuron.only, made.m))
    low, high = sampled.interval
    sd_away = abs(sampled.distinguish - expected) / (expected * (1 - expected) / DRAWS) ** 0.5
    return point(
        {**setting, "mechanism": mechanism.spelled},
        low <= expected <= high and low <= sampled.distinguish <= high and sd_away < MAX_SD_AWAY,
        formula=expected,
        sampled=sampled.distinguish,
        low=low,
        high=high,
        sd_away=sd_away,
    )


def interval_point(hits: int, confidence: float) -> Point:
    """Check the ends of a binomial interval against their definition, with the tails summed term by term.

    At the lower end, P[Bin >= hits] is half of what the confidence leaves out; at the upper end,
    P[Bin <= hits] is. Without a hit the lower end is 0, with hits only the upper end is 1.
    """
    low, high = binomial_interval(hits, INTERVAL_DRAWS, confidence)
    doubt = (1 - confidence) / 2
    errors = [
        relative_error(sum(binomial_probability(k, p) for k in counts), doubt)
        for p, counts in ((low, range(hits, INTERVAL_DRAWS + 1)), (high, range(hits + 1)))
        if 0 < p < 1
    ]
    has_ends = (low == 0) == (hits == 0) and (high == 1) == (hits == INTERVAL_DRAWS)
    return point(
        {"hits": hits, "draws": INTERVAL_DRAWS, "confidence": confidence},
        has_ends and 0 <= low < high <= 1 and max(errors) < 1e-9,
        low=low,
        high=high,
        tail_error=max(errors),
    )


def binomial_probability(k: int, p: float) -> float:
    """P[Bin(INTERVAL_DRAWS, p) = k], from its definition."""
    return math.comb(INTERVAL_DRAWS, k) * p**k * (1 - p) ** (INTERVAL_DRAWS - k)
