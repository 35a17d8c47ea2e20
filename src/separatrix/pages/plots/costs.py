"""Charts of the cost of mechanisms against the length, and the drawing of a card."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from separatrix.analysis.cards.card import Card
from separatrix.analysis.costs.curves import Bench, CostCurve
from separatrix.pages.charts import Chart, ChartAxis, Series, draw_chart
from separatrix.pages.looks import BLUE, ORANGE, VERMILION, choose_looks
from separatrix.pages.paper import Axes
from separatrix.pages.plots.registry import SIZE
from separatrix.pages.verdict_words import COLOURS

UNITS = {
    "seconds": ("time, ms", 1e3),
    "peak_bytes": ("peak memory, MiB", 2.0**-20),
    "state_bytes": ("state or cache, KiB", 2.0**-10),
}
"""The label of each quantity, and the factor to its unit."""
CHECK_COLOURS = {"broken": VERMILION, "not tried": ORANGE, "kept": BLUE, "does not apply": "#d9d9d9"}
ROW_HEIGHT = 0.16
"""Inches of a row of a card."""


def cost_chart(curves: Iterable[CostCurve], quantity: str) -> Chart:
    """Return one quantity of some curves on logarithmic axes, each mechanism once."""
    label, factor = UNITS[quantity]
    by_name = {curve.mechanism: curve for curve in curves}
    looks = choose_looks(by_name)
    series = []
    for name, curve in by_name.items():
        points = [(cost.length, factor * getattr(cost, quantity)) for cost in curve.costs]
        positive = [point for point in points if point[1] > 0]  # a logarithm has no zero
        series.append(Series.through(positive, looks[name], name))
    lengths = sorted({x for line in series for x in line.x})
    # At most five, since the texts of all lengths would overlap.
    ticks = [(length, f"{length:,.0f}") for length in lengths[:: -(-len(lengths) // 5) or 1]]
    axes = ChartAxis("n, number of tokens", log=True, ticks=ticks), ChartAxis(label, log=True)
    return Chart(*axes, series, height=260)


def draw_bench(result: Bench, axes: Axes) -> None:
    """Draw the time of every mechanism that was measured."""
    _draw_seconds([cost for cost in (result.softmax, *result.costs) if isinstance(cost, CostCurve)], axes)


def _draw_seconds(curves: Sequence[CostCurve], axes: Axes) -> None:
    if curves:
        draw_chart(axes, cost_chart(curves, "seconds"))
        axes.legend()


def draw_card(result: Card, axes: Axes) -> None:
    """Draw the time of the mechanisms, or before it is measured, the verdicts or the checks as rows."""
    if curves := _curves(result):
        _draw_seconds(curves, axes)
        return
    rows = _rows(result)
    for place, (_, word, colour) in enumerate(rows):
        axes.plot(0, place, "s", color=colour, markeredgecolor="#555555", markeredgewidth=0.5)
        axes.annotate(word, (0, place), (8, 0), textcoords="offset points", va="center", size=7)
    axes.set_yticks(range(len(rows)), [name for name, _, _ in rows], size=7)
    axes.set(xlim=(-0.2, 2), ylim=(len(rows) - 0.4, -0.6), xticks=[], title=result.mechanism.spelled)


def card_size(result: Card) -> tuple[float, float]:
    """Return the inches across and up, more for a card of many rows."""
    return SIZE[0], max(SIZE[1], 0.0 if _curves(result) else 0.6 + ROW_HEIGHT * len(_rows(result)))


def _curves(result: Card) -> list[CostCurve]:
    costs = (result.cost, *(card.cost for card in result.against), result.softmax_cost)
    return [cost for cost in costs if isinstance(cost, CostCurve)]


def _rows(result: Card) -> list[tuple[str, str, str]]:
    """Return the name, the word and the colour of each row: constructions, or checks of the contract."""
    if result.constructions:
        return [(name, cell.word, COLOURS[cell.word]) for name, cell in result.constructions.items()]
    return [(check["check"], check["outcome"], CHECK_COLOURS[check["outcome"]]) for check in result.contract_rows()]
