"""Pictures on paper: the style of matplotlib, and figures as PNG, PDF and SVG."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.resources import as_file, files
from typing import TYPE_CHECKING, Any

from separatrix.pages.bundle import read_ramps

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure as Figure
else:
    # Modules that draw import these types from here: matplotlib takes a second to load.
    Axes = Figure = Any

PICTURES = (".pdf", ".png", ".svg")
"""Suffixes of the files that pictures are written to."""
PAGE_DPI, PAGE_COLOURS = 160, 128
"""Resolution and palette of the pictures inside pages, which are for printing and readers without scripts."""
_UNDATED: Mapping[str, Any] = {"pdf": {"CreationDate": None}, "png": {"Software": None}, "svg": {"Date": None}}


@contextmanager
def paper_style() -> Iterator[None]:
    """Draw and save in this style inside the block, whatever a matplotlibrc says."""
    from matplotlib import rc_context, rc_params_from_file, rcdefaults, rcParams

    with rc_context():
        rcdefaults()
        with as_file(files("separatrix.pages").joinpath("templates", "paper.mplstyle")) as style:
            rcParams.update(rc_params_from_file(style, use_default_template=False))
        yield


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of this size in inches."""
    from matplotlib import figure

    return figure.Figure(figsize=(width, height))


def save_figure(figure: Figure, kind: str, **options: Any) -> bytes:
    """Return a figure as PNG, PDF or SVG without a date, so that equal figures give equal files."""
    buffer = io.BytesIO()
    with paper_style():
        figure.savefig(buffer, format=kind, metadata=dict(_UNDATED[kind]), **options)
    return buffer.getvalue()


def save_small_png(figure: Figure, colours: int = PAGE_COLOURS) -> bytes:
    """Return a figure as a PNG for a page: fewer pixels and colours, a third of the size."""
    from PIL import Image

    png, small = save_figure(figure, "png", dpi=PAGE_DPI), io.BytesIO()
    Image.open(io.BytesIO(png)).convert("RGB").quantize(colours).save(small, format="png", optimize=True)
    return small.getvalue()


def hide_frame(axes: Axes, **options: Any) -> None:
    """Leave only the labels around a table of cells; `options` are those of `tick_params`."""
    axes.tick_params(length=0, **options)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)


def label_cells(axes: Axes, columns: Sequence[str], rows: Mapping[str, float], **options: Any) -> None:
    """Name the columns above a table of cells and the rows beside it, by the place of their upper edge."""
    axes.set_xlim(0, len(columns))
    # The first row is on top, as in the table of a page.
    axes.set_ylim(max(rows.values(), default=0) + 1, 0)
    axes.set_xticks([x + 0.5 for x in range(len(columns))], columns, **options)
    axes.set_yticks([y + 0.5 for y in rows.values()], list(rows))
    axes.xaxis.tick_top()


def colour_map(ramp: str) -> Colormap:
    """Return the colour map of matplotlib with the colours of a ramp of the pages."""
    from matplotlib.colors import ListedColormap

    return ListedColormap(read_ramps()[ramp], ramp)
