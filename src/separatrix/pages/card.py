"""A report card as a static page."""

from __future__ import annotations

from separatrix.analysis.cards.card import Card
from separatrix.analysis.costs.curves import CostCurve, Disagreement
from separatrix.pages.charts import draw_charts
from separatrix.pages.pages import render_page
from separatrix.pages.paper import paper_style, save_small_png
from separatrix.pages.plots.costs import UNITS, cost_chart
from separatrix.pages.standings import sort_worst_first

SUFFIXES = (".html", ".json")


def page(card: Card) -> str:
    """Return the page of a card, which may be unfinished."""
    cards = (card, *card.against)
    compared = [other for other in card.against if other.constructions]
    rows = sort_worst_first(card, compared) if card.constructions else []
    # A mechanism that is compared with itself has one curve.
    costs = list({other.cost.mechanism: other.cost for other in cards if isinstance(other.cost, CostCurve)}.values())
    softmax = [card.softmax_cost] if isinstance(card.softmax_cost, CostCurve) else []
    untimed = [other.cost for other in cards if isinstance(other.cost, Disagreement)]
    charts = [cost_chart([*costs, *softmax], quantity) for quantity in UNITS] if costs else []
    with paper_style():
        image = save_small_png(draw_charts(charts, (9.0, 2.9), 3)) if charts else b""
    return render_page(
        "card.html.j2",
        ("chart",) if charts else (),
        title=card.mechanism.spelled,
        card=card,
        rows=rows,
        mechanisms=[column.mechanism.spelled for column in (card, *compared)],
        cells=[cells[0] for _, cells in rows],
        costs=costs,
        untimed=" ".join(f"{cost.mechanism} was not timed: {cost.disagreement}." for cost in untimed),
        charts=charts,
        image=image,
    )
