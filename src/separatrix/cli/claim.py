"""`claim`: check one statement of the ledger. `print_ledger` prints all of them for `reproduce`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Exit, Option

from separatrix.cli import completion
from separatrix.cli.options import AsJson
from separatrix.cli.progress import working
from separatrix.cli.terminal import WRITTEN, console, escape, escape_all, new_table, print_lines, show
from separatrix.core.grouping import group_pairs
from separatrix.core.numbers.spelling import for_people, powers_for_people

if TYPE_CHECKING:
    from rich.console import Console

    from separatrix.claims import Entry, Ledger, Point

STYLES = {"holds": ("green", "holds"), "holds only where": ("yellow", "only where"), "fails": ("bold red", "FAILS")}
"""The colour of each status, and its word in the table of the ledger."""
TAGS = {
    "paper": "stated in the paper's summary",
    "rec": "reconstructed from the summary or from another paper",
    "ours": "a result of this project",
}
MAX_POINTS = 12


def claim(
    name: Annotated[
        str,
        Argument(
            help="Name of the claim in the ledger, for example theorem (see `list claims`).",
            autocompletion=completion.claims,
        ),
    ],
    certificates: Annotated[
        Path | None, Option(metavar="FOLDER", help="Write the certificates of what is proved for every n here.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check one statement of the ledger, and show the evidence.

    The exit code is 1 if it fails. `reproduce` checks all of them.

    Example: separatrix claim theorem
    """
    from separatrix.claims import ClaimStatus, check_claim, claim_named
    from separatrix.core.files.writing import require_writable
    from separatrix.exact.verdicts import write_certificate

    statement = claim_named(name)
    if certificates is not None:
        require_writable(certificates / f"{name}-1.json", ())
    with working(as_json) as tell:
        tell(f"{statement.name}: {statement.statement[:60]}")
        entry = check_claim(statement)
    if certificates is not None:
        for number, certificate in enumerate(entry.finding.certificates, 1):
            write_certificate(certificates / f"{name}-{number}.json", certificate)
    show(entry, as_json, lambda: _print_entry(entry))
    if certificates is not None and not as_json:
        count = len(entry.finding.certificates)
        written = f"{WRITTEN} {certificates / f'{name}-1.json'} ({count} files)"
        print_lines([written if count else "this claim has no certificates"])
    raise Exit(1 if entry.finding.status is ClaimStatus.FAILS else 0)


def print_ledger(ledger: Ledger, out: Console) -> None:
    """Print one row for each claim, with the condition of one that needs it and the summary of a failure."""
    table = new_table("claim", "tag", "status", "slack", gap=1)
    for entry in ledger.entries:
        finding, status = entry.finding, entry.finding.status.value
        style, word = STYLES[status]
        summary = powers_for_people(finding.summary)
        note = {"holds": "", "holds only where": f"only where {finding.where}", "fails": summary}[status]
        slack = escape(powers_for_people(finding.slack)) + (f"\n[{style}]{escape(note)}[/]" if note else "")
        tag = f"[dim]{escape(f'[{entry.claim.provenance}]')}[/]"
        table.add_row(escape(entry.claim.name), tag, f"[{style}]{word}[/]", slack)
    out.print(table)
    out.print(ledger.summary, style=STYLES["holds" if ledger.holds else "fails"][0])
    print_lines(["[paper] stated in the paper's summary · [rec] reconstructed · [ours] this project's"], "dim")


def _print_entry(entry: Entry) -> None:
    """Print the statement, its status, and the points that were tried, those that fail first."""
    out, claim, finding = console(), entry.claim, entry.finding
    status = finding.status.value
    out.print(f"[bold]{escape(claim.name)}[/], section {claim.place} of docs/theory.md")
    out.print(f"[{claim.provenance}] {TAGS[claim.provenance]}", style="dim", markup=False)
    out.print(claim.statement, markup=False)
    condition = f" {escape(finding.where)}" if finding.where else ""
    out.print(f"[{STYLES[status][0]}]{status}[/]{condition}")
    holding = sum(point.holds for point in finding.points)
    extent = f"holds at {holding} of {len(finding.points)} points tried, in {entry.seconds:.1f} s"
    slack = f"slack: {powers_for_people(finding.slack)}"
    print_lines([powers_for_people(finding.summary), slack, extent, f"evidence: {claim.evidence}"])
    # One table needs the same columns in every row, so points with other names get a table of their own.
    for points in group_pairs(((*point.parameters, *point.measured), point) for point in finding.points).values():
        _print_points(out, sorted(points, key=lambda point: point.holds))


def _print_points(out: Console, points: Sequence[Point]) -> None:
    """Print the parameters that all points share, and a table of the others."""
    common = {
        name: value
        for name, value in points[0].parameters.items()
        if len(points) > 1 and all(point.parameters[name] == value for point in points)
    }
    if common:
        out.print(f"at {' '.join(f'{name}={value}' for name, value in common.items())}", markup=False)
    rows = []
    for point in points[:MAX_POINTS]:
        varied = {name: str(value) for name, value in point.parameters.items() if name not in common}
        rows.append({"": "" if point.holds else "FAILS", **varied, **_measurements(point)})
    if all(point.holds for point in points):
        rows = [{name: cell for name, cell in row.items() if name} for row in rows]
    out.print(new_table(*escape_all(rows[0]), rows=(escape_all(row.values()) for row in rows)))
    if len(points) > MAX_POINTS:
        out.print(f"and {len(points) - MAX_POINTS} more points; --json has them all", markup=False)


def _measurements(point: Point) -> dict[str, str]:
    """Return the measurements with readable names and numbers."""
    values = point.measured.items()
    texts = {name: for_people(value, 4) if isinstance(value, float) else str(value) for name, value in values}
    return {name.replace("_", " ").replace("distinguish", "P(tells apart)"): text for name, text in texts.items()}
