"""P over two parameters, as the maps of `separatrix map` look."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from html import escape

import numpy as np
import polars as pl

from separatrix.core.numbers import parse_exact
from separatrix.core.parameters.ranges import Axis, Span
from separatrix.pages import pages
from separatrix.pages.maps.heatmap import (
    Array,
    ColourScale,
    bound,
    contour,
    heatmap,
    margin_instead,
)
from separatrix.pages.pages import short
from separatrix.pages.store.figure import Figure, FigureRow
from separatrix.pages.store.groups import Group, is_log
from separatrix.pages.store.wording import count, evidence, finding, words
from separatrix.pages.verdict_words import MARKED

MOST_MAPS, MOST_ACROSS = 24, 100
"""What is drawn on one page, and cells across one map."""
HOVER = (
    "%{meta[0]}<br>%{meta[1]} ≈ %{x:.6~g}<br>%{meta[2]} ≈ %{y:.6~g}<br>%{meta[3]} = %{z:.9~g}<extra></extra>"
)
SCALE = ColourScale("P(tells apart)", 0, 1, "cividis")

INTRODUCTION = (
    "P(tells apart) over the reader's random signs, on one scale from 0 to 1; where it is nearly the same "
    "all over a map, the margin is shown instead. A cell without an answer is left white. The dotted line is "
    "where P passes 1/2, drawn between cells."
)


def section(found: Sequence[Group]) -> pages.Section | None:
    """Every map of the sweep."""
    mapped = sum(len(group.mapped) for group in found)
    if not mapped:
        return None
    room, figures = MOST_MAPS, []
    for group in found:
        chosen = group.mapped[:room]
        if chosen:
            figures.append(_figure(group, chosen))
            room -= len(chosen)
    left = mapped - min(mapped, MOST_MAPS)
    return pages.section(
        "maps",
        "Maps",
        "sweep_figures.html.j2",
        kind="map",
        introduction=INTRODUCTION,
        figures=figures,
        notes=[f"{count(left, 'map is')} not drawn besides; results.csv has all cells."] if left else [],
        marks=MARKED,
    )


def _figure(group: Group, chosen: Sequence[str]) -> Figure:
    assert group.plane is not None
    x, y = (axis_of(group, name) for name in group.plane)
    plots = []
    for name in chosen:
        found = values(group, name, x, y)
        half = contour(x, y, found - 0.5)
        lines = {"P = 1/2": half} if half else {}
        margin = values(group, name, x, y, "margin")
        title, shown, scale = name, found, SCALE
        if (known := margin_instead(found, margin)) is not None:
            low, high = float(np.nanmin(found)), float(np.nanmax(found))
            title, shown, scale = f"{name}, margin ({bound(low, high)})", margin, known
        meta = [escape(short(text)) for text in (name, x.name, y.name, scale.label)]
        plots.append((title, heatmap(x, y, shown, scale, HOVER, lines, meta)))
    return Figure(
        group=group,
        what=f"P(tells apart) over {short(x.name)} and {short(y.name)}",
        finding=finding(group.cells.filter(pl.col("mechanism").is_in(list(chosen)))),
        sentences=_sentences(group, chosen, x, y),
        rows=[FigureRow(plots=plots)],
        columns=min(len(chosen), 2),
    )


def axis_of(group: Group, name: str) -> Axis:
    """The values a parameter takes, thinned where there are too many to draw."""
    known = group.answered.filter(
        pl.col("mechanism").is_in(list(group.mapped)), pl.col(f"at:{name}").is_not_null()
    )
    texts = known.unique(f"at:{name}", keep="first").sort(f"at:{name}")[f"is:{name}"].to_list()
    every = -(-len(texts) // MOST_ACROSS)
    exact: tuple[Fraction, ...] = tuple(parse_exact(text) for text in texts[::every])
    return Axis(Span(name, exact[0], exact[-1], False, is_log(known[f"at:{name}"]), ""), exact)


def values(group: Group, mechanism: str, x: Axis, y: Axis, of: str = "p") -> Array:
    """P in rows of y and columns of x: the exact one where there is one, else the mean of the sampled."""
    at = (f"at:{x.name}", f"at:{y.name}")
    exact = pl.col("kind") != "sampled"
    known = (
        group.answered.filter(pl.col("mechanism") == mechanism)
        .drop_nulls(at)
        .group_by(at)
        .agg(value=pl.coalesce(pl.col(of).filter(exact).first(), pl.col(of).mean()))
    )
    across, up = ({value: i for i, value in enumerate(axis.floats.tolist())} for axis in (x, y))
    found = np.full((len(up), len(across)), np.nan)
    for a, b, value in known.select(*at, "value").drop_nulls().iter_rows():
        if a in across and b in up:
            found[up[b], across[a]] = value
    return found


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
