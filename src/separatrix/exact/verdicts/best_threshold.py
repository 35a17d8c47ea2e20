"""The best threshold for the reader's random signs.

P(tells apart) changes with tau only where tau passes a pre-activation of some sign vector, so it is
enough to look between neighbouring ones that are surely apart. Candidates are weighed here; the winner's P
is then asked of the engines, with the tau that is reported.
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
    """The threshold with the largest P(tells apart), and that P."""

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
    construction: Construction,
    mechanism: Mechanism,
    outputs: Sequence[Outputs],
    fixed: Outcome,
    sampling: Sampling,
) -> TunedThreshold:
    """The best tau, and P by the strongest engine that applies; `fixed` is the outcome at the usual tau."""
    usual = Fraction(construction.parameters.filled()["tau"])
    states = sign_states(construction, outputs)
    among = _among(states)
    gap = _best_gap(states, usual)
    if gap is None or gap[0] < usual < gap[1]:
        return TunedThreshold(usual, fixed, among)
    tau = simplest_between(*gap)
    moved = type(construction).read({**_given(construction), "tau": tau})
    found = solve(moved, mechanism, "auto", replace(sampling, seed=sampling.seed + 1))
    proved = ENGINES[fixed.engine].proves
    known = fixed.interval[0] if proved else fixed.distinguish
    undecided = proved and fixed.interval[0] < fixed.interval[1]
    if known > found.distinguish or (known == found.distinguish and not undecided):
        return TunedThreshold(usual, fixed, among)
    return TunedThreshold(tau, found, among)


def _among(states: Sequence[States]) -> str:
    off = max(Fraction(2 * state.scale.off, state.scale.unit) for state in states)
    where = f" at each of {len(states)} places" if len(states) > 1 else ""
    but = f" but those within {float(off):.0e} of a pre-activation" if off else ""
    return f"all from 1e-100 to 1e6{but}, over {states[0].seen}{where}"


def _given(construction: Construction) -> dict[str, object]:
    values = {
        name: getattr(construction.parameters, name) for name in type(construction.parameters).model_fields
    }
    return {name: value for name, value in values.items() if value is not None}


def _best_gap(states: Sequence[States], usual: Fraction) -> Gap | None:
    """Well between which two neighbouring pre-activations P is largest, the usual tau's first.

    Pre-activations that may be equal are one place together: no threshold between them is looked at.
    """
    unit, off = states[0].scale.unit, max(state.scale.off for state in states)
    least, most = math.ceil(LEAST_TAU * unit) + off, LARGEST_TAU * unit - off
    within = [[[min(max(x, least), most) for x in peaks] for peaks in state.peaks] for state in states]
    values = sorted({least}.union(*(peaks for each in within for peaks in each)))
    places: dict[int, int] = {}
    gaps: list[tuple[int, int]] = []
    for low, high in pairwise(values):
        places[low] = len(gaps)
        if high - low > 2 * off:
            gaps.append((low + off, high - off))
    places[values[-1]] = len(gaps)
    if not gaps:
        return None
    sets = [
        _chances(each, [[places[x] for x in peaks] for peaks in ranks], len(gaps))
        for each, ranks in zip(states, within, strict=True)
    ]
    chances = [math.fsum(some) / len(sets) for some in zip(*sets, strict=True)]
    low, high = max(
        zip(chances, gaps, strict=True),
        key=lambda each: (each[0], each[1][0] <= usual * unit < each[1][1], each[1][1] - each[1][0]),
    )[1]
    edge = Fraction(high - low, 8)
    return (low + edge) / unit, (high - edge) / unit


def _chances(states: States, places: Sequence[Sequence[int]], gaps: int) -> list[float]:
    """P(tells apart) in every gap; a peak at place k fires below it, in the gaps before k."""
    on_d0, alone = [0] * (gaps + 1), [0] * (gaps + 1)
    for quiet, loud, weight in zip(*places, states.weights, strict=True):
        on_d0[quiet] += weight
        if loud > quiet:
            alone[quiet] += weight
            alone[loud] -= weight
    above = list(accumulate(reversed(on_d0)))[::-1][1:]
    only = list(accumulate(alone))[:-1]
    return [
        _distinguish(fires, rises, states.total, states.neurons)
        for fires, rises in zip(above, only, strict=True)
    ]


def _distinguish(fires: int, rises: int, total: int, m: int) -> float:
    """(1-p0)^m - (1-p0-only)^m for p0 = fires/total and only = rises/total, so that nothing cancels."""
    if fires >= total or rises <= 0:
        return 0.0
    p0, silent = fires / total, (total - fires) / total
    quiet = m * (math.log1p(-p0) if p0 < 0.5 else math.log(silent))
    share = rises / (total - fires)
    return math.exp(quiet) * (1.0 if share >= 1 else -math.expm1(m * math.log1p(-share)))
