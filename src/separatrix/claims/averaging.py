"""Theory 6.7, q-sparse averaging: the mean of the values that are asked for."""

from __future__ import annotations

from fractions import Fraction

from separatrix.claims._base import Finding, Point, claim
from separatrix.claims._tools import Points, example, judged, point
from separatrix.constructions.averaging import Averaging
from separatrix.exact.outputs.proved import proved_outputs
from separatrix.mechanisms import Linear, Softmax

ONE = (Fraction(1),)
SIZES = (10**4, 10**9, 10**18)
ASKED = (1, 8, 1000)


@claim("sparse-averaging", "6.7", "rec")
def averages() -> Finding:
    """With logits that single out q of n tokens, softmax gives the mean of their values up to n^{1-gap}/q and
    linear does not (arXiv 2306.02896; the width such logits need, of order q log n, is that paper's subject
    and not checked here).

    Inside: gap 2. Outside: q n^gap below n, where the many that are not asked win.
    """
    inside = Points(averaging_point(q, n, 2) for q in ASKED for n in SIZES)
    outside = Points(averaging_point(q, 10**9, Fraction(1, 2)) for q in (1, 8))
    return inside.conclude_where(
        outside,
        "q n^gap outgrows n: with a smaller gap softmax, too, averages over everything",
        f"softmax gives the asked mean to {inside.largest('softmax_error'):.0e} (exact; n^(1-gap)/q "
        f"allowed) and distinguishes; linear's answers are gap q/(n + gap q) apart, and it is blind "
        f"(certified); q = {', '.join(map(str, ASKED))}, n = 1e4 to 1e18",
        f"softmax uses {inside.largest('of_bound'):.4f} of its bound; linear's answers are "
        f"{inside.largest('linear_margin'):.2g} apart or less",
    )


def averaging_point(q: int, n: int, gap: int | Fraction) -> Point:
    """Holds if softmax is within its bound and distinguishes, and linear has its closed form and is blind."""
    made = example(Averaging, q=q, n=n, gap=gap)
    softmax, linear = (proved_outputs(made, each) for each in (Softmax(), Linear()))
    error = max(1 - softmax.reading(1, ONE)[0], softmax.reading(0, ONE)[1])
    bound = Fraction(Fraction(n) ** (1 - gap)) / q
    low, _ = linear.gap(ONE)
    words = [judged(made, each, "certified").word for each in ("softmax", "linear")]
    holds = (
        error <= bound and low == gap * q / (n + gap * Fraction(q)) and words == ["distinguishes", "blind"]
    )
    return point(
        {"q": q, "n": n, "gap": gap},
        holds,
        softmax_error=float(error),
        of_bound=float(error / bound),
        linear_margin=float(low),
        words=", ".join(words),
    )
