"""`learn --published`: published numbers of trained models, measured here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from separatrix.cli.learn import notify_unless, run_progress
from separatrix.cli.progress import announced
from separatrix.cli.terminal import console, escape, new_table, print_lines, show

if TYPE_CHECKING:
    from separatrix.analysis.evidence.published import ReproducedNumber, ReproductionLedger

VERDICT_COLOURS = {"agrees": "green", "differs": "red", "other setting": "yellow", "not computed": "dim"}
MAX_DETAILED_ENTRIES = 3
"""Entries that are shown with all details."""


def reproduce_published(
    words: Sequence[str], run_options: Mapping[str, Any], out: Path | None, as_json: bool, options: set[str]
) -> None:
    """Measure the published numbers that are named among the words, and print them beside ours."""
    from separatrix.analysis.evidence.reproductions import measure_published
    from separatrix.core.parameters import read_words
    from separatrix.pages.learned import page
    from separatrix.pages.learned.published import published_section, published_table

    names = [name for word in words if "=" not in word for name in word.split(",") if name]
    parameters = read_words([word for word in words if "=" in word], options=options)
    with announced("learn", _describe_cost(names), as_json), run_progress(as_json) as reporters:
        ledger = measure_published(names, parameters, **run_options, **reporters, say=notify_unless(as_json))
    if out is not None:
        command = " ".join(("separatrix learn --published", *words))
        sections = [published_section(ledger)]
        text = partial(published_table, ledger)
        page.write("Published numbers, measured here", (), command, out, ledger.as_json(), sections, text)
    show(ledger, as_json, lambda: _view(ledger))


def _describe_cost(names: Sequence[str]) -> str:
    """Return the number of entries and their time."""
    from separatrix.analysis.evidence.published import published_named

    entries = published_named(list(names))
    # Entries that name the same command share its runs, which are computed once.
    seconds = {entry.learn: entry.cpu_seconds for entry in entries if entry.learn}
    count = "1 published number" if len(entries) == 1 else f"{len(entries)} published numbers"
    return f"{count}, about {sum(seconds.values()):,} CPU seconds; stored runs take none"


def _view(ledger: ReproductionLedger) -> None:
    """Print one row for each entry, and the details of a few entries or a summary of many."""
    from separatrix.analysis.evidence.published import RULE
    from separatrix.pages.learned.published import interval_text, number_text

    table = new_table("entry", "published", "ours", "verdict")
    for entry in ledger.entries:
        word, colour = entry.verdict.value, VERDICT_COLOURS[entry.verdict.value]
        cells = entry.name, number_text(entry.published), interval_text(entry)
        table.add_row(*map(escape, cells), f"[{colour}]{word}[/]")
    console().print(table)
    if len(ledger.entries) <= MAX_DETAILED_ENTRIES:
        for entry in ledger.entries:
            _print_details(entry)
        return
    counts = ", ".join(f"{count} {word}" for word, count in ledger.counts.items() if count)
    console().print(f"{len(ledger.entries)} published numbers: {counts}.")
    hint = "settings and what differs: separatrix learn --published NAME, or list published"
    print_lines([RULE, hint], "dim")


def _print_details(entry: ReproducedNumber) -> None:
    """Print the statement, its source, the verdict and the setting of one entry."""
    out = console()
    out.print(f"[bold]{escape(entry.name)}[/]  {escape(entry.states)} [dim]({escape(entry.source)})[/]")
    out.print(f"  {entry.verdict.value}: {escape(entry.why)}")
    if entry.differs_in and entry.differs_in not in entry.why:
        out.print(f"  ours: {escape(entry.differs_in)}", style="dim")
    if entry.measured_by is not None:
        out.print(f"  measured by {escape(entry.measured_by)}", style="dim")
