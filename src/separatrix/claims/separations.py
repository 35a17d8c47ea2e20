"""Theory 7.3 and 7.4: where linear attention wins and where softmax does; classes and real values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product

from separatrix.claims import _tools as tools
from separatrix.claims._base import Finding, Point, Points, claim
from separatrix.claims._tools import SEPARATED, example, judge, judge_pair, limit_in_log, relative_error
from separatrix.constructions import CONSTRUCTIONS
from separatrix.constructions.level import Level
from separatrix.constructions.spikes import Spikes
from separatrix.exact.verdicts.words import separates

UNNORMALISED = "identity-features:normalised=no"
LINEAR_WINS: Mapping[str, str] = {
    "duplication": UNNORMALISED,
    "dispersion": UNNORMALISED,
    "regression": UNNORMALISED,
    "majority": "linear",
}
"""The constructions whose example softmax fails, and a mechanism of the linear family that does not."""
SOFTMAX_WINS = (
    *("spike", "plain", "cross", "injectivity", "parity", "routing"),
    *("critical", "averaging", "location", "recall", "spikes", "level"),
)
EXACT_ENGINES = ("certified", "closed")


@claim("linear-wins", "7.3", "ours")
def linear_wins() -> Finding:
    """Where linear attention wins: on duplication, dispersion, regression and majority a mechanism of the
    linear family tells D0 from D1 and softmax does not (P <= 0.01; this reader, each construction's tau).

    No answer is sampled: the witness distinguishes, softmax is blind or saturated.
    """
    points = Points(pair_point(name, winner, "softmax") for name, winner in LINEAR_WINS.items())
    return _conclude(points, "a linear mechanism distinguishes and softmax is blind or saturated")


@claim("softmax-wins", "7.3", "ours")
def softmax_wins() -> Finding:
    """Where softmax wins: on the spike, its variants and the retrieval constructions it tells D0 from D1 and
    normalised linear attention does not (P <= 0.01; this reader, each construction's tau).

    The reverse, against normalised linear attention.
    """
    points = Points(pair_point(name, "softmax", "linear") for name in SOFTMAX_WINS)
    return _conclude(points, "softmax distinguishes and linear is blind or saturated")


def _conclude(points: Points, statement: str) -> Finding:
    names = ", ".join(str(point.parameters["construction"]) for point in points)
    return points.conclude(
        f"{statement} on {names}, at the example of each, by the certified or closed engine",
        f"P of the winner {points.winner_p.min:.5f} or more, of the loser at most {points.loser_p.max:.1e}",
    )


def pair_point(construction: str, winner: str, loser: str) -> Point:
    """Check that the winner distinguishes and the loser is blind or saturated, neither of it sampled."""
    reference = example(CONSTRUCTIONS[construction])
    winner_verdict, loser_verdict = judge(reference, winner), judge(reference, loser)
    engines = winner_verdict.outcome.engine, loser_verdict.outcome.engine
    holds = all(engine in EXACT_ENGINES for engine in engines) and separates(winner_verdict.word, loser_verdict.word)
    chances = {"winner_p": winner_verdict.outcome.distinguish, "loser_p": loser_verdict.outcome.distinguish}
    parameters = {"construction": construction, "winner": winner, "loser": loser}
    return Point(parameters, holds, **chances, engines=", ".join(engines))


CLASS_SIZES = (10**3, 10**6, 10**18)
CLASS_CROSSING_SIZES = tuple(10**e for e in (3, 6, 30, 100))
B = 0.2


@claim("which-of-k", "7.4", "ours")
def which_of_k() -> Finding:
    """Past two classes: which of k spikes. Softmax fires for the right class alone once a1 - b passes 1 (as n
    grows), for any k; linear does not.

    Certified at each k and n, and where a1 passes the boundary b + 1.
    """
    points = Points(class_point(k, n) for k, n in product((2, 4, 64, 256), CLASS_SIZES))
    points += [class_boundary_point(n) for n in CLASS_CROSSING_SIZES]
    estimate = limit_in_log(CLASS_CROSSING_SIZES, points.values("a1"))
    away = abs(estimate - B - 1)
    points.add({"k": 4}, away < 1e-5, extrapolated=estimate, claimed=B + 1, away=away)
    return points.conclude(
        f"softmax fires for the right class alone with P = {points.softmax.min:.5f} or more, linear with P "
        f"= {points.linear.max:.0f}, for k = 2, 4, 64, 256, n = 1e3 to 1e18 (certified); the a1 it takes "
        f"tends to {points.extrapolated.max:.5f} (n = 1e3 to {tools.short(CLASS_CROSSING_SIZES[-1])})",
        f"P is 1-2^-m, the most this reader can reach; limit off by {points.away.max:.0e}",
    )


def class_point(k: int, n: int) -> Point:
    """Check that softmax names the class and linear does not."""
    words, (softmax, linear) = judge_pair(example(Spikes, k=k, n=n))
    results = {"softmax": softmax.distinguish, "linear": linear.distinguish}
    return Point({"k": k, "n": n}, words == SEPARATED, **results)


def class_boundary_point(n: int) -> Point:
    """Check for one certified crossing in a1, below b + 1 and where the weight passes tau = 1/10."""
    a1 = tools.certified_crossing("spikes", a1="0.5:3", n=n, tau="0.1")
    expected = B + (math.log(n - 1) - math.log(9)) / math.log(n)
    return Point({"k": 4, "n": n, "tau": "0.1"}, abs(a1 - expected) < 1e-8 and a1 < B + 1, a1=a1)


@claim("resolution", "7.4", "ours")
def resolution() -> Finding:
    """A real-valued target: the output moves with the amplitude at slope 1/(1+(n-1)n^{-gap}) = Θ(1) for
    softmax (gap above 1) and (1+gap)/(n+gap) = Θ(1/n) for linear.

    The slope: the margin of neighbouring levels over their distance, for every pair of levels.
    """
    points = Points()
    for n, (levels, at) in product(CLASS_SIZES, ((2, 0), (5, 0), (5, 3), (101, 50))):
        _, outcomes = judge_pair(example(Level, n=n, levels=levels, at=at))
        softmax, linear = ((levels - 1) * outcome.margin for outcome in outcomes)
        error = relative_error([softmax, linear], [1 / (1 + (n - 1) / n**2), 3 / (n + 2)])
        results = {"softmax": softmax, "linear": linear, "linear_n": linear * n}
        points.add({"n": n, "levels": levels, "at": at}, error < 1e-9, **results)
    return points.conclude(
        f"slope {points.softmax.min:.4f} to {points.softmax.max:.4f} for softmax and "
        f"{points.linear_n.min:.3f}/n to {points.linear_n.max:.3f}/n for linear, at n = 1e3 to 1e18, the "
        "same for every pair of levels (certified margins)",
        f"softmax passes {points.softmax.min:.3f} of a change on, linear {points.linear.max:.4f} or less",
    )
