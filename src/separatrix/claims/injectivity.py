"""Theory 6.1, injectivity: the same question, asked louder."""

from __future__ import annotations

import math

from separatrix.claims._base import Finding, Point, claim
from separatrix.claims._tools import Points, example, point, relative_error
from separatrix.constructions.injectivity import Injectivity
from separatrix.core.tensors import torch
from separatrix.exact.engines import certified
from separatrix.exact.outputs.proved import proved_outputs
from separatrix.mechanisms import Softmax, mechanism_named

EXACT = ("linear", "power:beta=3", "identity-features", "relu-features")
"""Homogeneous in the query, and proved equal in rationals."""
LITERAL = ("relu-features", "squared-relu-features", "identity-features", "dpfp", "linear")
"""Homogeneous in the query, and compared bit by bit on random tokens."""
OTHERS = ("softmax", "elu", "identity-features:normalised=no")
SIZES = (10, 1000, 10**18)
FACTORS = ("2", "1/7", "1000")


def changed(mechanism: str) -> float:
    """The largest change of any output on 60 random tokens of width 8 when every query is doubled."""
    draw = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, 1, 60, 8, generator=draw, dtype=torch.float64) for _ in range(3))
    attends = mechanism_named(mechanism)
    return float((attends(2 * q, k, v) - attends(q, k, v)).abs().max())


def changed_point(mechanism: str, changes: bool) -> Point:
    """Holds if doubling the queries changes something, or nothing, as expected."""
    change = changed(mechanism)
    return point(
        {"mechanism": mechanism, "factor": 2}, change > 1e-3 if changes else change == 0, change=change
    )


@claim("injectivity", "6.1", "rec")
def equal_rows() -> Finding:
    """Normalised attention whose scores are positively homogeneous in the query (linear, ReLU features; arXiv
    2412.06590) gives q and 2q the same row at any n, so no reader of it tells them apart.

    In rationals on the construction, and to the last bit on random tokens: doubling rounds nothing.
    """
    points = Points(equal_point(each, n, factor) for each in EXACT for n in SIZES for factor in FACTORS)
    literal = Points(changed_point(each, changes=False) for each in LITERAL)
    return Points([*points, *literal]).conclude(
        f"equal rows in rationals for {', '.join(EXACT)} at n = 10 to 1e18, factors {', '.join(FACTORS)}; "
        f"not a bit changes on random tokens for {', '.join(LITERAL)}",
        f"difference exactly {literal.largest('change'):.0f}: no reader at all tells q from 2q",
    )


def equal_point(mechanism: str, n: int, factor: str) -> Point:
    """Holds if both labels provably get the same row."""
    same = proved_outputs(example(Injectivity, n=n, factor=factor), mechanism_named(mechanism)).same
    return point({"mechanism": mechanism, "n": n, "factor": factor}, same, equal_rows=same)


@claim("injectivity-softmax", "6.1", "rec")
def softmax_differs() -> Finding:
    """Softmax gives q and 2q different rows: 1/(1+(n-1)n^{-q gap}) on the asked token.

    The rows differ, in balls, and their weights are the closed form's.
    """
    points = Points(softmax_point(n, factor) for n in SIZES for factor in FACTORS)
    literal = Points(changed_point(each, changes=True) for each in OTHERS)
    return Points([*points, *literal]).conclude(
        f"softmax's rows differ by {points.smallest('apart'):.2g} or more at n = 10 to 1e18 (proved), and "
        f"are the closed form's to {points.largest('error'):.0e}; {', '.join(OTHERS)} change on random "
        "tokens",
        f"apart by {points.smallest('apart'):.2g} to {points.largest('apart'):.2g}; random tokens change "
        f"by {literal.smallest('change'):.2f} or more",
    )


def softmax_point(n: int, factor: str) -> Point:
    """Holds if the two rows surely differ and are as the closed form says."""
    made = example(Injectivity, n=n, factor=factor)
    found, rows = certified.solve(made, Softmax()), proved_outputs(made, Softmax())
    exponents = (float(made.parameters.query), float(made.parameters.query * made.parameters.factor))
    low, high = (1 / (1 + (n - 1) * math.exp(-e * math.log(n))) for e in exponents)
    error = max(relative_error(found.v0, low), relative_error(found.margin, high - low))
    holds = rows.differ and not rows.same and error < 1e-11
    return point({"n": n, "factor": factor}, holds, apart=abs(found.margin), error=error)
