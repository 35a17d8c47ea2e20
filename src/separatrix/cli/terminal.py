"""Console, tables, colours and JSON output shared by all commands; rich is imported on first use."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer import Exit

from separatrix.cli.streams import answer_stream, notify
from separatrix.core.numbers.json import json_text
from separatrix.core.numbers.printable import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from separatrix.sweeps.store import Damage

WRITTEN = "certificate written; verify it with: separatrix check"
COLOURS = {
    "distinguishes": "green",
    "blind": "red",
    "saturated": "magenta",
    "partial": "yellow",
    "undecided": "yellow",
    "none": "dim",
}


def console() -> Console:
    """Return a console for standard output: at most 100 columns, no automatic highlighting, no emoji."""
    from rich.console import Console

    # Without emoji=False, rich would replace the :loop: in a user's mechanism mine:loop:n=2.
    terminal = Console(highlight=False, markup=True, emoji=False)
    terminal.width = min(terminal.width, 100)
    return terminal


def new_table(*titles: str, rows: Iterable[Iterable[str]] = (), gap: int = 2) -> Table:
    """Return a table without borders and with `gap` blanks between columns; it never truncates a number."""
    from separatrix.cli.tables import NumberTable

    table = NumberTable(*titles, gap=gap)
    for cells in rows:
        table.add_row(*cells)
    return table


def escape(text: str) -> str:
    """Escape the markup in a text."""
    from rich.markup import escape as escaped

    return escaped(text)


def escape_all(texts: Iterable[str]) -> list[str]:
    """Escape the markup in every text."""
    return [escape(text) for text in texts]


def plain(text: str) -> str:
    """Escape markup and control characters in a text of unknown origin."""
    return escape(visible(text))


def print_lines(lines: Iterable[str | None], style: str | None = None) -> None:
    """Print the texts that are not empty, one per line, without reading markup in them."""
    out = console()
    for line in filter(None, lines):
        out.print(line, style=style, markup=False)


def print_json(value: Any) -> None:
    """Print one JSON document to standard output."""
    print(json_text(value), file=answer_stream())


def show(result: Any, as_json: bool, view: Callable[[], None], out: Path | None = None) -> None:
    """Write a result to `out`, if that is given, and print it, as JSON or with `view`."""
    if out is not None:
        result.save(out)
    if as_json:
        print_json(result.as_json())
        return
    view()
    if out is not None:
        console().print(f"written: {escape(str(out))}")


def format_cell_count(cells: int) -> str:
    """Format a number of cells."""
    return "1 cell" if cells == 1 else f"{cells:,} cells"


def warn_of(damage: Damage | None) -> None:
    """Warn on stderr about damaged rows that were left out and exit with code 1; do nothing without any."""
    if damage:
        notify(f"warning: {damage.warning}")
        raise Exit(1)
