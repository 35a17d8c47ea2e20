"""Drawing a result on axes, and writing it in the form that the ending of a file names."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from separatrix.core.errors import UsageError
from separatrix.core.files.writing import require_writable, write_whole
from separatrix.core.numbers.json import json_file
from separatrix.core.numbers.printable import SUSPECT, no_formula, visible
from separatrix.core.result import Result
from separatrix.pages.drawing import saved, static_style

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PICTURES = (".pdf", ".png", ".svg")
SIZE = (4.6, 3.4)
"""Inches across and up."""


@dataclass(frozen=True)
class Drawing:
    """How results of one kind are drawn."""

    draw: Callable[[Any, int, Axes], None]
    """A result, the number of the panel, and the axes to draw it on."""
    panels: Callable[[Any], int] = lambda _: 1
    size: Callable[[Any], tuple[float, float]] = lambda _: SIZE
    figure: Callable[[Any], Figure] | None = None
    """The whole figure of a file, where that is more than its panels."""
    files: Mapping[str, Callable[[Any], bytes]] = field(default_factory=dict)
    """What this kind can be written as, beside tables and pictures."""


NONE = Drawing(lambda *_: None, panels=lambda _: 0)
"""Of what is words and numbers only."""


def drawing_of(found: Result) -> Drawing:
    """How a result is drawn, by the name of its kind."""
    made: Drawing = import_module(f"separatrix.pages.plots.{found.kind}").DRAWING
    return made


def plot(result: Result, ax: Axes | Sequence[Axes] | None = None) -> Any:
    """Draw on these axes, or on new ones; several panels take and return several axes."""
    drawing = drawing_of(result)
    count = drawing.panels(result)
    if count == 0:
        raise UsageError(f"there is no picture of this {type(result).__name__}; to_frame() has its rows")
    if ax is None:
        return _on_new_axes(result, drawing, count)
    from matplotlib.axes import Axes

    given = [ax] if isinstance(ax, Axes) else list(np.ravel(np.array(ax, dtype=object)))
    stray = next((each for each in given if not isinstance(each, Axes)), None)
    if stray is not None:
        raise UsageError(f"plot draws on matplotlib axes, and {type(stray).__name__} is something else")
    if len(given) != count:
        panels = "1 panel" if count == 1 else f"{count} panels"
        raise UsageError(f"this has {panels}; give as many axes in a list, not {len(given)}")
    for panel, axes in enumerate(given):
        drawing.draw(result, panel, axes)
    return ax


def _on_new_axes(found: Result, drawing: Drawing, count: int) -> Any:
    from matplotlib.figure import Figure

    wide, high = drawing.size(found)
    with static_style():
        axes = Figure(figsize=(wide * count, high)).subplots(1, count)
        for panel in range(count):
            drawing.draw(found, panel, axes if count == 1 else axes[panel])
    return axes


def write(result: Result, out: Path) -> None:
    """In the form the ending of `out` names, whole or not at all."""
    makers = files(result)
    require_writable(out, makers)
    write_whole(out, makers[out.suffix]())


def files(found: Result) -> dict[str, Callable[[], bytes]]:
    """What a result can be written as, by ending."""
    drawing = drawing_of(found)
    pictures = PICTURES if drawing.panels(found) else ()
    return {
        ".json": lambda: json_file(found.as_json()),
        ".csv": lambda: _csv(found.to_frame()),
        ".parquet": lambda: _parquet(found.to_frame()),
        **{ending: lambda ending=ending: picture(found, ending[1:]) for ending in pictures},  # type: ignore[misc]
        **{ending: lambda make=make: make(found) for ending, make in drawing.files.items()},  # type: ignore[misc]
    }


def picture(found: Result, kind: str) -> bytes:
    """The picture as PNG, SVG or PDF; without a date in it, so that the same result gives the same file."""
    drawing = drawing_of(found)
    with static_style():
        return saved(plot(found).figure if drawing.figure is None else drawing.figure(found), kind)


def _csv(frame: pl.DataFrame) -> bytes:
    import polars as pl

    texts = [each.name for each in frame.select(pl.col(pl.String)) if each.str.contains(SUSPECT).any()]
    harmless = pl.col(texts).map_elements(lambda text: no_formula(visible(text)), return_dtype=pl.String)
    return (frame.with_columns(harmless) if texts else frame).write_csv().encode()


def _parquet(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()
