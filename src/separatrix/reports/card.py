"""A report card as a page of its own, which opens offline."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

from separatrix.cards import Card
from separatrix.costs import CostCurve, Disagreement
from separatrix.files.writing import write_whole
from separatrix.numbers.json import json_file
from separatrix.reports import pages
from separatrix.reports.drawing import looks, static_style
from separatrix.reports.standings import worst_first
from separatrix.reports.verdict_words import MARKED, MEANINGS

ENDINGS = (".html", ".json")
MARKERS = {
    "circle": "o",
    "square": "s",
    "diamond": "D",
    "triangle-up": "^",
    "triangle-down": "v",
    "cross": "P",
    "star": "*",
}
"""The symbols of pages as matplotlib has them."""


def page(card: Card) -> str:
    """The whole page."""
    cards = (card, *card.against)
    timed = {each.cost.mechanism: each.cost for each in cards if isinstance(each.cost, CostCurve)}
    compared = [each for each in card.against if each.standings]
    untimed = [each.cost for each in cards if isinstance(each.cost, Disagreement)]
    costs = [*timed.values()]
    softmax = [card.softmax_cost] if isinstance(card.softmax_cost, CostCurve) else []
    return pages.page(
        "card.html.j2",
        title=card.mechanism.spelled,
        card=card,
        rows=worst_first(card, compared) if card.standings else [],
        mechanisms=[each.mechanism.spelled for each in (card, *compared)],
        own=[cell for _, (cell, *_) in worst_first(card, compared)] if card.standings else [],
        meanings=MEANINGS,
        marks=MARKED,
        costs=costs,
        untimed=" ".join(f"{each.mechanism} was not timed: {each.what}." for each in untimed),
        picture=picture([*costs, *softmax]) if costs else b"",
    )


def picture(curves: list[CostCurve]) -> bytes:
    """Time, memory and state against the length, on log axes."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    named = {curve.mechanism: curve for curve in curves}
    buffer = io.BytesIO()
    with static_style():
        figure = Figure(figsize=(9.0, 2.9))
        panels = figure.subplots(1, 3)
        known = looks(named)
        for name, curve in named.items():
            look = known[name]
            lengths = [cost.length for cost in curve.costs]
            series = [
                [1e3 * cost.seconds for cost in curve.costs],
                [cost.peak_bytes / 2**20 for cost in curve.costs],
                [cost.state_bytes / 2**10 for cost in curve.costs],
            ]
            for axes, values in zip(panels, series, strict=True):
                axes.plot(
                    lengths,
                    values,
                    color=look.colour,
                    linestyle=_line(look.dash),
                    marker=MARKERS[look.symbol],
                    markersize=4,
                    label=name,
                )
        for axes, label in zip(panels, ("time, ms", "peak memory, MiB", "state or cache, KiB"), strict=True):
            axes.set(xscale="log", yscale="log", xlabel="n, number of tokens", ylabel=label)
            axes.xaxis.set_major_locator(LogLocator(base=2, subs=(1,), numticks=5))
            axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
            axes.xaxis.set_minor_locator(NullLocator())
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=min(4, len(named)))
        figure.savefig(buffer, format="png", dpi=160)
    return buffer.getvalue()


def _line(dash: str) -> Any:
    """A dash of a page as matplotlib has it."""
    if dash == "solid":
        return "-"
    return 0, tuple(0.5 * float(part.removesuffix("px")) for part in dash.split(","))


def write(card: Card, out: Path) -> None:
    """In the form the ending of `out` names."""
    makers: dict[str, Callable[[], bytes]] = {
        ".html": lambda: page(card).encode(),
        ".json": lambda: json_file(card.as_json()),
    }
    write_whole(out, makers[out.suffix]())
