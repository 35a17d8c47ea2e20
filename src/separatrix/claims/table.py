"""The ledger as a table for a terminal of 80 columns."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from separatrix.claims._base import ClaimStatus, Entry, Ledger
from separatrix.core.numbers.spelling import powers_for_people

COLOURS = {ClaimStatus.HOLDS: "green", ClaimStatus.ONLY_WHERE: "yellow", ClaimStatus.FAILS: "bold red"}
WORDS = {ClaimStatus.HOLDS: "holds", ClaimStatus.ONLY_WHERE: "only where", ClaimStatus.FAILS: "FAILS"}


def show(ledger: Ledger, console: Console) -> None:
    """One row a claim: name, provenance, status, slack; below it what must be known beyond that."""
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="bold")
    table.add_column("claim", no_wrap=True)
    table.add_column("tag", no_wrap=True)
    table.add_column("status", no_wrap=True)
    table.add_column("slack", overflow="fold")
    for entry in ledger.entries:
        status = entry.finding.status
        table.add_row(
            entry.claim.name,
            Text(f"[{entry.claim.provenance}]", style="dim"),
            Text(WORDS[status], style=COLOURS[status]),
            _slack(entry),
        )
    console.print(table)
    console.print(tally(ledger))


def _slack(entry: Entry) -> Text:
    """The slack; for a claim that needs a condition, the condition; for one that fails, how."""
    finding = entry.finding
    text = Text(powers_for_people(finding.slack))
    if finding.status is ClaimStatus.ONLY_WHERE:
        text.append(f"\nonly where {finding.where}", style=COLOURS[finding.status])
    if finding.status is ClaimStatus.FAILS:
        text.append(f"\n{powers_for_people(finding.summary)}", style=COLOURS[finding.status])
    return text


def tally(ledger: Ledger) -> Text:
    """How many claims hold, hold with a condition, and fail; and what the tags mean."""
    failed = any(entry.finding.status is ClaimStatus.FAILS for entry in ledger.entries)
    text = Text(ledger.summary, style=COLOURS[ClaimStatus.FAILS if failed else ClaimStatus.HOLDS])
    text.append(
        "\n[paper] stated in the paper's summary · [rec] reconstructed · [ours] this project's", style="dim"
    )
    return text
