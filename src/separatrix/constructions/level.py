"""A real-valued target: how finely attention passes on an amplitude."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from separatrix.constructions._base import GROWING_SPIKE, Label, amplitude_or_zero, reader_threshold
from separatrix.constructions._exact import ONE, ZERO, Description, ExactConstruction, TokenGroup
from separatrix.core.parameters import Constraint, is_absent, natural


class Level(ExactConstruction):
    """The spike's amplitude is one of several levels: the one numbered at (D0) or the next (D1).

    One of n tokens has the logit 1+gap and carries an amplitude; the others have the logit 1 and carry 0;
    logits are in units of log n. Amplitudes are `levels` evenly spaced numbers from a0 to a1; D0 has number
    `at` (counted from 0), D1 the next. tau is half-way between the two unless given. The quantity measured is
    the resolution: the margin over the spacing of the levels is the slope with which the mechanism passes the
    amplitude on, which is the weight of the token: 1 - O(n^(1-gap)) for softmax, O(1/n) for linear attention.
    """

    name = "level"
    section = (7, 4, 1)
    provenance = "[ours] docs/theory.md 7.4: a real-valued target"
    tau: Fraction = reader_threshold(None)
    a0: Fraction = amplitude_or_zero(0)
    a1: Fraction = amplitude_or_zero(1)
    levels: int = natural(5, at_least=2, at_most=10**6)
    at: int = natural(2)
    gap: Fraction = amplitude_or_zero(2)
    relations = (
        GROWING_SPIKE,
        Constraint(
            ("at", "levels"),
            # `&` instead of `and`: on a grid the parameters are columns.
            lambda p: (p.at >= 0) & (p.at < p.levels - 1),
            lambda p: f"at={p.at} has no level above it; at must be 0 to {p.levels - 2}",
        ),
    )

    @classmethod
    def fill_derived(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Fill in tau half-way between the two levels unless tau is given."""
        if is_absent(values["tau"]):
            share = Fraction(1, 2) * (2 * values["at"] + 1) / (values["levels"] - 1)
            values["tau"] = values["a0"] + (values["a1"] - values["a0"]) * share
        return values

    def describe(self, label: Label) -> Description:
        amplitude = self.a0 + (self.a1 - self.a0) * Fraction(self.at + label, self.levels - 1)
        spike = TokenGroup((1 + self.gap,), (amplitude,))
        return Description(((ONE,),), (spike, TokenGroup((ONE,), (ZERO,), self.n - 1)))
