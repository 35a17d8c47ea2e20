"""Measure the growth of a quantity with one parameter: an exponent, and whether it is a power law at all."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, overload

import scipy

from separatrix.analysis.laws.closed_forms import find_closed_form
from separatrix.analysis.laws.margins import is_literal
from separatrix.analysis.laws.noisy_powerlaw import noisy_law, uncertain_law
from separatrix.analysis.laws.powerlaw import MIN_ERROR, MIN_POINTS, Law, exact_law
from separatrix.analysis.laws.quantities import (
    COSTS,
    MAX_LITERAL_TOKENS,
    QUANTITIES,
    SAMPLED_QUANTITIES,
    TOKEN_QUANTITIES,
    Noise,
    NoValue,
    ReadOptions,
    Value,
    require_positive,
    split_n,
)
from separatrix.analysis.laws.scaling_result import NoScaling, Scaling, ScalingRow, Scalings
from separatrix.constructions import construction_named
from separatrix.core.numbers import format_exact, parse_integer
from separatrix.core.parameters import UsageError, all_parameters, require_known
from separatrix.core.parameters.ranges import Axis, Number, read_counted, split_axes
from separatrix.core.parameters.words import listed_mechanisms
from separatrix.exact.engines import EngineRefusal, Sampling, engine_named
from separatrix.exact.outputs.growth_laws import margin_law
from separatrix.exact.proofs import certify_law
from separatrix.exact.verdicts.question import Question
from separatrix.exact.verdicts.question import question as build_question
from separatrix.mechanisms import examples
from separatrix.mechanisms.load import mechanism_from

MAX_SCALING_POINTS = 1000
EXAMPLE = "n=1e3:1e9:7:log"
LITERAL_LENGTHS = (200, 400, 800, 1600, 3200)
"""Lengths that are used if all tokens are needed and those asked for are too long."""
ALL = "all"
"""Stands for every mechanism."""
Tell = Callable[[str], None]
Inputs = Mapping[str, object]
Several = list[Any] | tuple[Any, ...]


@overload
def scaling(construction: str, mechanism: Several, parameters: Inputs | None = None, **options: Any) -> Scalings: ...


@overload
def scaling(construction: str, mechanism: Any, parameters: Inputs | None = None, **options: Any) -> Scaling: ...


def scaling(
    construction: str,
    mechanism: Any,
    parameters: Inputs | None = None,
    *,
    of: str = "margin",
    engine: str = "auto",
    sampling: Sampling | None = None,
    tell: Tell = lambda _: None,
    **named: object,
) -> Scaling | Scalings:
    """Measure how a quantity grows with one parameter: an exponent with its interval, if it is a power law.

    **Arguments:**

    - `construction`, `engine`, `sampling`: as for `verdict`.
    - `mechanism`: as for `verdict`; several, `"softmax,linear"`, `"all"` or a list, give `Scalings`.
    - `parameters`, `named`: one of them as `"start:stop:count"`, `"start:stop:count:log"`, a list or a NumPy
      array; missing ones are taken from the construction's reference point, unless the quantity is a cost.
    - `of`: one of QUANTITIES, or of COSTS, which are measured by running the mechanism.
    - `tell`: called with the current step.

    >>> result = scaling("spike", "linear", n="1e3:1e9:7:log",
    ...                  d=102, m=12, a0="0.01", a1="1.2", b="0.2", c="0.1")
    >>> result.law.power_law, round(result.law.exponent, 6), result.formula
    (True, -1.0, '5.98967 n^-1')
    >>> scaling("spike", ["linear", "power:beta=2"], n=[10**3, 10**4, 10**5, 10**6])["linear"].scaling.formula
    '5.98965 n^-1'
    """
    is_all = isinstance(mechanism, str) and mechanism == ALL
    mechanisms = list(examples()) if is_all else listed_mechanisms(mechanism)
    if not mechanisms:
        raise UsageError("scaling needs a mechanism; write for example softmax, softmax,linear or all")
    inputs, sampling = all_parameters(parameters, named), sampling or Sampling()
    if len(mechanisms) == 1 and not isinstance(mechanism, list | tuple):
        return _scale_one(construction, mechanisms[0], inputs, of, engine, sampling, tell)
    results: list[ScalingRow | NoScaling] = []
    for candidate in [mechanism_from(name) for name in mechanisms]:
        tell(candidate.spelled)
        try:
            result = _scale_one(construction, candidate, inputs, of, engine, sampling)
            results.append(ScalingRow(result, candidate.family))
        except EngineRefusal as refusal:
            results.append(NoScaling(candidate.spelled, candidate.family, str(refusal)))
    axes, _ = split_axes(inputs)
    texts = {name: axes.get(name, str(value)) for name, value in inputs.items()}
    return Scalings(construction, of, texts, tuple(results))


def _scale_one(
    construction: str,
    mechanism: Any,
    parameters: Inputs,
    of: str,
    engine: str,
    sampling: Sampling,
    tell: Tell = lambda _: None,
) -> Scaling:
    require_known("quantity", of, [*QUANTITIES, *COSTS])
    if of in COSTS:
        from separatrix.analysis.laws.costs import cost_scaling  # it imports this module

        question, axis = _read_axis(construction, mechanism, parameters, of)
        return cost_scaling(question, axis, of, sampling.confidence, tell)
    selected_engine = engine_named(engine)
    n, remaining = split_n(of, parameters)
    question, axis = _read_axis(construction, mechanism, remaining, of)
    if of in TOKEN_QUANTITIES and axis.name == "n":
        raise UsageError(f"{of} is itself a number of tokens; let another parameter grow")
    # The confidence is used by every engine: it is that of the exponent's interval.
    selected_engine.refuse_unused(replace(sampling, confidence=Sampling().confidence))
    if sampling.in_format and of not in SAMPLED_QUANTITIES:
        raise UsageError(f"{of} is computed in float64, without draws; leave out dtype={sampling.dtype}")
    options = ReadOptions(axis.name, engine, sampling, n)
    places, shorter_remark = _choose_values(question, axis, options, of)
    values, remark = _read_values(question, places, options, of, tell)
    return fit_scaling(question, axis.name, of, values, f"{shorter_remark}{remark}", sampling.confidence)


def fit_scaling(
    question: Question, name: str, of: str, values: Sequence[Value], remark: str, confidence: float
) -> Scaling:
    """Return the scaling of positive values, with their law and closed form."""
    law, closed_form = fit_law(values, confidence), find_closed_form(question, name, of, values[0].x)
    if of == "miss" and name != "m":  # P is a step function of the others
        law = replace(law, reason=f"{law.reason}; in this range: P may jump beyond it")
    start, proved = {name: min(value.x for value in values)}, None
    if name == "n" and of == "margin":
        proved = margin_law(question.point(start), question.mechanism(start))
    return Scaling(question, name, of, tuple(values), law, closed_form, remark, proved)


def certify_scaling(result: Scaling | Scalings) -> dict[str, Any]:
    """Return the certificate of the bounds that are proved for every n, or raise a UsageError if none are."""
    if isinstance(result, Scalings) or result.proved is None:
        known = "one mechanism, softmax, linear, power or taylor, on spike with form=ones or on cross"
        raise UsageError(f"no bounds for every n are proved here; they are known for the margin against n of {known}")
    start = {result.parameter: min(value.x for value in result.values)}
    return certify_law(result.question.point(start), result.question.mechanism(start), result.proved)


def fit_law(values: Sequence[Value], confidence: float = 0.95) -> Law:
    """Fit the law of three or more positive values, according to their noise."""
    x, y = [float(value.x) for value in values], [value.y for value in values]
    noise = {value.noise for value in values}
    if Noise.SCATTER in noise:
        return noisy_law(x, y, None, confidence)
    if Noise.INTERVAL in noise:
        return noisy_law(x, y, [_log_sd(value, confidence) for value in values], confidence)
    if Noise.PERHAPS in noise:
        return uncertain_law(x, y, confidence)
    return exact_law(x, y, max(value.accuracy for value in values))


def _read_axis(construction: str, mechanism: Any, parameters: Inputs, of: str) -> tuple[Question, Axis]:
    """Return the question, and the one axis among the parameters."""
    axes, constants = split_axes(parameters)
    if len(axes) != 1:
        number = f"{len(axes)} ({', '.join(axes)})" if axes else "none"
        raise UsageError(f"scaling needs one growing parameter, but has {number}; write for example {EXAMPLE}")
    ((name, text),) = axes.items()
    # A quantity that is measured on tokens of its own needs no parameter of the construction but n and d.
    own_names = construction_named(construction).schema.model_fields if of in COSTS else ()
    open_names = {name, *own_names, *(("n",) if of in TOKEN_QUANTITIES else ())}
    question = build_question(construction, mechanism, constants, open_names)
    _require_points(name, text)
    span, count = read_counted(question.schema_of(name), name, text)
    if count > MAX_SCALING_POINTS:
        raise UsageError(f"{name}={text} has {count:,} points; {MAX_SCALING_POINTS:,} are more than a slope needs")
    if span.start <= 0:
        raise UsageError(f"{name}={text} starts at {format_exact(span.start)}; a power law needs {name} above 0")
    return question, Axis(span, span.points(count))


def _require_points(name: str, text: str) -> None:
    """Refuse one or two points before any other complaint about the axis."""
    parts = text.split(":")
    count = parts[2] if len(parts) in (3, 4) else str(len(text.strip(",").split(","))) if "," in text else ""
    if count in ("1", "2"):
        points = "one point" if count == "1" else "two points"
        raise UsageError(f"{name}={text} has {points}; a slope and its change need at least {MIN_POINTS}")


def _choose_values(question: Question, axis: Axis, options: ReadOptions, of: str) -> tuple[tuple[Number, ...], str]:
    """Return the values asked for, or shorter lengths if a mechanism needs every token."""
    has_choice = axis.name == "n" and of in ("margin", "bits") and options.engine == "auto"
    if not has_choice or not is_literal(question.point({"n": axis.values[0]}), question.mechanism({})):
        return axis.values, ""
    if sum(value <= MAX_LITERAL_TOKENS for value in axis.values) >= MIN_POINTS:
        return axis.values, ""
    lengths = f"n={LITERAL_LENGTHS[0]} to {LITERAL_LENGTHS[-1]:,}"
    return LITERAL_LENGTHS, f"It needs every token, so shorter lengths are used instead, near {lengths}. "


def _read_values(
    question: Question, places: Sequence[Number], options: ReadOptions, of: str, tell: Tell
) -> tuple[list[Value], str]:
    """Read the quantity at every place, each x once; the remark counts places without a value."""
    values: dict[Number, Value] = {}
    refusals: list[EngineRefusal] = []
    for index, at in enumerate(places):
        tell(f"{question.label}: {options.name}={format_exact(at)}")
        sampling = replace(options.sampling, seed=options.sampling.seed + index)  # independent draws
        try:
            value = QUANTITIES[of](question, at, replace(options, sampling=sampling))
            values[value.x] = require_positive(of, value, options.name)
        except NoValue:  # a wrong sign is a property of the quantity; leaving such points out would mislead
            raise
        except EngineRefusal as refusal:
            refusals.append(refusal)
    if refusals and len(values) < MIN_POINTS:
        raise refusals[0]
    if len(values) < MIN_POINTS:
        raise UsageError(f"only {len(values)} values of {options.name} are admissible here; take a longer axis")
    remark = f"{len(refusals)} of {len(places)} values are left out: {refusals[0]}. " if refusals else ""
    lengths = [parse_integer(question.fixed["n"], "n")] if "n" in question.fixed else places
    lengths_used = [value.n for value in values.values() if value.n is not None and value.n not in lengths]
    if lengths_used:
        limits = " to ".join(f"{n:,}" for n in dict.fromkeys((min(lengths_used), max(lengths_used))))
        rounding = f"n is rounded to a multiple of {question.kind.step_name}"
        remark += f"{rounding} at {len(lengths_used)} of {len(places)} places: {limits}. "
    return list(values.values()), remark


def _log_sd(value: Value, confidence: float) -> float:
    """Return the standard deviation of log y, taking its interval as that of a Gaussian."""
    if value.noise is not Noise.INTERVAL:
        return max(value.accuracy, MIN_ERROR)
    # An interval that reaches 0 has no logarithm there: mirror its upper half on the logarithmic scale.
    low = value.low if value.low > 0 else value.y**2 / value.high
    return max(math.log(value.high / low) / (2 * float(scipy.stats.norm.ppf((1 + confidence) / 2))), MIN_ERROR)
