"""`report` and `compare`: read the words, call the library, show the answer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from separatrix.cli.sweep import HERE, AsJson, StoreUrl, secret, warn_of
from separatrix.secrets import Secret


def register(app: typer.Typer) -> None:
    """Attach the commands to the application."""
    app.command("report")(report)
    app.command("compare")(compare)


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

    Example: separatrix report --store sqlite:///results.db --sweep atlas --out report
    """
    from separatrix.cli import show_report
    from separatrix.reports.store import write_report
    from separatrix.store import open_store

    store = open_store(url)
    numbers = [None if name is None else store.sweep_named(name) for name in (sweep, against)]
    made = write_report(store, out, *numbers)
    show_report.report(made, as_json)
    warn_of(made.damage)


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

    Example: separatrix compare 1 2 --store sqlite:///results.db
    """
    from separatrix.cli import show_report
    from separatrix.parameters import UsageError
    from separatrix.store import open_store, selected
    from separatrix.store.compare import compare as run

    store = open_store(url)
    other_store = store if other_url is None else open_store(other_url)
    numbers = store.sweep_named(one), other_store.sweep_named(other)
    if other_url is None and numbers[0] == numbers[1]:
        raise UsageError(
            f"{one} and {other} are both sweep {numbers[0]}; give two numbers: separatrix list sweeps"
        )
    with selected(store, None, numbers[0]) as left, selected(other_store, None, numbers[1]) as right:
        found = run(left.frames(), right.frames())
    damages = [each.scan.damage for each in (left, right) if each.scan.damage]
    here, there = ("", "") if other_url is None else (f" of {store.where}", f" of {other_store.where}")
    names = (f"sweep {one}{here}", f"sweep {other}{there}")
    show_report.comparison(found, names, damages, as_json)
    for damage in damages:
        warn_of(damage)
    raise typer.Exit(0 if found.identical else 1)
