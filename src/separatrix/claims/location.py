"""Theory 6.8, single-location regression: one token holds the signal."""

from __future__ import annotations

from fractions import Fraction

from separatrix.claims._base import Finding, Point, claim
from separatrix.claims._tools import Points, example, judged, point, relative_error, short
from separatrix.claims.units import LABELS
from separatrix.constructions.location import Location
from separatrix.core.tensors import torch
from separatrix.exact.engines import dense
from separatrix.exact.outputs.proved import proved_outputs
from separatrix.mechanisms import Linear, Mechanism, Softmax

SIZES = tuple(10**e for e in (3, 6, 9, 12))
GAP = 2


@claim("single-location", "6.8", "rec")
def reads() -> Finding:
    """One marked token carries the signal, all carry noise (arXiv 2509.21936): softmax's error tends to the
    Bayes risk, which is 0 here, linear's to that of no answer: it averages the signal away with the noise.

    The squared error of the signal, read off what tells a1 = 1 from a0 = 0. At n = 1000 all tokens are run
    through both units as well.
    """
    points = Points(location_point(n) for n in SIZES)
    points.append(dense_point(SIZES[0]))
    return points.conclude(
        f"softmax distinguishes and linear is blind at n = 1e3 to {short(SIZES[-1])} (certified); squared "
        f"error: softmax {points.largest('softmax_risk'):.0e}, at last "
        f"{points.smallest('softmax_risk'):.0e} (Bayes: 0), linear {points.smallest('linear_risk'):.4f} or "
        "more (no answer at all: 1)",
        f"softmax at most n^(2-2gap), {points.largest('of_bound'):.4f} of it used; linear within "
        f"{1 - points.smallest('linear_risk'):.1e} of knowing nothing",
    )


def risk(made: Location, mechanism: Mechanism) -> tuple[Fraction, Fraction]:
    """Two numbers between which (1 - margin)² lies."""
    outputs = proved_outputs(made, mechanism)
    low, high = outputs.gap(outputs.probe_weights)
    return (1 - high) ** 2, (1 - low) ** 2


def location_point(n: int) -> Point:
    """Holds if softmax's risk is at most n^{2-2gap} and linear's is ((n-1)/(n+gap))², and the words match."""
    made = example(Location, n=n, gap=GAP)
    words = [judged(made, each, "certified").word for each in ("softmax", "linear")]
    (_, most), (least, _) = risk(made, Softmax()), risk(made, Linear())
    bound = Fraction(1, n ** (2 * GAP - 2))
    holds = most <= bound and least == Fraction(n - 1, n + GAP) ** 2 and words == ["distinguishes", "blind"]
    measured = {"softmax_risk": float(most), "of_bound": float(most / bound), "linear_risk": float(least)}
    return point({"n": n, "gap": GAP}, holds, **measured)


def dense_point(n: int) -> Point:
    """Check what all n tokens give, through both units and on both labels, against certified numbers."""
    made = example(Location, n=n, gap=GAP)
    errors = []
    for mechanism in (Softmax(), Linear()):
        outcome = judged(made, mechanism.name, "certified").outcome
        for label, expected in zip(LABELS, (outcome.v0, outcome.v1), strict=True):
            computed = dense.probe(made, mechanism, label, torch.float64) / made.unit
            errors.append(relative_error(computed, expected))
    return point({"n": n, "gap": GAP}, max(errors) < 1e-11, dense_error=max(errors))
