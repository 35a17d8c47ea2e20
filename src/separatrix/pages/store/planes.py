"""P over two parameters, as maps."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import polars as pl

from separatrix.core.numbers import parse_exact
from separatrix.pages.commands import spell_value
from separatrix.pages.maps.figure import MapFigure, MapPanel, PlaneAxis
from separatrix.pages.maps.scales import Array, axis_label
from separatrix.pages.pages import Section, render_section, shorten_text
from separatrix.pages.store.figures import FigureRow, GroupFigure
from separatrix.pages.store.groups import Group, is_log
from separatrix.pages.store.texts import count_evidence, describe_verdicts, join_parameters, spell_count

MAX_MAPS, MAX_SIDE = 24, 100
"""Maps on one page, and cells along a side of a map."""
LEVELS = {"P = 1/2": 0.5}


def maps_section(groups: Sequence[Group]) -> Section | None:
    """Return the maps of a sweep; None where there are none."""
    count = sum(len(group.mapped_mechanisms) for group in groups)
    if not count:
        return None
    room, figures = MAX_MAPS, []
    for group in groups:
        mechanisms = group.mapped_mechanisms[:room]
        if mechanisms:
            figures.append(_group_figure(group, mechanisms))
            room -= len(mechanisms)
    left = f"{spell_count(count - MAX_MAPS, 'map is')} not drawn besides; results.csv has all cells."
    return render_section(
        "maps", "Maps", "sweep_figures.html.j2", prefix="map", figures=figures, notes=[left] if count > MAX_MAPS else []
    )


def _group_figure(group: Group, mechanisms: Sequence[str]) -> GroupFigure:
    figure = make_map(group, mechanisms)
    cells = group.cells.filter(pl.col("mechanism").is_in(list(mechanisms)))
    return GroupFigure(
        group=group,
        subject=f"P(tells apart) over {shorten_text(figure.x.name)} and {shorten_text(figure.y.name)}",
        finding=describe_verdicts(cells),
        sentences=_sentences(group, cells, figure),
        rows=[FigureRow(plots=[figure])],
        columns=1,
    )


def make_map(group: Group, mechanisms: Sequence[str]) -> MapFigure:
    """Return the map of a group with a panel for each mechanism."""
    assert group.plane is not None
    x, y = (_axis(group, name) for name in group.plane)
    panels = tuple(_panel(group, name, x, y) for name in mechanisms)
    return MapFigure(x, y, panels, LEVELS, {"title": f"P(tells apart) on {group.construction}", "place": None})


def _panel(group: Group, mechanism: str, x: PlaneAxis, y: PlaneAxis) -> MapPanel:
    probabilities, margin = (_values(group, mechanism, x, y, column) for column in ("p", "margin"))
    return MapPanel.of_probabilities(mechanism, shorten_text(mechanism, 60), probabilities, margin)


def _axis(group: Group, name: str) -> PlaneAxis:
    """Return the values that a parameter takes, thinned where there are too many to draw."""
    at = f"at:{name}"
    is_mapped = pl.col("mechanism").is_in(list(group.mapped_mechanisms))
    placed = group.answered_cells.filter(is_mapped, pl.col(at).is_not_null())
    texts = placed.unique(at, keep="first").sort(at)[f"is:{name}"].to_list()
    exact: list[Fraction] = [parse_exact(text) for text in texts[:: -(-len(texts) // MAX_SIDE)]]
    values = np.array([float(value) for value in exact])
    return PlaneAxis(name, axis_label(name), is_log(placed[at]), values, [*map(spell_value, exact)])


def _values(group: Group, mechanism: str, x: PlaneAxis, y: PlaneAxis, column: str) -> Array:
    """Return values in rows of y and columns of x: the exact one where there is one, else the mean."""
    at = (f"at:{x.name}", f"at:{y.name}")
    is_exact = pl.col("kind") != "sampled"
    values_by_place = (
        group.answered_cells.filter(pl.col("mechanism") == mechanism)
        .drop_nulls(at)
        .group_by(at)
        .agg(value=pl.coalesce(pl.col(column).filter(is_exact).first(), pl.col(column).mean()))
    )
    columns, rows = ({value: i for i, value in enumerate(axis.values.tolist())} for axis in (x, y))
    values = np.full((len(rows), len(columns)), np.nan)
    for a, b, value in values_by_place.select(*at, "value").drop_nulls().iter_rows():
        if a in columns and b in rows:
            values[rows[b], columns[a]] = value
    return values


def _sentences(group: Group, cells: pl.DataFrame, figure: MapFigure) -> list[str]:
    lines = [f"Fixed: {join_parameters(group.fixed_parameters)}."] if group.fixed_parameters else []
    lines.append(f"P: {count_evidence(cells)}.")
    at = [f"at:{axis.name}" for axis in (figure.x, figure.y)]
    sampled_cells = cells.filter(pl.col("kind") == "sampled")
    if sampled_cells.height > sampled_cells.select("mechanism", *at).n_unique():
        lines.append("Where several seeds were drawn, their mean is shown.")
    across, up = len(figure.x.values), len(figure.y.values)
    full = [cells.filter(pl.col("p").is_not_null())[name].drop_nulls().n_unique() for name in at]
    if full != [across, up]:
        lines.append(f"Thinned: {across} × {up} of {full[0]:,} × {full[1]:,} values are drawn; results.csv has all.")
    unmapped_count = group.answered_cells["mechanism"].n_unique() - len(group.mapped_mechanisms)
    if unmapped_count:
        lines.append(f"{spell_count(unmapped_count, 'mechanism has')} too few cells here for a map.")
    return lines
