"""`map`: a quantity over two parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from separatrix.cli.options import (
    AsJson,
    AxisWords,
    ConfidenceOption,
    ConstructionName,
    DrawsOption,
    EngineName,
    MechanismNames,
    SeedOption,
    in_order,
    read_parameters,
)
from separatrix.cli.progress import on_stderr
from separatrix.cli.terminal import console, escape, show

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import TaskID

    from separatrix.analysis.maps import Layer, Map, Step

SHADES = " ░▒▓█"
ROWS, COLUMNS = 20, 64


def map_(
    construction: ConstructionName,
    mechanisms: MechanismNames,
    words: AxisWords = None,
    of: Annotated[
        str, typer.Option(help="distinguish, which is P(tells apart), fire_d0, fire_d1, margin or bits.")
    ] = "distinguish",
    difference: Annotated[
        bool, typer.Option("--difference", help="Of two mechanisms: the first less the second.")
    ] = False,
    engine: EngineName = "auto",
    draws: DrawsOption = 400,
    seed: SeedOption = 0,
    confidence: ConfidenceOption = 0.95,
    out: Annotated[
        Path | None, typer.Option(help="Write it: .html, .png, .pdf, .svg, .npz, .csv, .parquet or .json.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """A quantity over two parameters, as a picture.

    Two parameters are axes: start:stop:count, or start:stop:count:log for even spacing in the logarithm. What
    is not given is taken from the construction's reference point.

    \b
    Examples:
      separatrix map spike softmax a1=0.5:1.5:60 n=1e3:1e18:60:log
      separatrix map spike softmax,linear a1=0.5:1.5:99 b=0.1:1:99 --out map.html
    """
    from separatrix.analysis.maps import map as run
    from separatrix.core.files.writing import require_writable
    from separatrix.core.parameters import split_mechanisms
    from separatrix.exact.engines import Sampling

    construction, mechanisms = in_order(construction, mechanisms)
    parameters = read_parameters(map_, construction, words)
    if out is not None:
        from separatrix.pages.maps import MAP_ENDINGS

        require_writable(out, MAP_ENDINGS)
    with _progress(as_json) as tell:
        found = run(
            construction,
            split_mechanisms(mechanisms),
            parameters,
            of=of,
            engine=engine,
            difference=difference,
            sampling=Sampling(draws, seed, confidence),
            tell=tell,
        )
    if out is not None:
        from separatrix.pages.maps import write_map

        write_map(found, out)
    show(found, as_json, lambda: _view(found, out))


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[Step], None]]:
    """An estimate and a bar on stderr, once a layer has to be made a cell at a time."""
    from rich.progress import Progress

    to = on_stderr(quiet)
    bar = Progress(console=to, transient=True, disable=not to.is_terminal)
    tasks: dict[str, TaskID] = {}

    def tell(step: Step) -> None:
        if step.mechanism not in tasks:
            bar.start()
            took = _duration(step.seconds)
            to.print(f"{escape(step.mechanism)}: {step.total:,} cells one by one, about {took}")
            tasks[step.mechanism] = bar.add_task(escape(step.mechanism), total=step.total)
        bar.update(tasks[step.mechanism], completed=step.done)

    try:
        yield tell
    finally:
        if tasks:
            bar.stop()


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _view(found: Map, out: Path | None) -> None:
    """Print the map in shades, its extremes, and what was moved."""
    from separatrix.analysis.maps import extremes
    from separatrix.pages.maps import captions

    to = console()
    every = range(len(found.layers))
    for index, layer in enumerate(found.shown):
        to.print(f"[bold]{escape(layer.mechanism)}[/]: {escape(captions.title(found))}")
        if out is None:
            _shades(to, found, layer)
        for word, value, cell in extremes(found.places, layer):
            commands = [captions.command(found, i, cell) for i in (every if found.difference else [index])]
            to.print(f"{word} {value:.6g}: {escape(' and '.join(commands))}")
    for sentence in captions.sentences(found):
        to.print(escape(sentence))
    if out is not None:
        to.print(f"written: {escape(str(out))}")


def _shades(to: Console, found: Map, layer: Layer) -> None:
    """A picture of shades with the axes' ends."""
    from separatrix.pages.maps import heatmap

    scale = heatmap.scale(found)
    values = scale.shade(layer.values)
    rows, columns = values.shape
    down, across = _thinned(rows, ROWS), _thinned(columns, COLUMNS)
    shown = ["".join(_shade(values[r, c], scale.low, scale.high) for c in across) for r in reversed(down)]
    x, y = found.x, found.y
    top, bottom = (f"{value:.4g}" for value in (float(y.values[-1]), float(y.values[0])))
    margin = max(len(top), len(bottom), len(y.name)) + 1
    for i, line in enumerate(shown):
        label = {0: top, len(shown) // 2: y.name, len(shown) - 1: bottom}.get(i, "")
        to.print(f"{label:>{margin - 1}} │{line}│", markup=False)
    ends = f"{float(x.values[0]):.4g}", f"{float(x.values[-1]):.4g}"
    width = max(len(shown[0]), len(ends[0]) + len(ends[1]) + len(x.name) + 2)
    middle = x.name.center(width - len(ends[0]) - len(ends[1]))
    to.print(f"{'':{margin}} {ends[0]}{middle}{ends[1]}", markup=False)
    steps = [scale.low + (scale.high - scale.low) * i / len(SHADES) for i in range(1, len(SHADES))]
    names = ("blank", *SHADES[1:])
    key = " ".join(f"{name} < {step:.3g}," for name, step in zip(names, steps, strict=False))
    to.print(f"{scale.label}: {key} {SHADES[-1]}", markup=False)


def _thinned(count: int, most: int) -> list[int]:
    """At most so many places of a row, its ends among them."""
    return list(range(count)) if count <= most else [i * (count - 1) // (most - 1) for i in range(most)]


def _shade(value: float, low: float, high: float) -> str:
    if value != value:
        return "?"
    place = int(len(SHADES) * (value - low) / (high - low))
    return SHADES[min(max(place, 0), len(SHADES) - 1)]
