"""Tables for a terminal in which no number is ever cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

KEPT_WORDS = (14, 12, 10, 8, 0)
"""Words of up to so many characters are not broken; where there is no room, only shorter ones."""


class NumberTable(Table):
    """A table without lines that breaks cells between words, and never within a word that has a digit.

    Rich shortens all wide columns alike, and crops what is still too wide: 4706 became 47. Here the widest
    columns are narrowed down to their longest word with a digit. A table that is too wide even so is shown
    row by row, with a line for each cell.
    """

    def __init__(self, *titles: str, gap: int = 2, pad_edge: bool = True) -> None:
        padding = (0, gap, 0, 0)
        super().__init__(*titles, box=None, padding=padding, show_header=bool(titles), pad_edge=pad_edge)
        self._gap = gap

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render the table, or its rows one below the other."""
        cells = [[_text(console, cell) for cell in self._cells(column)] for column in self.columns]
        between = self._gap * (len(cells) if self.pad_edge else max(0, len(cells) - 1))
        widths = _fitted_widths(cells, self.columns, options.max_width - between)
        if widths is None:
            yield from self._stacked(cells)
            return
        with _set_widths(self.columns, widths):
            yield from super().__rich_console__(console, options)

    def _cells(self, column: Column) -> list[RenderableType]:
        return [*([column.header] if self.show_header else []), *column.cells]

    def _stacked(self, cells: Sequence[Sequence[RenderableType]]) -> Iterator[RenderableType]:
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
    """Give columns fixed widths for the time of one rendering."""
    before = [(column.width, column.overflow) for column in columns]
    for column, width in zip(columns, widths, strict=True):
        column.width, column.overflow = width, "fold"
    try:
        yield
    finally:
        for column, (own_width, overflow) in zip(columns, before, strict=True):
            column.width, column.overflow = own_width, overflow


def _fitted_widths(
    cells: Sequence[Sequence[RenderableType]], columns: Sequence[Column], room: int
) -> list[int] | None:
    """Return a width for each column so that all fit into the room; None where numbers would be cut."""
    natural = [max((_width(cell) for cell in column), default=0) for column in cells]
    for limit in KEPT_WORDS:
        least = [
            width if column.no_wrap else max((_unbroken(cell, limit) for cell in own), default=0)
            for width, column, own in zip(natural, columns, cells, strict=True)
        ]
        widths = list(natural)
        while sum(widths) > room:
            narrowed = [i for i, width in enumerate(widths) if width > max(1, least[i])]
            if not narrowed:
                break
            widths[max(narrowed, key=lambda i: widths[i])] -= 1
        if sum(widths) <= room:
            return widths
    return None


def _width(cell: RenderableType) -> int:
    """The width of the longest line of a cell."""
    if isinstance(cell, Text):
        return max(map(cell_len, cell.plain.splitlines()), default=0)
    return Measurement.get(Console(), Console().options, cell).maximum


def _unbroken(cell: RenderableType, limit: int) -> int:
    """The width of the longest word that stays whole: one with a digit, or of at most `limit` characters."""
    if not isinstance(cell, Text):
        return _width(cell)
    words = cell.plain.split()
    kept = [word for word in words if len(word) <= limit or any(map(str.isdecimal, word))]
    return max(map(cell_len, kept), default=0)
