"""P against one parameter: lines where it is computed exactly, markers with intervals where it is sampled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import polars as pl

from separatrix.pages.charts import Chart, ChartAxis, Series
from separatrix.pages.looks import Look, choose_looks
from separatrix.pages.maps.scales import axis_label
from separatrix.pages.pages import Section, render_section, shorten_text
from separatrix.pages.store.figures import FigureRow, GroupFigure
from separatrix.pages.store.groups import Curve, Group, thin
from separatrix.pages.store.texts import count_evidence, describe_verdicts, join_parameters, spell_count

MAX_CURVES, MAX_POINTS = 40, 40_000
"""Charts on one page, and points in all of them."""
MIN_LINE_POINTS, MAX_LINE_POINTS = 20, 400
"""Points to which a line is thinned."""
MAX_SAMPLED = 60
"""Sampled cells of one mechanism in a chart."""
MAX_LINES = 12
"""Mechanisms in one chart."""
MAX_NAMED_PARTS = 6
"""Parts of the plan that one sentence names."""


def curves_section(groups: Sequence[Group]) -> Section | None:
    """Return the curves of a sweep; None where there are none."""
    all_curves = [curve for group in groups for curve in group.curves()]
    drawn_curves = all_curves[:MAX_CURVES]
    if not drawn_curves:
        return None
    looks = choose_looks(name for curve in drawn_curves for name in curve.mechanisms[:MAX_LINES])
    lines = sum(2 * len(curve.mechanisms[:MAX_LINES]) for curve in drawn_curves)
    most = max(MIN_LINE_POINTS, min(MAX_LINE_POINTS, MAX_POINTS // max(lines, 1)))
    figure_curves = groupby(drawn_curves, key=lambda curve: (curve.group.part, curve.group.construction, curve.x))
    left_count = len(all_curves) - len(drawn_curves)
    more = f"{spell_count(left_count, 'curve is')} not drawn besides; results.csv has all cells." if left_count else ""
    return render_section(
        "curves",
        "Curves",
        "sweep_figures.html.j2",
        prefix="curve",
        figures=[_figure(list(curves), looks, most) for _, curves in figure_curves],
        notes=[note for note in (more, _describe_missing(groups)) if note],
    )


def _describe_missing(groups: Sequence[Group]) -> str:
    """Return a sentence on the cells that no figure shows; empty where there are none."""
    absent = [group for group in groups if not group.mapped_mechanisms and not any(True for _ in group.curves())]
    if not absent:
        return ""
    names = [f"{shorten_text(group.part or group.construction, 60)} ({group.cells.height:,})" for group in absent]
    more = f" and {len(names) - MAX_NAMED_PARTS} more" if len(names) > MAX_NAMED_PARTS else ""
    return (
        "In no curve and no map, since no parameter takes three values there while the others stay: the "
        f"cells of {', '.join(names[:MAX_NAMED_PARTS])}{more}. They are in the comparison."
    )


def _figure(curves: Sequence[Curve], looks: Mapping[str, Look], most: int) -> GroupFigure:
    """Return the figure of one parameter of one group, with a row for each choice of the others."""
    first = curves[0]
    cells = pl.concat([curve.cells for curve in curves])
    return GroupFigure(
        group=first.group,
        subject=f"P(tells apart) against {shorten_text(first.x)}",
        finding=describe_verdicts(cells, f"at every {shorten_text(first.x)} shown"),
        sentences=list(_sentences(curves, cells, most)),
        rows=[FigureRow(join_parameters(curve.choice), make_charts(curve, looks, most)) for curve in curves],
        keys=[_key(looks[name], kinds) for name, kinds in _kinds(curves).items()],
    )


def _key(look: Look, kinds: set[str]) -> Look:
    """Return a sample of the line, of the marker, or of both, as P is known."""
    symbol = look.symbol if "sampled" in kinds else ""
    return replace(look, has_line=kinds != {"sampled"}, symbol=symbol)


def _kinds(curves: Sequence[Curve]) -> dict[str, set[str]]:
    """Return the kinds of evidence of each mechanism."""
    pairs = pl.concat([curve.answered_cells.select("mechanism", "kind") for curve in curves]).unique()
    return {name: set(pairs.filter(pl.col("mechanism") == name)["kind"]) for name in curves[0].mechanisms[:MAX_LINES]}


def _sentences(curves: Sequence[Curve], cells: pl.DataFrame, most: int) -> Iterable[str]:
    first = curves[0]
    if first.group.fixed_parameters:
        yield f"Fixed: {join_parameters(first.group.fixed_parameters)}."
    if first.follows:
        yield f"{shorten_text(', '.join(first.follows))} changes with {shorten_text(first.x)}."
    yield f"P: {count_evidence(cells)}."
    unplaced_count = sum(curve.cells.height - curve.placed_cells.height for curve in curves)
    if unplaced_count:
        has_none = f"{spell_count(unplaced_count, 'cell has')} no number"
        yield f"{has_none} for {shorten_text(first.x)} that can be drawn."
    unanswered_count = cells.height - int(cells["p"].count())
    if unanswered_count:
        yield f"{spell_count(unanswered_count, 'cell has')} no answer."
    if len(first.mechanisms) > MAX_LINES:
        yield f"Drawn: {MAX_LINES} of {len(first.mechanisms):,} mechanisms; results.csv has all."
    not_positive = sum(int((curve.answered_cells["margin"] <= 0).sum()) for curve in curves)
    if not_positive:
        yield f"{spell_count(not_positive, 'margin is')} not positive and not drawn."
    for is_exact, kind, limit in ((True, "exact points", most), (False, "sampled cells", min(most, MAX_SAMPLED))):
        longest = max(_longest(curve, is_exact) for curve in curves)
        if longest > limit:
            yield f"Thinned: of up to {longest:,} {kind} of one mechanism {limit} are drawn."


def _longest(curve: Curve, is_exact: bool) -> int:
    """Return the cells of the mechanism that has most."""
    cells = curve.answered_cells.filter((pl.col("kind") != "sampled") == is_exact)
    return max(cells.group_by("mechanism").len()["len"].to_list(), default=0)


def make_charts(curve: Curve, looks: Mapping[str, Look], most: int) -> list[Chart]:
    """Return a chart of P, and one of the margin where any is positive."""
    x_axis = ChartAxis(axis_label(curve.x), curve.log)
    p_axis = ChartAxis("P(tells apart)", range=(-0.04, 1.04))
    charts = [Chart(x_axis, p_axis, _all_series(curve, looks, most, "p"), height=330)]
    if bool((curve.answered_cells["margin"] > 0).any()):
        margin_axis = ChartAxis("margin, in units of √(log n)", log=True)
        charts.append(Chart(x_axis, margin_axis, _all_series(curve, looks, most, "margin"), height=330))
    return charts


def _all_series(curve: Curve, looks: Mapping[str, Look], most: int, column: str) -> list[Series]:
    # A logarithmic axis has no place for margins that are not positive.
    positive = pl.when(pl.col("margin") > 0).then("margin").alias("margin")
    cells = curve.placed_cells if column == "p" else curve.placed_cells.with_columns(positive)
    at = f"at:{curve.x}"
    if curve.log:
        cells = cells.filter(pl.col(at) > 0)
    return [
        series
        for name in curve.mechanisms[:MAX_LINES]
        for series in _series(cells.filter(pl.col("mechanism") == name), at, looks[name], column, most)
    ]


def _series(cells: pl.DataFrame, at: str, look: Look, column: str, most: int) -> Iterable[Series]:
    """Yield the line of exact cells, broken where a cell has no answer, and the markers of sampled ones."""
    is_sampled = pl.col("kind") == "sampled"
    # Of several cells at one place, one with an answer is preferred to a gap.
    exact = cells.filter(~is_sampled).sort(at, pl.col(column).is_null(), maintain_order=True)
    exact = exact.unique(at, keep="first", maintain_order=True)
    if exact[column].is_not_null().any():
        line = thin(exact, most)
        style = replace(look, symbol="circle", is_filled=True, width=2.2)
        yield Series(style, line[at].to_list(), line[column].to_list(), look.label, symbol_size=0.5)
    sampled_cells = thin(cells.filter(is_sampled & pl.col(column).is_not_null()), min(most, MAX_SAMPLED))
    if sampled_cells.is_empty():
        return
    x, y = (sampled_cells[name].to_list() for name in (at, column))
    low, high = (sampled_cells[end].to_list() if column == "p" else None for end in ("low", "high"))
    texts = [_describe_sampling(row) for row in sampled_cells.iter_rows(named=True)]
    yield Series(replace(look, has_line=False), x, y, look.label, low, high, texts=texts)


def _describe_sampling(row: Mapping[str, Any]) -> str:
    formats = {"draws": "{} draws", "seed": "seed {}", "dtype": "{}"}
    return ", ".join(["sampled", *(text.format(row[name]) for name, text in formats.items() if row[name] is not None)])
