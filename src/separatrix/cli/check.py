"""`check`: verify a certificate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from separatrix.cli.options import AsJson
from separatrix.cli.terminal import console, escape, print_json, print_lines

if TYPE_CHECKING:
    from separatrix.checker import Report


def check(
    file: Annotated[Path, typer.Argument(help="A certificate written by verdict or boundary --certificate.")],
    as_json: AsJson = False,
) -> None:
    """Verify a certificate independently.

    Separate code and separate arithmetic recompute every statement in it.
    Exit code 0: it holds; 1: it does not; 2: it is no certificate.
    """
    from separatrix.checker import check_file

    report = check_file(file)
    if as_json:
        fields = ("holds", "verified", "failed", "statement")
        print_json({"file": str(file), **{name: getattr(report, name) for name in fields}})
    else:
        _view(report, file)
    raise typer.Exit(0 if report.holds else 1)


def _view(report: Report, file: Path) -> None:
    """Print the checker's findings."""
    out = console()
    for line in report.failed:
        out.print(f"[red]fails[/]  {escape(line)}")
    word = "[bold green]holds[/]" if report.holds else "[bold red]does not hold[/]"
    counts = f"{report.verified} statements verified, {len(report.failed)} failed"
    out.print(f"{escape(str(file))}: certificate {word} ({counts})")
    print_lines(report.statement)
