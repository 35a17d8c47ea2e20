"""A boundary curve as chart and table: the computed crossings, and the formula where one is known."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence

from separatrix.analysis.maps import BoundaryCurve
from separatrix.analysis.maps.boundary_result import CurvePoint
from separatrix.analysis.maps.boundary_search import HALF
from separatrix.core.numbers import format_exact
from separatrix.core.numbers.spelling import for_people
from separatrix.pages.charts import Chart, ChartAxis, Series, draw_chart
from separatrix.pages.commands import spell_value
from separatrix.pages.looks import COLOURS, INK, Look
from separatrix.pages.maps.captions import READER_NOTE, describe_fixed, join_words
from separatrix.pages.maps.scales import axis_label
from separatrix.pages.paper import Axes

ALL_COMPLETE = "At every value, there are no other crossings in this range (proved)."


def _subject(result: BoundaryCurve) -> str:
    return f"{result.question.label} on {result.question.construction}"


def title(result: BoundaryCurve) -> str:
    """Return what the curve is of."""
    level = f"passes P = {format_exact(result.at)}"
    return f"Where {_subject(result)} {level}: {result.parameter} over {result.over.name}"


def finding(result: BoundaryCurve) -> str:
    """Return where P passes the level at the first and the last value that has a crossing."""
    crossings = [
        (value, boundary.crossings[0].middle)
        for value, boundary in zip(result.over.values, result.curve, strict=True)
        if boundary.crossings
    ]
    passes = f"{_subject(result)} passes P = {format_exact(result.at)}"
    if not crossings:
        return f"{passes} at no {result.parameter} that was searched"
    places = " and ".join(
        f"at {result.parameter} = {for_people(at, 4)} for {result.over.name} = {for_people(float(value), 4)}"
        for value, at in dict.fromkeys((crossings[0], crossings[-1]))
    )
    return f"{passes} {places}"


def sentences(result: BoundaryCurve) -> list[str]:
    """Return the fixed parameters, the range, and the evidence."""
    first = result.curve[0]
    values = {
        name: f"{spell_value(value)}{' asked for' if name == 'n' and result.lengths_differ else ''}"
        for name, value in result.question.fixed.items()
    }
    evidence = dict.fromkeys(f"{boundary.engine}: {boundary.evidence}" for boundary in result.curve)
    formula = None if first.analytic is None else first.analytic.formula
    lines = [
        *describe_fixed(values, result.question.taken),
        f"{result.parameter} is searched from {first.span.text.replace(':', ' to ')}.",
        result.length_remark,
        f"{'; '.join(evidence)}.",
        "" if formula is None else f"{formula.formula} {formula.tag} holds {formula.limit}.",
        next((boundary.guarantee for boundary in result.curve if not boundary.is_complete), ALL_COMPLETE),
        READER_NOTE,
    ]
    return [line for line in lines if line]


def made_by(result: BoundaryCurve) -> str:
    """Return the command that computes the curve."""
    words = join_words({name: spell_value(value) for name, value in result.question.fixed.items()})
    level = "" if result.at == HALF else f" --at {format_exact(result.at)}"
    return (
        f"separatrix boundary {result.question.construction} {result.question.label} "
        f"{result.curve[0].span.spelled} {words} --over {result.over.span.spelled}{level}"
    )


def columns(result: BoundaryCurve) -> list[str]:
    """Return the head of the table."""
    analytic = result.curve[0].analytic
    formula_columns = [] if analytic is None else [analytic.formula.formula]
    length_columns = ["n used"] if result.lengths_differ else []
    first = "n asked for" if length_columns and result.over.name == "n" else result.over.name
    return [first, *length_columns, "lo", "hi", "direction", "certified", *formula_columns]


def rows(result: BoundaryCurve) -> list[list[str]]:
    """Return one row for each crossing, and one where there is none."""
    has_formula = result.curve[0].analytic is not None
    table = []
    for value, boundary in zip(result.over.values, result.curve, strict=True):
        formula_cells = [" ".join(f"{x:.9g}" for x in boundary.analytic_values)] if has_formula else []
        table += [
            [spell_value(value), *_spell_used(result, lengths), *cells, *formula_cells]
            for lengths, cells in _crossing_rows(boundary)
        ]
    return table


def _crossing_rows(boundary: CurvePoint) -> Iterator[tuple[Sequence[int | None], tuple[str, ...]]]:
    """Yield the lengths at both ends of a row, and its cells: lo, hi, direction, certified."""
    for crossing in boundary.crossings:
        ends = format_exact(crossing.lo.value), format_exact(crossing.hi.value)
        yield crossing.n_used, (*ends, crossing.direction, "yes" if crossing.is_certified else "no")
    plateaus = [plateau for plateau in boundary.plateaus if not plateau.passes]
    for plateau in plateaus:
        ends = format_exact(plateau.first.value), format_exact(plateau.last.value)
        yield (plateau.first.n, plateau.last.n), (*ends, "equals", "yes" if plateau.is_certified else "no")
    if not boundary.crossings and not plateaus:
        yield boundary.n_used_at_ends, ("", "", "no crossing", "")


def _spell_used(result: BoundaryCurve, lengths: Sequence[int | None]) -> list[str]:
    """Return the n at lo and at hi, where the row does not show it as its value."""
    return [" to ".join(map(str, dict.fromkeys(lengths)))] if result.lengths_differ else []


def as_csv(result: BoundaryCurve) -> bytes:
    """Return the table with exact ends."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns(result))
    writer.writerows(rows(result))
    return text.getvalue().encode()


def draw_curve(result: BoundaryCurve, axes: Axes) -> None:
    """Draw the chart on matplotlib axes."""
    draw_chart(axes, chart(result))
    axes.legend()


def chart(result: BoundaryCurve) -> Chart:
    """Return a line for the first crossing of every value, one for the second, and so on, and the formula."""
    boundaries, span = result.curve, result.curve[0].span
    most = max(len(boundary.crossings) for boundary in boundaries)
    x, series = result.over.floats.tolist(), []
    for k in range(most):
        name = "crossing" if most == 1 else f"crossing {k + 1}"
        at_k = [boundary.crossings[k : k + 1] for boundary in boundaries]
        remarks = [
            "".join(f"n used = {text}" for c in crossings for text in _spell_used(result, c.n_used))
            for crossings in at_k
        ]
        look = Look(name, COLOURS[k % 4], symbol="circle")
        series.append(Series(look, x, [c[0].middle if c else None for c in at_k], texts=remarks))
    analytic = boundaries[0].analytic
    if analytic is not None and any(boundary.analytic_values for boundary in boundaries):
        look = Look(f"{analytic.formula.formula} {analytic.formula.tag}", INK, (8, 4))
        series.append(Series(look, x, [next(iter(boundary.analytic_values), None) for boundary in boundaries]))
    axes = ChartAxis(axis_label(result.over.name), result.over.log), ChartAxis(axis_label(span.name), span.log)
    return Chart(*axes, series, height=440)
