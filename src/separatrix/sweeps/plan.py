"""Plans: TOML files that describe what to compute, checked in full before anything runs."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from separatrix.core.files.reading import read_whole
from separatrix.core.parameters import UsageError, require_known
from separatrix.sweeps.learn_table import LearnTable
from separatrix.sweeps.plan_table import MAX_CELLS, PlanName, PlanTable
from separatrix.sweeps.plan_toml import KeyPath, PlanError, find_line, read_toml
from separatrix.sweeps.verdict_table import VerdictTable
from separatrix.sweeps.work import ReferenceDefaults, WorkItem

MAX_PLAN_BYTES = 1_000_000
EXPECTED = {
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
"""The form of each key that is not a text."""


class PlanFile(BaseModel):
    """The keys of a plan, with its tables by their kind."""

    model_config = ConfigDict(extra="forbid")
    name: PlanName = ""
    description: str = ""
    sweep: list[VerdictTable] = []
    learn: list[LearnTable] = []


TABLES: Mapping[str, type[PlanTable]] = {"sweep": VerdictTable, "learn": LearnTable}
SHARED = {"sweep": VerdictTable.model_fields.keys() - {"name"}, "learn": {"mechanisms", "seeds"}}
"""The keys that tables of each kind take from the plan if they do not have them."""


@dataclass(frozen=True)
class Plan:
    """Tables, each a product of constructions or tasks, mechanisms, parameters and seeds."""

    name: str
    text: str
    parts: tuple[VerdictTable | LearnTable, ...]
    description: str = ""

    @property
    def count(self) -> int:
        """The number of cells; a cell in two parts counts twice."""
        return sum(part.count for part in self.parts)

    @property
    def key(self) -> str:
        """The identity: that of the text, and of the versions of the code that computes it."""
        codes = sorted({code for part in self.parts for code in part.versions})
        return hashlib.sha256("\0".join((self.name, self.text, *codes)).encode()).hexdigest()[:32]

    @property
    def reference_defaults(self) -> ReferenceDefaults:
        """By part and construction, the parameters that the plan leaves out, at the reference point."""
        return {part.name: part.reference_defaults for part in self.parts if part.reference_defaults}

    @property
    def has_stages(self) -> bool:
        """Whether pilot runs choose the learning rates of other runs, as `learn --plan` does."""
        return any(isinstance(part, LearnTable) and part.has_stages for part in self.parts)

    @property
    def threads(self) -> int:
        """The most threads of torch with which a worker computes a cell."""
        return max(part.threads for part in self.parts)

    def __iter__(self) -> Iterator[tuple[str, WorkItem]]:
        """Yield every cell with the name of its part, made one by one, so that a million need no memory."""
        for part in self.parts:
            for cell in part.cells():
                yield part.name, cell


def load_plan(file: Path, allow: Collection[str] = (), device: str | None = None) -> Plan:
    """Read the plan in a file."""
    try:
        text = read_whole(file, MAX_PLAN_BYTES, "a plan").decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{file} is not a text; a plan is a TOML file") from None
    return read_plan(text, str(file), file.stem, allow, device)


def read_plan(
    text: str, source: str = "plan", name: str = "plan", allow: Collection[str] = (), device: str | None = None
) -> Plan:
    """Return the plan in a TOML text, or raise a PlanError with all its mistakes.

    `allow` holds the user's own mechanisms, `module:attribute`, that the plan may name: a plan is data, and
    loads code only if the user says so. `device` replaces the device of all training runs.
    """
    data, lines = read_toml(text, source)
    complete_data, mistakes, names = _merge_defaults(data, device), list[tuple[KeyPath, str]](), set[str]()
    if not data.get("sweep") and not data.get("learn"):
        mistakes.append(((), "there is nothing to compute; write at least one table [[sweep]] or [[learn]]"))
    for kind in TABLES:
        for number, table in enumerate(complete_data[kind]) if isinstance(complete_data.get(kind), list) else ():
            table_name = str(table["name"]) if isinstance(table, dict) else ""
            if table_name in names:
                message = f"two tables are named {table_name}; give each a name of its own"
                mistakes.append(((kind, number, "name"), message))
            names.add(table_name)
    try:
        keys = PlanFile.model_validate(complete_data, context={"allow": allow})
    except ValidationError as error:
        mistakes += [(details["loc"], _describe(details)) for details in error.errors()]
    if mistakes:
        raise PlanError(source, [(find_line(lines, path), message) for path, message in mistakes])
    plan = Plan(keys.name or name, text, (*keys.sweep, *keys.learn), keys.description)
    if plan.count > MAX_CELLS:
        raise UsageError(f"{source} has {plan.count:,} cells, more than {MAX_CELLS:,}; make it coarser, or split it")
    return plan


def _merge_defaults(data: Mapping[str, Any], device: str | None) -> dict[str, Any]:
    """The data of a plan, with the keys outside of its tables in each table that does not have them."""
    complete_data = {key: value for key, value in data.items() if key not in SHARED["sweep"]}
    for kind, keys in SHARED.items():
        defaults = {key: data[key] for key in keys if key in data}
        if isinstance(data.get(kind), list):
            complete_data[kind] = [
                _merge_table(defaults, table, f"{kind} {number}", device if kind == "learn" else None)
                for number, table in enumerate(data[kind], 1)
            ]
    return complete_data


def _merge_table(defaults: Mapping[str, Any], table: Any, name: str, device: str | None) -> Any:
    if not isinstance(table, dict):
        return table
    complete_table = {**defaults, **table, "name": table.get("name") or name}
    plan_parameters, table_parameters = defaults.get("parameters"), table.get("parameters")
    if isinstance(plan_parameters, dict) and isinstance(table_parameters, dict):
        complete_table["parameters"] = {**plan_parameters, **table_parameters}
    return complete_table if device is None else {**complete_table, "device": device}


def _describe(details: Mapping[str, Any]) -> str:
    """The message for an error of pydantic."""
    if details["type"] == "mistake":
        return str(details["msg"])
    path = details["loc"]
    is_in_table = len(path) > 2 and path[0] in TABLES
    key = str(path[2] if is_in_table else path[0])
    if details["type"] == "extra_forbidden":
        known_keys = (
            TABLES[path[0]].model_fields if is_in_table else {**PlanFile.model_fields, **dict.fromkeys(SHARED["sweep"])}
        )
        try:
            require_known("key", key, known_keys)
        except UsageError as error:
            return str(error)
    return f"{key} = {details['input']!r} is not {EXPECTED.get(key, 'a text in quotes')}"
