"""Theory 3.2, exact probabilities: the sign states against every sign vector there is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from separatrix.claims import _literal as literal
from separatrix.claims._base import Finding, Point, claim
from separatrix.claims._tools import BASE, Points, Setting, point, relative_error, spike
from separatrix.constructions.spike import Spike
from separatrix.engines import Sampling, certified, dense
from separatrix.mechanisms import Linear, Mechanism, Power, Softmax
from separatrix.tensors import one_thread

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
AWAY = 1e-9
"""A float64 pre-activation this far from tau, relative to tau, is on the side it says."""


@dataclass(frozen=True)
class Enumeration:
    """Every sign vector tried on dense tokens."""

    fires: tuple[list[bool], list[bool]]
    """Whether each sign vector fires, on D0 and on D1."""
    closest: float
    """The least distance of a pre-activation from tau, relative to tau."""
    by_class: bool
    """Whether the pre-activation is one and the same for all vectors of a triple and a P."""
    increasing: bool
    """Whether, for each triple, it grows with P."""

    @property
    def probabilities(self) -> tuple[Fraction, Fraction, Fraction]:
        """P(fires on D0), on D1, and on D1 only."""
        total, (zero, one) = len(self.fires[0]), self.fires
        only = sum(b and not a for a, b in zip(zero, one, strict=True))
        return Fraction(sum(zero), total), Fraction(sum(one), total), Fraction(only, total)


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
    tau, closest, fires = number(given.c + Fraction(1, 10)), float("inf"), []
    by_class = increasing = True
    for a in (given.a0, given.a1):
        tokens = literal.spiked(made.n, given.d, number(a), number(given.b), number(given.c), row)
        peaks = literal.peaks(literal.attended(tokens, given.form, kernel), signs)
        fires.append([peak > tau for peak in peaks])
        closest = min(closest, *(abs(float(peak - tau)) / float(tau) for peak in peaks))
        seen = dict(zip(classes, peaks, strict=True))
        by_class &= all(abs(seen[key] - peak) <= rounding for key, peak in zip(classes, peaks, strict=True))
        increasing &= all(
            seen[y_1, y_k, y_d, plus] < seen[y_1, y_k, y_d, plus + 1]
            for y_1, y_k, y_d, plus in seen
            if plus < given.d - 3
        )
    return Enumeration((fires[0], fires[1]), closest, by_class, increasing)


@claim("exact-probability", "3.2", "ours")
def exact_probability() -> Finding:
    """A pre-activation depends on the signs only through (y_1, y_k3, y_d) and P, and grows with P; so p0, p1
    and q are exact fractions k/2^d.

    Certified fractions against all 2^d sign vectors.
    """
    points = Points(probability_point(*case) for case in SETTINGS)
    ties = points.values("closest_to_tau").count(0)
    return points.conclude(
        f"p0, p1 and P(fires on D1 only) equal the counts over all 2^d sign vectors at {len(points)} "
        f"settings, {sum(points.values('sign_vectors')):.0f} vectors in all",
        f"equal fractions; ties at {ties} of {len(points)} settings",
    )


def probability_point(mechanism: Mechanism, setting: Setting) -> Point:
    """One setting: equal fractions, one value a class, growth with P; and no float64 tie left open."""
    made = spike(setting)
    found, certain = enumerate_signs(made, mechanism, made.n // 2), certified.count(made, mechanism)
    neuron = (certain.low.p0, certain.low.p1, certain.low.only)
    sure = certain.decided and (not isinstance(mechanism, Softmax) or found.closest > AWAY)
    return point(
        {**setting, "mechanism": mechanism.spelled},
        sure and found.by_class and found.increasing and found.probabilities == neuron,
        sign_vectors=len(found.fires[0]),
        enumerated=", ".join(map(str, found.probabilities)),
        certified=", ".join(map(str, neuron)),
        closest_to_tau=found.closest,
    )


DRAWS = 2000
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

    All m-tuples of sign vectors at small d; sampled networks on dense tokens at larger d.
    """
    points = Points(_tuples_point(*case) for case in TUPLES)
    with one_thread():
        points += [_sampled_point(*case) for case in SAMPLED]
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
    return point(
        {**setting, "mechanism": mechanism.spelled},
        low <= expected <= high,
        formula=expected,
        sampled=sampled.distinguish,
        low=low,
        high=high,
        sd_away=abs(sampled.distinguish - expected) / (expected * (1 - expected) / DRAWS) ** 0.5,
    )
