"""Theory 3.3, exact probabilities: any n, and ties that float64 gets wrong."""

from __future__ import annotations

import math
from fractions import Fraction

from flint import ctx

from separatrix.claims import _literal as literal
from separatrix.claims._base import Finding, Point, claim
from separatrix.claims._tools import BASE, Points, Setting, on_grid, point, relative_error, spike
from separatrix.claims.signs import TIE
from separatrix.core.numbers.logforms import Flint, LogForm
from separatrix.core.tensors import Float, Tensor
from separatrix.exact.engines import certified
from separatrix.mechanisms import Linear, ScoreMechanism, Softmax
from separatrix.mechanisms._base import Floats

SIZES = [100, 1000, 10**6, 10**18, 10**100, 10**300]
SAME_WORK = 10**18
"""Up to here the work is to be that of the smallest n."""
WIDTHS = (1002, 5002)
"""Wide tokens: up to 2048 blocks the float64 engine has exact tables, beyond it uses Stirling's series."""
MORE_SCORES, MORE_BITS = 1.5, 4
"""Beyond: times as many scores, of so many bits for each binary digit of n."""


class Metered(ScoreMechanism):
    """Another mechanism that keeps count of the exact scores it is asked for, and of their bits."""

    name, formula, source, family = "metered", "that of another", "[ours]", "kernels"

    def __init__(self, inner: ScoreMechanism) -> None:
        super().__init__()
        self.inner = inner
        self.bits: list[int] = []

    def score(self, logits: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return self.inner.score(logits)

    def log_ratio(self, base: Floats, step: Floats) -> Floats:
        return self.inner.log_ratio(base, step)

    def ratio(self, base: LogForm, step: LogForm) -> Flint:
        self.bits.append(int(ctx.prec))
        return self.inner.ratio(base, step)


@claim("any-n", "3.3", "ours")
def any_n() -> Finding:
    """An exact probability at n = 10^18 takes the scores, and their bits, that n = 100 takes; as far as n =
    10^300 at most half as many scores again, of at most 4 log2 n bits.

    How many scores are computed to how many bits at every n; and float64 agrees with the fractions, also at
    larger d, where it finds binomial tails in other ways.
    """
    points = Points()
    for mechanism in (Softmax(), Linear()):
        found = on_grid(mechanism, BASE, n=SIZES).p1
        least: tuple[int, int] | None = None
        for n, p1 in zip(SIZES, found, strict=True):
            metered = Metered(mechanism)
            exact = certified.count(spike(BASE, n=n), metered)
            scores, bits = len(metered.bits), max(metered.bits)
            least = least or (scores, bits)
            most = least if n <= SAME_WORK else (MORE_SCORES * least[0], MORE_BITS * math.log2(n))
            error = relative_error(float(p1), float(exact.low.p1))
            points.add(
                {**BASE, "n": n, "mechanism": mechanism.name},
                exact.decided and error < 1e-12 and scores <= most[0] and bits <= most[1],
                p1=float(exact.low.p1),
                error=error,
                scores=scores,
                bits=bits,
            )
        points += [width_point(mechanism, d) for d in WIDTHS]
    worst = points.largest("error")
    return points.conclude(
        f"n = 100 to 1e18 take {points.smallest('scores'):.0f} scores of {points.smallest('bits'):.0f} "
        f"bits each, n to 1e300 at most {points.largest('scores'):.0f} of {points.largest('bits'):.0f}; "
        f"float64 and fractions agree to {worst:.0e}",
        f"error {worst:.0e}, allowed 1e-12",
    )


def width_point(mechanism: ScoreMechanism, d: int) -> Point:
    """Check float64's p0 and p1 against certified fractions at n = 10^5 and width d.

    b is large here, since at b = 0.2 the tails of so many signs would be far below 1e-12.
    """
    setting: Setting = {**BASE, "b": "1.5", "n": 10**5, "d": d}
    grid, neuron = on_grid(mechanism, setting), certified.count(spike(setting), mechanism).low
    error = max(
        relative_error(float(computed), float(exact))
        for computed, exact in ((grid.p0, neuron.p0), (grid.p1, neuron.p1))
    )
    parameters = {**setting, "mechanism": mechanism.name}
    return point(parameters, error < 1e-12, p0=float(neuron.p0), p1=float(neuron.p1), error=error)


@claim("ties", "3.3", "ours")
def ties() -> Finding:
    """Exact ties happen: at n=16, d=6 (X = I, linear) a pre-activation equals tau; float64 says that it
    fires, and it does not.

    The sign vectors on which a pre-activation equals tau: rationals, float64, the certified engine.
    """
    made = spike(TIE)
    n, d, (a, b, c) = made.n, made.parameters.d, (Fraction(TIE[name]) for name in ("a0", "b", "c"))
    signs = literal.sign_vectors(d)
    exact, rounded = (
        literal.peaks(literal.attended(literal.spiked(n, d, a, b, c), "identity", lambda z: z), signs),
        literal.peaks(
            literal.attended(literal.spiked(n, d, float(a), float(b), float(c)), "identity", lambda z: z),
            signs,
        ),
    )
    tau, float_tau = c + Fraction(1, 10), float(c) + 0.1
    tied = [i for i, peak in enumerate(exact) if peak == tau]
    wrong = [i for i in tied if rounded[i] > float_tau]
    states = {literal.sign_class(signs[i], 0) for i in tied}
    right = Fraction(sum(peak > tau for peak in exact), len(signs))
    by_floats = Fraction(sum(peak > float_tau for peak in rounded), len(signs))
    engine = certified.count(made, Linear())
    over = max((rounded[i] - float_tau for i in wrong), default=0.0)
    found = point(
        TIE,
        bool(wrong) and engine.decided and engine.low.p0 == right != by_floats,
        tied_states=len(states),
        tied_vectors=len(tied),
        float64_fires_on=len(wrong),
        float64_exceeds_tau_by=over,
        p0_certified=str(engine.low.p0),
        p0_by_rationals=str(right),
        p0_by_float64=str(by_floats),
    )
    return Points([found]).conclude(
        f"{len(states)} sign state ({len(tied)} vectors) equals tau; float64 exceeds tau by {over:.0e} on "
        f"{len(wrong)} of them and counts p0 = {by_floats}; rationals count {right}, the certified engine "
        f"says {engine.low.p0}",
        f"float64 is off by {abs(by_floats - right)} in p0",
    )
