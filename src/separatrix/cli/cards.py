"""`assess`, `atlas` and `bench`: a report card, every mechanism on every construction, and cost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from separatrix.cli.options import AsJson
from separatrix.cli.terminal import COLOURS, console, counting, escape, new_table, show, working

if TYPE_CHECKING:
    from rich.console import Console

    from separatrix.cards import Calling, Card, Standing, Unanswered
    from separatrix.cards.atlas import Atlas
    from separatrix.contract import Examination
    from separatrix.costs import CostCurve, Disagreement


def assess(
    mechanism: Annotated[str, typer.Argument(help="A name, or module:attribute of your own.")],
    against: Annotated[str, typer.Option(help="Mechanisms to compare with, separated by commas.")] = "",
    quick: Annotated[bool, typer.Option("--quick", help="The contract alone, in seconds.")] = False,
    width: Annotated[
        int | None, typer.Option(help="Your own: the width of a head that it takes.", min=1)
    ] = None,
    heads: Annotated[
        int | None, typer.Option(help="Your own: the number of heads that it takes.", min=1)
    ] = None,
    scale: Annotated[
        str | None,
        typer.Option(help="Your own: multiply queries by this; sqrt undoes a hidden 1/sqrt(width)."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the card as a page: card.html.")] = None,
    as_json: AsJson = False,
) -> None:
    """Report card: contract, verdicts, likeness, cost.

    The contract comes first and is shown at once; --quick stops there.

    Exit code 0: the contract is kept; 1: it is broken, or the mechanism raised on the way, and the card
    names the check; 2: there is nothing to assess (no such module or attribute, it does not import, it
    cannot be called with q, k and v).

    Example: separatrix assess my_file:MyAttention --against softmax,linear
    """
    from separatrix.cards import assess as run
    from separatrix.files.writing import require_writable
    from separatrix.mechanisms.load import mechanism_from
    from separatrix.parameters import split_mechanisms
    from separatrix.reports import card

    if out is not None:
        require_writable(out, card.ENDINGS)
    one = mechanism_from(mechanism, width=width, heads=heads, scale=scale)
    others = [mechanism_from(name) for name in split_mechanisms(against)]
    with working(as_json) as tell:
        found = run(one, others, tell, quick=quick, examined=_no_view if as_json else _contract_view)
    if out is not None:
        card.write(found, out)
    show(found, as_json, lambda: _view(found))
    raise typer.Exit(0 if found.holds else 1)


def _no_view(calling: Calling, contract: Examination) -> None:
    """Nothing: JSON has the contract with all else."""


def _contract_view(calling: Calling, contract: Examination) -> None:
    """Print what a mechanism is, how it is called and what it keeps of the contract."""
    out = console()
    out.print(f"[bold]{escape(calling.mechanism.spelled)}[/]  {escape(calling.mechanism.formula)}")
    if calling.scale is not None:
        out.print(f"[bold yellow]{escape(calling.scale.words)}[/]")
    for note in calling.notes:
        out.print(escape(note), style="dim")
    counted = {
        "kept": len(contract.passed),
        "broken": len(contract.failed),
        "not tried": len(contract.not_tried),
        "do not apply": len(contract.skipped),
    }
    shown = (f"{count} {word}" for word, count in counted.items() if count or word != "not tried")
    out.print(f"contract: {', '.join(shown)}")
    for name, what in contract.failed.items():
        out.print(f"  [red]broken[/] {escape(name)}: {escape(what)}")
    for name, untried in _by_message(contract.not_tried).items():
        out.print(f"  not tried, since {escape(name)} failed: {escape(', '.join(untried))}", style="dim")


def _view(found: Card) -> None:
    """Print the rest of a report card; the contract was printed when it was known."""
    from separatrix.cards import Unanswered
    from separatrix.reports.verdict_words import MARKS

    out = console()
    if found.quick:
        out.print(escape(found.reading))
        return
    titles = ("construction", "verdict", "P", "margin", "bits", "blind from")
    table = new_table(*titles, pad_edge=False)
    for each in (found, *found.against):
        if found.against:
            table.add_row(f"[bold]{escape(each.mechanism.spelled)}[/]")
        for cell in each.standings:
            table.add_row(escape(cell.name), f"[{COLOURS[cell.word]}]{cell.word}[/]", *_numbers(cell))
    for column in table.columns:
        column.no_wrap = True
    if table.row_count:
        out.print(table)
        out.print(f"P is {', '.join(f'{sign} {kind}' for kind, sign in MARKS.items())}", style="dim")
    for each in (found, *found.against):
        unanswered = {cell.name: cell.why for cell in each.standings if isinstance(cell, Unanswered)}
        for what, names in _by_message(unanswered).items():
            where = "any construction" if len(names) == len(each.standings) else ", ".join(names)
            out.print(f"[red]{escape(each.mechanism.spelled)} has no answer[/] on {where}: {escape(what)}")
    _costs(out, [each.cost for each in (found, *found.against)], found.softmax_cost)
    out.print(escape(found.reading))


def _by_message(messages: dict[str, str]) -> dict[str, list[str]]:
    """The names that share a message, so that it is said once."""
    found: dict[str, list[str]] = {}
    for name, message in messages.items():
        found.setdefault(message, []).append(name)
    return found


def _numbers(cell: Standing | Unanswered) -> tuple[str, ...]:
    from separatrix.cards import Unanswered
    from separatrix.reports.standings import bits, blind_from, exponent
    from separatrix.reports.verdict_words import MARKS

    if isinstance(cell, Unanswered):
        return ()
    outcome = cell.verdict.outcome
    low, high = outcome.interval
    shown = f"{outcome.distinguish:.4g}" if low == high else f"{low:.2g}..{high:.2g}"
    return f"{MARKS[cell.evidence]} {shown}", exponent(cell), bits(cell), blind_from(cell)


def atlas(
    out: Annotated[Path | None, typer.Option(help="Write .html, .png, .pdf, .svg, .csv or .json.")] = None,
    as_json: AsJson = False,
) -> None:
    """Every mechanism on every construction.

    One letter a cell, and how P is known; the page has the intervals. Takes minutes, on all cores.
    """
    import os

    from separatrix.cards.atlas import atlas as run
    from separatrix.files.writing import require_writable
    from separatrix.reports import atlas as page

    if out is not None:
        require_writable(out, page.ENDINGS)
    with counting(as_json) as tell:
        found = run(tell=tell, workers=os.cpu_count() or 1)
    if out is not None:
        page.write(found, out)
    show(found, as_json, lambda: _atlas_view(found))


def _atlas_view(found: Atlas) -> None:
    """Print the atlas as a table: a letter and a mark for each construction."""
    from separatrix.reports.standings import shown
    from separatrix.reports.verdict_words import LETTERS, MARKS

    out, columns = console(), found.constructions
    wide = max(len(region.mechanism.spelled) for region in found.regions)
    out.print(" " * wide + "".join(f"{place:3d}" for place in range(1, len(columns) + 1)))
    for family, regions in found.families.items():
        out.print(f"[dim italic]{escape(family)}[/]")
        for region in regions:
            letters = "".join(
                f"{'' if cell.p else ' '} [{COLOURS[cell.word]}]{LETTERS[cell.word]}[/]{cell.p[:1]}"
                for cell in map(shown, region.standings)
            )
            out.print(f"{escape(region.mechanism.spelled):>{wide}}{letters}", soft_wrap=True)
    out.print("; ".join(f"{place} {name}" for place, name in enumerate(columns, 1)))
    words = ", ".join(f"[{COLOURS[word]}]{letter}[/] {word}" for word, letter in LETTERS.items())
    out.print(f"{words}; P is {', '.join(f'{sign} {kind}' for kind, sign in MARKS.items())}")


def bench(
    mechanisms: Annotated[list[str] | None, typer.Argument(help="Which; all if none is named.")] = None,
    as_json: AsJson = False,
) -> None:
    """Cost on this machine: time, memory, operations.

    A mechanism whose fast form does not agree with its definition gets no numbers.
    """
    from separatrix.costs import bench as run
    from separatrix.mechanisms.load import mechanism_from

    chosen = [mechanism_from(name) for name in mechanisms or []]
    with working(as_json) as tell:
        found = run(chosen or None, tell=tell)
    show(found, as_json, lambda: _costs(console(), list(found.found), found.softmax))


def _costs(out: Console, found: list[CostCurve | Disagreement], softmax: CostCurve | Disagreement) -> None:
    """The two longest lengths of each mechanism, and those that get no numbers."""
    from separatrix.costs import CostCurve, Disagreement, crossover
    from separatrix.costs.state import CACHE

    titles = ("cost", "n", "ms", "MiB", "GFLOP", "KiB kept", "beats softmax")
    table, curves = new_table(*titles, pad_edge=False), [x for x in found if isinstance(x, CostCurve)]
    for curve in curves:
        start = crossover(curve, softmax)
        for cost in curve.costs[-2:]:
            last = cost is curve.costs[-1]
            table.add_row(
                escape(curve.mechanism),
                f"{cost.length:,}",
                f"{1e3 * cost.seconds:.3g}",
                f"{cost.peak_bytes / 2**20:.3g}",
                f"{cost.flops / 1e9:.3g}",
                f"{cost.state_bytes / 2**10:,.5g}{'*' if curve.state == CACHE else ''}",
                "" if not last else "–" if start is None else f"from {start:,}",
            )
    if curves:
        out.print(table)
        if any(curve.state == CACHE for curve in curves):
            out.print(f"* {CACHE}; else the state, measured", style="dim")
    for each in found:
        if isinstance(each, Disagreement):
            out.print(f"[red]{escape(each.mechanism)} gets no numbers[/]: {escape(each.what)}")
