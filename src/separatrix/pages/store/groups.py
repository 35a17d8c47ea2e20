"""The cells of one construction in one part of a plan, and the curves and the plane that they make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from separatrix.pages.store.stored_cells import StoredCells

MIN_POINTS, MAX_PANELS = 3, 6
"""Values that make a curve, and combinations of the other parameters that each get a panel."""
MIN_SIDE, MIN_FILLED = 4, 0.8
"""Values on each side of a map, and the share of its grid that must have an answer."""
LOG_SPAN = 1e3
"""Positive values that span this factor get a logarithmic axis."""


@dataclass(frozen=True)
class Group:
    """The cells of one construction in one part."""

    part: str
    construction: str
    cells: pl.DataFrame
    names: tuple[str, ...]

    @cached_property
    def answered_cells(self) -> pl.DataFrame:
        """The cells with a P."""
        return keep_answered(self.cells)

    @cached_property
    def varying(self) -> tuple[str, ...]:
        """The parameters that take several values."""
        return tuple(name for name in self.names if self.answered_cells[f"is:{name}"].n_unique() > 1)

    @cached_property
    def fixed_parameters(self) -> dict[str, str]:
        """The values of the parameters that do not vary."""
        values = {name: self.answered_cells[f"is:{name}"].first() for name in self.names if name not in self.varying}
        return {name: str(value) for name, value in values.items() if value is not None}

    @cached_property
    def plane(self) -> tuple[str, str] | None:
        """The two parameters of a map, if nothing else varies."""
        if len(self.varying) != 2 or any(self._count(name) < MIN_SIDE for name in self.varying):
            return None
        first, second = self.varying
        # Number of tokens upwards, whatever the order of the parameters.
        return (second, first) if first == "n" else (first, second)

    @cached_property
    def mapped_mechanisms(self) -> tuple[str, ...]:
        """The mechanisms whose cells fill the grid of the plane."""
        if self.plane is None:
            return ()
        x, y = (f"at:{name}" for name in self.plane)
        sides = (
            self.answered_cells.drop_nulls([x, y])
            .group_by("mechanism", maintain_order=True)
            .agg(filled=pl.struct(x, y).n_unique(), across=pl.n_unique(x), up=pl.n_unique(y))
            .filter(pl.min_horizontal("across", "up") >= MIN_SIDE)
            .filter(pl.col("filled") >= MIN_FILLED * pl.col("across") * pl.col("up"))
        )
        return tuple(sides["mechanism"])

    def curves(self) -> Iterator[Curve]:
        """Yield a curve for each parameter and combination of the others; nothing for cells on a map."""
        earlier_names: list[str] = []
        for x in () if self.mapped_mechanisms else self.varying:
            # Two parameters that determine each other would make the same curve twice.
            repeats = any(self._follows(x, name) and self._follows(name, x) for name in earlier_names)
            if self._count(x) < MIN_POINTS or repeats:
                continue
            other_names = [name for name in self.varying if name != x]
            follows = tuple(name for name in other_names if self._follows(name, x))
            free = [f"is:{name}" for name in other_names if name not in follows]
            choices = self.answered_cells.select(free).unique(maintain_order=True) if free else pl.DataFrame([{}])
            if free and choices.height > MAX_PANELS:
                continue
            earlier_names.append(x)
            for choice in choices.iter_rows(named=True) if free else ({},):
                conditions = [pl.col(name).eq_missing(pl.lit(value)) for name, value in choice.items()]
                cells = self.cells.filter(conditions) if conditions else self.cells
                curve = Curve(self, x, follows, {name[3:]: str(value) for name, value in choice.items()}, cells)
                if curve.places >= MIN_POINTS:
                    yield curve

    def _count(self, name: str) -> int:
        return self.answered_cells[f"at:{name}"].drop_nulls().n_unique()

    def _follows(self, name: str, x: str) -> bool:
        """Return whether the value of x determines that of `name`."""
        pairs = self.answered_cells.select(f"is:{x}", f"is:{name}")
        return pairs.n_unique() == pairs[f"is:{x}"].n_unique()


@dataclass(frozen=True)
class Curve:
    """P against one parameter, every mechanism of the group."""

    group: Group
    x: str
    follows: tuple[str, ...]
    """Parameters that change together with x."""
    choice: Mapping[str, str]
    """The values of the other varying parameters."""
    cells: pl.DataFrame

    @cached_property
    def placed_cells(self) -> pl.DataFrame:
        """The cells with a place on the axis, in its order; those without an answer are gaps."""
        return self.cells.filter(pl.col(f"at:{self.x}").is_not_null()).sort(f"at:{self.x}", maintain_order=True)

    @cached_property
    def answered_cells(self) -> pl.DataFrame:
        """The cells on the axis with a P."""
        return keep_answered(self.placed_cells)

    @property
    def places(self) -> int:
        """The number of values of x with an answer."""
        return self.answered_cells[f"at:{self.x}"].n_unique()

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The mechanisms in the order of the store."""
        return tuple(self.group.answered_cells["mechanism"].unique(maintain_order=True))

    @property
    def log(self) -> bool:
        """Whether the axis is logarithmic."""
        return is_log(self.answered_cells[f"at:{self.x}"])


def group_cells(report_cells: StoredCells) -> list[Group]:
    """Return every construction of every part that has an answer."""
    groups, start = list[Group](), 0
    counts = report_cells.cells.group_by("part", "construction", maintain_order=True).len()
    for part, name, height in counts.iter_rows():
        # The cells are sorted by part and construction, so that a group is a slice without a copy.
        groups.append(Group(str(part), str(name), report_cells.cells.slice(start, height), report_cells.names))
        start += height
    return [group for group in groups if not group.answered_cells.is_empty()]


def keep_answered(cells: pl.DataFrame) -> pl.DataFrame:
    """Return the cells that have a P; the same frame where all do."""
    has_answer = cells["p"].is_not_null()
    return cells if has_answer.all() else cells.filter(has_answer)


def thin(cells: pl.DataFrame, most: int) -> pl.DataFrame:
    """Return at most so many rows, evenly spaced, with both ends."""
    if cells.height <= most:
        return cells
    places: list[int] = np.unique(np.linspace(0, cells.height - 1, most).round().astype(int)).tolist()
    return cells[places]


def is_log(values: pl.Series) -> bool:
    """Return whether values are positive and span several decades.

    >>> is_log(pl.Series([1.0, 1000.0])), is_log(pl.Series([0.0, 1000.0]))
    (True, False)
    """
    low, high = float(values.min()), float(values.max())  # type: ignore[arg-type]
    return low > 0 and low * LOG_SPAN <= high
