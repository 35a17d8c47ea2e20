"""A plan: what is to be computed, read from TOML and checked in full before anything runs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path as File
from typing import Any, TypeVar

from pydantic import BaseModel, Field, ValidationError

from separatrix.core.files.reading import read_whole
from separatrix.core.parameters import UsageError, require_known
from separatrix.sweeps.learn_table import LearnKeys, LearnTable, read_learn_table, written_runs
from separatrix.sweeps.plan_file import Complaints, PlanError, read_toml
from separatrix.sweeps.table_keys import TableKeys, written_mechanisms
from separatrix.sweeps.verdict_table import VerdictKeys, VerdictTable, read_table, written_cells
from separatrix.sweeps.work import Work

MOST_CELLS = 10_000_000
"""More cannot be checked before they run, not within a gigabyte; split such a plan."""
MOST_MECHANISMS = 100_000
"""The most mechanisms of all tables, each choice of a mechanism's own parameters counted."""
LARGEST = 1_000_000
"""Bytes of a plan that is read at all."""
WANTED = {
    "construction": "the name of a construction, or a list of them",
    "mechanisms": "a list of mechanisms",
    "learn": "made of tables: write [[learn]] and the keys below it",
    "parameters": "a table; write [parameters] or [sweep.parameters], and name = value below it",
    "setting": "a table; write setting = { width = 64 }, or [learn.setting] and name = value below it",
    "sweep": "made of tables: write [[sweep]] and the keys below it",
    "task": "the name of a task, or a list of them",
    "test": "true or false",
    "until_decided": "true or false",
}
"""What a key has to be that is not a text."""

Keys = TypeVar("Keys", bound=BaseModel)


class PlanKeys(VerdictKeys):
    """The keys outside of the tables: about the plan, and defaults for all tables."""

    description: str = ""
    sweep: list[dict[str, Any]] = Field(default=[])
    learn: list[dict[str, Any]] = Field(default=[])


@dataclass(frozen=True)
class TableKind:
    """A kind of tables: what they may say, how they are read, and how many cells they spell."""

    keys: type[TableKeys]
    shared: frozenset[str]
    """What is taken from outside of the tables where it is not given."""
    read: Callable[[Any, str, Complaints, Collection[str]], VerdictTable | LearnTable]
    written: Callable[[Mapping[str, Any]], int]


KINDS = {
    "sweep": TableKind(
        VerdictKeys, frozenset(VerdictKeys.model_fields) - {"name"}, read_table, written_cells
    ),
    "learn": TableKind(LearnKeys, frozenset({"mechanisms", "seeds"}), read_learn_table, written_runs),
}
"""By the name that tables have in a plan."""


@dataclass(frozen=True)
class Plan:
    """Parts, each a product of constructions or tasks, mechanisms, parameters and seeds."""

    name: str
    text: str
    parts: tuple[VerdictTable | LearnTable, ...]
    description: str = ""

    @property
    def count(self) -> int:
        """The number of cells; one that two parts name counts twice."""
        return sum(part.count for part in self.parts)

    @property
    def key(self) -> str:
        """The identity of a plan: that of its text, and of the versions of the code that computes it."""
        codes = sorted({code for part in self.parts for code in part.versions})
        return hashlib.sha256("\0".join((self.name, self.text, *codes)).encode()).hexdigest()[:32]

    @property
    def taken(self) -> dict[str, dict[str, dict[str, str]]]:
        """By part and construction, the parameters that were not given and are those of a reference point."""
        return {part.name: part.taken for part in self.parts if part.taken}

    @property
    def stages(self) -> bool:
        """Whether pilot runs choose the learning rates of others, which `learn --plan` does."""
        return any(isinstance(part, LearnTable) and part.stages for part in self.parts)

    @property
    def threads(self) -> int:
        """The most threads of torch that a worker computes a cell with."""
        return max(part.threads for part in self.parts)

    def __iter__(self) -> Iterator[tuple[str, Work]]:
        """Every cell with the name of its part; made one by one, so that a million need no memory."""
        for part in self.parts:
            for cell in part:
                yield part.name, cell


def load_plan(file: File, allow: Collection[str] = (), device: str | None = None) -> Plan:
    """The plan in a file."""
    try:
        text = read_whole(file, LARGEST, "a plan").decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{file} is not a text; a plan is a TOML file") from None
    return read_plan(text, str(file), file.stem, allow, device)


def read_plan(
    text: str,
    where: str = "plan",
    name: str = "plan",
    allow: Collection[str] = (),
    device: str | None = None,
) -> Plan:
    """The plan that a TOML text spells, or a PlanError with everything that is wrong with it.

    `allow` holds those of the user's own mechanisms, `module:attribute`, that the plan may name: a plan
    is data, and names code only where the user says so. `device` is where training runs are made, whatever
    the plan says.
    """
    data, lines = read_toml(text, where)
    complaints, parts = Complaints(lines), dict[str, VerdictTable | LearnTable]()
    keys = _checked(PlanKeys, data, complaints)
    tables = [
        (kind, number, _merged(_defaults(data, keys, kind), table))
        for kind in KINDS
        for number, table in enumerate(getattr(keys, kind))
    ]
    _require_few(tables, where)
    if not data.get("sweep") and not data.get("learn"):
        complaints.add("there is nothing to compute; write at least one table [[sweep]] or [[learn]]")
    for kind, number, table in tables:
        wrong = complaints.of(kind, number)
        elsewhere = {"device": device} if kind == "learn" and device is not None else {}
        given = _checked(KINDS[kind].keys, {**table, **elsewhere}, wrong)
        called = given.name or f"{kind} {number + 1}"
        if called in parts:
            wrong.add(f"two tables are named {called}; give each a name of its own", "name")
        parts[called] = KINDS[kind].read(given, called, wrong, allow)
        complaints.found += wrong.found
    if complaints.found:
        raise PlanError(where, complaints.found)
    return Plan(keys.name or name, text, tuple(parts.values()), keys.description)


def _defaults(data: Mapping[str, Any], keys: PlanKeys, kind: str) -> dict[str, Any]:
    """What stands outside of the tables for those of a kind."""
    shared = keys.model_fields_set & KINDS[kind].shared
    return {key: value for key, value in data.items() if key in shared}


def _checked(model: type[Keys], given: Mapping[str, Any], complaints: Complaints) -> Keys:
    """What the keys say; those that are wrong are complained of, and left at their defaults."""
    try:
        return model.model_validate(given)
    except ValidationError as error:
        wrong = {str(each["loc"][0]): each for each in error.errors()}
    for name, each in wrong.items():
        with complaints.at(name):
            require_known("key", name, model.model_fields)
            told = f"{name} = {each['input']!r} is not {WANTED.get(name, 'a text in quotes')}"
            raise UsageError(str(each["ctx"]["error"]) if each["type"] == "value_error" else told)
    return model.model_validate({name: value for name, value in given.items() if name not in wrong})


def _merged(defaults: Mapping[str, Any], table: Mapping[str, Any]) -> dict[str, Any]:
    """A table over the defaults, parameter by parameter."""
    own = table.get("parameters", {})
    if not isinstance(own, Mapping):
        return {**defaults, **table}
    return {**defaults, **table, "parameters": {**defaults.get("parameters", {}), **own}}


def _require_few(tables: list[tuple[str, int, dict[str, Any]]], where: str) -> None:
    """Refuse a plan that is too large to be looked at, before it is."""
    cells = sum(KINDS[kind].written(table) for kind, _, table in tables)
    mechanisms = sum(written_mechanisms(table) for _, _, table in tables)
    if cells > MOST_CELLS:
        raise UsageError(
            f"{where} has {cells:,} cells, more than {MOST_CELLS:,}; make it coarser, or split it"
        )
    if mechanisms > MOST_MECHANISMS:
        raise UsageError(
            f"{where} names {mechanisms:,} mechanisms in its tables, more than {MOST_MECHANISMS:,}; split it"
        )
