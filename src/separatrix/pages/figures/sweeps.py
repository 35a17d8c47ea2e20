"""Figure 1: P(tells apart) along six parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from separatrix.claims.paper.figures import BASE, MECHANISMS
from separatrix.claims.paper.sweeps import ParameterSweep
from separatrix.pages.commands import Command, number, spelled, verdict_command, whole_run
from separatrix.pages.drawing import (
    FAINT,
    LOOKS,
    Drawn,
    Key,
    Look,
    Panel,
    draw_line,
    mechanism_keys,
    note,
    plot,
)

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

REMARKS: Mapping[str, tuple[float, float, str]] = {
    "d": (0.97, 0.45, "narrow tokens:\nfires on D0 too"),
    "m": (0.97, 0.45, "too few sign vectors:\nnone of them fires"),
    "a0": (0.08, 0.45, "large $a_0$: D0's own\nspike is attended to"),
    "a1": (0.97, 0.45, "small $a_1$:\nspike not\nattended to"),
    "c": (0.97, 0.70, "large $c$: fewer sign\npatterns fire"),
}
"""What goes wrong, and where there is room to say so, as fractions of the panel."""

AXES: Mapping[str, tuple[str, str, str]] = {
    "n": ("n, tokens", "n, number of tokens", "log"),
    "d": ("d, width", "d, width of a token", "log"),
    "m": ("m, sign vectors", "m, number of sign vectors", "linear"),
    "a0": ("a₀, spike of D0", "$a_0$, in units of √(log n)", "linear"),
    "a1": ("a₁, spike of D1", "$a_1$, in units of √(log n)", "linear"),
    "c": ("c, last column", "$c$, in units of √(log n)", "linear"),
}
"""For each sweep: its title, its axis in print, its scale."""

D_TICKS = [4, 10, 30, 100, 300, 1000]
PROBABILITY = "P(tells apart)"
DELTA = 0.01
"""Up to this P a mechanism is called blind; from 1 less this on it tells apart."""
FIRES = {
    "fire_d0": Key("P(fires on D0), in the colour of its mechanism", FAINT, "2px,2px", width=1.2),
    "fire_d1": Key("P(fires on D1), likewise", FAINT, "6px,3px", width=1.2),
}


def make(sweeps: Sequence[ParameterSweep]) -> Drawn:
    """Make the figure from finished sweeps."""
    return Drawn(
        name="sweeps",
        title=_title(sweeps),
        caption=_caption(sweeps),
        commands=(whole_run("every sweep, as CSV in sweeps/"),),
        static=draw(sweeps),
        panels=tuple(
            Panel(AXES[sweep.parameter][0], interactive(sweep), commands(sweep)) for sweep in sweeps
        ),
        keys=(*mechanism_keys(*MECHANISMS), *FIRES.values(), Key("base point", "#bbbbbb", width=1.2)),
        columns=3,
    )


def _best(sweep: ParameterSweep, mechanism: str) -> float:
    return max(map(float, sweep.cells.filter(mechanism=mechanism)["distinguish"]))


def _title(sweeps: Sequence[ParameterSweep]) -> str:
    """What the sweeps found, in a line."""
    softmax, linears = ([_best(sweep, name) for sweep in sweeps] for name in MECHANISMS)
    reached = sum(best >= 1 - DELTA for best in softmax)
    everywhere = "every sweep" if reached == len(sweeps) else f"{reached} of {len(sweeps)} sweeps"
    linear = max(linears)
    stays = "is blind throughout" if linear <= DELTA else f"never gets above P = {number(linear, 2)}"
    return f"Softmax tells D0 from D1 somewhere in {everywhere}; linear attention {stays}"


def _caption(sweeps: Sequence[ParameterSweep]) -> tuple[str, ...]:
    base = ", ".join(f"{_pretty(name)} = {spelled(value)}" for name, value in BASE.items())
    rows = [row for sweep in sweeps for row in sweep.cells.iter_rows(named=True)]
    sampled = [row for row in rows if row["dense"] is not None]
    covered = sum(row["low"] <= row["distinguish"] <= row["high"] for row in sampled)
    draws, confidence = sampled[0]["draws"], sampled[0]["confidence"]
    worst = max(row["distinguish"] for row in rows if row["mechanism"] == "linear")
    return (
        "The probability, over the reader's random signs, that the network is silent on D0 and fires on "
        f"D1. One parameter moves at a time; the others stay at {base}. Thick lines are exact (closed form "
        f"over all sign states). Markers are estimates on all n literal tokens with {draws} draws "
        f"of the signs each and {confidence:.0%} Clopper-Pearson intervals: {covered} of "
        f"{len(sampled)} intervals contain the exact value. Thin lines say what goes wrong where it goes "
        "wrong.",
        "Softmax loses the separation when it fires on D0 as well (small d: the block signs no longer "
        "average out; large a₀: D0 has a spike of its own), when the spike of D1 is too small to be "
        "attended to (small a₁), or when there are too few sign vectors for one of them to fire. In c it "
        "comes down in steps, as one more sign pattern falls below the threshold. Linear attention never "
        f"gets above {number(worst)}. d runs over the values for which n = {BASE['n']} is a multiple of d − "
        "2.",
    )


def commands(sweep: ParameterSweep) -> tuple[Command, Command]:
    """The exact and the dense answer where the outcome is the least certain of those sampled."""
    sampled = sweep.cells.drop_nulls("dense").iter_rows(named=True)
    row = min(sampled, key=lambda row: abs(row["distinguish"] - 0.5))
    mechanism, point = row["mechanism"], {**BASE, sweep.parameter: row["value"]}
    estimate = f"P = {number(row['dense'])}, interval {number(row['low'])} to {number(row['high'])}"
    how = f"--engine dense --draws {row['draws']} --seed {row['seed']}"
    return (
        verdict_command(mechanism, point, f"P = {number(row['distinguish'])}"),
        verdict_command(mechanism, point, estimate, how),
    )


def draw(sweeps: Sequence[ParameterSweep]) -> Figure:
    """Two rows of three panels."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    figure = Figure(figsize=(7.2, 4.5))
    grid = figure.subplots(2, 3, sharey=True)
    for axes, sweep in zip(grid.flat, sweeps, strict=True):
        _draw_panel(axes, sweep)
    for axes in grid[:, 0]:
        axes.set_ylabel(PROBABILITY)
    handles = [
        Line2D(
            [],
            [],
            color=look.colour,
            linestyle=look.line,
            marker=look.marker,
            mfc="white",
            ms=4,
            lw=2,
            label=label,
        )
        for look, label in (
            (LOOKS[name], f"{LOOKS[name].label} (line exact, markers sampled)") for name in MECHANISMS
        )
    ]
    handles += [
        Line2D([], [], color=FAINT, linestyle=":", lw=1.1, label="P(fires on D0)"),
        Line2D([], [], color=FAINT, linestyle=(0, (4, 2)), lw=0.9, label="P(fires on D1)"),
        Line2D([], [], color="#bbbbbb", lw=1, label="base point"),
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=3, handlelength=2.6, columnspacing=2.2)
    return figure


def _draw_panel(axes: Axes, sweep: ParameterSweep) -> None:
    _, label, scale = AXES[sweep.parameter]
    axes.set_xscale(scale)
    axes.set_ylim(-0.04, 1.06)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "", "0.5", "", "1"])
    axes.set_xlabel(label)
    axes.axvline(float(BASE[sweep.parameter]), color="#bbbbbb", lw=1, zorder=0.9)
    for look, exact, drawn in _curves(sweep):
        x = exact["x"]
        axes.plot(x, exact["fire_d0"], color=look.colour, ls=":", lw=1.1, alpha=0.85)
        axes.plot(x, exact["fire_d1"], color=look.colour, ls=(0, (4, 2)), lw=0.9, alpha=0.85)
        axes.plot(x, exact["distinguish"], color=look.colour, ls=look.line, lw=2, zorder=3)
        axes.errorbar(
            drawn["x"],
            drawn["dense"],
            yerr=(drawn["below"], drawn["above"]),
            fmt=look.marker,
            ms=4,
            mfc="white",
            mec=look.colour,
            ecolor=look.colour,
            elinewidth=1,
            capsize=2,
            zorder=4,
            clip_on=False,
        )
    if sweep.parameter == "n":
        axes.text(1e9, 0.93, "softmax", color=LOOKS["softmax"].colour, ha="center", va="top", weight="bold")
        axes.text(1e9, 0.06, "linear", color=LOOKS["linear"].colour, ha="center", va="bottom", weight="bold")
        axes.set_xticks([1e2, 1e4, 1e6, 1e8, 1e10, 1e12])
    if sweep.parameter == "d":
        axes.set_xticks(D_TICKS, map(str, D_TICKS))
        axes.set_xticks([], minor=True)
    if sweep.parameter == "a1":
        axes.set_xticks([0.4, 0.8, 1.2, 1.6])
    if sweep.parameter in REMARKS:
        x_place, y_place, remark = REMARKS[sweep.parameter]
        side = "right" if x_place > 0.5 else "left"
        axes.text(
            x_place, y_place, remark, transform=axes.transAxes, ha=side, va="center", color=FAINT, size=7.5
        )


def _curves(sweep: ParameterSweep) -> Iterator[tuple[Look, dict[str, list[Any]], dict[str, list[Any]]]]:
    """The columns of each mechanism, linear first, and of those sampled with the arms of their intervals."""
    arms = {"below": pl.col("dense") - pl.col("low"), "above": pl.col("high") - pl.col("dense")}
    for name in reversed(MECHANISMS):
        own = sweep.cells.filter(mechanism=name)
        drawn = own.drop_nulls("dense").with_columns(**arms)
        yield LOOKS[name], own.to_dict(as_series=False), drawn.to_dict(as_series=False)


def interactive(sweep: ParameterSweep) -> go.Figure:
    """One panel for the page."""
    moved, (title, _, scale) = _pretty(sweep.parameter), AXES[sweep.parameter]
    unit = "" if sweep.parameter in "ndm" else ", in units of √(log n)"
    ticks: dict[str, dict[str, Any]] = {"n": {"dtick": 2}, "d": {"tickvals": D_TICKS}, "m": {"dtick": 10}}
    x_axis = {"type": scale, **ticks.get(sweep.parameter, {"dtick": 0.2})}
    figure = plot(title + unit, PROBABILITY, 300, xaxis=x_axis, yaxis={"range": [-0.04, 1.06], "dtick": 0.25})
    figure.add_vline(float(BASE[sweep.parameter]), line={"color": "#bbbbbb", "width": 1.2}, layer="below")
    for look, exact, drawn in _curves(sweep):
        for name, key in {**FIRES, "distinguish": replace(look, label=PROBABILITY, width=2.6)}.items():
            hover = f"{look.label}, exact<br>{moved} = %{{x}}<br>{key.label.partition(',')[0]} = %{{y:.6g}}"
            draw_line(figure, exact["x"], exact[name], replace(key, colour=look.colour), hover, key.width)
        edge = {"color": look.colour, "width": 1.6}
        bars = {"arrayminus": drawn["below"], "color": look.colour, "thickness": 1.2, "width": 3}
        figure.add_scatter(
            x=drawn["x"],
            y=drawn["dense"],
            mode="markers",
            marker={"symbol": look.symbol, "size": 8, "color": "white", "line": edge},
            error_y={"type": "data", "symmetric": False, "array": drawn["above"], **bars},
            customdata=list(zip(drawn["low"], drawn["high"], drawn["distinguish"], strict=True)),
            hovertemplate=f"{look.label}, sampled<br>{moved} = %{{x}}<br>"
            "P = %{y:.4g} in [%{customdata[0]:.4g}, %{customdata[1]:.4g}]<br>exact: "
            "%{customdata[2]:.6g}<extra></extra>",
        )
    inside = {"xref": "x domain", "yref": "y domain"}
    if sweep.parameter in REMARKS:
        x, y, remark = REMARKS[sweep.parameter]
        note(figure, x, y, remark, xanchor="right" if x > 0.5 else "left", **inside)
    if sweep.parameter == "n":
        for name, y, anchor in (("softmax", 0.88, "top"), ("linear", 0.1, "bottom")):
            note(figure, 0.6, y, f"<b>{name}</b>", LOOKS[name].colour, yanchor=anchor, **inside)
    return figure


def _pretty(name: str) -> str:
    return name.replace("a0", "a₀").replace("a1", "a₁")
