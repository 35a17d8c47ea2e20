"""Results of the public functions: a summary, JSON, a table for frames and notebooks, a picture, files.

A class of results is a document (`core.documents`) with a `summary`. Drawings are registered by `pages`,
which is above the packages that compute.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any, ClassVar

from separatrix.core.documents import Document, json_schema, to_json
from separatrix.core.lazy import pl
from separatrix.core.numbers.printable import visible
from separatrix.core.numbers.spelling import for_people
from separatrix.core.rendering import renderer

MAX_TEXT = 180
"""The maximum number of characters of a summary in a repr, and of a cell in a notebook."""
MAX_ROWS, MAX_COLUMNS = 12, 12
"""The maximum size of a table in a notebook."""
STYLE = "text-align:left;padding:2px 10px 2px 0;vertical-align:top"

Row = dict[str, Any]


class Result(Document):
    """The return value of a public function."""

    kind: ClassVar[str]
    """The name of its drawing and of its JSON schema."""
    columns: ClassVar[tuple[str, ...]] = ()
    """The columns of a table that may have no rows."""
    items: ClassVar[tuple[str, Any] | None] = None
    """For a result whose JSON is a list: the attribute with the items, and their type."""

    @property
    def summary(self) -> str:
        """The result in one line."""
        raise NotImplementedError

    @classmethod
    def document_type(cls) -> Any:
        """Return the type of the JSON document: this class, or a list of others."""
        return cls if cls.items is None else list[cls.items[1]]  # type: ignore[name-defined]

    def as_json(self) -> Any:
        """Return the JSON value that the command prints with --json."""
        return to_json(self if self.items is None else getattr(self, self.items[0]))

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """Return the JSON Schema of `as_json`, as `separatrix schema` prints it."""
        return json_schema(cls.document_type(), cls.kind)

    def rows(self) -> list[Row]:
        """Return the result as a table, a dictionary for each row."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {_truncate(self.summary)}>"

    def _repr_html_(self) -> str:
        """Return a small table for a notebook; it loads nothing from the network."""
        return "".join(_html(self.summary, self.notebook_rows(), self.remarks))

    @property
    def remarks(self) -> tuple[str, ...]:
        """Sentences needed to read the result."""
        return ()

    def notebook_rows(self) -> list[Row]:
        """Return the rows of which a notebook shows the first."""
        return self.rows()

    def to_frame(self) -> pl.DataFrame:
        """Return the rows as a polars frame."""
        rows = self.rows()
        if not rows:
            return pl.DataFrame(schema=list(self.columns))
        names = dict.fromkeys(name for row in rows for name in row)
        return pl.DataFrame({name: _column([row.get(name) for row in rows]) for name in names}, strict=False)

    def plot(self, ax: Any = None) -> Any:
        """Draw the result on matplotlib axes, or on new ones, and return them, without touching pyplot.

        `plot().figure` is the new figure.
        """
        return renderer().plot(self, ax)

    def save(self, path: str | Path) -> Path:
        """Write the result atomically, in the format of the file's ending.

        These are .json, .csv, .parquet, .png, .svg and .pdf; some results have more, as maps .html and .npz.
        """
        out = Path(path)
        renderer().write(self, out)
        return out


def _column(values: list[Any]) -> list[Any]:
    """Return values of one type: integers beyond 64 bits, and numbers among words, become text."""
    large = any(isinstance(value, int) and abs(value) >= 1 << 63 for value in values)
    has_words = any(isinstance(value, str) for value in values)
    return [str(value) if value is not None and (large or has_words) else value for value in values]


def _html(summary: str, rows: list[Row], remarks: tuple[str, ...]) -> Iterator[str]:
    yield f"<div><p>{_text(summary)}</p>"
    yield from (f"<p>{_text(remark)}</p>" for remark in remarks)
    if rows:
        yield from _table(rows)
    if len(rows) > MAX_ROWS:
        yield f"<p>{MAX_ROWS} of {len(rows):,} rows; to_frame() has all</p>"
    yield "</div>"


def _table(rows: list[Row]) -> Iterator[str]:
    yield "<table><tbody>"
    if len(rows) == 1:
        for name, value in rows[0].items():
            yield f"<tr><th style={STYLE!r}>{_text(name)}</th><td style={STYLE!r}>{_cell(value)}</td></tr>"
    else:
        names = list(rows[0])[:MAX_COLUMNS]
        yield f"<tr>{''.join(f'<th style={STYLE!r}>{_text(name)}</th>' for name in names)}</tr>"
        for row in rows[:MAX_ROWS]:
            yield f"<tr>{''.join(f'<td style={STYLE!r}>{_cell(row.get(name))}</td>' for name in names)}</tr>"
    yield "</tbody></table>"


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return _text(for_people(value) if isinstance(value, float) else str(value))


def _text(text: str) -> str:
    return escape(_truncate(text))


def _truncate(text: str) -> str:
    text = visible(text)
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"
