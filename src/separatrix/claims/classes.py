"""Theory 7.4: more than two classes, and a real-valued target."""

from __future__ import annotations

import math

from separatrix.claims._base import Finding, Point, claim
from separatrix.claims._tools import Points, certified_crossing, example, judged, limit_in_log, point, short
from separatrix.constructions.level import Level
from separatrix.constructions.spikes import Spikes

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
    points = Points(class_point(k, n) for k in CLASSES for n in SIZES)
    crossings = Points(class_boundary(n) for n in GROWING)
    places = crossings.values("a1")
    reached = limit_in_log(GROWING, places)
    away = abs(reached - B - 1)
    crossings.add({"k": 4}, away < 1e-5, extrapolated=reached, claimed=B + 1, away=away)
    return Points([*points, *crossings]).conclude(
        f"softmax fires for the right class alone with P = {points.smallest('softmax'):.5f} or more, linear "
        f"with P = {points.largest('linear'):.0f}, for k = {', '.join(map(str, CLASSES))}, n = 1e3 to 1e18 "
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
    a1 = certified_crossing("spikes", a1="0.5:3", n=n, tau="0.1")
    expected = B + (math.log(n - 1) - math.log(9)) / math.log(n)
    return point({"k": 4, "n": n, "tau": "0.1"}, abs(a1 - expected) < 1e-8 and a1 < B + 1, a1=a1)


@claim("resolution", "7.4", "ours")
def resolution() -> Finding:
    """A real-valued target: the output moves with the amplitude at slope 1/(1+(n-1)n^{-gap}) = Θ(1) for
    softmax (gap above 1) and (1+gap)/(n+gap) = Θ(1/n) for linear.

    The slope: the margin of neighbouring levels over their distance, for every pair of levels.
    """
    points = Points()
    for n in SIZES:
        for levels, at in ((2, 0), (5, 0), (5, 3), (101, 50)):
            made = example(Level, n=n, levels=levels, at=at)
            margins = [judged(made, each, "certified").outcome.margin for each in ("softmax", "linear")]
            softmax, linear = ((levels - 1) * margin for margin in margins)
            close = abs(softmax * (1 + (n - 1) / n**2) - 1) < 1e-9 and abs(linear * (n + 2) / 3 - 1) < 1e-9
            measured = {"softmax": softmax, "linear": linear, "linear_n": linear * n}
            points.add({"n": n, "levels": levels, "at": at}, close, **measured)
    return points.conclude(
        f"slope {points.smallest('softmax'):.4f} to {points.largest('softmax'):.4f} for softmax and "
        f"{points.smallest('linear_n'):.3f}/n to {points.largest('linear_n'):.3f}/n for linear, at n = 1e3 "
        "to 1e18, the same for every pair of levels (certified margins)",
        f"softmax passes {points.smallest('softmax'):.3f} of a change on, linear "
        f"{points.largest('linear'):.4f} or less",
    )
