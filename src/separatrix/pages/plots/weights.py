"""Drawing of weight matrices of linear attention: P of each, next to softmax."""

from __future__ import annotations

from typing import TYPE_CHECKING

from separatrix.core.numbers import format_exact
from separatrix.pages.looks import INK, PRINTED
from separatrix.pages.verdict_words import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from separatrix.analysis.weights import Weights


def draw_weights(result: Weights, axes: Axes) -> None:
    """Draw P(tells apart) of every weight matrix, and of softmax with X = 11ᵀ."""
    softmax, ink = result.softmax, PRINTED[INK]
    bars = [(choice.name, choice.distinguish, choice.verdict, choice.needs) for choice in result.choices]
    bars.append(("softmax, ones", softmax.outcome.distinguish, softmax.word, ()))
    for row, (_, chance, word, needs) in enumerate(bars):
        axes.barh(row, chance, height=0.66, color=COLOURS[word], edgecolor=ink, lw=0.6)
        is_inside, text = chance > 0.6, f"{chance:.4g}{', needs ' + ', '.join(needs) if needs else ''}"
        axes.annotate(
            text,
            (chance, row),
            (-4 if is_inside else 4, 0),
            textcoords="offset points",
            ha="right" if is_inside else "left",
            va="center",
            color="white" if is_inside else ink,
            size=7.5,
        )
    delta = float(softmax.delta)
    for at in (delta, 1 - delta):
        axes.axvline(at, color=ink, lw=0.8, ls=(0, (2, 2)))
    axes.set(xlim=(0, 1), ylim=(len(bars) - 0.5, -0.5), yticks=range(len(bars)))
    axes.set_yticklabels([name for name, *_ in bars])
    axes.grid(visible=False, axis="y")
    axes.set_xlabel(f"P(tells apart); dotted: delta = {format_exact(softmax.delta)}, and 1 - delta", size=8)
    axes.set_title("linear attention on the spike, by weight matrix")
