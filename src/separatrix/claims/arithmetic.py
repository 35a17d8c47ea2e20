"""THEORY 3, exact probabilities: any n, and ties that float64 gets wrong."""

from __future__ import annotations

from fractions import Fraction

from separatrix.claims import _literal as literal
from separatrix.claims._base import Claim, Finding
from separatrix.claims._tools import BASE, conclude, largest, on_grid, point, relative_error, spike, values
from separatrix.claims.signs import TIE
from separatrix.engines import certified
from separatrix.mechanisms import Linear, Softmax

SIZES = [100, 1000, 10**6, 10**18, 10**100, 10**300]


def any_n() -> Finding:
    """The same number of comparisons at every n, and float64 agrees with the fractions."""
    points = []
    for mechanism in (Softmax(), Linear()):
        found = on_grid(mechanism, BASE, n=SIZES).p1
        for n, p1 in zip(SIZES, found, strict=True):
            exact = certified.count(spike(BASE, n=n), mechanism)
            error = relative_error(float(p1), float(exact.low.p1))
            points.append(
                point(
                    {**BASE, "n": n, "mechanism": mechanism.name},
                    exact.decided and error < 1e-12,
                    p1=float(exact.low.p1),
                    error=error,
                    comparisons=len(exact.thresholds),
                )
            )
    work, worst = set(values(points, "comparisons")), largest(points, "error")
    points.append(point({}, len(work) == 1, kinds_of_work=len(work)))
    return conclude(
        points,
        f"n = 100 to 1e300 take {max(work):.0f} comparisons each; float64 and fractions agree to {worst:.0e}",
        f"error {worst:.0e}, allowed 1e-12",
    )


def ties() -> Finding:
    """The sign vectors on which a pre-activation equals tau: rationals, float64, the certified engine."""
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
    return conclude(
        [found],
        f"{len(states)} sign state ({len(tied)} vectors) equals tau; float64 exceeds tau by {over:.0e} on "
        f"{len(wrong)} of them and counts p0 = {by_floats}; rationals count {right}, the certified engine "
        f"says {engine.low.p0}",
        f"float64 is off by {abs(by_floats - right)} in p0",
    )


CLAIMS = (
    Claim(
        "any-n",
        "3",
        "ours",
        "The cost of an exact probability does not depend on n: n = 10^18 takes what n = 100 takes.",
        any_n,
    ),
    Claim(
        "ties",
        "3",
        "ours",
        "Exact ties happen: at n=16, d=6 (X = I, linear) a pre-activation equals tau; float64 says that it "
        "fires, and it does not.",
        ties,
    ),
)
"""The claims on how THEORY 3's probabilities are computed."""
