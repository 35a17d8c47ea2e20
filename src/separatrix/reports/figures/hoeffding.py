"""Figure 5: Hoeffding's bound against the exact value, or how loose the proof is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from separatrix.constructions import Construction, Spike
from separatrix.engines import exact
from separatrix.engines.certified import exact_model, spike_weights, with_kernel
from separatrix.mechanisms import mechanism_named
from separatrix.parameters import Grid
from separatrix.reports.drawing import FAINT, LOOKS, Drawn, Key, Panel, level, mechanism_keys, plot
from separatrix.reports.effort import FULL, Effort
from separatrix.reports.points import BASE, MECHANISMS, Parameter, number, verdict_command

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLOCK_SIZE = 1000
"""n = 1000 (d-2)."""
WIDEST = 300
DELTA = 0.01


@dataclass(frozen=True)
class Looseness:
    """P[a neuron fires on D0] and its bound, over d."""

    mechanism: str
    d: tuple[int, ...]
    exact: tuple[float, ...]
    bound: tuple[float, ...]

    @property
    def ratio(self) -> tuple[float, ...]:
        """How many times too large the bound is."""
        return tuple(b / p for b, p in zip(self.bound, self.exact, strict=True))

    def enough(self, values: Sequence[float], target: float) -> int:
        """The least d from which on `values` stay at or below `target`."""
        above = [d for d, value in zip(self.d, values, strict=True) if value > target]
        return next(d for d in self.d if d > above[-1])


def point(d: int) -> dict[str, Parameter]:
    """The base point with another width, in blocks of the same size."""
    return {**BASE, "n": BLOCK_SIZE * (d - 2), "d": d}


def compute(effort: Effort = FULL) -> tuple[Looseness, ...]:
    """Both mechanisms over d = 4, 8, 12, ...: sums of signs that never meet the threshold exactly."""
    widths = effort.thinned(range(4, WIDEST + 1, 4))
    return tuple(_looseness(mechanism, widths) for mechanism in MECHANISMS)


def _looseness(mechanism: str, widths: tuple[int, ...]) -> Looseness:
    attends = mechanism_named(mechanism)
    fixed = {name: value for name, value in BASE.items() if name not in ("n", "d")}
    axis = {"d": widths, "n": [BLOCK_SIZE * (d - 2) for d in widths]}
    found = exact.evaluate(Spike, attends, Grid(fixed, (axis,))).p0
    bounds = tuple(hoeffding(Spike.read(point(d)), mechanism) for d in widths)
    return Looseness(mechanism, widths, tuple(float(p) for p in found), bounds)


def hoeffding(construction: Construction, mechanism: str) -> float:
    """The bound on P[some row's pre-activation exceeds tau on D0], form=ones.

    Row j says `a0 f_j y_1 + b sum_k w_jk y_k + c y_d` with f_j its weight on the spike and w_jk on
    block k. Given y_d it must exceed tau - c y_d, and by Hoeffding a sum of independent signs with
    weights of squared length V_j exceeds s with probability at most exp(-s²/(2 V_j)).
    """
    values = construction.parameters.values()
    n, d, size = int(values["n"]), int(values["d"]), int(values["n"] // (values["d"] - 2))
    a0, b, c, tau = (float(values[name]) for name in ("a0", "b", "c", "tau"))
    total = 0.0
    for weight in spike_weights(
        with_kernel(mechanism_named(mechanism)), exact_model(construction), 0
    ).values():
        f = float(weight)
        each = (1 - f) / (n - 1)
        squared = (a0 * f) ** 2 + b**2 * ((f + (size - 1) * each) ** 2 + (d - 3) * (size * each) ** 2)
        total += sum(0.5 * math.exp(-((tau - c * sign) ** 2) / (2 * squared)) for sign in (1, -1))
    return min(total, 1.0)


def make(effort: Effort = FULL) -> Drawn:
    """The figure."""
    data = compute(effort)
    shown = min(data[0].d, key=lambda d: abs(d - int(BASE["d"])))
    return Drawn(
        name="hoeffding",
        title="How loose the proof is: Hoeffding's bound against the exact value",
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
        keys=(*mechanism_keys(*MECHANISMS, markers=False), Key("Hoeffding's bound", "#111111", width=1.6)),
    )


def _caption(data: tuple[Looseness, ...]) -> tuple[str, ...]:
    softmax, m = data[0], int(BASE["m"])
    target = DELTA / m
    by_exact, by_bound = softmax.enough(softmax.exact, target), softmax.enough(softmax.bound, target)
    asked = 2 + math.ceil(200 * float(Fraction(BASE["b"])) ** 2 * math.log(4 * m / DELTA))
    first, last = softmax.d[0], softmax.d[-1]
    return (
        "P[a neuron fires on D0], exactly and as the proof bounds it, over d = 4, 8, 12, … (no ties there) "
        f"with n = {BLOCK_SIZE}(d − 2), the rest as at the base point. Row j says a₀ f_j y₁ + b Σ_k w_jk "
        "y_k + c y_d, where f_j is its weight on the spike and w_jk on block k. Given y_d it fires if the "
        "other signs add up to more than τ − c y_d, that is 0.1 or 2c + 0.1. With V_j = a₀² f_j² + b² Σ_k "
        "w_jk², Hoeffding's inequality and a union over the two distinct rows j (the spike, any other) "
        "give p₀ ≤ Σ_j ½ [exp(−0.1²/(2V_j)) + exp(−(2c + 0.1)²/(2V_j))].",
        f"The bound is {number(softmax.ratio[0], 2)} times the exact value at d = {first} and "
        f"{number(softmax.ratio[-1], 2)} times at d = {last}. For m·p₀ ≤ δ = {DELTA} with m = {m} the exact "
        f"value needs d ≥ {by_exact}, this bound d ≥ {by_bound}, and the theorem's condition d − 2 ≥ 200 b² "
        f"log(4m/δ) asks for d ≥ {asked}. On D0 both mechanisms attend almost uniformly, so their curves "
        "nearly coincide.",
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
    left.set_ylabel("P[a neuron fires on D0]")
    right.set_ylabel("bound / exact")
    right.legend(loc="upper left", handlelength=2.6)
    return figure


def _label_left(axes: Axes, data: tuple[Looseness, ...]) -> None:
    softmax, target = data[0], DELTA / int(BASE["m"])
    middle = len(softmax.d) // 2
    axes.axhline(target, color=FAINT, lw=0.9, ls=":")
    axes.text(softmax.d[-1], target * 1.6, "δ/m at m = 12", ha="right", va="bottom", color=FAINT)
    axes.text(softmax.d[middle], softmax.bound[middle] * 12, "Hoeffding's bound", ha="left")
    axes.text(
        softmax.d[middle] - 8,
        softmax.exact[middle] / 30,
        "exact: softmax (solid),\nlinear (dashed)",
        ha="right",
        va="top",
    )
    for values, colour, side, shift in (
        (softmax.exact, LOOKS["softmax"].colour, "right", (-5, -9)),
        (softmax.bound, "#111111", "left", (5, 5)),
    ):
        width = softmax.enough(values, target)
        place = (width, values[softmax.d.index(width)])
        axes.plot(*place, "o", ms=4.5, color=colour, zorder=4)
        axes.annotate(f"d = {width}", place, xytext=shift, textcoords="offset points", ha=side, color=colour)


def interactive(data: tuple[Looseness, ...]) -> go.Figure:
    """The values, for the page."""
    import plotly.graph_objects as go

    figure = plot("d, width of a token", "P[a neuron fires on D0]", 360, yaxis={"type": "log", "dtick": 4})
    level(figure, DELTA / int(BASE["m"]), "δ/m at m = 12")
    for each in data:
        look = LOOKS[each.mechanism]
        for values, line, name in (
            (each.exact, {"color": look.colour, "dash": look.dash, "width": 2.6}, f"{look.label}, exact"),
            (each.bound, {"color": "#111111", "width": 1.6}, f"{look.label}, bound"),
        ):
            figure.add_trace(
                go.Scatter(
                    x=each.d,
                    y=values,
                    mode="lines",
                    line=line,
                    hovertemplate=f"{name}<br>d = %{{x}}<br>%{{y:.4g}}<extra></extra>",
                )
            )
    return figure


def interactive_ratio(data: tuple[Looseness, ...]) -> go.Figure:
    """The quotients, for the page."""
    import plotly.graph_objects as go

    figure = plot("d, width of a token", "bound / exact", 360, yaxis={"type": "log", "dtick": 1})
    for each in data:
        look = LOOKS[each.mechanism]
        figure.add_trace(
            go.Scatter(
                x=each.d,
                y=each.ratio,
                mode="lines",
                line={"color": look.colour, "dash": look.dash, "width": 2.6},
                hovertemplate=f"{look.label}<br>d = %{{x}}<br>%{{y:.4g}} times<extra></extra>",
            )
        )
    return figure
