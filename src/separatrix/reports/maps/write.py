"""In the form the ending of a file names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from separatrix.files.writing import write_whole
from separatrix.maps import BoundaryCurve, Map
from separatrix.numbers.json import json_file
from separatrix.reports.maps.curve import as_csv as curve_csv
from separatrix.reports.maps.curve import draw as draw_curve
from separatrix.reports.maps.page import curve_page, map_page
from separatrix.reports.maps.picture import draw as draw_map
from separatrix.reports.maps.table import as_csv, as_npz, as_parquet

MAP_MAKERS: Mapping[str, Callable[[Map], bytes]] = {
    ".csv": as_csv,
    ".html": lambda found: map_page(found).encode(),
    ".json": lambda found: json_file(found.as_json()),
    ".npz": as_npz,
    ".parquet": as_parquet,
    ".pdf": lambda found: draw_map(found, "pdf"),
    ".png": lambda found: draw_map(found, "png"),
    ".svg": lambda found: draw_map(found, "svg"),
}
CURVE_MAKERS: Mapping[str, Callable[[BoundaryCurve], bytes]] = {
    ".csv": curve_csv,
    ".html": lambda found: curve_page(found).encode(),
    ".json": lambda found: json_file(found.as_json()),
    ".pdf": lambda found: draw_curve(found, "pdf"),
    ".png": lambda found: draw_curve(found, "png"),
    ".svg": lambda found: draw_curve(found, "svg"),
}
MAP_ENDINGS, CURVE_ENDINGS = tuple(MAP_MAKERS), tuple(CURVE_MAKERS)


def write_map(found: Map, out: Path) -> None:
    """The map, whole or not at all."""
    write_whole(out, MAP_MAKERS[out.suffix](found))


def write_curve(found: BoundaryCurve, out: Path) -> None:
    """The curve, whole or not at all."""
    write_whole(out, CURVE_MAKERS[out.suffix](found))
