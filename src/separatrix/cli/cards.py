"""`atlas` and `bench`: every mechanism on every construction, and cost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from separatrix.cli import completion
from separatrix.cli.options import AsJson
from separatrix.cli.progress import announced, counting, working
from separatrix.cli.terminal import COLOURS, console, escape, new_table, show

if TYPE_CHECKING:
    from rich.console import Console

    from separatrix.analysis.cards.atlas import Atlas
    from separatrix.analysis.costs import CostCurve, Disagreement


def atlas(
    context: typer.Context,
    mechanisms: Annotated[
        str | None,
        typer.Option(help="Which ones, with commas; all unless given.", autocompletion=completion.mechanisms),
    ] = None,
    constructions: Annotated[
        str | None, typer.Option(help="Which ones, with commas; all unless given.")
    ] = None,
    family: Annotated[
        str | None, typer.Option(help="Only mechanisms of these families: recurrent,sparse.")
    ] = None,
    sort: Annotated[
        str,
        typer.Option(
            help="By family, name, seen (who tells most apart first), or a construction (who tells it apart "
            "most surely first)."
        ),
    ] = "family",
    out: Annotated[Path | None, typer.Option(help="Write .html, .png, .pdf, .svg, .csv or .json.")] = None,
    as_json: AsJson = False,
) -> None:
    """Every mechanism on every construction.

    Each cell has a letter for the verdict and a mark for how P is known; the page (--out atlas.html) has the
    intervals too, and can be sorted and filtered. The whole atlas takes minutes on all cores. Where the
    reader is blind, the cell says whether another threshold or a linear reader tells the labels apart, or
    no reader can, as `readers` does; this is left out where every token would have to be computed.

    \b
    Examples:
      separatrix atlas --mechanisms softmax,linear
      separatrix atlas --family recurrent --constructions spike,recall
    """
    import os

    from separatrix.analysis.cards.atlas import atlas as run
    from separatrix.core.files.writing import require_writable
    from separatrix.core.parameters import UsageError
    from separatrix.pages import atlas as page

    if context.args:
        raise UsageError(f"atlas takes options alone; write --mechanisms {','.join(context.args)}")
    if out is not None:
        require_writable(out, page.ENDINGS)
    some = mechanisms is not None or constructions is not None or family is not None
    cores = 1 if mechanisms is not None and constructions is not None else os.cpu_count() or 1
    time = "" if some else f"; about {20 // cores or 1} minutes"
    which = "mechanisms on constructions" if some else "every mechanism on every construction"
    what = f"{which}, on {cores} core{'s' * (cores > 1)}{time}"
    with announced("atlas", what, as_json), counting(as_json) as tell:
        found = run(mechanisms, constructions, family=family, sort=sort, tell=tell, workers=cores)
    if out is not None:
        page.write(found, out)
    show(found, as_json, lambda: _atlas_view(found))


WIDEST = 22
"""Characters of a name; longer ones are cut, and whole on the page."""


def _atlas_view(found: Atlas) -> None:
    """Print the atlas as a table: a letter and a mark for each construction."""
    from separatrix.pages.atlas import rescues
    from separatrix.pages.standings import shown
    from separatrix.pages.verdict_words import LETTERS, MARKS, MEANINGS, spelled

    out, columns = console(), found.constructions
    wide = min(WIDEST, max(len(region.mechanism.spelled) for region in found.regions))
    out.print(" " * wide + "".join(f"{place:3d}" for place in range(1, len(columns) + 1)))
    for family, regions in found.families.items():
        out.print(f"[dim italic]{escape(family)}[/]")
        for region in regions:
            letters = "".join(
                f"{'' if cell.p else ' '} [{COLOURS[cell.word]}]{cell.letter}[/]{cell.p[:1]}"
                for cell in map(shown, region.standings)
            )
            name = region.mechanism.spelled
            name = name if len(name) <= wide else f"{name[: wide - 1]}…"
            out.print(f"{escape(name):>{wide}}{letters}", soft_wrap=True)
    for place, (name, title) in enumerate(found.titles.items(), 1):
        out.print(f"{place:2d} {name}: {title}", style="dim", markup=False)
    words = (
        f"[{COLOURS[word]}]{letter}[/] {spelled(word)}: {MEANINGS[word]}" for word, letter in LETTERS.items()
    )
    out.print("; ".join(words))
    for letter, meaning in rescues(found).items():
        out.print(f"{letter} {meaning}", markup=False)
    out.print(f"P is {', '.join(f'{sign} {kind}' for kind, sign in MARKS.items())}")


def bench(
    mechanisms: Annotated[list[str] | None, typer.Argument(help="Mechanisms (default: all).")] = None,
    as_json: AsJson = False,
) -> None:
    """Cost on this machine: time, memory, operations.

    A mechanism whose fast form does not agree with its definition gets no numbers.
    """
    from separatrix.analysis.costs import bench as run
    from separatrix.core.parameters import split_mechanisms
    from separatrix.mechanisms.load import mechanism_from

    names = [name for word in mechanisms or [] for name in split_mechanisms(word)]
    chosen = [mechanism_from(name) for name in names] or None
    task = "time, memory and operations at six lengths; about 10 s a mechanism"
    with announced("bench", task, as_json), working(as_json) as tell:
        result = run(chosen, tell=tell)
    show(result, as_json, lambda: print_costs(console(), result.costs, result.softmax))


def print_costs(
    terminal: Console, costs: Sequence[CostCurve | Disagreement], softmax: CostCurve | Disagreement
) -> None:
    """Print the two longest lengths of each mechanism, and the mechanisms without numbers."""
    from separatrix.analysis.costs import CostCurve, Disagreement
    from separatrix.mechanisms.decoding import STATE

    titles = ("cost", "n", "ms", "MiB", "GFLOP", "KiB kept", "beats softmax")
    table, curves = new_table(*titles, pad_edge=False), [x for x in costs if isinstance(x, CostCurve)]
    for curve in curves:
        start = curve.crossover(softmax) if isinstance(softmax, CostCurve) else None
        for cost in curve.costs[-2:]:
            is_last = cost.length == curve.lengths[-1]
            table.add_row(
                escape(curve.mechanism),
                f"{cost.length:,}",
                f"{1e3 * cost.seconds:.3g}",
                f"{cost.peak_bytes / 2**20:.3g}",
                f"{cost.flops / 1e9:.3g}",
                f"{cost.state_bytes / 2**10:,.5g}{'' if curve.state_is == STATE else '*'}",
                "" if not is_last else "–" if start is None else f"from {start:,}",
            )
    if curves:
        terminal.print(table)
        caches = any(curve.state_is != STATE for curve in curves)
        note = "; * of keys and values, else of a state" if caches else ""
        text = f"One head, one causal pass over n tokens. KiB kept: to decode the next one{note}."
        terminal.print(text, style="dim", markup=False)
    for untimed in costs:
        if isinstance(untimed, Disagreement):
            reason = escape(untimed.disagreement)
            terminal.print(f"[red]{escape(untimed.mechanism)} gets no numbers[/]: {reason}")
