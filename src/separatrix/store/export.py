"""Stored cells as files: CSV, Parquet, or JSON of the shape that `verdict --json` has."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from separatrix.constructions import CONSTRUCTIONS
from separatrix.parameters import Parameters, UsageError
from separatrix.parameters.documents import json_text
from separatrix.parameters.grid import is_whole

if TYPE_CHECKING:
    import polars as pl

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


def as_rows(frame: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """One object for each cell, with exact parameters."""
    for row in frame.iter_rows(named=True):
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
            "versions": json.loads(row["versions"]),
        }


def written(frame: pl.DataFrame, ending: str) -> bytes:
    """The whole file."""
    if ending == ".json":
        rows = list(as_rows(frame))
        return (json_text(rows) + "\n").encode()
    out = io.BytesIO()
    frame.write_parquet(out) if ending == ".parquet" else frame.write_csv(out)
    return out.getvalue()


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
