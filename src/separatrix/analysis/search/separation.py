"""How far apart a mechanism keeps the two labels of an instance, with the evidence for it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from typing import Any

from flint import arb, ctx, fmpq

from separatrix.analysis.search.instance import Instance
from separatrix.core.documents import Document, Hidden, shown_as
from separatrix.core.numbers.logforms import Flint, rational
from separatrix.exact.outputs.formulas import PRECISION, ExactOutput, output_rows
from separatrix.mechanisms import Mechanism

MIN_SEPARATION = fmpq(1, 10)
"""X tells the labels apart if its outputs differ by this much of their scale, or more."""
NEGLIGIBLE = fmpq(1, 10**9)
"""Outputs that are not proved equal or different are near up to this much of their scale."""
DROWNED = 100
"""Y's difference is drowned if it is this many times less than X's."""
MIN_MARGIN = 1e-9
"""The objective does not distinguish smaller margins."""
WORST = -60.0
"""The objective of an instance on which a mechanism has no answer."""

OutputRows = list[list[Any]]
"""Rationals, balls or floats, row by row."""
TextRows = list[list[str]]


@dataclass(frozen=True)
class InstanceReading(Document):
    """The outputs of one mechanism on an instance, and their difference divided by their scale.

    The scale is the largest value of a token, or the largest output if that is larger.
    """

    d0: Hidden[OutputRows]
    d1: Hidden[OutputRows]
    margin: Hidden[Flint | float]
    evidence: str
    """exact (rationals), balls (proved bounds) or float64 (not proved)."""

    @shown_as("d0")
    def d0_texts(self) -> TextRows:
        """The outputs for D0; rationals exactly."""
        return [[format_number(x) for x in row] for row in self.d0]

    @shown_as("d1")
    def d1_texts(self) -> TextRows:
        """The outputs for D1; rationals exactly."""
        return [[format_number(x) for x in row] for row in self.d1]

    @shown_as("margin")
    def margin_text(self) -> str:
        """The difference divided by the scale."""
        return format_number(self.margin)

    @property
    def is_equal(self) -> bool | None:
        """Whether both labels have the same outputs; None if it is neither proved nor refuted."""
        if isinstance(self.margin, fmpq):
            return bool(self.margin == 0)
        return None if isinstance(self.margin, float) or self.margin.contains(0) else False


@dataclass(frozen=True)
class Separation:
    """X and Y on one instance."""

    x: InstanceReading
    y: InstanceReading

    @cached_property
    def way(self) -> str | None:
        """How Y fails and X does not: `equal`, `near`, `drowned`, or None if this is no separation.

        Equal outputs are proved to be equal; near ones may be equal, or differ by rounding alone.
        """
        with ctx.workprec(PRECISION):
            if not is_at_most(MIN_SEPARATION, self.x.margin):
                return None
            if self.y.is_equal:
                return "equal"
            if self.y.is_equal is None and is_at_most(self.y.margin, NEGLIGIBLE):
                return "near"
            y = self.y.margin if not isinstance(self.y.margin, float) else arb(self.y.margin)
            return "drowned" if is_at_most(DROWNED * y, self.x.margin) else None

    def objective(self, way: str) -> float:
        """Return `log(margin of X) - log(margin of Y)`, limited to the difference that this way needs.

        The lack of X's margin counts as a loss, so that one tiny margin over another gains nothing.
        """
        if way == "drowned" and self.way in ("equal", "near"):
            return WORST
        x, y = (max(_to_float(reading.margin), MIN_MARGIN) for reading in (self.x, self.y))
        enough = math.log(DROWNED) if way == "drowned" else -math.log(MIN_MARGIN)
        return min(math.log(x / y), enough) + 2 * min(math.log(x / _to_float(MIN_SEPARATION)), 0.0)


def separation(x: Mechanism, y: Mechanism, instance: Instance) -> Separation:
    """Read an instance by both mechanisms, each with the best evidence available."""
    return Separation(read(x, instance), read(y, instance))


def read(mechanism: Mechanism, instance: Instance) -> InstanceReading:
    """Read an instance by one mechanism; NoAnswer if it gives none."""
    with ctx.workprec(PRECISION):
        rows = [output_rows(mechanism, label) for label in instance.labels]
        d0, d1 = ([output for row in label for output in row] for label in rows)
        # Equal expressions are exactly 0; the difference of their balls would only contain 0.
        differences = [fmpq(0) if a.made_of == b.made_of else b.value - a.value for a, b in zip(d0, d1, strict=True)]
        values = [rational(Fraction(x)) for label in instance.labels for k in label.groups for x in k.value]
        margin = _divide(_largest(differences), _largest([*values, *(output.value for output in (*d0, *d1))]))
        outputs = [[[output.value for output in row] for row in label] for label in rows]
        return InstanceReading(outputs[0], outputs[1], margin, _evidence(margin, [*d0, *d1]))


def _evidence(margin: Any, outputs: list[ExactOutput]) -> str:
    """float64 as soon as one output is; else that of the margin, which decides."""
    if any(isinstance(output.value, float) for output in outputs):
        return "float64"
    return "exact" if isinstance(margin, fmpq) else "balls"


def _divide(difference: Any, scale: Any) -> Any:
    """Return a float if the scale is one, and exactly 0 if the difference is, as it is if the scale is 0."""
    if isinstance(scale, float):
        return _to_float(difference) / scale if scale else 0.0
    return difference if isinstance(difference, fmpq) and difference == 0 else difference / scale


def _largest(numbers: list[Any]) -> Any:
    """Return the largest magnitude: a rational among rationals, a float if there is one, else a ball."""
    if all(isinstance(x, fmpq) for x in numbers):
        return max(abs(x) for x in numbers)
    if any(isinstance(x, float) for x in numbers):
        return max(abs(_to_float(x)) for x in numbers)
    # Balls that overlap have no order, so the maximum of Python would be wrong.
    return reduce(lambda largest, x: largest.max(abs(arb(x))), numbers, arb(0))


def is_at_most(x: Flint | float, y: Flint | float) -> bool:
    """Whether x is certainly at most y, as far as the evidence goes."""
    if isinstance(x, fmpq) and isinstance(y, fmpq):
        return bool(x <= y)
    return bool(arb(x) <= arb(y))


def _to_float(x: Flint | float) -> float:
    return float(arb(x)) if isinstance(x, fmpq) else float(x)


def format_number(x: Flint | float) -> str:
    """Return a rational as a fraction, other numbers with six digits, and the bound of a ball around 0.

    >>> format_number(fmpq(1, 3)), format_number(0.25), format_number(arb(1) / 3)
    ('1/3', '0.25', '0.333333')
    """
    if isinstance(x, fmpq):
        return str(x)
    if isinstance(x, float) or not x.contains(0):
        return f"{float(x):.6g}"
    return f"at most {float(abs(x).upper()):.1g} in size"
