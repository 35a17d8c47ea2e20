"""A map or a boundary curve as a page of its own, which opens offline."""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.analysis.maps import BoundaryCurve, Map
from separatrix.core.numbers.spelling import for_people
from separatrix.pages import pages
from separatrix.pages.commands import spelled
from separatrix.pages.maps import captions, heatmap, picture
from separatrix.pages.maps import curve as curves


def map_page(found: Map) -> str:
    """The whole page."""
    return pages.page(
        "map.html.j2",
        title=captions.finding(found),
        what=captions.what(found),
        sentences=captions.sentences(found),
        image=picture.draw(found, "png"),
        keys=heatmap.keys(found),
        panels={
            heatmap.panel_title(found, layer): heatmap.interactive(found, layer) for layer in found.panels
        },
        cells=_cells(found),
        made_by=captions.made_by(found),
    )


def curve_page(found: BoundaryCurve) -> str:
    """The curve, and its numbers."""
    return pages.page(
        "curve.html.j2",
        title=curves.finding(found),
        what=curves.title(found),
        sentences=curves.sentences(found),
        image=curves.draw(found, "png"),
        keys=curves.keys(found),
        figure=curves.interactive(found),
        columns=curves.columns(found),
        rows=curves.rows(found),
        made_by=curves.made_by(found),
    )


def _cells(found: Map) -> dict[str, Any]:
    """What the script needs to spell the command of any cell."""
    used = found.grid.n
    rest = [
        f"{name}={spelled(value)}"
        for name, value in found.question.fixed.items()
        if not (name == "n" and used is not None)
    ]
    middle = (found.grid.shape[0] // 2, found.grid.shape[1] // 2)
    return {
        "construction": found.construction,
        "names": [found.x.name, found.y.name],
        "x": [spelled(value) for value in found.x.values],
        "y": [spelled(value) for value in found.y.values],
        "n": None if used is None else [[spelled(n) for n in row] for row in used.tolist()],
        "own": [axis.name for axis in (found.x, found.y) if found.questions[0].is_own(axis.name)],
        "rest": [*rest, captions.options(found)] if captions.options(found) else rest,
        "panels": [
            {
                "mechanisms": [question.label for question in found.questions]
                if found.difference
                else [layer.mechanism],
                "log": scale.log,
                "what": "" if values is layer.values else "margin ",
                "middle": for_people(values[middle]) if np.isfinite(values[middle]) else None,
            }
            for layer in found.panels
            for values, scale in (heatmap.drawn(found, layer),)
        ],
    }
