"""The interactive plots of curves. What comes from a store is escaped, and never part of a template."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from separatrix.pages.drawing import Key, plot
from separatrix.pages.maps.heatmap import axis_label
from separatrix.pages.store.groups import Curve

if TYPE_CHECKING:
    import plotly.graph_objects as go

EXACT = "%{meta[0]}<br>%{meta[1]} = %{x:.6~g}<br>%{meta[2]} = %{y:.9~g}<extra></extra>"
SAMPLED = "%{meta[0]}<br>%{meta[1]} = %{x:.6~g}<br>%{meta[2]} = %{y:.9~g}<br>%{text}<extra></extra>"
FEW = 60
"""Points of a line that are marked, and sampled cells of one mechanism that are drawn."""


def thinned(cells: pl.DataFrame, most: int) -> pl.DataFrame:
    """So many rows at most, evenly, with both ends."""
    if cells.height <= most:
        return cells
    places: list[int] = np.unique(np.linspace(0, cells.height - 1, most).round().astype(int)).tolist()
    return cells[places]


def probabilities(curve: Curve, keys: Mapping[str, Key], most: int) -> go.Figure:
    """P, exact as lines and sampled as markers with their intervals."""
    figure = _empty(curve, "P(tells apart)", {"range": [-0.04, 1.04], "tickvals": [0, 0.25, 0.5, 0.75, 1]})
    for mechanism in curve.mechanisms:
        own = curve.drawn.filter(pl.col("mechanism") == mechanism)
        _add(figure, curve, mechanism, keys[mechanism], own, ("p", "P"), most)
    return figure


def margins(curve: Curve, keys: Mapping[str, Key], most: int) -> go.Figure | None:
    """The margin where it is positive, on a logarithmic axis; None where it never is."""
    if not has_margin(curve):
        return None
    figure = _empty(curve, "margin, in units of √(log n)", {"type": "log"})
    positive = pl.when(pl.col("margin") > 0).then("margin")
    for mechanism in curve.mechanisms:
        own = curve.drawn.filter(pl.col("mechanism") == mechanism).with_columns(margin=positive)
        _add(figure, curve, mechanism, keys[mechanism], own, ("margin", "margin"), most)
    return figure


def has_margin(curve: Curve) -> bool:
    """Whether any margin is positive."""
    return bool((curve.answered["margin"] > 0).any())


def _empty(curve: Curve, label: str, yaxis: Mapping[str, Any]) -> go.Figure:
    xaxis = {"type": "log" if curve.log else "linear"}
    return plot(escape(axis_label(curve.x)), label, 330, xaxis=xaxis, yaxis=yaxis)


def _add(
    figure: go.Figure,
    curve: Curve,
    mechanism: str,
    key: Key,
    own: pl.DataFrame,
    quantity: tuple[str, str],
    most: int,
) -> None:
    """The line of what is exact, broken where a cell has no answer, and the markers of what is sampled."""
    import plotly.graph_objects as go

    at, (column, label) = f"at:{curve.x}", quantity
    meta = [escape(mechanism), escape(curve.x), label]
    exact = own.filter(pl.col("kind") != "sampled").sort(at, pl.col(column).is_null(), maintain_order=True)
    exact = exact.unique(at, keep="first", maintain_order=True)
    if exact[column].is_not_null().any():
        line = thinned(exact, most)
        figure.add_trace(
            go.Scatter(
                x=line[at].to_numpy(),
                y=line[column].to_numpy(),
                meta=meta,
                mode="lines+markers" if line.height <= FEW else "lines",
                line={"color": key.colour, "width": 2.2, "dash": key.dash},
                marker={"size": 4, "color": key.colour},
                hovertemplate=EXACT,
            )
        )
    sampled = thinned(
        own.filter((pl.col("kind") == "sampled") & pl.col(column).is_not_null()), min(most, FEW)
    )
    if sampled.is_empty():
        return
    bars = {"error_y": _bars(sampled, key)} if column == "p" else {}
    figure.add_trace(
        go.Scatter(
            x=sampled[at].to_numpy(),
            y=sampled[column].to_numpy(),
            meta=meta,
            text=[_told(row) for row in sampled.iter_rows(named=True)],
            mode="markers",
            marker={
                "symbol": key.symbol,
                "size": 9,
                "color": "rgba(255,255,255,0.6)",
                "line": {"color": key.colour, "width": 1.7},
            },
            hovertemplate=SAMPLED,
            **bars,
        )
    )


def _bars(sampled: pl.DataFrame, key: Key) -> dict[str, Any]:
    above, below = sampled["high"] - sampled["p"], sampled["p"] - sampled["low"]
    return {
        "type": "data",
        "symmetric": False,
        "array": above.clip(0).to_numpy(),
        "arrayminus": below.clip(0).to_numpy(),
        "color": key.colour,
        "thickness": 1.3,
        "width": 3,
    }


def _told(row: Mapping[str, Any]) -> str:
    """How a sampled cell is known."""
    said = [f"sampled: P in [{row['low']:.4g}, {row['high']:.4g}]"]
    said += [f"{row['draws']} draws"] if row["draws"] is not None else []
    said += [f"seed {row['seed']}"] if row["seed"] is not None else []
    said += [escape(row["dtype"])] if row["dtype"] is not None else []
    return ", ".join(said)
