"""Console, tables, colours and JSON output shared by all commands; rich is imported on first use."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from typer import Exit

from separatrix.cli.streams import answer_stream
from separatrix.core.numbers.json import json_text
from separatrix.core.numbers.printable import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from separatrix.sweeps.store import Damage

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

    terminal = Console(highlight=False, markup=True, emoji=False)
    terminal.width = min(terminal.width, 100)
    return terminal


def new_table(*titles: str, gap: int = 2, pad_edge: bool = True) -> Table:
    """Return a table without borders and with `gap` blanks between columns; it never truncates a number."""
    from separatrix.cli.tables import NumberTable

    return NumberTable(*titles, gap=gap, pad_edge=pad_edge)


def escape(text: str) -> str:
    """Escape the markup in a text."""
    from rich.markup import escape as escaped

    return escaped(text)


def plain(text: str) -> str:
    """Escape markup and control characters in a text of unknown origin."""
    return escape(visible(text))


def print_json(value: Any) -> None:
    """Print one JSON document to standard output."""
    print(json_text(value), file=answer_stream())


class JsonResult(Protocol):
    """A result that can be printed as JSON."""

    def as_json(self) -> Any:
        """Return the document printed with --json."""


def show(result: JsonResult, as_json: bool, view: Callable[[], None]) -> None:
    """Print a result, as JSON or with `view`."""
    if as_json:
        print_json(result.as_json())
    else:
        view()


def counted_cells(cells: int) -> str:
    """Format a number of cells."""
    return "1 cell" if cells == 1 else f"{cells:,} cells"


def warn_of(damage: Damage | None) -> None:
    """Warn on stderr about damaged rows that were left out and exit with code 1; do nothing without any."""
    if damage:
        print(f"separatrix: warning: {damage.warning}", file=sys.stderr)
        raise Exit(1)
