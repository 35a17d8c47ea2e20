"""How a quantity grows with one parameter: an exponent, and whether it is a power law at all."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import scipy

from separatrix.analysis.laws.closed_forms import closed_form
from separatrix.analysis.laws.margins import is_literal
from separatrix.analysis.laws.noisy_powerlaw import noisy_law, uncertain_law
from separatrix.analysis.laws.powerlaw import FEWEST, ROUNDING, Law, exact_law
from separatrix.analysis.laws.quantities import (
    ANY_N,
    COSTS,
    DRAWN,
    LITERAL_MOST,
    QUANTITIES,
    SEARCHING,
    How,
    Noise,
    NoValue,
    Value,
    positive,
    split_n,
)
from separatrix.analysis.laws.scaling_result import Scaling, ScalingRow
from separatrix.constructions import construction_named
from separatrix.core.numbers import format_exact, parse_integer
from separatrix.core.parameters import UsageError, all_parameters, require_known
from separatrix.core.parameters.ranges import Axis, Number, read_counted, split_axes
from separatrix.exact.engines import EngineRefusal, Sampling, engine_named
from separatrix.exact.verdicts.question import Question, question
from separatrix.mechanisms import Mechanism, examples
from separatrix.mechanisms.load import mechanism_from

MOST_POINTS = 1000
EXAMPLE = "n=1e3:1e9:7:log"
NEAR = (200, 400, 800, 1600, 3200)
"""Lengths that are taken where all tokens are needed and those asked for are too long."""


def scaling(
    construction: str,
    mechanism: Any,
    parameters: Mapping[str, object] | None = None,
    *,
    of: str = "margin",
    engine: str = "auto",
    sampling: Sampling | None = None,
    tell: Callable[[str], None] = lambda _: None,
    **named: object,
) -> Scaling:
    """How a quantity grows for one mechanism; arguments as for `separatrix.scaling`, which takes several."""
    require_known("quantity", of, [*QUANTITIES, *COSTS])
    given, sampling = all_parameters(parameters, named), sampling or Sampling()
    if of in COSTS:
        from separatrix.analysis.laws.costs import cost_scaling

        return cost_scaling(*_growing(construction, mechanism, given, of), of, sampling.confidence, tell)
    asked_engine = engine_named(engine)
    n, rest = split_n(of, given)
    asked, axis = _growing(construction, mechanism, rest, of)
    if of in SEARCHING and axis.name == "n":
        raise UsageError(f"{of} is itself a number of tokens; let another parameter grow")
    asked_engine.refuse_unused(replace(sampling, confidence=Sampling().confidence))  # the exponent's interval
    if sampling.in_format and of not in DRAWN:
        raise UsageError(f"{of} is computed in float64, without draws; leave out dtype={sampling.dtype}")
    how = How(axis.name, engine, sampling, n)
    axis_values, remark = _within_reach(asked, axis, how, of)
    values, left_out = _read(asked, axis_values, how, of, tell)
    return summed_up(asked, axis.name, of, values, f"{remark}{left_out}", sampling.confidence)


def summed_up(
    asked: Question, name: str, of: str, values: Sequence[Value], remark: str, confidence: float = 0.95
) -> Scaling:
    """Values that are all positive, with the law behind them."""
    law, closed = law_of(values, confidence), closed_form(asked, name, of, values[0].x)
    return Scaling(asked, name, of, tuple(values), law, closed, remark)


def law_of(values: Sequence[Value], confidence: float = 0.95) -> Law:
    """The law behind three or more values that are all positive, by what is known of their noise."""
    x, y = [float(value.x) for value in values], [value.y for value in values]
    noise = {value.noise for value in values}
    if Noise.SCATTER in noise:
        return noisy_law(x, y, None, confidence)
    if Noise.INTERVAL in noise:
        return noisy_law(x, y, [_sd(value, confidence) for value in values], confidence)
    if Noise.PERHAPS in noise:
        return uncertain_law(x, y, confidence)
    return exact_law(x, y, max(value.accuracy for value in values))


def table(
    construction: str,
    parameters: Mapping[str, object],
    mechanisms: Sequence[Any] | None = None,
    *,
    of: str = "margin",
    engine: str = "auto",
    sampling: Sampling | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> list[ScalingRow]:
    """The scaling of these mechanisms, or of one of each; other arguments as for `scaling`."""
    attending = examples() if mechanisms is None else [mechanism_from(mechanism) for mechanism in mechanisms]
    if of in QUANTITIES:
        _check(construction, attending[0], split_n(of, parameters)[1], of)
    rows = []
    for each in attending:
        tell(each.spelled)
        found, why = None, ""
        try:
            found = scaling(construction, each, parameters, of=of, engine=engine, sampling=sampling)
        except EngineRefusal as refused:
            why = str(refused)
        rows.append(ScalingRow(each.spelled, each.family, found, why))
    return rows


def _check(construction: str, mechanism: Mechanism, parameters: Mapping[str, object], of: str) -> None:
    """Raise once, and not for every mechanism, what is wrong with the parameters."""
    asked, axis = _growing(construction, mechanism, parameters, of)
    asked = asked if "n" in {*asked.fixed, axis.name} else replace(asked, fixed={**asked.fixed, "n": ANY_N})
    for end in (axis.values[0], axis.values[-1]):
        asked.point({axis.name: end})


def _growing(
    construction: str, mechanism: Any, parameters: Mapping[str, object], of: str
) -> tuple[Question, Axis]:
    """The question, and the one axis among the parameters."""
    open_, fixed = split_axes(parameters)
    if len(open_) != 1:
        found = f"{len(open_)} ({', '.join(open_)})" if open_ else "none"
        raise UsageError(f"one parameter grows, and here is {found}; write for example {EXAMPLE}")
    ((name, text),) = open_.items()
    asked = question(construction, mechanism, fixed, {name, *_without_reference(construction, of)})
    _enough(name, text)
    span, count = read_counted(asked.schema_of(name), name, text)
    if count > MOST_POINTS:
        raise UsageError(f"{name}={text} has {count:,} points; {MOST_POINTS:,} are more than a slope needs")
    if span.start <= 0:
        start = format_exact(span.start)
        raise UsageError(f"{name}={text} starts at {start}; a power law needs {name} above 0")
    return asked, Axis(span, span.points(count))


def _without_reference(construction: str, of: str) -> Iterable[str]:
    """What the reference point does not give: n where it is searched for, nothing where cost is measured."""
    if of in COSTS:
        return construction_named(construction).schema.model_fields
    return ("n",) if of in SEARCHING else ()


def _enough(name: str, text: str) -> None:
    """Refuse one or two points before anything else is said of them."""
    parts = text.split(":")
    count = parts[2] if len(parts) in (3, 4) else str(len(text.strip(",").split(","))) if "," in text else ""
    if count in ("1", "2"):
        points = "one point" if count == "1" else "two points"
        raise UsageError(f"{name}={text} has {points}; a slope and its change need at least {FEWEST}")


def _within_reach(asked: Question, axis: Axis, how: How, of: str) -> tuple[tuple[Number, ...], str]:
    """The values asked for, or shorter lengths where a mechanism needs every token."""
    if axis.name != "n" or of not in ("margin", "bits") or how.engine != "auto":
        return axis.values, ""
    if not is_literal(asked.point({"n": axis.values[0]}), asked.mechanism({})):
        return axis.values, ""
    if sum(value <= LITERAL_MOST for value in axis.values) >= FEWEST:
        return axis.values, ""
    lengths = f"n={NEAR[0]} to {NEAR[-1]:,}"
    return NEAR, f"It needs every token, so that lengths near {lengths} are taken instead. "


def _read(
    asked: Question, axis: Sequence[Number], how: How, of: str, tell: Callable[[str], None]
) -> tuple[list[Value], str]:
    """Every value that can be had, each x once; what cannot is told in the remark."""
    found: dict[Number, Value] = {}
    refusals: list[EngineRefusal] = []
    for place, at in enumerate(axis):
        tell(f"{asked.label}: {how.name}={format_exact(at)}")
        apart = replace(how, sampling=replace(how.sampling, seed=how.sampling.seed + place))
        try:
            value = positive(of, QUANTITIES[of](asked, at, apart), how.name)
        except NoValue:
            raise
        except EngineRefusal as refused:
            refusals.append(refused)
        else:
            found[value.x] = value
    if refusals and len(found) < FEWEST:
        raise refusals[0]
    if len(found) < FEWEST:
        raise UsageError(f"only {len(found)} values of {how.name} are admissible here; take a longer axis")
    values = list(found.values())
    return values, "".join(_remarks(asked, axis, values, refusals))


def _remarks(
    asked: Question, axis: Sequence[Number], values: Sequence[Value], refusals: Sequence[EngineRefusal]
) -> Iterator[str]:
    if refusals:
        yield f"{len(refusals)} of {len(axis)} values are left out: {refusals[0]}. "
    wanted = [parse_integer(asked.fixed["n"], "n")] if "n" in asked.fixed else axis
    moved = [value.n for value in values if value.n is not None and value.n not in wanted]
    if moved:
        between = f"{min(moved):,} to {max(moved):,}" if len(set(moved)) > 1 else f"{moved[0]:,}"
        rounded = f"n is rounded to a multiple of {asked.kind.step_name}"
        yield f"{rounded} at {len(moved)} of {len(axis)} places: {between}. "


def _sd(value: Value, confidence: float) -> float:
    """The standard deviation of log y, if its interval were a Gaussian's."""
    if value.noise is not Noise.INTERVAL:
        return max(value.accuracy, ROUNDING)
    low = value.low if value.low > 0 else value.y**2 / value.high
    return max(math.log(value.high / low) / (2 * float(scipy.stats.norm.ppf((1 + confidence) / 2))), ROUNDING)
