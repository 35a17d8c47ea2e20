"""Figure 2: where softmax separates, over the spike and the row sum."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from separatrix.claims.paper.figures import (
    BASE,
    BASE_R,
    LARGE_N,
    MECHANISMS,
    MIDDLE,
    SHARE_B,
    SMALL_N,
    PhaseMap,
)
from separatrix.claims.paper.figures import PHASE_WIDTH as WIDTH
from separatrix.claims.paper.figures import REQUIRED_BLOCKS as ASKED
from separatrix.pages.commands import number, verdict_command
from separatrix.pages.drawing import DARK, INK, WIDE, Drawn, Key, Panel, note, plot
from separatrix.pages.maps.heatmap import SOLID, bound

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = "cividis"
STRIP = "#b33c00"
PROBABILITY = "P(tells apart)"


def make(data: PhaseMap) -> Drawn:
    """Make the figure."""
    return Drawn(
        name="phase",
        title=_title(data),
        caption=_caption(data),
        commands=tuple(verdict_command(name, MIDDLE, f"P = {number(p)}") for name, p in data.middle.items()),
        static=draw(data),
        panels=tuple(Panel(_panel_title(data, name), interactive(data, name)) for name in MECHANISMS),
        keys=(
            Key("$a_1(a_1 + b + c) = 1$", "#ffffff", width=2.6, behind=DARK),
            Key(f"P = ½ at n = {number(SMALL_N)}", "#ffffff", "2px,3px", width=2, behind=DARK),
            Key("$|a_1 - b| = 0.1$", STRIP, "8px,4px", width=2.4),
        ),
    )


def _title(data: PhaseMap) -> str:
    """On how much of the map each mechanism tells D0 from D1."""
    shares = {name: float(np.mean(data.large[name] >= 0.99)) for name in MECHANISMS}
    softmax, linear = (f"on {share:.0%} of the map" if share else "nowhere" for share in shares.values())
    return f"At n = {number(LARGE_N)} softmax tells D0 from D1 {softmax}, linear attention {linear}"


def _is_solid(data: PhaseMap, mechanism: str) -> bool:
    """Whether P is the same nearly everywhere: then the margin is shown."""
    return _largest(data, mechanism) - float(np.nanmin(data.large[mechanism])) < SOLID


def _panel_title(data: PhaseMap, mechanism: str) -> str:
    told = f"{mechanism}, n = {number(LARGE_N)}"
    if not _is_solid(data, mechanism):
        return told
    least = float(np.nanmin(data.large[mechanism]))
    return f"{told}, margin ({bound(least, _largest(data, mechanism))})"


def _shown(data: PhaseMap, mechanism: str) -> tuple[np.ndarray[Any, Any], str, float, float]:
    """What a panel shows, what that is called, and the ends of its colours."""
    if not _is_solid(data, mechanism):
        return data.large[mechanism], PROBABILITY, 0.0, 1.0
    logs = np.log10(data.margin[mechanism])
    return logs, "log₁₀ of the margin", float(np.nanmin(logs)), float(np.nanmax(logs))


def _largest(data: PhaseMap, mechanism: str) -> float:
    return float(np.nanmax(data.large[mechanism]))


def _caption(data: PhaseMap) -> tuple[str, ...]:
    decided = sum(int(np.isfinite(each).sum()) for each in data.large.values())
    return (
        f"P(tells apart) at n = {number(LARGE_N)}, d = {WIDTH:,}, m = {BASE['m']}, a₀ = {BASE['a0']}, "
        "over the spike a₁ and the row sum b + c of an ordinary token, split b : c = 2 : 1 as at the base "
        "point. d is chosen wide: the theorem's condition $d - 2 >= 200 b^2 log({4m}/δ)$ asks for at most "
        f"{ASKED:,.0f} here (δ = 0.01), so it hides nothing. Exact at {decided:,} of the "
        f"{2 * data.a1.size * data.r.size:,} points of the two maps.",
        "The white line is the sharp boundary as n → ∞, $a_1(a_1 + b + c) = 1$; the dotted one is where "
        f"P = ½ already at n = {number(SMALL_N)}. At b + c = {BASE_R:.1f} the boundary lies at a₁ = "
        f"{data.limit_at_base:.4f}; P passes ½ at a₁ = {data.crossings[SMALL_N]:.3f} for n = "
        f"{number(SMALL_N)} and at {data.crossings[LARGE_N]:.3f} for n = {number(LARGE_N)}: lower, since the "
        "spike need only add about 0.1 to its row, not be attended to fully. Between the two dashed "
        "lines $|a_1 - b| < 0.1$ (the theorem asks for $a_1 - b > 0.1$): a sign vector then fires on the "
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
        values, label, low, high = _shown(data, mechanism)
        image = axes.imshow(
            values,
            origin="lower",
            extent=(data.a1[0], data.a1[-1], data.r[0], data.r[-1]),
            aspect="auto",
            vmin=low,
            vmax=high,
            cmap=COLOURS,
            interpolation="nearest",
        )
        axes.grid(False)
        axes.set_title(textwrap.fill(_panel_title(data, mechanism), 44))
        axes.set_xlabel("$a_1$, in units of √(log n)")
        bar = figure.colorbar(image, ax=axes, label=label, aspect=28, pad=0.02)
        bar.outline.set_visible(False)
    panels[0].set_ylabel("$b + c$, in units of √(log n)")
    _draw_lines(panels[0], data)
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


def _strip(data: PhaseMap, edge: float) -> tuple[np.ndarray[Any, Any], ...]:
    """The line a1 - b = edge, as far as it lies where softmax separates."""
    a1 = data.r * float(SHARE_B) + edge
    inside = a1 > data.limit
    return a1[inside], data.r[inside]


def interactive(data: PhaseMap, mechanism: str) -> go.Figure:
    """One map for the page."""
    values, label, low, high = _shown(data, mechanism)
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
        z=values.astype(np.float32),
        zmin=low,
        zmax=high,
        colorscale="Cividis",
        colorbar={
            "title": {"text": label, "side": "right", "font": {"size": 13}},
            "tickfont": {"size": 12},
            "thickness": 12,
            "outlinewidth": 0,
        },
        hovertemplate=f"a₁ = %{{x:.3f}}, b + c = %{{y:.3f}}<br>{label} = %{{z:.6g}}<extra></extra>",
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
    start = float(np.interp(0.55, data.r, data.limit))
    arrow = {
        "showarrow": True,
        "arrowhead": 0,
        "arrowcolor": INK,
        "axref": "x",
        "ayref": "y",
        "ax": 0.99,
        "ay": 0.55,
    }
    words = "boundary as n → ∞:<br>a<sub>1</sub>(a<sub>1</sub>+b+c) = 1"
    note(figure, start, 0.55, words, INK, **arrow, xanchor="left", name=WIDE)
    dotted = f"dotted: P = 1/2<br>at n = {number(SMALL_N)}"
    note(figure, 0.33, 0.22, dotted, "#ffffff", xanchor="left", name=WIDE)
    note(figure, 1.07, 1.32, "|a<sub>1</sub> − b| = 0.1", STRIP, xanchor="left", name=WIDE)
