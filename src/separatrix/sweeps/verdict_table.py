"""A table of verdicts in a plan: constructions × mechanisms × parameters × seeds, and how to answer."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import count, product, repeat
from typing import Annotated, Any

from pydantic import AfterValidator, Field, PlainValidator

from separatrix.constructions import CONSTRUCTIONS, construction_named
from separatrix.constructions.reference import describe_defaults
from separatrix.core.numbers import format_exact, parse_exact, parse_integer
from separatrix.core.parameters.ranges import is_axis
from separatrix.exact.engines import ENGINES, Sampling, engine_named
from separatrix.exact.engines.sampling import enough_draws
from separatrix.exact.verdicts.verdict import parse_delta
from separatrix.mechanisms import Mechanism
from separatrix.sweeps.code import code_version
from separatrix.sweeps.plan_file import Complaints
from separatrix.sweeps.plan_points import PlanPoints, points_of, read_values, written_values
from separatrix.sweeps.table_keys import (
    ALL,
    SeedsFrom,
    TableKeys,
    read_mechanisms,
    told,
    written_mechanisms,
    written_product,
    written_seeds,
)
from separatrix.sweeps.verdict_cells import Cell, Draws


def _engine(name: str) -> str:
    return engine_named(name).name


def _draws(given: Any) -> int:
    return Sampling(draws=parse_integer(given, "draws")).draws


def _confidence(given: Any) -> float:
    return Sampling(confidence=float(parse_exact(given, "confidence"))).confidence


def _dtype(name: str) -> str:
    return Sampling(dtype=name).dtype


class VerdictKeys(TableKeys):
    """What a table may say. Numbers are exact as they are written."""

    construction: str | list[str] = Field(default=[])
    engine: Annotated[str, AfterValidator(told(_engine))] = "auto"
    delta: Annotated[Fraction, PlainValidator(told(parse_delta))] = Fraction(1, 100)
    draws: Annotated[int | None, PlainValidator(told(_draws))] = None
    confidence: Annotated[float, PlainValidator(told(_confidence))] = 0.95
    dtype: Annotated[str, AfterValidator(told(_dtype))] = "float64"
    until_decided: bool = False


@dataclass(frozen=True)
class VerdictTable:
    """A table that was read: every cell of it can be computed."""

    name: str
    keys: VerdictKeys
    grids: tuple[PlanPoints, ...]
    mechanisms: tuple[Mechanism, ...]
    codes: Mapping[tuple[str, str], str]
    """The version of the code, by construction and mechanism."""

    threads = Cell.threads

    @property
    def engine(self) -> str:
        """The engine asked for."""
        return self.keys.engine

    @property
    def versions(self) -> set[str]:
        """Of the code that computes its cells."""
        return set(self.codes.values())

    @property
    def summary(self) -> tuple[str, str, str]:
        """What is asked of whom, and how."""
        about = ", ".join(dict.fromkeys(points.kind.name for points in self.grids))
        return about, ", ".join(mechanism.spelled for mechanism in self.mechanisms), self.engine

    @property
    def taken(self) -> dict[str, dict[str, str]]:
        """By construction, the parameters that were not given and are those of its reference point."""
        return {
            points.kind.name: {name: str(value) for name, value in points.taken.items()}
            for points in self.grids
            if points.taken
        }

    @property
    def count(self) -> int:
        """The number of cells."""
        return sum(grid.grid.size for grid in self.grids) * len(self.mechanisms) * len(next(self._seeds()))

    def _seeds(self) -> Iterator[Sequence[int]]:
        """The seeds of each point in turn."""
        seeds = self.keys.seeds if ENGINES[self.engine].draws else (0,)
        return zip(count(seeds)) if isinstance(seeds, SeedsFrom) else repeat(seeds)

    def __iter__(self) -> Iterator[Cell]:
        delta, seeds = format_exact(self.keys.delta), self._seeds()
        for points, mechanism in product(self.grids, self.mechanisms):
            pair = points.kind.name, mechanism.spelled
            draws = self._draws(points, mechanism)
            for point, chosen in zip(points, seeds, strict=False):
                for seed in chosen:
                    drawn = self._drawn(draws, seed)
                    yield Cell(*pair, point, self.engine, delta, drawn, self.codes[pair])

    def _drawn(self, draws: int, seed: int) -> Draws | None:
        if not ENGINES[self.engine].draws:
            return None
        return Draws(draws, seed, self.keys.confidence, self.keys.dtype, self.keys.until_decided)

    def _draws(self, points: PlanPoints, mechanism: Mechanism) -> int:
        if self.keys.draws is not None:
            return self.keys.draws
        return enough_draws(points.first, mechanism) if self.keys.until_decided else Sampling().draws


def read_table(keys: VerdictKeys, name: str, complaints: Complaints, allow: Collection[str]) -> VerdictTable:
    """The cells that a table asks for; what is wrong with those it names goes to `complaints`."""
    with complaints.at("dtype"):
        ENGINES[keys.engine].refuse_unused(Sampling(dtype=keys.dtype))
    mechanisms = {
        read_mechanism.spelled: read_mechanism for read_mechanism in read_mechanisms(keys, complaints, allow)
    }
    grids = tuple(_grids(keys, complaints))
    codes = {
        (kind.name, spelled): code_version(kind, mechanism)
        for kind in dict.fromkeys(points.kind for points in grids)
        for spelled, mechanism in mechanisms.items()
    }
    return VerdictTable(name, keys, grids, tuple(mechanisms.values()), codes)


def written_cells(table: Mapping[str, Any]) -> int:
    """Constructions × mechanisms × parameters × seeds as they are written, counted before any is made.

    >>> written_cells({"mechanisms": ["softmax", "linear"], "parameters": {"n": "1e3:1e9:7:log"}})
    14
    """
    named = (written_values(table.get("construction")), written_mechanisms(table))
    drawn = (engine := table.get("engine")) not in [*ENGINES] or ENGINES[engine].draws
    seeds = written_seeds(table.get("seeds")) if drawn else 1
    return math.prod((*named, written_product(table.get("parameters")), seeds))


def _grids(keys: VerdictKeys, complaints: Complaints) -> Iterator[PlanPoints]:
    """One grid for each construction and each choice of what is not a number."""
    if keys.construction == ALL:
        if keys.parameters:
            everything = "'all' takes every construction at its reference point"
            complaints.add(f"{everything}; leave out the parameters, or name one", "parameters")
        for kind in CONSTRUCTIONS.values():
            for changes in kind.variants:
                given = {**kind.example, **changes}
                yield from points_of(
                    kind, {name: read_values(kind.schema, name, given[name]) for name in given}
                )
        return
    if not keys.construction:
        complaints.add("no construction is named; write for example construction = 'spike'", "construction")
    for name in [keys.construction] if isinstance(keys.construction, str) else keys.construction:
        with complaints.at("construction"):
            yield from _points(name, keys.parameters, complaints)


def _points(construction: str, parameters: Mapping[str, Any], complaints: Complaints) -> Iterator[PlanPoints]:
    kind, before = construction_named(construction), len(complaints.found)
    values: dict[str, tuple[Any, ...]] = {}
    for name, given in parameters.items():
        for each in [*given, given] if isinstance(given, list) else [given]:  # each mistake of a list is told
            with complaints.at("parameters", name):
                values[name] = read_values(kind.schema, name, each)
    with complaints.at("parameters"):
        if len(complaints.found) == before:
            for points in points_of(kind, values, is_axis(parameters.get("n"))):
                for names, message in points.violations():
                    blamed = describe_defaults({name: x for name, x in points.taken.items() if name in names})
                    said = f"{message}; {blamed}" if blamed else message
                    complaints.add(said, "parameters", *[name for name in names if name in parameters][:1])
                yield points
