"""`reproduce`: the paper's theorem, as far as its summary goes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Exit, Option

from separatrix.cli.claim import print_ledger
from separatrix.cli.options import AsJson
from separatrix.cli.progress import announced
from separatrix.cli.terminal import console, show

if TYPE_CHECKING:
    from separatrix.claims.paper import Reproduction


def reproduce(
    out: Annotated[Path, Option(help="Folder for the report, figures, ledger and tables.")] = Path("reproduction"),
    as_json: AsJson = False,
) -> None:
    """Reproduce the paper's theorem, as far as its summary goes: ledger, sweeps, figures, report.

    Each statement has a tag: stated in the paper's summary, reconstructed, or ours.

    Writes report.html (opens offline), the figures as PNG, PDF and SVG, the proofs for every n with their
    certificates, ledger.json, CSV files of the sweeps, and results.db, a store of their cells. A second run into
    the same folder reuses the stored cells.
    """
    from separatrix.pages.reproduce import reproduce as run

    summary = f"the ledger, six sweeps and the figures, into {out}; about a minute"
    with announced("reproduce", summary, as_json):
        result = run(out, quiet=as_json)
    show(result, as_json, lambda: _print(result))
    raise Exit(0 if result.holds else 1)


def _print(result: Reproduction) -> None:
    """Print the ledger as a table, and the path of the report."""
    out = console()
    print_ledger(result.ledger, out)
    out.print(f"\nreport: {result.report}", soft_wrap=True, markup=False)
    out.print(f"{len(result.files)} files in {result.seconds:.0f} s", markup=False)
