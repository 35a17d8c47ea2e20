"""A real-valued target: how finely attention passes on an amplitude."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar

from separatrix.constructions._base import Label
from separatrix.constructions._blocks import GROWING_SPIKE
from separatrix.constructions._exact import (
    ONE,
    ZERO,
    Description,
    ExactConstruction,
    ExactParameters,
    Kind,
)
from separatrix.core.parameters import Constraint, Exact, Natural, between, is_absent


class LevelParameters(ExactParameters):
    """The range of the amplitude, how many levels it is cut into, and which two are compared."""

    owner = "level"
    tau: Exact | None = None  # type: ignore[assignment]
    a0: Exact = ZERO
    a1: Exact = ONE
    levels: Natural = 5
    at: Natural = 2
    gap: Exact = Fraction(2)
    constraints: ClassVar[tuple[Constraint, ...]] = (
        *ExactParameters.constraints,
        between("a0", 0, 10**6),
        between("a1", 0, 10**6),
        between("levels", 2, 10**6),
        between("gap", 0, 10**6),
        GROWING_SPIKE,
        Constraint(
            ("at", "levels"),
            lambda p: (p.at >= 0) & (p.at < p.levels - 1),
            lambda p: f"at={p.at} has no level above it; at must be 0 to {p.levels - 2}",
        ),
    )

    @classmethod
    def derive(cls, values: dict[str, Any]) -> dict[str, Any]:
        """tau is half-way between the two levels unless it is given."""
        if is_absent(values["tau"]):
            values["tau"] = values["a0"] + (values["a1"] - values["a0"]) * (2 * values["at"] + 1) / (
                2 * (values["levels"] - 1)
            )
        return values


class Level(ExactConstruction):
    """The amplitude of the spike is level `at` in D0 and the next one in D1."""

    name = "level"
    title = "The spike's amplitude is one of several levels: the one numbered at (D0) or the next (D1)."
    section = (7, 4, 1)
    provenance = "[ours] docs/theory.md 7.4: a real-valued target"
    description = (
        "One of n tokens has the logit 1+gap and carries an amplitude; the others have the logit 1 and "
        "carry 0; logits are in units of log n. Amplitudes are `levels` evenly spaced numbers from a0 to "
        "a1; D0 has number `at` (counted from 0), D1 the next. tau is half-way between the two unless "
        "given. What is measured is the resolution: the margin over the spacing of the levels is the "
        "slope with which the mechanism passes the amplitude on, which is the weight of the token: 1 - "
        "O(n^(1-gap)) for softmax, O(1/n) for linear attention."
    )
    schema = LevelParameters
    example: ClassVar[dict[str, object]] = {"n": 1000, "m": 12}
    parameters: LevelParameters

    def describe(self, label: Label) -> Description:
        p = self.parameters
        amplitude = p.a0 + (p.a1 - p.a0) * Fraction(p.at + label, p.levels - 1)
        spike = Kind((1 + p.gap,), (amplitude,))
        return Description(((ONE,),), (spike, Kind((ONE,), (ZERO,), self.n - 1)))
