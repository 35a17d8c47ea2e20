"""What views share: a console, tables, colours, JSON; rich is loaded by the first that is used."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from typer import Exit

from separatrix.cli.streams import answer_to
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
    """Standard output, never wider than 100 columns, with no colours or emoji of its own."""
    from rich.console import Console

    made = Console(highlight=False, markup=True, emoji=False)
    made.width = min(made.width, 100)
    return made


def new_table(*titles: str, gap: int = 2, pad_edge: bool = True) -> Table:
    """Make a table without lines and with `gap` blanks between its columns; no number in it is ever cut."""
    from separatrix.cli.tables import NumberTable

    return NumberTable(*titles, gap=gap, pad_edge=pad_edge)


def escape(text: str) -> str:
    """A text in which nothing is markup."""
    from rich.markup import escape as escaped

    return escaped(text)


def plain(text: str) -> str:
    """A text from elsewhere as it stands: nothing in it is markup, and nothing steers the terminal."""
    return escape(visible(text))


def print_json(value: Any) -> None:
    """One JSON document."""
    print(json_text(value), file=answer_to())


class Shown(Protocol):
    """What a command found."""

    def as_json(self) -> Any:
        """What it prints with --json."""


def show(found: Shown, as_json: bool, view: Callable[[], None]) -> None:
    """Print an answer, as JSON or by its view."""
    if as_json:
        print_json(found.as_json())
    else:
        view()


def counted_cells(cells: int) -> str:
    """The number of cells in words."""
    return "1 cell" if cells == 1 else f"{cells:,} cells"


def warn_of(damage: Damage) -> None:
    """Say on stderr what of a store was left out, and end with exit code 1; nothing where all is well."""
    if damage:
        print(f"separatrix: warning: {damage.warning}", file=sys.stderr)
        raise Exit(1)
