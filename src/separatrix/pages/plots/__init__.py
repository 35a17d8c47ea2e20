"""Drawing results with matplotlib, and writing them to files.

`separatrix/__init__.py` registers this module as the renderer of results (`core.rendering`).
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from separatrix.core.errors import UsageError
from separatrix.core.files.writing import require_writable, write_whole
from separatrix.core.lazy import pl
from separatrix.core.numbers.json import json_file
from separatrix.core.result import Result
from separatrix.pages.paper import PICTURES, Axes, new_figure, paper_style, save_figure
from separatrix.pages.plots.registry import DRAWINGS, call

TABLES = (".json", ".csv", ".parquet")


def plot(result: Result, ax: Axes | Sequence[Axes] | None = None) -> Any:
    """Draw on these axes, or on new ones, and return them; several panels take and return several axes."""
    drawing = DRAWINGS[result.kind]
    panels = drawing.panels(result)
    count = len(panels)
    if count == 0:
        raise UsageError(f"there is no picture of this {type(result).__name__}; to_frame() has its rows")
    from matplotlib.axes import Axes

    if ax is None:
        width, height = call(drawing.size, result)
        with paper_style():
            return plot(result, new_figure(width * count, height).subplots(1, count))
    # `subplots` returns one object, a row or a grid of them, and users pass lists.
    targets = [ax] if isinstance(ax, Axes) else list(np.ravel(np.array(ax, dtype=object)))
    stray = next((target for target in targets if not isinstance(target, Axes)), None)
    if stray is not None:
        raise UsageError(f"plot draws on matplotlib axes, and {type(stray).__name__} is something else")
    if len(targets) != count:
        panels = "1 panel" if count == 1 else f"{count} panels"
        raise UsageError(f"this has {panels}; give as many axes in a list, not {len(targets)}")
    for panel, axes in zip(panels, targets, strict=True):
        call(drawing.draw, panel, axes)
    return ax


def suffixes(kind: str) -> tuple[str, ...]:
    """Return the suffixes of the files that results of a kind can be written to."""
    drawing = DRAWINGS[kind]
    pictures = PICTURES if drawing.draw else ()
    return tuple(dict.fromkeys((*TABLES, *pictures, *drawing.files)))


def write(result: Result, out: Path) -> None:
    """Write the file in the format of its suffix, whole or not at all."""
    writers = _writers(result)
    require_writable(out, writers)
    write_whole(out, writers[out.suffix]())


def content(result: Result, suffix: str) -> bytes:
    """Return the content of the file with this suffix."""
    return _writers(result)[suffix]()


def _writers(result: Result) -> dict[str, Callable[[], bytes]]:
    drawing = DRAWINGS[result.kind]
    pictures = PICTURES if drawing.panels(result) else ()
    return {
        ".json": lambda: json_file(result.as_json()),
        ".csv": lambda: _csv(result.to_frame()),
        ".parquet": lambda: _parquet(result.to_frame()),
        **{suffix: lambda suffix=suffix: _picture(result, suffix[1:]) for suffix in pictures},  # type: ignore[misc]
        **{suffix: lambda suffix=suffix: drawing.content(suffix, result) for suffix in drawing.files},  # type: ignore[misc]
    }


def _picture(result: Result, kind: str) -> bytes:
    figure = DRAWINGS[result.kind].figure
    with paper_style():
        return save_figure(call(figure, result) if figure else plot(result).figure, kind)


def _csv(frame: pl.DataFrame) -> bytes:
    from separatrix.sweeps.store.export import make_harmless  # loads sqlalchemy

    return make_harmless(frame).write_csv().encode()


def _parquet(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()
