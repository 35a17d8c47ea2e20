"""Line charts: one description that pages draw with uPlot and pictures with matplotlib."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from separatrix.pages.looks import FAINT, Look, print_colour
from separatrix.pages.pages import render_page
from separatrix.pages.paper import Axes, Figure, new_figure, paper_style, save_small_png
from separatrix.pages.plots.registry import SIZE

PIXEL = 0.75
"""Points in a picture for a pixel on a page."""
MAX_LEGEND_COLUMNS = 4
Numbers = Sequence[float | None]


@dataclass(frozen=True)
class ChartAxis:
    """An axis of a chart."""

    label: str
    log: bool = False
    range: tuple[float, float] | None = None
    """Its ends; the extent of the data where there are none."""
    ticks: Sequence[tuple[float, str]] | None = None
    """Values and their texts; round numbers where there are none."""
    is_category: bool = False
    """Whether ticks are names of things rather than numbers."""


@dataclass(frozen=True)
class Series:
    """Points with a line, symbols or both; `name` is read out with a value, `look.label` is in the legend."""

    look: Look
    x: Sequence[float]
    y: Numbers
    name: str = ""
    low: Numbers | None = None
    high: Numbers | None = None
    """The interval of each point, drawn as a bar."""
    is_band: bool = False
    """Whether intervals are drawn as one area."""
    texts: Sequence[str] | None = None
    """A remark on each point."""
    is_silent: bool = False
    """Whether points are not read out."""
    symbol_size: float | None = None

    @classmethod
    def through(cls, points: Iterable[tuple[float, float | None]], look: Look, name: str = "") -> Series:
        """Return a series through points `(x, y)`."""
        pairs = list(points)
        return cls(look, [x for x, _ in pairs], [y for _, y in pairs], name)

    def as_json(self) -> dict[str, Any]:
        """Return the series for chart.js."""
        look, numbers = self.look, {"x": self.x, "y": self.y, "low": self.low, "high": self.high}
        line = {"colour": look.colour, "dash": look.dash, "width": look.width, "line": look.has_line}
        symbols = {"symbol": look.path, "filled": look.is_filled, "size": self.symbol_size}
        texts = {"name": self.name or look.label, "texts": self.texts, "silent": self.is_silent, "band": self.is_band}
        lists = {name: None if values is None else list(values) for name, values in numbers.items()}
        return {**texts, **line, **symbols, **lists}


@dataclass(frozen=True)
class Rule:
    """A straight line across the chart at one value of an axis, `x` or `y`."""

    axis: str
    at: float
    colour: str = FAINT
    dash: tuple[float, ...] = (2, 2)
    text: str = ""
    side: str = "right"
    """The end at which the text stands."""


@dataclass(frozen=True)
class Note:
    """A text in the chart."""

    x: float
    y: float
    text: str
    colour: str = FAINT
    align: str = "left"
    valign: str = "middle"
    dx: float = 0
    dy: float = 0
    """Pixels to the right and down."""
    inside: bool = False
    """Whether x and y are shares of the chart rather than values of its axes."""
    wide: bool = False
    """Whether narrow charts leave it out, because the legend has it, too."""


@dataclass(frozen=True)
class Chart:
    """A line chart."""

    kind: ClassVar[str] = "chart"
    """The kind of figure that the page's script draws; each has an entry module, `page-KIND.js`."""

    x: ChartAxis
    y: ChartAxis
    series: Sequence[Series]
    rules: Sequence[Rule] = ()
    notes: Sequence[Note] = ()
    height: int = 320
    title: str = ""
    """Stands above the chart in a picture; on a page a heading does."""

    @property
    def label(self) -> str:
        """What the chart shows, for screen readers."""
        return f"{self.y.label} against {self.x.label}"

    @property
    def keys(self) -> tuple[Look, ...]:
        """The entries of the legend, each once."""
        return tuple({series.look.label: series.look for series in self.series if series.look.label}.values())

    def as_json(self) -> dict[str, Any]:
        """Return the description that chart.js draws."""
        return {
            "label": self.label,
            "height": self.height,
            "x": vars(self.x),
            "y": vars(self.y),
            "series": [series.as_json() for series in self.series],
            "rules": [vars(rule) for rule in self.rules],
            "notes": [vars(note) for note in self.notes],
        }


def merge_keys(charts: Iterable[Chart]) -> tuple[Look, ...]:
    """Return the entries of a legend for several charts."""
    return tuple({key.label: key for chart in charts for key in chart.keys}.values())


def draw_chart(axes: Axes, chart: Chart) -> None:
    """Draw a chart on matplotlib axes."""
    for rule in chart.rules:
        _draw_rule(axes, rule)
    for series in chart.series:
        _draw_series(axes, series)
    for note in chart.notes:
        place: Any = {"xycoords": "axes fraction" if note.inside else "data", "textcoords": "offset points"}
        style: Any = {"ha": note.align, "va": "center" if note.valign == "middle" else note.valign, "size": 7.5}
        shift, color = (PIXEL * note.dx, -PIXEL * note.dy), print_colour(note.colour)
        axes.annotate(note.text, (note.x, note.y), shift, color=color, **place, **style)
    for axis, name in ((chart.x, "x"), (chart.y, "y")):
        axes.set(**{f"{name}scale": "log" if axis.log else "linear", f"{name}label": axis.label})
        if axis.range is not None:
            axes.set(**{f"{name}lim": axis.range})
        if axis.ticks is not None:
            axes.set(**{f"{name}ticks": [at for at, _ in axis.ticks]})
            axes.set(**{f"{name}ticklabels": [text for _, text in axis.ticks]})
            # A logarithmic axis would add minor ticks, with labels where it spans few decades.
            getattr(axes, f"{name}axis").set_ticks([], minor=True)
    if chart.title:
        axes.set_title(chart.title)


def _draw_rule(axes: Axes, rule: Rule) -> None:
    draw = axes.axvline if rule.axis == "x" else axes.axhline
    color, dash = print_colour(rule.colour), rule.dash
    draw(rule.at, color=color, lw=0.9, ls=(0, dash) if dash else "-", zorder=1)
    if rule.text:
        place = (0.01 if rule.side == "left" else 0.99, rule.at)
        transform = axes.get_yaxis_transform()
        axes.text(*place, rule.text, transform=transform, ha=rule.side, va="bottom", color=color, size=7.5)


def _draw_series(axes: Axes, series: Series) -> None:
    look, x, y = series.look, list(series.x), _gaps_as_nan(series.y)
    style: dict[str, Any] = look.paper_style()
    if series.symbol_size is not None:
        style["markersize"] *= series.symbol_size
    if series.low is not None and series.high is not None:
        low, high = _gaps_as_nan(series.low), _gaps_as_nan(series.high)
        if series.is_band:
            axes.fill_between(x, low, high, color=style["color"], alpha=0.2, linewidth=0)
        else:
            # Below the markers, which have to stay readable.
            axes.vlines(x, low, high, color=style["color"], lw=1, zorder=2)
    axes.plot(x, y, label=look.label or None, zorder=3, **style)


def _gaps_as_nan(values: Numbers) -> list[float]:
    # matplotlib breaks a line at NaN.
    return [float("nan") if value is None else value for value in values]


def draw_charts(
    charts: Sequence[Chart],
    size: tuple[float, float],
    columns: int,
    ratios: Sequence[float] | None = None,
    keys: Sequence[Look] | None = None,
) -> Figure:
    """Return a figure with charts side by side and one legend above them; call it in `paper_style`."""
    figure = new_figure(*size)
    grid = figure.subplots(-(-len(charts) // columns), columns, squeeze=False, width_ratios=ratios)
    for place, (axes, chart) in enumerate(zip(grid.flat, charts, strict=False)):
        draw_chart(axes, chart)
        # A label that the chart to the left has already would cost width.
        if place % columns and chart.y.label == charts[place - 1].y.label:
            axes.set_ylabel("")
    for axes in grid.flat[len(charts) :]:
        axes.set_visible(False)
    add_legend(figure, merge_keys(charts) if keys is None else keys)
    return figure


def chart_page(chart: Chart, **variables: Any) -> str:
    """Return the page of one chart and its numbers; `variables` are those of the template."""
    with paper_style():
        image = save_small_png(draw_charts([chart], SIZE, 1))
    return render_page("curve.html.j2", ("chart",), image=image, chart=chart, **variables)


def add_legend(figure: Figure, keys: Sequence[Look]) -> None:
    """Add a legend above a figure."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], label=key.label, **key.paper_style()) for key in keys]
    if handles:
        columns = min(MAX_LEGEND_COLUMNS, len(handles))
        figure.legend(handles=handles, loc="outside upper center", ncols=columns, handlelength=2.6)
