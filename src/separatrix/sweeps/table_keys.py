"""What tables of every kind say in a plan: their name, mechanisms and seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from itertools import product
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, PlainValidator

from separatrix.core.numbers import parse_integer
from separatrix.core.parameters import UsageError
from separatrix.core.parameters.model import printed
from separatrix.mechanisms import MECHANISMS, Mechanism, examples
from separatrix.mechanisms.load import mechanism_from
from separatrix.sweeps.plan_file import Complaints
from separatrix.sweeps.plan_points import read_values, written_values

ALL = "all"
MOST_SEEDS, LARGEST_SEED = 1_000_000, 2**63 - 1
LONGEST_NAME = 200
"""Characters of the name of a plan or a table."""


class SeedsFrom(int):
    """A seed of its own for each cell, counted from this one."""


Seeds = range | tuple[int, ...] | SeedsFrom


def told(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
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
    if len(name) > LONGEST_NAME:
        raise UsageError(
            f"name = {name[:20]!r}… has {len(name):,} characters, more than {LONGEST_NAME}; take a shorter "
            "one, and say the rest in description"
        )
    return name


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


class TableKeys(BaseModel):
    """What every table may say."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
    name: Annotated[str, AfterValidator(told(_name))] = ""
    mechanisms: str | list[str | dict[str, Any]] = []
    seeds: Annotated[Seeds, PlainValidator(told(_seeds))] = (0,)
    parameters: dict[str, Any] = {}


def read_mechanisms(keys: TableKeys, complaints: Complaints, allow: Collection[str]) -> Iterator[Mechanism]:
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
    attribute = rest.partition(":")[0]
    allowed = name in allow or f"{module}:{attribute}" in allow
    if colon and module not in MECHANISMS and "=" not in attribute and not allowed:
        raise UsageError(
            f"{name} would run code that is not part of separatrix; if it is yours, say so: `allow` {name}"
        )
    return mechanism_from(name)


def written_mechanisms(table: Mapping[str, Any]) -> int:
    """How many mechanisms a table names, counting each choice of their own parameters."""
    named = table.get("mechanisms")
    return sum(map(written_product, named)) if isinstance(named, list) else 1


def written_product(named: Any) -> int:
    """How many points a table of parameters spells."""
    return math.prod(map(written_values, named.values())) if isinstance(named, Mapping) else 1


def written_seeds(given: Any) -> int:
    """How many seeds are written, counted before any of them is made."""
    if isinstance(given, str) and given.count(":") == 1:
        with suppress(UsageError):
            first, last = map(parse_integer, given.split(":"))
            return max(1, last - first + 1)
    return written_values(given)
