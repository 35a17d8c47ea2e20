"""The best threshold for the reader's random signs.

P[distinguishes] changes with tau only where tau passes a pre-activation of some sign vector, so it is
enough to look between neighbouring ones. Candidates are weighed here; the winner's P is then asked of the
engines, with the tau that is reported.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate, pairwise, product
from typing import Any

import numpy as np

from separatrix.constructions import Construction, Label
from separatrix.engines import EngineRefusal, Outcome, Sampling, solve
from separatrix.engines.certified import TRIPLES
from separatrix.engines.enumerated import MOST_SIGNS, sign_vectors
from separatrix.mechanisms import Mechanism
from separatrix.parameters import format_exact
from separatrix.parameters.logforms import Number
from separatrix.verdicts.outputs import Outputs
from separatrix.verdicts.outputs_exact import ExactOutputs, ends, precision
from separatrix.verdicts.outputs_float import FloatOutputs
from separatrix.verdicts.witness import simplest_between

Peaks = tuple[list[int], list[int]]
LABELS: tuple[Label, Label] = (0, 1)
COUNTED_BLOCKS = 1024
"""Up to this many blocks sign states are counted, beyond they are weighed in float64."""
TAUS = Fraction(1, 10**100), 10**6
"""The thresholds that constructions take."""
SPREAD = 12
"""How many standard deviations of the number of + are looked at beyond that."""
MOST_COUNTS = 100_000
FLOAT_BITS = 1100
"""Every float64 is a whole multiple of 2^-1074."""
DRAWS = 400
SEED = 2**32
"""Of the draws that a threshold is chosen by; its P is measured by others."""


@dataclass(frozen=True)
class Tuned:
    """The threshold with the largest P[distinguishes], and that P."""

    tau: Fraction
    """In units of the margin."""
    outcome: Outcome
    among: str
    """Of which thresholds it is the best."""

    def as_json(self) -> dict[str, Any]:
        """As `separatrix readers --json` prints it."""
        return {
            "tau": format_exact(self.tau),
            "distinguish": self.outcome.distinguish,
            "interval": list(self.outcome.interval),
            "engine": self.outcome.engine,
            "evidence": self.outcome.evidence,
            "among": self.among,
        }


@dataclass(frozen=True)
class States:
    """The largest pre-activation of D0 and of D1 in every sign state, and the state's weight."""

    peaks: Peaks
    """As whole multiples of 2^-bits."""
    weights: list[Any]
    total: Any
    """Whole numbers, or float64."""
    bits: int
    neurons: int
    """How many independent states a network has: m, or 1 where a state is that of a whole network."""
    among: str


def best_threshold(
    construction: Construction,
    mechanism: Mechanism,
    outputs: Sequence[Outputs],
    fixed: Outcome,
    sampling: Sampling,
) -> Tuned:
    """The best tau, and P by the strongest engine that applies."""
    usual = Tuned(_tau(construction), fixed, "")
    states = _states(construction, outputs)
    between = _best(states)
    if between is None:
        return Tuned(usual.tau, fixed, states.among)
    tau = simplest_between(*between)
    moved = type(construction).read({**_given(construction), "tau": tau})
    found = solve(moved, mechanism, "auto", replace(sampling, seed=sampling.seed + 1))
    if found.distinguish < fixed.distinguish:
        tau, found = usual.tau, fixed
    return Tuned(tau, found, states.among)


def _tau(construction: Construction) -> Fraction:
    return Fraction(construction.parameters.values()["tau"])


def _given(construction: Construction) -> dict[str, object]:
    values = {
        name: getattr(construction.parameters, name) for name in type(construction.parameters).model_fields
    }
    return {name: value for name, value in values.items() if value is not None}


def _best(states: States) -> tuple[Fraction, Fraction] | None:
    """Well between which two neighbouring pre-activations P is largest; None if it is 0 everywhere."""
    least, most = (max(1, int(end * 2**states.bits)) for end in TAUS)
    within = [[min(max(x, least), most) for x in peaks] for peaks in states.peaks]
    values = sorted({least, *within[0], *within[1]})
    rank = {x: place for place, x in enumerate(values)}
    on_d0: list[Any] = [0] * (len(values) + 1)
    alone: list[Any] = [0] * (len(values) + 1)
    for low, high, weight in zip(*within, states.weights, strict=True):
        quiet, loud = rank[low], rank[high]
        on_d0[quiet] += weight  # fires while tau is below the place of `quiet`
        if loud > quiet:
            alone[quiet] += weight
            alone[loud] -= weight
    above = list(accumulate(reversed(on_d0)))[::-1][1:]
    only = list(accumulate(alone))
    chances = [
        _distinguish(fires / states.total, max(rises, 0) / states.total, states.neurons)
        for fires, rises in zip(above, only[:-1], strict=True)
    ]
    widths = [high - low for low, high in pairwise(values)]
    if not widths or max(chances) <= 0:
        return None
    place = max(range(len(widths)), key=lambda place: (chances[place], widths[place]))
    edge, scale = Fraction(widths[place], 8), Fraction(2) ** states.bits
    return (values[place] + edge) / scale, (values[place + 1] - edge) / scale


def _distinguish(p0: float, only: float, m: int) -> float:
    """(1-p0)^m - (1-p0-only)^m, arranged so that nothing cancels."""
    if p0 >= 1 or only <= 0:
        return 0.0
    silent, share = m * math.log1p(-p0), only / (1 - p0)
    return math.exp(silent) * (1.0 if share >= 1 else -math.expm1(m * math.log1p(-share)))


def _states(construction: Construction, outputs: Sequence[Outputs]) -> States:
    first = outputs[0]
    if construction.signs <= MOST_SIGNS and len(first.features) == construction.signs:
        return _all_signs(construction, outputs)
    if isinstance(first, ExactOutputs):
        return _sign_states(construction, first)
    return _draws(construction, [each for each in outputs if isinstance(each, FloatOutputs)])


def _all_signs(construction: Construction, outputs: Sequence[Outputs]) -> States:
    """Every sign vector, by its largest pre-activation."""
    bits, vectors = precision(construction), sign_vectors(construction.signs)
    peaks: Peaks = ([], [])
    for each, label in product(outputs, LABELS):
        rows = _whole(each, label, bits)
        peaks[label].extend(max(_dot(signs, row) for row in rows) for signs in vectors)
    count = len(peaks[0])
    among = f"all from 1e-100 to 1e6, over {len(vectors)} sign vectors"
    return States(peaks, [1] * count, count, bits, construction.m, among)


def _dot(signs: Sequence[int], row: Sequence[int]) -> int:
    return sum(x if y > 0 else -x for x, y in zip(row, signs, strict=True))


def _whole(outputs: Outputs, label: Label, bits: int) -> list[list[int]]:
    """The rows as whole multiples of 2^-bits."""
    if isinstance(outputs, ExactOutputs):
        return [[_scaled(x, bits) for x in row] for row in outputs.rows[label]]
    assert isinstance(outputs, FloatOutputs)
    return [[round(Fraction(x) * 2**bits) for x in row] for row in outputs.rows[label].tolist()]


def _scaled(x: Number, bits: int) -> int:
    low, high = ends(x)
    middle: int = round((low + high) / 2 * 2**bits)
    return middle


def _sign_states(construction: Construction, outputs: ExactOutputs) -> States:
    """The states of a closed form: the signs of the spike, its block and c, and the number of other +."""
    bits = precision(construction)
    blocks = max(each.copies for each in outputs.features)
    counts, weights, total = _plus_counts(blocks)
    peaks: Peaks = ([], [])
    for label in LABELS:
        rows = [[_scaled(x, bits) for x in row] for row in outputs.raw[label]]
        lines = [_line(row, triple, sigma, blocks) for triple in TRIPLES for row in rows for sigma in (1, -1)]
        for place in range(0, len(lines), 2 * len(rows)):
            some = lines[place : place + 2 * len(rows)]
            peaks[label].extend(
                max(start + plus * slope for start, slope, low, high in some if low <= plus <= high)
                for plus in counts
            )
    exact = isinstance(total, int)
    extent = "all sign states" if exact else f"sign states within {SPREAD} standard deviations"
    among = f"all from 1e-100 to 1e6, over {extent}"
    return States(peaks, weights * len(TRIPLES), total * len(TRIPLES), bits, construction.m, among)


def _line(row: list[int], triple: Sequence[int], sigma: int, blocks: int) -> tuple[int, int, int, int]:
    """A row's pre-activation with P other + is `start + slope P`, and from which P to which it exists.

    A row of another block has a sign of its own, which is one of those counted; elsewhere its part is 0.
    """
    spike, block, own, other, c = row if len(row) == 5 else (0, *row, 0)
    y_1, y_k, y_d = triple
    start = y_1 * spike + y_k * block + y_d * c + sigma * (own - other) - other * blocks
    return start, 2 * other, int(sigma > 0), blocks - int(sigma < 0)


def _plus_counts(blocks: int) -> tuple[list[int], list[Any], Any]:
    """Numbers of +, their weights, and the sum of all weights."""
    if blocks <= COUNTED_BLOCKS:
        weights = list(accumulate(range(blocks), lambda c, k: c * (blocks - k) // (k + 1), initial=1))
        return list(range(blocks + 1)), weights, 1 << blocks
    reach = int(SPREAD * math.sqrt(blocks) / 2) + 1
    if 2 * reach > MOST_COUNTS:
        raise EngineRefusal(f"the signs of {blocks:,} features have too many states to tune a threshold")
    from scipy.stats import binom  # takes longer to import than most verdicts take

    counts = np.arange(blocks // 2 - reach, blocks // 2 + reach + 1)
    return counts.tolist(), binom.pmf(counts, blocks, 0.5).tolist(), 1.0


def _draws(construction: Construction, outputs: Sequence[FloatOutputs]) -> States:
    """Seeded draws of whole networks, shared between the outputs."""
    rng = np.random.default_rng(SEED)
    copies = np.array([each.copies for each in outputs[0].features])
    peaks: Peaks = ([], [])
    for each, _ in product(outputs, range(-(-DRAWS // len(outputs)))):
        signs = 2 * rng.binomial(copies[:, None], 0.5, (len(copies), construction.m)) - copies[:, None]
        for label in LABELS:
            peaks[label].append(round(Fraction(float((each.rows[label] @ signs).max())) * 2**FLOAT_BITS))
    count = len(peaks[0])
    return States(peaks, [1] * count, count, FLOAT_BITS, 1, f"those that {count} drawn networks show")
