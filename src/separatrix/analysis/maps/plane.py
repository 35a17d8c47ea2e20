"""Compute a quantity over a plane of two parameters, for one mechanism or several."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from separatrix.analysis.maps.formulas import find_formula
from separatrix.analysis.maps.map_result import FormulaOnPlane, Layer, Map, PlaneGrid
from separatrix.analysis.maps.quantities import FLOAT_EVIDENCE, QUANTITIES, Accuracy, parse_quantity
from separatrix.constructions import Construction, ExactConstruction
from separatrix.core.parameters import UsageError, all_parameters, listed_mechanisms
from separatrix.core.parameters.ranges import EXAMPLE, Axis, read_counted, split_axes
from separatrix.exact.engines import ENGINES, EngineRefusal, Outcome, Sampling, closed, engine_named
from separatrix.exact.verdicts.question import Question
from separatrix.exact.verdicts.question import question as build_question
from separatrix.mechanisms import Mechanism

MAX_MAP_CELLS = 4_000_000
"""2000 by 2000: more than a screen or a page can show."""
CLOSED_FORM = "closed form over all sign states, in float64"


@dataclass(frozen=True)
class Step:
    """The progress of a layer."""

    mechanism: str
    done: int
    total: int
    seconds: float
    """An estimate for the whole layer, from its first cells."""


Tell = Callable[[Step], None]


def map(
    construction: str,
    mechanism: Any,
    parameters: Mapping[str, object] | None = None,
    *,
    of: str = "distinguish",
    engine: str = "auto",
    difference: bool = False,
    sampling: Sampling | None = None,
    tell: Tell = lambda _: None,
    **named: object,
) -> Map:
    """Compute a quantity over two parameters.

    **Arguments:**

    - `construction`, `engine`, `sampling`: as for `verdict`.
    - `mechanism`: as for `verdict`; one layer for each of several, `"softmax,linear"` or a list.
    - `parameters`, `named`: two of them as an axis: `"start:stop:count"`, `"start:stop:count:log"`, a list or
      a NumPy array; missing ones are taken from the construction's reference point.
    - `of`: the quantity, such as `"distinguish"`, `"margin"` or `"bits"`, or `"accuracy:noise=0.5"`: the
      accuracy of the best possible reader of one row (with `rows=all`, of all rows) under Gaussian noise.
    - `difference`: show two mechanisms as one layer, the first minus the second.
    - `tell`: called with the progress of slow layers.

    >>> result = map("spike", "softmax", a1="0.6:0.8:3", n="1e3:1e6:2:log",
    ...              d=102, m=12, a0="0.01", b="0.2", c="0.1")
    >>> result.layers[0].values.round(3).tolist()
    [[0.0, 0.597, 0.992], [0.0, 0.0, 0.89]]
    """
    mechanisms = listed_mechanisms(mechanism)
    quantity = parse_quantity(of)
    if isinstance(quantity, Accuracy) and engine != "auto":
        raise UsageError(f"{of} is a distance of outputs, for which no engine draws signs; leave out engine={engine}")
    engine_named(engine).refuse_unused(sampling)
    sampling = sampling or Sampling()
    if not mechanisms:
        raise UsageError("a map needs a mechanism; write for example softmax or softmax,linear")
    if difference and len(mechanisms) != 2:
        raise UsageError(f"a difference needs two mechanisms, but there {_count(len(mechanisms))}")
    axes, constants = split_axes(all_parameters(parameters, named))
    if len(axes) != 2:
        number = f"{_count(len(axes))} ({', '.join(axes)})" if axes else "is none"
        raise UsageError(f"a map needs two axes, but there {number}; write for example {EXAMPLE}")
    questions = tuple(build_question(construction, mechanism, constants, axes) for mechanism in mechanisms)
    x, y = _read_axes(questions, axes)
    grid = PlaneGrid.build(questions[0], x, y)
    layers = tuple(_compute_layer(question, grid, quantity, engine, sampling, tell) for question in questions)
    name = quantity if isinstance(quantity, str) else quantity.text
    return Map(name, questions, grid, layers, engine, sampling, difference)


def _count(number: int) -> str:
    return "is one" if number == 1 else f"are {number}"


def _read_axes(questions: Sequence[Question], texts: Mapping[str, str]) -> tuple[Axis, Axis]:
    """Return both axes, unless the plane is too large."""
    own_names = [name for name in texts if any(question.is_own(name) for question in questions)]
    for name in own_names:
        label = next((question.label for question in questions if not question.is_own(name)), None)
        if label is not None:
            raise UsageError(f"{name} is not a parameter of {label}; make a map for each mechanism")
    if len(own_names) > 1:
        both = f"{' and '.join(own_names)} are both parameters of the mechanism"
        raise UsageError(f"{both}; one axis must be the construction's")
    spans = [read_counted(questions[0].schema_of(name), name, text) for name, text in texts.items()]
    (_, across), (_, up) = spans
    if across * up > MAX_MAP_CELLS:
        raise UsageError(
            f"a map of {across:,} by {up:,} has {across * up:,} cells, more than {MAX_MAP_CELLS:,}; "
            "400 by 400 is enough for a picture"
        )
    x, y = (Axis(span, span.points(count)) for span, count in spans)
    return x, y


def _compute_layer(
    question: Question, grid: PlaneGrid, of: str | Accuracy, engine: str, sampling: Sampling, tell: Tell
) -> Layer:
    """Return one layer, by the closed form for whole grids if there is one, else cell by cell."""
    if isinstance(of, Accuracy):
        with suppress(EngineRefusal):
            return _evaluate_accuracy_grids(question, grid, of)
        return _evaluate_cells(question, grid, partial(_read_accuracy, of), tell)
    formula = _evaluate_formula(question, grid) if of == "distinguish" else None
    allows_grids = ENGINES[engine].covers("closed") and not sampling.in_format
    if allows_grids and not issubclass(question.kind, ExactConstruction):
        with suppress(EngineRefusal):
            return replace(_evaluate_grids(question, grid, of, sampling), formula=formula)
    return replace(_evaluate_cells(question, grid, partial(_read_outcome, of, engine, sampling), tell), formula=formula)


def _evaluate_formula(question: Question, grid: PlaneGrid) -> FormulaOnPlane | None:
    corner, names = grid.at((0, 0)), {grid.x.name, grid.y.name}
    formula = find_formula(question.kind, question.mechanism(corner), names, question.fixed.get("form"))
    if formula is None:
        return None
    mesh = {grid.x.name: grid.x.floats[None, :], grid.y.name: grid.y.floats[:, None]}
    values = formula.excess({**question.numbers(corner), **mesh})
    return formula, np.broadcast_to(values, grid.shape)


def _evaluate_grids(question: Question, grid: PlaneGrid, of: str, sampling: Sampling) -> Layer:
    """Evaluate the closed form on the whole plane at once, or row by row."""
    values, margin = np.empty(grid.shape), np.empty(grid.shape)
    for part, own_parameters, subgrid in grid.grids(question):
        probabilities = closed.evaluate(question.kind, question.mechanism(own_parameters), subgrid)
        values[part] = getattr(probabilities, of).reshape(values[part].shape)
        margin[part] = probabilities.margin.reshape(values[part].shape)
    ends = values if of == "distinguish" else np.full(grid.shape, np.nan)
    ties = int(np.isnan(values).sum())
    remark = f"{ties:,} cells hold a tie too close to call" if ties else ""
    evidence = f"{CLOSED_FORM}{ENGINES['closed'].describe_unused(sampling)}"
    return Layer(question.label, values, ends, ends, "closed", evidence, remark, margin)


def _evaluate_accuracy_grids(question: Question, grid: PlaneGrid, of: Accuracy) -> Layer:
    """Evaluate the accuracy on the whole plane at once, or row by row."""
    values = np.empty(grid.shape)
    for part, own_parameters, subgrid in grid.grids(question):
        accuracy = of.on_grid(question.kind, question.mechanism(own_parameters), subgrid)
        values[part] = accuracy.reshape(values[part].shape)
    return Layer(question.label, values, values, values, "closed", FLOAT_EVIDENCE, "")


@dataclass(frozen=True)
class CellValue:
    """The value of one cell, with its interval if it has one."""

    value: float
    engine: str
    evidence: str
    """The evidence, which does not depend on the cell."""
    low: float = math.nan
    high: float = math.nan
    margin: float = math.nan
    remark: str = ""
    """A remark that the layer adds to its evidence once."""


ReadCell = Callable[[Construction, Mechanism], CellValue]


def _read_outcome(of: str, engine: str, sampling: Sampling, point: Construction, mechanism: Mechanism) -> CellValue:
    """Read a quantity of the outcome of a cell."""
    outcome = _solve(point, mechanism, engine, sampling)
    draws = ENGINES[outcome.engine].draws
    remark = "" if draws else ENGINES[outcome.engine].describe_unused(sampling)
    if of != "distinguish" and draws:
        remark = f"; the interval is that of P(tells apart), {QUANTITIES[of]} has none"
    ends = outcome.interval if of == "distinguish" else (math.nan, math.nan)
    return CellValue(float(getattr(outcome, of)), outcome.engine, outcome.evidence, *ends, outcome.margin, remark)


def _read_accuracy(of: Accuracy, point: Construction, mechanism: Mechanism) -> CellValue:
    """Read the accuracy of the best possible reader at a cell."""
    value, limits = of.at(point, mechanism)
    return CellValue(value, "outputs", limits.evidence, value, value)


def _evaluate_cells(question: Question, grid: PlaneGrid, read: ReadCell, tell: Tell) -> Layer:
    """Read every cell by itself; `tell` receives an estimate of the time after the first three cells."""
    values, low, high, margin = (np.full(grid.shape, np.nan) for _ in range(4))
    results: Counter[tuple[str, str]] = Counter()
    remarks: dict[str, str] = {}
    refusals: list[EngineRefusal] = []

    def read_cell(cell: tuple[int, int]) -> None:
        parameters = grid.at(cell)
        try:
            result = read(question.point(parameters), question.mechanism(parameters))
        except EngineRefusal as refusal:
            refusals.append(refusal)
            return
        results[result.engine, result.evidence] += 1
        remarks[result.engine] = result.remark
        values[cell], low[cell], high[cell], margin[cell] = result.value, result.low, result.high, result.margin

    rows, columns = grid.shape
    # Both corners and the middle: cells at one end of an axis alone may be much faster than the others.
    first = list(dict.fromkeys([(0, 0), (rows // 2, columns // 2), (rows - 1, columns - 1)]))
    cells = chain(first, (cell for cell in np.ndindex(rows, columns) if cell not in first))
    read_cell(first[0])  # imports and caches: their time would spoil the estimate
    results.clear()
    refusals.clear()
    start, seconds = time.perf_counter(), 0.0
    for cell_count, cell in enumerate(cells, 1):
        read_cell(cell)
        if cell_count == len(first):
            seconds = (time.perf_counter() - start) / cell_count * rows * columns
        if cell_count >= len(first) and results:
            tell(Step(question.label, cell_count, rows * columns, seconds))
    if not results:
        raise refusals[0]
    (name, evidence), _ = results.most_common(1)[0]
    evidence = evidence if len(results) == 1 else f"for most cells {name}: {evidence}"
    engines = list(dict.fromkeys(engine_name for engine_name, _ in results))
    has_draws = any(engine_name in ENGINES and ENGINES[engine_name].draws for engine_name in engines)
    # Without draws in the most frequent engine, a remark on unused options would be wrong if another one draws.
    if name not in ENGINES or not has_draws or ENGINES[name].draws:
        evidence += remarks[name]
    remark = f"{len(refusals):,} cells have no answer: {refusals[0]}" if refusals else ""
    return Layer(question.label, values, low, high, ", ".join(engines), evidence, remark, margin)


def _solve(point: Construction, mechanism: Mechanism, engine: str, sampling: Sampling) -> Outcome:
    """Solve a cell by the engine named; `auto` tries floats before fractions, since there are many cells."""
    if engine == "auto" and not sampling.in_format:
        with suppress(EngineRefusal):
            return closed.solve(point, mechanism)
    return ENGINES[engine].solve(point, mechanism, sampling)
