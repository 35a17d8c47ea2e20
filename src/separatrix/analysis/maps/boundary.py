"""Where P passes a level as one parameter moves: every crossing a scan shows, an end on either side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from separatrix.analysis.maps.analytic import Analytic, analytic
from separatrix.analysis.maps.bisection import Bisection, LevelReading, SideChange, sections, whole_sections
from separatrix.analysis.maps.crossings import Boundary, Crossing, Plateau
from separatrix.analysis.maps.level_sides import LevelSides
from separatrix.constructions import ExactConstruction, construction_named
from separatrix.core.numbers import format_exact, parse_exact
from separatrix.core.parameters import SeparatrixError, UsageError, all_parameters
from separatrix.core.parameters.ranges import WIDE, Number, Span, read_span, split_axes
from separatrix.exact.engines import ENGINES, EngineRefusal, Outcome, Sampling, engine_named
from separatrix.exact.verdicts.question import Question, question

if TYPE_CHECKING:
    from separatrix.analysis.maps.boundary_curve import BoundaryCurve

HALF = Fraction(1, 2)
Tell = Callable[[int, int, str], None]
MOST_SCANNED = 100_000


@dataclass(frozen=True)
class Resolution:
    """How finely to scan, how closely to narrow down, and how many readings to take at once."""

    scan: int
    tolerance: Fraction
    at_once: int


CLOSED = Resolution(401, Fraction(1, 10**12), 15)
POINTWISE = Resolution(101, Fraction(1, 10**12), 1)
SAMPLED = Resolution(25, Fraction(1, 10**3), 1)


@overload
def boundary(
    construction: str,
    mechanism: Any,
    parameters: Mapping[str, object] | None = None,
    *,
    over: None = None,
    probability: object = HALF,
    engine: str = "auto",
    scan: int | None = None,
    tolerance: object = None,
    sampling: Sampling | None = None,
    tell: Tell = lambda *_: None,
    **named: object,
) -> Boundary: ...


@overload
def boundary(
    construction: str,
    mechanism: Any,
    parameters: Mapping[str, object] | None = None,
    *,
    over: str,
    probability: object = HALF,
    engine: str = "auto",
    scan: int | None = None,
    tolerance: object = None,
    sampling: Sampling | None = None,
    tell: Tell = lambda *_: None,
    **named: object,
) -> BoundaryCurve: ...


def boundary(
    construction: str,
    mechanism: Any,
    parameters: Mapping[str, object] | None = None,
    *,
    over: str | None = None,
    probability: object = HALF,
    engine: str = "auto",
    scan: int | None = None,
    tolerance: object = None,
    sampling: Sampling | None = None,
    tell: Tell = lambda *_: None,
    **named: object,
) -> Boundary | BoundaryCurve:
    """Where P(tells apart) passes a level in one parameter.

    **Arguments:**

    - `construction`, `mechanism`, `engine`, `sampling`: as for `verdict`.
    - `parameters`, `named`: one of them as `"start:stop"` or a pair, the others as values; those that are
      missing are taken from the construction's reference point.
    - `over`: a second parameter, `"n=1e3:1e9:7:log"`: the boundary at each of its values, a `BoundaryCurve`.
    - `probability`: the level.
    - `scan`: how many values are looked at first; two crossings between neighbours are not seen.
    - `tolerance`: how close the ends of a crossing come, relative to their size.
    - `tell`: without `over`, hears how many values have been looked at, of how many, and which is next.

    >>> found = boundary("spike", "softmax", a1="0.5:1.5", n=1000, d=102, m=12, a0="0.01", b="0.2", c="0.1")
    >>> [(round(crossing.middle, 9), crossing.certified) for crossing in found.crossings]
    [(0.696384575, True)]
    >>> boundary("spike", "softmax", a1="0.5:1.5", over="n=1e3:1e6:2:log").summary
    'softmax on spike: a1 at P = 0.5, n from 1000 to 10⁶ (2 values)'
    """
    known = construction_named(construction).schema.model_fields
    given = all_parameters(parameters, named, known, {"at": "probability="})
    if over is not None:
        from separatrix.analysis.maps.boundary_curve import boundary_curve

        return boundary_curve(
            construction,
            mechanism,
            given,
            over,
            at=probability,
            engine=engine,
            scan=scan,
            tolerance=tolerance,
            sampling=sampling,
        )
    open_, fixed = split_axes(given)
    if len(open_) != 1:
        found = f"are {len(open_)} ({', '.join(open_)}); give one of them as `over`" if open_ else "is none"
        raise UsageError(
            f"a boundary is searched in one range, and here {found}; write for example a1=0.5:1.5"
        )
    ((name, text),) = open_.items()
    asked = question(construction, mechanism, fixed, open_)
    span = search_span(asked, name, text)
    return boundary_of(asked, span, probability, engine, scan, tolerance, sampling, tell)


def search_span(asked: Question, name: str, text: str) -> Span:
    """The range to search."""
    span = read_span(asked.schema_of(name), name, text)
    return replace(span, log=span.log or (span.start > 0 and span.stop >= WIDE * span.start))


def boundary_of(
    asked: Question,
    span: Span,
    at: object = HALF,
    engine: str = "auto",
    scan: int | None = None,
    tolerance: object = None,
    sampling: Sampling | None = None,
    tell: Tell = lambda *_: None,
) -> Boundary:
    """Scan, narrow down what changes sides, and prove the ends where the engine can."""
    engine_named(engine).refuse_unused(sampling)
    level = LevelSides(asked, span.name, parse_level(at), engine, sampling or Sampling())
    closed = level.closed([span.start]) is not None
    outcome, _ = level.outcome(span.start, engine if ENGINES[engine].proves or not closed else "closed")
    effort = _effort(_usual(level, closed, outcome), scan, tolerance)
    places = _places(asked, span, effort.scan)
    read = level.read if effort.at_once > 1 else _one_by_one(level, len(places), tell)
    search = Bisection(read, _between(asked, span, effort))
    readings = read(places)
    changes = [_proved(level, change) for change in search.changes(readings)]
    crossings, plateaus = _arrange(changes, readings)
    mechanism = asked.mechanism({span.name: span.start})
    formula = analytic(asked.kind, mechanism, (span.name,), asked.fixed.get("form"))
    return Boundary(
        asked,
        span,
        level.at,
        crossings,
        plateaus,
        (readings[0], readings[-1]),
        len(readings),
        sum(reading.side is None for reading in readings),
        *_evidence(level, closed, outcome, (*crossings, *plateaus)),
        _complete(level, places, readings, crossings),
        formula,
        () if formula is None else tuple(_expected(asked, span, formula)),
    )


def _usual(level: LevelSides, closed: bool, outcome: Outcome) -> Resolution:
    """The usual effort where whole grids, exact points or only samples are to be had."""
    at_once = not issubclass(level.asked.kind, ExactConstruction) and not level.asked.is_own(level.name)
    if closed and at_once:
        return CLOSED
    return POINTWISE if outcome.interval[0] == outcome.interval[1] else SAMPLED


def _one_by_one(
    level: LevelSides, scanned: int, tell: Tell
) -> Callable[[Sequence[Number]], list[LevelReading]]:
    """Readings one after the other, each of which may take a while, and telling of them."""
    done = 0

    def read(values: Sequence[Number]) -> list[LevelReading]:
        nonlocal done
        found = []
        for value in values:
            what = "looking at" if done < scanned else "narrowing down at"
            tell(min(done, scanned), scanned, f"{what} {level.name}={format_exact(value)}")
            found += level.read([value])
            done += 1
        return found

    return read


def parse_level(at: object) -> Fraction:
    level = parse_exact(at, "at")
    if not 0 < level < 1:
        raise UsageError(f"at={at} is out of range; a level of P lies between 0 and 1")
    return level


def _effort(usual: Resolution, scan: int | None, tolerance: object) -> Resolution:
    if scan is not None and not 2 <= scan <= MOST_SCANNED:
        raise UsageError(f"scan={scan} is out of range; it must be 2 to {MOST_SCANNED:,} points")
    wanted = usual.tolerance if tolerance is None else parse_exact(tolerance, "tolerance")
    if not Fraction(1, 10**60) <= wanted < 1:
        raise UsageError(f"tolerance={tolerance} is out of range; it must be 1e-60 or more, and below 1")
    return Resolution(usual.scan if scan is None else scan, wanted, usual.at_once)


def _places(asked: Question, span: Span, count: int) -> list[Number]:
    """The values of the scan, every one admissible."""
    values = span.points(count)
    if span.name != "n":
        return list(values)
    return list(dict.fromkeys(asked.point({"n": n}).n for n in values))


def _between(asked: Question, span: Span, effort: Resolution) -> Any:
    """Where to read between two values: whole numbers until they are neighbours, else short decimals."""
    step = 1
    if span.name == "n":
        step = asked.step({"n": span.start}) or 1

    def whole(low: int, high: int) -> list[Number]:
        return whole_sections(low, high, step, effort.at_once)

    def rational(low: Fraction, high: Fraction) -> list[Number]:
        if high - low <= effort.tolerance * max(abs(low), abs(high)):
            return []
        return sections(low, high, effort.at_once)

    return whole if span.whole else rational


def _proved(level: LevelSides, change: SideChange) -> SideChange:
    """The change with both ends by exact fractions, if the engine is allowed them and they are feasible."""
    if not level.proves:
        return change
    lo, hi = change
    try:
        proved = tuple(each if each.certified else level.proved(each) for each in change)
    except EngineRefusal:
        if ENGINES[level.engine].proves:
            raise
        return change
    if any(
        one.side is not None and one.side != other.side for one, other in zip(proved, change, strict=True)
    ):
        place = f"{level.name}={format_exact(lo.value)}"
        raise SeparatrixError(f"the exact and the certified engine disagree at {place}; please report this")
    return (proved[0], proved[1]) if all(each.certified for each in proved) else (lo, hi)


def _arrange(
    changes: Sequence[SideChange], readings: Sequence[LevelReading]
) -> tuple[tuple[Crossing, ...], tuple[Plateau, ...]]:
    """Crossings, strictly below on one side and strictly above on the other, and plateaus at the level.

    A change from one strict side to the other is a crossing. Changes to and from "equal" bound a plateau; it
    is part of a crossing where the sides before and after it differ, and is only touched where they do not.
    """
    decided = [reading for reading in readings if reading.side is not None]
    crossings, plateaus = list[Crossing](), list[Plateau]()
    before: LevelReading | None = None
    first = decided[0] if decided and decided[0].side == 0 else None
    for lo, hi in changes:
        if first is not None:
            plateau = Plateau(first, lo, before, hi)
            plateaus.append(plateau)
            if before is not None and plateau.passes:
                crossings.append(Crossing(before, hi, plateau))
            first = None
        elif hi.side != 0:
            crossings.append(Crossing(lo, hi))
        if hi.side == 0:
            before, first = lo, hi
    if first is not None:
        plateaus.append(Plateau(first, decided[-1], before, None))
    return tuple(crossings), tuple(plateaus)


def _evidence(
    level: LevelSides, closed: bool, outcome: Outcome, places: Sequence[Crossing | Plateau]
) -> tuple[str, str]:
    """The engine behind the ends, and what they rest on."""
    engine, evidence = outcome.engine, outcome.evidence
    if places and all(place.certified for place in places):
        how = "scanned by the closed engine in float64, " if closed else ""
        engine, evidence = "certified", f"{how}the side of every end proved by exact fractions"
    elif closed:
        engine, evidence = "closed", "scanned by the closed engine in float64"
    elif outcome.interval[0] < outcome.interval[1]:
        evidence = f"{evidence}, at each value by itself"
    return engine, f"{evidence}{ENGINES[engine].describe_unused(level.sampling)}"


def _complete(
    level: LevelSides,
    places: Sequence[Number],
    readings: Sequence[LevelReading],
    crossings: Sequence[Crossing],
) -> str:
    """A proof that no crossing was missed, for m.

    With s = P(a neuron is silent on D0) and q = P(on both), P = s^m - q^m. A sum of three powers,
    s^m - q^m - at 1^m, whose signs in the order of their bases are -, +, -, has at most two zeros
    (Descartes' rule for exponential sums), and it is negative at m = 0.
    """
    if level.name != "m" or any(reading.side in (None, 0) for reading in readings):
        return ""
    grids = level.closed(places)
    if grids is None or any(np.ptp(grid.p0) > 0 or np.ptp(grid.only) > 0 for grid in grids):
        return ""
    start, stop = readings[0].side, readings[-1].side
    if len(crossings) == 2 or start != stop or start == 1:
        return "s^m - q^m passes a level at most twice as m grows, first up and then down [ours]"
    return ""


def _expected(asked: Question, span: Span, formula: Analytic) -> list[float]:
    start, stop = float(span.start), float(span.stop)
    return formula.roots(asked.numbers({span.name: span.start}), span.name, start, stop, span.log)
