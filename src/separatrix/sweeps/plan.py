"""A plan: what is to be computed, read from TOML and checked in full before anything runs."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path as File
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from separatrix.files.reading import read_whole
from separatrix.parameters import UsageError, nearest
from separatrix.sweeps.cell import Cell
from separatrix.sweeps.complaints import Complaints, PlanError
from separatrix.sweeps.keys import Keys, complaint
from separatrix.sweeps.lines import lines_of
from separatrix.sweeps.part import Part, read_part
from separatrix.sweeps.size import written_cells, written_mechanisms
from separatrix.sweeps.toml import read_toml

MOST_CELLS = 10_000_000
"""More cannot be checked before they run, not within a gigabyte; split such a plan."""
MOST_MECHANISMS = 100_000
"""Of all tables together, each choice of a mechanism's own parameters counted."""
LARGEST = 1_000_000
"""Bytes of a plan that is read at all."""
TABLE = "sweep"


class PlanKeys(BaseModel):
    """The keys outside of the tables: a name, and defaults for all tables."""

    model_config = ConfigDict(extra="allow")
    name: str = ""
    description: str = ""
    sweep: list[dict[str, Any]] = []


@dataclass(frozen=True)
class Plan:
    """Parts, each a product of constructions, mechanisms, parameters and seeds."""

    name: str
    text: str
    parts: tuple[Part, ...]

    @property
    def count(self) -> int:
        """The number of cells; one that two parts name counts twice."""
        return sum(part.count for part in self.parts)

    @property
    def key(self) -> str:
        """The same for the same text and the same versions of the code that computes it."""
        codes = sorted({code for part in self.parts for code in part.codes.values()})
        return hashlib.sha256("\0".join((self.name, self.text, *codes)).encode()).hexdigest()[:32]

    def __iter__(self) -> Iterator[tuple[str, Cell]]:
        """Every cell with the name of its part; made one by one, so that a million need no memory."""
        for part in self.parts:
            for cell in part:
                yield part.name, cell


def load_plan(file: File, allow: Collection[str] = ()) -> Plan:
    """The plan in a file."""
    try:
        text = read_whole(file, LARGEST, "a plan").decode()
    except UnicodeDecodeError:
        raise UsageError(f"{file} is not a text; a plan is a TOML file") from None
    return read_plan(text, str(file), file.stem, allow)


def read_plan(text: str, where: str = "plan", name: str = "plan", allow: Collection[str] = ()) -> Plan:
    """The plan that a TOML text spells, or a PlanError with everything that is wrong with it.

    `allow` holds those of the user's own mechanisms, `module:attribute`, that the plan may name: a plan
    is data, and names code only where the user says so.
    """
    data = read_toml(text, where)
    complaints = Complaints(where, lines_of(text))
    try:
        keys = PlanKeys.model_validate(data)
    except ValidationError as error:
        for each in error.errors():
            complaints.add(each["loc"], complaint(each, list(PlanKeys.model_fields)))
        raise PlanError(where, complaints.found) from None
    defaults = _defaults(keys, complaints)
    tables = [_merged(defaults, table) for table in keys.sweep]
    _require_few(tables, where)
    parts = [read_part(table, number, complaints, allow) for number, table in enumerate(tables)]
    if not keys.name.isprintable():
        complaints.add(("name",), f"name = {keys.name!r} holds what cannot be printed")
    if not keys.sweep:
        complaints.add((), f"there is nothing to compute; write at least one table [[{TABLE}]]")
    _require_different_names(parts, complaints)
    complaints.settle()
    return Plan(keys.name or name, text, tuple(part for part in parts if part is not None))


def _require_few(tables: list[dict[str, Any]], where: str) -> None:
    """Refuse a plan that is too large to be looked at, before it is."""
    cells, mechanisms = (sum(map(count, tables)) for count in (written_cells, written_mechanisms))
    if cells > MOST_CELLS:
        raise UsageError(
            f"{where} has {cells:,} cells, more than {MOST_CELLS:,}; make it coarser, or split it"
        )
    if mechanisms > MOST_MECHANISMS:
        raise UsageError(
            f"{where} names {mechanisms:,} mechanisms in its tables, more than {MOST_MECHANISMS:,}; split it"
        )


def _defaults(keys: PlanKeys, complaints: Complaints) -> dict[str, Any]:
    given, known = dict(keys.model_extra or {}), [name for name in Keys.model_fields if name != "name"]
    for name in [name for name in given if name not in known]:
        near = nearest(name, [*known, TABLE, "name"])
        listed = ", ".join(("name", "description", *known, TABLE))
        complaints.add((name,), f"there is no key {name}{near}; there are: {listed}")
        del given[name]
    if not isinstance(given.get("parameters", {}), Mapping):
        complaints.add(("parameters",), "parameters is a table; write [parameters] and name = value below it")
        del given["parameters"]
    return given


def _merged(defaults: Mapping[str, Any], table: Mapping[str, Any]) -> dict[str, Any]:
    """A table over the defaults, parameter by parameter."""
    own = table.get("parameters", {})
    if not isinstance(own, Mapping):
        return {**defaults, **table}
    return {**defaults, **table, "parameters": {**defaults.get("parameters", {}), **own}}


def _require_different_names(parts: list[Part | None], complaints: Complaints) -> None:
    seen: set[str] = set()
    for number, part in enumerate(parts):
        if part is not None and part.name in seen:
            path = (TABLE, number, "name")
            complaints.add(path, f"two tables are named {part.name}; give each a name of its own")
        seen.update(() if part is None else (part.name,))
