"""Figures of a group of cells: charts or maps in rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from separatrix.pages.charts import Chart
from separatrix.pages.looks import Look
from separatrix.pages.maps.figure import MapFigure
from separatrix.pages.store.groups import Group


@dataclass(frozen=True)
class FigureRow:
    """Charts or maps side by side."""

    title: str = ""
    plots: Sequence[Chart | MapFigure] = ()


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
