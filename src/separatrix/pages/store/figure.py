"""What the page shows of one group: plots in rows, or grids of verdicts where there are too many lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from separatrix.pages.drawing import Key

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from separatrix.pages.store.groups import Group


@dataclass(frozen=True)
class ShownVerdict:
    """The verdict in a cell of a grid."""

    word: str
    rest: str
    """What stands behind the letter of the verdict."""
    told: str
    """What pointing at the cell says."""


@dataclass(frozen=True)
class VerdictGrid:
    """Verdicts by row and column; None where there is no cell."""

    corner: str
    head: Sequence[str]
    rows: Sequence[tuple[str, Sequence[ShownVerdict | None]]]
    note: str = ""
    """What was left out."""


@dataclass(frozen=True)
class FigureRow:
    """Plots side by side, each with its heading, or one grid."""

    title: str = ""
    plots: Sequence[tuple[str, go.Figure]] = ()
    grid: VerdictGrid | None = None


@dataclass(frozen=True)
class Figure:
    """The figure of one group, row by row."""

    group: Group
    what: str
    finding: str
    """Who tells D0 from D1 in all of it, and who in none."""
    sentences: Sequence[str]
    rows: Sequence[FigureRow]
    keys: Sequence[Key] = ()
    columns: int = 2
