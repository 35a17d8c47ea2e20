"""How the margin of every mechanism grows with n, as a table of the report."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from separatrix.laws.scaling_result import ScalingRow
from separatrix.paper.growth import PARAMETERS
from separatrix.reports.commands import Command, number
from separatrix.reports.markup import Section, command_line, prose

COLUMNS = ("Mechanism", "Exponent", "Law", "Lengths", "Engine")


def section(rows: Sequence[ScalingRow]) -> Section:
    """The table as part of the page."""
    head = "".join(f"<th>{escape(column)}</th>" for column in COLUMNS)
    body = "\n".join(map(_row, rows))
    words = " ".join(f"{name}={value}" for name, value in PARAMETERS.items())
    command = Command(f"separatrix scaling spike all {words} --of margin", "this table")
    return Section(
        "scaling",
        "How the margin grows with n",
        "<p>The margin is what is left of the spike in the output: the difference between the labels before "
        "any threshold, in units of √(log n). An exponent of 0 means that it survives at any length, −1 that "
        "it is lost in the average. Where the growth is no power law, the table says so and names the form "
        "that fits better, if one does. Exponents of values without noise carry the range of extrapolation, "
        "not a confidence interval.</p>"
        f'<table class="growth"><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table>'
        f"{command_line(command)}",
    )


def _row(row: ScalingRow) -> str:
    cells = [row.mechanism, *_found(row)]
    return (
        "<tr>"
        + "".join(
            f'<td data-label="{label}">{prose(cell)}</td>' for label, cell in zip(COLUMNS, cells, strict=True)
        )
        + "</tr>"
    )


def _found(row: ScalingRow) -> tuple[str, str, str, str]:
    if row.scaling is None:
        return "–", f"no exponent: {row.why}", "", ""
    law, values = row.scaling.law, row.scaling.values
    lengths = f"{number(float(values[0].x))} to {number(float(values[-1].x))}"
    return law.spelled.replace("-", "−"), law.name, lengths, row.scaling.engine
