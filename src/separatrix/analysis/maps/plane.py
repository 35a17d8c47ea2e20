"""A quantity over a plane of two parameters, for one mechanism or several."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from separatrix.analysis.maps.analytic import Analytic, Array, analytic
from separatrix.analysis.maps.layers import QUANTITIES, Layer, Tell, by_cell
from separatrix.analysis.maps.plane_grid import PlaneGrid
from separatrix.constructions import Construction, ExactConstruction
from separatrix.core.numbers.spelling import for_people
from separatrix.core.parameters import UsageError, all_parameters, listed_mechanisms, require_known
from separatrix.core.parameters.model import printed
from separatrix.core.parameters.ranges import EXAMPLE, Axis, read_counted, split_axes
from separatrix.core.result import Result, Row
from separatrix.exact.engines import ENGINES, EngineRefusal, Sampling, closed, engine_named
from separatrix.exact.verdicts.question import Question, question

if TYPE_CHECKING:
    import polars as pl

    from separatrix.core.schemas import questions as documents

MOST_CELLS = 4_000_000
"""2000 by 2000: more than a screen or a page can show."""
CLOSED_FORM = "closed form over all sign states, in float64"


@dataclass(frozen=True, repr=False)
class Map(Result):
    """The quantity `of` over the plane: x across, y up; arrays have a row for each value of y."""

    kind: ClassVar[str] = "map"
    of: str
    questions: tuple[Question, ...]
    places: PlaneGrid
    layers: tuple[Layer, ...]
    """One layer for each question."""
    engine: str
    """The engine asked for."""
    sampling: Sampling
    difference: bool = False
    """Whether the two layers are to be shown as one, the first less the second."""

    @property
    def construction(self) -> type[Construction]:
        """The construction."""
        return self.questions[0].kind

    @property
    def fixed(self) -> Mapping[str, object]:
        """The parameters that are the same everywhere, as they were given."""
        return self.questions[0].fixed

    @property
    def x(self) -> Axis:
        """The axis across."""
        return self.places.x

    @property
    def y(self) -> Axis:
        """The axis up."""
        return self.places.y

    @property
    def shown(self) -> tuple[Layer, ...]:
        """The layers, or their difference."""
        return (_difference(*self.layers),) if self.difference else self.layers

    def boundary_formula(self, layer: Layer) -> tuple[Analytic, Array] | None:
        """The formula of the boundary, and its values over the plane, whose zeros are the boundary.

        None where no formula is known, and where the map is of something else.
        """
        return self._formulas.get(layer.mechanism) if self.of == "distinguish" else None

    @cached_property
    def _formulas(self) -> Mapping[str, tuple[Analytic, Array] | None]:
        return {asked.label: self._formula(asked) for asked in self.questions}

    def _formula(self, asked: Question) -> tuple[Analytic, Array] | None:
        corner = self.places.at((0, 0))
        moving = (self.x.name, self.y.name)
        found = analytic(self.construction, asked.mechanism(corner), moving, self.fixed.get("form"))
        if found is None:
            return None
        mesh = {self.x.name: self.x.floats[None, :], self.y.name: self.y.floats[:, None]}
        values = found.excess({**asked.numbers(corner), **mesh})
        return found, np.broadcast_to(values, self.places.shape)

    @property
    def summary(self) -> str:
        """What is mapped, of which mechanisms, and over what."""
        names = ", ".join(layer.mechanism for layer in self.shown)
        axes = " × ".join(
            f"{axis.name} from {for_people(start)} to {for_people(stop)} ({len(axis.values)})"
            for axis in (self.x, self.y)
            for start, stop in [axis.floats[[0, -1]]]
        )
        return f"{QUANTITIES[self.of]} on {self.construction.name}, {axes}: {names}"

    def rows(self) -> list[Row]:
        """One row for each mechanism and cell."""
        return self.to_frame().to_dicts()

    def to_frame(self) -> pl.DataFrame:
        """A polars frame, one row for each mechanism and cell; of an axis the value used, too, as text."""
        from separatrix.analysis.maps.table import frame

        return frame(self)

    def notebook_rows(self) -> list[Row]:
        """The smallest and the largest value of each layer, and where it is."""
        return [
            {"mechanism": layer.mechanism, "": word, self.of: value, **place, "engine": layer.engine}
            for layer in self.shown
            for word, value, cell in extremes(self.places, layer)
            for place in [{name: float(at) for name, at in self.places.at(cell).items()}]
        ]

    def as_json(self) -> documents.Map:
        """What `separatrix map --json` prints."""
        layers = [{**layer.said, **_cells_json(layer)} for layer in self.shown]
        return cast("documents.Map", {**self.heading, "layers": layers})

    @property
    def heading(self) -> dict[str, Any]:
        """The document without its layers."""
        used = self.places.n
        return {
            "construction": self.construction.name,
            "parameters": {name: str(value) for name, value in self.fixed.items()},
            "taken": {name: str(value) for name, value in self.questions[0].taken.items()},
            "quantity": self.of,
            "axes": [
                {"name": axis.name, "log": axis.log, "values": [printed(value) for value in axis.values]}
                for axis in (self.x, self.y)
            ],
            "n_used": None if used is None else used.tolist(),
            "moved": self.places.remark,
            "difference": self.difference,
        }


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
    """A quantity over two parameters.

    **Arguments:**

    - `construction`, `engine`, `sampling`: as for `verdict`.
    - `mechanism`: as for `verdict`; one layer for each of several, `"softmax,linear"` or a list.
    - `parameters`, `named`: two of them as an axis: `"start:stop:count"`, `"start:stop:count:log"`, a list or
      a NumPy array; those that are missing are taken from the construction's reference point.
    - `of`: the quantity, such as `"distinguish"`, `"margin"` or `"bits"`.
    - `difference`: show two mechanisms as one layer, the first less the second.
    - `tell`: hears how far slow layers are.

    >>> found = map("spike", "softmax", a1="0.6:0.8:3", n="1e3:1e6:2:log",
    ...             d=102, m=12, a0="0.01", b="0.2", c="0.1")
    >>> found.layers[0].values.round(3).tolist()
    [[0.0, 0.597, 0.992], [0.0, 0.0, 0.89]]
    """
    mechanisms = listed_mechanisms(mechanism)
    require_known("quantity", of, QUANTITIES)
    engine_named(engine).refuse_unused(sampling)
    sampling = sampling or Sampling()
    if not mechanisms:
        raise UsageError("a map needs a mechanism; write for example softmax or softmax,linear")
    if difference and len(mechanisms) != 2:
        raise UsageError(f"a difference is between two mechanisms, and here {_counted(len(mechanisms))}")
    open_, fixed = split_axes(all_parameters(parameters, named))
    if len(open_) != 2:
        found = f"{_counted(len(open_))} ({', '.join(open_)})" if open_ else "is none"
        raise UsageError(f"a map has two axes, and here {found}; write for example {EXAMPLE}")
    questions = tuple(question(construction, mechanism, fixed, open_) for mechanism in mechanisms)
    x, y = _axes(questions, open_)
    places = PlaneGrid.of(questions[0], x, y)
    layers = tuple(_layer(each, places, of, engine, sampling, tell) for each in questions)
    return Map(of, questions, places, layers, engine, sampling, difference)


def _counted(count: int) -> str:
    return "is one" if count == 1 else f"are {count}"


def _axes(questions: Sequence[Question], open_: Mapping[str, str]) -> tuple[Axis, Axis]:
    """Both axes, once it is clear that the plane is not too large."""
    own = [name for name in open_ if any(each.is_own(name) for each in questions)]
    for name in own:
        lacking = next((each.label for each in questions if not each.is_own(name)), None)
        if lacking is not None:
            raise UsageError(f"{name} is not a parameter of {lacking}; make a map for each mechanism")
    if len(own) > 1:
        raise UsageError(
            f"{own[0]} and {own[1]} are both the mechanism's own; one axis must be the construction's"
        )
    spans = [read_counted(questions[0].schema_of(name), name, text) for name, text in open_.items()]
    (_, across), (_, up) = spans
    if across * up > MOST_CELLS:
        raise UsageError(
            f"a map of {across:,} by {up:,} has {across * up:,} cells, more than {MOST_CELLS:,}; "
            "400 by 400 is enough for a picture"
        )
    x, y = (Axis(span, span.points(count)) for span, count in spans)
    return x, y


def _layer(asked: Question, places: PlaneGrid, of: str, engine: str, sampling: Sampling, tell: Tell) -> Layer:
    """One layer, by the closed form where there is one for whole grids, else a cell at a time."""
    whole = ENGINES[engine].covers("closed") and not sampling.in_format
    if whole and not issubclass(asked.kind, ExactConstruction):
        with suppress(EngineRefusal):
            found = _whole(asked, places, of)
            unused = ENGINES[found.engine].describe_unused(sampling)
            return replace(found, evidence=f"{found.evidence}{unused}")
    return by_cell(asked, places, of, engine, sampling, tell)


def _whole(asked: Question, places: PlaneGrid, of: str) -> Layer:
    """The closed form on the whole plane at once, or a line of it at a time."""
    values, margin = np.empty(places.shape), np.empty(places.shape)
    for where, own, grid in places.grids(asked):
        found = closed.evaluate(asked.kind, asked.mechanism(own), grid)
        values[where] = _quantity(found, of).reshape(values[where].shape)
        margin[where] = found.margin.reshape(values[where].shape)
    nowhere = np.full(places.shape, np.nan)
    ends = values if of == "distinguish" else nowhere
    unknown = int(np.isnan(values).sum())
    remark = f"{unknown:,} cells hold a tie too close to call" if unknown else ""
    return Layer(asked.label, values, ends, ends, "closed", CLOSED_FORM, remark, margin)


def _quantity(found: closed.ProbabilityGrid, of: str) -> np.ndarray[Any, Any]:
    values: np.ndarray[Any, Any] = getattr(found, of)
    return values


def _difference(one: Layer, other: Layer) -> Layer:
    return Layer(
        f"{one.mechanism} − {other.mechanism}",
        one.values - other.values,
        one.low - other.high,
        one.high - other.low,
        one.engine if one.engine == other.engine else f"{one.engine}, {other.engine}",
        one.evidence if one.evidence == other.evidence else f"{one.evidence}; {other.evidence}",
        "; ".join(filter(None, (one.remark, other.remark))),
    )


def _cells_json(layer: Layer) -> dict[str, Any]:
    """Rows follow the second axis, columns the first; null where there is no number."""
    return {
        "values": _rows(layer.values),
        "low": _rows(layer.low) if layer.has_interval else None,
        "high": _rows(layer.high) if layer.has_interval else None,
    }


def _rows(values: np.ndarray[Any, Any]) -> list[list[float | None]]:
    return [[value if math.isfinite(value) else None for value in row] for row in values.tolist()]


def extremes(places: PlaneGrid, layer: Layer) -> Iterator[tuple[str, float, tuple[int, int]]]:
    """The smallest and the largest value, each with the first cell that has it; nothing where none has."""
    finite = np.where(np.isfinite(layer.values), layer.values, math.nan)
    if not np.isnan(finite).all():
        for word, find in (("smallest", np.nanargmin), ("largest", np.nanargmax)):
            row, column = divmod(int(find(finite)), places.shape[1])
            yield word, float(finite[row, column]), (row, column)
