"""Theory 6.11, averaging under noise: all tokens but one say the same."""

from __future__ import annotations

from fractions import Fraction

from separatrix.claims._base import Finding, Point, claim
from separatrix.claims._tools import Points, example, judged, point
from separatrix.constructions.majority import Majority
from separatrix.core.numbers.logforms import rational
from separatrix.exact.outputs.kernels import kernel_rows
from separatrix.mechanisms import Linear

SIZES = (10**3, 10**6, 10**12)
GROUPS = 4
"""Kinds of noise; fewer than usual, so that there are few sign vectors to try."""
NOISE = Fraction(2, 5)


@claim("majority", "6.11", "ours")
def majority() -> Finding:
    """n-1 noisy tokens say the same and one of a large logit says nothing: linear averages and hears
    (n-1)/(n+gap) of it, softmax listens to the one and hears (n-1)/(n-1+n^gap). Linear wins.

    Inside: a distractor of gap 2. Outside: one too quiet to draw softmax away.
    """
    inside = Points(majority_point(n, Fraction(2)) for n in SIZES)
    outside = Points(majority_point(10**6, gap) for gap in (Fraction(0), Fraction(1, 2)))
    return inside.conclude_where(
        outside,
        "the distractor's gap is above 1; below, softmax averages too",
        f"certified: linear distinguishes (P = {inside.smallest('linear'):.5f} or more) and softmax is "
        f"blind (P = {inside.largest('softmax'):.0f}), n = 1e3 to 1e12; with a gap of 0 or 1/2 both "
        "distinguish",
        f"linear hears {inside.smallest('linear_heard'):.4f} of the majority or more, softmax "
        f"{inside.largest('softmax_heard'):.1e} or less; needed 1/2 and noise",
    )


def majority_point(n: int, gap: Fraction) -> Point:
    """Holds if linear distinguishes and softmax is blind, hearing what the closed forms say.

    With all signs + a unit that hears a share h of the majority has v0 = noise h and v1 = (1 + noise) h.
    """
    made = example(Majority, n=n, gap=gap, groups=GROUPS)
    linear, softmax = (judged(made, each, "certified") for each in ("linear", "softmax"))
    expected = float((n - 1) / (n + gap)), (n - 1) / (n - 1 + float(n) ** float(gap))
    heard = linear.outcome.margin, softmax.outcome.margin
    noise = float(NOISE)
    pairs = [
        *zip(heard, expected, strict=True),
        *((unit.outcome.v0, noise * h) for unit, h in zip((linear, softmax), expected, strict=True)),
        *((unit.outcome.v1, (1 + noise) * h) for unit, h in zip((linear, softmax), expected, strict=True)),
    ]
    close = all(abs(x / y - 1) < 1e-12 for x, y in pairs)
    return point(
        {"n": n, "gap": gap, "groups": GROUPS},
        close and hears_groups(made) and (linear.word, softmax.word) == ("distinguishes", "blind"),
        linear=linear.outcome.distinguish,
        softmax=softmax.outcome.distinguish,
        linear_heard=heard[0],
        softmax_heard=heard[1],
    )


def hears_groups(made: Majority) -> bool:
    """Whether linear returns noise count_g/(n+gap) of every group g, and the value's share, exactly.

    The n-1 noisy tokens are dealt out to the groups in turn, so that the sizes differ by one at most.
    """
    n, gap = made.n, Fraction(made.parameters.gap)
    counts = [len(range(group, n - 1, GROUPS)) for group in range(GROUPS)]
    attention = kernel_rows(made, Linear())
    for label, rows in enumerate(attention.rows):
        expected = [label * (n - 1) / (n + gap), *(NOISE * count / (n + gap) for count in counts)]
        received = [attention.outputs(row) for row in rows]
        if received != [tuple(map(rational, expected))]:
            return False
    return True
