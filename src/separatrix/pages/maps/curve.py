"""A boundary curve as picture and table: what is computed, and the formula where one is known."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from separatrix.analysis.maps import BoundaryCurve
from separatrix.analysis.maps.boundary_search import HALF
from separatrix.core.numbers import format_exact
from separatrix.core.numbers.spelling import for_people
from separatrix.pages.commands import spelled
from separatrix.pages.drawing import INK, Key, plot, saved, static_style
from separatrix.pages.maps.captions import READER, fixed
from separatrix.pages.maps.heatmap import Array, axis_label

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from matplotlib.axes import Axes

SIZE = (4.6, 3.4)

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
"""The colours of Okabe and Ito: the first crossing, the second, and so on."""


def title(found: BoundaryCurve) -> str:
    """What the curve is of."""
    return (
        f"Where {found.question.label} on {found.question.construction} passes P = {format_exact(found.at)}: "
        f"{found.parameter} over {found.over.name}"
    )


def finding(found: BoundaryCurve) -> str:
    """Where P passes the level at the first and the last value that it does so at."""
    passed = [
        (value, each.crossings[0].middle)
        for value, each in zip(found.over.values, found.curve, strict=True)
        if each.crossings
    ]
    who, level = f"{found.question.label} on {found.question.construction}", format_exact(found.at)
    if not passed:
        return f"{who} passes P = {level} at no {found.parameter} that was searched"
    ends = dict.fromkeys((passed[0], passed[-1]))
    places = " and ".join(
        f"at {found.parameter} = {for_people(at, 4)} for {found.over.name} = {for_people(float(value), 4)}"
        for value, at in ends
    )
    return f"{who} passes P = {level} {places}"


def sentences(found: BoundaryCurve) -> list[str]:
    """What was fixed, and what the numbers rest on."""
    first = found.curve[0]
    values = {
        name: f"{spelled(value)}{' asked for' if name == 'n' and found.lengths_differ else ''}"
        for name, value in found.question.fixed.items()
    }
    said = [
        *fixed(values, found.question.taken),
        f"{found.parameter} is searched from {first.span.text.replace(':', ' to ')}.",
        found.length_remark,
        _evidence(found),
    ]
    if first.analytic is not None:
        formula = first.analytic.formula
        said.append(f"{formula.formula} {formula.tag} holds {formula.limit}.")
    return [*filter(None, said), first.guarantee, READER]


def made_by(found: BoundaryCurve) -> str:
    """The command that computes the curve again."""
    first = found.curve[0]
    words = " ".join(f"{name}={spelled(value)}" for name, value in found.question.fixed.items())
    level = "" if found.at == HALF else f" --at {format_exact(found.at)}"
    what = f"{found.question.construction} {found.question.label} {first.span.spelled}"
    return f"separatrix boundary {what} {words} --over {found.over.span.spelled}{level}"


def _evidence(found: BoundaryCurve) -> str:
    said = dict.fromkeys(f"{boundary.engine}: {boundary.evidence}" for boundary in found.curve)
    return "; ".join(said) + "."


def columns(found: BoundaryCurve) -> list[str]:
    """The head of the table."""
    analytic = found.curve[0].analytic
    expected = [] if analytic is None else [analytic.formula.formula]
    used = ["n used"] if found.lengths_differ else []
    first = "n asked for" if used and found.over.name == "n" else found.over.name
    return [first, *used, "lo", "hi", "direction", "certified", *expected]


def rows(found: BoundaryCurve) -> list[list[str]]:
    """One row for each crossing, and one where there is none."""
    made = []
    for value, each in zip(found.over.values, found.curve, strict=True):
        expected = " ".join(f"{x:.9g}" for x in each.analytic_values)
        formula = [] if found.curve[0].analytic is None else [expected]
        for crossing in each.crossings:
            certified = "yes" if crossing.is_certified else "no"
            ends = [format_exact(crossing.lo.value), format_exact(crossing.hi.value)]
            used = _used(found, crossing.n_used)
            made.append([spelled(value), *used, *ends, crossing.direction, certified, *formula])
        touched = [plateau for plateau in each.plateaus if not plateau.passes]
        for plateau in touched:
            used = _used(found, [plateau.first.n, plateau.last.n])
            word = "yes" if plateau.is_certified else "no"
            ends = [format_exact(plateau.first.value), format_exact(plateau.last.value)]
            made.append([spelled(value), *used, *ends, "equals", word, *formula])
        if not each.crossings and not touched:
            used = _used(found, each.n_used_at_ends)
            made.append([spelled(value), *used, "", "", "no crossing", "", *formula])
    return made


def _used(found: BoundaryCurve, lengths: Sequence[int | None]) -> list[str]:
    """The n behind a row, at lo and at hi, where it is not what the row shows."""
    return [" to ".join(map(str, dict.fromkeys(lengths)))] if found.lengths_differ else []


def as_csv(found: BoundaryCurve) -> bytes:
    """The table, with the ends exact."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns(found))
    writer.writerows(rows(found))
    return text.getvalue().encode()


def series(found: BoundaryCurve) -> dict[str, tuple[Array, Array]]:
    """Named lines: the first crossing of every value, the second, ..., and the formula."""
    most = max(len(boundary.crossings) for boundary in found.curve)
    lines = {}
    for k in range(most):
        name = "crossing" if most == 1 else f"crossing {k + 1}"
        lines[name] = _line(
            found, [[c.middle for c in boundary.crossings[k : k + 1]] for boundary in found.curve]
        )
    first = found.curve[0].analytic
    if first is not None and any(boundary.analytic_values for boundary in found.curve):
        expected = [list(boundary.analytic_values[:1]) for boundary in found.curve]
        lines[f"{first.formula.formula} {first.formula.tag}"] = _line(found, expected)
    return lines


def _hovered(found: BoundaryCurve, k: int) -> list[str]:
    """The n behind the k-th crossing of each boundary, where that is not shown as its place."""
    ends = [[n for c in boundary.crossings[k : k + 1] for n in c.n_used] for boundary in found.curve]
    return ["".join(_used(found, lengths)) if lengths else "" for lengths in ends]


def _line(found: BoundaryCurve, places: list[list[float]]) -> tuple[Array, Array]:
    return found.over.floats, np.array([place[0] if place else np.nan for place in places])


def keys(found: BoundaryCurve) -> tuple[Key, ...]:
    """The legend of the page."""
    return tuple(
        Key(name, _colour(i, name), "solid" if name.startswith("crossing") else "8px,4px")
        for i, name in enumerate(series(found))
    )


def _colour(index: int, name: str) -> str:
    return COLOURS[index % len(COLOURS)] if name.startswith("crossing") else INK


def draw_on(axes: Axes, found: BoundaryCurve) -> None:
    """The crossings and the formula on matplotlib axes."""
    for i, (name, (x, y)) in enumerate(series(found).items()):
        computed = name.startswith("crossing")
        style = {"marker": "o", "markersize": 3} if computed else {"linestyle": (0, (5, 2))}
        axes.plot(x, y, color=_colour(i, name), label=name, linewidth=1.4, **style)
    axes.set(
        xscale="log" if found.over.log else "linear",
        yscale="log" if found.curve[0].span.log else "linear",
        xlabel=axis_label(found.over.name),
        ylabel=axis_label(found.curve[0].span.name),
    )
    axes.set_title(title(found), size=7, weight="normal")
    if series(found):
        axes.legend()


def draw(found: BoundaryCurve, kind: str) -> bytes:
    """The curve as PNG, PDF or SVG."""
    from matplotlib.figure import Figure

    with static_style():
        figure = Figure(figsize=SIZE)
        draw_on(figure.subplots(), found)
        return saved(figure, kind)


def interactive(found: BoundaryCurve) -> go.Figure:
    """The curve for the page."""
    import plotly.graph_objects as go

    span = found.curve[0].span
    figure = plot(
        axis_label(found.over.name),
        axis_label(span.name),
        440,
        xaxis={"type": "log" if found.over.log else "linear"},
        yaxis={"type": "log" if span.log else "linear"},
    )
    for i, (name, (x, y)) in enumerate(series(found).items()):
        computed = name.startswith("crossing")
        used = _hovered(found, i) if computed and found.lengths_differ else []
        figure.add_trace(
            go.Scatter(
                x=x,
                y=y,
                customdata=used or None,
                name=name,
                mode="lines+markers" if computed else "lines",
                line={"color": _colour(i, name), "width": 2.4, "dash": "solid" if computed else "8px,4px"},
                hovertemplate=f"{columns(found)[0]} = %{{x:.6~g}}<br>{span.name} = %{{y:.9g}}"
                f"{'<br>n used = %{customdata}' if used else ''}<extra></extra>",
            )
        )
    return figure
