"""Theory 3.12: other weight matrices of linear attention on the spike, and the price of each."""

from __future__ import annotations

import math
import random
from dataclasses import astuple, replace
from fractions import Fraction
from itertools import product

from separatrix.claims import _literal
from separatrix.claims._base import BASE, LABELS, Finding, Points, Setting, claim
from separatrix.claims._tools import judge, prove_for_ever, spike
from separatrix.exact.weights import BlockScores, SpikePoint, read_linear
from separatrix.exact.weights.bounds import (
    rank_one_bound,
    robust_weights,
    signed_weights,
    uniform_bound,
    unnormalised_ratio,
    weights_with_amplitude,
    weights_with_n,
)

SEED = 21
SMALL: tuple[Setting, ...] = (
    {"n": 8, "d": 6, "m": 3, "a0": "0.05", "a1": "1.1", "b": "0.55", "c": "0.3"},
    {"n": 4, "d": 6, "m": 2, "a0": "0", "a1": "0.7", "b": "0.2", "c": "0.1"},
    {"n": 9, "d": 5, "m": 1, "a0": "0.2", "a1": "0.9", "b": "0.15", "c": "0.4"},
)
"""With all 2^d sign vectors on literal tokens; the second has blocks of one token."""
REFERENCE: Setting = {**BASE, "n": 1000}
ETA = Fraction(1, 4)
NEEDED_AT = 10**6
"""The n at which an amplitude that is off by 1 % is tried."""


def point_of(setting: Setting) -> SpikePoint:
    """Return the exact parameters of a setting."""
    return SpikePoint.of(spike(setting))


def random_scores(chance: random.Random, signed: bool = False) -> BlockScores:
    """Return random weights that are symmetric in the blocks."""
    low = -3 if signed else 0
    return BlockScores(*(Fraction(chance.randint(low, 12), chance.randint(1, 9)) for _ in range(5)))


def literal_counts(scores: BlockScores, point: SpikePoint) -> tuple[list[Fraction], list[Fraction]]:
    """Return p0, p1 and P(D1 alone) over all sign vectors, and the largest spike weights, by loops over tokens."""
    fires, largest = [], []
    signs = _literal.sign_vectors(point.d)
    for label in LABELS:
        tokens = _literal.spike_matrix(point.n, point.d, point.a[label], point.b, point.c)
        units = []
        for q, *own, _ in tokens:
            pairs = [(scores.key * k + scores.pair * q * k, scores.block * (own == block)) for k, *block, _ in tokens]
            logits = [scores.other + scores.query * q + by_key + by_block for by_key, by_block in pairs]
            units.append(_literal.unit(logits, lambda logit: logit, tokens))
        fires.append([peak > point.tau for peak in _literal.peaks([unit.c for unit in units], signs)])
        largest.append(max(unit.f[0] for unit in units))
    quiet, loud = fires
    alone = [d1 and not d0 for d0, d1 in zip(quiet, loud, strict=True)]
    return [Fraction(sum(column), len(signs)) for column in (quiet, loud, alone)], largest


@claim("weights-exact", "3.12", "ours")
def weights_exact() -> Finding:
    """For linear attention with weights that are symmetric in the blocks, P and the margin are exact fractions:
    those of an enumeration of all sign vectors on literal tokens, and of the certified engine for 11ᵀ and I.

    Random scores, of both signs too, at small n and d; the certified engine at n up to 1e18.
    """
    points, chance = Points(), random.Random(SEED)
    for setting, signed, _ in product(SMALL, (False, True), range(4)):
        point, scores = point_of(setting), random_scores(chance, signed)
        if 0 in [row.total(point) for label in LABELS for row in scores.rows(point, label)]:
            continue
        reading, (counts, largest) = read_linear(scores, point), literal_counts(scores, point)
        outcome = reading.outcome
        same = [outcome.p0, outcome.p1, outcome.only] == counts and list(reading.largest) == largest
        margin = point.a[1] * largest[1] - point.a[0] * largest[0]
        place = {**setting, "scores": " ".join(map(str, astuple(scores)))}
        points.add(place, same and reading.margin == margin, distinguish=outcome.distinguish)
    for form, n in product(("ones", "identity"), (100, 1000, 10**6, 10**18)):
        setting = {**BASE, "n": n, "form": form}
        point = point_of(setting)
        alpha = Fraction(int(form == "identity"))
        ours = read_linear(BlockScores.diagonal_plus_ones(point, alpha, 1 - alpha), point).outcome
        theirs = judge(spike(setting), "linear", "certified").outcome
        same = (ours.p0, ours.p1, ours.only) == (theirs.p0, theirs.p1, theirs.only)
        close = math.isclose(ours.margin, theirs.margin, rel_tol=1e-12)
        points.add(setting, same and close, distinguish=ours.distinguish)
    return points.conclude(f"{len(points)} readings are equal as fractions", "none: equal")


@claim("weights-rank-one", "3.12", "ours")
def weights_rank_one() -> Finding:
    """X = alpha I + beta 11ᵀ with scores >= 0 gives the spike at most sigma/(sigma + (t-1) b²) in its own row,
    sigma = a1² + b² - a1 c²/(b+c), and beta/alpha = -c²/((a1+b+c)(b+c)) attains it: 4/5 at the reference point.

    Random alpha and beta of either sign whose scores in the spike's row are not negative.
    """
    points, chance = Points(), random.Random(SEED)
    for setting in (REFERENCE, {**BASE, "n": 10**5}, {**BASE, "n": 500, "d": 52, "b": "0.4", "a1": "0.9"}):
        point = point_of(setting)
        bound = rank_one_bound(point)
        assert bound is not None
        best = read_linear(BlockScores.diagonal_plus_ones(point, Fraction(1), bound.beta_over_alpha), point)
        holds = best.own[1] == bound.bound and best.least_score >= 0
        points.add({**setting, "beta/alpha": bound.beta_over_alpha}, holds, weight=float(best.own[1]), slack=0.0)
        for _ in range(60):
            alpha = Fraction(chance.choice((-1, 1)))
            beta = alpha * bound.beta_over_alpha * Fraction(chance.randint(-4000, 1010), 1000)
            own, *_ = BlockScores.diagonal_plus_ones(point, alpha, beta).rows(point, 1)
            if own.least(point) < 0 or own.total(point) == 0:
                continue
            weight = own.spike / own.total(point)
            place = {**setting, "alpha": alpha, "beta": beta}
            points.add(place, weight <= bound.bound, weight=float(weight), slack=float(bound.bound - weight))
    point = point_of(REFERENCE)
    ratio = -(point.c**2) / (point.row_sums[1] * point.r)
    reference = read_linear(BlockScores.diagonal_plus_ones(point, Fraction(1), ratio), point)
    is_as_stated = reference.own[1] == Fraction(4, 5) and abs(float(reference.margin) - 0.95994) < 1e-5
    points.add(REFERENCE, is_as_stated, weight=float(reference.own[1]), margin=float(reference.margin))
    return points.conclude(
        f"{len(points)} weights are at most the bound; at n = 1000 the best has weight "
        f"{float(reference.own[1]):.4g}, margin {float(reference.margin):.5f} and P = "
        f"{reference.outcome.distinguish:.6f}",
        f"the least distance to the bound, where it is not attained, is {min(x for x in points.slack if x):.2g}",
    )


@claim("weights-with-n", "3.12", "ours")
def weights_that_depend_on_n() -> Finding:
    """X = e1 e1ᵀ + (theta/n) 11ᵀ with theta = 0.06 lets linear attention distinguish, with the same reader: P >=
    0.9996 for every n >= 1000 and every d >= 102, and the scores are positive.

    The bound, against exact P at n up to 1e18 and d up to 5002, also for other theta and other points.
    """
    points = Points()
    cases = [(REFERENCE, Fraction(6, 100)), (REFERENCE, Fraction(9, 10))]
    cases += [({**BASE, "n": 10**4, "d": 202, "a1": "0.9", "b": "0.1", "m": 8}, Fraction(1, 5))]
    for setting, theta in cases:
        bound = uniform_bound(point_of(setting), theta)
        assert bound is not None
        for n, d in ((bound.n, bound.d), (10**6, bound.d), (10**6, 1002), (5_000 * 10**3, 5002), (10**18, 1002)):
            point = point_of({**setting, "n": n - n % (d - 2), "d": d})
            reading = read_linear(weights_with_n(point, theta), point)
            holds = reading.outcome.distinguish >= bound.bound and reading.least_score > 0
            is_reference = setting is REFERENCE and theta == Fraction(6, 100)
            holds = holds and (not is_reference or bound.bound >= 0.9996)
            place = {**setting, "theta": theta, "n": point.n, "d": d}
            points.add(place, holds, bound=bound.bound, distinguish=reading.outcome.distinguish)
    return points.conclude(
        f"theta = 0.06 has P >= {points.bound[0]:.6f} from n = 1000 and d = 102 on, exactly "
        f"{points.distinguish[0]:.6f} there",
        f"exact P exceeds the bound by {min(p - q for p, q in zip(points.distinguish, points.bound, strict=True)):.1e}",
    )


@claim("weights-with-amplitude", "3.12", "ours")
def weights_that_know_the_amplitude() -> Finding:
    """X = w vᵀ + e1 e1ᵀ, w = (-1/a1, 0, .., 1/c), v = (0, .., 1/c), does not depend on n and attends to the spike
    alone, f = 1 at every n; if the amplitude is 1 % off, P falls from above 0.99 to below 0.01 at n = 1e6.

    Exact readings at n from 1e3 to 1e18, and with amplitudes of 99 % and 101 %.
    """
    points = Points()
    for n in (10**3, NEEDED_AT, 10**18):
        point = point_of({**BASE, "n": n})
        scores = weights_with_amplitude(point)
        exact = read_linear(scores, point)
        holds = exact.own[1] == 1 and exact.outcome.distinguish > 0.99
        points.add({**BASE, "n": n}, holds, weight=float(exact.own[1]), distinguish=exact.outcome.distinguish)
        for factor in (Fraction(99, 100), Fraction(101, 100)):
            off = read_linear(scores, replace(point, a=(point.a[0], point.a[1] * factor)))
            place = {**BASE, "n": n, "amplitude": point.a[1] * factor}
            holds = n < NEEDED_AT or (off.outcome.distinguish < 0.01 and abs(off.margin) < Fraction(1, 1000))
            points.add(place, holds, off_weight=float(off.own[1]), off=off.outcome.distinguish)
    return points.conclude(
        f"P = {points.distinguish[0]:.6f} at n = 1e3; with the amplitude 1 % off {points.off[0]:.4f} and "
        f"{points.off[1]:.4f} there, {points.off[2]:.1e} and {points.off[3]:.1e} at n = 1e6",
        f"P is {max(points.off[2:]):.1e} at n = 1e6 and beyond, allowed 0.01",
    )


@claim("weights-robust", "3.12", "ours")
def weights_without_n() -> Finding:
    """For weights that do not depend on n, with scores >= 0 for every amplitude up to 1.25 a1, either n f stays
    bounded in every row of D1, or some row of D0 and D1 has f = 1 and P <= (7/8)^m. The first does not mean
    blind: the spike's row can attend to its own block, and P stays above 0.9 at d = 102 as n grows.

    Random weights at n from 1e3 to 1e9; the block weights at n up to 1e30, and where the theorem's m = 17 has
    P >= 0.99 (d = 1002).
    """
    points, chance = Points(), random.Random(SEED)
    for kind in (*["random"] * 12, "alone"):
        scores = _robust_scores(chance, point_of(REFERENCE), kind == "alone")
        points_of_n = [point_of({**BASE, "n": n}) for n in (10**3, 10**6, 10**9)]
        readings = [read_linear(scores, point) for point in points_of_n]
        scaled = [point.n * float(x.largest[1]) for point, x in zip(points_of_n, readings, strict=True)]
        point, last = points_of_n[-1], readings[-1]
        if kind == "alone":
            holds = set(last.largest) == {Fraction(1)} and last.outcome.distinguish <= (7 / 8) ** point.m
        else:
            holds = last.largest[1] < 1 and scaled[-1] <= 1.01 * max(scaled[1], scaled[0])
        holds = holds and all(reading.least_score >= 0 for reading in readings)
        points.add({**BASE, "weights": kind}, holds, n_f=scaled[-1], distinguish=last.outcome.distinguish)
    for n, d, m in ((10**6, 102, 12), (10**18, 102, 12), (10**30, 102, 12), (10**9, 1002, 17)):
        point = point_of({**BASE, "n": n - n % (d - 2), "d": d, "m": m})
        scores = robust_weights(point, ETA, Fraction(3, 10) * (d - 2))
        reading, beyond = read_linear(scores, point), replace(point, a=(point.a[0], point.a[1] * (1 + ETA)))
        least = read_linear(scores, beyond).least_score
        holds = reading.outcome.distinguish >= (0.99 if m == 17 else 0.9) and min(reading.least_score, least) >= 0
        place = {**BASE, "n": point.n, "d": d, "m": m, "weights": "block"}
        points.add(place, holds, robust=reading.outcome.distinguish, margin=float(reading.margin))
    return points.conclude(
        f"random weights have n f bounded; block weights have P = {points.robust[0]:.4f} at n = 1e6 and "
        f"{points.robust[2]:.4f} at n = 1e30, and {points.robust[3]:.4f} at d = 1002, m = 17",
        f"their margin is {points.margin.max:.1e} at most",
    )


def _robust_scores(chance: random.Random, point: SpikePoint, alone: bool) -> BlockScores:
    """Return random scores that are not negative for any amplitude up to 1.25 a1."""
    zero, one = Fraction(0), Fraction(1)
    if alone:  # every query scores the spike only
        return BlockScores(zero, zero, one, one, zero)
    top, other = (1 + ETA) * point.a[1], Fraction(chance.randint(1, 20), 10)
    query, key = (Fraction(chance.randint(-9, 20), 10) * other / top / 2 for _ in range(2))
    return BlockScores(other, query, key, Fraction(chance.randint(0, 30), 10), Fraction(chance.randint(0, 50), 10))


@claim("weights-signed", "3.12", "ours")
def weights_of_both_signs() -> Finding:
    """With scores of both signs the margin has no bound, since the normaliser has a pole; where |sum of scores| >=
    kappa times the sum of |scores| in every row, the margin is at most (a0 + a1)/kappa.

    alpha I + beta 11ᵀ ever closer to the pole, and random scores of both signs.
    """
    points, chance, point = Points(), random.Random(SEED), point_of(REFERENCE)
    for power in (0, 3, 6, 9):
        total = Fraction(1, 10**power)
        reading = read_linear(signed_weights(point, total), point)
        holds = reading.margin > 10**power and reading.balance < total
        points.add({**REFERENCE, "sum": total}, holds, pole=float(reading.margin), kappa=float(reading.balance))
    for _ in range(60):
        scores = random_scores(chance, signed=True)
        if any(row.total(point) == 0 for label in LABELS for row in scores.rows(point, label)):
            continue
        reading = read_linear(scores, point)
        limit = (point.a[0] + point.a[1]) / reading.balance
        place = {**REFERENCE, "kappa": float(reading.balance)}
        points.add(place, abs(reading.margin) <= limit, share=float(abs(reading.margin) / limit))
    return points.conclude(
        f"margins up to {points.pole.max:.2g} near the pole; {len(points.share)} random weights keep the bound",
        f"random weights reach {points.share.max:.3f} of the bound",
    )


@claim("weights-unnormalised", "3.12", "ours")
def weights_without_normaliser() -> Finding:
    """Without its normaliser, linear attention with X = 11ᵀ has v(D1)/v(D0) = R1 (R1² + (n-1) r²)/(R0 (R0² + (n-1)
    r²)), which tends to R1/R0, R = a + b + c: the normaliser loses the spike in its own row, not linearity.

    The ratio against loops over tokens, and its limit at n = 1e18.
    """
    points = Points()
    for setting in (*SMALL, {**BASE, "n": 300}):
        point, readings = point_of(setting), []
        for label in LABELS:
            tokens = _literal.spike_matrix(point.n, point.d, point.a[label], point.b, point.c)
            sums = [sum(token, Fraction(0)) for token in tokens]
            squares = sum((k * k for k in sums), Fraction(0))
            readings.append(max(q * squares for q in sums))
        ratio = readings[1] / readings[0]
        points.add(setting, ratio == unnormalised_ratio(point), ratio=float(ratio))
    point = point_of({**BASE, "n": 10**18})
    limit = point.row_sums[1] / point.row_sums[0]
    last = unnormalised_ratio(point)
    points.add({**BASE, "n": 10**18}, abs(last / limit - 1) < Fraction(1, 10**15), ratio=float(last))
    return points.conclude(
        f"equal as fractions; {points.ratio[3]:.4f} at n = 300 and {float(limit):.4f} in the limit",
        f"at n = 1e18 the ratio is off its limit by {float(abs(last / limit - 1)):.0e}",
    )


SCALES = {"0.5": False, "0.6": True, "1": True, "300": True, "400": False}
"""Numbers g on either side of both ends of the window, and whether softmax with X = g 11ᵀ separates."""
SCALED_SETTING: Setting = {**BASE, "n": 10**30}
MAX_OUTSIDE = 0.05


@claim("weights-scaled", "3.12", "ours")
def weights_times_a_number() -> Finding:
    """Normalised linear attention does not change if X is multiplied by a number g > 0; softmax with X = g 11ᵀ
    separates where 1/s1 < g < 1/s0, s = a(a+b+c): for g from 0.56 to 323 at the reference point, as n grows.

    Equal fractions for linear attention; softmax of temperature 1/g, certified at n = 1e30, on either side of
    both ends of the window.
    """
    points = Points()
    point = point_of(REFERENCE)
    one = read_linear(BlockScores.diagonal_plus_ones(point, Fraction(0), Fraction(1)), point)
    for scale in (Fraction(1, 7), Fraction(300)):
        other = read_linear(BlockScores.diagonal_plus_ones(point, Fraction(0), scale), point)
        same = (one.own, one.margin, one.outcome.p0) == (other.own, other.margin, other.outcome.p0)
        same = same and one.outcome.p1 == other.outcome.p1
        points.add({**REFERENCE, "g": scale}, same, distinguish=other.outcome.distinguish)
    for text, separates in SCALES.items():
        mechanism = f"softmax:temperature={1 / Fraction(text)}"
        probability = judge(spike(SCALED_SETTING), mechanism, "certified").outcome.distinguish
        holds = probability > 0.99 if separates else probability < MAX_OUTSIDE
        points.add({**SCALED_SETTING, "g": text}, holds, softmax=probability)
        certificate, neurons = prove_for_ever(mechanism, SCALED_SETTING)
        chances = [float((1 - p.p0) ** BASE["m"] - (1 - p.p0 - p.only) ** BASE["m"]) for p in neurons]
        kept = min(chances) > 0.99 if separates else max(chances) < MAX_OUTSIDE
        points.verify(certificate, kept, for_ever=chances[-1])
    probabilities = ", ".join(f"{p:.3g} at g = {text}" for text, p in zip(SCALES, points.softmax, strict=True))
    return points.conclude(
        f"softmax with X = g 11ᵀ at n = 1e30 has P = {probabilities}",
        "linear: equal fractions for every g that is tried",
    )
