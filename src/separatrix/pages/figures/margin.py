"""Figure 4: what survives a better threshold, the margin, and when number formats lose it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from separatrix.claims.paper.figures import BASE, LAST_DECADE, MarginCurve
from separatrix.claims.paper.figures import MARGIN_MECHANISMS as MECHANISMS
from separatrix.core.numbers.formats import SIGNIFICANT_BITS
from separatrix.pages.commands import number, verdict_command
from separatrix.pages.drawing import (
    FAINT,
    LOOKS,
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
    from matplotlib.figure import Figure


LIFTS = (0.0, 0.0, 0.7, -1.7)
"""How far the label of each curve stands above its end, in factors of 2."""
LOWEST = -20
"""The decade at which the interactive plot ends."""


def make(curves: tuple[MarginCurve, ...]) -> Drawn:
    """Make the figure."""
    return Drawn(
        name="margin",
        title=_title(curves),
        caption=_caption(curves),
        commands=tuple(
            verdict_command(
                curve.mechanism,
                BASE,
                f"margin {number(curve.at(int(BASE['n'])))}, lost in fp32 from n: {_from(curve, 'fp32')}",
            )
            for curve in curves
        ),
        static=draw(curves),
        panels=(Panel("Relative margin against n", interactive(curves)),),
        keys=(
            *mechanism_keys(*MECHANISMS, markers=False),
            Key("lost from here", "#333333", "none", "x"),
            Key("floor of a number format", FAINT, "2px,2px", width=1.2),
        ),
        columns=1,
    )


def _title(curves: tuple[MarginCurve, ...]) -> str:
    far = 10**18
    softmax, linear = (number(curve.at(far), 3) for curve in (curves[0], curves[-1]))
    return (
        f"At n = {number(far)} softmax has a margin of {softmax} left for a better threshold, linear {linear}"
    )


def _from(curve: MarginCurve, name: str) -> str:
    size = curve.lost[name]
    return "none found" if size is None else number(size, 3)


def _all_from(curve: MarginCurve) -> str:
    if not any(curve.lost.values()):
        return "none found up to n = 10⁴⁰"
    return ", ".join(f"{_from(curve, name)} ({name})" for name in curve.lost)


def _caption(curves: tuple[MarginCurve, ...]) -> tuple[str, ...]:
    softmax, linear = curves[0], curves[-1]
    near, far = int(BASE["n"]), 10**18
    floors = ", ".join(f"2^−{bits} ({name})" for name, bits in SIGNIFICANT_BITS.items())
    lost = "; ".join(f"{LOOKS[curve.mechanism].label}: {_all_from(curve)}" for curve in reversed(curves))
    return (
        "With all signs + and v the largest pre-activation over the rows, the margin is v(D1) − v(D0). "
        f"Drawn is margin / v(D1) = 2^−bits, exact to n = 10^{LAST_DECADE}, at the base point. In units of "
        f"√(log n) softmax's margin is {number(softmax.at(near), 5)} at n = {near} and "
        f"{number(softmax.at(far), 5)} at n = {number(far)}; linear's is {number(linear.at(near))} and "
        f"{number(linear.at(far))}, that is {number(linear.at(far) * far, 3)}/n. A kernel of fixed degree "
        "starts higher and then falls as fast.",
        f"Horizontal lines are the smallest relative differences a number format can hold: {floors}. "
        "Crosses are the n from which on both labels round to the same number even in the best possible "
        f"implementation: the difference is lost. {lost}. A cross need not lie on its line: what counts "
        "is half a unit in the last place of b + c.",
    )


def draw(curves: tuple[MarginCurve, ...]) -> Figure:
    """One panel, log-log, with the curves labelled at their ends."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 3.7))
    axes = figure.subplots()
    axes.set_xscale("log")
    axes.set_yscale("log", base=2)
    for name, bits in SIGNIFICANT_BITS.items():
        axes.axhline(2.0**-bits, color=FAINT, lw=0.9, ls=":", zorder=1)
        side, place = ("left", 1.3e2) if bits > 40 else ("right", 0.75 * 10.0**LAST_DECADE)
        axes.text(place, 2.0**-bits, f"{name}, $2^{{-{bits}}}$", va="bottom", ha=side, color=FAINT, size=7.5)
    for curve in curves:
        look = LOOKS[curve.mechanism]
        axes.plot([float(n) for n in curve.n], curve.relative, color=look.colour, ls=look.line, lw=2)
        axes.plot(
            [float(curve.lost[name] or 0) for name in curve.relative_when_lost],
            list(curve.relative_when_lost.values()),
            ls="",
            marker="x",
            ms=6,
            mew=1.8,
            color=look.colour,
        )
    for curve, lift in zip(curves, LIFTS, strict=True):
        look, end = LOOKS[curve.mechanism], curve.relative[-1] * 2**lift
        axes.text(1.3 * float(curve.n[-1]), end, look.label, color=look.colour, va="center", weight="bold")
    axes.set_xlim(100, 10.0**LAST_DECADE)
    axes.set_ylim(2.0**-66, 2.0**2)
    axes.set_xticks([10.0**i for i in range(2, LAST_DECADE + 1, 2)])
    axes.set_yticks([2.0**-i for i in range(0, 70, 10)])
    axes.set_xlabel("n, number of tokens (× lost from here)")
    axes.set_ylabel("relative margin, $(v_1 - v_0)\\,/\\,v_1$")
    return figure


def interactive(curves: tuple[MarginCurve, ...]) -> go.Figure:
    """The interactive plot for the page."""
    figure = plot(
        "n, number of tokens",
        "relative margin",
        440,
        xaxis={"type": "log", "dtick": 4, "tick0": 0, "range": [2, LAST_DECADE]},
        yaxis={"type": "log", "dtick": 3, "range": [LOWEST, 0.5]},
    )
    for name, bits in SIGNIFICANT_BITS.items():
        level(figure, 2.0**-bits, f"{name}, 2<sup>−{bits}</sup>", left=bits > 40)
    for curve in curves:
        look = LOOKS[curve.mechanism]
        hover = "n = %{x:.3g}<br>relative margin %{y:.4g}<br>margin %{customdata:.6g} √(log n)"
        n = [float(n) for n in curve.n]
        draw_line(figure, n, curve.relative, look, f"{look.label}<br>{hover}", customdata=curve.margin)
        figure.add_scatter(
            x=[float(curve.lost[name] or 0) for name in curve.relative_when_lost],
            y=list(curve.relative_when_lost.values()),
            text=[f"lost in {name} from n = {curve.lost[name]:,}" for name in curve.relative_when_lost],
            mode="markers",
            marker={"symbol": "x-thin", "size": 9, "line": {"color": look.colour, "width": 2.6}},
            hovertemplate=f"{look.label}<br>%{{text}}<extra></extra>",
        )
    beside = {"xref": "x domain", "xanchor": "left", "xshift": 4}
    for curve, lift in zip(curves, LIFTS, strict=True):
        look, end = LOOKS[curve.mechanism], math.log10(curve.relative[-1]) + 0.4 * lift
        note(figure, 1, end, f"<b>{look.label}</b>", look.colour, **beside)
    figure.update_layout(margin={"r": 104})
    return figure
