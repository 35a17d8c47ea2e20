"""Boundaries in one parameter, curves along a second one, and their certificates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any, overload

from separatrix.analysis.maps.boundary_result import Boundary, BoundaryCurve, CurvePoint, LevelCrossings, LevelReading
from separatrix.analysis.maps.boundary_search import HALF, BoundarySettings, Tell, find_boundary
from separatrix.constructions import ExactConstruction, construction_named
from separatrix.core.numbers import format_exact, parse_exact, parse_integer
from separatrix.core.parameters import UsageError, all_parameters, read_words
from separatrix.core.parameters.ranges import WIDE, Axis, Number, Span, read_counted, read_span, split_axes
from separatrix.exact.engines import EngineRefusal, Sampling, engine_named
from separatrix.exact.verdicts import DELTA, certify
from separatrix.exact.verdicts.certificate import digest, spelled_parameters
from separatrix.exact.verdicts.question import Question
from separatrix.exact.verdicts.question import question as build_question

MAX_SCANNED_VALUES = 100_000
MAX_CURVE_VALUES = 2000
CERTIFICATE_FORMAT = "separatrix boundary certificate"
CERTIFICATE_VERSION = 3


@overload
def boundary(
    construction: str,
    mechanism: Any,
    parameters: Mapping[str, object] | None = None,
    *,
    over: None = None,
    **options: Any,
) -> Boundary: ...


@overload
def boundary(
    construction: str, mechanism: Any, parameters: Mapping[str, object] | None = None, *, over: str, **options: Any
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
    """Find where P(tells apart) passes a level in one parameter.

    **Arguments:**

    - `construction`, `mechanism`, `engine`, `sampling`: as for `verdict`.
    - `parameters`, `named`: one of them as `"start:stop"` or a pair, the others as values; missing ones are
      taken from the construction's reference point.
    - `over`: a second parameter, `"n=1e3:1e9:7:log"`: the boundary at each of its values, a `BoundaryCurve`.
    - `probability`: the level.
    - `scan`: the number of values that are read first; two crossings between neighbours are missed.
    - `tolerance`: the distance between the ends of a crossing, relative to their size.
    - `tell`: called with the number of finished values, their total number, and the current value.

    >>> result = boundary("spike", "softmax", a1="0.5:1.5", n=1000, d=102, m=12, a0="0.01", b="0.2", c="0.1")
    >>> [(round(crossing.middle, 9), crossing.is_certified) for crossing in result.crossings]
    [(0.696384575, True)]
    >>> boundary("spike", "softmax", a1="0.5:1.5", over="n=1e3:1e6:2:log").summary
    'softmax on spike: a1 at P = 0.5, n from 1000 to 10⁶ (2 values)'
    """
    schema = construction_named(construction).schema.model_fields
    inputs = all_parameters(parameters, named, schema, {"at": "probability="})
    second = read_second_axis(over, inputs)
    name, text, constants = split_range(inputs, over)
    question = build_question(construction, mechanism, constants, (name, *second))
    settings = _read_settings(probability, engine, scan, tolerance, sampling)
    if over is None:
        return find_boundary(question, search_span(question, name, text), settings, tell)
    ((second_name, second_text),) = second.items()
    span, count = read_counted(question.schema_of(second_name), second_name, second_text)
    if count > MAX_CURVE_VALUES:
        raise UsageError(f"`over` {over} has {count:,} values, more than {MAX_CURVE_VALUES:,}; 50 draw a curve")
    curve = _trace_curve(question, name, text, Axis(span, span.points(count)), settings, tell)
    return BoundaryCurve(question, Axis(span, tuple(point.value for point in curve)), curve)


def read_second_axis(over: str | None, parameters: Mapping[str, object]) -> dict[str, str]:
    """Return the name and the text of the second parameter; empty if there is none."""
    second = {} if over is None else read_words([over])
    for name in second.keys() & parameters.keys():
        raise UsageError(f"{name} is given twice, as {name}={parameters[name]} and `over`; keep one")
    return second


def split_range(parameters: Mapping[str, object], over: str | None) -> tuple[str, str, Mapping[str, object]]:
    """Return the name and the text of the range to search, and the other parameters."""
    ranges, constants = split_axes(parameters)
    if len(ranges) != 1:
        names = f"{len(ranges)} were given ({', '.join(ranges)})" if ranges else "none was given"
        hint = "; give one of them as `over`" if ranges and over is None else ""
        raise UsageError(f"a boundary is searched in one range, but {names}{hint}; example: a1=0.5:1.5")
    ((name, text),) = ranges.items()
    return name, text, constants


def search_span(question: Question, name: str, text: str) -> Span:
    """Return the range to search, on a logarithmic scale if it is wide."""
    span = read_span(question.schema_of(name), name, text)
    return replace(span, log=span.log or (span.start > 0 and span.stop >= WIDE * span.start))


def parse_level(text: object) -> Fraction:
    """Return the level of P."""
    level = parse_exact(text, "at")
    if not 0 < level < 1:
        raise UsageError(f"at={text} is out of range; a level of P lies between 0 and 1")
    return level


def _read_settings(
    probability: object, engine: str, scan: int | None, tolerance: object, sampling: Sampling | None
) -> BoundarySettings:
    engine_named(engine).refuse_unused(sampling)
    if scan is not None and not 2 <= scan <= MAX_SCANNED_VALUES:
        raise UsageError(f"scan={scan} is out of range; it must be 2 to {MAX_SCANNED_VALUES:,} points")
    width = None if tolerance is None else parse_exact(tolerance, "tolerance")
    # Beyond 1e-60 the decimals of an end have more digits than anybody reads, and bisection takes minutes.
    if width is not None and not Fraction(1, 10**60) <= width < 1:
        raise UsageError(f"tolerance={tolerance} is out of range; it must be 1e-60 or more, and below 1")
    return BoundarySettings(parse_level(probability), engine, sampling or Sampling(), scan, width)


def _trace_curve(
    question: Question, name: str, text: str, axis: Axis, settings: BoundarySettings, tell: Tell
) -> tuple[CurvePoint, ...]:
    """Return the boundary at each value of the axis; values that are rounded to one n share a point."""
    curve: dict[Number, CurvePoint] = {}
    for index, value in enumerate(axis.values):
        at_value = question.with_parameter(axis.name, value)
        span = search_span(at_value, name, text)
        value_used = _used_length(at_value, span) if axis.name == "n" else value
        if value_used in curve:  # neighbouring n may be rounded to the same admissible one
            continue
        place = f"{axis.name}={format_exact(value_used)}"
        tell(index, len(axis.values), place)

        def tell_within(count: int, total: int, task: str, index: int = index, place: str = place) -> None:
            tell(index, len(axis.values), f"{place}: {count:,} of {total:,}, {task}")

        result = find_boundary(question.with_parameter(axis.name, value_used), span, settings, tell_within)
        parts = {field.name: getattr(result, field.name) for field in fields(LevelCrossings)}
        curve[value_used] = CurvePoint(**parts, value=value_used, asked=value)
    return tuple(curve.values())


def _used_length(question: Question, span: Span) -> Number:
    """Return the admissible n nearest to the one asked for; that one itself if n depends on the search."""
    start, stop = ({span.name: end} for end in (span.start, span.stop))
    if question.step(start) != question.step(stop):
        return parse_integer(question.fixed["n"], "n")
    return question.point(start).n


def certify_boundary(result: Boundary) -> dict[str, Any]:
    """Return the document with which `separatrix check` verifies that P passes the level between the ends."""
    name, level = result.parameter, format_exact(result.at)
    if not result.crossings:
        touching = f" ({result.plateaus[0].describe(result.parameter, level)})" if result.plateaus else ""
        raise EngineRefusal(f"P does not pass {level} here{touching}, so there is nothing to certify")
    body = {
        "format": CERTIFICATE_FORMAT,
        "version": CERTIFICATE_VERSION,
        **_fixed_parts(result),
        "parameter": name,
        "at": level,
        "crossings": [
            {
                "direction": crossing.direction,
                "lo": _certify_end(result, crossing.lo),
                "hi": _certify_end(result, crossing.hi),
            }
            for crossing in result.crossings
        ],
        "cuts": _cuts(result),
    }
    ends = [crossing[side]["parameters"] for crossing in body["crossings"] for side in ("lo", "hi")]
    for key, value in body["parameters"].items():
        if issubclass(result.question.kind, ExactConstruction) and any(end[key] != value for end in ends):
            raise EngineRefusal(f"{key} changes with {name} here, and there are no certificates of such boundaries")
    return {**body, "sha256": digest(body)}


def _cuts(result: Boundary) -> list[str] | None:
    """Return values of a1 between which the bounds of P show that there is no other crossing; None without a proof."""
    if result.partition is None or result.partition.undecided_intervals:
        return None
    ends = {Fraction(end.value) for crossing in result.crossings for end in (crossing.lo, crossing.hi)}
    return [format_exact(value) for value in sorted({*result.partition.values, *ends})]


def _fixed_parts(result: Boundary) -> dict[str, Any]:
    """Return the construction, mechanism and parameters without the searched one.

    With blocks, n stands as it was asked for, and tau is left out if it follows from c: both may change along the
    range.
    """
    name, question = result.parameter, result.question
    values = {name: result.crossings[0].lo.value}
    point, mechanism = question.point(values), question.mechanism(values)
    parameters = point.parameters.complete_values()
    if not isinstance(point, ExactConstruction):
        parameters = {field: getattr(point.parameters, field) for field in type(point.parameters).model_fields}
        if "n" in question.fixed:
            parameters["n"] = parse_integer(question.fixed["n"], "n")
    settings = {"name": mechanism.name, **spelled_parameters(mechanism.parameters.complete_values())}
    parts = {"mechanism": settings, "parameters": spelled_parameters(parameters)}
    return {
        "construction": point.name,
        **{part: {k: v for k, v in values.items() if k != name} for part, values in parts.items()},
    }


def _certify_end(result: Boundary, end: LevelReading) -> dict[str, Any]:
    values = {result.parameter: end.value}
    return certify(result.question.point(values), result.question.mechanism(values), DELTA)[1]
