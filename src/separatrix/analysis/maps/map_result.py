"""Maps as results: the cells of a plane, and a layer for each mechanism, as JSON, tables and arrays."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from separatrix.analysis.maps.formulas import BoundaryFormula
from separatrix.analysis.maps.quantities import quantity_label
from separatrix.constructions.lengths import nearest_lengths
from separatrix.core.documents import Document, Hidden, register_json, shown, shown_as
from separatrix.core.lazy import pl
from separatrix.core.numbers import format_exact, parse_integer
from separatrix.core.numbers.spelling import for_people
from separatrix.core.parameters import Grid
from separatrix.core.parameters.ranges import Axis, Number
from separatrix.core.result import Result, Row
from separatrix.exact.engines import Sampling
from separatrix.exact.verdicts.question import Question

Array = np.ndarray[Any, Any]
Part = tuple[int | slice, int | slice]
"""An index of a part of the plane."""
ALL = slice(None)
FormulaOnPlane = tuple[BoundaryFormula, Array]
"""A formula, and its values over the plane, whose zeros are the boundary."""


@dataclass(frozen=True)
class PlaneGrid:
    """Two axes, and the n that is used in each cell."""

    x: Axis
    y: Axis
    n: Array | None
    """n as exact integers, in an array that broadcasts to `shape`; None if there is no n."""
    n_asked: Array | None
    """n as it was asked for."""
    step_name: str = "the step"
    """The quantity of which every n is a multiple."""

    @classmethod
    def build(cls, question: Question, x: Axis, y: Axis) -> PlaneGrid:
        """Return the plane, with every n rounded to the nearest admissible one."""
        if "n" not in {*question.fixed, x.name, y.name} & question.kind.schema.model_fields.keys():
            return cls(x, y, None, None)
        n_asked = _lengths_asked(question, x, y)
        starts = {axis.name: axis.values[0] for axis in (x, y) if not question.is_own(axis.name)}
        axes = [(axis.name, axis.values) for axis in (y, x)]
        n_used = nearest_lengths(question.kind, {**question.fixed, **starts}, axes, n_asked)
        return cls(x, y, n_asked if n_used is None else n_used, n_asked, question.kind.step_name)

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows (values of y) and columns (values of x)."""
        return len(self.y.values), len(self.x.values)

    def at(self, cell: tuple[int, int]) -> dict[str, Number]:
        """Return the parameters of a cell that differ between cells, and n."""
        row, column = cell
        values: dict[str, Number] = {self.x.name: self.x.values[column], self.y.name: self.y.values[row]}
        return values if self.n is None else {**values, "n": np.broadcast_to(self.n, self.shape)[cell]}

    def grids(self, question: Question) -> Iterator[tuple[Part, dict[str, Number], Grid]]:
        """Yield grids that make up the plane, each with its part and the mechanism's own parameters there.

        It is one grid unless an axis is a parameter of the mechanism.
        """
        x, y, n = self.x, self.y, self.n
        constants = dict(question.fixed)
        if n is not None and n.size == 1:
            constants["n"] = n.item()
        across = {} if question.is_own(x.name) else {x.name: x.values}
        up = {} if question.is_own(y.name) else {y.name: y.values}
        if n is not None and n.shape[0] > 1 and n.shape[1] > 1:
            # A grid is a product of axes, and this n is not: every cell becomes a point of one long axis.
            pairs = {x.name: x.values * len(y.values), y.name: [v for v in y.values for _ in x.values]}
            joint = {**pairs, "n": n.ravel().tolist()}
            constants = {name: value for name, value in constants.items() if name not in joint}
            yield (ALL, ALL), {}, Grid(constants, (joint,))
            return
        if n is not None and n.shape[0] > 1:
            up["n"] = n[:, 0].tolist()
        if n is not None and n.shape[1] > 1:
            across["n"] = n[0].tolist()
        constants = {name: value for name, value in constants.items() if name not in {*across, *up}}
        if across and up:
            yield (ALL, ALL), {}, Grid(constants, (up, across))
        elif up:
            for column, value in enumerate(x.values):
                yield (ALL, column), {x.name: value}, Grid(constants, (up,))
        else:
            for row, value in enumerate(y.values):
                yield (row, ALL), {y.name: value}, Grid(constants, (across,))

    @property
    def length_remark(self) -> str:
        """A sentence on n that were rounded to admissible values; empty if none was."""
        if self.n is None or self.n_asked is None or not (self.n != self.n_asked).any():
            return ""
        n_used, n_asked = np.broadcast_arrays(self.n, self.n_asked)
        changes = [(abs(u - a) / a, u, a) for u, a in zip(n_used.flat, n_asked.flat, strict=True) if u != a]
        share, u, a = max(changes)
        return (
            f"n is rounded to a multiple of {self.step_name} at {len(changes):,} of {n_used.size:,} places, "
            f"at most by {float(100 * share):.2g}% (n={format_exact(a)} to n={format_exact(u)})."
        )


def _lengths_asked(question: Question, x: Axis, y: Axis) -> Array:
    """Return the n asked for, as a row, a column or a single number."""
    for axis, shape in ((x, (1, -1)), (y, (-1, 1))):
        if axis.name == "n":
            return _exact_array(axis.values).reshape(shape)
    return _exact_array([parse_integer(question.fixed["n"], "n")]).reshape(1, 1)


def _exact_array(values: Any) -> Array:
    array = np.empty(len(values), dtype=object)  # n may exceed 64 bits
    array[:] = values
    return array


# A map may have millions of cells: they convert as a whole and not number by number.
register_json(
    np.ndarray,
    list[list[float | None]],
    lambda values: [[value if math.isfinite(value) else None for value in row] for row in values.tolist()],
)


@dataclass(frozen=True)
class Layer(Document):
    """The values of one mechanism; rows follow the second axis, columns the first; null: no answer."""

    mechanism: str
    values: Array
    low: Hidden[Array]
    high: Hidden[Array]
    """The interval; equal ends if the value is exact, NaN if the quantity has none."""
    engine: str
    evidence: str
    remark: str
    """Why some cells have no answer."""
    margin: Hidden[Array | None] = None
    """The margin of every cell, which still differs if a probability is nearly the same everywhere."""
    formula: Hidden[FormulaOnPlane | None] = None
    """The formula for the boundary of P(tells apart), if one is known."""

    @shown_as("low")
    def interval_low(self) -> Array | None:
        """Lower ends of intervals, if values are sampled."""
        return self.low if self.has_interval else None

    @shown_as("high")
    def interval_high(self) -> Array | None:
        """Upper ends of intervals, if values are sampled."""
        return self.high if self.has_interval else None

    @cached_property
    def has_interval(self) -> bool:
        """Whether some value is only known to lie between two others."""
        return bool((self.low < self.high).any())

    def extremes(self) -> Iterator[tuple[str, float, tuple[int, int]]]:
        """Yield the smallest and the largest value, each with the first cell that has it."""
        # An infinite value would hide the largest finite one.
        finite = np.where(np.isfinite(self.values), self.values, math.nan)
        if not np.isnan(finite).all():
            for word, find in (("smallest", np.nanargmin), ("largest", np.nanargmax)):
                row, column = divmod(int(find(finite)), finite.shape[1])
                yield word, float(finite[row, column]), (row, column)


@dataclass(frozen=True, repr=False)
class Map(Result):
    """A quantity over two parameters: x across, y up; arrays have a row for each value of y."""

    kind: ClassVar[str] = "map"
    quantity: str
    questions: Hidden[tuple[Question, ...]]
    """One for each mechanism, with the same construction and parameters."""
    grid: Hidden[PlaneGrid]
    layers: Hidden[tuple[Layer, ...]]
    """One for each question."""
    engine: Hidden[str]
    """The engine that was asked for."""
    sampling: Hidden[Sampling]
    difference: bool = False
    """Whether the two layers are shown as one, the first minus the second."""

    @property
    def question(self) -> Question:
        """The first question."""
        return self.questions[0]

    @property
    def x(self) -> Axis:
        """The axis across."""
        return self.grid.x

    @property
    def y(self) -> Axis:
        """The axis up."""
        return self.grid.y

    @shown
    def construction(self) -> str:
        """The name of the construction."""
        return self.question.construction

    @shown
    def parameters(self) -> Mapping[str, str]:
        """The parameters that are the same everywhere."""
        return self.question.parameters

    @shown_as("taken")
    def reference_parameters(self) -> Mapping[str, str]:
        """The parameters that were not given, and taken from the construction's reference point."""
        return self.question.reference_parameters

    @shown
    def axes(self) -> tuple[Axis, ...]:
        """The axis across and the axis up."""
        return self.x, self.y

    @shown
    def n_used(self) -> list[list[int]] | None:
        """The n of each cell, or of each row or column, rounded to admissible values."""
        return None if self.grid.n is None else self.grid.n.tolist()

    @shown_as("moved")
    def length_remark(self) -> str:
        """A sentence on n that were rounded to admissible values; empty if none was."""
        return self.grid.length_remark

    @shown_as("layers")
    def panels(self) -> tuple[Layer, ...]:
        """The layers, or their difference."""
        return (_subtract(*self.layers),) if self.difference else self.layers

    @property
    def summary(self) -> str:
        """The quantity, the axes and the mechanisms."""
        names = ", ".join(layer.mechanism for layer in self.panels)
        spans = [(axis, for_people(axis.floats[0]), for_people(axis.floats[-1])) for axis in (self.x, self.y)]
        axes = " × ".join(f"{axis.name} from {start} to {stop} ({len(axis.values)})" for axis, start, stop in spans)
        return f"{quantity_label(self.quantity)} on {self.construction}, {axes}: {names}"

    def rows(self) -> list[Row]:
        """One row for each mechanism and cell."""
        return self.to_frame().to_dicts()

    def notebook_rows(self) -> list[Row]:
        """The smallest and the largest value of each layer, and its cell."""
        return [
            {"mechanism": layer.mechanism, "": word, self.quantity: value, **place, "engine": layer.engine}
            for layer in self.panels
            for word, value, cell in layer.extremes()
            for place in [{name: float(at) for name, at in self.grid.at(cell).items()}]
        ]

    def to_frame(self) -> pl.DataFrame:
        """A polars frame with one row for each mechanism and cell, the difference included.

        An axis x has two columns: `x`, the value asked for as a number, and `x_used`, the value used as exact
        text.
        """
        columns = {name: np.broadcast_to(column, self.grid.shape).ravel() for name, column in self._columns().items()}
        frames = []
        for layer in (*self.layers, *self.panels) if self.difference else self.layers:
            numbers = {self.quantity: layer.values.ravel(), "low": layer.low.ravel(), "high": layer.high.ravel()}
            cells = pl.DataFrame({**columns, **numbers}).with_columns(engine=pl.lit(layer.engine))
            frames.append(cells.select(pl.lit(layer.mechanism).alias("mechanism"), pl.all()))
        return pl.concat(frames).with_columns(pl.col(self.quantity, "low", "high").fill_nan(None))

    def to_npz(self) -> bytes:
        """Arrays that `numpy.load` reads without pickles; their axes are layers, values of y, values of x."""
        buffer = io.BytesIO()
        arrays: dict[str, Array] = {
            "construction": np.array(self.construction),
            "fixed": np.array([f"{name}={value}" for name, value in self.question.fixed.items()]),
            "mechanisms": np.array([layer.mechanism for layer in self.layers]),
            "engines": np.array([layer.engine for layer in self.layers]),
            "axes": np.array([self.x.name, self.y.name]),
            **self._columns(),
        }
        for key, name in ((self.quantity, "values"), ("low", "low"), ("high", "high")):
            arrays[key] = np.stack([getattr(layer, name) for layer in self.layers])
        np.savez_compressed(buffer, allow_pickle=False, **arrays)
        return buffer.getvalue()

    def _columns(self) -> dict[str, Array]:
        """Return both axes and the values used, in arrays that broadcast to the plane."""
        columns = {self.x.name: self.x.floats[None, :], self.y.name: self.y.floats[:, None]}
        texts = [np.array([format_exact(value) for value in axis.values]) for axis in (self.x, self.y)]
        columns |= {f"{self.x.name}_used": texts[0][None, :], f"{self.y.name}_used": texts[1][:, None]}
        if self.n_used is not None:
            columns["n_used"] = np.array([[str(n) for n in row] for row in self.n_used])
        return columns


def _subtract(first: Layer, second: Layer) -> Layer:
    return Layer(
        f"{first.mechanism} − {second.mechanism}",
        first.values - second.values,
        first.low - second.high,
        first.high - second.low,
        ", ".join(dict.fromkeys((first.engine, second.engine))),
        "; ".join(dict.fromkeys((first.evidence, second.evidence))),
        "; ".join(filter(None, (first.remark, second.remark))),
    )
