"""Theory 6.2, duplication: every token is repeated."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from separatrix.claims._base import Finding, Point, claim
from separatrix.claims._tools import Points, example, judged, point
from separatrix.claims.separations import UNNORMALISED
from separatrix.constructions import Description
from separatrix.constructions.duplication import Duplication
from separatrix.core.tensors import torch
from separatrix.exact.outputs.kernels import same_rows
from separatrix.mechanisms import mechanism_named

SCORES: dict[str, Callable[[Fraction, int], Fraction]] = {
    "softmax": lambda z, n: Fraction(3) ** int(n * z),
    "linear": lambda z, n: z,
    "power:beta=3": lambda z, n: z**3,
    "taylor:order=2": lambda z, n: 1 + z + z * z / 2,
}
"""Scores of a logit that is a multiple of 1/n."""
LITERAL = ("softmax", "linear", "hardmax", "relu-features", "elu", "based")
NOTICE = ("sparsemax", "topk", "logn-softmax")
SIZES = (10, 100, 10**18)
REPEATS = (2, 3, 1000)
ROUNDING = 1e-12


def repeated(mechanism: str, times: int) -> tuple[torch.Tensor, torch.Tensor]:
    """What 30 random positive tokens of width 5 get, alone and with every key there `times` times."""
    draw = torch.Generator().manual_seed(0)
    q, k, v = (torch.rand(1, 1, 30, 5, generator=draw, dtype=torch.float64) for _ in range(3))
    attends = mechanism_named(mechanism)
    return attends(q, k, v), attends(q, k.repeat(1, 1, times, 1), v.repeat(1, 1, times, 1))


@claim("duplication-normalised", "6.2", "ours")
def normalised() -> Finding:
    """Repeating every token r times leaves softmax, linear and every other normalised score of the logit
    unchanged, exactly: no reader of them counts.

    Equal rows in exact arithmetic, whatever the scores; to rounding on random tokens.
    """
    proved = Points(equal_point(each, n, r) for each in SCORES for n in SIZES for r in REPEATS)
    literal = Points(tripled(each, notices=False) for each in LITERAL)
    others = Points(tripled(each, notices=True) for each in NOTICE)
    return Points([*proved, *literal, *others]).conclude(
        f"equal rows, proved, for {', '.join(SCORES)} at n = 10 to 1e18, up to {REPEATS[-1]} copies; "
        f"{', '.join(LITERAL)} give tripled random tokens the same to {literal.largest('change'):.0e}; "
        f"{', '.join(NOTICE)}, whose weights see the number of tokens, do not",
        f"difference exactly 0 where proved, {literal.largest('change'):.0e} in float64",
    )


def equal_point(mechanism: str, n: int, times: int) -> Point:
    """Holds if both labels provably get the same row, and sums over all copies say the same."""
    made = example(Duplication, n=n, r1=times)
    same = same_rows(made, mechanism_named(mechanism))
    once, more = (summed(mechanism, n, description) for description in made.descriptions)
    parameters = {"mechanism": mechanism, "n": n, "r1": times}
    return point(parameters, same and once == more, equal_rows=same, equal_sums=once == more)


def summed(mechanism: str, n: int, description: Description) -> Fraction:
    """`sum of count u v / sum of count u` in rationals; e^(1/n) is any number to softmax, and 3 here."""
    score = SCORES[mechanism]
    u = [kind.count * score(Fraction(kind.key[0]), n) for kind in description.groups]
    carried = (weight * Fraction(kind.value[0]) for weight, kind in zip(u, description.groups, strict=True))
    return sum(carried, Fraction(0)) / sum(u, Fraction(0))


def tripled(mechanism: str, notices: bool) -> Point:
    """Holds if three copies of everything change something, or nothing but rounding, as expected."""
    once, thrice = repeated(mechanism, 3)
    change = float((once - thrice).abs().max())
    return point(
        {"mechanism": mechanism, "r1": 3}, change > 1e-3 if notices else change < ROUNDING, change=change
    )


@claim("duplication-unnormalised", "6.2", "ours")
def unnormalised() -> Finding:
    """Unnormalised linear attention is multiplied by r1/r0, and this reader sees it: linear wins.

    r1/r0 times as much, on the construction and on random tokens, and the reader sees it.
    """
    points = Points()
    for r0, r1 in ((1, 2), (1, 3), (2, 7), (1, 1000)):
        tau = f"{r0 + r1}/2"
        found = judged(example(Duplication, r0=r0, r1=r1, tau=tau), UNNORMALISED)
        error = abs(found.outcome.v1 / found.outcome.v0 * r0 / r1 - 1)
        holds = error < ROUNDING and found.word == "distinguishes"
        parameters = {"n": 100, "r0": r0, "r1": r1, "tau": tau}
        points.add(parameters, holds, error=error, distinguish=found.outcome.distinguish)
    once, thrice = repeated(UNNORMALISED, 3)
    error = float((thrice / once / 3 - 1).abs().max())
    points.add({"tokens": "random", "r1": 3}, error < ROUNDING, error=error)
    return points.conclude(
        f"outputs are r1/r0 times as large to {points.largest('error'):.0e}, and the reader tells once from "
        f"twice with P = {points.largest('distinguish'):.6f} (exact)",
        f"error {points.largest('error'):.0e}, allowed {ROUNDING:.0e}",
    )
