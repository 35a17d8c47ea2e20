"""The best linear reader of one row: it fires if `<w, row>` exceeds theta for a row.

With one row in D0 the best w is the difference of the two rows. In general it is the direction from the
nearest point of the convex hull of one label's rows to a row of the other, a least-distance problem that
non-negative least squares solves. A row inside the hull has no linear reader.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf

import numpy as np
import scipy

from separatrix.constructions import Label
from separatrix.exact.outputs._base import Array, Feature, Outputs

LOUD_FIRST: tuple[Label, Label] = (1, 0)
MOST_ROWS = 8
"""The number of rows, and of single features, to start a search from."""
MOST_ENTRIES = 1 << 19
"""The maximum size of a hull; larger ones use simpler directions."""
PLACES = (3, 17)
"""Decimals of the weights: few are tried first, and used if they lose less than 0.1 % of the gap."""


@dataclass(frozen=True)
class Witness:
    """A linear reader that fires on one label and not on the other."""

    weights: tuple[Fraction, ...]
    """One for each feature of the outputs, shared by its copies."""
    threshold: Fraction
    fires_on: Label
    gap: float
    """The difference of the readings for weights of length 1, in units of the margin."""

    def spread_over(self, features: Sequence[Feature], target: Sequence[Feature]) -> Witness:
        """Return the same reader for outputs that list every copy of a feature."""
        if tuple(features) == tuple(target):
            return self
        pairs = zip(features, self.weights, strict=True)
        return replace(self, weights=tuple(w for feature, w in pairs for _ in range(feature.copies)))

    def holds_on(self, outputs: Outputs) -> bool:
        """Whether it certainly tells these rows apart, rounding included."""
        # It fires if a reading exceeds the threshold, so quiet readings may equal it, loud ones must not.
        low, high = (outputs.reading(label, self.weights) for label in self._order)
        return low[1] <= self.threshold < high[0]

    def contradicts(self, outputs: Outputs) -> bool:
        """Whether it certainly does not tell these rows apart."""
        low, high = (outputs.reading(label, self.weights) for label in self._order)
        return low[0] > self.threshold or high[1] <= self.threshold

    @property
    def _order(self) -> tuple[Label, Label]:
        return (0, 1) if self.fires_on else (1, 0)


def best_witness(outputs: Outputs) -> Witness | None:
    """Return the reader with the largest gap found; one that fires on D1 is preferred."""
    for label in LOUD_FIRST:
        witnesses = list(_witnesses(outputs, label))
        widest = max((witness.gap for witness in witnesses), default=0.0)
        # Among readers that are nearly as good, the shortest weights are the easiest to read.
        best = [witness for witness in witnesses if witness.gap >= 0.999 * widest]
        if best:
            return min(best, key=lambda witness: sum(len(str(w)) for w in witness.weights))
    return None


def _witnesses(outputs: Outputs, fires_on: Label) -> Iterator[Witness]:
    quiet, loud = outputs.offsets if fires_on else outputs.offsets[::-1]
    differences = outputs.differences if fires_on else -outputs.differences
    roots = np.sqrt([float(feature.copies) for feature in outputs.features])
    for direction in _directions(quiet, loud, differences if len(differences) else loud - quiet.mean(0)):
        unit = direction / np.abs(direction).max() / roots
        unit = unit / np.abs(unit).max()
        for places in PLACES:
            weights = tuple(Fraction(f"{w:.{places}f}") for w in unit)
            witness = _check_weights(outputs, weights, fires_on)
            if witness is not None:
                yield witness


def _check_weights(outputs: Outputs, weights: tuple[Fraction, ...], fires_on: Label) -> Witness | None:
    """Return the reader with these weights if its readings are certainly apart."""
    quiet, loud = (outputs.reading(label, weights) for label in ((0, 1) if fires_on else (1, 0)))
    # Rounded weights are another reader, so it is their own readings that have to be apart.
    low, high = quiet[1], loud[0]
    if not low < high:
        return None
    size = high - low
    # An eighth of the gap is kept on either side, for computations that round.
    threshold = simplest_between(low + size / 8, high - size / 8)
    return Witness(weights, threshold, fires_on, float(size) / outputs.length(weights))


def _directions(quiet: Array, loud: Array, difference: Array) -> Iterator[Array]:
    """Yield directions from quiet rows to loud rows, and along the features that differ most."""
    order = np.argsort(-np.linalg.norm(difference, axis=1), kind="stable")
    targets = np.unique(np.concatenate([loud[order[:MOST_ROWS]], loud[-1:]]), axis=0)
    hull = np.unique(quiet, axis=0)
    for row in targets:
        direction = row - hull[0] if len(hull) == 1 else _from_hull(hull, row)
        if direction is not None and direction.any():
            yield direction
    for row in difference[order[:MOST_ROWS]]:
        if row.any():
            yield row
    strongest = difference[order[0]]
    for place in np.argsort(-np.abs(strongest), kind="stable")[:MOST_ROWS]:
        if strongest[place]:
            yield np.sign(strongest[place]) * np.eye(len(strongest))[place]


def _from_hull(hull: Array, row: Array) -> Array | None:
    """Return the shortest w with `<w, row - p> >= 1` for every p of the hull, or None.

    Lawson and Hanson's reduction of least-distance programming to non-negative least squares.
    """
    gaps = row - hull
    size = np.abs(gaps).max()
    if gaps.size > MOST_ENTRIES or not 0 < size < inf:
        return None
    system = np.vstack([gaps.T / size, np.ones(len(gaps))])
    goal = np.zeros(len(system))
    goal[-1] = 1.0
    try:
        share, _ = scipy.optimize.nnls(system, goal)
    except RuntimeError:  # too many iterations: the other directions remain
        return None
    residual = system @ share - goal
    if abs(residual[-1]) < 1e-14:
        return None
    direction: Array = -residual[:-1] / residual[-1]
    return direction


def simplest_between(low: Fraction, high: Fraction) -> Fraction:
    """Return the rational with the smallest denominator strictly between two numbers.

    >>> simplest_between(Fraction(1, 3), Fraction(2, 5))
    Fraction(3, 8)
    """
    if low < 0 < high:
        return Fraction(0)
    if high <= 0:
        return -simplest_between(-high, -low)
    terms: list[int] = []
    while True:
        floor = low.numerator // low.denominator
        if floor + 1 < high:
            terms.append(floor + 1)
            break
        terms.append(floor)
        if low == floor:  # the other end is whole + 1 or less: 1/(high - low) and beyond
            terms.append(int(1 / (high - low)) + 1)
            break
        low, high = 1 / (high - floor), 1 / (low - floor)
    value = Fraction(terms[-1])
    for term in reversed(terms[:-1]):
        value = term + 1 / value
    return value
