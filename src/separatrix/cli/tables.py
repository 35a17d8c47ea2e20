"""Tables for a terminal that never truncate a number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

UNBROKEN_LENGTHS = (14, 12, 10, 8, 0)
"""Maximal lengths of words that are not broken. The first limit with which the table fits is used."""


class NumberTable(Table):
    """A table of texts without lines that breaks cells between words, and never within a word that has a digit.

    Rich shrinks all wide columns equally and crops cells that are still too wide, so that 4706 becomes 47.
    This class narrows the widest columns first, down to their longest word with a digit. If the table is
    still too wide, it prints each row as a paragraph.
    """

    def __init__(self, *titles: str, gap: int = 2) -> None:
        super().__init__(*titles, box=None, padding=(0, gap, 0, 0), show_header=bool(titles), pad_edge=False)
        self._gap = gap

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render the table, or one paragraph per row if it is too wide."""
        headers = [[column.header] if self.show_header else [] for column in self.columns]
        columns = [(*header, *column.cells) for header, column in zip(headers, self.columns, strict=True)]
        cells = [[console.render_str(str(cell)) for cell in column] for column in columns]
        widths = _fit_widths(cells, options.max_width - self._gap * max(0, len(cells) - 1))
        if widths is None:
            yield from self._render_paragraphs(cells)
            return
        for column, width in zip(self.columns, widths, strict=True):
            column.width, column.overflow = width, "fold"
        yield from super().__rich_console__(console, options)

    def _render_paragraphs(self, cells: Sequence[Sequence[Text]]) -> Iterator[Text]:
        rows = list(zip(*cells, strict=True))
        titles = rows.pop(0) if self.show_header else (Text(),) * len(cells)
        for number, row in enumerate(rows):
            if number:
                yield Text()
            parts = [Text.assemble(title, ": " if title else "", cell) for title, cell in zip(titles, row, strict=True)]
            yield Text("  ", overflow="fold").join(parts)


def _fit_widths(cells: Sequence[Sequence[Text]], room: int) -> list[int] | None:
    """Return column widths that fit into `room`, or None if a number would have to be cut."""
    lines = [[line for cell in column for line in cell.plain.splitlines()] for column in cells]
    natural = [max(map(cell_len, column_lines), default=0) for column_lines in lines]
    for limit in UNBROKEN_LENGTHS:
        minimum = [max((_unbreakable_width(cell, limit) for cell in column), default=0) for column in cells]
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


def _unbreakable_width(cell: Text, limit: int) -> int:
    """Return the width of the longest word that must not be broken.

    These are words with a digit and words of at most `limit` characters.
    """
    words = cell.plain.split()
    unbreakable = [word for word in words if len(word) <= limit or any(map(str.isdecimal, word))]
    return max(map(cell_len, unbreakable), default=0)
