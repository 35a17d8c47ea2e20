"""Drawing of weight matrices of linear attention: P of each, next to softmax."""

from __future__ import annotations

from separatrix.analysis.weights import Weights
from separatrix.core.numbers import format_exact
from separatrix.pages.paper import Axes
from separatrix.pages.plots.verdicts import draw_bar, draw_thresholds
from separatrix.pages.verdict_words import COLOURS


def draw_weights(result: Weights, axes: Axes) -> None:
    """Draw P(tells apart) of every weight matrix, and of softmax with X = 11ᵀ."""
    softmax = result.softmax
    bars = [(choice.name, choice.distinguish, choice.verdict, choice.needs) for choice in result.choices]
    bars.append(("softmax, ones", softmax.outcome.distinguish, softmax.word, ()))
    for row, (_, chance, word, needs) in enumerate(bars):
        text = f"{chance:.4g}{', needs ' + ', '.join(needs) if needs else ''}"
        draw_bar(axes, row, chance, (chance, chance), COLOURS[word], text)
    draw_thresholds(axes, softmax)
    axes.set(ylim=(len(bars) - 0.5, -0.5), yticks=range(len(bars)), yticklabels=[name for name, *_ in bars])
    axes.set_xlabel(f"P(tells apart); dotted: delta = {format_exact(softmax.delta)}, and 1 - delta", size=8)
    axes.set_title("linear attention on the spike, by weight matrix")
