"""A boundary as a curve over a second parameter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, cast

from separatrix.analysis.maps.boundary import HALF, Tell, boundary_of, search_span
from separatrix.analysis.maps.crossings import Boundary
from separatrix.core.numbers import format_exact, parse_integer
from separatrix.core.numbers.spelling import for_people
from separatrix.core.parameters import UsageError, read_words
from separatrix.core.parameters.model import printed
from separatrix.core.parameters.ranges import Axis, Number, Span, read_counted, split_axes
from separatrix.core.result import Result, Row
from separatrix.exact.engines import Sampling
from separatrix.exact.verdicts.question import Question, question

if TYPE_CHECKING:
    from separatrix.core.schemas import questions as documents

MOST_VALUES = 2000
MOST_TOLD = 6
"""So many n that were moved are named in a sentence."""


@dataclass(frozen=True, repr=False)
class BoundaryCurve(Result):
    """One boundary for each value of the second parameter."""

    kind: ClassVar[str] = "boundary_curve"
    asked: Question
    over: Axis
    """Of n the values that were used, unless they depend on what is searched for."""
    boundaries: tuple[Boundary, ...]
    wanted: tuple[Number, ...]
    """The values asked for, each beside the one that stands for it in `over`."""

    @property
    def parameter(self) -> str:
        """The parameter that is searched."""
        return self.boundaries[0].span.name

    @property
    def at(self) -> Fraction:
        """The level of P."""
        return self.boundaries[0].at

    @property
    def moved(self) -> str:
        """A sentence on the n that were moved to admissible values; empty where none was."""
        pairs = [(a, n) for a, n in zip(self.wanted, self.over.values, strict=True) if a != n]
        if pairs:
            told = ", ".join(f"{format_exact(a)} to {format_exact(n)}" for a, n in pairs[:MOST_TOLD])
            more = f" and {len(pairs) - MOST_TOLD} more" if len(pairs) > MOST_TOLD else ""
            return f"n is rounded to a multiple of {self.asked.kind.step_name}: {told}{more}."
        if not self.lengths_differ:
            return ""
        return f"n is rounded to a multiple of {self.asked.kind.step_name}: it stands under n used."

    @property
    def lengths_differ(self) -> bool:
        """Whether some n that was used is none that is shown as a value."""
        return self.parameter != "n" and any(boundary.moved for boundary in self.boundaries)

    @property
    def summary(self) -> str:
        """What is searched, and over what."""
        start, stop = self.over.floats[[0, -1]]
        over = (
            f"{self.over.name} from {for_people(start)} to {for_people(stop)} ({len(self.boundaries)} values)"
        )
        where = f"{self.asked.label} on {self.asked.kind.name}"
        return f"{where}: {self.parameter} at P = {format_exact(self.at)}, {over}"

    def rows(self) -> list[Row]:
        """One row for each value and crossing; values without a crossing have none."""
        return [
            {self.over.name: float(value), **row}
            for value, each in zip(self.over.values, self.boundaries, strict=True)
            for row in each.rows()
        ]

    def as_json(self) -> documents.BoundaryCurve:
        """What `separatrix boundary --over --json` prints."""
        first: Mapping[str, Any] = self.boundaries[0].as_json()
        shared = ("construction", "parameter", "range", "at")
        own = (
            *("crossings", "plateaus", "distinguish_at_ends", "n_used_at_ends"),
            *("engine", "evidence", "guarantee", "moved", "analytic"),
        )
        return cast(
            "documents.BoundaryCurve",
            {
                **{name: first[name] for name in shared},
                "mechanism": self.asked.label,
                "parameters": {name: str(value) for name, value in self.asked.fixed.items()},
                "taken": {name: str(value) for name, value in self.asked.taken.items()},
                "over": self.over.name,
                "moved": self.moved,
                "curve": [
                    {"value": printed(value), "asked": printed(wanted), **{name: shown[name] for name in own}}
                    for value, wanted, found in zip(
                        self.over.values, self.wanted, self.boundaries, strict=True
                    )
                    for shown in [dict[str, Any](found.as_json())]
                ],
            },
        )


def boundary_curve(
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
) -> BoundaryCurve:
    """The boundary at every value of `over`, such as `n=1e3:1e9:7:log`; other arguments as for `boundary`."""
    ((second, counted),) = read_words([over]).items()
    if second in parameters:
        raise UsageError(f"{second} is given twice, as {second}={parameters[second]} and `over`; keep one")
    ranges, fixed = split_axes(parameters)
    if len(ranges) != 1:
        here = ", ".join(ranges) or "none"
        raise UsageError(
            f"a boundary is searched in one range, and here is {here}; write for example a1=0.5:1.5"
        )
    ((name, text),) = ranges.items()
    asked = question(construction, mechanism, fixed, (name, second))
    span, count = read_counted(asked.schema_of(second), second, counted)
    if count > MOST_VALUES:
        raise UsageError(f"`over` {over} has {count:,} values, more than {MOST_VALUES:,}; 50 draw a curve")
    found: dict[Number, Boundary] = {}
    wanted: dict[Number, Number] = {}
    for value in span.points(count):
        tell(f"{second}={format_exact(value)}")
        settled = asked.with_parameter(second, value)
        searched = search_span(settled, name, text)
        used = _used(settled, searched) if second == "n" else value
        if used not in found:
            settled = asked.with_parameter(second, used)
            told = _told_at(f"{second}={format_exact(used)}", tell)
            found[used] = boundary_of(settled, searched, at, engine, scan, tolerance, sampling, told)
            wanted[used] = value
    return BoundaryCurve(asked, Axis(span, tuple(found)), tuple(found.values()), tuple(wanted.values()))


def _told_at(place: str, tell: Callable[[str], None]) -> Tell:
    """What a search at one place tells, with the place before it."""
    return lambda done, total, what: tell(f"{place}: {done:,} of {total:,}, {what}")


def _used(settled: Question, searched: Span) -> Number:
    """The admissible n nearest to the one asked for; that one itself where the search moves n as well."""
    start, stop = ({searched.name: end} for end in (searched.start, searched.stop))
    if settled.step(start) != settled.step(stop):
        return parse_integer(settled.fixed["n"], "n")
    return settled.point(start).n
