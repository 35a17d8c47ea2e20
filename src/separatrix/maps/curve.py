"""A boundary as a curve over a second parameter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from separatrix.engines import Sampling
from separatrix.maps.axes import Axis, is_axis, read_counted
from separatrix.maps.boundary import HALF, search_span, solve_boundary
from separatrix.maps.crossings import Boundary, printed
from separatrix.maps.question import Question, question
from separatrix.parameters import UsageError, format_exact, read_words

MOST_VALUES = 2000


@dataclass(frozen=True)
class Curve:
    """One boundary for each value of the second parameter."""

    asked: Question
    over: Axis
    boundaries: tuple[Boundary, ...]

    @property
    def parameter(self) -> str:
        """What is searched for."""
        return self.boundaries[0].span.name

    @property
    def at(self) -> Fraction:
        """The level of P."""
        return self.boundaries[0].at

    def as_json(self) -> dict[str, Any]:
        """What `separatrix boundary --over --json` prints."""
        first = self.boundaries[0].as_json()
        shared = ("construction", "parameter", "range", "at")
        own = ("crossings", "distinguish_at_ends", "engine", "evidence", "guarantee", "analytic")
        return {
            **{name: first[name] for name in shared},
            "mechanism": self.asked.label,
            "parameters": {name: str(value) for name, value in self.asked.fixed.items()},
            "over": self.over.name,
            "curve": [
                {"value": printed(value), **{name: shown[name] for name in own}}
                for value, found in zip(self.over.values, self.boundaries, strict=True)
                for shown in [found.as_json()]
            ],
        }


def find_curve(
    construction: str,
    mechanism: Any,
    parameters: Mapping[str, object],
    over: str,
    *,
    at: object = HALF,
    engine: str = "auto",
    scan: int | None = None,
    tolerance: object = None,
    sampling: Sampling | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Curve:
    """The boundary at every value of `over`, which reads `name=start:stop:count` or `...:log`."""
    ((second, counted),) = read_words([over]).items()
    if second in parameters:
        raise UsageError(f"{second} is given twice, as {second}={parameters[second]} and --over; keep one")
    ranges = {name: str(value) for name, value in parameters.items() if is_axis(value)}
    if len(ranges) != 1:
        here = ", ".join(ranges) or "none"
        raise UsageError(
            f"a boundary is searched in one range, and here is {here}; write for example a1=0.5:1.5"
        )
    ((name, text),) = ranges.items()
    asked = question(construction, mechanism, {k: v for k, v in parameters.items() if k != name})
    span, count = read_counted(asked.schema_of(second), second, counted)
    if count > MOST_VALUES:
        raise UsageError(f"--over {over} has {count:,} values, more than {MOST_VALUES:,}; 50 draw a curve")
    axis = Axis(span, span.points(count))
    found = []
    for value in axis.values:
        tell(f"{second}={format_exact(value)}")
        settled = asked.settled(second, value)
        found.append(
            solve_boundary(settled, search_span(settled, name, text), at, engine, scan, tolerance, sampling)
        )
    return Curve(asked, axis, tuple(found))
