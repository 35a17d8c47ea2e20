"""The best linear reader of one row: it fires when `<w, row>` exceeds theta for some row.

With one row in D0 the best w is the difference of the two rows. In general it is the direction from the
nearest point of the convex hull of one label's rows to a row of the other (a least-distance problem, which
non-negative least squares solves), and a row inside the hull cannot be read that way at all.
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
"""Rows, and single features, to start a search from."""
MOST_ENTRIES = 1 << 19
"""Hulls with more numbers than this are left to simpler directions."""
PLACES = (3, 17)
"""Decimals of the weights: few are tried first, and kept if they lose less than a thousandth of the gap."""


@dataclass(frozen=True)
class Witness:
    """A linear reader that fires on one label and not on the other."""

    weights: tuple[Fraction, ...]
    """For each feature of the outputs; every copy of a feature has it."""
    threshold: Fraction
    fires_on: Label
    gap: float
    """How far apart the readings are, for weights of length 1, in units of the margin."""

    def spread_over(self, features: Sequence[Feature], others: Sequence[Feature]) -> Witness:
        """The same reader for outputs that tell every copy of a feature apart."""
        if tuple(features) == tuple(others):
            return self
        pairs = zip(features, self.weights, strict=True)
        return replace(self, weights=tuple(w for each, w in pairs for _ in range(each.copies)))

    def holds_on(self, outputs: Outputs) -> bool:
        """Whether these rows, too, are told apart, rounding counted against it."""
        low, high = (outputs.reading(label, self.weights) for label in self._order)
        return low[1] <= self.threshold < high[0]

    def contradicts(self, outputs: Outputs) -> bool:
        """Whether these rows are surely not told apart."""
        low, high = (outputs.reading(label, self.weights) for label in self._order)
        return low[0] > self.threshold or high[1] <= self.threshold

    @property
    def _order(self) -> tuple[Label, Label]:
        return (0, 1) if self.fires_on else (1, 0)


def best_witness(outputs: Outputs) -> Witness | None:
    """The reader with the largest gap that was found: one that fires on D1, or if there is none on D0."""
    for label in LOUD_FIRST:
        found = list(_witnesses(outputs, label))
        widest = max((each.gap for each in found), default=0.0)
        good = [each for each in found if each.gap >= 0.999 * widest]
        if good:
            return min(good, key=lambda each: sum(len(str(w)) for w in each.weights))
    return None


def _witnesses(outputs: Outputs, fires_on: Label) -> Iterator[Witness]:
    quiet, loud = outputs.offsets if fires_on else outputs.offsets[::-1]
    apart = outputs.differences if fires_on else -outputs.differences
    roots = np.sqrt([float(feature.copies) for feature in outputs.features])
    for direction in _directions(quiet, loud, apart if len(apart) else loud - quiet.mean(0)):
        unit = direction / np.abs(direction).max() / roots
        unit = unit / np.abs(unit).max()
        for places in PLACES:
            weights = tuple(Fraction(f"{w:.{places}f}") for w in unit)
            found = _checked(outputs, weights, fires_on)
            if found is not None:
                yield found


def _checked(outputs: Outputs, weights: tuple[Fraction, ...], fires_on: Label) -> Witness | None:
    """The reader of these weights, if its readings are surely apart."""
    quiet, loud = (outputs.reading(label, weights) for label in ((0, 1) if fires_on else (1, 0)))
    low, high = quiet[1], loud[0]
    if not low < high:
        return None
    size = high - low
    threshold = simplest_between(low + size / 8, high - size / 8)
    return Witness(weights, threshold, fires_on, float(size) / outputs.length(weights))


def _directions(quiet: Array, loud: Array, difference: Array) -> Iterator[Array]:
    """From rows of the quiet label to rows of the loud one, and single features that differ most."""
    order = np.argsort(-np.linalg.norm(difference, axis=1), kind="stable")
    few = np.unique(np.concatenate([loud[order[:MOST_ROWS]], loud[-1:]]), axis=0)
    hull = np.unique(quiet, axis=0)
    for row in few:
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
    """The shortest w with `<w, row - p> >= 1` for every p of the hull, or None where there is none.

    Lawson and Hanson's reduction of least distance to non-negative least squares.
    """
    between = row - hull
    size = np.abs(between).max()
    if between.size > MOST_ENTRIES or not 0 < size < inf:
        return None
    system = np.vstack([between.T / size, np.ones(len(between))])
    goal = np.zeros(len(system))
    goal[-1] = 1.0
    try:
        share, _ = scipy.optimize.nnls(system, goal)
    except RuntimeError:  # too many steps: other directions will have to do
        return None
    rest = system @ share - goal
    if abs(rest[-1]) < 1e-14:
        return None
    found: Array = -rest[:-1] / rest[-1]
    return found


def simplest_between(low: Fraction, high: Fraction) -> Fraction:
    """The rational of the smallest denominator between two that differ, ends excluded.

    >>> simplest_between(Fraction(1, 3), Fraction(2, 5))
    Fraction(3, 8)
    """
    if low < 0 < high:
        return Fraction(0)
    if high <= 0:
        return -simplest_between(-high, -low)
    terms: list[int] = []
    while True:
        whole = low.numerator // low.denominator
        if whole + 1 < high:
            terms.append(whole + 1)
            break
        terms.append(whole)
        if low == whole:  # the other end is whole + 1 or less: 1/(high - low) and beyond
            terms.append(int(1 / (high - low)) + 1)
            break
        low, high = 1 / (high - whole), 1 / (low - whole)
    return _continued(terms)


def _continued(terms: Sequence[int]) -> Fraction:
    value = Fraction(terms[-1])
    for term in reversed(terms[:-1]):
        value = term + 1 / value
    return value
