"""Theory 3.8, what survives a tuned threshold: the margin, and what noise leaves of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

import scipy

from separatrix.analysis.laws import exact_law
from separatrix.claims._base import Finding, claim
from separatrix.claims._tools import BASE, Points, on_grid, relative_error, spike
from separatrix.claims.units import LABELS
from separatrix.core.tensors import torch
from separatrix.exact.engines import dense
from separatrix.exact.verdicts import verdict
from separatrix.mechanisms import Linear, Mechanism, Softmax

SIZES = [10**e for e in (3, 4, 6, 9, 12, 18)]
REFERENCE: dict[str, Mapping[int, tuple[float, float]]] = {
    "softmax": {10**3: (1.1952, 5e-5), 10**6: (1.19998, 5e-6)},
    "linear": {10**3: (0.00596576, 5e-9), 10**6: (5.98964e-6, 5e-12)},
}
"""The reference numbers for a0=.01, a1=1.2, b=.2, c=.1, d=102, and half a unit of their last digit."""
A0, A1, R = Fraction(1, 100), Fraction(6, 5), Fraction(3, 10)
"""BASE's a0, a1 and b+c."""


def closed_margin(mechanism: str, n: int) -> float:
    """a1 f(a1) - a0 f(a0) with the weight f of the spike in its own row, from the formulas."""
    if mechanism == "linear":
        quiet, loud = (a * (a + R) / (a + n * R) for a in (A0, A1))
        return float(loud - quiet)
    low, high = (float(a) / (1 + (n - 1) * math.exp(-float(a * (a + R)) * math.log(n))) for a in (A0, A1))
    return high - low


def margin_points(mechanism: Mechanism) -> Points:
    """The margin at growing n: by the formulas, by the reference numbers, and on dense tokens at n = 1000."""
    points = Points()
    for n, margin in zip(SIZES, on_grid(mechanism, BASE, n=SIZES).margin, strict=True):
        measured = {"error": relative_error(float(margin), closed_margin(mechanism.name, n))}
        holds = measured["error"] < 1e-9
        if n in REFERENCE[mechanism.name]:
            expected, within = REFERENCE[mechanism.name][n]
            holds = holds and abs(margin - expected) <= within
        if n == SIZES[0]:
            measured["dense_error"] = dense_error(mechanism, n, float(margin))
            holds = holds and measured["dense_error"] < 1e-9
        parameters = {**BASE, "n": n, "mechanism": mechanism.name}
        points.add(parameters, holds, margin=margin, margin_times_n=margin * n, **measured)
    return points


def dense_error(mechanism: Mechanism, n: int, margin: float) -> float:
    """How far the margin on all n tokens is from `margin`."""
    made = spike(BASE, n=n)
    low, high = (dense.probe(made, mechanism, label, torch.float64) for label in LABELS)
    return relative_error((high - low) / made.unit, margin)


@claim("margin-softmax", "3.8", "ours")
def margin_softmax() -> Finding:
    """Softmax with a1(a1+b+c) > 1: with all signs + the pre-activations of D1 and D0 differ by a constant
    (1.19998 sqrt(log n) at n=1e6).
    """
    points = margin_points(Softmax())
    margins = points.values("margin")
    slope = exact_law(SIZES, margins).exponent
    points.add({}, abs(slope) < 0.01, exponent=slope, claimed=0)
    return points.conclude(
        f"margin {margins[0]:.4f} at n = 1e3, {margins[2]:.5f} at n = 1e6; fitted exponent {slope:+.5f} over "
        "n = 1e3 to 1e18",
        f"exponent {slope:+.0e}, claimed 0",
    )


@claim("margin-linear", "3.8", "ours")
def margin_linear() -> Finding:
    """Linear: they differ by about 5.99/n (5.98964e-6 sqrt(log n) at n=1e6).

    A margin that falls like 1/n, and its constant (a1(a1+b+c) - a0(a0+b+c))/(b+c).
    """
    points = margin_points(Linear())
    margins, constant = points.values("margin"), points.values("margin_times_n")[-1]
    slope, limit = exact_law(SIZES, margins).exponent, (1.2 * 1.5 - 0.01 * 0.31) / 0.3
    good = abs(slope + 1) < 0.01 and relative_error(constant, limit) < 1e-6
    points.add({}, good, exponent=slope, claimed=-1, constant=constant, limit=limit)
    return points.conclude(
        f"margin {margins[0]:.8f} at n = 1e3, {margins[2]:.5e} at n = 1e6; fitted exponent {slope:+.5f}; "
        f"n times margin tends to {constant:.5f}",
        f"exponent {slope:+.4f}, claimed -1; constant {constant:.3f}",
    )


def noisy_order(margin: float, sd: float) -> float:
    """P(v1 + noise > v0 + other noise), by integration over the noise."""

    def density(z: float) -> float:
        return math.exp(-z * z / 2) / math.sqrt(2 * math.pi) * float(scipy.special.ndtr(margin / sd + z))

    return float(scipy.integrate.quad(density, -12, 12, epsabs=1e-13)[0])


@claim("noise", "3.8", "ours")
def noise() -> Finding:
    """Under Gaussian noise of fixed size softmax keeps its AUC as n grows; linear falls to chance.

    AUC with Gaussian noise of sd 1/2 on the pre-activation.
    """
    points = Points()
    for mechanism in ("softmax", "linear"):
        for n in (10**3, 10**6, 10**12):
            found = verdict("spike", mechanism, noise_sd="0.5", **{**BASE, "n": n})
            seen, error = found.auc or 0.0, abs((found.auc or 0.0) - noisy_order(found.outcome.margin, 0.5))
            as_claimed = seen > 0.9 if mechanism == "softmax" else abs(seen - 0.5) <= 6 / n
            parameters = {**BASE, "n": n, "mechanism": mechanism, "sd": "0.5"}
            points.add(parameters, as_claimed and error < 1e-9, auc=seen, error=error)
    auc = points.values("auc")
    return points.conclude(
        f"AUC at noise of sd 0.5 sqrt(log n): softmax {auc[0]:.4f} at n = 1e3 and {auc[2]:.4f} at n = 1e12; "
        f"linear {auc[3]:.4f} and {auc[5]:.4f}",
        f"linear {auc[3] - 0.5:.0e} above chance at n = 1e3",
    )
