"""In the form the ending of a file names."""

from __future__ import annotations

from pathlib import Path

from separatrix.analysis.maps import BoundaryCurve, Map
from separatrix.pages.plots import drawing

COMMON = (".csv", ".html", ".json", ".parquet", ".pdf", ".png", ".svg")
MAP_ENDINGS, CURVE_ENDINGS = (*COMMON, ".npz"), COMMON


def write_map(found: Map, out: Path) -> None:
    """The map, whole or not at all."""
    drawing.write(found, out)


def write_curve(found: BoundaryCurve, out: Path) -> None:
    """The curve, whole or not at all."""
    drawing.write(found, out)
