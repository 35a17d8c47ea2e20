"""Results of the public functions: a summary, JSON, a table for frames and notebooks, a picture, files.

A class of results is a document (`core.documents`) with a `summary`. Drawings are registered by `pages`,
which is above the packages that compute.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from separatrix.core.documents import Document, json_schema
from separatrix.core.numbers.printable import visible
from separatrix.core.numbers.spelling import for_people
from separatrix.core.rendering import renderer

if TYPE_CHECKING:
    import polars as pl

LONGEST = 180
"""Characters of a summary that a repr shows."""
MOST_ROWS, MOST_COLUMNS = 12, 12
"""Of a table in a notebook."""
STYLE = "text-align:left;padding:2px 10px 2px 0;vertical-align:top"

Row = dict[str, Any]


class Result(Document):
    """The return value of a public function."""

    kind: ClassVar[str]
    """What it is a result of: the name of its drawing and of its JSON schema."""
    columns: ClassVar[tuple[str, ...]] = ()
    """Of a table that may have no rows."""

    @property
    def summary(self) -> str:
        """The result in one line."""
        raise NotImplementedError

    @classmethod
    def document_type(cls) -> Any:
        """Return the type of the JSON document: this class, or a list of others."""
        return cls

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """Return the JSON Schema of `as_json`, as `separatrix schema` prints it."""
        return json_schema(cls.document_type(), cls.kind)

    def rows(self) -> list[Row]:
        """The result as a table, a dictionary for each row."""
        raise NotImplementedError

    def __repr__(self) -> str:
        said = visible(self.summary)
        return f"<{type(self).__name__}: {said if len(said) <= LONGEST else said[: LONGEST - 1] + '…'}>"

    def _repr_html_(self) -> str:
        """A small table for a notebook; it fetches nothing."""
        return "".join(_html(self.summary, self.notebook_rows(), self.remarks))

    @property
    def remarks(self) -> tuple[str, ...]:
        """What has to be known to read it, a sentence each."""
        return ()

    def notebook_rows(self) -> list[Row]:
        """The rows that a notebook shows the first of."""
        return self.rows()

    def to_frame(self) -> pl.DataFrame:
        """The rows as a polars frame."""
        import polars as pl

        rows = self.rows()
        if not rows:
            return pl.DataFrame(schema=list(self.columns))
        names = dict.fromkeys(name for row in rows for name in row)
        return pl.DataFrame({name: _column([row.get(name) for row in rows]) for name in names}, strict=False)

    def plot(self, ax: Any = None) -> Any:
        """Draw it on matplotlib axes, or on new ones, and return them; pyplot and its state are not touched.

        `plot().figure` is the new figure.
        """
        return renderer().plot(self, ax)

    def save(self, path: str | Path) -> Path:
        """Write it whole or not at all, in the form the ending names.

        That is .json, .csv, .parquet, .png, .svg or .pdf; some have more, as maps .html and .npz.
        """
        out = Path(path)
        renderer().write(self, out)
        return out


def _column(values: list[Any]) -> list[Any]:
    """Values of one kind: integers beyond 64 bits, and numbers among words, become text."""
    large = any(isinstance(value, int) and abs(value) >= 1 << 63 for value in values)
    mixed = any(isinstance(value, str) for value in values)
    return [str(value) if value is not None and (large or mixed) else value for value in values]


def _html(summary: str, rows: list[Row], remarks: tuple[str, ...]) -> Iterator[str]:
    yield f"<div><p>{_text(summary)}</p>"
    yield from (f"<p>{_text(remark)}</p>" for remark in remarks)
    if rows:
        yield from _table(rows)
    if len(rows) > MOST_ROWS:
        yield f"<p>{MOST_ROWS} of {len(rows):,} rows; to_frame() has all</p>"
    yield "</div>"


def _table(rows: list[Row]) -> Iterator[str]:
    yield "<table><tbody>"
    if len(rows) == 1:
        for name, value in rows[0].items():
            yield f"<tr><th style={STYLE!r}>{_text(name)}</th><td style={STYLE!r}>{_cell(value)}</td></tr>"
    else:
        names = list(rows[0])[:MOST_COLUMNS]
        yield f"<tr>{''.join(f'<th style={STYLE!r}>{_text(name)}</th>' for name in names)}</tr>"
        for row in rows[:MOST_ROWS]:
            yield f"<tr>{''.join(f'<td style={STYLE!r}>{_cell(row.get(name))}</td>' for name in names)}</tr>"
    yield "</tbody></table>"


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return _text(for_people(value) if isinstance(value, float) else str(value))


def _text(text: str) -> str:
    shown = visible(text)
    return escape(shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 1]}…")
