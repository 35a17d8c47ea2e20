"""A table of verdicts in a plan: constructions × mechanisms × parameters × seeds, and how to answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import count, product, repeat
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, PlainValidator

from separatrix.constructions import CONSTRUCTIONS, construction_named
from separatrix.engines import ENGINES, Sampling, engine_named
from separatrix.engines.sampling import enough_draws
from separatrix.mechanisms import MECHANISMS, Mechanism, examples
from separatrix.mechanisms.load import mechanism_from
from separatrix.numbers import format_exact, parse_exact, parse_integer
from separatrix.parameters import UsageError
from separatrix.parameters.model import printed
from separatrix.parameters.ranges import is_axis
from separatrix.sweeps.code import code_version
from separatrix.sweeps.plan_file import Complaints
from separatrix.sweeps.plan_points import PlanPoints, points_of, read_values, written_values
from separatrix.sweeps.verdict_cells import Cell, Draws
from separatrix.verdicts.verdict import parse_delta

ALL = "all"
MOST_SEEDS, LARGEST_SEED = 1_000_000, 2**63 - 1


class SeedsFrom(int):
    """A seed of its own for each cell, counted from this one."""


Seeds = range | tuple[int, ...] | SeedsFrom


def _told(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`read`, with its UsageErrors as pydantic collects them."""

    def validate(value: Any) -> Any:
        try:
            return read(value)
        except UsageError as error:
            raise ValueError(str(error)) from None

    return validate


def _name(name: str) -> str:
    if not name.isprintable():
        raise UsageError(f"name = {name!r} holds what cannot be printed")
    return name


def _engine(name: str) -> str:
    return engine_named(name).name


def _seeds(given: Any) -> Seeds:
    """A list; first:last, both of them included; or first:, a seed of its own for each cell."""
    if isinstance(given, str) and given.endswith(":"):
        start = parse_integer(given[:-1], "seeds")
        if not 0 <= start <= LARGEST_SEED // 2:
            raise UsageError(f"seeds = {given} must begin with a whole number from 0 to 2^62")
        return SeedsFrom(start)
    if isinstance(given, str) and given.count(":") == 1:
        first, last = (parse_integer(part, "seeds") for part in given.split(":"))
        if not 0 <= first <= last <= LARGEST_SEED or last - first >= MOST_SEEDS:
            raise UsageError(f"seeds = {given} is no range of seeds; write for example seeds = '0:99'")
        return range(first, last + 1)
    listed = given if isinstance(given, list) else [given]
    seeds = tuple(dict.fromkeys(parse_integer(seed, "seeds") for seed in listed))
    if not seeds or min(seeds) < 0 or max(seeds) > LARGEST_SEED:
        raise UsageError(f"seeds = {given} must be whole numbers from 0 to 2^63 - 1, at least one")
    return seeds


def _draws(given: Any) -> int:
    return Sampling(draws=parse_integer(given, "draws")).draws


def _confidence(given: Any) -> float:
    return Sampling(confidence=float(parse_exact(given, "confidence"))).confidence


def _dtype(name: str) -> str:
    return Sampling(dtype=name).dtype


class VerdictKeys(BaseModel):
    """What a table may say. Numbers are exact as they are written."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
    name: Annotated[str, AfterValidator(_told(_name))] = ""
    construction: str | list[str] = []
    mechanisms: str | list[str | dict[str, Any]] = []
    parameters: dict[str, Any] = {}
    engine: Annotated[str, AfterValidator(_told(_engine))] = "auto"
    delta: Annotated[Fraction, PlainValidator(_told(parse_delta))] = Fraction(1, 100)
    seeds: Annotated[Seeds, PlainValidator(_told(_seeds))] = (0,)
    draws: Annotated[int | None, PlainValidator(_told(_draws))] = None
    confidence: Annotated[float, PlainValidator(_told(_confidence))] = 0.95
    dtype: Annotated[str, AfterValidator(_told(_dtype))] = "float64"
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

    @property
    def engine(self) -> str:
        """The engine asked for."""
        return self.keys.engine

    @property
    def count(self) -> int:
        """The number of cells."""
        return sum(each.grid.size for each in self.grids) * len(self.mechanisms) * len(next(self._seeds()))

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
    mechanisms = {each.spelled: each for each in _mechanisms(keys, complaints, allow)}
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
    return math.prod((*named, _product(table.get("parameters")), _written_seeds(table)))


def written_mechanisms(table: Mapping[str, Any]) -> int:
    """How many mechanisms a table names, counting each choice of their own parameters."""
    named = table.get("mechanisms")
    return sum(map(_product, named)) if isinstance(named, list) else 1


def _product(named: Any) -> int:
    return math.prod(map(written_values, named.values())) if isinstance(named, Mapping) else 1


def _written_seeds(table: Mapping[str, Any]) -> int:
    given = table.get("seeds")
    if (engine := table.get("engine")) in [*ENGINES] and not ENGINES[engine].draws:
        return 1
    if isinstance(given, str) and given.count(":") == 1:
        with suppress(UsageError):
            first, last = map(parse_integer, given.split(":"))
            return max(1, last - first + 1)
    return written_values(given)


def _mechanisms(keys: VerdictKeys, complaints: Complaints, allow: Collection[str]) -> Iterator[Mechanism]:
    """Every mechanism named, with each choice of its own parameters."""
    if keys.mechanisms == ALL:
        yield from examples()
        return
    if not keys.mechanisms:
        complaints.add(
            "no mechanism is named; write for example mechanisms = ['softmax', 'linear']", "mechanisms"
        )
    for entry in [keys.mechanisms] if isinstance(keys.mechanisms, str) else keys.mechanisms:
        with complaints.at("mechanisms"):
            for name in [entry] if isinstance(entry, str) else _choices(entry):
                yield _mechanism(name, allow)


def _choices(entry: Mapping[str, Any]) -> list[str]:
    """`{ name = "power", beta = [2, 4] }` as `power:beta=2` and `power:beta=4`."""
    name, own = entry.get("name"), {key: value for key, value in entry.items() if key != "name"}
    if not isinstance(name, str) or name not in MECHANISMS:
        raise UsageError(
            f"{dict(entry)} names no built-in mechanism; write for example {{name = 'power', beta = 4}}"
        )
    values = {key: read_values(MECHANISMS[name].schema, key, value) for key, value in own.items()}
    chosen = product(*([f"{key}={printed(value)}" for value in taken] for key, taken in values.items()))
    return [f"{name}:{','.join(words)}" if words else name for words in chosen]


def _mechanism(name: str, allow: Collection[str]) -> Mechanism:
    module, colon, rest = name.partition(":")
    if colon and module not in MECHANISMS and "=" not in rest and name not in allow:
        raise UsageError(
            f"{name} would run code that is not part of separatrix; if it is yours, say so: `allow` {name}"
        )
    return mechanism_from(name)


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
        kind.schema.require_all(parameters)
        if len(complaints.found) == before:
            for points in points_of(kind, values, is_axis(parameters.get("n"))):
                for names, message in points.violations():
                    complaints.add(message, "parameters", *[name for name in names if name in parameters][:1])
                yield points
