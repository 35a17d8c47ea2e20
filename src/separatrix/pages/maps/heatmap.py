"""Values over a plane of two parameters: colours, and the lines that are drawn over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from separatrix.analysis.maps import PROBABILITIES, QUANTITIES, Layer, Map
from separatrix.core.numbers.formats import SIGNIFICANT_BITS, TORCH_NAMES
from separatrix.core.parameters.ranges import Axis
from separatrix.pages.commands import number
from separatrix.pages.drawing import DARK, INK, Key, plot

if TYPE_CHECKING:
    import plotly.graph_objects as go

Array = np.ndarray[Any, Any]
Line = list[tuple[Array, Array]]
"""In pieces, each with its x and its y."""

MANY_DECADES = 1e3
"""A margin that spans more than this factor is coloured by its logarithm."""
UNITS = {"a0", "a1", "b", "c", "r_Q"}
"""Parameters that are counted in units of √(log n)."""


FORMAT_LINES = {f"{TORCH_NAMES[name]}, {bits} bits": bits for name, bits in SIGNIFICANT_BITS.items()}
"""The lines over a map of bits, past which a number format has too few of them."""
FORMAT_DASHES = dict(zip(FORMAT_LINES, ("2px,3px", "7px,3px", "11px,3px,2px,3px", "solid"), strict=True))


EVEN, AROUND_ZERO = COLOURS = ("cividis", "RdBu")
"""Scales that the colour-blind can read: from little to much, and from less through none to more."""


@dataclass(frozen=True)
class ColourScale:
    """What colours stand for, the same for every panel."""

    label: str
    low: float
    high: float
    colours: str
    log: bool = False

    def shade(self, values: Array) -> Array:
        """The numbers that are coloured; what is not finite has no colour."""
        with np.errstate(divide="ignore", invalid="ignore"):
            shown = np.log10(values) if self.log else values
        return np.where(np.isfinite(shown), shown, np.nan)


SOLID = 0.05
"""Where probabilities differ by less, one colour would be all there is to see."""


def drawn(found: Map, layer: Layer) -> tuple[Array, ColourScale]:
    """What a panel shows, and its colours: the margin where a probability is the same nearly everywhere."""
    if found.quantity in PROBABILITIES and not found.difference and layer.margin is not None:
        shades = margin_instead(layer.values, layer.margin)
        if shades is not None:
            return layer.margin, shades
    return layer.values, scale(found)


def margin_instead(values: Array, margin: Array) -> ColourScale | None:
    """The colours of the margin, where probabilities would all have one colour and margins would not."""
    known = values[np.isfinite(values)]
    if not known.size or float(known.max() - known.min()) >= SOLID:
        return None
    shades = margin_scale(margin)
    varies = float(np.nanmax(margin, initial=-np.inf)) > float(np.nanmin(margin, initial=np.inf))
    return shades if varies else None


def margin_scale(margin: Array) -> ColourScale | None:
    """Margins, by their logarithm where they span decades; None where none is positive."""
    known = margin[np.isfinite(margin) & (margin > 0)]
    if not known.size:
        return None
    low, high = float(known.min()), float(known.max())
    if high > MANY_DECADES * low:
        return ColourScale("log₁₀ of the margin", float(np.log10(low)), float(np.log10(high)), EVEN, True)
    return ColourScale(QUANTITIES["margin"], low, high if high > low else low + 1, EVEN)


def panel_title(found: Map, layer: Layer) -> str:
    """The mechanism, and what is to be said of it where another quantity than that of the map is shown."""
    if drawn(found, layer)[0] is layer.values:
        return layer.mechanism
    values = layer.values[np.isfinite(layer.values)]
    return f"{layer.mechanism}, margin ({bound(float(values.min()), float(values.max()))})"


def bound(low: float, high: float) -> str:
    """What can be said of every P of a panel that would have one colour."""
    if low == high:
        return f"P = {number(high, 2)}"
    return f"P ≤ {number(high, 2)}" if high <= 0.5 else f"P ≥ {number(low, 2)}"


def scale(found: Map) -> ColourScale:
    """Probabilities from 0 to 1, differences around 0, all else from its smallest to its largest value."""
    name = QUANTITIES[found.quantity]
    values = np.concatenate([layer.values[np.isfinite(layer.values)] for layer in found.panels])
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
    if found.difference:
        reach = 1.0 if found.quantity in PROBABILITIES else max(abs(low), abs(high)) or 1.0
        return ColourScale(f"difference of {name}", -reach, reach, AROUND_ZERO)
    if found.quantity in PROBABILITIES:
        return ColourScale(name, 0.0, 1.0, EVEN)
    if found.quantity == "margin" and low > 0 and (known := margin_scale(values)) is not None:
        return known
    return ColourScale(name, low, high if high > low else low + 1, EVEN)


def lines(found: Map, layer: Layer) -> dict[str, Line]:
    """Named lines to draw over a panel.

    Where P is one half, where bits are those of a number format, the boundary that is known as a formula.
    """
    drawn = {name: contour(found.x, found.y, layer.values - level) for name, level in levels(found).items()}
    known = layer.formula
    if known is not None:
        formula, values = known
        drawn[f"{formula.formula} {formula.tag}"] = contour(found.x, found.y, values)
    return {name: each for name, each in drawn.items() if each}


def levels(found: Map) -> dict[str, float]:
    """The values of the quantity at which a line is drawn, by its name."""
    if found.difference:
        return {}
    if found.quantity in PROBABILITIES:
        return {"P = 1/2": 0.5}
    return {name: float(bits) for name, bits in FORMAT_LINES.items()} if found.quantity == "bits" else {}


def contour(x: Axis, y: Axis, values: Array) -> Line:
    """The zero line of `values` over the plane, in pieces."""
    from matplotlib.figure import Figure

    values = np.where(np.isfinite(values), values, np.nan)
    if not (np.nanmin(values, initial=0) < 0 < np.nanmax(values, initial=0)):
        return []
    across, up = (np.log10(axis.floats) if axis.log else axis.floats for axis in (x, y))
    found = Figure().subplots().contour(across, up, np.ma.masked_invalid(values), levels=[0])
    pieces = [np.asarray(piece) for piece in found.allsegs[0] if len(piece) > 1]
    back = [(lambda v: 10**v) if axis.log else (lambda v: v) for axis in (x, y)]
    return [(back[0](piece[:, 0]), back[1](piece[:, 1])) for piece in pieces]


def axis_label(name: str) -> str:
    """A parameter and what it is counted in."""
    return f"{name}, in units of √(log n)" if name in UNITS else name


def heatmap(
    x: Axis,
    y: Axis,
    values: Array,
    scale: ColourScale,
    hover: str,
    lines: Mapping[str, Line],
    meta: Sequence[str] | None = None,
) -> go.Figure:
    """An interactive plot of values in rows of y; `hover` is plotly's template of what a cell says."""
    import plotly.graph_objects as go

    figure = plot(axis_label(x.name), axis_label(y.name), 440, xaxis=_ends(x), yaxis=_ends(y))
    figure.add_trace(
        go.Heatmap(
            x=x.floats,
            y=y.floats,
            z=_compact(scale.shade(values)),
            meta=meta,
            zmin=scale.low,
            zmax=scale.high,
            colorscale=scale.colours,
            colorbar={
                "title": {"text": scale.label, "side": "right", "font": {"size": 13}},
                "tickfont": {"size": 12},
                "thickness": 12,
                "outlinewidth": 0,
            },
            hovertemplate=hover,
        )
    )
    for name, pieces in lines.items():
        across, up = (_joined([piece[i] for piece in pieces]) for i in (0, 1))
        for line in ({"color": INK, "width": 4}, {"color": "white", "width": 2, "dash": dash(name)}):
            figure.add_trace(go.Scatter(x=across, y=up, mode="lines", line=line, hoverinfo="skip"))
    for name, (x_at, y_at) in written(lines).items():
        figure.add_annotation(
            x=np.log10(x_at) if x.log else x_at,
            y=np.log10(y_at) if y.log else y_at,
            text=name,
            showarrow=False,
            font={"size": 12, "color": "#ffffff"},
            bgcolor=INK,
            borderpad=2,
        )
    return figure


def written(lines: Mapping[str, Line]) -> dict[str, tuple[float, float]]:
    """Where the names of number formats stand on their lines: on the longest piece, each farther along."""
    found = {}
    for place, name in enumerate(FORMAT_LINES, 1):
        if name in lines:
            across, up = max(lines[name], key=lambda piece: len(piece[0]))
            at = place * len(across) // (len(FORMAT_LINES) + 1)
            found[name.partition(",")[0]] = float(across[at]), float(up[at])
    return found


def interactive(found: Map, layer: Layer) -> go.Figure:
    """The panel of one mechanism."""
    values, shades = drawn(found, layer)
    names = [f"{axis.name} asked for" if _is_asked(found, axis) else axis.name for axis in (found.x, found.y)]
    used = "n used = %{customdata}<br>" if found.grid.has_rounded_lengths else ""
    hover = (
        f"{names[0]} ≈ %{{x:.6~g}}<br>{names[1]} ≈ %{{y:.6~g}}<br>"
        f"{used}{shades.label} = %{{z:.6~g}}<extra></extra>"
    )
    return heatmap(found.x, found.y, values, shades, hover, lines(found, layer))


def _is_asked(found: Map, axis: Axis) -> bool:
    """Whether the axis has n as it was asked for, which is not the n of every cell."""
    return axis.name == "n" and found.grid.has_rounded_lengths


def _ends(axis: Axis) -> dict[str, Any]:
    """From end to end, with the outer cells whole: there may be few."""
    at = np.log10(axis.floats) if axis.log else axis.floats
    half = np.diff(at)[[0, -1]] / 2
    ends = [float(at[0] - half[0]), float(at[-1] + half[1])]
    return {"type": "log" if axis.log else "linear", "range": ends, "showgrid": False}


def _compact(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """float32 where that keeps every number's size, which halves the page."""
    with np.errstate(over="ignore", under="ignore"):
        small = values.astype(np.float32)
    kept = np.isfinite(small) == np.isfinite(values)
    return small if kept.all() and ((small == 0) == (values == 0)).all() else values


def _joined(pieces: Sequence[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """Pieces of a line as one, with gaps between them."""
    gap = np.array([np.nan])
    return np.concatenate([part for piece in pieces for part in (piece, gap)])


def keys(found: Map) -> tuple[Key, ...]:
    """The legend of the lines over all panels."""
    names = dict.fromkeys(name for layer in found.panels for name in lines(found, layer))
    return tuple(Key(name, "#ffffff", dash(name), width=2.2, behind=DARK) for name in names)


def dash(name: str) -> str:
    """Where P is one half the line is dotted; a formula is solid; number formats have a dash each."""
    if name in FORMAT_DASHES:
        return FORMAT_DASHES[name]
    return "2px,3px" if name.startswith("P =") else "solid"
