"""Theory 7.5, the spike outside its hypotheses: ragged blocks, several spikes, noise."""

from __future__ import annotations

from separatrix.claims._base import Finding, Point, claim
from separatrix.claims._tools import Points, example, judged, point
from separatrix.constructions.rough import Rough
from separatrix.engines import Sampling

SAMPLING = Sampling(draws=200, confidence=0.99)
SMOOTH = {"n": 503, "spikes": 1, "noise": 0}
KEPT: tuple[dict[str, object], ...] = (
    {},
    {"n": 330},
    {"spikes": 3},
    {"noise": "0.005"},
    {"noise": "0.01"},
    {"n": 430, "spikes": 2, "noise": "0.01"},
)
"""Blocks of 5 and 6 tokens, of 3 and 4; several spikes; noise; all at once."""
LOST: tuple[dict[str, object], ...] = ({"noise": "0.02"}, {"noise": "0.05"})
HIGH, LOW = 0.97, 0.03
"""What the ends of a 99% interval after 200 draws must pass."""


@claim("rough", "7.5", "ours")
def survives() -> Finding:
    """The spike's separation (softmax distinguishes, linear is blind, X = 11ᵀ) survives n that is no multiple
    of d-2, unequal blocks, several spikes, and noise on every entry.

    Inside: each regularity broken. Outside: noise whose sum over a row is as large as the spike.
    """
    inside, outside = (Points(rough_point(changes) for changes in each) for each in (KEPT, LOST))
    lost = ", ".join(f"{p:.2f}" for p in outside.values("softmax"))
    return inside.conclude_where(
        outside,
        "the noise is small: a row sum has noise of sd noise sqrt(d), about 0.1 at 0.01, and the largest of "
        "n of these must stay well below a1",
        f"sampled, 99% intervals: softmax P >= {inside.smallest('softmax_least'):.3f}, linear P <= "
        f"{inside.largest('linear_most'):.3f} with n no multiple of d-2, unequal blocks, 2 or 3 spikes, "
        f"noise of sd up to 0.01; with noise 0.02 and 0.05 softmax has P = {lost}",
        f"intervals end at {inside.smallest('softmax_least'):.3f} and {inside.largest('linear_most'):.3f}; "
        f"allowed {HIGH} and {LOW}",
    )


def rough_point(changes: dict[str, object]) -> Point:
    """Holds if the intervals put softmax near 1 and linear near 0."""
    made = example(Rough, **{**SMOOTH, **changes})
    softmax, linear = (judged(made, each, "dense", SAMPLING).outcome for each in ("softmax", "linear"))
    least, most = softmax.interval[0], linear.interval[1]
    return point(
        {**SMOOTH, **changes},
        least >= HIGH and most <= LOW,
        softmax=softmax.distinguish,
        softmax_least=least,
        linear=linear.distinguish,
        linear_most=most,
    )
