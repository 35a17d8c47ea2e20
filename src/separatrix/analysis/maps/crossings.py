"""A boundary that was found: its crossings, and what is known of others."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, cast

from separatrix.analysis.maps.analytic import Analytic
from separatrix.analysis.maps.bisection import LevelReading
from separatrix.core.numbers import format_exact, parse_integer
from separatrix.core.parameters.model import printed
from separatrix.core.parameters.ranges import Number, Span
from separatrix.core.result import Result, Row
from separatrix.exact.verdicts.question import Question

if TYPE_CHECKING:
    from separatrix.core.schemas import questions as documents


WIDE = Fraction(1, 200)
"""The share of its size by which a place is known too badly to be shown as one number."""


@dataclass(frozen=True)
class Plateau:
    """P is the level exactly, by fractions, at every value tried from `first` to `last`."""

    first: LevelReading
    last: LevelReading
    before: LevelReading | None
    """The neighbour on another side; None where the plateau starts at the end of the range, as is `after`."""
    after: LevelReading | None

    @property
    def certified(self) -> bool:
        """Whether both ends are proved."""
        return self.first.certified and self.last.certified

    @property
    def passes(self) -> bool:
        """Whether P is below the level on one side of the plateau, and above it on the other."""
        return {self._side(self.before), self._side(self.after)} == {-1, 1}

    @staticmethod
    def _side(reading: LevelReading | None) -> int | None:
        return None if reading is None else reading.side

    def describe(self, name: str, level: str) -> str:
        """Where P is the level, and how it comes there and leaves, in words."""
        first, last = _short(self.first.value), _short(self.last.value)
        where = f"at {name} = {first}" if first == last else f"from {name} = {first} to {name} = {last}"
        words = {1: "above", -1: "below"}
        before, after = (words.get(self._side(each) or 0) for each in (self.before, self.after))
        if before and before == after:
            around = f", and is {before} it on both sides"
        elif before and after:
            around = f", {before} it before and {after} it after"
        elif before or after:
            around = f", and is {before or after} it {'before' if before else 'after'}"
        else:
            around = ", all over the range"
        return f"P equals {level} exactly {where}{around}"

    def as_json(self) -> dict[str, Any]:
        """The stretch, exactly, and the sides of P next to it."""
        words = {1: "above", -1: "below", None: None}
        return {
            "from": printed(self.first.value),
            "to": printed(self.last.value),
            "before": words[self._side(self.before)],
            "after": words[self._side(self.after)],
            "certified": self.certified,
        }


def _short(value: Number) -> str:
    return str(value) if isinstance(value, int) else f"{float(value):.10g}"


@dataclass(frozen=True)
class Crossing:
    """P passes the level between two values: it is strictly below at one and strictly above at the other."""

    lo: LevelReading
    hi: LevelReading
    plateau: Plateau | None = None
    """The stretch between them on which P is the level exactly, if there is one."""

    @property
    def rises(self) -> bool:
        """Whether P is below the level at `lo`."""
        return self.lo.side == -1

    @property
    def is_wide(self) -> bool:
        """Whether the ends are further apart than any search leaves them by itself."""
        lo, hi = Fraction(self.lo.value), Fraction(self.hi.value)
        return self.plateau is not None or hi - lo > WIDE * max(abs(lo), abs(hi))

    @property
    def certified(self) -> bool:
        """Whether the sides of both ends are proved."""
        return self.lo.certified and self.hi.certified

    @property
    def middle(self) -> float:
        """The middle of the two ends, for a picture."""
        return float((Fraction(self.lo.value) + Fraction(self.hi.value)) / 2)

    def as_json(self) -> dict[str, Any]:
        """The crossing with its two ends, exactly."""
        return {
            "lo": printed(self.lo.value),
            "hi": printed(self.hi.value),
            "certified": self.certified,
            "direction": "up" if self.rises else "down",
            "distinguish": [self.lo.p, self.hi.p],
            "plateau": None
            if self.plateau is None
            else [printed(self.plateau.first.value), printed(self.plateau.last.value)],
        }


@dataclass(frozen=True, repr=False)
class Boundary(Result):
    """Every crossing of one level in one parameter that was found, and how they were looked for."""

    kind: ClassVar[str] = "boundary"
    columns: ClassVar[tuple[str, ...]] = (
        *("mechanism", "parameter", "lo", "hi", "direction", "certified"),
        *("distinguish_lo", "distinguish_hi", "n_used_lo", "n_used_hi"),
    )
    asked: Question
    span: Span
    at: Fraction
    crossings: tuple[Crossing, ...]
    plateaus: tuple[Plateau, ...]
    """Stretches on which P is the level exactly, those that a crossing leads over included."""
    ends: tuple[LevelReading, LevelReading]
    """P at the two ends of the range."""
    scanned: int
    open: int
    """Readings of the scan that could not be put on either side."""
    engine: str
    evidence: str
    complete: str
    """Why there can be no other crossing; empty where there is no proof."""
    formula: Analytic | None
    expected: tuple[float, ...]
    """Where the formula puts the boundary within the range."""

    @property
    def guarantee(self) -> str:
        """What is known of crossings that were not found."""
        if self.complete:
            return f"There are no others: {self.complete}."
        spaced = f"log {self.span.name}" if self.span.log else self.span.name
        unsure = f" {self.open} of them could not be put on either side." if self.open else ""
        return (
            f"Searched at {self.scanned} values, spaced evenly in {spaced}; two crossings between "
            f"neighbouring values would not be seen (a finer scan looks closer).{unsure}"
        )

    @property
    def moved(self) -> str:
        """A sentence on the n that were moved to admissible values; empty where none was."""
        if self.span.name == "n":
            start, stop = (end.value for end in self.ends)
            if (start, stop) == (self.span.start, self.span.stop):
                return ""
            return f"n runs from {start} to {stop}, the admissible values nearest to the ends asked for."
        if "n" not in self.asked.fixed:
            return ""
        wanted, used = parse_integer(self.asked.fixed["n"], "n"), self.lengths
        if used == [wanted]:
            return ""
        between = f"n={used[0]}" if len(used) == 1 else f"n={used[0]} to n={used[-1]}"
        return f"n={wanted} is rounded to a multiple of {self.asked.kind.step_name}: {between}."

    @property
    def lengths(self) -> list[int]:
        """The n at the ends of the range and of every crossing, each once."""
        shown = [
            *self.ends,
            *(end for crossing in self.crossings for end in (crossing.lo, crossing.hi)),
            *(end for plateau in self.plateaus for end in (plateau.first, plateau.last)),
        ]
        return sorted(set(map(self.n_used, shown)))

    def n_used(self, reading: LevelReading) -> int:
        """The n behind a reading."""
        return self.asked.point({self.span.name: reading.value}).n

    @property
    def summary(self) -> str:
        """Where P passes the level, or that it does not."""
        name, level = f"{self.asked.label} on {self.asked.kind.name}", format_exact(self.at)
        touched = [each for each in self.plateaus if not each.passes]
        if not self.crossings and not touched:
            start, stop = (format_exact(end.value) for end in self.ends)
            return f"{name}: P passes {level} nowhere, {self.span.name} from {start} to {stop}"
        parts = [f"P {self._passed(crossing)}" for crossing in self.crossings[:1]]
        parts += [self._passed(crossing) for crossing in self.crossings[1:]]
        return f"{name}: {'; '.join([*parts, *(each.describe(self.span.name, level) for each in touched)])}"

    def _passed(self, crossing: Crossing) -> str:
        way = "rises" if crossing.rises else "falls"
        proved = "certified" if crossing.certified else self.engine
        return f"{way} through {format_exact(self.at)} at {self.place(crossing)} ({proved})"

    def place(self, crossing: Crossing) -> str:
        """Where P passes: one number, or both ends where a plateau or undecided values lie between them."""
        if crossing.is_wide:
            return f"{self.span.name} between {_short(crossing.lo.value)} and {_short(crossing.hi.value)}"
        return f"{self.span.name} = {crossing.middle:.10g}"

    def rows(self) -> list[Row]:
        """One row for each crossing."""
        return [
            {
                "mechanism": self.asked.label,
                "parameter": self.span.name,
                "lo": float(crossing.lo.value),
                "hi": float(crossing.hi.value),
                "direction": "up" if crossing.rises else "down",
                "certified": crossing.certified,
                "distinguish_lo": crossing.lo.p,
                "distinguish_hi": crossing.hi.p,
                "n_used_lo": self.n_used(crossing.lo),
                "n_used_hi": self.n_used(crossing.hi),
            }
            for crossing in self.crossings
        ]

    def as_json(self) -> documents.Boundary:
        """What `separatrix boundary --json` prints."""
        start, stop = self.ends
        return cast(
            "documents.Boundary",
            {
                "construction": self.asked.kind.name,
                "mechanism": self.asked.label,
                "parameters": {name: str(value) for name, value in self.asked.fixed.items()},
                "taken": {name: str(value) for name, value in self.asked.taken.items()},
                "parameter": self.span.name,
                "range": [printed(start.value), printed(stop.value)],
                "at": format_exact(self.at),
                "crossings": [
                    {**crossing.as_json(), "n_used": [self.n_used(crossing.lo), self.n_used(crossing.hi)]}
                    for crossing in self.crossings
                ],
                "plateaus": [plateau.as_json() for plateau in self.plateaus],
                "distinguish_at_ends": [start.p, stop.p],
                "n_used_at_ends": [self.n_used(start), self.n_used(stop)],
                "engine": self.engine,
                "evidence": self.evidence,
                "scanned": self.scanned,
                "undecided": self.open,
                "guarantee": self.guarantee,
                "moved": self.moved,
                "analytic": None
                if self.formula is None
                else {
                    "formula": self.formula.formula,
                    "tag": self.formula.tag,
                    "limit": self.formula.limit,
                    "values": list(self.expected),
                },
            },
        )
