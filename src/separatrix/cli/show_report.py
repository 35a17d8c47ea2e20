"""How reports of stored sweeps and comparisons look in a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from separatrix.cli.show import console, plain, print_json

if TYPE_CHECKING:
    from separatrix.reports.store import Written
    from separatrix.store import Damage
    from separatrix.store.compare import Change, Comparison, SweepAnswer

MOST_ROWS = 12


def report(made: Written, as_json: bool) -> None:
    """Print where the page is, and what it is about."""
    if as_json:
        print_json(made.as_json())
        return
    to = console()
    what = "all stored cells" if made.sweep is None else f"sweep {made.name}, number {made.sweep}"
    counts = ", ".join(f"{count:,} {ended}" for ended, count in made.cells.items()) or "no finished cells"
    to.print(f"{plain(what)}: {plain(counts)}")
    if made.comparison is not None:
        to.print(_counts(made.comparison), markup=False)
    to.print(f"page: {made.page}", markup=False, soft_wrap=True)
    to.print(f"tables: {', '.join(map(str, made.tables))}", markup=False, soft_wrap=True)


def comparison(found: Comparison, names: tuple[str, str], damages: Sequence[Damage], as_json: bool) -> None:
    """Print what changed, the largest changes first."""
    if as_json:
        damaged = [{"store": each.where, **each.as_json()} for each in damages]
        print_json({"one": names[0], "other": names[1], **found.as_json(), "damaged": damaged})
        return
    to = console()
    same = "[green]the same cells, the same answers[/]" if found.identical else "[yellow]they differ[/]"
    to.print(f"{plain(names[0])} and {plain(names[1])}: [bold]{same}[/]")
    counts = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
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
    table = Table("cell", plain(names[0]), plain(names[1]), box=None, padding=(0, 2, 0, 0))
    for change in shown:
        table.add_row(_cell(change, common), _answer(change.one), _answer(change.other))
    to.print(table)
    if found.changed > len(shown):
        to.print(f"and {found.changed - len(shown):,} more; --json has the largest hundred", style="dim")


def _counts(found: Comparison) -> str:
    return (
        f"compared: {found.same:,} the same, {found.other_verdict:,} with another verdict, "
        f"{found.other_probability:,} with another P, {found.only_one:,} new, {found.only_other:,} gone"
    )


def _cell(change: Change, common: Mapping[str, str]) -> str:
    own = {name: value for name, value in change.asked.items() if name not in common}
    return f"{plain(change.mechanism)} on {plain(change.construction)}\n[dim]{plain(_words(own))}[/]"


def _words(asked: Mapping[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in asked.items())


def _answer(answer: SweepAnswer) -> str:
    word = plain(answer.word)
    if answer.distinguish is None or answer.low is None or answer.high is None:
        return word
    known = "exact" if answer.low == answer.high else f"in [{answer.low:.3g}, {answer.high:.3g}]"
    return f"{word}\n[dim]P = {answer.distinguish:.4g}\n{plain(known)}[/]"
