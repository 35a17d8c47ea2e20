"""The sign states of the reader, each with the largest pre-activations of D0 and D1.

Pre-activations are integer multiples of a unit, with a bound on their error that is 0 if everything is
rational. Two of them closer than twice the bound may be equal, so nothing is concluded from their order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, product

import numpy as np
import scipy
from flint import fmpq

from separatrix.constructions import Construction, Label
from separatrix.core.numbers.logforms import Flint
from separatrix.exact.engines import EngineRefusal
from separatrix.exact.engines.certified import TRIPLES
from separatrix.exact.engines.enumerated import MOST_SIGNS, sign_vectors
from separatrix.exact.outputs._base import Outputs
from separatrix.exact.outputs.floats import SLACK, FloatOutputs
from separatrix.exact.outputs.proved import ProvedOutputs, ends, precision

Peaks = tuple[list[int], list[int]]
Rows = Sequence[Sequence[Flint | float]]
LABELS: tuple[Label, Label] = (0, 1)
LEAST_TAU, LARGEST_TAU = Fraction(1, 10**100), 10**6
"""The range of thresholds that constructions accept."""
COUNTED_BLOCKS = 1024
"""Up to this many blocks sign states are counted exactly; beyond, their weights are in float64."""
SPREAD = 12
"""Standard deviations of the number of + signs that are considered beyond that."""
MOST_COUNTS = 100_000
FLOAT_BITS = 1100
"""Every float64 is an integer multiple of 2^-1074."""
MOST_BITS = 1 << 16
"""Rationals with a larger common denominator are rounded."""
DRAWS = 400
SEED = 2**32
"""The seed of the draws that select a threshold; its P is estimated with other draws."""


@dataclass(frozen=True)
class Scale:
    """Numbers as integer multiples of 1/unit, with an error of at most `off` of them."""

    unit: int
    off: int

    def to_integer(self, x: Flint | float) -> int:
        """Return the nearest multiple."""
        low, high = (Fraction(x),) * 2 if isinstance(x, float) else ends(x)
        middle: int = round((low + high) / 2 * self.unit)
        return middle


@dataclass(frozen=True)
class States:
    """The largest pre-activations of D0 and D1 in every sign state, with the weight of the state."""

    peaks: Peaks
    weights: list[int]
    total: int
    """The sum of all weights, including states that are left out."""
    scale: Scale
    """The scale of the peaks, in units of the margin."""
    neurons: int
    """The number of independent states of a network: m, or 1 if a state is a whole network."""
    description: str
    """A description of the states."""


def sign_states(construction: Construction, outputs: Sequence[Outputs]) -> list[States]:
    """Return all sign states if they can be counted, one set per output; otherwise sampled networks."""
    first = outputs[0]
    if construction.signs <= MOST_SIGNS and len(first.features) == construction.signs:
        return [_all_signs(construction, output) for output in outputs]
    if isinstance(first, ProvedOutputs):
        return [_counted_signs(construction, first)]
    return [_draws(construction, [output for output in outputs if isinstance(output, FloatOutputs)])]


def _all_signs(construction: Construction, outputs: Outputs) -> States:
    """Return the states of all sign vectors."""
    vectors = sign_vectors(construction.signs)
    scale = _scale(construction, outputs)
    peaks: Peaks = ([], [])
    for label in LABELS:
        rows = [[scale.to_integer(x) for x in row] for row in _numbers(outputs, label)]
        peaks[label].extend(max(_dot(signs, row) for row in rows) for signs in vectors)
    description = f"all {len(vectors)} sign vectors"
    return States(peaks, [1] * len(vectors), len(vectors), scale, construction.m, description)


def _dot(signs: Sequence[int], row: Sequence[int]) -> int:
    return sum(x if y > 0 else -x for x, y in zip(row, signs, strict=True))


def _numbers(outputs: Outputs, label: Label) -> Rows:
    if isinstance(outputs, ProvedOutputs):
        return outputs.rows[label]
    assert isinstance(outputs, FloatOutputs)
    rows: list[list[float]] = outputs.rows[label].tolist()
    return rows


def _scale(construction: Construction, outputs: Outputs) -> Scale:
    """Return the scale for sums over all signs of the reader."""
    if isinstance(outputs, ProvedOutputs):
        return _exact_scale(construction, [x for rows in outputs.raw for row in rows for x in row])
    assert isinstance(outputs, FloatOutputs)
    copies = np.array([float(feature.copies) for feature in outputs.features])
    off = max(float((sizes @ copies).max()) for sizes in outputs.sizes)
    return Scale(1 << FLOAT_BITS, math.ceil(Fraction(SLACK * off) * (1 << FLOAT_BITS)))


def _exact_scale(construction: Construction, numbers: Iterable[Flint]) -> Scale:
    """Return a common denominator if all are rational, otherwise a power of two as fine as the balls."""
    values = list(numbers)
    rationals = [x for x in values if isinstance(x, fmpq)]
    if len(rationals) == len(values):
        unit = 10**100
        for x in rationals:
            unit = math.lcm(unit, int(x.q))
            if unit.bit_length() > MOST_BITS:
                break
        else:
            return Scale(unit, 0)
    # Each of at most signs + 4 terms of a pre-activation is off by its ball and by rounding to the unit.
    unit = 1 << precision(construction)
    widest = max(high - low for low, high in map(ends, values))
    return Scale(unit, (1 + math.ceil(widest * unit)) * (construction.signs + 4))


def _counted_signs(construction: Construction, outputs: ProvedOutputs) -> States:
    """Return the states of a closed form: the signs of spike, block and c, and the number of other +."""
    scale = _scale(construction, outputs)
    blocks = max(feature.copies for feature in outputs.features)
    counts, weights, total = _plus_counts(blocks)
    peaks: Peaks = ([], [])
    for label in LABELS:
        rows = [[scale.to_integer(x) for x in row] for row in outputs.raw[label]]
        for triple in TRIPLES:
            lines = [_line(row, triple, sigma, blocks) for row in rows for sigma in (1, -1)]
            peaks[label].extend(
                max(start + plus * slope for start, slope, low, high in lines if low <= plus <= high) for plus in counts
            )
    are_all = blocks <= COUNTED_BLOCKS
    description = "all sign states" if are_all else f"sign states within {SPREAD} standard deviations"
    return States(peaks, weights * len(TRIPLES), total * len(TRIPLES), scale, construction.m, description)


def _line(row: list[int], triple: Sequence[int], sigma: int, blocks: int) -> tuple[int, int, int, int]:
    """Return (start, slope, low, high): the pre-activation is start + slope P for low <= P <= high.

    A row of another block has its own sign, which is among those counted by P.
    """
    spike, block, own_block, other_block, c = row if len(row) == 5 else (0, *row, 0)
    y_1, y_k, y_d = triple
    start = y_1 * spike + y_k * block + y_d * c + sigma * (own_block - other_block) - other_block * blocks
    return start, 2 * other_block, int(sigma == 1), blocks - int(sigma == -1)


def _plus_counts(blocks: int) -> tuple[list[int], list[int], int]:
    """Return the numbers of + signs, their weights, and the sum of all weights."""
    if blocks <= COUNTED_BLOCKS:
        weights = list(accumulate(range(blocks), lambda c, k: c * (blocks - k) // (k + 1), initial=1))
        return list(range(blocks + 1)), weights, 1 << blocks
    reach = int(SPREAD * math.sqrt(blocks) / 2) + 1
    if 2 * reach > MOST_COUNTS:
        raise EngineRefusal(f"the signs of {blocks:,} features have too many states to tune a threshold")
    counts = np.arange(blocks // 2 - reach, blocks // 2 + reach + 1)
    total = 1 << FLOAT_BITS
    shares = scipy.stats.binom.pmf(counts, blocks, 0.5).tolist()
    return counts.tolist(), [int(Fraction(share) * total) for share in shares], total


def _draws(construction: Construction, outputs: Sequence[FloatOutputs]) -> States:
    """Return seeded samples of whole networks, divided among the outputs."""
    rng = np.random.default_rng(SEED)
    copies = np.array([feature.copies for feature in outputs[0].features])
    scales = [_scale(construction, output) for output in outputs]
    scale = max(scales, key=lambda output: output.off)
    peaks: Peaks = ([], [])
    for output, _ in product(outputs, range(-(-DRAWS // len(outputs)))):
        signs = 2 * rng.binomial(copies[:, None], 0.5, (len(copies), construction.m)) - copies[:, None]
        for label in LABELS:
            peaks[label].append(scale.to_integer(float((output.rows[label] @ signs).max())))
    count = len(peaks[0])
    return States(peaks, [1] * count, count, scale, 1, f"{count} drawn networks")
