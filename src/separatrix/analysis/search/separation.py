"""How far apart a mechanism keeps the two labels of an instance, and how that is known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from flint import arb, ctx, fmpq

from separatrix.analysis.search.instance import Instance
from separatrix.core.numbers.logforms import Flint, rational
from separatrix.exact.outputs.formulas import PRECISION, ExactOutput, output_rows
from separatrix.mechanisms import Mechanism

TELLS = fmpq(1, 10)
"""X tells the labels apart if its outputs differ by this much of their scale, or more."""
NEGLIGIBLE = fmpq(1, 10**9)
"""Outputs of which it is not known whether they are equal are near up to this much of their scale."""
DROWNED = 100
"""Y's difference is drowned if it is this many times less than X's."""
FLOOR = 1e-9
"""Margins below this are all one to the objective."""
WORST = -60.0
"""The objective of an instance on which a mechanism has no answer."""

Outputs = list[list[Any]]
"""Rationals, balls or floats, row by row."""
Evidence = str
"""exact (rationals), balls (proved bounds) or float64 (not proved)."""


@dataclass(frozen=True)
class Reading:
    """What one mechanism makes of an instance: its outputs, and their difference over their scale.

    The scale is the largest value that a token carries, or the largest output where that is larger.
    """

    d0: Outputs
    d1: Outputs
    margin: Flint | float
    evidence: Evidence

    @property
    def equal(self) -> bool | None:
        """Whether both labels get the same; None where it is not proved and not refuted."""
        if isinstance(self.margin, fmpq):
            return bool(self.margin == 0)
        return None if isinstance(self.margin, float) or self.margin.contains(0) else False

    def as_json(self) -> dict[str, Any]:
        """Outputs and margin as text, rationals exactly."""
        return {
            "d0": [[shown(x) for x in row] for row in self.d0],
            "d1": [[shown(x) for x in row] for row in self.d1],
            "margin": shown(self.margin),
            "evidence": self.evidence,
        }


@dataclass(frozen=True)
class Separation:
    """X and Y on one instance."""

    x: Reading
    y: Reading

    @cached_property
    def way(self) -> str | None:
        """How Y fails where X does not: `equal`, `near`, `drowned`, or None where this is no separation.

        What is equal is proved to be; what is near may be equal, or rounding alone tells it apart.
        """
        with ctx.workprec(PRECISION):
            if not at_most(TELLS, self.x.margin):
                return None
            if self.y.equal:
                return "equal"
            if self.y.equal is None and at_most(self.y.margin, NEGLIGIBLE):
                return "near"
            return "drowned" if at_most(DROWNED * _number(self.y.margin), self.x.margin) else None

    def towards(self, way: str) -> float:
        """The objective: `log(margin of X) - log(margin of Y)`, up to where it is enough for this way.

        What X's margin lacks counts as a loss, so that one tiny margin over another gains nothing.
        """
        if way == "drowned" and self.way in ("equal", "near"):
            return WORST
        x, y = (max(_float(reading.margin), FLOOR) for reading in (self.x, self.y))
        enough = math.log(DROWNED) if way == "drowned" else -math.log(FLOOR)
        return min(math.log(x / y), enough) + 2 * min(math.log(x / _float(TELLS)), 0.0)


def separation(x: Mechanism, y: Mechanism, instance: Instance) -> Separation:
    """Read an instance by both mechanisms, each with the best evidence there is."""
    return Separation(read(x, instance), read(y, instance))


def read(mechanism: Mechanism, instance: Instance) -> Reading:
    """One mechanism on an instance; NoAnswer where it gives none."""
    with ctx.workprec(PRECISION):
        rows = [output_rows(mechanism, label) for label in instance.labels]
        one, other = ([each for row in label for each in row] for label in rows)
        apart = [
            fmpq(0) if a.made_of == b.made_of else b.value - a.value for a, b in zip(one, other, strict=True)
        ]
        carried = [rational(Fraction(x)) for label in instance.labels for k in label.groups for x in k.value]
        scale = _largest([*carried, *(each.value for each in (*one, *other))])
        margin = _over(_largest(apart), scale)
        d0, d1 = ([[each.value for each in row] for row in label] for label in rows)
        return Reading(d0, d1, margin, _evidence(margin, [*one, *other]))


def _evidence(margin: Any, outputs: list[ExactOutput]) -> Evidence:
    """float64 as soon as one output is; else that of the margin, which is what counts."""
    if any(isinstance(output.value, float) for output in outputs):
        return "float64"
    return "exact" if isinstance(margin, fmpq) else "balls"


def _over(top: Any, scale: Any) -> Any:
    """The quotient, a float where the scale is one; exactly 0 if the top is, as it is if the scale is."""
    if isinstance(scale, float):
        return _float(top) / scale if scale else 0.0
    return top if isinstance(top, fmpq) and top == 0 else top / scale


def _largest(numbers: list[Any]) -> Any:
    """The largest size: rational among rationals, a float where there is one, else a ball."""
    if all(isinstance(x, fmpq) for x in numbers):
        return max(abs(x) for x in numbers)
    if any(isinstance(x, float) for x in numbers):
        return max(abs(_float(x)) for x in numbers)
    top = arb(0)
    for x in numbers:
        top = top.max(abs(arb(x)))
    return top


def at_most(one: Flint | float, other: Flint | float) -> bool:
    """Whether one is certainly at most the other, as far as their evidence goes."""
    if isinstance(one, fmpq) and isinstance(other, fmpq):
        return bool(one <= other)
    return bool(arb(one) <= arb(other))


def _number(x: Flint | float) -> Flint:
    return arb(x) if isinstance(x, float) else x


def _float(x: Flint | float) -> float:
    return float(arb(x)) if isinstance(x, fmpq) else float(x)


def shown(x: Flint | float) -> str:
    """A rational as a fraction; else six digits, and of a ball around 0 the bound.

    >>> shown(fmpq(1, 3)), shown(0.25), shown(arb(1) / 3)
    ('1/3', '0.25', '0.333333')
    """
    if isinstance(x, fmpq):
        return str(x)
    if isinstance(x, float) or not x.contains(0):
        return f"{float(x):.6g}"
    return f"at most {float(abs(x).upper()):.1g} in size"
