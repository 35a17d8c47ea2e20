"""What a figure is once it is drawn, and the look all figures share."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any
from zlib import crc32

from separatrix.pages.commands import Command

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from matplotlib.figure import Figure

INK, FAINT, GRID = "#222222", "#767676", "#e4e4e4"
DARK = "#31446b"
"""Of the map's colours: what white lines are shown on in a legend."""

STATIC_STYLE: Mapping[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 8.0,
    "axes.titlesize": 8.5,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.labelsize": 8.0,
    "axes.edgecolor": FAINT,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "text.color": INK,
    "axes.labelcolor": INK,
    "legend.frameon": False,
    "legend.fontsize": 7.5,
    "figure.constrained_layout.use": True,
    "savefig.dpi": 220,
    "pdf.fonttype": 42,
    "svg.hashsalt": "separatrix",
}
"""Full text width of a paper is about 7 inches: at that width 8 points are 8 points."""


@contextmanager
def static_style() -> Iterator[None]:
    """The style of what is drawn and saved inside, whatever a matplotlibrc says; outside nothing changes."""
    from matplotlib import rc_context, rcdefaults, rcParams

    style: Any = dict(STATIC_STYLE)
    with rc_context():
        rcdefaults()
        rcParams.update(style)
        yield


PICTURES = (".pdf", ".png", ".svg")
"""Endings of the files that pictures are written to."""
UNDATED: Mapping[str, Mapping[str, None]] = {
    "pdf": {"CreationDate": None},
    "png": {"Software": None},
    "svg": {"Date": None},
}


def saved(figure: Figure, kind: str, **options: Any) -> bytes:
    """A picture as PNG, PDF or SVG, without a date in it, so that the same run gives the same file."""
    buffer = io.BytesIO()
    with static_style():
        figure.savefig(buffer, format=kind, metadata=dict(UNDATED[kind]), **options)
    return buffer.getvalue()


@dataclass(frozen=True)
class Key:
    """How something is drawn on the page, and its entry in the legend."""

    label: str
    colour: str
    dash: str = "solid"
    """`none` for markers alone."""
    symbol: str = ""
    width: float = 2.4
    behind: str = ""
    """The colour it is drawn on, where that is not the page's."""


@dataclass(frozen=True)
class Look(Key):
    """How a mechanism is drawn: colour of Okabe and Ito, and a line and a marker of its own, on paper too."""

    line: Any = "-"
    marker: str = "o"


LOOKS: Mapping[str, Look] = {
    "softmax": Look("softmax", "#0072B2", "solid", "circle"),
    "linear": Look("linear", "#D55E00", "8px,4px", "square", line=(0, (5, 2)), marker="s"),
    "power:beta=4": Look(
        "power, β = 4",
        "#009E73",
        "8px,3px,2px,3px",
        "triangle-up",
        line=(0, (5, 1.5, 1, 1.5)),
        marker="^",
    ),
    "taylor:order=2": Look(
        "Taylor, order 2", "#CC79A7", "3px,3px", "diamond", line=(0, (2, 1.2)), marker="D"
    ),
}
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Of Okabe and Ito; their yellow is lost on white."""
DASHES = ("solid", "8px,4px", "3px,3px", "8px,3px,2px,3px", "12px,4px", "2px,6px")
SYMBOLS = ("star", "cross", "triangle-down", "circle", "diamond", "square", "triangle-up")


def looks(mechanisms: Iterable[str]) -> dict[str, Key]:
    """A line and a marker for each, told apart without colour.

    A mechanism looks the same in every picture: its look follows from its name, unless another one in the
    same picture has taken it.
    """
    taken = {(look.colour, look.dash) for look in LOOKS.values()}
    free = [
        (colour, dash, SYMBOLS[(i + j) % len(SYMBOLS)])
        for (i, dash), (j, colour) in product(enumerate(DASHES), enumerate(COLOURS))
        if (colour, dash) not in taken
    ]
    free.sort(key=lambda each: each[0] in {look.colour for look in LOOKS.values()} and each[1] == "solid")
    found: dict[str, Key] = {name: replace(look, label=name) for name, look in LOOKS.items()}
    used: set[int] = set()
    for name in dict.fromkeys(mechanisms):
        if name in found:
            continue
        start = crc32(name.encode())
        places = [(start + step) % len(free) for step in range(len(free))]
        place = next((each for each in places if each not in used), places[0])
        used.add(place)
        found[name] = Key(name, *free[place])
    return found


MARKERS = {
    "circle": "o",
    "square": "s",
    "diamond": "D",
    "triangle-up": "^",
    "triangle-down": "v",
    "cross": "P",
    "star": "*",
}
"""The symbols of pages as matplotlib has them."""


def on_paper(look: Key) -> dict[str, Any]:
    """The look of a mechanism on pages, as matplotlib has it."""
    dash: Any = "-"
    if look.dash != "solid":
        dash = 0, tuple(0.5 * float(part.removesuffix("px")) for part in look.dash.split(","))
    return {"color": look.colour, "linestyle": dash, "marker": MARKERS[look.symbol]}


@dataclass(frozen=True)
class Panel:
    """One interactive plot with the commands for its own numbers."""

    title: str
    plot: go.Figure
    commands: tuple[Command, ...] = ()


@dataclass(frozen=True)
class Drawn:
    """A figure, ready for the page and for paper."""

    name: str
    """The stem of its files."""
    title: str
    caption: tuple[str, ...]
    """Paragraphs of plain text."""
    commands: tuple[Command, ...]
    static: Figure
    panels: tuple[Panel, ...]
    keys: tuple[Key, ...] = ()
    columns: int = 2
    """Panels side by side on a wide page."""

    @property
    def all_commands(self) -> tuple[Command, ...]:
        """Those of the figure and of its panels."""
        return self.commands + tuple(command for panel in self.panels for command in panel.commands)


def mechanism_keys(*mechanisms: str, markers: bool = True) -> tuple[Key, ...]:
    """Legend entries for mechanisms."""
    found = [LOOKS[mechanism] for mechanism in mechanisms]
    return tuple(found if markers else [replace(look, symbol="") for look in found])


def plot(x: str, y: str, height: int = 320, **axes: Mapping[str, Any]) -> go.Figure:
    """An empty interactive plot with axis titles; `xaxis` and `yaxis` add to its axes."""
    import plotly.graph_objects as go

    line = {"showline": True, "linecolor": FAINT, "gridcolor": GRID, "zeroline": False, "ticks": "outside"}
    quiet = {
        "ticklen": 4,
        "tickcolor": FAINT,
        "tickfont": {"size": 12},
        "automargin": True,
        "exponentformat": "power",
    }
    return go.Figure(
        layout={
            "template": "none",
            "height": height,
            "showlegend": False,
            "font": {"family": "system-ui, sans-serif", "size": 13, "color": INK},
            "margin": {"l": 56, "r": 16, "t": 12, "b": 48},
            "hoverlabel": {"font": {"family": "system-ui, sans-serif"}},
            "xaxis": {"title": {"text": x, "font": {"size": 13}}, **line, **quiet, **axes.get("xaxis", {})},
            "yaxis": {
                "title": {"text": y, "font": {"size": 13}, "standoff": 12},
                **line,
                **quiet,
                **axes.get("yaxis", {}),
            },
        }
    )


def draw_line(
    figure: go.Figure, x: Any, y: Any, key: Key, hover: str, width: float = 2.6, **more: Any
) -> None:
    """Add a line to an interactive plot; `hover` is said of the place that is pointed at."""
    line = {"color": key.colour, "dash": key.dash, "width": width}
    figure.add_scatter(x=x, y=y, mode="lines", line=line, hovertemplate=f"{hover}<extra></extra>", **more)


WIDE = "wide"
"""The name of words that a narrow plot leaves out, since its legend has them too; plots.js knows it."""


def note(figure: go.Figure, x: Any, y: Any, text: str, colour: str = FAINT, **more: Any) -> None:
    """Words in an interactive plot, at a place in the units of its axes unless `xref` and `yref` differ.

    With `name=WIDE` they are left out where the plot is narrow.
    """
    shown = text.replace("$a_0$", "a<sub>0</sub>").replace("$a_1$", "a<sub>1</sub>").replace("$c$", "c")
    style = {"showarrow": False, "borderpad": 0, "font": {"size": 12, "color": colour}, "align": "left"}
    figure.add_annotation(x=x, y=y, text=shown.replace("\n", "<br>"), **{**style, **more})


def level(figure: go.Figure, y: float, text: str, left: bool = False) -> None:
    """A dotted line at height y of a logarithmic axis, labelled at its right or left end."""
    figure.add_hline(y, line={"color": FAINT, "width": 1, "dash": "2px,2px"}, layer="below")
    figure.add_annotation(
        text=text,
        x=0.01 if left else 0.99,
        xref="paper",
        xanchor="left" if left else "right",
        y=math.log10(y),
        yanchor="bottom",
        showarrow=False,
        borderpad=0,
        font={"size": 12, "color": FAINT},
    )
