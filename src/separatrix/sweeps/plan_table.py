"""Tables of plans: what all kinds have in common, as pydantic models whose errors keep their key paths."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from itertools import product
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainValidator, ValidationError, ValidationInfo
from pydantic_core import InitErrorDetails, PydanticCustomError

from separatrix.core.numbers import parse_integer
from separatrix.core.parameters import Parameters, UsageError
from separatrix.core.parameters.model import format_value
from separatrix.mechanisms import MECHANISMS, Mechanism, examples, mechanism_from
from separatrix.sweeps.plan_points import count_values, read_values

Kind = TypeVar("Kind")
ALL = "all"
MAX_SEEDS, MAX_SEED = 1_000_000, 2**63 - 1
MAX_NAME_LENGTH = 200
MAX_CELLS = 10_000_000
"""More cells need more than a gigabyte to be checked before they run; split the plan."""
MAX_MECHANISMS = 100_000
"""Mechanisms of one table, with each choice of their own parameters."""


class SeedsFrom(int):
    """A seed of its own for each cell, counted from this one."""


Seeds = range | tuple[int, ...] | SeedsFrom


def make_mistake(message: str) -> PydanticCustomError:
    """Return the error of pydantic for a mistake in a plan."""
    return PydanticCustomError("mistake", "{message}", {"message": message})


class Mistakes:
    """Mistakes in one entry of a plan, each with the keys below the entry that lead to it."""

    def __init__(self) -> None:
        self.details: list[InitErrorDetails] = []

    def add(self, message: str, *keys: str | int) -> None:
        """Add a mistake."""
        self.details.append(InitErrorDetails(type=make_mistake(message), loc=keys, input=None))

    @contextmanager
    def at(self, *keys: str | int) -> Iterator[None]:
        """Turn a UsageError into a mistake, and continue."""
        try:
            yield
        except UsageError as error:
            self.add(str(error), *keys)

    def raise_all(self) -> None:
        """Raise the mistakes as an error that pydantic merges with those of other entries."""
        if self.details:
            raise ValidationError.from_exception_data("plan", self.details)


def as_validator(read: Callable[..., Any]) -> Callable[..., Any]:
    """Return `read` as a validator for pydantic, which knows ValueError but not UsageError."""

    @wraps(read)  # pydantic passes a ValidationInfo to functions with a second parameter
    def validate(*arguments: Any) -> Any:
        try:
            return read(*arguments)
        except UsageError as error:
            raise make_mistake(str(error)) from None

    return validate


def read_names(value: Any, find: Callable[[str], Kind], hint: str) -> tuple[Kind, ...]:
    """Return what a name, or each name of a list, stands for."""
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise PydanticCustomError("list_type", "not a list of names")
    mistakes, kinds = Mistakes(), list[Kind]()
    if not names:
        mistakes.add(hint)
    for name in dict.fromkeys(names):
        with mistakes.at():
            kinds.append(find(name))
    mistakes.raise_all()
    return tuple(kinds)


def require_table(value: Any) -> dict[str, Any]:
    """Return a table of parameters; raise the error that pydantic has for other types."""
    if not isinstance(value, dict):
        raise PydanticCustomError("dict_type", "not a table")
    return value


def require_few(entries: Mapping[str, Any], limit: int, noun: str) -> None:
    """Raise UsageError if a table of parameters has too many points; they are counted, not made."""
    count = math.prod(map(count_values, entries.values()))
    if count > limit:
        raise UsageError(f"this makes {count:,} {noun}, more than {limit:,}; make it coarser, or split it")


def read_choices(
    schema: type[Parameters], entries: Mapping[str, Any], mistakes: Mistakes
) -> dict[str, tuple[Any, ...]] | None:
    """Return the values of each parameter in a table; None, and the mistakes, if one of them is wrong."""
    values, before = dict[str, tuple[Any, ...]](), len(mistakes.details)
    # The product is counted before any value is made: a table of a few lines can name 10^18 points.
    with mistakes.at():
        require_few(entries, MAX_CELLS, "points")
    for name, value in entries.items() if len(mistakes.details) == before else ():
        # First the items of a list one by one, so that each mistake among them is reported.
        for item in [*value, value] if isinstance(value, list) else [value]:
            with mistakes.at(name):
                values[name] = read_values(schema, name, item)
    return values if len(mistakes.details) == before else None


def _check_name(name: str) -> str:
    if not name.isprintable():
        raise UsageError(f"name = {name!r} has characters that cannot be printed")
    if len(name) > MAX_NAME_LENGTH:
        raise UsageError(
            f"name = {name[:20]!r}… has {len(name):,} characters, more than {MAX_NAME_LENGTH}; shorten it, "
            "and use description for the rest"
        )
    return name


def read_seeds(value: Any) -> Seeds:
    """A list; `first:last`, both included; or `first:`, a seed of its own for each cell."""
    if isinstance(value, str) and value.endswith(":"):
        start = parse_integer(value[:-1], "seeds")
        if not 0 <= start <= MAX_SEED // 2:
            raise UsageError(f"seeds = {value} must begin with a whole number from 0 to 2^62")
        return SeedsFrom(start)
    if isinstance(value, str) and value.count(":") == 1:
        first, last = (parse_integer(part, "seeds") for part in value.split(":"))
        if not 0 <= first <= last <= MAX_SEED or last - first >= MAX_SEEDS:
            raise UsageError(f"seeds = {value} is not a range of seeds; write for example seeds = '0:99'")
        return range(first, last + 1)
    items = value if isinstance(value, list) else [value]
    seeds = tuple(dict.fromkeys(parse_integer(seed, "seeds") for seed in items))
    if not seeds or min(seeds) < 0 or max(seeds) > MAX_SEED:
        raise UsageError(f"seeds = {value} must be whole numbers from 0 to 2^63 - 1, at least one")
    return seeds


def _read_mechanisms(value: Any, info: ValidationInfo) -> tuple[Mechanism, ...]:
    """Every mechanism of a list, with each choice of its own parameters."""
    if value == ALL:
        return tuple(examples())
    mistakes, mechanisms = Mistakes(), dict[str, Mechanism]()
    entries = [value] if isinstance(value, str) else value
    if not isinstance(entries, list) or not all(isinstance(entry, str | dict) for entry in entries):
        raise PydanticCustomError("list_type", "not a list of mechanisms")
    if not entries:
        mistakes.add("no mechanism is named; write for example mechanisms = ['softmax', 'linear']")
    for entry in entries:
        with mistakes.at():
            for name in [entry] if isinstance(entry, str) else _list_choices(entry):
                mechanism = _load_mechanism(name, (info.context or {}).get("allow", ()))
                mechanisms[mechanism.spelled] = mechanism
    mistakes.raise_all()
    return tuple(mechanisms.values())


def _list_choices(entry: Mapping[str, Any]) -> list[str]:
    """`{ name = "power", beta = [2, 4] }` as `power:beta=2` and `power:beta=4`."""
    name = entry.get("name")
    require_few(entry, MAX_MECHANISMS, "mechanisms")
    if not isinstance(name, str) or name not in MECHANISMS:
        raise UsageError(f"{dict(entry)} names no built-in mechanism; write for example {{name = 'power', beta = 4}}")
    schema = MECHANISMS[name].schema
    values = {key: read_values(schema, key, value) for key, value in entry.items() if key != "name"}
    choices = product(*([f"{key}={format_value(value)}" for value in items] for key, items in values.items()))
    return [f"{name}:{','.join(words)}" if words else name for words in choices]


def _load_mechanism(name: str, allow: Collection[str]) -> Mechanism:
    module, colon, attribute_words = name.partition(":")
    attribute = attribute_words.partition(":")[0]
    is_allowed = name in allow or f"{module}:{attribute}" in allow
    if colon and module not in MECHANISMS and "=" not in attribute and not is_allowed:
        raise UsageError(
            f"{name} would run code that is not part of separatrix; if it is yours, allow it: `allow` {name}"
        )
    return mechanism_from(name)


PlanName = Annotated[str, AfterValidator(as_validator(_check_name))]


class PlanTable(BaseModel):
    """The keys of every table; numbers are exact as they are written."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
    name: PlanName = ""
    mechanisms: Annotated[tuple[Mechanism, ...], PlainValidator(_read_mechanisms)] = Field(
        default=[], validate_default=True
    )
    seeds: Annotated[Seeds, PlainValidator(as_validator(read_seeds))] = (0,)
