"""A report card as a page of its own, which opens offline."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

from separatrix.cards import Card
from separatrix.costs import CostCurve, Disagreement
from separatrix.files.writing import write_whole
from separatrix.numbers.json import json_file
from separatrix.reports import pages
from separatrix.reports.drawing import static_style
from separatrix.reports.standings import shown

ENDINGS = (".html", ".json")


def page(card: Card) -> str:
    """The whole page."""
    cards = (card, *card.against)
    timed = {each.cost.mechanism: each.cost for each in cards if isinstance(each.cost, CostCurve)}
    untimed = [each.cost for each in cards if isinstance(each.cost, Disagreement)]
    costs = [*timed.values()]
    softmax = [card.softmax_cost] if isinstance(card.softmax_cost, CostCurve) else []
    return pages.page(
        "card.html.j2",
        title=card.mechanism.spelled,
        card=card,
        standings=[(each.mechanism.spelled, shown(cell)) for each in cards for cell in each.standings],
        costs=costs,
        untimed=" ".join(f"{each.mechanism} was not timed: {each.what}." for each in untimed),
        picture=picture([*costs, *softmax]) if costs else b"",
    )


def picture(curves: list[CostCurve]) -> bytes:
    """Time, memory and state against the length, on log axes."""
    from matplotlib.figure import Figure

    named = {curve.mechanism: curve for curve in curves}
    buffer = io.BytesIO()
    with static_style():
        figure = Figure(figsize=(9.0, 2.9))
        panels = figure.subplots(1, 3)
        for mark_, (name, curve) in zip("osD^vPX*" * 9, named.items(), strict=False):
            lengths = [cost.length for cost in curve.costs]
            series = [
                [1e3 * cost.seconds for cost in curve.costs],
                [cost.peak_bytes / 2**20 for cost in curve.costs],
                [cost.state_bytes / 2**10 for cost in curve.costs],
            ]
            for axes, values in zip(panels, series, strict=True):
                axes.plot(lengths, values, marker=mark_, markersize=4, label=name)
        for axes, label in zip(panels, ("time, ms", "peak memory, MiB", "state or cache, KiB"), strict=True):
            axes.set(xscale="log", yscale="log", xlabel="n, number of tokens", ylabel=label)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=min(4, len(named)))
        figure.savefig(buffer, format="png", dpi=160)
    return buffer.getvalue()


def write(card: Card, out: Path) -> None:
    """In the form the ending of `out` names."""
    makers: dict[str, Callable[[], bytes]] = {
        ".html": lambda: page(card).encode(),
        ".json": lambda: json_file(card.as_json()),
    }
    write_whole(out, makers[out.suffix]())
