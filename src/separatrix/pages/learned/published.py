"""Published numbers beside ours, as a section of a page and as Markdown."""

from __future__ import annotations

from separatrix.analysis.evidence.published import RULE, ReproducedNumber, ReproductionLedger
from separatrix.pages.learned.markdown import table_line
from separatrix.pages.pages import Section, render_section

HEAD = ("entry", "published", "ours", "verdict", "statement and source", "reason")


def published_section(ledger: ReproductionLedger) -> Section:
    """Return the table, the rule of its verdicts, and the command that measures each entry."""
    commands = [
        (entry.command, f"about {entry.cpu_seconds:,} CPU seconds if nothing is stored")
        for entry in ledger.entries
        if entry.command is not None
    ]
    return render_section(
        "published",
        "The ledger",
        "learned_published.html.j2",
        head=HEAD,
        rows=_rows(ledger),
        rule=RULE,
        counts=ledger.counts,
        commands=commands,
    )


def _rows(ledger: ReproductionLedger) -> list[tuple[str, ...]]:
    """Return the entries under `HEAD`."""
    rows = list[tuple[str, ...]]()
    for entry in ledger.entries:
        numbers = number_text(entry.published), interval_text(entry), entry.verdict.value
        rows.append((entry.name, *numbers, f"{entry.states} ({entry.source})", entry.why))
    return rows


def published_table(ledger: ReproductionLedger) -> str:
    """Return the ledger as a table in Markdown, with the number of entries of each verdict."""
    head = ("entry", "statement and source", "published", "ours", "verdict")
    rows = [(f"`{name}`", statement, *numbers) for name, *numbers, statement, _ in _rows(ledger)]
    lines = [table_line(head), table_line("---" for _ in head), *map(table_line, rows)]
    return "\n".join([*lines, "", f"{ledger.summary}.", ""])


def number_text(value: float | None) -> str:
    """Return a published number, or a dash where none is stated."""
    return "–" if value is None else f"{value:.4g}"


def interval_text(entry: ReproducedNumber) -> str:
    """Return our value with its interval; exact values have none."""
    if entry.ours is None:
        return "–"
    if entry.interval is None:
        return f"{entry.ours:.4g}"
    low, high = entry.interval
    return f"{entry.ours:.4f} [{low:.4f}, {high:.4f}]"
