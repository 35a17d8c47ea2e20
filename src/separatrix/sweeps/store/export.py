"""Stored cells as files: CSV, Parquet, or JSON of the shape that `verdict --json` has."""

from __future__ import annotations

import json
import math
import re
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

from separatrix.constructions import CONSTRUCTIONS
from separatrix.core.numbers.json import json_text
from separatrix.core.numbers.printable import SUSPECT, no_formula, visible
from separatrix.core.parameters import Parameters, UsageError
from separatrix.core.parameters.grid import is_whole
from separatrix.sweeps.store.schema import VERDICT
from separatrix.sweeps.store.selection import Selection

if TYPE_CHECKING:
    import polars as pl

STEERING = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]")
"""What JSON leaves as it is, and a terminal may obey."""
ROW_GROUP = 20_000
"""Rows of a Parquet file that are written at once."""
ENDINGS = (".csv", ".json", ".parquet")
NUMBERS = ("fire_d0", "fire_d1", "distinguish")
REST = (
    "margin",
    "bits",
    "delta",
    "verdict",
    "status",
    "message",
    "asked",
    "draws",
    "seed",
    "confidence",
    "dtype",
    "until_decided",
)


def as_rows(frame: pl.DataFrame, kind: str = VERDICT) -> Iterator[dict[str, Any]]:
    """One object for each cell, with exact parameters."""
    for row in frame.iter_rows(named=True):
        if kind != VERDICT:
            documents = {name: json.loads(row[name] or "null") for name in ("parameters", "versions")}
            yield {"kind": kind, **{name: _finite(value) for name, value in row.items()}, **documents}
            continue
        yield {
            **({"part": row["part"]} if "part" in row else {}),
            "construction": row["construction"],
            "mechanism": row["mechanism"],
            "parameters": _parameters(row["construction"], json.loads(row["parameters"])),
            "engine": row["engine"],
            "evidence": row["evidence"],
            "neuron": {name: _neuron(row[name]) for name in ("p0", "p1", "q")},
            **{name: _finite(row[name]) for name in NUMBERS},
            "interval": None if row["low"] is None else [_finite(row["low"]), _finite(row["high"])],
            **{name: _finite(row[name]) for name in REST},
            **{name: row[name] for name in ("seconds", "finished", "host", "code", "id")},
            "versions": None if row["versions"] is None else json.loads(row["versions"]),
        }


def write(found: Selection, ending: str, file: BinaryIO) -> None:
    """Write the cells one chunk after the other: the whole of a CSV, JSON or Parquet file."""
    {".csv": _write_csv, ".json": _write_json, ".parquet": _write_parquet}[ending](found, file)


def _write_csv(found: Selection, file: BinaryIO) -> None:
    import polars as pl

    for place, chunk in enumerate(found.frames()):
        safe = chunk.rename({name: _harmless(name) for name in chunk.columns})
        texts = [name for name, kind in safe.schema.items() if kind == pl.String]
        safe = safe.with_columns(_harmless_column(safe[name]) for name in texts)
        file.write(safe.write_csv(include_header=place == 0).encode())


def _harmless_column(column: pl.Series) -> pl.Series:
    """Texts that neither a spreadsheet nor a terminal takes for anything else."""
    if not column.str.contains(SUSPECT).any():
        return column
    texts = [None if text is None else _harmless(text) for text in column]
    return type(column)(column.name, texts, dtype=column.dtype)


def _harmless(text: str) -> str:
    return no_formula(visible(text))


def _write_json(found: Selection, file: BinaryIO) -> None:
    mark = b"[\n"
    for chunk in found.frames():
        for row in as_rows(chunk, found.kind):
            text = json_text(row)
            file.write(mark + textwrap.indent(STEERING.sub(_escaped, text), "  ").encode())
            mark = b",\n"
    file.write(b"[]\n" if mark == b"[\n" else b"\n]\n")


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def _write_parquet(found: Selection, file: BinaryIO) -> None:
    from polars.io.plugins import register_io_source

    def chunks(*_: object) -> Iterator[pl.DataFrame]:
        yield from found.frames()

    register_io_source(chunks, schema=found.schema).sink_parquet(file, row_group_size=ROW_GROUP)


def _parameters(construction: str, exact: Any) -> Any:
    """As `verdict --json` prints them: whole parameters as integers, the others as exact text."""
    kind = CONSTRUCTIONS.get(construction)
    if kind is None or not isinstance(exact, dict):
        return exact
    return {name: _whole(kind.schema, name, value) for name, value in exact.items()}


def _whole(schema: type[Parameters], name: str, value: Any) -> Any:
    try:
        return int(value) if is_whole(schema, name) else value
    except (KeyError, TypeError, UsageError, ValueError):
        return value


def _neuron(text: str | None) -> str | float | None:
    """A float where it is one; fractions stay text."""
    if text is None or "/" in text or text.isdigit():
        return text
    value = float(text)
    return value if math.isfinite(value) else None


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
