"""Figure 5: Hoeffding's bound against the exact value, or how loose the proof is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from separatrix.claims.paper.figures import BASE, MECHANISMS, SURE
from separatrix.claims.paper.figures import HOEFFDING_BLOCK as BLOCK_SIZE
from separatrix.claims.paper.figures import REQUIRED_WIDTH as ASKED
from separatrix.claims.paper.figures import TARGET_P0 as TARGET
from separatrix.claims.paper.figures import HoeffdingCurve as Looseness
from separatrix.claims.paper.figures import hoeffding_point as point
from separatrix.pages.commands import number, verdict_command
from separatrix.pages.drawing import (
    FAINT,
    INK,
    LOOKS,
    WIDE,
    Drawn,
    Key,
    Panel,
    draw_line,
    level,
    mechanism_keys,
    note,
    plot,
)

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


BOUND = Key("Hoeffding's bound", "#111111", width=1.6)
HOVER = "<br>d = %{x}<br>%{y:.4g}"


def make(data: tuple[Looseness, ...]) -> Drawn:
    """Make the figure."""
    shown = min(data[0].d, key=lambda d: abs(d - int(BASE["d"])))
    return Drawn(
        name="hoeffding",
        title=f"The proof is loose: Hoeffding's bound is {number(min(data[0].ratio), 2)} to "
        f"{number(max(data[0].ratio), 2)} times the exact value",
        caption=_caption(data),
        commands=tuple(
            verdict_command(each.mechanism, point(shown), f"p0 = {number(each.exact[each.d.index(shown)])}")
            for each in data
        ),
        static=draw(data),
        panels=(
            Panel("One neuron fires on D0", interactive(data)),
            Panel("Bound divided by exact value", interactive_ratio(data)),
        ),
        keys=(*mechanism_keys(*MECHANISMS, markers=False), BOUND),
    )


def _caption(data: tuple[Looseness, ...]) -> tuple[str, ...]:
    softmax, m = data[0], int(BASE["m"])
    by_exact, by_bound = softmax.enough(softmax.exact, TARGET), softmax.enough(softmax.bound, TARGET)
    first, last = softmax.d[0], softmax.d[-1]
    return (
        "P(a neuron fires on D0), exactly and as the proof bounds it, over d = 4, 8, 12, … (no ties there) "
        f"with n = {BLOCK_SIZE}(d − 2), the rest as at the base point. Row j says $a_0 f_j y_1 + "
        "b Σ_k w_{jk} y_k + c y_d$, where $f_j$ is its weight on the spike and $w_{jk}$ on block k. Given "
        "$y_d$ it fires if the other signs add up to more than $τ - c y_d$, that is 0.1 or 2c + 0.1. With "
        "$V_j = a_0^2 f_j^2 + b^2 Σ_k w_{jk}^2$, Hoeffding's inequality and a union over the two distinct "
        "rows j (the spike, any other) give "
        "$p_0 <= Σ_j 1/2 [exp(-{0.1^2}/{2V_j}) + exp(-{(2c + 0.1)^2}/{2V_j})]$.",
        f"The bound is {number(softmax.ratio[0], 2)} times the exact value at d = {first} and "
        f"{number(softmax.ratio[-1], 2)} times at d = {last}. For m·p₀ ≤ δ = {SURE} with m = {m} the "
        f"exact value needs d ≥ {by_exact}, this bound d ≥ {by_bound}, and the theorem's condition $d - 2 >= "
        f"200 b^2 log({{4m}}/δ)$ asks for d ≥ {ASKED}. On D0 both mechanisms attend almost uniformly, so "
        "their curves nearly coincide.",
    )


def draw(data: tuple[Looseness, ...]) -> Figure:
    """Values on the left, their quotient on the right."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 3.1))
    left, right = figure.subplots(1, 2, width_ratios=(1.5, 1))
    for each in data:
        look = LOOKS[each.mechanism]
        left.plot(each.d, each.exact, color=look.colour, ls=look.line, lw=2)
        right.plot(each.d, each.ratio, color=look.colour, ls=look.line, lw=2, label=look.label)
    bound = data[0]
    left.plot(bound.d, bound.bound, color="#111111", lw=1.4)
    _label_left(left, data)
    for axes in (left, right):
        axes.set_yscale("log")
        axes.set_xlabel("d, width of a token")
    left.set_ylabel("P(a neuron fires on D0)")
    right.set_ylabel("bound / exact")
    right.legend(loc="upper left", handlelength=2.6)
    return figure


def _enough(softmax: Looseness) -> tuple[tuple[Sequence[float], str, str, tuple[int, int]], ...]:
    """The two curves that come down to the target: values, colour, and on which side the width stands."""
    return (
        (softmax.exact, LOOKS["softmax"].colour, "right", (-5, -9)),
        (softmax.bound, "#111111", "left", (5, 5)),
    )


def _label_left(axes: Axes, data: tuple[Looseness, ...]) -> None:
    softmax = data[0]
    middle = len(softmax.d) // 2
    axes.axhline(TARGET, color=FAINT, lw=0.9, ls=":")
    axes.text(softmax.d[-1], TARGET * 1.6, "δ/m at m = 12", ha="right", va="bottom", color=FAINT)
    axes.text(softmax.d[middle], softmax.bound[middle] * 12, "Hoeffding's bound", ha="left")
    axes.text(
        softmax.d[middle] - 8,
        softmax.exact[middle] / 30,
        "exact: softmax (solid),\nlinear (dashed)",
        ha="right",
        va="top",
    )
    for values, colour, side, shift in _enough(softmax):
        width = softmax.enough(values, TARGET)
        place = (width, values[softmax.d.index(width)])
        axes.plot(*place, "o", ms=4.5, color=colour, zorder=4)
        axes.annotate(f"d = {width}", place, xytext=shift, textcoords="offset points", ha=side, color=colour)


def interactive(data: tuple[Looseness, ...]) -> go.Figure:
    """The values, for the page."""
    figure = plot("d, width of a token", "P(a neuron fires on D0)", 360, yaxis={"type": "log", "dtick": 4})
    level(figure, TARGET, "δ/m at m = 12")
    for each in data:
        look = LOOKS[each.mechanism]
        draw_line(figure, each.d, each.exact, look, f"{look.label}, exact{HOVER}")
        draw_line(figure, each.d, each.bound, BOUND, f"{look.label}, bound{HOVER}", BOUND.width)
    middle = len(data[0].d) // 2
    words, p = "exact: softmax (solid),\nlinear (dashed)", data[0].exact[middle]
    below = {"xanchor": "right", "yanchor": "top", "xshift": -14, "name": WIDE}
    note(figure, data[0].d[middle], math.log10(p), words, INK, **below)
    for values, colour, side, _ in _enough(data[0]):
        width = data[0].enough(values, TARGET)
        p = values[data[0].d.index(width)]
        figure.add_scatter(
            x=[width], y=[p], mode="markers", marker={"color": colour, "size": 8}, hoverinfo="skip"
        )
        shift = 8 if side == "left" else -8
        note(figure, width, math.log10(p), f"d = {width}", colour, xanchor=side, xshift=shift, yshift=shift)
    return figure


def interactive_ratio(data: tuple[Looseness, ...]) -> go.Figure:
    """The quotients, for the page."""
    figure = plot("d, width of a token", "bound / exact", 360, yaxis={"type": "log", "dtick": 1})
    for each in data:
        look = LOOKS[each.mechanism]
        draw_line(figure, each.d, each.ratio, look, f"{look.label}{HOVER} times")
    return figure
