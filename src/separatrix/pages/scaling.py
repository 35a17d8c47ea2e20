"""How quantities grow, as picture and table: what `separatrix scaling --json` says, drawn on two log axes."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from separatrix.core.files.writing import write_whole
from separatrix.core.numbers.json import json_file
from separatrix.core.numbers.spelling import RAISED, for_people
from separatrix.pages import pages
from separatrix.pages.drawing import Key, looks, on_paper, plot, saved, static_style
from separatrix.pages.maps.captions import fixed
from separatrix.pages.maps.heatmap import axis_label

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from matplotlib.axes import Axes

MOST_NAMED = 4
"""Mechanisms or laws that a heading names."""


@dataclass(frozen=True)
class Growth:
    """What was found for one mechanism or several: the JSON of each, and of all together."""

    rows: Sequence[Mapping[str, Any]]
    """Those that have values; a mechanism that has none is in `without`."""
    without: Mapping[str, str]
    """Mechanisms without values, and why."""
    whole: object
    """What `--json` prints."""
    made_by: str
    """The command."""

    @property
    def parameter(self) -> str:
        """The parameter that grows."""
        return str(self.rows[0]["parameter"])

    @property
    def quantity(self) -> str:
        """What grows with it."""
        return str(self.rows[0]["quantity"])

    @property
    def title(self) -> str:
        """What the picture is of."""
        return _title(self.rows[0])

    @property
    def finding(self) -> str:
        """How the quantity grows for each mechanism, in a line; for many, how many have which law."""
        if len(self.rows) > MOST_NAMED:
            laws = Counter(law(row) for row in self.rows)
            said = ", ".join(f"{name} for {count}" for name, count in laws.most_common(MOST_NAMED))
            return f"{self.title}: {said} of {len(self.rows)} mechanisms"
        said = "; ".join(_grows(row) for row in self.rows)
        return f"The {self.quantity} on {self.rows[0]['construction']} {said}"

    @property
    def sentences(self) -> list[str]:
        """What was fixed, what each law is, and what the values rest on."""
        first = self.rows[0]
        return [
            *fixed(first["parameters"], first["taken"]),
            *(_sentence(row) for row in self.rows),
            *(f"{name}: {why}." for name, why in self.without.items()),
            *dict.fromkeys(f"{row['engine']}: {row['evidence']}." for row in self.rows),
        ]


def _sentence(row: Mapping[str, Any]) -> str:
    return f"{row['mechanism']}: {law(row)}; {row['reason']}. {row['remark']}".strip()


def law(row: Mapping[str, Any]) -> str:
    """The law in a few words."""
    if row["power_law"] is None:
        return "the points cannot tell the law"
    if not row["power_law"]:
        return f"not a power law ({row['form']})" if row["form"] else "not a power law"
    if row["form"] == "constant":
        return "constant"
    exponent = f"{row['exponent']:.3f}".rstrip("0").rstrip(".")
    whole = "." not in exponent
    return f"{row['parameter']}{exponent.translate(RAISED)}" if whole else f"exponent {exponent}"


def _grows(row: Mapping[str, Any]) -> str:
    """How the quantity grows for one mechanism, as the end of a sentence."""
    if row["power_law"] is None:
        return f"grows by a law that these points cannot tell for {row['mechanism']}"
    if not row["power_law"]:
        form = f" ({row['form']})" if row["form"] else ""
        return f"follows no power law for {row['mechanism']}{form}"
    if row["form"] == "constant":
        return f"stays constant for {row['mechanism']}"
    exponent = f"{row['exponent']:.3f}".rstrip("0").rstrip(".").replace("-", "−")
    return f"goes like {row['parameter']}^{exponent} for {row['mechanism']}"


def keys(found: Growth) -> tuple[Key, ...]:
    """The legend of the page."""
    look = looks(row["mechanism"] for row in found.rows)
    return tuple(
        Key(f"{row['mechanism']}: {law(row)}", look[row["mechanism"]].colour, look[row["mechanism"]].dash)
        for row in found.rows
    )


def _xy(row: Mapping[str, Any]) -> tuple[list[float], list[float]]:
    values = row["values"]
    return [float(value[row["parameter"]]) for value in values], [value[row["quantity"]] for value in values]


def draw_on(axes: Axes, rows: Sequence[Mapping[str, Any]]) -> None:
    """The values of every mechanism on matplotlib axes; `rows` as in Growth."""
    look = looks(row["mechanism"] for row in rows)
    for row in rows:
        (x, y), key = _xy(row), look[row["mechanism"]]
        label = f"{row['mechanism']}: {law(row)}"
        axes.plot(x, y, linewidth=1.2, markersize=3, label=label, **on_paper(key))
        low, high = ([each[end] for each in row["values"]] for end in ("low", "high"))
        if low != high:
            axes.fill_between(x, low, high, color=key.colour, alpha=0.2, linewidth=0)
    first = rows[0]
    axes.set(xscale="log", yscale="log", xlabel=axis_label(first["parameter"]), ylabel=first["quantity"])
    axes.set_title(_title(first), weight="normal")
    axes.legend()


def _title(row: Mapping[str, Any]) -> str:
    return f"{row['quantity']} on {row['construction']} against {row['parameter']}"


def draw(found: Growth, kind: str) -> bytes:
    """The values of every mechanism, as PNG, PDF or SVG."""
    from matplotlib.figure import Figure

    with static_style():
        figure = Figure(figsize=(4.6, 3.4))
        draw_on(figure.subplots(), found.rows)
        return saved(figure, kind)


def interactive(found: Growth) -> go.Figure:
    """The same for the page."""
    look = looks(row["mechanism"] for row in found.rows)
    log = {"type": "log"}
    figure = plot(axis_label(found.parameter), found.quantity, 440, xaxis=log, yaxis=log)
    for row in found.rows:
        (x, y), key = _xy(row), look[row["mechanism"]]
        hover = f"{row['mechanism']}<br>{found.parameter} = %{{x:.6~g}}<br>{found.quantity} = %{{y:.9g}}"
        figure.add_scatter(
            x=x,
            y=y,
            name=row["mechanism"],
            mode="lines+markers",
            line={"color": key.colour, "width": 2.4, "dash": key.dash},
            hovertemplate=f"{hover}<extra></extra>",
        )
    return figure


def columns(found: Growth) -> list[str]:
    """The head of the table."""
    return ["mechanism", found.parameter, "n used", found.quantity, "low", "high"]


def table(
    found: Growth, spell: Callable[[Any], str], spell_axis: Callable[[Any], str] = str
) -> list[list[str]]:
    """One line for each value of each mechanism."""
    return [
        [
            str(row["mechanism"]),
            spell_axis(each[found.parameter]),
            "" if each["n_used"] is None else spell_axis(each["n_used"]),
            *(spell(each[name]) for name in (found.quantity, "low", "high")),
        ]
        for row in found.rows
        for each in row["values"]
    ]


def numbers(found: Growth) -> dict[str, Any]:
    """The table of the page, without columns that repeat another one."""
    values = [each for row in found.rows for each in row["values"]]
    moved = any(value["n_used"] not in (None, value[found.parameter]) for value in values)
    noisy = any(not value["low"] == value[found.quantity] == value["high"] for value in values)
    shown = [True, True, moved, True, noisy, noisy]
    return {
        "columns": [*compress(columns(found), shown)],
        "rows": [[*compress(row, shown)] for row in table(found, for_people, spelled_axis)],
    }


def spelled_axis(value: Any) -> str:
    """A value of the parameter that grows: short where that is all of it.

    >>> spelled_axis(10**9), spelled_axis(1234567), spelled_axis("1/3")
    ('10⁹', '1234567', '1/3')
    """
    exact = isinstance(value, int) and int(float(f"{value:.6g}")) == value
    return for_people(value) if exact else str(value)


def as_csv(found: Growth) -> bytes:
    """The table with every digit."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*columns(found)])
    writer.writerows(table(found, repr))
    return text.getvalue().encode()


def page(found: Growth) -> str:
    """Picture and numbers as a page of its own, which opens offline."""
    return pages.page(
        "curve.html.j2",
        title=found.finding,
        what="",
        sentences=found.sentences,
        image=draw(found, "png"),
        keys=keys(found),
        figure=interactive(found),
        **numbers(found),
        made_by=found.made_by,
    )


MAKERS: Mapping[str, Callable[[Growth], bytes]] = {
    ".csv": as_csv,
    ".html": lambda found: page(found).encode(),
    ".json": lambda found: json_file(found.whole),
    ".pdf": lambda found: draw(found, "pdf"),
    ".png": lambda found: draw(found, "png"),
    ".svg": lambda found: draw(found, "svg"),
}
ENDINGS = tuple(MAKERS)


def write(found: Growth, out: Path) -> None:
    """In the form the ending of `out` names, whole or not at all."""
    write_whole(out, MAKERS[out.suffix](found))
