"""The best threshold for the reader's random signs.

P(tells apart) changes with tau only where tau crosses a pre-activation of a sign vector, so it suffices to
compare gaps between neighbouring pre-activations that are certainly apart. The engines then compute P for
the tau that is reported.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate, pairwise

from separatrix.constructions import Construction
from separatrix.core.documents import Document, Hidden, shown
from separatrix.exact.engines import ENGINES, Outcome, Sampling, solve
from separatrix.exact.outputs._base import Outputs
from separatrix.exact.verdicts.linear_reader import simplest_between
from separatrix.exact.verdicts.sign_states import LARGEST_TAU, LEAST_TAU, States, sign_states
from separatrix.mechanisms import Mechanism

Gap = tuple[Fraction, Fraction]


@dataclass(frozen=True)
class TunedThreshold(Document):
    """The threshold with the largest P(tells apart)."""

    tau: Fraction
    """The threshold in units of the margin."""
    outcome: Hidden[Outcome]
    among: str
    """The thresholds of which it is the best."""

    @shown
    def distinguish(self) -> float:
        """P(tells apart) with this threshold."""
        return self.outcome.distinguish

    @shown
    def interval(self) -> tuple[float, float]:
        """The interval of `distinguish`; its ends are equal where it is exact."""
        return self.outcome.interval

    @shown
    def engine(self) -> str:
        """The engine that computed it."""
        return self.outcome.engine

    @shown
    def evidence(self) -> str:
        """How it is known."""
        return self.outcome.evidence


def best_threshold(
    construction: Construction, mechanism: Mechanism, outputs: Sequence[Outputs], fixed: Outcome, sampling: Sampling
) -> TunedThreshold:
    """Return the best tau with P by the strongest engine; `fixed` is the outcome at the usual tau."""
    usual = Fraction(construction.parameters.complete_values()["tau"])
    states = sign_states(construction, outputs)
    among = _among(states)
    gap = _best_gap(states, usual)
    if gap is None or gap[0] < usual < gap[1]:
        return TunedThreshold(usual, fixed, among)
    tau = simplest_between(*gap)
    point = type(construction).read({**construction.parameters.given_values(), "tau": tau})
    # Other draws than those of the usual tau, so that independent estimates are compared.
    outcome = solve(point, mechanism, "auto", replace(sampling, seed=sampling.seed + 1))
    is_proved = ENGINES[fixed.engine].proves
    # Proved bounds are compared by the end that is certain: an undecided tie must not favour the usual tau.
    usual_probability = fixed.interval[0] if is_proved else fixed.distinguish
    is_open = is_proved and fixed.interval[0] < fixed.interval[1]
    if usual_probability > outcome.distinguish or (usual_probability == outcome.distinguish and not is_open):
        return TunedThreshold(usual, fixed, among)
    return TunedThreshold(tau, outcome, among)


def _among(states: Sequence[States]) -> str:
    off = max(Fraction(2 * state.scale.off, state.scale.unit) for state in states)
    positions = f" at each of {len(states)} places" if len(states) > 1 else ""
    exception = f" but those within {float(off):.0e} of a pre-activation" if off else ""
    return f"all from 1e-100 to 1e6{exception}, over {states[0].description}{positions}"


def _best_gap(states: Sequence[States], usual: Fraction) -> Gap | None:
    """Return the gap between neighbouring pre-activations with the largest P, preferring the usual tau.

    Pre-activations that may be equal are merged: no threshold between them is considered.
    """
    unit, off = states[0].scale.unit, max(state.scale.off for state in states)
    least, most = math.ceil(LEAST_TAU * unit) + off, LARGEST_TAU * unit - off
    within = [[[min(max(x, least), most) for x in peaks] for peaks in state.peaks] for state in states]
    values = sorted({least}.union(*(peaks for candidate in within for peaks in candidate)))
    positions: dict[int, int] = {}
    gaps: list[tuple[int, int]] = []
    for low, high in pairwise(values):
        positions[low] = len(gaps)
        # Each pre-activation may be off by `off`: only a wider gap certainly holds a threshold.
        if high - low > 2 * off:
            gaps.append((low + off, high - off))
    positions[values[-1]] = len(gaps)
    if not gaps:
        return None
    sets = [
        _chances(candidate, [[positions[x] for x in peaks] for peaks in peaks_within], len(gaps))
        for candidate, peaks_within in zip(states, within, strict=True)
    ]
    chances = [math.fsum(probabilities) / len(sets) for probabilities in zip(*sets, strict=True)]
    low, high = max(
        zip(chances, gaps, strict=True),
        key=lambda candidate: (
            candidate[0],
            candidate[1][0] <= usual * unit < candidate[1][1],
            candidate[1][1] - candidate[1][0],
        ),
    )[1]
    # Away from the ends, where a rounded pre-activation could fall on the other side.
    edge = Fraction(high - low, 8)
    return (low + edge) / unit, (high - edge) / unit


def _chances(states: States, places: Sequence[Sequence[int]], gaps: int) -> list[float]:
    """Return P(tells apart) in every gap; a peak of rank k fires in the gaps before k."""
    on_d0, alone = [0] * (gaps + 1), [0] * (gaps + 1)
    for quiet, loud, weight in zip(*places, states.weights, strict=True):
        on_d0[quiet] += weight
        if loud > quiet:
            alone[quiet] += weight
            alone[loud] -= weight
    above = list(accumulate(reversed(on_d0)))[::-1][1:]
    only = list(accumulate(alone))[:-1]
    return [_distinguish(fires, rises, states.total, states.neurons) for fires, rises in zip(above, only, strict=True)]


def _distinguish(fires: int, rises: int, total: int, m: int) -> float:
    """Compute (1-p0)^m - (1-p0-only)^m for p0 = fires/total and only = rises/total without cancellation."""
    if fires >= total or rises <= 0:
        return 0.0
    p0, silent = fires / total, (total - fires) / total
    quiet = m * (math.log1p(-p0) if p0 < 0.5 else math.log(silent))
    share = rises / (total - fires)
    return math.exp(quiet) * (1.0 if share >= 1 else -math.expm1(m * math.log1p(-share)))
