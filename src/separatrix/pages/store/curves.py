"""P against one parameter: lines where it is exact, markers with intervals where it is sampled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import polars as pl

from separatrix.pages import pages
from separatrix.pages.commands import spelled
from separatrix.pages.drawing import Key, looks
from separatrix.pages.pages import short
from separatrix.pages.store import plots
from separatrix.pages.store.figure import Figure, FigureRow, ShownVerdict, VerdictGrid
from separatrix.pages.store.groups import Curve, Group
from separatrix.pages.store.wording import count, evidence, finding, words
from separatrix.pages.verdict_words import MARKED, MARKS, probability

MOST_CURVES, MOST_POINTS, MOST_IN_LINE, FEWEST_IN_LINE = 40, 40_000, 400, 20
"""What is drawn on one page: plots, points in all, and points of one line."""
MOST_LINES = 12
"""Mechanisms in one plot; more are a grid."""
MOST_NAMED = 6
"""Parts of the plan that one sentence names."""
MOST_COLUMNS, MOST_ROWS = 8, 100
"""Of a grid that stands for a plot with too many lines."""

INTRODUCTION = (
    "P(tells apart) is the probability over the reader's random signs that it tells D0 from D1. Lines are "
    "exact, with a gap where a cell has no answer; open markers are sampled, one for each seed, with the "
    "interval of each. The margin, where there is one, is what is left of the difference between the labels "
    "before any threshold."
)


def section(found: Sequence[Group]) -> pages.Section | None:
    """Every curve of the sweep that can be drawn."""
    all_curves = [curve for group in found for curve in group.curves()]
    shown = all_curves[:MOST_CURVES]
    if not shown:
        return None
    few = [curve for curve in shown if len(curve.mechanisms) <= MOST_LINES]
    keys = looks(name for curve in few for name in curve.mechanisms)
    series = sum(2 * len(curve.mechanisms) for curve in few)
    most = max(FEWEST_IN_LINE, min(MOST_IN_LINE, MOST_POINTS // max(series, 1)))
    kin = groupby(shown, key=lambda curve: (curve.group.part, curve.group.construction, curve.x))
    left = len(all_curves) - len(shown)
    more = f"{count(left, 'curve is')} not drawn besides; results.csv has all cells." if left else ""
    return pages.section(
        "curves",
        "Curves",
        "sweep_figures.html.j2",
        kind="curve",
        introduction=INTRODUCTION,
        figures=[_figure(list(curves), keys, most) for _, curves in kin],
        notes=[note for note in (more, _undrawn(found)) if note],
        marks=MARKED,
    )


def _undrawn(found: Sequence[Group]) -> str:
    """A sentence on the cells that no figure shows; nothing where there are none."""
    absent = [group for group in found if not group.mapped and not any(True for _ in group.curves())]
    if not absent:
        return ""
    named = [f"{short(group.part or group.construction, 60)} ({group.cells.height:,})" for group in absent]
    more = f" and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
    return (
        "In no curve and no map, since no parameter takes three values there while the others stay: the "
        f"cells of {', '.join(named[:MOST_NAMED])}{more}. They are in the comparison."
    )


def _figure(curves: Sequence[Curve], keys: Mapping[str, Key], most: int) -> Figure:
    """One parameter of one group, with a row for each choice of the others."""
    first = curves[0]
    many = len(first.mechanisms) > MOST_LINES
    return Figure(
        group=first.group,
        what=f"P(tells apart) against {short(first.x)}",
        finding=finding(pl.concat([curve.cells for curve in curves]), f"at every {short(first.x)} shown"),
        sentences=list(_sentences(curves, most, many)),
        rows=[
            FigureRow(words(curve.choice), grid=_grid(curve))
            if many
            else FigureRow(words(curve.choice), [("", plot) for plot in _plots(curve, keys, most)])
            for curve in curves
        ],
        keys=[] if many else [_key(keys[name], kinds) for name, kinds in _kinds(curves).items()],
    )


def _plots(curve: Curve, keys: Mapping[str, Key], most: int) -> list[Any]:
    made = (plots.probabilities(curve, keys, most), plots.margins(curve, keys, most))
    return [figure for figure in made if figure is not None]


def _key(key: Key, known: set[str]) -> Key:
    """A sample of the line, of the marker, or of both, as P is known."""
    return replace(
        key,
        dash="none" if known == {"sampled"} else key.dash,
        symbol=key.symbol if "sampled" in known else "",
    )


def _kinds(curves: Sequence[Curve]) -> dict[str, set[str]]:
    """How P is known, by mechanism."""
    known = pl.concat([curve.answered.select("mechanism", "kind") for curve in curves]).unique()
    return {name: set(known.filter(pl.col("mechanism") == name)["kind"]) for name in curves[0].mechanisms}


def _sentences(curves: Sequence[Curve], most: int, many: bool) -> Iterable[str]:
    first, cells = curves[0], pl.concat([curve.cells for curve in curves])
    if first.group.fixed:
        yield f"Fixed: {words(first.group.fixed)}."
    if first.follows:
        yield f"{short(', '.join(first.follows))} changes with {short(first.x)}."
    yield f"P: {evidence(cells)}."
    unplaced = sum(curve.cells.height - curve.drawn.height for curve in curves)
    if unplaced:
        yield f"{count(unplaced, 'cell has')} no number for {short(first.x)} that can be drawn."
    unanswered = cells.height - int(cells["p"].count())
    if unanswered:
        yield f"{count(unanswered, 'cell has')} no answer."
    if many:
        yield f"With {len(first.mechanisms):,} mechanisms this is a table, not a plot."
        return
    not_positive = sum(int((curve.answered["margin"] <= 0).sum()) for curve in curves)
    if not_positive:
        yield f"{count(not_positive, 'margin is')} not positive and not drawn."
    for exact, kind, limit in ((True, "exact points", most), (False, "sampled cells", min(most, plots.FEW))):
        longest = max(_longest(curve, exact) for curve in curves)
        if longest > limit:
            yield f"Thinned: of up to {longest:,} {kind} of one mechanism {limit} are drawn."


def _longest(curve: Curve, exact: bool) -> int:
    """The cells of the mechanism that has most."""
    own = curve.answered.filter((pl.col("kind") != "sampled") == exact)
    return max(own.group_by("mechanism").len()["len"].to_list(), default=0)


def _grid(curve: Curve) -> VerdictGrid:
    """P of each mechanism at a few values of the parameter."""
    at = f"at:{curve.x}"
    places = plots.thinned(curve.answered.unique(at, keep="first", maintain_order=True), MOST_COLUMNS)
    found: dict[tuple[str, float], ShownVerdict] = {}
    known = curve.answered.filter(pl.col(at).is_in(places[at].to_list())).sort(pl.col("kind") == "sampled")
    for row in known.iter_rows(named=True):
        found.setdefault((row["mechanism"], row[at]), _verdict(row))
    left_out = []
    if curve.places > MOST_COLUMNS:
        left_out.append(f"{places.height} of {curve.places:,} values of {short(curve.x)}")
    if len(curve.mechanisms) > MOST_ROWS:
        left_out.append(f"{MOST_ROWS} of {len(curve.mechanisms):,} mechanisms")
    return VerdictGrid(
        corner=curve.x,
        head=[short(spelled(text), 12) for text in places[f"is:{curve.x}"]],
        rows=[
            (short(name, 60), [found.get((name, x)) for x in places[at]])
            for name in curve.mechanisms[:MOST_ROWS]
        ],
        note=f"Shown: {', '.join(left_out)}; results.csv has all." if left_out else "",
    )


def _verdict(row: Mapping[str, Any]) -> ShownVerdict:
    word, p = row["word"], row["p"]
    told = f"{word}, P = {p:.6g} in [{row['low']:.6g}, {row['high']:.6g}], {row['kind']}"
    return ShownVerdict(word, f" {MARKS[row['kind']]}{probability(p)}", told)
