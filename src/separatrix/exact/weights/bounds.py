"""Bounds for families of weight matrices of linear attention, proved in docs/theory.md 3.12."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from flint import arb, ctx

from separatrix.core.documents import Document
from separatrix.core.numbers.logforms import rational
from separatrix.exact.weights.scores import BlockScores, SpikePoint

PRECISION = 256


@dataclass(frozen=True)
class RankOneBound(Document):
    """The largest attention weight on the spike in its own row, over X = alpha I + beta 11ᵀ with scores >= 0."""

    bound: Fraction
    beta_over_alpha: Fraction
    """The ratio at which the bound is attained."""


def rank_one_bound(point: SpikePoint) -> RankOneBound | None:
    """Return the bound sigma/(sigma + (t-1) b²), or None where its hypotheses fail.

    With sigma = a1² + b² - a1 c²/r it needs sigma > 0 and R1 (t-1) b² <= (n-1) r sigma: then f(j3, j3)
    decreases in beta/alpha, and the smallest ratio for which no score in the spike's row is negative is
    -c²/(R1 r).
    """
    a1, b, c, r, t = point.a[1], point.b, point.c, point.r, point.block_size
    row_sum = point.row_sums[1]
    sigma = a1**2 + b**2 - a1 * c**2 / r
    if sigma <= 0 or row_sum * (t - 1) * b**2 > (point.n - 1) * r * sigma:
        return None
    return RankOneBound(sigma / (sigma + (t - 1) * b**2), -(c**2) / (row_sum * r))


def weights_with_n(point: SpikePoint, theta: Fraction) -> BlockScores:
    """Return the scores of X = e1 e1ᵀ + (theta/n) 11ᵀ."""
    share, r = theta / point.n, point.r
    return BlockScores(share * r**2, share * r, share * r, 1 + share)


@dataclass(frozen=True)
class UniformBound(Document):
    """P is at least `bound` for every n from `n` on, every d from `d` on, with the same other parameters."""

    bound: float
    """Rounded down."""
    n: int
    d: int
    theta: Fraction
    triples: int
    """The number of the 8 sign triples for which a neuron fires on D1, whatever the other signs are."""


def uniform_bound(point: SpikePoint, theta: Fraction) -> UniformBound | None:
    """Return the bound of P for X = e1 e1ᵀ + (theta/n) 11ᵀ, or None where its hypotheses fail.

    On D1 the spike's row has f1 >= a1²/(a1² + theta R1 r). On D0 every row has f <= F, the larger of the
    weights at this n, which fall with n. A neuron fires on D0 only if the mean of the n-1 other block signs
    exceeds eta/b, eta = tau - c - F (a0 + b): with a probability of p = exp(-(eta/b)² (d-2)(n-1)/(2n)) at most.
    """
    (a0, a1), b, c, r, n = point.a, point.b, point.c, point.r, point.n
    row_sum0, row_sum1 = point.row_sums
    least = a1**2 / (a1**2 + theta * row_sum1 * r)
    own = (a0**2 + theta * row_sum0**2 / n) / (a0**2 + theta * row_sum0**2 / n + (n - 1) * theta * row_sum0 * r / n)
    others = row_sum0 / (row_sum0 + (n - 1) * r)
    eta = point.tau - c - max(own, others) * (a0 + b)
    triples = sum(
        all(f * (a1 + b * y_k) - (1 - f) * b + c * y_d > point.tau for f in (least, Fraction(1)))
        for y_k, y_d in product((1, -1), repeat=2)
    )
    if eta <= 0 or not triples:
        return None
    with ctx.workprec(PRECISION):
        exponent = rational((eta / b) ** 2 * (point.d - 2) * (n - 1) / (2 * n))
        p = (-arb(exponent)).exp()
        silent = arb(rational(1 - Fraction(triples, 8))) ** point.m
        bound = ((1 - p) ** point.m - silent).lower()
        # Converting to float rounds to nearest: one relative unit is taken off.
        value = float(bound * (1 - arb(2) ** -52))
    return UniformBound(value, n, point.d, theta, triples) if value > 0 else None


def weights_with_amplitude(point: SpikePoint) -> BlockScores:
    """Return the scores of X = w vᵀ + e1 e1ᵀ, w = (-1/a1, 0, .., 1/c), v = (0, .., 1/c)."""
    return BlockScores(Fraction(1), -1 / point.a[1], Fraction(0), Fraction(1))


def robust_weights(point: SpikePoint, eta: Fraction, block: Fraction) -> BlockScores:
    """Return scores that are >= 0 for every amplitude up to (1 + eta) a1 and independent of n.

    The spike's query lowers its scores of all other blocks and so attends to its own block.
    """
    return BlockScores(Fraction(1), -1 / ((1 + eta) * point.a[1]), Fraction(0), Fraction(0), block)


def signed_weights(point: SpikePoint, total: Fraction) -> BlockScores:
    """Return alpha I + beta 11ᵀ with alpha = 1 whose scores in the spike's row of D1 add up to `total`.

    At total = 0 the weights have a pole, near which the margin exceeds any bound.
    """
    a1, b, c, r, n, t = point.a[1], point.b, point.c, point.r, point.n, point.block_size
    row_sum = point.row_sums[1]
    diagonal = a1**2 + b**2 + c**2 + (t - 1) * (b**2 + c**2) + (n - t) * c**2
    beta = (total - diagonal) / (row_sum * (row_sum + (n - 1) * r))
    return BlockScores.diagonal_plus_ones(point, Fraction(1), beta)


def unnormalised_ratio(point: SpikePoint) -> Fraction:
    """Return v(D1)/v(D0) of linear attention without its normaliser, X = 11ᵀ, with all signs +.

    The spike's row returns R sum s_i², s the row sums: R (R² + (n-1) r²).
    """
    quiet, loud = (total * (total**2 + (point.n - 1) * point.r**2) for total in point.row_sums)
    return loud / quiet
