"""On which side of a level P lies, at values of one parameter, by any engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from separatrix.analysis.maps.bisection import LevelReading
from separatrix.core.parameters import Grid
from separatrix.core.parameters.ranges import Number
from separatrix.exact.engines import ENGINES, EngineRefusal, Outcome, Sampling, closed
from separatrix.exact.engines.outcome import side_of_fractions
from separatrix.exact.verdicts.question import Question
from separatrix.mechanisms import Mechanism


@dataclass(frozen=True)
class LevelSides:
    """A level of P along one parameter."""

    asked: Question
    name: str
    at: Fraction
    engine: str
    sampling: Sampling

    @property
    def proves(self) -> bool:
        """Whether exact fractions answer what is asked."""
        return ENGINES[self.engine].covers("certified") and not self.sampling.in_format

    def closed(self, values: Sequence[Number]) -> list[closed.ProbabilityGrid] | None:
        """The closed form at these values, one grid or one for each; None where there is none."""
        if not (self.proves or ENGINES[self.engine].at_once):
            return None
        try:
            if self.asked.is_own(self.name):
                point = Grid(self._columns(values[0]))
                return [closed.evaluate(self.asked.kind, self._mechanism(v), point) for v in values]
            rows = [self._columns(value) for value in values]
            moving = {name: [row[name] for row in rows] for name in ("n", self.name) if name in rows[0]}
            fixed = {name: value for name, value in rows[0].items() if name not in moving}
            return [closed.evaluate(self.asked.kind, self._mechanism(values[0]), Grid(fixed, (moving,)))]
        except EngineRefusal:
            return None

    def read(self, values: Sequence[Number]) -> list[LevelReading]:
        """P and its side at each value: by the closed form where there is one, else point by point."""
        grids = self.closed(values)
        if grids is None:
            return [self.read_one(value, self.engine) for value in values]
        found = [
            each
            for grid in grids
            for each in zip(grid.distinguish.flat, *(end.flat for end in grid.bounds), strict=True)
        ]
        readings = [
            LevelReading(value, float(p), _strict_side(float(low), float(high), self.at))
            for value, (p, low, high) in zip(values, found, strict=True)
        ]
        return [self._settled(reading) if reading.side is None else reading for reading in readings]

    def _settled(self, reading: LevelReading) -> LevelReading:
        """A reading too close for floats, by fractions if they are allowed here."""
        try:
            return self.proved(reading) if self.proves else reading
        except EngineRefusal:
            return reading

    def proved(self, reading: LevelReading) -> LevelReading:
        """The reading at the same value by exact fractions."""
        return self.read_one(reading.value, "certified")

    def read_one(self, value: Number, engine: str) -> LevelReading:
        """The reading at one value by one engine."""
        outcome, m = self.outcome(value, engine)
        if isinstance(outcome.p0, Fraction) and isinstance(outcome.only, Fraction):
            side = side_of_fractions(outcome.p0, outcome.only, m, self.at)
            return LevelReading(value, outcome.distinguish, side, side is not None)
        low, high = outcome.interval
        return LevelReading(
            value, outcome.distinguish, _strict_side(low - outcome.error, high + outcome.error, self.at)
        )

    def outcome(self, value: Number, engine: str) -> tuple[Outcome, int]:
        """What an engine says at one value, and the m there."""
        chosen = {self.name: value}
        point = self.asked.point(chosen)
        return ENGINES[engine].solve(point, self.asked.mechanism(chosen), self.sampling), point.m

    def _columns(self, value: Number) -> dict[str, object]:
        """The parameters of a point, n moved to where it is admissible."""
        given = self.asked.point({self.name: value}).parameters
        return {name: v for name in type(given).model_fields if (v := getattr(given, name)) is not None}

    def _mechanism(self, value: Number) -> Mechanism:
        return self.asked.mechanism({self.name: value})


def _strict_side(low: float, high: float, level: Fraction) -> int | None:
    """1 if all between `low` and `high` is above the level, -1 if all is below; else, and for NaN, None.

    Floats never prove that P is the level: that takes fractions.

    >>> [_strict_side(*ends, Fraction(1, 2)) for ends in ((0.6, 0.7), (0.1, 0.4), (0.5, 0.5))]
    [1, -1, None]
    """
    return 1 if low > level else -1 if high < level else None
