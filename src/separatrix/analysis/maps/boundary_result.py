"""Boundaries as results: crossings and plateaus of a level, in one parameter or along a second one."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

from separatrix.analysis.maps.error_term import ErrorTerm
from separatrix.analysis.maps.formulas import FormulaRoots
from separatrix.analysis.maps.range_partition import RangePartition
from separatrix.core.documents import Document, Hidden, Inlined, register_json, shown, shown_as, to_json
from separatrix.core.numbers import format_exact, parse_integer
from separatrix.core.numbers.spelling import for_people
from separatrix.core.parameters.ranges import Axis, Number, Span
from separatrix.core.result import Result, Row
from separatrix.exact.verdicts.question import Question

WIDE_SHARE = Fraction(1, 200)
"""A crossing whose ends differ by more than this share of their size is shown as a range, not a number."""
MAX_LISTED_LENGTHS = 6
"""Rounded n that are listed in a sentence."""
COLUMNS = (
    *("mechanism", "parameter", "lo", "hi", "direction", "certified"),
    *("distinguish_lo", "distinguish_hi", "n_used_lo", "n_used_hi"),
)
Side = Literal["above", "below"] | None
SIDES: dict[int | None, Side] = {1: "above", -1: "below"}


@dataclass(frozen=True)
class LevelReading:
    """P at one value of the parameter, and its side of the level; in JSON the value alone."""

    value: Number
    p: float
    side: int | None
    """The sign of P - level, 0 if P equals the level exactly, None if the evidence does not decide it."""
    is_certified: bool = False
    """Whether the side is proved."""
    n: int | None = None
    """The admissible n that was used."""


register_json(LevelReading, int | str, lambda reading: to_json(reading.value))


@dataclass(frozen=True)
class Plateau(Document):
    """P equals the level exactly, by fractions, at every value tried from `first` to `last`."""

    first: Hidden[LevelReading]
    last: Hidden[LevelReading]
    previous: Hidden[LevelReading | None]
    """The neighbour on another side; None if the plateau starts at the end of the range, as for `next`."""
    next: Hidden[LevelReading | None]

    @shown_as("from")
    def start(self) -> LevelReading:
        """The first value."""
        return self.first

    @shown_as("to")
    def stop(self) -> LevelReading:
        """The last value."""
        return self.last

    @shown
    def before(self) -> Side:
        """The side of P before the plateau; None at the start of the range."""
        return SIDES.get(self.previous.side) if self.previous else None

    @shown
    def after(self) -> Side:
        """The side of P after the plateau; None at the end of the range."""
        return SIDES.get(self.next.side) if self.next else None

    @shown_as("certified")
    def is_certified(self) -> bool:
        """Whether both ends are proved."""
        return self.first.is_certified and self.last.is_certified

    @property
    def passes(self) -> bool:
        """Whether P is below the level on one side of the plateau and above it on the other."""
        return {self.before, self.after} == {"below", "above"}

    def describe(self, name: str, level: str) -> str:
        """Return where P equals the level, and its sides before and after."""
        first, last = _short(self.first.value), _short(self.last.value)
        place = f"at {name} = {first}" if first == last else f"from {name} = {first} to {name} = {last}"
        before, after = self.before, self.after
        if before and before == after:
            sides = f", and is {before} it on both sides"
        elif before and after:
            sides = f", {before} it before and {after} it after"
        elif before or after:
            sides = f", and is {before or after} it {'before' if before else 'after'}"
        else:
            sides = ", on the whole range"
        return f"P equals {level} exactly {place}{sides}"


def _short(value: Number) -> str:
    return str(value) if isinstance(value, int) else f"{float(value):.10g}"


@dataclass(frozen=True)
class Crossing(Document):
    """P passes the level between two values: strictly below it at one, strictly above it at the other."""

    lo: LevelReading
    hi: LevelReading
    plateau: Hidden[Plateau | None] = None
    """The plateau between them, if there is one."""

    @shown_as("certified")
    def is_certified(self) -> bool:
        """Whether the sides of both ends are proved."""
        return self.lo.is_certified and self.hi.is_certified

    @shown
    def direction(self) -> Literal["up", "down"]:
        """Whether P rises or falls."""
        return "up" if self.rises else "down"

    @shown
    def distinguish(self) -> tuple[float, float]:
        """P at both ends."""
        return self.lo.p, self.hi.p

    @shown
    def n_used(self) -> tuple[int | None, int | None]:
        """The admissible n at both ends."""
        return self.lo.n, self.hi.n

    @shown_as("plateau")
    def plateau_ends(self) -> tuple[LevelReading, LevelReading] | None:
        """The first and the last value between the ends at which P equals the level exactly."""
        return None if self.plateau is None else (self.plateau.first, self.plateau.last)

    @property
    def rises(self) -> bool:
        """Whether P is below the level at `lo`."""
        return self.lo.side == -1

    @property
    def is_wide(self) -> bool:
        """Whether a plateau or undecided values keep the ends further apart than a search does."""
        lo, hi = Fraction(self.lo.value), Fraction(self.hi.value)
        return self.plateau is not None or hi - lo > WIDE_SHARE * max(abs(lo), abs(hi))

    @property
    def middle(self) -> float:
        """The middle of the two ends, for pictures."""
        return float((Fraction(self.lo.value) + Fraction(self.hi.value)) / 2)


@dataclass(frozen=True, repr=False)
class LevelCrossings(Document):
    """The crossings of a level in one parameter, and how they were searched."""

    question: Hidden[Question]
    span: Hidden[Span]
    at: Hidden[Fraction]
    """The level of P."""
    crossings: tuple[Crossing, ...]
    plateaus: tuple[Plateau, ...]
    """Ranges on which P equals the level exactly; `before` and `after` are null at the ends of the range."""
    ends: Hidden[tuple[LevelReading, LevelReading]]
    """P at the two ends of the range."""
    scanned: Hidden[int]
    """The number of values that were read first."""
    undecided: Hidden[int]
    """The number of these whose side is not known."""
    engine: str
    evidence: str
    completeness: Hidden[str]
    """A proof that there is no other crossing; empty if there is none."""
    partition: Hidden[RangePartition | None]
    """The proof that there is no other crossing in a1, except in its undecided intervals."""
    analytic: FormulaRoots | None
    """The formula for the boundary, and where it puts the boundary within the range."""
    error_term: ErrorTerm | None
    """Where P is below and above the level at every larger n and d; null unless the range is one of a1."""

    @shown
    def distinguish_at_ends(self) -> tuple[float, float]:
        """P at the two ends of the range."""
        return self.ends[0].p, self.ends[1].p

    @shown
    def n_used_at_ends(self) -> tuple[int | None, int | None]:
        """The admissible n at the two ends of the range."""
        return self.ends[0].n, self.ends[1].n

    @shown_as("complete")
    def is_complete(self) -> bool:
        """Whether it is proved that the range has no other crossing than these."""
        return self.completeness != ""

    @shown
    def guarantee(self) -> str:
        """What is known about crossings that were not found."""
        if self.is_complete:
            count = len(self.crossings)
            subject = "These are the only crossings" if count > 1 else "The only crossing" if count else "No crossing"
            return f"{subject} in this range (proved): {self.completeness}."
        spacing = f"log {self.span.name}" if self.span.log else self.span.name
        unsure = f" The side of {self.undecided} of them is not known." if self.undecided else ""
        if self.partition is not None and (intervals := self.partition.undecided_intervals):
            places = " and ".join(f"from {low} to {high}" for low, high in (map(_short, i) for i in intervals[:3]))
            more = f" and {len(intervals) - 3} more ranges" if len(intervals) > 3 else ""
            return f"No other crossing in this range (proved), except perhaps {self.span.name} {places}{more}.{unsure}"
        return (
            f"Searched at {self.scanned} values, evenly spaced in {spacing}; two crossings between "
            f"neighbouring values would be missed (a finer scan looks closer).{unsure}"
        )

    @shown_as("moved")
    def length_remark(self) -> str:
        """A sentence on n that were rounded to admissible values; empty if none was."""
        if self.span.name == "n":
            start, stop = (end.value for end in self.ends)
            if (start, stop) == (self.span.start, self.span.stop):
                return ""
            return f"n runs from {start} to {stop}, the admissible values nearest to the ends of the range."
        if "n" not in self.question.fixed:
            return ""
        n, lengths_used = parse_integer(self.question.fixed["n"], "n"), self.lengths
        if lengths_used == [n]:
            return ""
        first, *later = lengths_used
        lengths = f"n={first} to n={later[-1]}" if later else f"n={first}"
        return f"n={n} is rounded to a multiple of {self.question.kind.step_name}: {lengths}."

    @property
    def analytic_values(self) -> tuple[float, ...]:
        """The boundary within the range by the formula; empty without a formula."""
        return () if self.analytic is None else self.analytic.values

    @property
    def lengths(self) -> list[int]:
        """The n at the ends of the range, of every crossing and of every plateau, in order."""
        readings = [
            *self.ends,
            *(end for crossing in self.crossings for end in (crossing.lo, crossing.hi)),
            *(end for plateau in self.plateaus for end in (plateau.first, plateau.last)),
        ]
        return sorted({reading.n for reading in readings if reading.n is not None})

    def place(self, crossing: Crossing) -> str:
        """Return where P passes: one number, or both ends if the crossing is wide."""
        if crossing.is_wide:
            return f"{self.span.name} between {_short(crossing.lo.value)} and {_short(crossing.hi.value)}"
        return f"{self.span.name} = {crossing.middle:.10g}"

    def rows(self) -> list[Row]:
        """One row for each crossing."""
        rows = []
        for crossing in self.crossings:
            ends = float(crossing.lo.value), float(crossing.hi.value)
            sides = crossing.direction, crossing.is_certified, *crossing.distinguish, *crossing.n_used
            values = (self.question.label, self.span.name, *ends, *sides)
            rows.append(dict(zip(COLUMNS, values, strict=True)))
        return rows


@dataclass(frozen=True, repr=False)
class Boundary(LevelCrossings, Result):
    """Every crossing of one level in one parameter that was found, and how they were searched."""

    kind: ClassVar[str] = "boundary"
    columns: ClassVar[tuple[str, ...]] = COLUMNS
    question: Inlined[Question]
    at: Fraction
    """The level of P."""
    scanned: int
    """The number of values that were read first."""
    undecided: int
    """The number of these whose side is not known."""

    @shown
    def parameter(self) -> str:
        """The parameter that is searched."""
        return self.span.name

    @shown
    def range(self) -> tuple[LevelReading, LevelReading]:
        """The first and the last value that were read."""
        return self.ends

    @property
    def summary(self) -> str:
        """Where P passes the level, or that it does not."""
        name, level = f"{self.question.label} on {self.question.construction}", format_exact(self.at)
        touching = [plateau for plateau in self.plateaus if not plateau.passes]
        if not self.crossings and not touching:
            start, stop = (format_exact(end.value) for end in self.ends)
            return f"{name}: P passes {level} nowhere, {self.span.name} from {start} to {stop}"
        parts = [self._describe(crossing) for crossing in self.crossings]
        if parts:
            parts[0] = f"P {parts[0]}"
        parts += [plateau.describe(self.span.name, level) for plateau in touching]
        return f"{name}: {'; '.join(parts)}"

    def _describe(self, crossing: Crossing) -> str:
        verb = "rises" if crossing.rises else "falls"
        proof = "certified" if crossing.is_certified else self.engine
        return f"{verb} through {format_exact(self.at)} at {self.place(crossing)} ({proof})"


@dataclass(frozen=True, repr=False)
class CurvePoint(LevelCrossings):
    """The crossings at one value of the second parameter."""

    value: Number
    """The value that was used; for n the nearest admissible one, unless it depends on what is searched."""
    asked: Number
    """The value that was asked for."""


@dataclass(frozen=True, repr=False)
class BoundaryCurve(Result):
    """A boundary along a second parameter."""

    kind: ClassVar[str] = "boundary_curve"
    question: Inlined[Question]
    over: Hidden[Axis]
    """The second parameter, with the values that were used."""
    curve: tuple[CurvePoint, ...]

    @shown
    def parameter(self) -> str:
        """The parameter that is searched."""
        return self.curve[0].span.name

    @shown
    def range(self) -> tuple[LevelReading, LevelReading]:
        """The first and the last value that were read, at the first value of the second parameter."""
        return self.curve[0].ends

    @shown
    def at(self) -> Fraction:
        """The level of P."""
        return self.curve[0].at

    @shown_as("over")
    def second_parameter(self) -> str:
        """The second parameter."""
        return self.over.name

    @shown_as("moved")
    def length_remark(self) -> str:
        """A sentence on n that were rounded to admissible values; empty if none was."""
        rounding = f"n is rounded to a multiple of {self.question.kind.step_name}:"
        pairs = [(point.asked, point.value) for point in self.curve if point.asked != point.value]
        if pairs:
            texts = [" to ".join(map(format_exact, pair)) for pair in pairs[:MAX_LISTED_LENGTHS]]
            more = f" and {len(pairs) - MAX_LISTED_LENGTHS} more" if len(pairs) > MAX_LISTED_LENGTHS else ""
            return f"{rounding} {', '.join(texts)}{more}."
        return f"{rounding} see the column n used." if self.lengths_differ else ""

    @property
    def lengths_differ(self) -> bool:
        """Whether some n that was used is not shown as a value of the axis."""
        return self.parameter != "n" and any(point.length_remark for point in self.curve)

    @property
    def summary(self) -> str:
        """The parameter that is searched, and the range of the second one."""
        start, stop = (for_people(float(value)) for value in (self.over.values[0], self.over.values[-1]))
        return (
            f"{self.question.label} on {self.question.construction}: {self.parameter} at "
            f"P = {format_exact(self.at)}, {self.over.name} from {start} to {stop} ({len(self.curve)} values)"
        )

    def rows(self) -> list[Row]:
        """One row for each value and crossing; values without a crossing have none."""
        return [{self.over.name: float(point.value), **row} for point in self.curve for row in point.rows()]
