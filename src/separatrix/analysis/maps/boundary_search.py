"""Search the values of one parameter at which P passes a level: scan, narrow down, prove."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from separatrix.analysis.maps.boundary_result import Boundary, Crossing, LevelReading, Plateau
from separatrix.analysis.maps.error_term import bound_error_term
from separatrix.analysis.maps.formulas import find_formula
from separatrix.analysis.maps.range_partition import RangePartition, partition_range, sections
from separatrix.constructions import Construction, ExactConstruction
from separatrix.core.numbers import format_exact
from separatrix.core.parameters import Grid, SeparatrixError
from separatrix.core.parameters.ranges import Number, Span
from separatrix.exact.engines import ENGINES, EngineRefusal, Outcome, Sampling, closed
from separatrix.exact.engines.outcome import side_of_fractions
from separatrix.exact.verdicts.question import Question
from separatrix.mechanisms import Mechanism

HALF = Fraction(1, 2)
Tell = Callable[[int, int, str], None]
"""Receives the number of finished values, their total number, and the current one."""
SideChange = tuple[LevelReading, LevelReading]
"""Two readings on different sides."""


class Effort(NamedTuple):
    """How closely a range is searched."""

    scan_count: int
    """The number of values read first."""
    tolerance: Fraction
    """The distance of a crossing's ends relative to their size."""
    batch_size: int
    """The number of values read at once."""


CLOSED = Effort(401, Fraction(1, 10**12), 15)
POINTWISE = Effort(101, Fraction(1, 10**12), 1)
SAMPLED = Effort(25, Fraction(1, 10**3), 1)


@dataclass(frozen=True)
class BoundarySettings:
    """The level of P, the engine, and the effort of a search."""

    level: Fraction = HALF
    engine: str = "auto"
    sampling: Sampling = field(default_factory=Sampling)
    scan: int | None = None
    """The number of values read first; None: the engine's usual number."""
    tolerance: Fraction | None = None
    """The distance of a crossing's ends relative to their size; None: the engine's usual one."""

    @property
    def can_prove(self) -> bool:
        """Whether exact fractions may answer."""
        return ENGINES[self.engine].covers("certified") and not self.sampling.in_format


@dataclass(frozen=True)
class LevelReader:
    """Reads P and its side of a level at values of one parameter."""

    question: Question
    name: str
    settings: BoundarySettings

    def points(self, values: Sequence[Number]) -> dict[Number, Construction]:
        """Return the construction at each value, with the admissible n."""
        return {value: self.question.point({self.name: value}) for value in values}

    def evaluate_closed(self, points: Mapping[Number, Construction]) -> list[closed.ProbabilityGrid] | None:
        """Return the closed form at these points, in one grid or one for each; None if there is none."""
        if not (self.settings.can_prove or ENGINES[self.settings.engine].at_once):
            return None
        kind, rows = self.question.kind, [_columns(point) for point in points.values()]
        try:
            if self.question.is_own(self.name):
                grid = Grid(rows[0])
                return [closed.evaluate(kind, self._mechanism(value), grid) for value in points]
            columns = {name: [row[name] for row in rows] for name in ("n", self.name) if name in rows[0]}
            constant = {name: value for name, value in rows[0].items() if name not in columns}
            return [closed.evaluate(kind, self._mechanism(next(iter(points))), Grid(constant, (columns,)))]
        except EngineRefusal:
            return None

    def read(self, values: Sequence[Number]) -> list[LevelReading]:
        """Read P at each value: by the closed form if there is one, else point by point."""
        if not values:
            return []
        points = self.points(values)
        grids = self.evaluate_closed(points)
        if grids is None:
            return [self.read_by(self.settings.engine, value) for value in values]
        probabilities = [
            row for grid in grids for row in zip(grid.distinguish.flat, *(end.flat for end in grid.bounds), strict=True)
        ]
        readings = []
        for (value, point), (p, low, high) in zip(points.items(), probabilities, strict=True):
            side = _strict_side(float(low), float(high), self.settings.level)
            reading = LevelReading(value, float(p), side, n=point.n)
            if side is None and self.settings.can_prove:  # too close for floats: fractions may decide
                with suppress(EngineRefusal):
                    reading = self.read_by("certified", value)
            readings.append(reading)
        return readings

    def read_by(self, engine: str, value: Number) -> LevelReading:
        """Read P at one value by one engine."""
        outcome, point = self.solve(engine, value)
        if isinstance(outcome.p0, Fraction) and isinstance(outcome.only, Fraction):
            side = side_of_fractions(outcome.p0, outcome.only, point.m, self.settings.level)
            return LevelReading(value, outcome.distinguish, side, side is not None, point.n)
        # The interval covers sampling only; the error adds what rounding in float64 may hide.
        low, high = outcome.interval
        side = _strict_side(low - outcome.error, high + outcome.error, self.settings.level)
        return LevelReading(value, outcome.distinguish, side, n=point.n)

    def solve(self, engine: str, value: Number) -> tuple[Outcome, Construction]:
        """Return the outcome of an engine at one value, and the point it is for."""
        point = self.question.point({self.name: value})
        return ENGINES[engine].solve(point, self._mechanism(value), self.settings.sampling), point

    def _mechanism(self, value: Number) -> Mechanism:
        return self.question.mechanism({self.name: value})


def _columns(point: Construction) -> dict[str, object]:
    """Return the parameters of a point that have a value."""
    columns = {name: getattr(point.parameters, name) for name in type(point.parameters).model_fields}
    return {name: column for name, column in columns.items() if column is not None}


def _strict_side(low: float, high: float, level: Fraction) -> int | None:
    """Return 1 if the interval is above the level, -1 if it is below, else (and for NaN) None.

    Floats never prove that P equals the level: that needs fractions.

    >>> [_strict_side(*ends, Fraction(1, 2)) for ends in ((0.6, 0.7), (0.1, 0.4), (0.5, 0.5))]
    [1, -1, None]
    """
    return 1 if low > level else -1 if high < level else None


def find_changes(
    readings: Sequence[LevelReading],
    read: Callable[[Sequence[Number]], list[LevelReading]],
    split: Callable[[Number, Number], list[Number]],
) -> Iterator[SideChange]:
    """Yield every change of side among readings in order, narrowed down.

    If finer readings show several changes in place of one, all of them are found. `split` returns values
    strictly between two; none if they are close enough.
    """
    for stretch in _changing_stretches(readings):
        values = [value for lo, hi in _gaps(stretch) for value in split(lo.value, hi.value)]
        if values:
            finer = sorted([*stretch, *read(values)], key=_value)
            yield from find_changes(finer, read, split)
        else:
            yield stretch[0], stretch[-1]


def _changing_stretches(readings: Sequence[LevelReading]) -> Iterator[list[LevelReading]]:
    """Yield the readings from a decided one to the next one on another side, undecided ones between."""
    last: int | None = None
    for i, reading in enumerate(readings):
        if reading.side is None:
            continue
        if last is not None and readings[last].side != reading.side:
            yield list(readings[last : i + 1])
        last = i


def _gaps(stretch: list[LevelReading]) -> list[SideChange]:
    """Return the pairs to split: both ends, or each end with the undecided reading next to it."""
    return list(dict.fromkeys([(stretch[0], stretch[1]), (stretch[-2], stretch[-1])]))


def whole_sections(low: int, high: int, step: int, count: int) -> list[Number]:
    """Return at most `count` multiples of `step` strictly between two of them.

    >>> whole_sections(100, 500, 100, 9), whole_sections(3, 11, 1, 1)
    ([200, 300, 400], [7])
    """
    first, last = low // step + 1, -(-high // step) - 1
    inside = last - first + 1
    if inside <= count:
        return [step * i for i in range(first, last + 1)]
    return [step * (first + inside * i // (count + 1)) for i in range(1, count + 1)]


def find_boundary(question: Question, span: Span, settings: BoundarySettings, tell: Tell = lambda *_: None) -> Boundary:
    """Scan the range, narrow down every change of side, and prove the ends if the engine can."""
    reader = LevelReader(question, span.name, settings)
    has_closed_form = reader.evaluate_closed(reader.points([span.start])) is not None
    # The first evaluation shows how precise the engine is. An engine that refuses does so before a long scan.
    first_engine = "closed" if has_closed_form and not ENGINES[settings.engine].proves else settings.engine
    outcome, _ = reader.solve(first_engine, span.start)
    effort = _usual_effort(reader, has_closed_form, outcome)
    start = {span.name: span.start}
    point, mechanism = question.point(start), question.mechanism(start)
    in_a1 = span.name == "a1" and not question.is_own("a1")
    partition = (
        partition_range(point, mechanism, Fraction(span.stop), settings.level) if in_a1 and settings.can_prove else None
    )
    cuts = set() if partition is None else {*partition.values}
    values = _scan_values(question, span, settings.scan or effort.scan_count)
    readings, changes = _scan(reader, span, values, effort, cuts, tell)
    crossings, plateaus = _arrange(changes, readings)
    formula = find_formula(question.kind, mechanism, {span.name}, question.fixed.get("form"))
    is_proved = all(crossing.is_certified for crossing in crossings) and all(p.is_certified for p in plateaus)
    if not is_proved or any(reading.side is None for reading in readings if reading.value in cuts):
        partition = None
    completeness = _describe_partition(partition) or _prove_completeness(reader, readings, crossings)
    is_proved &= bool(crossings or plateaus or partition)
    engine, evidence = _describe_evidence(settings, has_closed_form, outcome, is_proved)
    return Boundary(
        question=question,
        span=span,
        at=settings.level,
        crossings=crossings,
        plateaus=plateaus,
        ends=(readings[0], readings[-1]),
        scanned=len(values),
        undecided=sum(reading.side is None for reading in readings if reading.value in values),
        engine=engine,
        evidence=evidence,
        completeness=completeness,
        partition=partition,
        analytic=None if formula is None else formula.solve(question.numbers(start), span),
        error_term=bound_error_term(point, mechanism, settings.level)
        if in_a1 and not settings.sampling.in_format
        else None,
    )


def _scan(
    reader: LevelReader, span: Span, values: Sequence[Number], effort: Effort, cuts: set[Fraction], tell: Tell
) -> tuple[list[LevelReading], list[SideChange]]:
    """Return the readings at `values` and at `cuts`, these by exact fractions, and the changes of side among them."""
    read = reader.read if effort.batch_size > 1 else _read_one_by_one(reader, len(values), tell)
    proved = [reader.read_by("certified", cut) for cut in sorted(cuts)]
    readings = sorted([*read([value for value in values if value not in cuts]), *proved], key=_value)
    split = _splitter(reader.question, span, reader.settings.tolerance or effort.tolerance, effort.batch_size)
    return readings, [_prove_change(reader, change) for change in find_changes(readings, read, split)]


def _value(reading: LevelReading) -> Number:
    return reading.value


def _describe_partition(partition: RangePartition | None) -> str:
    """Return the reason for which the crossings in a1 are complete; empty if they are not proved to be."""
    if partition is None or partition.undecided_intervals:
        return ""
    count = len(partition.values) - 1
    place = f" on each of {count} intervals" if count > 1 else ""
    return f"P is monotone or stays on one side of the level{place} [ours]"


def _usual_effort(reader: LevelReader, has_closed_form: bool, outcome: Outcome) -> Effort:
    """Return the usual effort for whole grids, for exact points, and for samples."""
    is_grid = not issubclass(reader.question.kind, ExactConstruction) and not reader.question.is_own(reader.name)
    if has_closed_form and is_grid:
        return CLOSED
    return POINTWISE if outcome.interval[0] == outcome.interval[1] else SAMPLED


def _read_one_by_one(
    reader: LevelReader, scan_count: int, tell: Tell
) -> Callable[[Sequence[Number]], list[LevelReading]]:
    """Return a function that reads values one after another and reports each before it is read."""
    read_count = 0

    def read(values: Sequence[Number]) -> list[LevelReading]:
        nonlocal read_count
        readings = []
        for value in values:
            verb = "looking at" if read_count < scan_count else "narrowing down at"
            tell(min(read_count, scan_count), scan_count, f"{verb} {reader.name}={format_exact(value)}")
            readings += reader.read([value])
            read_count += 1
        return readings

    return read


def _scan_values(question: Question, span: Span, count: int) -> list[Number]:
    """Return the values of the scan; for n the admissible ones."""
    values = span.points(count)
    if span.name != "n":
        return list(values)
    return list(dict.fromkeys(question.point({"n": n}).n for n in values))


def _splitter(question: Question, span: Span, tolerance: Fraction, batch_size: int) -> Any:
    """Return a function for values between two: whole numbers down to neighbours, or short decimals."""
    step = (question.step({"n": span.start}) if span.name == "n" else None) or 1

    def split_whole(low: int, high: int) -> list[Number]:
        return whole_sections(low, high, step, batch_size)

    def split_rational(low: Fraction, high: Fraction) -> list[Number]:
        if high - low <= tolerance * max(abs(low), abs(high)):
            return []
        return [*sections(low, high, batch_size)]

    return split_whole if span.whole else split_rational


def _prove_change(reader: LevelReader, change: SideChange) -> SideChange:
    """Return the change with both ends read by exact fractions, if these are allowed and feasible."""
    if not reader.settings.can_prove:
        return change
    try:
        lo, hi = (reading if reading.is_certified else reader.read_by("certified", reading.value) for reading in change)
    except EngineRefusal:
        if ENGINES[reader.settings.engine].proves:  # a proof was asked for
            raise
        return change
    for exact, reading in zip((lo, hi), change, strict=True):
        if exact.side not in (None, reading.side):
            place = f"{reader.name}={format_exact(reading.value)}"
            raise SeparatrixError(f"the closed and the certified engine disagree at {place}; please report this")
    return (lo, hi) if lo.is_certified and hi.is_certified else change


def _arrange(
    changes: Sequence[SideChange], readings: Sequence[LevelReading]
) -> tuple[tuple[Crossing, ...], tuple[Plateau, ...]]:
    """Return the crossings and the plateaus that the changes of side form.

    A change from one strict side to the other is a crossing. Changes to and from "equal" bound a plateau,
    which belongs to a crossing if P is on different sides before and after it.
    """
    decided_readings = [reading for reading in readings if reading.side is not None]
    crossings, plateaus = list[Crossing](), list[Plateau]()
    previous: LevelReading | None = None
    first = decided_readings[0] if decided_readings and decided_readings[0].side == 0 else None
    for lo, hi in changes:
        if first is not None:
            plateau = Plateau(first, lo, previous, hi)
            plateaus.append(plateau)
            if previous is not None and plateau.passes:
                crossings.append(Crossing(previous, hi, plateau))
            first = None
        elif hi.side != 0:
            crossings.append(Crossing(lo, hi))
        if hi.side == 0:
            previous, first = lo, hi
    if first is not None:
        plateaus.append(Plateau(first, decided_readings[-1], previous, None))
    return tuple(crossings), tuple(plateaus)


def _describe_evidence(
    settings: BoundarySettings, has_closed_form: bool, outcome: Outcome, is_proved: bool
) -> tuple[str, str]:
    """Return the engine behind the ends, and the evidence for them."""
    engine, evidence = outcome.engine, outcome.evidence
    if is_proved:
        scan = "scanned by the closed engine in float64, " if has_closed_form else ""
        engine, evidence = "certified", f"{scan}the side of every end proved by exact fractions"
    elif has_closed_form:
        engine, evidence = "closed", "scanned by the closed engine in float64"
    elif outcome.interval[0] < outcome.interval[1]:
        evidence = f"{evidence}, at each value by itself"
    return engine, f"{evidence}{ENGINES[engine].describe_unused(settings.sampling)}"


def _prove_completeness(reader: LevelReader, readings: Sequence[LevelReading], crossings: Sequence[Crossing]) -> str:
    """Return a proof that no crossing in m was missed; empty if there is none.

    With s = P(a neuron is silent on D0) and q = P(silent on both), P = s^m - q^m. A sum of three powers,
    s^m - q^m - level 1^m, whose signs in the order of their bases are -, +, -, has at most two zeros
    (Descartes' rule for exponential sums), and it is negative at m = 0.
    """
    if reader.name != "m" or any(reading.side in (None, 0) for reading in readings):
        return ""
    grids = reader.evaluate_closed(reader.points([reading.value for reading in readings]))
    # The rule takes one s and one q: p0 and P(fires on D1 only) must not change with m.
    if grids is None or any(np.ptp(grid.p0) > 0 or np.ptp(grid.only) > 0 for grid in grids):
        return ""
    start, stop = readings[0].side, readings[-1].side
    if len(crossings) == 2 or start != stop or start == 1:
        return "s^m - q^m passes a level at most twice as m grows, first up and then down [ours]"
    return ""
