"""Figures of a group of cells: charts or maps in rows, or grids of verdicts for too many lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from separatrix.pages.charts import Chart

if TYPE_CHECKING:
    from separatrix.pages.looks import Look
    from separatrix.pages.maps.figure import MapFigure
    from separatrix.pages.store.groups import Group


@dataclass(frozen=True)
class GridCell:
    """The verdict in a cell of a grid."""

    word: str
    text: str
    """The text after the letter of the verdict."""
    description: str
    """The text at the pointer."""


@dataclass(frozen=True)
class VerdictGrid:
    """Verdicts by row and column; None where there is no cell."""

    corner: str
    head: Sequence[str]
    rows: Sequence[tuple[str, Sequence[GridCell | None]]]
    note: str = ""
    """What the grid leaves out."""


@dataclass(frozen=True)
class FigureRow:
    """Charts or maps side by side, or one grid."""

    title: str = ""
    plots: Sequence[Chart | MapFigure] = ()
    grid: VerdictGrid | None = None


@dataclass(frozen=True)
class GroupFigure:
    """The figure of one group, row by row."""

    group: Group
    subject: str
    finding: str
    """The mechanisms that distinguish or are blind in all of it."""
    sentences: Sequence[str]
    rows: Sequence[FigureRow]
    keys: Sequence[Look] = ()
    columns: int = 2
