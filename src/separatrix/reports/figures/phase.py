"""Figure 2: where softmax separates, over the spike and the row sum."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from separatrix.paper.base import BASE, MECHANISMS
from separatrix.paper.phase import ASKED, BASE_R, LARGE_N, MIDDLE, SHARE_B, SMALL_N, WIDTH, Array, PhaseMap
from separatrix.reports.commands import number, verdict_command
from separatrix.reports.drawing import INK, LOOKS, Drawn, Key, Panel, plot

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = "cividis"
STRIP = "#b33c00"


def make(data: PhaseMap) -> Drawn:
    """Make the figure."""
    return Drawn(
        name="phase",
        title="Where softmax separates: a₁(a₁ + b + c) = 1",
        caption=_caption(data),
        commands=tuple(verdict_command(name, MIDDLE, f"P = {number(p)}") for name, p in data.middle.items()),
        static=draw(data),
        panels=tuple(Panel(f"{name}, n = 10¹⁸", interactive(data, name)) for name in MECHANISMS),
        keys=(
            Key("a₁(a₁+b+c) = 1", "#111111", width=2.6),
            Key(f"P = ½ at n = {number(SMALL_N)}", "#111111", "2px,3px", width=2),
            Key("|a₁ − b| = 0.1", STRIP, "8px,4px", width=2.4),
        ),
    )


def _largest(data: PhaseMap, mechanism: str) -> float:
    return float(np.nanmax(data.large[mechanism]))


def _caption(data: PhaseMap) -> tuple[str, ...]:
    decided = sum(int(np.isfinite(each).sum()) for each in data.large.values())
    return (
        f"P[distinguishes] at n = {number(LARGE_N)}, d = {WIDTH:,}, m = {BASE['m']}, a₀ = {BASE['a0']}, "
        "over the spike a₁ and the row sum b + c of an ordinary token, split b : c = 2 : 1 as at the base "
        "point. d is chosen wide: the theorem's condition d − 2 ≥ 200 b² log(4m/δ) asks for at most "
        f"{ASKED:,.0f} here (δ = 0.01), so it hides nothing. Exact at {decided:,} of the "
        f"{2 * data.a1.size * data.r.size:,} points of the two maps.",
        "The white line is the sharp boundary as n → ∞, a₁(a₁+b+c) = 1; the dotted one is where P = ½ "
        f"already at n = {number(SMALL_N)}. At b + c = {BASE_R:.1f} the boundary lies at a₁ = "
        f"{data.limit_at_base:.4f}; P passes ½ at a₁ = {data.crossings[SMALL_N]:.3f} for n = "
        f"{number(SMALL_N)} and at {data.crossings[LARGE_N]:.3f} for n = {number(LARGE_N)}: lower, since the "
        "spike need only add about 0.1 to its row, not be attended to fully. Between the two dashed "
        "lines |a₁ − b| < 0.1 (the theorem asks for a₁ − b > 0.1): a sign vector then fires on the "
        f"spike only if the spike's sign and its block's are both +, and with m = {BASE['m']} of them "
        f"the probability stops at {number(data.in_strip)}. Linear attention is blind: its largest value on "
        f"the map is {number(_largest(data, 'linear'))}.",
    )


def draw(data: PhaseMap) -> Figure:
    """Softmax and linear side by side, with one colour bar."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 3.1))
    panels = figure.subplots(1, 2, sharey=True)
    for axes, mechanism in zip(panels, MECHANISMS, strict=True):
        image = axes.imshow(
            data.large[mechanism],
            origin="lower",
            extent=(data.a1[0], data.a1[-1], data.r[0], data.r[-1]),
            aspect="auto",
            vmin=0,
            vmax=1,
            cmap=COLOURS,
            interpolation="nearest",
        )
        axes.grid(False)
        axes.set_title(f"{LOOKS[mechanism].label}, $n = 10^{{18}}$")
        axes.set_xlabel("$a_1$, in units of √(log n)")
    panels[0].set_ylabel("$b + c$, in units of √(log n)")
    _draw_lines(panels[0], data)
    panels[1].text(
        0.95, 0.8, f"largest P: {number(_largest(data, 'linear'))}", color="white", ha="center", size=9
    )
    bar = figure.colorbar(image, ax=panels, label="P[distinguishes]", aspect=28, pad=0.02)
    bar.outline.set_visible(False)
    return figure


def _draw_lines(axes: Axes, data: PhaseMap) -> None:
    from matplotlib.patheffects import withStroke

    axes.plot(
        data.limit, data.r, color="white", lw=1.8, path_effects=[withStroke(linewidth=3.2, foreground=INK)]
    )
    axes.contour(data.a1, data.r, data.small, levels=[0.5], colors="white", linewidths=1.4, linestyles=":")
    for edge, width in ((0.1, 1.6), (-0.1, 0.9)):
        a1, r = _strip(data, edge)
        axes.plot(a1, r, color=STRIP, lw=width, ls=(0, (5, 2)))
    axes.set_xlim(data.a1[0], data.a1[-1])
    start = float(np.interp(0.55, data.r, data.limit))
    axes.annotate(
        "boundary as $n \\to \\infty$:\n$a_1(a_1{+}b{+}c) = 1$",
        (start, 0.55),
        (1.0, 0.55),
        va="center",
        size=8,
        arrowprops={"arrowstyle": "-", "color": INK, "lw": 0.8},
    )
    axes.text(0.33, 0.22, "dotted: $P = 1/2$\nat $n = 10^4$", color="white", size=7.5, va="center")
    axes.text(1.07, 1.32, "$|a_1 - b| = 0.1$", color=STRIP, size=8, ha="left")


def _strip(data: PhaseMap, edge: float) -> tuple[Array, Array]:
    """The line a1 - b = edge, as far as it lies where softmax separates."""
    a1 = data.r * float(SHARE_B) + edge
    inside = a1 > data.limit
    return a1[inside], data.r[inside]


def interactive(data: PhaseMap, mechanism: str) -> go.Figure:
    """One map for the page."""
    figure = plot(
        "a₁, in units of √(log n)",
        "b + c, in units of √(log n)",
        400,
        xaxis={"range": [data.a1[0], data.a1[-1]], "showgrid": False, "dtick": 0.2},
        yaxis={"range": [data.r[0], data.r[-1]], "showgrid": False, "dtick": 0.2},
    )
    figure.add_heatmap(
        x=data.a1,
        y=data.r,
        z=data.large[mechanism].astype(np.float32),
        zmin=0,
        zmax=1,
        colorscale="Cividis",
        colorbar={
            "title": {"text": "P[distinguishes]", "side": "right", "font": {"size": 13}},
            "tickfont": {"size": 12},
            "thickness": 12,
            "outlinewidth": 0,
        },
        hovertemplate="a₁ = %{x:.3f}, b + c = %{y:.3f}<br>P = %{z:.6g}<extra></extra>",
    )
    if mechanism == "softmax":
        _add_lines(figure, data)
    return figure


def _add_lines(figure: go.Figure, data: PhaseMap) -> None:
    limit = (data.limit, data.r)
    for (x, y), line in (
        (limit, {"color": INK, "width": 4.4}),
        (limit, {"color": "white", "width": 2.4}),
        (_strip(data, 0.1), {"color": STRIP, "width": 2.4, "dash": "8px,4px"}),
        (_strip(data, -0.1), {"color": STRIP, "width": 1.4, "dash": "8px,4px"}),
    ):
        figure.add_scatter(x=x, y=y, mode="lines", line=line, hoverinfo="skip")
    figure.add_contour(
        x=data.a1,
        y=data.r,
        z=data.small.astype(np.float32),
        contours={"start": 0.5, "end": 0.5, "size": 1, "coloring": "none"},
        line={"color": "white", "width": 1.8, "dash": "2px,3px"},
        showscale=False,
        hoverinfo="skip",
    )
