"""One table of a plan: constructions × mechanisms × parameters × seeds, and how they are to be answered."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

from separatrix.engines import ENGINES, Sampling
from separatrix.engines.options import DRAWLESS, refuse_unused
from separatrix.engines.sampling import enough_draws
from separatrix.mechanisms import Mechanism
from separatrix.numbers import format_exact, parse_exact, parse_integer
from separatrix.parameters import UsageError, nearest
from separatrix.sweeps.cell import Cell, Draws
from separatrix.sweeps.chosen import chosen_mechanisms, chosen_points
from separatrix.sweeps.code import code_version
from separatrix.sweeps.complaints import Complaints
from separatrix.sweeps.keys import read_keys
from separatrix.sweeps.points import Points

MOST_SEEDS, LARGEST_SEED = 1_000_000, 2**63 - 1


@dataclass(frozen=True)
class Part:
    """A table that was read: every cell of it can be computed."""

    name: str
    grids: tuple[Points, ...]
    mechanisms: tuple[Mechanism, ...]
    engine: str
    delta: Fraction
    seeds: range | tuple[int, ...]
    draws: int | None
    confidence: float
    dtype: str
    until_decided: bool
    codes: Mapping[tuple[str, str], str]
    """The version of the code, by construction and mechanism."""

    @property
    def count(self) -> int:
        """The number of cells."""
        return sum(grid.count for grid in self.grids) * len(self.mechanisms) * len(self._seeds)

    @property
    def _seeds(self) -> range | tuple[int, ...]:
        return (0,) if self.engine in DRAWLESS else self.seeds

    def __iter__(self) -> Iterator[Cell]:
        delta = format_exact(self.delta)
        for grid, mechanism in product(self.grids, self.mechanisms):
            draws = self._draws(grid, mechanism)
            name, code = mechanism.spelled, self.codes[grid.kind.name, mechanism.spelled]
            for point in grid:
                for seed in self._seeds:
                    yield Cell(
                        grid.kind.name, name, point, self.engine, delta, self._drawn(draws, seed), code
                    )

    def _draws(self, grid: Points, mechanism: Mechanism) -> int:
        if self.draws is not None:
            return self.draws
        return enough_draws(grid.first, mechanism) if self.until_decided else Sampling().draws

    def _drawn(self, draws: int, seed: int) -> Draws | None:
        if self.engine in DRAWLESS:
            return None
        return Draws(draws, seed, self.confidence, self.dtype, self.until_decided)


def read_part(
    table: Mapping[str, Any], number: int, complaints: Complaints, allow: Collection[str]
) -> Part | None:
    """The table with this number, or None once all that is wrong with it is in `complaints`."""
    before = len(complaints.found)
    keys, path = read_keys(table, number, complaints)
    if not keys.name.isprintable():
        complaints.add(path("name"), f"name = {keys.name!r} holds what cannot be printed")
    if keys.engine not in ENGINES:
        near, known = nearest(keys.engine, list(ENGINES)), ", ".join(ENGINES)
        complaints.add(path("engine"), f"there is no engine {keys.engine}{near}; there are: {known}")
    delta, confidence = Fraction(1, 100), Fraction(95, 100)
    draws: int | None = None
    seeds: range | tuple[int, ...] = (0,)
    with complaints.at(path("delta")):
        delta = parse_exact(keys.delta, "delta")
        if not 0 < delta < Fraction(1, 2):
            raise UsageError(f"delta = {keys.delta} is out of range; it must lie between 0 and 1/2")
    with complaints.at(path("confidence")):
        confidence = parse_exact(keys.confidence, "confidence")
        Sampling(confidence=float(confidence))
    with complaints.at(path("draws")):
        draws = None if keys.draws is None else parse_integer(keys.draws, "draws")
        Sampling(draws=1 if draws is None else draws)
    with complaints.at(path("dtype")):
        refuse_unused(keys.engine, Sampling(dtype=keys.dtype))
    with complaints.at(path("seeds")):
        seeds = _seeds(keys.seeds)
    mechanisms = list(chosen_mechanisms(keys.mechanisms, path("mechanisms"), complaints, allow))
    grids = list(chosen_points(keys, path, complaints))
    if len(complaints.found) > before:
        return None
    codes = {
        (grid.kind.name, each.spelled): code_version(grid.kind, each) for grid in grids for each in mechanisms
    }
    return Part(
        name=keys.name or f"sweep {number + 1}",
        grids=tuple(grids),
        mechanisms=tuple(mechanisms),
        engine=keys.engine,
        delta=delta,
        seeds=seeds,
        draws=draws,
        confidence=float(confidence),
        dtype=keys.dtype,
        until_decided=keys.until_decided,
        codes=codes,
    )


def _seeds(given: Any) -> range | tuple[int, ...]:
    """A list, or first:last, both of them included."""
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
