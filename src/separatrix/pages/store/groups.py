"""One construction in one part of a plan: what is fixed there, and what varies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from separatrix.pages.store.stored_cells import StoredCells

FEWEST, MOST_PANELS = 3, 6
"""Values that make a curve, and values of the other parameters that each get a panel of their own."""
FEWEST_ACROSS, FULL = 4, 0.8
"""Values on each side of a map, and the share of the grid that must have an answer."""
MANY_DECADES = 1e3
"""Positive values that span so much stand on a logarithmic axis."""


@dataclass(frozen=True)
class Group:
    """The cells of one construction in one part."""

    part: str
    construction: str
    cells: pl.DataFrame
    names: tuple[str, ...]

    @cached_property
    def answered(self) -> pl.DataFrame:
        """The cells with a P."""
        return with_p(self.cells)

    @cached_property
    def varying(self) -> tuple[str, ...]:
        """The parameters that take several values."""
        return tuple(name for name in self.names if self.answered[f"is:{name}"].n_unique() > 1)

    @cached_property
    def fixed(self) -> dict[str, str]:
        """The values of the parameters that do not vary."""
        values = {
            name: self.answered[f"is:{name}"].first() for name in self.names if name not in self.varying
        }
        return {name: str(value) for name, value in values.items() if value is not None}

    @cached_property
    def plane(self) -> tuple[str, str] | None:
        """The two parameters of a map, if nothing else varies."""
        if len(self.varying) != 2 or any(self._count(name) < FEWEST_ACROSS for name in self.varying):
            return None
        first, second = self.varying
        return (second, first) if first == "n" else (first, second)

    @cached_property
    def mapped(self) -> tuple[str, ...]:
        """The mechanisms that fill a grid of it."""
        if self.plane is None:
            return ()
        x, y = (f"at:{name}" for name in self.plane)
        found = (
            self.answered.drop_nulls([x, y])
            .group_by("mechanism", maintain_order=True)
            .agg(filled=pl.struct(x, y).n_unique(), across=pl.n_unique(x), up=pl.n_unique(y))
            .filter(pl.min_horizontal("across", "up") >= FEWEST_ACROSS)
            .filter(pl.col("filled") >= FULL * pl.col("across") * pl.col("up"))
        )
        return tuple(found["mechanism"])

    def curves(self) -> Iterator[Curve]:
        """One for each parameter to draw P against and each choice of the others; none of what is mapped."""
        drawn: list[str] = []
        for x in () if self.mapped else self.varying:
            if self._count(x) < FEWEST or any(
                self._follows(x, one) and self._follows(one, x) for one in drawn
            ):
                continue
            others = [name for name in self.varying if name != x]
            follows = tuple(name for name in others if self._follows(name, x))
            free = [f"is:{name}" for name in others if name not in follows]
            choices = self.answered.select(free).unique(maintain_order=True) if free else pl.DataFrame([{}])
            if free and choices.height > MOST_PANELS:
                continue
            drawn.append(x)
            for choice in choices.iter_rows(named=True) if free else ({},):
                same = [pl.col(name).eq_missing(pl.lit(value)) for name, value in choice.items()]
                cells = self.cells.filter(same) if same else self.cells
                curve = Curve(self, x, follows, {name[3:]: str(v) for name, v in choice.items()}, cells)
                if curve.places >= FEWEST:
                    yield curve

    def _count(self, name: str) -> int:
        return self.answered[f"at:{name}"].drop_nulls().n_unique()

    def _follows(self, name: str, x: str) -> bool:
        """Whether the value of x settles that of `name`."""
        both = self.answered.select(f"is:{x}", f"is:{name}")
        return both.n_unique() == both[f"is:{x}"].n_unique()


@dataclass(frozen=True)
class Curve:
    """P against one parameter, every mechanism of the group."""

    group: Group
    x: str
    follows: tuple[str, ...]
    """Parameters that change together with x."""
    choice: Mapping[str, str]
    """The values of the others that vary."""
    cells: pl.DataFrame

    @cached_property
    def drawn(self) -> pl.DataFrame:
        """The cells with a place on the axis, in its order; those without an answer are the gaps."""
        return self.cells.filter(pl.col(f"at:{self.x}").is_not_null()).sort(
            f"at:{self.x}", maintain_order=True
        )

    @cached_property
    def answered(self) -> pl.DataFrame:
        """The cells on the axis with a P."""
        return with_p(self.drawn)

    @property
    def places(self) -> int:
        """How many values of x have an answer."""
        return self.answered[f"at:{self.x}"].n_unique()

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The mechanisms in the order of the store."""
        return tuple(self.group.answered["mechanism"].unique(maintain_order=True))

    @property
    def log(self) -> bool:
        """Whether the axis is logarithmic."""
        return is_log(self.answered[f"at:{self.x}"])


def groups(stored: StoredCells) -> list[Group]:
    """Every construction of every part with a cell that has an answer."""
    found, start = list[Group](), 0
    counted = stored.cells.group_by("part", "construction", maintain_order=True).len()
    for part, name, height in counted.iter_rows():
        found.append(Group(str(part), str(name), stored.cells.slice(start, height), stored.names))
        start += height
    return [group for group in found if not group.answered.is_empty()]


def with_p(cells: pl.DataFrame) -> pl.DataFrame:
    """The cells that have a P; no copy is made where all do."""
    known = cells["p"].is_not_null()
    return cells if known.all() else cells.filter(known)


def is_log(values: pl.Series) -> bool:
    """Whether positive values span many decades.

    >>> is_log(pl.Series([1.0, 1000.0])), is_log(pl.Series([0.0, 1000.0]))
    (True, False)
    """
    low, high = float(values.min()), float(values.max())  # type: ignore[arg-type]
    return low > 0 and low * MANY_DECADES <= high
