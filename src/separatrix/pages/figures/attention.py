"""Figure 3: the attention rows themselves."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from separatrix.claims.paper.figures import ATTENTION_POINT as POINT
from separatrix.claims.paper.figures import MECHANISMS
from separatrix.claims.paper.figures import SPIKE_TOKEN as SPIKE
from separatrix.claims.paper.figures import AttentionRows as Rows
from separatrix.pages.commands import number, spelled, verdict_command
from separatrix.pages.drawing import INK, LOOKS, Drawn, Key, Panel, mechanism_keys, note, plot

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def make(data: tuple[Rows, ...]) -> Drawn:
    """Make the figure."""
    margins = {rows.mechanism: rows.margin for rows in data}
    return Drawn(
        name="attention",
        title=_title(data),
        caption=_caption(data),
        commands=tuple(
            verdict_command(name, POINT, f"margin {number(margin)}") for name, margin in margins.items()
        ),
        static=draw(data),
        panels=tuple(Panel(f"{rows.mechanism}, D{rows.label}", interactive(rows)) for rows in data),
        keys=(
            Key("as seen from the spike", "#333333", "none", "dot"),
            Key("from another token", "#333333", "none", "circle"),
            Key("uniform, 1/n", "#aaaaaa", width=1.2),
            *(replace(key, dash="none", symbol="dot") for key in mechanism_keys(*MECHANISMS)),
        ),
    )


def _title(data: tuple[Rows, ...]) -> str:
    shares = {rows.mechanism: number(float(rows.from_spike[SPIKE]), 3) for rows in data if rows.label == 1}
    return (
        f"On D1 softmax gives the spike {shares['softmax']} of its attention, "
        f"linear attention {shares['linear']}"
    )


def _caption(data: tuple[Rows, ...]) -> tuple[str, ...]:
    peak = {(rows.mechanism, rows.label): float(rows.from_spike[SPIKE]) for rows in data}
    softmax, linear = (next(r for r in data if r.mechanism == name and r.label == 1) for name in MECHANISMS)
    apart = float(np.max(abs(linear.from_spike - linear.from_other)))
    return (
        f"The weight each of n = {POINT['n']} keys gets, for the spiked token's query (dots) and for an "
        f"ordinary query in another block (rings), on a logarithmic scale; d = {POINT['d']}, the rest as at "
        f"the base point, the spike at key {SPIKE}. On D0 (a₀ = {spelled(POINT['a0'])}) both mechanisms are "
        f"nearly uniform, 1/n = {1 / int(POINT['n']):.3f}.",
        f"On D1 softmax gives the spike {number(peak['softmax', 1])} of the spike's own attention and "
        f"{number(float(softmax.from_other[SPIKE]))} of an ordinary query's. Linear attention gives it "
        f"{number(peak['linear', 1])} from everywhere: its weights do not depend on the query at all (the "
        f"largest difference between the two rows is {number(apart)}), and this share falls like 1/n.",
    )


def draw(data: tuple[Rows, ...]) -> Figure:
    """A column for each mechanism, a row for each label."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    figure = Figure(figsize=(7.2, 4.0))
    grid = figure.subplots(2, 2, sharex=True, sharey=True)
    keys = np.arange(int(POINT["n"]))
    for axes, rows in zip(grid.T.flat, data, strict=True):
        look = LOOKS[rows.mechanism]
        axes.axhline(1 / len(keys), color="#aaaaaa", lw=1, zorder=1)
        axes.vlines(SPIKE, 1e-5, rows.from_spike[SPIKE], color=look.colour, lw=1, alpha=0.4)
        axes.plot(keys, rows.from_other, "o", mfc="none", mec=look.colour, ms=5, mew=0.9)
        axes.plot(keys, rows.from_spike, "o", color=look.colour, ms=2.4)
        axes.set_yscale("log")
        axes.set_ylim(4e-4, 2)
        axes.set_title(f"{look.label}, D{rows.label}")
        for weight in _noted(rows):
            _note(axes, weight, 0 if rows.label else 10)
    for axes in grid[:, 0]:
        axes.set_ylabel("attention weight")
    for axes in grid[1]:
        axes.set_xlabel("key (token index)")
    handles = [
        Line2D([], [], ls="", marker="o", ms=2.4, color="#333333", label="as seen from the spike"),
        Line2D(
            [], [], ls="", marker="o", ms=5, mfc="none", color="#333333", label="as seen from another token"
        ),
        Line2D([], [], color="#aaaaaa", lw=1, label="uniform, 1/n"),
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=3)
    return figure


def _noted(rows: Rows) -> list[float]:
    """The weights that are written beside the spike: one, where both queries give it nearly the same."""
    own, other = float(rows.from_spike[SPIKE]), float(rows.from_other[SPIKE])
    return [other, own] if own > 2 * other else [own]


def _note(axes: Axes, weight: float, lift: float) -> None:
    """The weight of the spike, beside its marker."""
    axes.annotate(
        f"spike: {weight:.3g}", (SPIKE, weight), xytext=(7, lift), textcoords="offset points", va="center"
    )


def interactive(rows: Rows) -> go.Figure:
    """One label under one mechanism, for the page."""
    look, keys = LOOKS[rows.mechanism], np.arange(int(POINT["n"]))
    figure = plot(
        "key (token index)",
        "attention weight",
        280,
        xaxis={"range": [-1, len(keys)]},
        yaxis={"type": "log", "range": [-3.4, 0.3], "dtick": 1},
    )
    figure.add_hline(1 / len(keys), line={"color": "#aaaaaa", "width": 1}, layer="below")
    for name, weights, marker in (
        ("another token", rows.from_other, {"symbol": "circle-open", "size": 9, "line": {"width": 1.4}}),
        ("the spike", rows.from_spike, {"symbol": "circle", "size": 4}),
    ):
        figure.add_scatter(
            x=keys,
            y=weights,
            mode="markers",
            marker={"color": look.colour, **marker},
            hovertemplate=f"key %{{x}}, as seen from {name}<br>weight %{{y:.4g}}<extra></extra>",
        )
    for weight in _noted(rows):
        note(
            figure,
            SPIKE,
            math.log10(weight),
            f"spike: {weight:.3g}",
            INK,
            xanchor="left",
            xshift=9,
            yshift=0 if rows.label else 14,
        )
    return figure
