"""Theory 7.3: where linear attention wins, and where softmax does."""

from __future__ import annotations

from collections.abc import Mapping

from separatrix.claims._base import Finding, Point, claim
from separatrix.claims._tools import Points, example, judged, point
from separatrix.constructions import CONSTRUCTIONS
from separatrix.exact.verdicts.words import separates

UNNORMALISED = "identity-features:normalised=no"
LINEAR_WINS: Mapping[str, str] = {
    "duplication": UNNORMALISED,
    "dispersion": UNNORMALISED,
    "regression": UNNORMALISED,
    "majority": "linear",
}
"""The constructions that softmax fails at its example, and who of the linear family does not."""
SOFTMAX_WINS = (
    "spike",
    "plain",
    "cross",
    "injectivity",
    "parity",
    "routing",
    "critical",
    "averaging",
    "location",
    "recall",
    "spikes",
    "level",
)
EXACT = ("certified", "closed")


@claim("linear-wins", "7.3", "ours")
def linear_wins() -> Finding:
    """Where linear attention wins: on duplication, dispersion, regression and majority a mechanism of the
    linear family tells D0 from D1 and softmax does not (P <= 0.01; this reader, each construction's tau).

    No answer is sampled: the witness distinguishes, softmax is blind or saturated.
    """
    points = Points(pair_point(name, winner, "softmax") for name, winner in LINEAR_WINS.items())
    return _found(points, "a linear mechanism distinguishes and softmax is blind or saturated")


@claim("softmax-wins", "7.3", "ours")
def softmax_wins() -> Finding:
    """Where softmax wins: on the spike, its variants and the retrieval constructions it tells D0 from D1 and
    normalised linear attention does not (P <= 0.01; this reader, each construction's tau).

    The other way round, against normalised linear attention.
    """
    points = Points(pair_point(name, "softmax", "linear") for name in SOFTMAX_WINS)
    return _found(points, "softmax distinguishes and linear is blind or saturated")


def _found(points: Points, what: str) -> Finding:
    names = ", ".join(str(each.parameters["construction"]) for each in points)
    return points.conclude(
        f"{what} on {names}, at the example of each, by the certified or closed engine",
        f"P of the winner {points.smallest('winner_p'):.5f} or more, of the loser at most "
        f"{points.largest('loser_p'):.1e}",
    )


def pair_point(construction: str, winner: str, loser: str) -> Point:
    """Holds if the winner distinguishes and the loser is blind or saturated, neither of it sampled."""
    made = example(CONSTRUCTIONS[construction])
    won, lost = judged(made, winner), judged(made, loser)
    engines = won.outcome.engine, lost.outcome.engine
    holds = separates(won.word, lost.word) and all(engine in EXACT for engine in engines)
    return point(
        {"construction": construction, "winner": winner, "loser": loser},
        holds,
        winner_p=won.outcome.distinguish,
        loser_p=lost.outcome.distinguish,
        engines=", ".join(engines),
    )
