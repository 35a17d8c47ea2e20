"""Theory 3.7 to 3.9: a tuned threshold, the margin that survives it, and the bits the margin needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import scipy

from separatrix.claims._base import BASE, DELTA, LABELS, Finding, Point, Points, Setting, claim
from separatrix.claims._tools import on_grid, prove_law, relative_error, short, spike
from separatrix.core.numbers.formats import SIGNIFICANT_BITS, TORCH_NAMES
from separatrix.core.tensors import torch
from separatrix.exact.engines import certified, dense
from separatrix.exact.outputs.growth_laws import GrowthLaw
from separatrix.exact.verdicts import lost_from, readers, verdict
from separatrix.exact.verdicts.lost_formats import LARGEST as MAX_FORMAT_N
from separatrix.mechanisms import Linear, Mechanism, Softmax

A0, A1, B, C = (Fraction(BASE[name]) for name in ("a0", "a1", "b", "c"))
TUNED_CASES = ((10**3, 4, 80), (10**6, 4, 80), (10**18, 4, 80), (10**3, 6, 300), (10**18, 6, 300))
"""n, d, m."""


def level(a: Fraction, n: int, d: int, triple: tuple[int, ...], plus: int) -> Fraction:
    """Return the linear pre-activation in a sign state (X = 11ᵀ), in units of sqrt(log n)."""
    total, size = a + n * (B + C), n // (d - 2)
    f_spike, f_other = (a + B + C) / total, (B + C) / total
    y_1, y_k, y_d = triple
    blocks = y_k * (f_spike + (size - 1) * f_other) + (2 * plus - (d - 3)) * size * f_other
    return f_spike * a * y_1 + B * blocks + C * y_d


def best_midpoint(setting: Setting) -> tuple[Fraction, float]:
    """Return the best tau halfway between two neighbouring pre-activations, and its P(tells apart).

    P changes with tau only at a pre-activation of some sign state, so there is no better tau.
    """
    n, d = setting["n"], setting["d"]
    states = product((A0, A1), product((1, -1), repeat=3), range(d - 2))
    levels = sorted({level(a, n, d, triple, plus) for a, triple, plus in states})
    taus = [(low + high) / 2 for low, high in pairwise([Fraction(0), *(x for x in levels if x > 0)])]
    chances = on_grid(Linear(), setting, tau=taus).distinguish
    best = int(np.nanargmax(chances))
    return taus[best], float(chances[best])


def tuned_point(n: int, d: int, m: int) -> Point:
    """Check that the best threshold, certified, separates, and is as good as the one that `readers` finds."""
    setting = {**BASE, "n": n, "d": d, "m": m}
    states = list(product(product((1, -1), repeat=3), range(d - 2)))
    levels = [[level(a, n, d, triple, plus) for a in (A0, A1)] for triple, plus in states]
    chances = [Fraction(math.comb(d - 3, plus), 2**d) for _, plus in states]
    best_tau, _ = best_midpoint(setting)
    best_outcome, usual_outcome = (certified.solve(spike(setting, **tau), Linear()) for tau in ({"tau": best_tau}, {}))
    reader = readers("spike", "linear", setting).threshold
    pairs = list(zip(chances, levels, strict=True))
    counts = tuple(sum(chance for chance, pair in pairs if pair[label] > best_tau) for label in LABELS)
    best_p, usual_p = best_outcome.distinguish, usual_outcome.distinguish
    is_best = reader is not None and relative_error(reader.outcome.distinguish, best_p) < 1e-12
    separates = best_p >= 1 - DELTA and usual_p <= DELTA
    results: Setting = {"tuned_tau": float(best_tau), "tuned": best_p, "usual": usual_p}
    room = float(max(high - low for low, high in levels))
    holds = separates and is_best and (best_outcome.p0, best_outcome.p1) == counts
    return Point(setting, holds, **results, p1=str(best_outcome.p1), room_for_tau=room)


@claim("tuned-threshold", "3.7", "ours")
def tuned_threshold() -> Finding:
    """'Cannot distinguish' is about this reader with this tau: with a tuned tau and no noise the linear
    network separates the data too, at any n (m of order 2^d).

    Any n, small d; and for comparison the best threshold at d = 102.
    """
    points = Points(tuned_point(*case) for case in TUNED_CASES)
    # With tau between both readings of all signs +, D0 never fires, and D1 does if one sign vector has them all.
    for d, m in {case[1:]: None for case in TUNED_CASES}:
        certificate, law = prove_law("linear", {**BASE, "d": d, "m": m, "n": 4})
        least = 1 - (1 - 2.0**-d) ** m
        points.verify(certificate, law.low > 0 and least >= 1 - DELTA, tuned_for_ever=least)
    reader = readers("spike", "linear", {**BASE, "n": 1000}).threshold
    best = math.nan if reader is None else reader.outcome.distinguish
    _, expected = best_midpoint({**BASE, "n": 1000})
    points.add({**BASE, "n": 1000}, relative_error(best, expected) < 1e-9, best=best, best_of_midpoints=expected)
    return points.conclude(
        f"tau just below what all signs + give on D1: P = {points.tuned.min:.4f} or more up to n = 1e18 "
        f"(d=4, m=80; d=6, m=300), where tau = c + 0.1 gives {points.usual.max:.1g}; at d=102, m=12, n=1000 "
        f"the best tau gives {points.best.max:.2f}",
        f"P {points.tuned.min:.3f}; but tau must be right to {points.room_for_tau.min:.0e} at n = 1e18",
    )


LAW_SIZES = (10**3, 10**18)
"""The first n of laws that hold for every larger n."""
MARGIN_SIZES = [10**e for e in (3, 4, 6, 9, 12, 18)]
REFERENCE: dict[str, Mapping[int, tuple[float, float]]] = {
    "softmax": {10**3: (1.1952, 5e-5), 10**6: (1.19998, 5e-6)},
    "linear": {10**3: (0.00596576, 5e-9), 10**6: (5.98964e-6, 5e-12)},
}
"""The reference numbers for a0=.01, a1=1.2, b=.2, c=.1, d=102, and half a unit of their last digit."""


SpikeWeight = Callable[[Fraction, Fraction, int], Fraction]
"""The weight f(j3,j3) of the spike in its own row, from a, r = b + c and n."""


def linear_weight(a: Fraction, r: Fraction, n: int) -> Fraction:
    """Return f = R/(R + (n-1) r) with R = a + r."""
    return (a + r) / (a + n * r)


def softmax_weight(a: Fraction, r: Fraction, n: int) -> Fraction:
    """Return f = 1/(1 + (n-1) n^{-aR}) with R = a + r, to 80 digits."""
    exponent = a * (a + r)
    # `is_lost` rounds to as many as 53 bits, so the weights need more digits than float64 has.
    with localcontext(prec=80):
        power = Decimal(n) ** (Decimal(exponent.numerator) / exponent.denominator)
        return 1 / (1 + (n - 1) / Fraction(power))


def closed_margin(mechanism: str, n: int) -> Fraction:
    """Return a1 f(a1) - a0 f(a0), from the formulas."""
    weight = linear_weight if mechanism == "linear" else softmax_weight
    return A1 * weight(A1, B + C, n) - A0 * weight(A0, B + C, n)


def margin_points(mechanism: Mechanism) -> Points:
    """Check the margin at growing n: by the formulas, the reference numbers, and dense tokens at n = 1000."""
    points = Points()
    for n, margin in zip(MARGIN_SIZES, on_grid(mechanism, BASE, n=MARGIN_SIZES).margin, strict=True):
        errors = {"error": relative_error(float(margin), closed_margin(mechanism.name, n))}
        if n == MARGIN_SIZES[0]:
            errors["dense_error"] = dense_error(mechanism, n, float(margin))
        expected, tolerance = REFERENCE[mechanism.name].get(n, (margin, 0))
        holds = max(errors.values()) < 1e-9 and abs(margin - expected) <= tolerance
        parameters = {**BASE, "n": n, "mechanism": mechanism.name}
        points.add(parameters, holds, margin=margin, margin_times_n=margin * n, **errors)
    return points


def dense_error(mechanism: Mechanism, n: int, margin: float) -> float:
    """Return the relative error of `margin` against the margin on all n tokens."""
    construction = spike(BASE, n=n)
    low, high = (dense.probe(construction, mechanism, label, torch.float64) for label in LABELS)
    return relative_error((high - low) / construction.unit, margin)


def verify_laws(points: Points, mechanism: str) -> list[GrowthLaw]:
    """Add the bounds of the margin from both `LAW_SIZES` on, and return them."""
    laws = []
    for n in LAW_SIZES:
        certificate, law = prove_law(mechanism, {**BASE, "n": n})
        points.verify(certificate, low=law.low, high=law.high)
        laws.append(law)
    return laws


@claim("margin-softmax", "3.8", "ours")
def margin_softmax() -> Finding:
    """Softmax with a1(a1+b+c) > 1: with all signs + the pre-activations of D1 and D0 differ by a constant
    (1.19998 sqrt(log n) at n=1e6).
    """
    points = margin_points(Softmax())
    first, last = verify_laws(points, "softmax")
    is_constant = last.exponent == 0 and last.low > last.high - 1e-12 and last.bounds[1] == A1
    points.add({}, is_constant)
    return points.conclude(
        f"margin {points.margin[0]:.4f} at n = 1e3, {points.margin[2]:.5f} at n = 1e6; {first.statement}, its limit",
        f"from n = 1e18 on it is within {float(A1 - last.bounds[0]):.0e} of its limit",
    )


@claim("margin-linear", "3.8", "ours")
def margin_linear() -> Finding:
    """Linear: they differ by about 5.99/n (5.98964e-6 sqrt(log n) at n=1e6).

    A margin that falls like 1/n, and its constant (a1(a1+b+c) - a0(a0+b+c))/(b+c).
    """
    points = margin_points(Linear())
    first, last = verify_laws(points, "linear")
    constant, limit = points.margin_times_n[-1], (1.2 * 1.5 - 0.01 * 0.31) / 0.3
    good = relative_error([constant, last.low, last.high], [limit] * 3) < 1e-12 and last.exponent == -1
    points.add({}, good, constant=constant, limit=limit)
    return points.conclude(
        f"margin {points.margin[0]:.8f} at n = 1e3, {points.margin[2]:.5e} at n = 1e6; {first.statement}; it tends to "
        f"{limit:.5f}",
        f"n margin at n = 1e3 is {float(1 - first.bounds[0] / first.bounds[1]):.1%} below its limit",
    )


def noisy_order(margin: float, sd: float) -> float:
    """Return P(v1 + noise > v0 + other noise), by integration over the noise."""

    def density(z: float) -> float:
        return math.exp(-z * z / 2) / math.sqrt(2 * math.pi) * float(scipy.special.ndtr(margin / sd + z))

    return float(scipy.integrate.quad(density, -12, 12, epsabs=1e-13)[0])


@claim("noise", "3.8", "ours")
def noise() -> Finding:
    """Under Gaussian noise of fixed size on one reading of one row, softmax keeps its AUC as n grows; linear falls
    to chance.

    AUC with Gaussian noise of sd 1/2 on the pre-activation.
    """
    points = Points()
    for mechanism, n in product(("softmax", "linear"), (10**3, 10**6, 10**12)):
        answer = verdict("spike", mechanism, noise_sd="0.5", **{**BASE, "n": n})
        auc = answer.auc or 0.0
        error = abs(auc - noisy_order(answer.outcome.margin, 0.5))
        # AUC - 1/2 is about margin/(sd 2 sqrt(pi)), and linear's margin is about 5.99/n.
        is_as_claimed = auc > 0.9 if mechanism == "softmax" else abs(auc - 0.5) <= 6 / n
        parameters = {**BASE, "n": n, "mechanism": mechanism, "sd": "0.5"}
        points.add(parameters, is_as_claimed and error < 1e-9, auc=auc, error=error)
    # AUC = Phi(margin/(sd sqrt(2))) at sd 1/2: a margin of 1.195 keeps it above 0.95, one of 6/n brings it to 1/2.
    (softmax, _), (linear, _) = (verify_laws(points, name) for name in ("softmax", "linear"))
    is_enough = softmax.exponent == 0 and softmax.low > 1.195 and linear.exponent == -1 and linear.high < 6
    points.add({**BASE, "sd": "0.5"}, is_enough, least_auc_of_softmax=float(scipy.special.ndtr(softmax.low * 2**0.5)))
    return points.conclude(
        f"AUC at noise of sd 0.5 sqrt(log n): softmax {points.auc[0]:.4f} at n = 1e3 and "
        f"{points.auc[2]:.4f} at n = 1e12; linear {points.auc[3]:.4f} and {points.auc[5]:.4f}",
        f"linear {points.auc[3] - 0.5:.0e} above chance at n = 1e3",
    )


FORMAT_SETTINGS: tuple[Setting, Setting] = ({**BASE, "n": 1000}, {**BASE, "n": 1000, "d": 12, "b": "0.5", "c": "0.3"})
"""At the second the difference is lost in both 16-bit formats at an n that dense tokens reach."""
MAX_FORMAT_RUN = 40_000
MAX_CLAIMED_N = 10**40
"""The statement on softmax reaches up to here, and so must the search."""


@claim("number-formats", "3.9", "ours")
def number_formats() -> Finding:
    """Linear needs log2(v1/margin) significant bits, so in bf16, fp16, fp32 and fp64 each the difference is
    lost from some n on; with softmax and a1(a1+b+c) > 1 it is not, as far as n = 1e40.

    Linear: by bits, by the closed form of 3.8 rounded to the format at that n and at the one before, and by
    running the format on either side where n allows. Softmax: none found, and by its closed form none at any
    power of ten.
    """
    points = Points()
    for setting in FORMAT_SETTINGS:
        lost_sizes = lost_from(spike(setting), Linear())
        points += [linear_format_point(setting, name, n) for name, n in lost_sizes.items()]
    lost_sizes = lost_from(spike(FORMAT_SETTINGS[1]), Softmax())
    points += [softmax_format_point(FORMAT_SETTINGS[1], name, n) for name, n in lost_sizes.items()]
    points.add({"largest_n": MAX_FORMAT_N}, MAX_FORMAT_N >= MAX_CLAIMED_N)
    first = ", ".join(f"{p.measured['lost_from']} ({p.parameters['format']})" for p in points[:4])
    runs = sum("differs_at_half" in p.measured for p in points)
    return points.conclude(
        f"linear's is lost from n = {first}; {runs} cases run on all tokens in the format differ at n/2 and "
        f"not at 2n; for softmax no such n was found up to {short(MAX_FORMAT_N)}",
        f"{points.bits_past.min:.1f} to {points.bits_past.max:.1f} bits past the format's",
    )


def linear_format_point(setting: Setting, name: str, n: int | None) -> Point:
    """Check that n is where the bits run out, and that dense tokens in this format say so too."""
    parameters = {**setting, "mechanism": "linear", "format": name}
    if n is None:
        return Point(parameters, False, lost_from="none found")
    bits, before = SIGNIFICANT_BITS[name], n - (setting["d"] - 2)
    past = float(on_grid(Linear(), {**setting, "n": n}).bits) - bits
    is_first = is_lost(setting, bits, n, linear_weight) and not is_lost(setting, bits, before, linear_weight)
    # Half a unit in the last place is 2^-p to 2^-(p+1) of the number.
    holds = -0.01 <= past <= 1.01 and is_first
    results: Setting = {"lost_from": short(n), "is_first": is_first, "bits_past": past}
    if 2 * n <= MAX_FORMAT_RUN:
        # Not at n itself: the format rounds inside the attention too, which shifts the n a little.
        at_half, at_double = (labels_differ(Linear(), setting, name, size) for size in (n // 2, 2 * n))
        holds = holds and at_half and not at_double
        results |= {"differs_at_half": at_half, "differs_at_double": at_double}
    return Point(parameters, holds, **results)


def is_lost(setting: Setting, bits: int, n: int, weight: SpikeWeight) -> bool:
    """Return whether the two pre-activations are one number of this many bits, by the form of theory 3.8.

    The spike adds a f to what both labels share, r = b + c, all in units of sqrt(log n).
    """
    with localcontext(prec=80):
        unit = Fraction(Decimal(n).ln().sqrt())
    r = Fraction(setting["b"]) + Fraction(setting["c"])
    common = round_half_even(r * unit, bits)
    spikes = [a * weight(a, r, n) * unit for a in map(Fraction, (setting["a0"], setting["a1"]))]
    return len({round_half_even(common + spike, bits) for spike in spikes}) == 1


def round_half_even(x: Fraction, bits: int) -> Fraction:
    """Return a positive number rounded to this many significant bits.

    >>> round_half_even(Fraction(9), 3), round_half_even(Fraction(11, 8), 3)
    (Fraction(8, 1), Fraction(3, 2))
    """
    # The lengths give the exponent or one less, which the loop corrects.
    exponent = x.numerator.bit_length() - x.denominator.bit_length() - bits
    while x / Fraction(2) ** exponent >= 2**bits:
        exponent += 1
    return round(x / Fraction(2) ** exponent) * Fraction(2) ** exponent


def softmax_format_point(setting: Setting, name: str, n: int | None) -> Point:
    """Check that no n is lost, and that dense tokens differ at an n where a 16-bit linear one does not.

    By the closed form the labels differ at every power of ten from 1e3 to 1e40, too.
    """
    differs = labels_differ(Softmax(), setting, name, 4000)
    decades = [10**e for e in range(3, 41)]
    lost_count = sum(is_lost(setting, SIGNIFICANT_BITS[name], decade, softmax_weight) for decade in decades)
    holds, lost_n = n is None and differs and not lost_count, "none found" if n is None else str(n)
    results: Setting = {"lost_from": lost_n, "differs_at_4000": differs, "powers_of_ten_lost": lost_count}
    return Point({**setting, "mechanism": "softmax", "format": name}, holds, **results)


def labels_differ(mechanism: Mechanism, setting: Setting, name: str, n: int) -> bool:
    """Return whether D0 and D1 give different pre-activations with every step in the format."""
    dtype: torch.dtype = getattr(torch, TORCH_NAMES[name])
    construction = spike(setting, n=n - n % (setting["d"] - 2))
    low, high = (dense.probe(construction, mechanism, label, dtype) for label in LABELS)
    return low != high
