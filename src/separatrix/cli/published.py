"""`learn --published`: published numbers of trained models, measured here."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from separatrix.cli.progress import announced
from separatrix.cli.sweep import progress
from separatrix.cli.terminal import console, escape, new_table, show

if TYPE_CHECKING:
    from separatrix.analysis.evidence.published import ReproducedNumber, ReproductionLedger

COLOURS = {"agrees": "green", "differs": "red", "other setting": "yellow", "not computed": "dim"}
FEW = 3
"""So many entries are told in full."""


def published(
    words: Sequence[str], how: Mapping[str, Any], out: Path | None, as_json: bool, options: set[str]
) -> None:
    """Measure published numbers, by the names among the words, and print them beside ours."""
    from separatrix.analysis.evidence.reproductions import measure_published
    from separatrix.core.parameters import read_words
    from separatrix.pages.learned import page
    from separatrix.pages.learned.published import published_section, published_table

    names = [name for word in words if "=" not in word for name in word.split(",") if name]
    given = read_words([word for word in words if "=" in word], options=options)

    def say(told: str) -> None:
        if not as_json:
            print(f"separatrix: {told}", file=sys.stderr, flush=True)

    with announced("learn", _cost(names), as_json), progress(as_json, "runs") as bar:
        found = measure_published(names, given, **how, tell=bar.tell, hear=bar.hear, say=say)
    if out is not None:
        command = " ".join(("separatrix learn --published", *words))
        sections = [published_section(found)]
        text = partial(published_table, found)
        page.write("Published numbers, measured here", (), command, out, found.as_json(), sections, text)
    show(found, as_json, lambda: _view(found))


def _cost(names: Sequence[str]) -> str:
    """What is done, and what it takes."""
    from separatrix.analysis.evidence.published import published_named

    entries = published_named(list(names))
    each = {entry.learn: entry.seconds for entry in entries if entry.learn}
    count = "1 published number" if len(entries) == 1 else f"{len(entries)} published numbers"
    return f"{count}, about {sum(each.values()):,} CPU seconds; stored runs take none"


def _view(found: ReproductionLedger) -> None:
    """Print the ledger: a line for each, and of few all that is known."""
    from separatrix.analysis.evidence.published import RULE
    from separatrix.pages.learned.published import interval_text, number_text

    out = console()
    table = new_table("entry", "published", "ours", "verdict", pad_edge=False)
    for entry in found.entries:
        word, colour = entry.verdict.value, COLOURS[entry.verdict.value]
        cells = entry.name, number_text(entry.published), interval_text(entry)
        table.add_row(*map(escape, cells), f"[{colour}]{word}[/]")
    out.print(table)
    if len(found.entries) <= FEW:
        for entry in found.entries:
            _whole(entry)
        return
    counted = ", ".join(f"{count} {word}" for word, count in found.counts.items() if count)
    out.print(f"{len(found.entries)} published numbers: {counted}.")
    out.print(RULE, style="dim")
    out.print("settings and what differs: separatrix learn --published NAME, or list published", style="dim")


def _whole(entry: ReproducedNumber) -> None:
    """Print all that is known of one entry."""
    out = console()
    out.print(f"[bold]{escape(entry.name)}[/]  {escape(entry.states)} [dim]({escape(entry.source)})[/]")
    out.print(f"  {entry.verdict.value}: {escape(entry.why)}")
    if entry.differs_in and entry.differs_in not in entry.why:
        out.print(f"  ours: {escape(entry.differs_in)}", style="dim")
    if entry.measured_by is not None:
        out.print(f"  measured by {escape(entry.measured_by)}", style="dim")
