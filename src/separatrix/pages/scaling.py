"""Growth of a quantity with one parameter as chart, table and page, from the JSON of `separatrix scaling`."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from separatrix.core.files.writing import write_whole
from separatrix.core.numbers.json import json_file
from separatrix.core.numbers.spelling import RAISED, for_people
from separatrix.pages.charts import Chart, ChartAxis, Series, draw_chart
from separatrix.pages.looks import choose_looks
from separatrix.pages.maps.captions import describe_fixed
from separatrix.pages.maps.scales import axis_label
from separatrix.pages.pages import render_page
from separatrix.pages.paper import paper_style, save_figure, save_small_png
from separatrix.pages.plots.registry import SIZE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from separatrix.analysis.laws import Scaling, Scalings

Row = Mapping[str, Any]
MAX_NAMED = 4
"""Mechanisms or laws that a heading names."""


@dataclass(frozen=True)
class Growth:
    """The results for one mechanism or several, as JSON."""

    rows: Sequence[Row]
    """The mechanisms that have values."""
    refused: Mapping[str, str]
    """The reason for each mechanism that has none."""
    document: object
    """The JSON that `--json` prints."""
    made_by: str
    """The command."""

    @property
    def parameter(self) -> str:
        """The parameter that grows."""
        return str(self.rows[0]["parameter"])

    @property
    def quantity(self) -> str:
        """The quantity that is measured."""
        return str(self.rows[0]["quantity"])

    @property
    def finding(self) -> str:
        """The law of each mechanism; of many mechanisms, how many have which law."""
        if len(self.rows) > MAX_NAMED:
            laws = Counter(describe_law(row) for row in self.rows)
            counts = ", ".join(f"{name} for {count}" for name, count in laws.most_common(MAX_NAMED))
            return f"{_title(self.rows[0])}: {counts} of {len(self.rows)} mechanisms"
        laws_of_each = "; ".join(_law_texts(row)[1] for row in self.rows)
        return f"The {self.quantity} on {self.rows[0]['construction']} {laws_of_each}"

    @property
    def sentences(self) -> list[str]:
        """The fixed parameters, the law of each mechanism, and the evidence."""
        first = self.rows[0]
        return [
            *describe_fixed(first["parameters"], first["taken"]),
            *(
                f"{row['mechanism']}: {describe_law(row)}; {row['reason']}. {row['remark']}".strip()
                for row in self.rows
            ),
            *(
                f"{row['mechanism']}, proved {row['proved']['tag']}: {row['proved']['statement']}."
                for row in self.rows
                if row["proved"] is not None
            ),
            *(f"{name}: {reason}." for name, reason in self.refused.items()),
            *dict.fromkeys(f"{row['engine']}: {row['evidence']}." for row in self.rows),
        ]


def _title(row: Row) -> str:
    return f"{row['quantity']} on {row['construction']} against {row['parameter']}"


def describe_law(row: Row) -> str:
    """Return the law in a few words."""
    return _law_texts(row)[0]


def _law_texts(row: Row) -> tuple[str, str]:
    """Return the law in a few words, and as the end of a sentence about the mechanism."""
    subject, form = f"for {row['mechanism']}", f" ({row['form']})" if row["form"] else ""
    if row["power_law"] is None:
        long = f"grows by a law that these points do not determine {subject}"
        return "the points do not determine the law", long
    if not row["power_law"]:
        return f"not a power law{form}", f"follows no power law {subject}{form}"
    if row["form"] == "constant":
        return "constant", f"stays constant {subject}"
    parameter, exponent = row["parameter"], f"{row['exponent']:.3f}".rstrip("0").rstrip(".")
    # Only whole exponents have characters of their own.
    short = f"exponent {exponent}" if "." in exponent else f"{parameter}{exponent.translate(RAISED)}"
    return short, f"goes like {parameter}^{exponent.replace('-', '−')} {subject}"


def chart(rows: Sequence[Row]) -> Chart:
    """Return the values of every mechanism on two logarithmic axes."""
    looks, first = choose_looks(row["mechanism"] for row in rows), rows[0]
    parameter, quantity, series = first["parameter"], first["quantity"], []
    for row in rows:
        look, values = looks[row["mechanism"]], row["values"]
        low, high = ([value[end] for value in values] for end in ("low", "high"))
        # Exact values have intervals of no width, which would be drawn as a band of nothing.
        is_noisy = low != high
        series.append(
            Series(
                replace(look, label=f"{row['mechanism']}: {describe_law(row)}"),
                [float(value[parameter]) for value in values],
                [value[quantity] for value in values],
                row["mechanism"],
                low if is_noisy else None,
                high if is_noisy else None,
                is_noisy,
            )
        )
    axes = ChartAxis(axis_label(parameter), log=True), ChartAxis(quantity, log=True)
    return Chart(*axes, series, height=440, title=_title(first))


def draw(rows: Sequence[Row]) -> Figure:
    """Return the chart as a figure."""
    from matplotlib.figure import Figure

    with paper_style():
        figure = Figure(figsize=SIZE)
        axes = figure.subplots()
        draw_chart(axes, chart(rows))
        axes.legend()
    return figure


def draw_result(result: Scaling | Scalings, axes: Axes) -> None:
    """Draw the chart of one scaling or several on matplotlib axes."""
    answers = getattr(result, "scalings", [result])
    draw_chart(axes, chart([answer.as_json() for answer in answers]))
    axes.legend()


def columns(growth: Growth) -> list[str]:
    """Return the head of the table."""
    return ["mechanism", growth.parameter, "n used", growth.quantity, "low", "high"]


def table(growth: Growth, spell: Callable[[Any], str], spell_parameter: Callable[[Any], str] = str) -> list[list[str]]:
    """Return one line for each value of each mechanism."""
    return [
        [
            str(row["mechanism"]),
            spell_parameter(value[growth.parameter]),
            "" if value["n_used"] is None else spell_parameter(value["n_used"]),
            *(spell(value[name]) for name in (growth.quantity, "low", "high")),
        ]
        for row in growth.rows
        for value in row["values"]
    ]


def page_table(growth: Growth) -> dict[str, Any]:
    """Return the table of the page, without columns that repeat another one."""
    values = [value for row in growth.rows for value in row["values"]]
    is_moved = any(value["n_used"] not in (None, value[growth.parameter]) for value in values)
    is_noisy = any(not value["low"] == value[growth.quantity] == value["high"] for value in values)
    visible = [True, True, is_moved, True, is_noisy, is_noisy]
    return {
        "columns": [*compress(columns(growth), visible)],
        "rows": [[*compress(row, visible)] for row in table(growth, for_people, spell_exactly)],
    }


def spell_exactly(value: Any) -> str:
    """Return a value of the parameter, in short notation only where that loses no digit.

    >>> spell_exactly(10**9), spell_exactly(1234567), spell_exactly("1/3")
    ('10⁹', '1234567', '1/3')
    """
    is_short = isinstance(value, int) and int(float(f"{value:.6g}")) == value
    return for_people(value) if is_short else str(value)


def as_csv(growth: Growth) -> bytes:
    """Return the table with every digit."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([columns(growth), *table(growth, repr)])
    return text.getvalue().encode()


def page(growth: Growth) -> str:
    """Return the page: the chart and its numbers."""
    return render_page(
        "curve.html.j2",
        ("chart",),
        title=growth.finding,
        description="",
        sentences=growth.sentences,
        image=save_small_png(draw(growth.rows)),
        chart=chart(growth.rows),
        **page_table(growth),
        made_by=growth.made_by,
    )


WRITERS: Mapping[str, Callable[[Growth], bytes]] = {
    ".csv": as_csv,
    ".html": lambda growth: page(growth).encode(),
    ".json": lambda growth: json_file(growth.document),
    ".pdf": lambda growth: save_figure(draw(growth.rows), "pdf"),
    ".png": lambda growth: save_figure(draw(growth.rows), "png"),
    ".svg": lambda growth: save_figure(draw(growth.rows), "svg"),
}
SUFFIXES = tuple(WRITERS)


def write(growth: Growth, out: Path) -> None:
    """Write the file in the format of its suffix, whole or not at all."""
    write_whole(out, WRITERS[out.suffix](growth))
