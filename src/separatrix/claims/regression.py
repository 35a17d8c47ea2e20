"""Theory 6.9, in-context linear regression: one layer is one gradient step."""

from __future__ import annotations

import numpy as np

from separatrix.claims._base import Finding, Point, claim
from separatrix.claims._tools import Points, example, judged, point
from separatrix.claims.separations import UNNORMALISED
from separatrix.constructions.regression import Regression
from separatrix.core.tensors import torch
from separatrix.mechanisms import mechanism_named

WEIGHTED = ("softmax", "logn-softmax", "topk", "hardmax", "sparsemax", "relu-features", "elu")
"""Weights that are not negative, whatever the tokens."""
AVERAGES = ("linear", "power:beta=4", *WEIGHTED)
"""Weights that are not negative on the construction's tokens."""
ROUNDING = 1e-12


@claim("gradient-step", "6.9", "rec")
def gradient_step() -> Finding:
    """In-context linear regression (arXiv 2212.07677): unnormalised linear attention is one step of gradient
    descent from 0, and on orthogonal examples answers <w,x> exactly: linear is enough.

    Random designs against a literal gradient step, and the construction's design against <w, x>.
    """
    points = Points(random_design(seed) for seed in range(4))
    points += [answer_point(UNNORMALISED, width, n) for width, n in ((1, 8), (4, 1000), (16, 10**6))]
    points.append(answer_point("causal-linear", 4, 40))
    return points.conclude(
        f"the output is that of one gradient step on random designs to {points.largest('error'):.0e}, and "
        f"<w,x> = width a on the construction's to {points.largest('off'):.0e}; it distinguishes at n = 8 "
        "to 1e6",
        f"error {max(points.largest('error'), points.largest('off')):.0e}, allowed {ROUNDING:.0e}",
    )


def random_design(seed: int) -> Point:
    """Holds if attention over (x_i, y_i) is a gradient step from w = 0 on the mean of (y_i - <w,x_i>)²/2."""
    rng = np.random.default_rng(seed)
    n, width, rate = 50, 6, 0.3
    x, query, w = rng.normal(size=(n, width)), rng.normal(size=width), rng.normal(size=width)
    y = x @ w + rng.normal(size=n)
    step = np.zeros(width)
    for i in range(n):
        step += rate / n * (y[i] - 0.0) * x[i]
    expected = float(step @ query)
    q, k, v = (torch.from_numpy(each)[None, None] for each in (query[None], rate / n * x, y[:, None]))
    error = abs(float(mechanism_named(UNNORMALISED)(q, k, v)) / expected - 1)
    return point({"design": "random", "n": n, "width": width, "seed": seed}, error < ROUNDING, error=error)


def answer_point(mechanism: str, width: int, n: int) -> Point:
    """Holds if both labels are answered with width a, and told apart at a threshold between."""
    made = example(Regression, width=width, n=n, tau=f"{width}/2")
    found = judged(made, mechanism)
    expected = [float(width * a) for a in (made.parameters.a0, made.parameters.a1)]
    off = max(abs(v / x - 1) for v, x in zip((found.outcome.v0, found.outcome.v1), expected, strict=True))
    holds = off < ROUNDING and found.outcome.interval[0] > 0.98
    return point({"mechanism": mechanism, "width": width, "n": n}, holds, off=off, word=found.word)


@claim("averages-stay-in-the-hull", "6.9", "ours")
def hull() -> Finding:
    """Attention whose weights are not negative and add up to 1 answers within the hull of the values, so with
    tau above every value it never fires: linear wins.

    Values all equal a, so averages answer a; on random values they stay between the extremes.
    """
    points = Points()
    for each in AVERAGES:
        made = example(Regression)
        found = judged(made, each)
        off = max(abs(found.outcome.v0 - 0.1), abs(found.outcome.v1 - 1.0))
        points.add({"mechanism": each, "n": made.n}, off < ROUNDING and found.word == "blind", off=off)
    draw = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, 1, 40, 6, generator=draw, dtype=torch.float64) for _ in range(3))
    for each in WEIGHTED:
        out = mechanism_named(each)(q, k, v)
        room = float(torch.minimum(v.amax(-2) - out.amax(-2), out.amin(-2) - v.amin(-2)).min())
        points.add({"mechanism": each, "tokens": "random"}, room >= -ROUNDING, room=room)
    return points.conclude(
        f"{', '.join(AVERAGES)} answer a and not width a (to {points.largest('off'):.0e}), so they are "
        f"blind; on random tokens the outputs stay within the values",
        f"answers off a by {points.largest('off'):.0e} and outside the hull by "
        f"{max(0.0, -points.smallest('room')):.0e}, allowed {ROUNDING:.0e}",
    )
