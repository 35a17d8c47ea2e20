"""`map`: a quantity over two parameters."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from separatrix.cli import options
from separatrix.cli.progress import announced, counting
from separatrix.cli.terminal import console, escape, print_lines, show

if TYPE_CHECKING:
    from rich.console import Console

    from separatrix.analysis.maps import Layer, Map

SHADES = " ░▒▓█"
MAX_ROWS, MAX_COLUMNS = 20, 64
"""The size of a picture of shades."""


def map_(
    construction: options.ConstructionName,
    mechanisms: options.MechanismNames,
    words: options.AxisWords = None,
    of: Annotated[
        str,
        Option(
            help="distinguish, which is P(tells apart), fire_d0, fire_d1, margin, bits, or accuracy:noise=0.5: of "
            "the best possible reader of one row under noise (with ,rows=all of all rows)."
        ),
    ] = "distinguish",
    difference: Annotated[
        bool, Option("--difference", help="Show the first of two mechanisms minus the second.")
    ] = False,
    engine: options.EngineName = "auto",
    draws: options.DrawsOption = 400,
    seed: options.SeedOption = 0,
    confidence: options.ConfidenceOption = 0.95,
    out: Annotated[
        Path | None, Option(help="Write the map: .html, .png, .pdf, .svg, .npz, .csv, .parquet or .json.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """A quantity over two parameters, as a picture.

    Two parameters are axes: start:stop:count, or start:stop:count:log for even spacing in the logarithm.
    Missing parameters are taken from the construction's reference point.

    \b
    Examples:
      separatrix map spike softmax a1=0.5:1.5:60 n=1e3:1e18:60:log
      separatrix map spike softmax,linear a1=0.5:1.5:99 b=0.1:1:99 --out map.html
    """
    from separatrix.analysis.maps import map as run
    from separatrix.core.parameters import split_mechanisms
    from separatrix.exact.engines import Sampling

    construction, mechanisms, parameters = options.read_question(map_, construction, mechanisms, words)
    options.require_output(out, "map")
    work = "a map that has no closed form is computed cell by cell"
    with announced("map", work, as_json), counting(as_json) as count:
        result = run(
            construction,
            split_mechanisms(mechanisms),
            parameters,
            of=of,
            engine=engine,
            difference=difference,
            sampling=Sampling(draws, seed, confidence),
            tell=lambda step: count(step.done, step.total, step.mechanism),
        )
    # The file has the picture, so the terminal does not repeat it.
    show(result, as_json, lambda: _print_map(result, with_picture=out is None), out)


def _print_map(result: Map, with_picture: bool) -> None:
    """Print the map in shades, its extremes with their commands, and remarks."""
    from separatrix.pages.maps import captions

    terminal = console()
    for index, layer in enumerate(result.panels):
        terminal.print(f"[bold]{escape(layer.mechanism)}[/]: {escape(captions.title(result))}")
        if with_picture:
            _print_shades(terminal, result, layer)
        indices = range(len(result.layers)) if result.difference else [index]
        for word, value, cell in layer.extremes():
            commands = " and ".join(captions.command(result, i, cell) for i in indices)
            terminal.print(f"{word} {value:.6g}: {escape(commands)}")
    print_lines(captions.sentences(result))


def _print_shades(terminal: Console, result: Map, layer: Layer) -> None:
    """Print a picture of shades with the ends of the axes."""
    from separatrix.pages.maps.scales import quantity_scale

    scale = quantity_scale(result)
    values = scale.shade(layer.values)
    rows, columns = _thin(values.shape[0], MAX_ROWS), _thin(values.shape[1], MAX_COLUMNS)
    # Terminals print from the top, where the largest value of y belongs.
    lines = ["".join(_shade(values[r, c], scale.low, scale.high) for c in columns) for r in reversed(rows)]
    x, y = result.x, result.y
    x_start, x_stop, y_start, y_stop = (f"{value:.4g}" for axis in (x, y) for value in axis.floats[[0, -1]])
    margin = max(len(y_stop), len(y_start), len(y.name)) + 1
    for i, line in enumerate(lines):
        label = {0: y_stop, len(lines) // 2: y.name, len(lines) - 1: y_start}.get(i, "")
        terminal.print(f"{label:>{margin - 1}} │{line}│", markup=False)
    width = max(len(lines[0]) - len(x_start) - len(x_stop), len(x.name) + 2)
    terminal.print(f"{'':{margin}} {x_start}{x.name.center(width)}{x_stop}", markup=False)
    steps = [scale.low + (scale.high - scale.low) * i / len(SHADES) for i in range(1, len(SHADES))]
    key = " ".join(f"{name} < {step:.3g}," for name, step in zip(("blank", *SHADES[1:]), steps, strict=False))
    terminal.print(f"{scale.label}: {key} {SHADES[-1]}", markup=False)


def _thin(count: int, limit: int) -> list[int]:
    """Return at most `limit` indices of a row, its ends included."""
    return list(range(count)) if count <= limit else [i * (count - 1) // (limit - 1) for i in range(limit)]


def _shade(value: float, low: float, high: float) -> str:
    if math.isnan(value):
        return "?"
    index = int(len(SHADES) * (value - low) / (high - low))
    return SHADES[min(max(index, 0), len(SHADES) - 1)]
