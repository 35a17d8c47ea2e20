"""`search`: read the words, call the library, show or write the answer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Attach the command to the application."""
    app.command("search")(search)


def search(
    x: Annotated[str | None, typer.Argument(help="The mechanism that is to tell the labels apart.")] = None,
    y: Annotated[str | None, typer.Argument(help="The mechanism that is not to.")] = None,
    budget: Annotated[int, typer.Option(help="Trials, those of the study file included.")] = 300,
    seconds: Annotated[float | None, typer.Option(help="Stop trying after so many seconds.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the trials.")] = 0,
    space: Annotated[str, typer.Option(help="inputs, constructions or both.")] = "inputs",
    study: Annotated[
        Path | None, typer.Option(help="Keep finished trials in this file, and go on from those in it.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write what was found: found.json.")] = None,
    check: Annotated[Path | None, typer.Option(help="Evaluate the findings of such a file again.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")] = False,
) -> None:
    """Find what X tells apart and Y does not.

    Tries small inputs (or parameters of constructions), and shrinks what it finds. Finding nothing
    proves nothing. With --check, exit code 1: a finding of the file does not hold.

    Example: separatrix search softmax linear --out found.json
    """
    from separatrix.cli import show_search
    from separatrix.files.writing import require_writable, write_whole
    from separatrix.parameters import UsageError
    from separatrix.searches import check_findings
    from separatrix.searches import search as run

    if check is not None:
        report = check_findings(check, x, y)
        show_search.check(report, check, as_json)
        raise typer.Exit(0 if report.holds else 1)
    if x is None or y is None:
        raise UsageError("name two mechanisms, for example: separatrix search softmax linear")
    if out is not None:
        require_writable(out, (".json",))
    with show_search.trying(as_json) as tell:
        found = run(x, y, budget=budget, seconds=seconds, seed=seed, space=space, study=study, tell=tell)
    if found.damaged:
        show_search.warn_of(found.damaged, study)
    if out is not None:
        write_whole(out, show_search.written(found))
    show_search.search(found, out, study, as_json)
    if found.interrupted:
        raise typer.Exit(130)
