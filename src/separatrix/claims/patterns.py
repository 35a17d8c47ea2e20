"""Theory 6.3, rank: patterns too fine for a polynomial of the logit."""

from __future__ import annotations

import math
from fractions import Fraction

import scipy

from separatrix.claims._base import Finding, claim
from separatrix.claims._tools import Points, example, relative_error
from separatrix.constructions.parity import Parity
from separatrix.constructions.routing import Routing
from separatrix.core.numbers.logforms import rational
from separatrix.exact.engines import closed
from separatrix.exact.outputs.kernels import kernel_rows, same_rows
from separatrix.mechanisms import Power, Softmax, mechanism_named

ROUNDING = 1e-12
CIRCLES = (8, 12)
CUBES = (2, 3, 4, 5)
"""Bits of a word: n = 2^bits."""


@claim("routing-degree", "6.3", "ours")
def routing_degree() -> Finding:
    """n keys on a circle, values that alternate: a kernel that is a polynomial of degree below n/2 in the
    logit cancels the pattern, degree n/2 does not, and softmax passes I_{n/2}/I_0 (summed over multiples of
    n).

    Below degree n/2 the pattern comes out as rounding; from n/2 on, and through softmax, it does not.
    """
    points = Points()
    for n in CIRCLES:
        for degree in range(1, n // 2):
            passed = [circle(n, f"{kernel}={degree}") for kernel in ("power:beta", "taylor:order")]
            worst = max(map(abs, passed))
            points.add({"n": n, "degree": degree}, worst < ROUNDING, cancelled=worst)
        for kernel in ("power:beta", "taylor:order"):
            enough = abs(circle(n, f"{kernel}={n // 2}"))
            parameters = {"n": n, "degree": n // 2, "kernel": kernel.partition(":")[0]}
            points.add(parameters, enough > 1e-6, passed=enough)
        softmax, scale = circle(n, "softmax"), 15 * math.log(n)
        finest = sum(2 * scipy.special.ive(n // 2 + n * k, scale) for k in range(9))
        level = scipy.special.ive(0, scale) + sum(2 * scipy.special.ive(n * k, scale) for k in range(1, 9))
        error = relative_error(softmax, finest / level)
        points.add({"n": n, "mechanism": "softmax"}, error < 1e-9, softmax=softmax, error=error)
    return points.conclude(
        f"power and taylor kernels of degree below n/2 pass {points.largest('cancelled'):.0e} of the "
        f"pattern, degree n/2 {points.smallest('passed'):.1e}, softmax {points.smallest('softmax'):.3f} or "
        f"more, as the Bessel sums say (to {points.largest('error'):.0e}), n = "
        f"{', '.join(map(str, CIRCLES))}",
        f"{points.largest('cancelled'):.0e} of the pattern left, allowed {ROUNDING:.0e}",
    )


def circle(n: int, mechanism: str) -> float:
    """How much of the alternating pattern comes through."""
    return closed.solve(example(Routing, n=n), mechanism_named(mechanism)).margin


@claim("parity-degree", "6.3", "ours")
def parity_degree() -> Finding:
    """n = 2^w words, values by parity: power attention of degree below w = log2 n gives both labels the same
    row, exactly; degree w does not.

    In rationals: degree below log2 n gives both labels the same row, degree log2 n does not.
    """
    points = Points()
    for bits in CUBES:
        for degree in range(1, bits + 1):
            made, power = example(Parity, n=2**bits), Power(beta=degree)
            same = same_rows(made, power)
            *_, margin = kernel_rows(made, power).margin()
            holds = same == (degree < bits) and (margin == 0) == same
            points.add({"n": 2**bits, "degree": degree}, holds, passed=float(margin))
    top = Points(point for point in points if point.measured["passed"] != 0)
    return points.conclude(
        f"rows are equal in rationals for every degree below log2 n, n = 4 to {2 ** CUBES[-1]}, and differ "
        f"at degree log2 n by {top.smallest('passed'):.1e} or more",
        "difference exactly 0 below log2 n: no reader at all finds the parity",
    )


@claim("parity-softmax", "6.3", "ours")
def parity_softmax() -> Finding:
    """Softmax at the logit scale log n passes exactly ((n-1)/(n+1))^w of the parity."""
    points = Points()
    for bits in (*CUBES, 8):
        n = 2**bits
        *_, margin = kernel_rows(example(Parity, n=n), Softmax()).margin()
        expected = Fraction(n - 1, n + 1) ** bits
        points.add({"n": n}, margin == rational(expected), passed=float(margin), claimed=float(expected))
    low, high = points.smallest("passed"), points.largest("passed")
    return points.conclude(
        f"equal as fractions for n = 4 to {2**8}: {low:.3f} to {high:.3f}",
        "difference exactly 0",
    )
