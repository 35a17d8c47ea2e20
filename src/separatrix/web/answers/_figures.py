"""The figures of a sweep in numbers: curves of P against a parameter, maps of P over two."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from separatrix.pages.commands import spell_value
from separatrix.pages.store.groups import Curve, Group, group_cells, thin
from separatrix.pages.store.planes import make_map
from separatrix.pages.store.stored_cells import StoredCells
from separatrix.pages.store.texts import describe_verdicts

MAX_CURVES, MAX_MAPS, MAX_LINES, MAX_POINTS = 24, 24, 12, 400
"""Charts, maps, mechanisms in one chart, and points of one line, on one page."""


def describe_figures(stored: StoredCells) -> dict[str, Any]:
    """Return the curves and maps in the order of the plan, and how many are left out."""
    groups = group_cells(stored)
    curves = [curve for group in groups for curve in group.curves()]
    maps = [(group, name) for group in groups for name in group.mapped_mechanisms]
    return {
        "curves": [_describe_curve(curve) for curve in curves[:MAX_CURVES]],
        "curves_left_out": max(0, len(curves) - MAX_CURVES),
        "maps": [_describe_map(group, name) for group, name in maps[:MAX_MAPS]],
        "maps_left_out": max(0, len(maps) - MAX_MAPS),
    }


def _describe_group(group: Group, choice: Mapping[str, str]) -> dict[str, Any]:
    return {
        "part": group.part,
        "construction": group.construction,
        "fixed": {**group.fixed_parameters, **choice},
    }


def _describe_curve(curve: Curve) -> dict[str, Any]:
    mechanisms = curve.mechanisms[:MAX_LINES]
    return {
        **_describe_group(curve.group, curve.choice),
        "x": curve.x,
        "log": curve.log,
        "follows": list(curve.follows),
        "finding": describe_verdicts(curve.cells, f"at every {curve.x} shown"),
        "left_out": len(curve.mechanisms) - len(mechanisms),
        "lines": [_describe_line(curve, name) for name in mechanisms],
    }


def _describe_line(curve: Curve, mechanism: str) -> dict[str, Any]:
    """Return the cells of one mechanism in the order of the axis; P is null where a cell has no answer."""
    cells = thin(curve.placed_cells.filter(pl.col("mechanism") == mechanism), MAX_POINTS)
    return {
        "mechanism": mechanism,
        "x": cells[f"at:{curve.x}"].to_list(),
        "exactly": [spell_value(text) for text in cells[f"is:{curve.x}"]],
        **{name: cells[name].to_list() for name in ("p", "low", "high", "margin", "word", "kind")},
    }


def _describe_map(group: Group, mechanism: str) -> dict[str, Any]:
    figure = make_map(group, [mechanism])
    return {
        **_describe_group(group, {}),
        "mechanism": mechanism,
        "axes": [
            {"name": axis.name, "log": axis.log, "values": list(axis.texts), "at": axis.values.tolist()}
            for axis in (figure.x, figure.y)
        ],
        "values": figure.panels[0].numbers["values"].tolist(),
    }
