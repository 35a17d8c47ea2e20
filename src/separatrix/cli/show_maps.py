"""How maps and boundaries look in a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, TaskID
from rich.table import Table

from separatrix.cli.show import console, print_json
from separatrix.numbers import format_exact

if TYPE_CHECKING:
    from separatrix.maps import Boundary, BoundaryCurve, Layer, Map, Step
    from separatrix.maps.bisection import LevelReading

SHADES = " ░▒▓█"
ROWS, COLUMNS = 20, 64


@contextmanager
def progress(quiet: bool) -> Iterator[Callable[[Step], None]]:
    """An estimate and a bar on stderr, once a layer has to be made a cell at a time."""
    to = Console(stderr=True, quiet=quiet)
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


def map_(found: Map, out: Path | None, as_json: bool) -> None:
    """Print the map in shades, its extremes, and what was moved."""
    from separatrix.maps import extremes
    from separatrix.reports.maps import captions

    if as_json:
        print_json(found.as_json())
        return
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
    from separatrix.reports.maps import heatmap

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


def boundary(found: Boundary, certificate: Path | None, as_json: bool) -> None:
    """Print every crossing, or P at both ends where there is none."""
    if as_json:
        print_json(found.as_json())
        return
    to, name, level = console(), found.span.name, format_exact(found.at)
    where = f"{found.asked.label} on {found.asked.kind.name}"
    start, stop = found.ends
    if not found.crossings:
        to.print(
            f"{escape(where)}: [bold]no crossing[/] of P = {level} found in {escape(found.span.spelled)}"
        )
    for crossing in found.crossings:
        word = "[green]certified[/]" if crossing.certified else "not certified"
        direction = "rises" if crossing.rises else "falls"
        between = f"between [bold]{crossing.lo.value}[/] and [bold]{crossing.hi.value}[/]"
        place = f"{name} {between}" if found.span.whole else f"{name} = [bold]{crossing.middle:.10g}[/]"
        to.print(f"{escape(where)}: P {direction} through {level} at {place} ({word})")
        for label, end in (("lo", crossing.lo), ("hi", crossing.hi)):
            to.print(f"  {label}  {_place(found, end)}  P = {end.p:.6g}", markup=False)
    for end in (start, stop):
        to.print(f"P = {end.p:.6g} at {_place(found, end)}", markup=False)
    if found.formula is not None:
        roots = ", ".join(f"{root:.10g}" for root in found.expected)
        place = f"{name} = {roots}" if roots else f"nowhere in this range of {name}"
        said = f"{found.formula.formula} {found.formula.tag}, {found.formula.limit}: {place}"
        to.print(said, markup=False)
    to.print(f"{found.engine}: {found.evidence}", markup=False)
    to.print(found.guarantee, markup=False)
    if found.moved:
        to.print(found.moved, markup=False)
    if certificate is not None:
        to.print(f"certificate written; verify it with: separatrix check {certificate}", markup=False)


def _place(found: Boundary, end: LevelReading) -> str:
    """The parameter's value at an end, and n where it is not the same at all of them."""
    place = f"{found.span.name}={format_exact(end.value)}"
    follows = found.span.name != "n" and len(found.lengths) > 1
    return f"{place} n={found.n_used(end)}" if follows else place


def curve(found: BoundaryCurve, out: Path | None, as_json: bool) -> None:
    """Print one row for each crossing."""
    from separatrix.reports.maps import curve as curves

    if as_json:
        print_json(found.as_json())
        return
    to = console()
    to.print(escape(curves.title(found)))
    table = Table(*map(escape, curves.columns(found)), box=None, padding=(0, 1, 0, 0))
    for row in curves.rows(found):
        table.add_row(*map(escape, row))
    to.print(table)
    for sentence in curves.sentences(found):
        to.print(escape(sentence))
    if out is not None:
        to.print(f"written: {escape(str(out))}")
