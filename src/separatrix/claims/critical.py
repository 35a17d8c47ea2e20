"""Theory 6.6, critical scaling: how fast logits must grow."""

from __future__ import annotations

import math
from fractions import Fraction

from separatrix.claims._base import Finding, Point, claim
from separatrix.claims._tools import Points, certified_crossing, limit_in_log, point, short

RHOS = ("0", "1/4", "3/4")
SIZES = tuple(10**e for e in (3, 6, 30, 100))
TAU = Fraction(1, 10)
CLOSE = 1e-5


@claim("critical-scaling", "6.6", "rec")
def boundary() -> Finding:
    """Tokens of inner product rho, logits gamma log n (arXiv 2510.05554): softmax comes to find a token as
    gamma passes gamma_c = 1/(1-rho), in the limit of large n; at finite n and small tau earlier.

    Where P passes 1/2 in gamma, both ends proved, at growing n and extrapolated in 1/log n.
    """
    points = Points()
    for rho in RHOS:
        limit = 1 / (1 - float(Fraction(rho)))
        found = Points(crossing_point(rho, n, limit) for n in SIZES)
        places = found.values("gamma")
        reached = limit_in_log(SIZES, places)
        away = abs(reached / limit - 1)
        rises = places == sorted(set(places))
        points += [*found, point({"rho": rho}, rises and away < CLOSE, extrapolated=reached, away=away)]
    return points.conclude(
        f"P passes 1/2 in gamma where (n-1)n^{{-gamma(1-rho)}} = 1/tau - 1 (both ends certified, off by "
        f"{points.largest('error'):.0e}), n = 1e3 to {short(SIZES[-1])}, and tends to 1/(1-rho) for rho = "
        f"{', '.join(RHOS)}",
        f"limit off by {points.largest('away'):.0e}; {100 * points.largest('below'):.0f}% lower at n = "
        f"1000 with tau = {float(TAU)}",
    )


def crossing_point(rho: str, n: int, limit: float) -> Point:
    """Holds if there is a single, certified crossing, below the limit, and where the closed form has it."""
    gamma = certified_crossing("critical", gamma=f"{limit / 4}:{2 * limit}", rho=rho, n=n, tau=TAU)
    expected = limit * (math.log(n - 1) - math.log(1 / TAU - 1)) / math.log(n)
    error = abs(gamma / expected - 1)
    holds = error < 1e-8 and gamma < limit
    return point({"rho": rho, "n": n, "tau": TAU}, holds, gamma=gamma, error=error, below=1 - gamma / limit)
