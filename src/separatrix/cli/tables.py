"""Tables for a terminal that never truncate a number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

UNBROKEN_LENGTHS = (14, 12, 10, 8, 0)
"""Maximal lengths of words that are not broken. The first limit with which the table fits is used."""


class NumberTable(Table):
    """A table without lines that breaks cells between words, and never within a word that has a digit.

    Rich shrinks all wide columns equally and crops cells that are still too wide, so that 4706 becomes 47.
    This class narrows the widest columns first, down to their longest word with a digit. If the table is
    still too wide, it prints each row as a block with one line per cell.
    """

    def __init__(self, *titles: str, gap: int = 2, pad_edge: bool = True) -> None:
        padding = (0, gap, 0, 0)
        super().__init__(*titles, box=None, padding=padding, show_header=bool(titles), pad_edge=pad_edge)
        self._gap = gap

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render the table, or one block per row if it is too wide."""
        cells = [[_text(console, cell) for cell in self._cells(column)] for column in self.columns]
        gaps = self._gap * (len(cells) if self.pad_edge else max(0, len(cells) - 1))
        widths = _fitted_widths(cells, self.columns, options.max_width - gaps)
        if widths is None:
            yield from self._render_blocks(cells)
            return
        with _set_widths(self.columns, widths):
            yield from super().__rich_console__(console, options)

    def _cells(self, column: Column) -> list[RenderableType]:
        return [*([column.header] if self.show_header else []), *column.cells]

    def _render_blocks(self, cells: Sequence[Sequence[RenderableType]]) -> Iterator[RenderableType]:
        for number, row in enumerate(zip(*cells, strict=True)):
            if number == 0 and self.show_header:
                continue
            if number > self.show_header:
                yield Text()
            titles = [column[0] for column in cells] if self.show_header else []
            for title, cell in zip_longest(titles, row):
                if isinstance(title, Text) and isinstance(cell, Text):
                    yield Text.assemble(title, ": " if title else "", cell, overflow="fold")
                else:
                    yield cell


def _text(console: Console, cell: RenderableType) -> RenderableType:
    return console.render_str(cell) if isinstance(cell, str) else cell


@contextmanager
def _set_widths(columns: Sequence[Column], widths: Sequence[int]) -> Iterator[None]:
    """Fix the widths of columns while the table is rendered."""
    before = [(column.width, column.overflow) for column in columns]
    for column, width in zip(columns, widths, strict=True):
        column.width, column.overflow = width, "fold"
    try:
        yield
    finally:
        for column, (own_width, overflow) in zip(columns, before, strict=True):
            column.width, column.overflow = own_width, overflow


def _fitted_widths(cells: Sequence[Sequence[RenderableType]], columns: Sequence[Column], room: int) -> list[int] | None:
    """Return column widths that fit into `room`, or None if a number would have to be cut."""
    natural = [max((_width(cell) for cell in column), default=0) for column in cells]
    for limit in UNBROKEN_LENGTHS:
        minimum = [
            width if column.no_wrap else max((_unbreakable_width(cell, limit) for cell in column_cells), default=0)
            for width, column, column_cells in zip(natural, columns, cells, strict=True)
        ]
        widths = list(natural)
        while sum(widths) > room:
            reducible = [i for i, width in enumerate(widths) if width > max(1, minimum[i])]
            if not reducible:
                break
            # Always the widest by one, so that wide columns end up equally wide.
            widths[max(reducible, key=lambda i: widths[i])] -= 1
        if sum(widths) <= room:
            return widths
    return None


def _width(cell: RenderableType) -> int:
    """Return the width of the longest line of a cell."""
    if isinstance(cell, Text):
        return max(map(cell_len, cell.plain.splitlines()), default=0)
    return Measurement.get(Console(), Console().options, cell).maximum


def _unbreakable_width(cell: RenderableType, limit: int) -> int:
    """Return the width of the longest word that must not be broken.

    These are words with a digit and words of at most `limit` characters.
    """
    if not isinstance(cell, Text):
        return _width(cell)
    words = cell.plain.split()
    unbreakable = [word for word in words if len(word) <= limit or any(map(str.isdecimal, word))]
    return max(map(cell_len, unbreakable), default=0)
