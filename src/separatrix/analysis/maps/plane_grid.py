"""The cells of a plane: the values asked for, and the admissible ones they stand for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from separatrix.constructions.lengths import nearest_lengths
from separatrix.core.numbers import format_exact, parse_integer
from separatrix.core.parameters import Grid
from separatrix.core.parameters.ranges import Axis, Number
from separatrix.exact.verdicts.question import Question

Array = np.ndarray[Any, Any]
Where = tuple[int | slice, int | slice]
EVERYWHERE = slice(None)


@dataclass(frozen=True)
class PlaneGrid:
    """Two axes, and the n that is used in each cell."""

    x: Axis
    y: Axis
    n: Array | None
    """n as exact integers, in an array that broadcasts to `shape`; None where there is no n."""
    n_asked: Array | None
    step_name: str = "the step"
    """What every n is a multiple of."""

    @classmethod
    def of(cls, asked: Question, x: Axis, y: Axis) -> PlaneGrid:
        """The plane, with every n rounded to the nearest one that is admissible."""
        if not {"n"} <= {*asked.fixed, x.name, y.name} & asked.kind.schema.model_fields.keys():
            return cls(x, y, None, None)
        wanted = _wanted(asked, x, y)
        starts = {axis.name: axis.values[0] for axis in (x, y) if not asked.is_own(axis.name)}
        axes = [(axis.name, axis.values) for axis in (y, x)]
        moved = nearest_lengths(asked.kind, {**asked.fixed, **starts}, axes, wanted)
        return cls(x, y, wanted if moved is None else moved, wanted, asked.kind.step_name)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns: values of y, and of x."""
        return len(self.y.values), len(self.x.values)

    def at(self, cell: tuple[int, int]) -> dict[str, Number]:
        """The parameters of a cell that are not the same everywhere, and n."""
        row, column = cell
        chosen: dict[str, Number] = {self.x.name: self.x.values[column], self.y.name: self.y.values[row]}
        return chosen if self.n is None else {**chosen, "n": self.n[_within(self.n, cell)]}

    def grids(self, asked: Question) -> Iterator[tuple[Where, dict[str, Number], Grid]]:
        """Grids that make up the plane: where each belongs, and the mechanism's own parameters there.

        It is one grid unless an axis is the mechanism's own; where n depends on both axes, its points
        lie in one long line.
        """
        x, y, n = self.x, self.y, self.n
        fixed = dict(asked.fixed)
        if n is not None and n.size == 1:
            fixed["n"] = n.item()
        across = {} if asked.is_own(x.name) else {x.name: x.values}
        up = {} if asked.is_own(y.name) else {y.name: y.values}
        if n is not None and n.shape[0] > 1 and n.shape[1] > 1:
            every = {x.name: x.values * len(y.values), y.name: [v for v in y.values for _ in x.values]}
            joint = {**every, "n": n.ravel().tolist()}
            rest = {name: value for name, value in fixed.items() if name not in joint}
            yield (EVERYWHERE, EVERYWHERE), {}, Grid(rest, (joint,))
            return
        if n is not None and n.shape[0] > 1:
            up["n"] = n[:, 0].tolist()
        if n is not None and n.shape[1] > 1:
            across["n"] = n[0].tolist()
        fixed = {name: value for name, value in fixed.items() if name not in {*across, *up}}
        if across and up:
            yield (EVERYWHERE, EVERYWHERE), {}, Grid(fixed, (up, across))
        elif up:
            for column, value in enumerate(x.values):
                yield (EVERYWHERE, column), {x.name: value}, Grid(fixed, (up,))
        else:
            for row, value in enumerate(y.values):
                yield (row, EVERYWHERE), {y.name: value}, Grid(fixed, (across,))

    @property
    def is_moved(self) -> bool:
        """Whether some n is not the one asked for."""
        return self.n is not None and self.n_asked is not None and bool((self.n != self.n_asked).any())

    @property
    def remark(self) -> str:
        """A sentence on the n that were rounded; empty where none was."""
        if self.n is None or self.n_asked is None or not self.is_moved:
            return ""
        used, asked = np.broadcast_arrays(self.n, self.n_asked)
        moved = [(abs(u - a) / a, u, a) for u, a in zip(used.flat, asked.flat, strict=True) if u != a]
        share, u, a = max(moved)
        return (
            f"n is rounded to a multiple of {self.step_name} at {len(moved):,} of {used.size:,} places, "
            f"at most by {float(100 * share):.2g}% (n={format_exact(a)} to n={format_exact(u)})."
        )


def _within(array: Array, cell: tuple[int, int]) -> tuple[int, int]:
    row, column = (place if length > 1 else 0 for place, length in zip(cell, array.shape, strict=True))
    return row, column


def _wanted(asked: Question, x: Axis, y: Axis) -> Array:
    """The n asked for, as a row, a column or a single number."""
    for axis, shape in ((x, (1, -1)), (y, (-1, 1))):
        if axis.name == "n":
            column = np.empty(len(axis.values), dtype=object)
            column[:] = axis.values
            return column.reshape(shape)
    single = np.empty((1, 1), dtype=object)
    single[0, 0] = parse_integer(asked.fixed["n"], "n")
    return single
