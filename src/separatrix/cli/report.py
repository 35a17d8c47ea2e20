"""`report` and `compare`: a page about a sweep, and what changed from one to another."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from separatrix.cli.options import HERE, AsJson, StoreUrl, secret
from separatrix.cli.progress import announced
from separatrix.cli.terminal import console, new_table, plain, show, warn_of
from separatrix.core.secrets import Secret

if TYPE_CHECKING:
    from separatrix.sweeps.store.compare import Change, Comparison, StoreReport, SweepAnswer

MOST_ROWS = 12


def report(
    url: StoreUrl = HERE,
    sweep: Annotated[
        str | None, typer.Option(help="Name or number; the newest sweep if none is named.")
    ] = None,
    against: Annotated[str | None, typer.Option(help="Name or number of a sweep to compare it with.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the page and the tables.")] = Path("report"),
    as_json: AsJson = False,
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
        made = write_report(store, out, *numbers)
    show(made, as_json, lambda: _view(made))
    warn_of(made.damaged)


def _view(made: StoreReport) -> None:
    """Print where the page is, and what it is about."""
    to = console()
    what = "all stored cells" if made.sweep is None else f"sweep {made.name}, number {made.sweep}"
    counts = ", ".join(f"{count:,} {ended}" for ended, count in made.cells.items()) or "no finished cells"
    to.print(f"{plain(what)}: {plain(counts)}")
    if made.comparison is not None:
        to.print(_counts(made.comparison), markup=False)
    to.print(f"page: {made.page}", markup=False, soft_wrap=True)
    to.print(f"tables: {', '.join(map(str, made.tables))}", markup=False, soft_wrap=True)


def _counts(found: Comparison) -> str:
    return (
        f"compared: {found.same:,} the same, {found.other_verdict:,} with another verdict, "
        f"{found.other_probability:,} with another P, {found.only_one:,} new, {found.only_other:,} gone"
    )


def compare(
    one: Annotated[str, typer.Argument(help="Name or number of a sweep.")],
    other: Annotated[str, typer.Argument(help="Name or number of the sweep to compare it with.")],
    url: StoreUrl = HERE,
    other_url: Annotated[
        Secret | None,
        typer.Option("--other-store", parser=secret, metavar="URL", help="Where OTHER is, if elsewhere."),
    ] = None,
    as_json: AsJson = False,
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

    store = open_store(url)
    compared = compare_sweeps(store, one, other, None if other_url is None else open_store(other_url))
    names = (compared.one, compared.other)
    show(compared, as_json, lambda: _comparison_view(compared.comparison, names))
    for damaged in compared.damaged:
        warn_of(damaged.damage)
    raise typer.Exit(0 if compared.comparison.identical else 1)


def _comparison_view(found: Comparison, names: tuple[str, str]) -> None:
    """Print what changed, the largest changes first."""
    to = console()
    same = "[green]the same cells, the same answers[/]" if found.identical else "[yellow]they differ[/]"
    to.print(f"{plain(names[0])} and {plain(names[1])}: [bold]{same}[/]")
    counts = new_table()
    for term, count in (
        ("the same answer", found.same),
        ("another verdict", found.other_verdict),
        ("another P", found.other_probability),
        (f"only in {names[0]}", found.only_one),
        (f"only in {names[1]}", found.only_other),
    ):
        counts.add_row(plain(term), f"{count:,}")
    to.print(counts)
    shown = found.largest[:MOST_ROWS]
    if not shown:
        return
    common = found.common
    if common:
        to.print(f"in all of these: {plain(_words(common))}", style="dim")
    table = new_table("cell", plain(names[0]), plain(names[1]))
    for change in shown:
        table.add_row(_cell(change, common), _answer(change.one), _answer(change.other))
    to.print(table)
    if found.changed > len(shown):
        to.print(f"and {found.changed - len(shown):,} more; --json has the largest hundred", style="dim")


def _cell(change: Change, common: Mapping[str, str]) -> str:
    own = {name: value for name, value in change.request.items() if name not in common}
    return f"{plain(change.mechanism)} on {plain(change.construction)}\n[dim]{plain(_words(own))}[/]"


def _words(asked: Mapping[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in asked.items())


def _answer(answer: SweepAnswer) -> str:
    word = plain(answer.word)
    if answer.distinguish is None or answer.low is None or answer.high is None:
        return word
    known = "exact" if answer.low == answer.high else f"in [{answer.low:.3g}, {answer.high:.3g}]"
    return f"{word}\n[dim]P = {answer.distinguish:.4g}\n{plain(known)}[/]"
