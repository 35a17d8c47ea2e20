"""Published numbers beside ours, as a section of a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from separatrix.pages import pages
from separatrix.pages.learned.table import table_line

if TYPE_CHECKING:
    from separatrix.analysis.evidence.published import ReproducedNumber, ReproductionLedger

HEAD = ("entry", "published", "ours", "verdict", "what is stated, and where", "why")


def section(found: ReproductionLedger) -> pages.Section:
    """The table, the rule of its verdicts, and the command that measures each entry by itself."""
    from separatrix.analysis.evidence.published import RULE

    rows = [
        (
            entry.name,
            number(entry.published),
            interval(entry),
            entry.verdict.value,
            f"{entry.states} ({entry.source})",
            entry.why,
        )
        for entry in found.entries
    ]
    commands = [
        (
            entry.command,
            f"about {entry.cpu_seconds:,} CPU seconds where the store has none of it",
        )
        for entry in found.entries
        if entry.command is not None
    ]
    return pages.section(
        "published",
        "The ledger",
        "learned_published.html.j2",
        head=HEAD,
        rows=rows,
        rule=RULE,
        counts=found.counts,
        commands=commands,
    )


def markdown(found: ReproductionLedger) -> str:
    """The ledger as a table in Markdown, with how many numbers have which verdict."""
    head = ("entry", "what is stated, and where", "published", "ours", "verdict")
    rows = [
        (
            f"`{entry.name}`",
            f"{entry.states} ({entry.source})",
            number(entry.published),
            interval(entry),
            entry.verdict.value,
        )
        for entry in found.entries
    ]
    lines = [table_line(head), table_line("---" for _ in head), *map(table_line, rows)]
    return "\n".join([*lines, "", f"{found.summary}.", ""])


def number(value: float | None) -> str:
    """A published number, or a dash where none is stated."""
    return "–" if value is None else f"{value:.4g}"


def interval(entry: ReproducedNumber) -> str:
    """Our value with its interval; what is exact has none."""
    if entry.ours is None:
        return "–"
    if entry.interval is None:
        return f"{entry.ours:.4g}"
    low, high = entry.interval
    return f"{entry.ours:.4f} [{low:.4f}, {high:.4f}]"
