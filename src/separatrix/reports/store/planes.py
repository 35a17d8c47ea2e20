"""P over two parameters, as the maps of `separatrix map` look."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from separatrix.maps import Axis, Span
from separatrix.numbers import parse_exact
from separatrix.reports.drawing import INK
from separatrix.reports.drawing import plot as empty_plot
from separatrix.reports.maps.heatmap import contour
from separatrix.reports.markup import Section
from separatrix.reports.store.groups import Group, is_log
from separatrix.reports.store.pieces import count, evidence, panel, short, title, words
from separatrix.reports.store.plots import axis_label

if TYPE_CHECKING:
    import plotly.graph_objects as go

Array = np.ndarray[Any, Any]

MOST_MAPS, MOST_ACROSS = 24, 100
"""What is drawn on one page, and cells across one map."""
HOVER = "%{meta[0]}<br>%{meta[1]} ≈ %{x:.6~g}<br>%{meta[2]} ≈ %{y:.6~g}<br>P = %{z:.9~g}<extra></extra>"

INTRODUCTION = (
    "<p>P over the reader's random signs, on one scale from 0 to 1 in every map; a cell without an answer is "
    "left white. The dotted line is where P passes 1/2, drawn between cells.</p>"
)


def section(found: Sequence[Group]) -> Section | None:
    """Every map of the sweep."""
    mapped = [(group, name) for group in found for name in group.mapped]
    if not mapped:
        return None
    room, figures = MOST_MAPS, []
    for i, group in enumerate(found):
        chosen = group.mapped[:room]
        if chosen:
            figures.append(_figure(f"map-{i}", group, chosen))
            room -= len(chosen)
    left = len(mapped) - min(len(mapped), MOST_MAPS)
    more = f"<p>{count(left, 'map is')} not drawn besides; results.csv has all cells.</p>" if left else ""
    return Section("maps", "Maps", "\n".join((INTRODUCTION, *figures)) + more)


def _figure(identity: str, group: Group, chosen: Sequence[str]) -> str:
    assert group.plane is not None
    x, y = (_axis(group, name) for name in group.plane)
    panels = "".join(
        panel(f"{identity}-{i}", short(name), interactive(x, y, values(group, name, x, y), name))
        for i, name in enumerate(chosen)
    )
    heading = title(group, f"P over {short(x.name)} and {short(y.name)}")
    said = " ".join(_sentences(group, chosen, x, y))
    columns = min(len(chosen), 2)
    return (
        f'<section class="one">{heading}<p class="said">{said}</p>'
        f'<div class="panels columns-{columns}">{panels}</div></section>'
    )


def _axis(group: Group, name: str) -> Axis:
    """The values a parameter takes, thinned where there are too many to draw."""
    known = group.answered.filter(
        pl.col("mechanism").is_in(list(group.mapped)), pl.col(f"at:{name}").is_not_null()
    )
    texts = known.unique(f"at:{name}", keep="first").sort(f"at:{name}")[f"is:{name}"].to_list()
    every = -(-len(texts) // MOST_ACROSS)
    exact: tuple[Fraction, ...] = tuple(parse_exact(text) for text in texts[::every])
    return Axis(Span(name, exact[0], exact[-1], False, is_log(known[f"at:{name}"]), ""), exact)


def values(group: Group, mechanism: str, x: Axis, y: Axis) -> Array:
    """P in rows of y and columns of x: the exact one where there is one, else the mean of the sampled."""
    at = (f"at:{x.name}", f"at:{y.name}")
    exact = pl.col("kind") != "sampled"
    known = (
        group.answered.filter(pl.col("mechanism") == mechanism)
        .drop_nulls(at)
        .group_by(at)
        .agg(p=pl.coalesce(pl.col("p").filter(exact).first(), pl.col("p").mean()))
    )
    across, up = ({value: i for i, value in enumerate(axis.floats.tolist())} for axis in (x, y))
    found = np.full((len(up), len(across)), np.nan)
    for a, b, p in known.select(*at, "p").iter_rows():
        if a in across and b in up:
            found[up[b], across[a]] = p
    return found


def interactive(x: Axis, y: Axis, found: Array, mechanism: str) -> go.Figure:
    """One map."""
    import plotly.graph_objects as go

    figure = empty_plot(axis_label(x.name), axis_label(y.name), 420, xaxis=_scale(x), yaxis=_scale(y))
    figure.add_trace(
        go.Heatmap(
            x=x.floats,
            y=y.floats,
            z=found,
            meta=[short(mechanism), short(x.name), short(y.name)],
            zmin=0,
            zmax=1,
            colorscale="Cividis",
            colorbar={
                "title": {"text": "P[distinguishes]", "side": "right", "font": {"size": 13}},
                "tickfont": {"size": 12},
                "thickness": 12,
                "outlinewidth": 0,
            },
            hovertemplate=HOVER,
        )
    )
    pieces = contour(x, y, found - 0.5)
    for line in ({"color": INK, "width": 4}, {"color": "white", "width": 2, "dash": "2px,3px"}):
        for across, up in pieces:
            figure.add_trace(go.Scatter(x=across, y=up, mode="lines", line=line, hoverinfo="skip"))
    return figure


def _scale(axis: Axis) -> dict[str, Any]:
    """From end to end, with the outer cells whole: there may be few."""
    at = np.log10(axis.floats) if axis.log else axis.floats
    ends = [float(at[0] - (at[1] - at[0]) / 2), float(at[-1] + (at[-1] - at[-2]) / 2)]
    return {"type": "log" if axis.log else "linear", "range": ends, "showgrid": False}


def _sentences(group: Group, chosen: Sequence[str], x: Axis, y: Axis) -> list[str]:
    cells = group.cells.filter(pl.col("mechanism").is_in(list(chosen)))
    said = [f"Fixed: {words(group.fixed)}."] if group.fixed else []
    said.append(f"P: {evidence(cells)}.")
    at = [f"at:{name}" for name in (x.name, y.name)]
    sampled = cells.filter(pl.col("kind") == "sampled")
    if sampled.height > sampled.select("mechanism", *at).n_unique():
        said.append("Where several seeds were drawn, their mean is shown.")
    full = [cells.filter(pl.col("p").is_not_null())[name].drop_nulls().n_unique() for name in at]
    if full != [len(x.values), len(y.values)]:
        said.append(
            f"Thinned: {len(x.values)} × {len(y.values)} of {full[0]:,} × {full[1]:,} values are drawn; "
            "results.csv has all."
        )
    unmapped = group.answered["mechanism"].n_unique() - len(group.mapped)
    if unmapped:
        said.append(f"{count(unmapped, 'mechanism has')} too few cells here for a map.")
    return said
