"""The figures of a sweep in numbers: curves of P against a parameter, maps of P over two."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from separatrix.core.documents import Document
from separatrix.core.schemas._base import Texts, Whole

if TYPE_CHECKING:
    from separatrix.pages.store.groups import Curve, Group

MAX_CURVES, MAX_MAPS = 24, 24
MAX_CURVE_LINES, MAX_LINE_POINTS = 12, 400
"""Mechanisms in one chart, and points of one line."""
Numbers = list[float | None]


@dataclass(frozen=True)
class _GroupFigure(Document):
    part: str
    construction: str
    fixed: dict[str, str]
    """Parameters with the same value in all cells."""


@dataclass(frozen=True)
class CurveLine(Document):
    """The cells of one mechanism along an axis; P is null where a cell has no answer."""

    mechanism: str
    x: list[float]
    exactly: Texts
    """The values of x as exact text."""
    p: Numbers
    low: Numbers
    high: Numbers
    margin: Numbers
    word: Texts
    kind: Texts
    """How P is known: certified, exact, sampled or none."""


@dataclass(frozen=True)
class SweepCurve(_GroupFigure):
    """P against one parameter."""

    x: str
    log: bool
    follows: Texts
    """Parameters that change with x."""
    finding: str
    left_out: Whole
    """Mechanisms that are not shown."""
    lines: list[CurveLine]


@dataclass(frozen=True)
class SweepMapAxis(Document):
    """An axis of a map."""

    name: str
    log: bool
    values: Texts
    at: list[float]


@dataclass(frozen=True)
class SweepMap(_GroupFigure):
    """P over two parameters; rows follow the second axis."""

    mechanism: str
    axes: list[SweepMapAxis]
    values: list[Numbers]


@dataclass(frozen=True)
class SweepFigures(Document):
    """The figures that `separatrix report` draws of a sweep, in numbers; by default those of no cells."""

    title: str = ""
    finding: str = ""
    evidence: str = ""
    seconds: str = "0 s"
    unfinished: int = 0
    versions: Texts = field(default_factory=list)
    plan: str = ""
    curves: list[SweepCurve] = field(default_factory=list)
    curves_left_out: Whole = 0
    maps: list[SweepMap] = field(default_factory=list)
    maps_left_out: Whole = 0
    warning: str | None = None


def describe_curves(groups: list[Group]) -> tuple[list[SweepCurve], int]:
    """Return the curves in the order of the plan, and the number of those left out."""
    curves = [curve for group in groups for curve in group.curves()]
    return [_describe_curve(curve) for curve in curves[:MAX_CURVES]], max(0, len(curves) - MAX_CURVES)


def describe_maps(groups: list[Group]) -> tuple[list[SweepMap], int]:
    """Return the maps in the order of the plan, and the number of those left out."""
    maps = [(group, name) for group in groups for name in group.mapped_mechanisms]
    return [_describe_map(group, name) for group, name in maps[:MAX_MAPS]], max(0, len(maps) - MAX_MAPS)


def _describe_curve(curve: Curve) -> SweepCurve:
    from separatrix.pages.store.texts import describe_verdicts

    mechanisms = curve.mechanisms[:MAX_CURVE_LINES]
    return SweepCurve(
        part=curve.group.part,
        construction=curve.group.construction,
        fixed={**curve.group.fixed_parameters, **curve.choice},
        x=curve.x,
        log=curve.log,
        follows=list(curve.follows),
        finding=describe_verdicts(curve.cells, f"at every {curve.x} shown"),
        left_out=len(curve.mechanisms) - len(mechanisms),
        lines=[_describe_line(curve, name) for name in mechanisms],
    )


def _describe_line(curve: Curve, mechanism: str) -> CurveLine:
    import polars as pl

    from separatrix.pages.commands import spell_value
    from separatrix.pages.store.groups import thin

    cells = thin(curve.placed_cells.filter(pl.col("mechanism") == mechanism), MAX_LINE_POINTS)
    return CurveLine(
        mechanism,
        cells[f"at:{curve.x}"].to_list(),
        [spell_value(text) for text in cells[f"is:{curve.x}"]],
        **{name: cells[name].to_list() for name in ("p", "low", "high", "margin", "word", "kind")},
    )


def _describe_map(group: Group, mechanism: str) -> SweepMap:
    from separatrix.pages.store.planes import make_map

    figure = make_map(group, [mechanism])
    return SweepMap(
        part=group.part,
        construction=group.construction,
        fixed=group.fixed_parameters,
        mechanism=mechanism,
        axes=[
            SweepMapAxis(axis.name, axis.log, list(axis.texts), axis.values.tolist()) for axis in (figure.x, figure.y)
        ],
        values=figure.panels[0].numbers["values"].tolist(),
    )
