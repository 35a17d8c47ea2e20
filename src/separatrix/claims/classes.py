"""Theory 7.4: more than two classes, and a real-valued target."""

from __future__ import annotations

import math

from separatrix.claims._base import Finding, Point, claim
from separatrix.claims._tools import (
    conclude,
    example,
    judged,
    largest,
    limit_in_log,
    point,
    short,
    smallest,
    values,
)
from separatrix.constructions import Level, Spikes
from separatrix.maps import boundary

CLASSES = (2, 4, 64, 256)
SIZES = (10**3, 10**6, 10**18)
GROWING = tuple(10**e for e in (3, 6, 30, 100))
B = 0.2


@claim("which-of-k", "7.4", "ours")
def which_of_k() -> Finding:
    """Past two classes: which of k spikes. Softmax fires for the right class alone once a1 - b passes 1 (as n
    grows), for any k; linear does not.

    Certified at each k and n, and where a1 passes the boundary b + 1.
    """
    points = [class_point(k, n) for k in CLASSES for n in SIZES]
    crossings = [class_boundary(n) for n in GROWING]
    places = values(crossings, "a1")
    reached = limit_in_log(GROWING, places) if len(places) == len(GROWING) else math.nan
    away = abs(reached - B - 1)
    crossings.append(point({"k": 4}, away < 1e-5, extrapolated=reached, claimed=B + 1, away=away))
    return conclude(
        [*points, *crossings],
        f"softmax fires for the right class alone with P = {smallest(points, 'softmax'):.5f} or more, linear "
        f"with P = {largest(points, 'linear'):.0f}, for k = {', '.join(map(str, CLASSES))}, n = 1e3 to 1e18 "
        f"(certified); the a1 it takes tends to {reached:.5f} (n = 1e3 to {short(GROWING[-1])})",
        f"P is 1-2^-m, the most this reader can reach; limit off by {away:.0e}",
    )


def class_point(k: int, n: int) -> Point:
    """Holds if softmax names the class and linear does not."""
    softmax, linear = (judged(example(Spikes, k=k, n=n), each, "certified") for each in ("softmax", "linear"))
    return point(
        {"k": k, "n": n},
        (softmax.word, linear.word) == ("distinguishes", "blind"),
        softmax=softmax.outcome.distinguish,
        linear=linear.outcome.distinguish,
    )


def class_boundary(n: int) -> Point:
    """Holds if there is one certified crossing in a1, below b + 1 and where the weight passes tau = 1/10."""
    asked = {"a1": "0.5:3", "n": n, "m": 12, "tau": "0.1"}
    found = boundary("spikes", "softmax", asked, scan=15, tolerance="1e-9")
    a1 = found.crossings[0].middle if len(found.crossings) == 1 else math.nan
    expected = B + (math.log(n - 1) - math.log(9)) / math.log(n)
    holds = all(each.certified for each in found.crossings) and abs(a1 - expected) < 1e-8 and a1 < B + 1
    return point({"k": 4, "n": n, "tau": "0.1"}, holds, a1=a1)


@claim("resolution", "7.4", "ours")
def resolution() -> Finding:
    """A real-valued target: the output moves with the amplitude at slope 1/(1+(n-1)n^{-gap}) = Θ(1) for
    softmax (gap above 1) and (1+gap)/(n+gap) = Θ(1/n) for linear.

    The slope: the margin of neighbouring levels over their distance, for every pair of levels.
    """
    points = []
    for n in SIZES:
        for levels, at in ((2, 0), (5, 0), (5, 3), (101, 50)):
            made = example(Level, n=n, levels=levels, at=at)
            margins = [judged(made, each, "certified").outcome.margin for each in ("softmax", "linear")]
            softmax, linear = ((levels - 1) * margin for margin in margins)
            close = abs(softmax * (1 + (n - 1) / n**2) - 1) < 1e-9 and abs(linear * (n + 2) / 3 - 1) < 1e-9
            measured = {"softmax": softmax, "linear": linear, "linear_n": linear * n}
            points.append(point({"n": n, "levels": levels, "at": at}, close, **measured))
    return conclude(
        points,
        f"slope {smallest(points, 'softmax'):.4f} to {largest(points, 'softmax'):.4f} for softmax and "
        f"{smallest(points, 'linear_n'):.3f}/n to {largest(points, 'linear_n'):.3f}/n for linear, at n = 1e3 "
        "to 1e18, the same for every pair of levels (certified margins)",
        f"softmax passes {smallest(points, 'softmax'):.3f} of a change on, linear "
        f"{largest(points, 'linear'):.4f} or less",
    )
