"""The figures of a sweep in numbers: curves of P against a parameter, maps of P over two."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from separatrix.core.numbers import format_exact
from separatrix.pages.commands import spelled
from separatrix.pages.store.groups import Curve, Group, groups
from separatrix.pages.store.planes import axis_of, values
from separatrix.pages.store.plots import thinned
from separatrix.pages.store.stored_cells import StoredCells
from separatrix.pages.store.wording import finding

MOST_CURVES, MOST_MAPS, MOST_LINES, MOST_POINTS = 24, 24, 12, 400
"""Plots, maps, mechanisms in one plot, and points of one line, on one page."""


def figures(stored: StoredCells) -> dict[str, Any]:
    """All that is drawn, in the order of the plan, and how much is left out."""
    found = groups(stored)
    curves = [curve for group in found for curve in group.curves()]
    maps = [(group, name) for group in found for name in group.mapped]
    return {
        "curves": [_curve(curve) for curve in curves[:MOST_CURVES]],
        "curves_left_out": max(0, len(curves) - MOST_CURVES),
        "maps": [_map(group, name) for group, name in maps[:MOST_MAPS]],
        "maps_left_out": max(0, len(maps) - MOST_MAPS),
    }


def _about(group: Group, choice: Mapping[str, str]) -> dict[str, Any]:
    return {"part": group.part, "construction": group.construction, "fixed": {**group.fixed, **choice}}


def _curve(curve: Curve) -> dict[str, Any]:
    shown = curve.mechanisms[:MOST_LINES]
    return {
        **_about(curve.group, curve.choice),
        "x": curve.x,
        "log": curve.log,
        "follows": list(curve.follows),
        "finding": finding(curve.cells, f"at every {curve.x} shown"),
        "left_out": len(curve.mechanisms) - len(shown),
        "lines": [_line(curve, name) for name in shown],
    }


def _line(curve: Curve, mechanism: str) -> dict[str, Any]:
    """The cells of one mechanism in the order of the axis; P is null where a cell has no answer."""
    own = thinned(curve.drawn.filter(pl.col("mechanism") == mechanism), MOST_POINTS)
    return {
        "mechanism": mechanism,
        "x": own[f"at:{curve.x}"].to_list(),
        "exactly": [spelled(text) for text in own[f"is:{curve.x}"]],
        **{name: own[name].to_list() for name in ("p", "low", "high", "margin", "word", "kind")},
    }


def _map(group: Group, mechanism: str) -> dict[str, Any]:
    assert group.plane is not None
    x, y = (axis_of(group, name) for name in group.plane)
    found = values(group, mechanism, x, y)
    return {
        **_about(group, {}),
        "mechanism": mechanism,
        "axes": [
            {
                "name": axis.name,
                "log": axis.log,
                "values": [spelled(format_exact(value)) for value in axis.values],
                "at": axis.floats.tolist(),
            }
            for axis in (x, y)
        ],
        "values": found.tolist(),
    }
