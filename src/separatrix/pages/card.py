"""A report card as a page of its own, which opens offline."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

from separatrix.analysis.cards.card import Card
from separatrix.analysis.costs.curves import CostCurve, Disagreement
from separatrix.core.files.writing import write_whole
from separatrix.core.numbers.json import json_file
from separatrix.pages import pages
from separatrix.pages.drawing import static_style
from separatrix.pages.plots.costs import UNITS, draw_costs
from separatrix.pages.standings import worst_first
from separatrix.pages.verdict_words import MARKED, MEANINGS

ENDINGS = (".html", ".json")


def page(card: Card) -> str:
    """The whole page."""
    cards = (card, *card.against)
    timed = {each.cost.mechanism: each.cost for each in cards if isinstance(each.cost, CostCurve)}
    compared = [each for each in card.against if each.constructions]
    untimed = [each.cost for each in cards if isinstance(each.cost, Disagreement)]
    costs = [*timed.values()]
    softmax = [card.softmax_cost] if isinstance(card.softmax_cost, CostCurve) else []
    return pages.page(
        "card.html.j2",
        title=card.mechanism.spelled,
        card=card,
        rows=worst_first(card, compared) if card.constructions else [],
        mechanisms=[each.mechanism.spelled for each in (card, *compared)],
        own=[cell for _, (cell, *_) in worst_first(card, compared)] if card.constructions else [],
        meanings=MEANINGS,
        marks=MARKED,
        costs=costs,
        untimed=" ".join(f"{each.mechanism} was not timed: {each.disagreement}." for each in untimed),
        picture=picture([*costs, *softmax]) if costs else b"",
    )


def picture(curves: list[CostCurve]) -> bytes:
    """Time, memory and state against the length, on log axes."""
    from matplotlib.figure import Figure

    buffer = io.BytesIO()
    with static_style():
        figure = Figure(figsize=(9.0, 2.9))
        panels = figure.subplots(1, len(UNITS))
        for axes, of in zip(panels, UNITS, strict=True):
            draw_costs(axes, curves, of)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=min(4, len(labels)))
        figure.savefig(buffer, format="png", dpi=160)
    return buffer.getvalue()


def content(card: Card, ending: str) -> bytes:
    """The card in the form that an ending of ENDINGS names."""
    makers: dict[str, Callable[[], bytes]] = {
        ".html": lambda: page(card).encode(),
        ".json": lambda: json_file(card.as_json()),
    }
    return makers[ending]()


def write(card: Card, out: Path) -> None:
    """In the form the ending of `out` names."""
    write_whole(out, content(card, out.suffix))
