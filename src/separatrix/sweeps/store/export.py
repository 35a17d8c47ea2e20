"""Stored cells as files: CSV, Parquet, or JSON in the form of `verdict --json`."""

from __future__ import annotations

import json
import math
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, NotRequired

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

from separatrix.constructions import CONSTRUCTIONS
from separatrix.core.documents import Document
from separatrix.core.lazy import pl
from separatrix.core.numbers.json import finite, json_text
from separatrix.core.numbers.printable import SUSPECT, no_formula, visible
from separatrix.core.parameters import UsageError
from separatrix.core.parameters.grid import is_whole
from separatrix.sweeps.store.schema import VERDICT
from separatrix.sweeps.store.selection import Selection

STEERING = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]")
"""Characters that JSON does not escape, and that a terminal may interpret."""
ROW_GROUP = 20_000
"""Rows of a Parquet file that are written at once."""
ENDINGS = (".csv", ".json", ".parquet")


@dataclass(frozen=True)
class StoredNeuron(Document):
    """Probabilities of one neuron: fractions as text where they are certified, else numbers."""

    p0: str | float | None
    """It fires on D0."""
    p1: str | float | None
    """It fires on D1."""
    q: str | float | None
    """It fires on neither."""


@dataclass(frozen=True)
class StoredVerdict(Document):
    """A stored verdict; null where a cell was refused or failed."""

    part: NotRequired[str | None]  # type: ignore[valid-type]
    """The part of the plan; only if the cells of a sweep are selected."""
    construction: str
    mechanism: str
    parameters: dict[str, int | str]
    engine: str | None
    evidence: str | None
    neuron: StoredNeuron
    fire_d0: float | None
    fire_d1: float | None
    distinguish: float | None
    interval: tuple[float | None, float | None] | None
    margin: float | None
    bits: float | None
    delta: str | None
    verdict: str | None
    status: str
    message: str | None
    asked: str | None
    """The engine that was requested."""
    draws: int | None
    seed: int | None
    confidence: float | None
    dtype: str | None
    until_decided: int | None
    """1 if drawing stopped once the verdict was clear."""
    seconds: float | None
    finished: str | None
    host: str | None
    code: str | None
    """The version of the code."""
    id: str | int
    versions: dict[str, str] | None


@with_config(ConfigDict(extra="allow"))
class StoredWork(TypedDict):
    """Stored work that is no verdict; its findings have keys of their own."""

    kind: str
    status: str
    parameters: dict[str, Any] | None
    versions: dict[str, Any] | None


def iterate_documents(frame: pl.DataFrame, kind: str = VERDICT) -> Iterator[dict[str, Any]]:
    """Yield one JSON object for each cell, with exact parameters."""
    names = [name for name in StoredVerdict.__dataclass_fields__ if name in frame.columns]
    for row in frame.iter_rows(named=True):
        decoded_columns = {name: json.loads(row[name] or "null") for name in ("parameters", "versions")}
        if kind != VERDICT:
            yield finite({"kind": kind, **row, **decoded_columns})
            continue
        parameters = _shorten_parameters(row["construction"], decoded_columns["parameters"])
        verdict = StoredVerdict(
            **{"part": None} | {name: row[name] for name in names} | decoded_columns | {"parameters": parameters},
            neuron=StoredNeuron(*(_parse_probability(row[name]) for name in ("p0", "p1", "q"))),
            interval=None if row["low"] is None else (row["low"], row["high"]),
        )
        document = verdict.as_json()
        if "part" not in row:
            del document["part"]
        yield document


def write(selection: Selection, ending: str, file: BinaryIO) -> None:
    """Write the cells as a CSV, JSON or Parquet file, one chunk after the other."""
    {".csv": _write_csv, ".json": _write_json, ".parquet": _write_parquet}[ending](selection, file)


def _write_csv(selection: Selection, file: BinaryIO) -> None:
    for number, chunk in enumerate(selection.frames()):
        file.write(make_harmless(chunk.rename(_make_text_harmless)).write_csv(include_header=number == 0).encode())


def make_harmless(frame: pl.DataFrame) -> pl.DataFrame:
    """Change texts that a spreadsheet would take for a formula, or a terminal for a command."""
    suspects = [column.name for column in frame.select(pl.col(pl.String)) if column.str.contains(SUSPECT).any()]
    if not suspects:
        return frame
    # By column: pl.col would take a name such as ^.*$ for a pattern.
    return frame.with_columns(
        frame[name].map_elements(_make_text_harmless, return_dtype=pl.String) for name in suspects
    )


def _make_text_harmless(text: str) -> str:
    return no_formula(visible(text))


def _write_json(selection: Selection, file: BinaryIO) -> None:
    separator = b"[\n"
    for chunk in selection.frames():
        for document in iterate_documents(chunk, selection.kind):
            text = STEERING.sub(lambda match: f"\\u{ord(match[0]):04x}", json_text(document))
            file.write(separator + textwrap.indent(text, "  ").encode())
            separator = b",\n"
    file.write(b"[]\n" if separator == b"[\n" else b"\n]\n")


def _write_parquet(selection: Selection, file: BinaryIO) -> None:
    from polars.io.plugins import register_io_source

    def read_chunks(*_: object) -> Iterator[pl.DataFrame]:
        yield from selection.frames()

    register_io_source(read_chunks, schema=selection.schema).sink_parquet(file, row_group_size=ROW_GROUP)


def _shorten_parameters(construction: str, parameters: Any) -> Any:
    """Parameters as `verdict --json` prints them: whole numbers as integers, others as exact text."""
    kind = CONSTRUCTIONS.get(construction)
    if kind is None or not isinstance(parameters, dict):
        return parameters

    def as_integer(name: str, value: Any) -> Any:
        try:
            return int(value) if is_whole(kind.schema, name) else value
        except (KeyError, TypeError, UsageError, ValueError):
            return value

    return {name: as_integer(name, value) for name, value in parameters.items()}


def _parse_probability(text: str | None) -> str | float | None:
    """A float, unless it is a fraction."""
    if text is None or "/" in text or text.isdigit():
        return text
    value = float(text)
    return value if math.isfinite(value) else None
