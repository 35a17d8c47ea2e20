"""`report` and `compare`: a page about a sweep, and what changed from one to another."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Exit, Option

from separatrix.cli import options
from separatrix.cli.progress import announced
from separatrix.cli.terminal import console, new_table, plain, print_lines, show, warn_of
from separatrix.core.secrets import Secret

if TYPE_CHECKING:
    from separatrix.sweeps.store.compare import Change, Comparison, StoreReport, SweepAnswer

MAX_CHANGES = 12
"""Changed cells that are printed."""


def report(
    url: options.StoreUrl = options.HERE,
    sweep: Annotated[str | None, Option(help="Name or number (default: the newest sweep).")] = None,
    against: Annotated[str | None, Option(help="Name or number of a sweep to compare it with.")] = None,
    out: Annotated[Path, Option(help="Folder for the page and the tables.")] = Path("report"),
    as_json: options.AsJson = False,
) -> None:
    """A page about a sweep: curves, maps, mechanisms.

    Writes report.html, which opens offline, results.csv and results.parquet. Where the store has no
    sweeps, the page is about all its cells. Exit code 1: the store is damaged, and the page is about what
    is intact.

    \b
    Example:
      separatrix report --sweep atlas --out report
    """
    from separatrix.pages.store import write_report
    from separatrix.sweeps.store import open_store
    from separatrix.sweeps.store.sweep_list import find_sweep

    store = open_store(url)
    numbers = [None if name is None else find_sweep(store, name) for name in (sweep, against)]
    with announced("report", f"curves, maps and tables of the cells in {out}; seconds to a minute", as_json):
        result = write_report(store, out, *numbers)
    show(result, as_json, lambda: _view(result))
    warn_of(result.damaged)


def _view(result: StoreReport) -> None:
    """Print the path of the page, and the cells that it is about."""
    out, comparison = console(), result.comparison
    cells = "all stored cells" if result.sweep is None else f"sweep {result.name}, number {result.sweep}"
    counts = ", ".join(f"{count:,} {status}" for status, count in result.cells.items())
    out.print(f"{plain(cells)}: {plain(counts or 'no finished cells')}")
    if comparison is not None:
        changes = f"{comparison.other_verdict:,} with another verdict, {comparison.other_probability:,} with another P"
        sizes = f"{comparison.only_one:,} new, {comparison.only_other:,} gone"
        out.print(f"compared: {comparison.same:,} the same, {changes}, {sizes}", markup=False)
    out.print(f"page: {result.page}", markup=False, soft_wrap=True)
    out.print(f"tables: {', '.join(map(str, result.tables))}", markup=False, soft_wrap=True)


def compare(
    one: Annotated[str, Argument(help="Name or number of a sweep.")],
    other: Annotated[str, Argument(help="Name or number of the sweep to compare it with.")],
    url: options.StoreUrl = options.HERE,
    other_url: Annotated[
        Secret | None,
        Option("--other-store", parser=options.secret, metavar="URL", help="The store of OTHER, if another."),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """What changed from one sweep to another.

    Cells are matched by what they ask. Two exact P differ if they are more than 1e-12 apart; where one is
    sampled, if their intervals do not overlap. Exit code 0: the same cells with the same answers; 1:
    something differs, or a store is damaged.

    \b
    Example:
      separatrix compare 1 2 --store sqlite:///results.db
    """
    from separatrix.sweeps.store import open_store
    from separatrix.sweeps.store.compare import compare_sweeps

    sweeps = compare_sweeps(open_store(url), one, other, None if other_url is None else open_store(other_url))
    show(sweeps, as_json, lambda: _view_comparison(sweeps.comparison, (sweeps.one, sweeps.other)))
    for damaged_store in sweeps.damaged:
        warn_of(damaged_store.damage)
    raise Exit(0 if sweeps.comparison.identical else 1)


def _view_comparison(comparison: Comparison, names: tuple[str, str]) -> None:
    """Print the numbers of equal and different cells, and the largest changes."""
    out, is_same = console(), comparison.identical
    verdict = "[green]the same cells, the same answers[/]" if is_same else "[yellow]they differ[/]"
    out.print(f"{plain(names[0])} and {plain(names[1])}: [bold]{verdict}[/]")
    out.print(new_table(rows=((plain(term), count) for term, count in comparison.describe_counts(*names))))
    changes, common = comparison.largest[:MAX_CHANGES], comparison.common
    if not changes:
        return
    if common:
        out.print(f"in all of these: {plain(_spell(common))}", style="dim")
    rows = ((_cell(change, common), _answer(change.one), _answer(change.other)) for change in changes)
    out.print(new_table("cell", plain(names[0]), plain(names[1]), rows=rows))
    if remaining := comparison.changed - len(changes):
        print_lines([f"and {remaining:,} more; --json has the largest hundred"], "dim")


def _cell(change: Change, common: Mapping[str, str]) -> str:
    # Settings that all of these cells share stand above the table; here they would hide the difference.
    settings = {name: value for name, value in change.request.items() if name not in common}
    return f"{plain(change.mechanism)} on {plain(change.construction)}\n[dim]{plain(_spell(settings))}[/]"


def _spell(settings: Mapping[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in settings.items())


def _answer(answer: SweepAnswer) -> str:
    word = plain(answer.word)
    if answer.distinguish is None or answer.low is None or answer.high is None:
        return word
    interval = "exact" if answer.low == answer.high else f"in [{answer.low:.3g}, {answer.high:.3g}]"
    return f"{word}\n[dim]P = {answer.distinguish:.4g}\n{plain(interval)}[/]"
