"""Claims of section 3.3 of docs/theory.md: exact probabilities at any n, and ties that float64 gets wrong."""

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
"""Up to this n a probability must take no more scores, and no more bits per score, than at the smallest n."""
MAX_SCORES_FACTOR = 1.5
"""For larger n: the maximum number of scores, relative to the smallest n."""
MAX_BITS_PER_LOG2_N = 4
"""For larger n: the maximum precision of a score in bits, divided by log2 n."""
MAX_ERROR = 1e-12
"""The maximum relative error of float64."""
TAIL_WIDTHS = (1002, 5002)
"""A width for each way in which the float64 engine computes binomial tails: exact tables for up to 2048 of
the d-2 blocks, Stirling's series for more."""


def count_metered(construction: Spike, mechanism: ScoreMechanism) -> tuple[certified.Count, list[int]]:
    """Return the certified count of sign vectors, and the precision in bits of each score computed for it."""
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
    """An exact probability at n = 10^18 takes no more scores, and no more bits per score, than at n = 100. Up
    to n = 10^300 it takes at most 1.5 times as many scores, of at most 4 log2 n bits.

    Count the scores and their bits at every n, and compare float64 with the certified fractions, also at two
    larger d, where it computes binomial tails by other methods.
    """
    points = Points()
    for mechanism in (Softmax(), Linear()):
        p1_floats = on_grid(mechanism, BASE, n=ANY_N).p1
        first_work: tuple[int, int] | None = None
        for n, p1_float in zip(ANY_N, p1_floats, strict=True):
            count, precisions = count_metered(spike(BASE, n=n), mechanism)
            p1, scores, bits = float(count.low.p1), len(precisions), max(precisions)
            # ANY_N ascends, so the first n sets the work that later ones are compared with.
            first_work = first_work or (scores, bits)
            beyond = MAX_SCORES_FACTOR * first_work[0], MAX_BITS_PER_LOG2_N * math.log2(n)
            max_scores, max_bits = first_work if n <= MAX_N_OF_EQUAL_WORK else beyond
            error = relative_error(p1_float, p1)
            holds = count.is_decided and error < MAX_ERROR and scores <= max_scores and bits <= max_bits
            parameters = {**BASE, "n": n, "mechanism": mechanism.name}
            points.add(parameters, holds, p1=p1, error=error, scores=scores, bits=bits)
        points += [width_point(mechanism, d) for d in TAIL_WIDTHS]
    return points.conclude(
        f"n = 100 takes at least {points.scores.min:.0f} scores of {points.bits.min:.0f} bits each, n up to "
        f"1e300 at most {points.scores.max:.0f} of {points.bits.max:.0f}; float64 and fractions agree to "
        f"{points.error.max:.0e}",
        f"error {points.error.max:.0e}, allowed {MAX_ERROR:.0e}",
    )


def width_point(mechanism: ScoreMechanism, d: int) -> Point:
    """Check float64's p0 and p1 against certified fractions at n = 10^5 and width d.

    b is large, since at b = 0.2 the tails of so many signs are nearly 0 and the comparison would show little.
    """
    setting: Setting = {**BASE, "b": "1.5", "n": 10**5, "d": d}
    grid, neuron = on_grid(mechanism, setting), certified.count(spike(setting), mechanism).low
    error = relative_error([grid.p0, grid.p1], [neuron.p0, neuron.p1])
    parameters = {**setting, "mechanism": mechanism.name}
    return Point(parameters, error < MAX_ERROR, p0=float(neuron.p0), p1=float(neuron.p1), error=error)


@claim("ties", "3.3", "ours")
def ties() -> Finding:
    """Exact ties happen: at n=16, d=6 (X = I, linear) a pre-activation equals tau; in float64 the neuron
    fires, in exact arithmetic it does not.

    Count the sign vectors with such a pre-activation by rationals, by float64 and by the certified engine.
    """
    construction = spike(TIE)
    n, d, signs = construction.n, construction.d, literal.sign_vectors(construction.d)
    numbers = [Fraction(TIE[name]) for name in ("a0", "b", "c")]
    # Both results come from the same loops with other types of numbers, so they differ by rounding alone.
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
