"""P against one parameter: lines where it is exact, markers with intervals where it is sampled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

import polars as pl

from separatrix.reports.markup import Section
from separatrix.reports.store import plots
from separatrix.reports.store.groups import Curve, Group
from separatrix.reports.store.pens import MOST, Pen, legend, pens
from separatrix.reports.store.pieces import count, evidence, panel, short, short_number, style, title, words
from separatrix.reports.verdict_words import LETTERS, MARKS, probability

MOST_CURVES, MOST_POINTS, MOST_IN_LINE, FEWEST_IN_LINE = 40, 40_000, 400, 20
"""What is drawn on one page: plots, points in all, and points of one line."""
MOST_NAMED = 6
"""Parts of the plan that one sentence names."""
MOST_COLUMNS, MOST_ROWS = 8, 100
"""Of a table that stands for a plot with too many lines."""

INTRODUCTION = (
    "<p>P is the probability over the reader's random signs that the mechanism tells D0 from D1. Lines are "
    "exact, with a gap where a cell has no answer; open markers are sampled, one for each seed, with the "
    "interval of each. The margin, where there is one, is what is left of the difference between the labels "
    "before any threshold.</p>"
)


def undrawn(found: Sequence[Group]) -> str:
    """A sentence on the cells that no figure shows; nothing where there are none."""
    absent = [group for group in found if not group.mapped and not any(True for _ in group.curves())]
    if not absent:
        return ""
    named = [f"{short(group.part or group.construction, 60)} ({group.cells.height:,})" for group in absent]
    more = f" and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
    return (
        '<p class="said">In no curve and no map, since no parameter takes three values there while the '
        f"others stay: the cells of {', '.join(named[:MOST_NAMED])}{more}. They are in the comparison.</p>"
    )


def section(found: Sequence[Group]) -> Section | None:
    """Every curve of the sweep that can be drawn."""
    all_curves = [curve for group in found for curve in group.curves()]
    shown = all_curves[:MOST_CURVES]
    if not shown:
        return None
    drawn = pens(name for curve in shown if len(curve.mechanisms) <= MOST for name in curve.mechanisms)
    series = sum(2 * len(curve.mechanisms) for curve in shown if len(curve.mechanisms) <= MOST)
    most = max(FEWEST_IN_LINE, min(MOST_IN_LINE, MOST_POINTS // max(series, 1)))
    kin = groupby(shown, key=lambda curve: (curve.group.part, curve.group.construction, curve.x))
    figures = "\n".join(_figure(f"curve-{i}", list(curves), drawn, most) for i, (_, curves) in enumerate(kin))
    left = len(all_curves) - len(shown)
    more = f"<p>{count(left, 'curve is')} not drawn besides; results.csv has all cells.</p>" if left else ""
    return Section("curves", "Curves", f"{INTRODUCTION}\n{figures}{more}{undrawn(found)}")


def _figure(identity: str, curves: Sequence[Curve], drawn: dict[str, Pen], most: int) -> str:
    """One parameter of one group, with a row for each choice of the others."""
    first = curves[0]
    many = len(first.mechanisms) > MOST
    if many:
        body = "".join(f"{_choice(curve)}{_table(curve)}" for curve in curves)
    else:
        body = legend(_kinds(curves), drawn) + "".join(
            _plots(f"{identity}-{i}", curve, drawn, most) for i, curve in enumerate(curves)
        )
    said = "".join(f" {sentence}" for sentence in _sentences(curves, most, many))
    heading = title(first.group, f"P against {short(first.x)}")
    return f'<section class="one">{heading}<p class="said">{said}</p>{body}</section>'


def _plots(identity: str, curve: Curve, drawn: dict[str, Pen], most: int) -> str:
    made = [plots.probabilities(curve, drawn, most), plots.margins(curve, drawn, most)]
    panels = "".join(
        panel(f"{identity}-{i}", "", figure) for i, figure in enumerate(made) if figure is not None
    )
    return f'{_choice(curve)}<div class="panels columns-2">{panels}</div>'


def _kinds(curves: Sequence[Curve]) -> dict[str, set[str]]:
    """How P is known, by mechanism."""
    known = pl.concat([curve.answered.select("mechanism", "kind") for curve in curves]).unique()
    return {name: set(known.filter(pl.col("mechanism") == name)["kind"]) for name in curves[0].mechanisms}


def _choice(curve: Curve) -> str:
    return f"<h4>{words(curve.choice)}</h4>" if curve.choice else ""


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


def _table(curve: Curve) -> str:
    """P of each mechanism at a few values of the parameter."""
    at = f"at:{curve.x}"
    places = plots.thinned(curve.answered.unique(at, keep="first", maintain_order=True), MOST_COLUMNS)
    head = "".join(f"<th>{short(short_number(text), 12)}</th>" for text in places[f"is:{curve.x}"])
    found: dict[tuple[str, float], Mapping[str, Any]] = {}
    known = curve.answered.filter(pl.col(at).is_in(places[at].to_list())).sort(pl.col("kind") == "sampled")
    for row in known.iter_rows(named=True):
        found.setdefault((row["mechanism"], row[at]), row)
    rows = "".join(
        f"<tr><th>{short(name, 60)}</th>{''.join(_cell(found.get((name, x))) for x in places[at])}</tr>"
        for name in curve.mechanisms[:MOST_ROWS]
    )
    notes = (
        [f"{places.height} of {curve.places:,} values of {short(curve.x)}"]
        if curve.places > MOST_COLUMNS
        else []
    )
    notes += (
        [f"{MOST_ROWS} of {len(curve.mechanisms):,} mechanisms"] if len(curve.mechanisms) > MOST_ROWS else []
    )
    said = f'<p class="hint">Shown: {", ".join(notes)}; results.csv has all.</p>' if notes else ""
    keys = ", ".join(f"{sign} {kind}" for kind, sign in MARKS.items())
    return (
        f'{said}<div class="scroll"><table class="grid"><thead><tr><th>{short(curve.x)}</th>{head}</tr>'
        f'</thead><tbody>{rows}</tbody></table></div><p class="hint">The letter is the verdict: '
        f"D distinguishes, P partial, B blind, ? undecided. P is {keys}.</p>"
    )


def _cell(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return '<td style="color:#767676">–</td>'
    word, p = row["word"], row["p"]
    letter = LETTERS.get(word, "–")
    told = short(f"{word}, P = {p:.6g} in [{row['low']:.6g}, {row['high']:.6g}], {row['kind']}")
    shown = f"<b>{letter}</b> {MARKS[row['kind']]}{probability(p)}"
    return f'<td style="{style(word)}" title="{told}">{shown}</td>'
