"""Theory 3.3, exact probabilities: any n, and ties that float64 gets wrong."""

from __future__ import annotations

import math
from copy import copy
from fractions import Fraction

from flint import ctx

from separatrix.claims import _literal as literal
from separatrix.claims._base import BASE, Finding, Point, Points, Setting, claim
from separatrix.claims._tools import on_grid, relative_error, spike
from separatrix.claims.signs import TIE
from separatrix.constructions.spike import Spike
from separatrix.core.numbers.logforms import Flint, LogForm
from separatrix.exact.engines import certified
from separatrix.mechanisms import Linear, ScoreMechanism, Softmax

ANY_N = [100, 1000, 10**6, 10**18, 10**100, 10**300]
MAX_N_OF_EQUAL_WORK = 10**18
"""Up to this n the work must equal that of the smallest n."""
MORE_SCORES, MORE_BITS = 1.5, 4
"""Beyond: the factor on the number of scores, and the bits of a score for each binary digit of n."""
TAIL_WIDTHS = (1002, 5002)
"""Wide tokens: up to 2048 blocks the float64 engine has exact tables, beyond it uses Stirling's series."""


def count_metered(construction: Spike, mechanism: ScoreMechanism) -> tuple[certified.Count, list[int]]:
    """Return the certified count, and the precision in bits of each exact score that it took."""
    bits, compute = list[int](), mechanism.ratio

    def ratio(base: LogForm, step: LogForm) -> Flint:
        bits.append(int(ctx.prec))
        return compute(base, step)

    # Work is counted and not timed: a time would depend on the machine and on its load.
    recorder = copy(mechanism)
    recorder.ratio = ratio  # type: ignore[method-assign]
    return certified.count(construction, recorder), bits


@claim("any-n", "3.3", "ours")
def any_n() -> Finding:
    """An exact probability at n = 10^18 takes the scores, and their bits, that n = 100 takes; as far as n =
    10^300 at most half as many scores again, of at most 4 log2 n bits.

    The number of scores and their bits at every n; and float64 agrees with the fractions, also at larger d,
    where it computes binomial tails in other ways.
    """
    points = Points()
    for mechanism in (Softmax(), Linear()):
        p1_floats = on_grid(mechanism, BASE, n=ANY_N).p1
        least: tuple[int, int] | None = None
        for n, p1_float in zip(ANY_N, p1_floats, strict=True):
            count, precisions = count_metered(spike(BASE, n=n), mechanism)
            p1, scores, bits = float(count.low.p1), len(precisions), max(precisions)
            # ANY_N ascends, so the first n sets the work that later ones are compared with.
            least = least or (scores, bits)
            beyond = MORE_SCORES * least[0], MORE_BITS * math.log2(n)
            max_scores, max_bits = least if n <= MAX_N_OF_EQUAL_WORK else beyond
            error = relative_error(p1_float, p1)
            holds = count.is_decided and error < 1e-12 and scores <= max_scores and bits <= max_bits
            parameters = {**BASE, "n": n, "mechanism": mechanism.name}
            points.add(parameters, holds, p1=p1, error=error, scores=scores, bits=bits)
        points += [width_point(mechanism, d) for d in TAIL_WIDTHS]
    return points.conclude(
        f"n = 100 to 1e18 take {points.scores.min:.0f} scores of {points.bits.min:.0f} bits each, n to "
        f"1e300 at most {points.scores.max:.0f} of {points.bits.max:.0f}; float64 and fractions agree to "
        f"{points.error.max:.0e}",
        f"error {points.error.max:.0e}, allowed 1e-12",
    )


def width_point(mechanism: ScoreMechanism, d: int) -> Point:
    """Check float64's p0 and p1 against certified fractions at n = 10^5 and width d.

    b is large here, since at b = 0.2 the tails of so many signs would be far below 1e-12.
    """
    setting: Setting = {**BASE, "b": "1.5", "n": 10**5, "d": d}
    grid, neuron = on_grid(mechanism, setting), certified.count(spike(setting), mechanism).low
    error = relative_error([grid.p0, grid.p1], [neuron.p0, neuron.p1])
    parameters = {**setting, "mechanism": mechanism.name}
    return Point(parameters, error < 1e-12, p0=float(neuron.p0), p1=float(neuron.p1), error=error)


@claim("ties", "3.3", "ours")
def ties() -> Finding:
    """Exact ties happen: at n=16, d=6 (X = I, linear) a pre-activation equals tau; float64 says that it
    fires, and it does not.

    The sign vectors on which a pre-activation equals tau: rationals, float64, the certified engine.
    """
    construction = spike(TIE)
    n, d, signs = construction.n, construction.d, literal.sign_vectors(construction.d)
    numbers = [Fraction(TIE[name]) for name in ("a0", "b", "c")]
    # The same loops in both: only the type of number differs, so a difference is rounding alone.
    exact_peaks, float_peaks = (
        literal.peaks(literal.outputs(literal.spike_matrix(n, d, *abc), "identity", lambda z: z), signs)
        for abc in (numbers, list(map(float, numbers)))
    )
    tau, float_tau = numbers[2] + Fraction(1, 10), float(numbers[2]) + 0.1
    tie_indices = [i for i, peak in enumerate(exact_peaks) if peak == tau]
    wrong = [i for i in tie_indices if float_peaks[i] > float_tau]
    states = {literal.sign_class(signs[i], 0) for i in tie_indices}
    p0 = Fraction(sum(peak > tau for peak in exact_peaks), len(signs))
    float_p0 = Fraction(sum(peak > float_tau for peak in float_peaks), len(signs))
    count = certified.count(construction, Linear())
    excess = max((float_peaks[i] - float_tau for i in wrong), default=0.0)
    results: Setting = {"tied_states": len(states), "tied_vectors": len(tie_indices)}
    results |= {"float64_fires_on": len(wrong), "float64_exceeds_tau_by": excess}
    results |= {"p0_certified": count.low.p0, "p0_by_rationals": p0, "p0_by_float64": float_p0}
    holds = wrong and count.is_decided and count.low.p0 == p0 != float_p0
    return Points([Point(TIE, holds, **results)]).conclude(
        f"{len(states)} sign state ({len(tie_indices)} vectors) equals tau; float64 exceeds tau by "
        f"{excess:.0e} on {len(wrong)} of them and counts p0 = {float_p0}; rationals count {p0}, the "
        f"certified engine says {count.low.p0}",
        f"float64 is off by {abs(float_p0 - p0)} in p0",
    )
