"""`report` and `compare`: read the words, call the library, show the answer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from separatrix.cli.sweep import HERE, AsJson, StoreUrl, secret
from separatrix.parameters.secrets import Secret


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
    sweeps, the page is about all its cells.

    Example: separatrix report --store sqlite:///results.db --sweep atlas --out report
    """
    from separatrix.cli import show_report
    from separatrix.reports.store import write_report
    from separatrix.store import open_store

    store = open_store(url)
    numbers = [None if name is None else store.sweep_named(name) for name in (sweep, against)]
    show_report.report(write_report(store, out, *numbers), as_json)


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
    something differs.

    Example: separatrix compare 1 2 --store sqlite:///results.db
    """
    from separatrix.cli import show_report
    from separatrix.parameters import UsageError
    from separatrix.store import frame, open_store
    from separatrix.sweeps.compare import compare as run

    store = open_store(url)
    other_store = store if other_url is None else open_store(other_url)
    numbers = store.sweep_named(one), other_store.sweep_named(other)
    if other_url is None and numbers[0] == numbers[1]:
        raise UsageError(
            f"{one} and {other} are both sweep {numbers[0]}; give two numbers: separatrix list sweeps"
        )
    found = run(frame(store, sweep=numbers[0]), frame(other_store, sweep=numbers[1]))
    here, there = ("", "") if other_url is None else (f" of {store.where}", f" of {other_store.where}")
    names = (f"sweep {one}{here}", f"sweep {other}{there}")
    show_report.comparison(found, names, as_json)
    raise typer.Exit(0 if found.identical else 1)
