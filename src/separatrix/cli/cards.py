"""`atlas` and `bench`: every mechanism on every construction, and cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Context, Option

from separatrix.cli import completion, options
from separatrix.cli.progress import announced, counting, working
from separatrix.cli.terminal import COLOURS, console, escape, new_table, print_lines, show

if TYPE_CHECKING:
    from rich.console import Console

    from separatrix.analysis.cards.atlas import Atlas
    from separatrix.analysis.costs.curves import CostCurve, Disagreement

MAX_NAME_WIDTH = 22
"""Longer names are cut; the page has them in full."""


def atlas(
    context: Context,
    mechanisms: Annotated[
        str | None, Option(help="Comma-separated names (default: all).", autocompletion=completion.mechanisms)
    ] = None,
    constructions: Annotated[str | None, Option(help="Comma-separated names (default: all).")] = None,
    family: Annotated[str | None, Option(help="Only mechanisms of these families: recurrent,sparse.")] = None,
    sort: Annotated[
        str,
        Option(
            help="family, name, seen (most constructions distinguished first), or a construction (highest P first)."
        ),
    ] = "family",
    out: options.Picture = None,
    as_json: options.AsJson = False,
) -> None:
    """Every mechanism on every construction.

    Each cell has a letter for the verdict and a mark for how P is known. The page (--out atlas.html) also has
    the intervals, and can be sorted and filtered. The whole atlas takes minutes on all cores. Where the
    reader is blind, the cell tells whether another threshold or a linear reader works, or no reader can, as
    `readers` does; this is omitted where every token would have to be computed.

    \b
    Examples:
      separatrix atlas --mechanisms softmax,linear
      separatrix atlas --family recurrent --constructions spike,recall
    """
    import os

    from separatrix.analysis.cards.atlas import atlas as compute
    from separatrix.core.parameters import UsageError

    if context.args:
        raise UsageError(f"atlas takes options alone; write --mechanisms {','.join(context.args)}")
    options.require_output(out, "atlas")
    is_part = any(option is not None for option in (mechanisms, constructions, family))
    # A named choice of both is a handful of cells, for which starting processes would take longer.
    cores = 1 if mechanisms is not None and constructions is not None else os.cpu_count() or 1
    cells = "mechanisms on constructions" if is_part else "every mechanism on every construction"
    time = "" if is_part else f"; about {20 // cores or 1} minutes"
    work = f"{cells}, on {cores} core{'s' * (cores > 1)}{time}"
    with announced("atlas", work, as_json), counting(as_json) as tell:
        result = compute(mechanisms, constructions, family=family, sort=sort, tell=tell, workers=cores)
    show(result, as_json, lambda: _print_atlas(result), out)


def _print_atlas(atlas: Atlas) -> None:
    """Print the atlas as a table: a letter and a mark for each construction."""
    from separatrix.pages.atlas import rescue_legend
    from separatrix.pages.standings import standing_text
    from separatrix.pages.verdict_words import LETTERS, MARKS_LEGEND, MEANINGS, verdict_name

    out = console()
    width = min(MAX_NAME_WIDTH, max(len(row.mechanism.spelled) for row in atlas.mechanisms))
    out.print(" " * width + "".join(f"{number:3d}" for number, _ in enumerate(atlas.constructions, 1)))
    for family, rows in atlas.families.items():
        out.print(f"[dim italic]{escape(family)}[/]")
        for row in rows:
            letters = "".join(
                f"{'' if cell.p else ' '} [{COLOURS[cell.word]}]{cell.letter}[/]{cell.p[:1]}"
                for cell in map(standing_text, row.results)
            )
            name = row.mechanism.spelled
            name = name if len(name) <= width else f"{name[: width - 1]}…"
            out.print(f"{escape(name):>{width}}{letters}", soft_wrap=True)
    print_lines((f"{number:2d} {name}: {title}" for number, (name, title) in enumerate(atlas.titles.items(), 1)), "dim")
    words = (f"[{COLOURS[word]}]{letter}[/] {verdict_name(word)}: {MEANINGS[word]}" for word, letter in LETTERS.items())
    out.print("; ".join(words))
    print_lines(f"{letter} {meaning}" for letter, meaning in rescue_legend(atlas).items())
    out.print(f"P is {MARKS_LEGEND}")


def bench(
    mechanisms: Annotated[list[str] | None, Argument(help="Names (default: all).")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Cost on this machine: time, memory, operations.

    A mechanism whose fast form does not agree with its definition gets no numbers.
    """
    from separatrix.analysis.costs.cost import bench as compute
    from separatrix.core.parameters import split_mechanisms
    from separatrix.mechanisms.load import mechanism_from

    names = [name for words in mechanisms or [] for name in split_mechanisms(words)]
    selection = [mechanism_from(name) for name in names]
    work = "time, memory and operations at six lengths; about 10 s a mechanism"
    with announced("bench", work, as_json), working(as_json) as tell:
        result = compute(selection or None, tell=tell)
    show(result, as_json, lambda: print_costs(console(), result.costs, result.softmax))


def print_costs(out: Console, costs: Sequence[CostCurve | Disagreement], softmax: CostCurve | Disagreement) -> None:
    """Print the two longest lengths of each mechanism, and the mechanisms that get no numbers."""
    from separatrix.analysis.costs.curves import CostCurve, Disagreement
    from separatrix.mechanisms.decoding import STATE

    table = new_table("cost", "n", "ms", "MiB", "GFLOP", "KiB kept", "beats softmax")
    curves = [cost for cost in costs if isinstance(cost, CostCurve)]
    for curve in curves:
        start = curve.crossover(softmax) if isinstance(softmax, CostCurve) else None
        for cost in curve.costs[-2:]:  # two lengths show the growth; JSON has all
            table.add_row(
                escape(curve.mechanism),
                f"{cost.length:,}",
                f"{1e3 * cost.seconds:.3g}",
                f"{cost.peak_bytes / 2**20:.3g}",
                f"{cost.flops / 1e9:.3g}",
                f"{cost.state_bytes / 2**10:,.5g}{'' if curve.state_is == STATE else '*'}",
                "" if cost.length < curve.lengths[-1] else "–" if start is None else f"from {start:,}",
            )
    if curves:
        out.print(table)
        has_cache = any(curve.state_is != STATE for curve in curves)
        note = "; * a cache of keys and values, otherwise a state" if has_cache else ""
        print_lines([f"One head, one causal pass over n tokens. KiB kept to decode the next token{note}."], "dim")
    for failure in costs:
        if isinstance(failure, Disagreement):
            out.print(f"[red]{escape(failure.mechanism)} gets no numbers[/]: {escape(failure.disagreement)}")
