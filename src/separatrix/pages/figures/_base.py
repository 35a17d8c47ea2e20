"""A figure of the reproduction: one description, drawn on the page and for paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from separatrix.pages.charts import Chart, draw_charts, merge_keys
from separatrix.pages.commands import Command
from separatrix.pages.looks import LOOKS, Look
from separatrix.pages.maps.figure import MapFigure
from separatrix.pages.maps.picture import draw_map
from separatrix.pages.paper import Figure

PROBABILITY = "P(tells apart)"


@dataclass(frozen=True)
class FigurePanel:
    """One chart, or a map with its panels, and the commands for its numbers."""

    title: str
    plot: Chart | MapFigure
    commands: tuple[Command, ...] = ()


@dataclass(frozen=True)
class PaperFigure:
    """A figure with its caption and the commands that print its numbers."""

    name: str
    """The stem of its files."""
    title: str
    caption: tuple[str, ...]
    """Paragraphs of plain text."""
    commands: tuple[Command, ...]
    panels: tuple[FigurePanel, ...]
    size: tuple[float, float] = (7.2, 3.4)
    """Inches."""
    columns: int = 1
    """Panels side by side."""
    ratios: Sequence[float] | None = None
    """Widths of the columns on paper."""
    legend: tuple[Look, ...] | None = None
    """Entries of the legend, where they are not those of the series."""

    @property
    def keys(self) -> tuple[Look, ...]:
        """The entries of the legend; the panels of a map have their own."""
        return merge_keys(self._charts) if self.legend is None else self.legend

    @property
    def _charts(self) -> list[Chart]:
        return [panel.plot for panel in self.panels if isinstance(panel.plot, Chart)]

    def draw(self) -> Figure:
        """Return the figure for paper, to be drawn in the style of paper."""
        plot = self.panels[0].plot
        if isinstance(plot, MapFigure):
            return draw_map(plot)
        return draw_charts(self._charts, self.size, self.columns, self.ratios, self.keys)


def mechanism_look(name: str, **changes: object) -> Look:
    """Return the look of a mechanism of the paper with some changes."""
    return replace(LOOKS[name], **changes)  # type: ignore[arg-type]
