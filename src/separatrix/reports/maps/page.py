"""A map or a boundary curve as a page of its own, which opens offline."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from separatrix import __version__
from separatrix.maps import Axis, Curve, Layer, Map
from separatrix.numbers.json import json_text
from separatrix.reports.drawing import INK, Key, plot
from separatrix.reports.maps import curve as curves
from separatrix.reports.maps import look, picture
from separatrix.reports.maps.script import SCRIPT, STYLE
from separatrix.reports.markup import legend, prose
from separatrix.reports.template import PAGE, POLICY
from separatrix.reports.template import STYLE as SHARED_STYLE

if TYPE_CHECKING:
    import plotly.graph_objects as go

DASHES = ("2px,3px", "solid")
"""Where P is one half, and the formula."""


def map_page(found: Map) -> str:
    """The whole page."""
    layers = found.shown
    drawn = [look.lines(found, layer) for layer in layers]
    names = list(dict.fromkeys(name for each in drawn for name in each))
    keys = tuple(Key(name, "#111111", _dash(name), width=2.2) for name in names)
    panels = "".join(
        _panel(i, layer.mechanism, interactive(found, layer, drawn[i])) for i, layer in enumerate(layers)
    )
    body = (
        f"<h1>{escape(look.title(found))}</h1>{_paragraphs(look.sentences(found))}"
        f"{_image(picture.draw(found, 'png'), look.title(found))}{legend(keys) if keys else ''}"
        '<p class="hint">Point at a cell: below the map stands the command that computes exactly this cell '
        "again. Click to hold it.</p>"
        f'<div class="panels columns-{min(len(layers), 2)}">{panels}</div>{_data("cells", _cells(found))}'
    )
    return _page(look.title(found), body, f"made by <code>{escape(look.made_by(found))}</code>")


def curve_page(found: Curve) -> str:
    """The curve, and its numbers."""
    figure = curves.interactive(found)
    rows = "".join(
        "<tr>" + "".join(f"<td>{prose(cell)}</td>" for cell in row) + "</tr>" for row in curves.rows(found)
    )
    head = "".join(f"<th>{prose(name)}</th>" for name in curves.columns(found))
    body = (
        f"<h1>{escape(curves.title(found))}</h1>{_paragraphs(curves.sentences(found))}"
        f"{_image(curves.draw(found, 'png'), curves.title(found))}{legend(curves.keys(found))}"
        f'<div class="plot" data-source="plot-0"></div>{_data("plot-0", json.loads(figure.to_json()))}'
        f'<table class="numbers"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
    )
    return _page(curves.title(found), body, f"made by <code>{escape(curves.made_by(found))}</code>")


def interactive(found: Map, layer: Layer, lines: dict[str, Any]) -> go.Figure:
    """One panel."""
    import plotly.graph_objects as go

    scale = look.scale(found)
    figure = plot(
        look.axis_label(found.x),
        look.axis_label(found.y),
        440,
        xaxis=_axis(found.x),
        yaxis=_axis(found.y),
    )
    value = f"{scale.label} = %{{z:.6~g}}"
    names = [f"{axis.name} asked for" if _is_asked(found, axis) else axis.name for axis in (found.x, found.y)]
    used = "n used = %{customdata}<br>" if found.places.is_moved else ""
    figure.add_trace(
        go.Heatmap(
            x=found.x.floats,
            y=found.y.floats,
            z=_compact(scale.shade(layer.values)),
            zmin=scale.low,
            zmax=scale.high,
            colorscale="RdBu" if found.difference else "Cividis",
            colorbar={
                "title": {"text": scale.label, "side": "right", "font": {"size": 13}},
                "tickfont": {"size": 12},
                "thickness": 12,
                "outlinewidth": 0,
            },
            hovertemplate=f"{names[0]} ≈ %{{x:.6~g}}<br>{names[1]} ≈ %{{y:.6~g}}<br>"
            f"{used}{value}<extra></extra>",
        )
    )
    for name, pieces in lines.items():
        x, y = (_joined([piece[i] for piece in pieces]) for i in (0, 1))
        for line in ({"color": INK, "width": 4}, {"color": "white", "width": 2, "dash": _dash(name)}):
            figure.add_trace(go.Scatter(x=x, y=y, mode="lines", line=line, hoverinfo="skip"))
    return figure


def _is_asked(found: Map, axis: Axis) -> bool:
    """Whether the axis has n as it was asked for, which is not the n of every cell."""
    return axis.name == "n" and found.places.is_moved


def _axis(axis: Axis) -> dict[str, Any]:
    ends = axis.floats[[0, -1]]
    kind = "log" if axis.log else "linear"
    return {
        "type": kind,
        "range": (np.log10(ends) if axis.log else ends).tolist(),
        "showgrid": False,
    }


def _compact(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """float32 where that keeps every number's size, which halves the page."""
    with np.errstate(over="ignore", under="ignore"):
        small = values.astype(np.float32)
    kept = np.isfinite(small) == np.isfinite(values)
    return small if kept.all() and ((small == 0) == (values == 0)).all() else values


def _joined(pieces: Sequence[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """Pieces of a line as one, with gaps between them."""
    gap = np.array([np.nan])
    return np.concatenate([part for piece in pieces for part in (piece, gap)])


def _dash(name: str) -> str:
    return DASHES[0] if name.startswith("P =") else DASHES[1]


def _cells(found: Map) -> dict[str, Any]:
    """What the script needs to spell the command of any cell."""
    scale, used = look.scale(found), found.places.n
    rest = [
        f"{name}={look.spelled_value(value)}"
        for name, value in found.fixed.items()
        if not (name == "n" and used is not None)
    ]
    middle = (found.places.shape[0] // 2, found.places.shape[1] // 2)
    return {
        "construction": found.construction.name,
        "names": [found.x.name, found.y.name],
        "x": [look.spelled_value(value) for value in found.x.values],
        "y": [look.spelled_value(value) for value in found.y.values],
        "n": None if used is None else [[look.spelled_value(n) for n in row] for row in used.tolist()],
        "own": [axis.name for axis in (found.x, found.y) if found.questions[0].is_own(axis.name)],
        "rest": [*rest, look.options(found)] if look.options(found) else rest,
        "panels": [
            {
                "mechanisms": [each.label for each in found.questions]
                if found.difference
                else [layer.mechanism],
                "log": scale.log,
                "middle": f"{layer.values[middle]:.6g}" if np.isfinite(layer.values[middle]) else None,
            }
            for layer in found.shown
        ],
    }


def _panel(index: int, title: str, figure: go.Figure) -> str:
    return (
        f"<div><h3>{escape(title)}</h3>"
        f'<div class="plot" data-source="plot-{index}" data-cells="{index}"></div>'
        f"{_data(f'plot-{index}', json.loads(figure.to_json()))}"
        f'<p class="command cell" id="cell-{index}"><code></code> <span class="prints"></span></p></div>'
    )


def _data(identity: str, value: Any) -> str:
    text = json_text(value, indent=None).replace("<", "\\u003c")
    return f'<script type="application/json" id="{identity}">{text}</script>'


def _paragraphs(sentences: Sequence[str]) -> str:
    return "".join(f"<p>{escape(each)}</p>" for each in sentences)


def _image(png: bytes, title: str) -> str:
    """For paper, and for readers without scripts."""
    encoded = base64.b64encode(png).decode()
    return f'<img class="paper" alt="{escape(title)}" src="data:image/png;base64,{encoded}">'


def _page(title: str, body: str, made: str) -> str:
    from plotly.offline import get_plotlyjs

    footer = f"<footer>separatrix {escape(__version__)}, {made}</footer>"
    return PAGE.substitute(
        title=escape(title),
        policy=POLICY,
        style=SHARED_STYLE + STYLE,
        body=body + footer,
        library=get_plotlyjs(),
        script=SCRIPT,
    )
