"""Validated, frozen parameter sets, and one-line errors for invalid values."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Self, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, ValidationInfo

from separatrix.core.errors import UsageError
from separatrix.core.numbers.exact import format_exact, parse_exact, parse_integer

Value = TypeVar("Value")


def parse_as(parse: Callable[[Any, str], Value]) -> BeforeValidator:
    """Return the pydantic validator that parses a value with the name of its parameter in errors."""

    def validate(value: object, info: ValidationInfo) -> Value:
        return parse(value, info.field_name or "value")

    return BeforeValidator(validate)


Exact = Annotated[Fraction, parse_as(parse_exact)]
"""A rational number, exactly as written."""


def _parse_flag(value: object, name: str) -> bool:
    words = {"yes": True, "true": True, "no": False, "false": False}
    if str(value).lower() not in words:
        raise UsageError(f"{name}={value} is neither yes nor no")
    return words[str(value).lower()]


Flag = Annotated[bool, parse_as(_parse_flag)]
"""yes or no."""

Natural = Annotated[int, parse_as(parse_integer)]
"""An integer of any size; `1e18` is one."""


@dataclass(frozen=True)
class Constraint:
    """A constraint on parameters, for single points and for whole grids.

    `holds` receives an object with the parameters as attributes: numbers, or NumPy object arrays.
    """

    names: tuple[str, ...]
    holds: Callable[[Any], Any]
    message: Callable[[Any], str]


class Parameters(BaseModel):
    """The base class of parameter sets: frozen, exact, without unknown names."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)
    owner: ClassVar[str] = "this"
    constraints: ClassVar[tuple[Constraint, ...]] = ()

    @classmethod
    def read(cls, values: Mapping[str, object], owner: str | None = None) -> Self:
        """Validate `values`, or raise a one-line UsageError on behalf of `owner`."""
        parameters = cls.read_each(values, owner)
        for constraint in cls.constraints:
            is_given = not any(is_absent(getattr(parameters, name)) for name in constraint.names)
            if is_given and not constraint.holds(parameters):
                raise UsageError(constraint.message(parameters))
        return parameters

    @classmethod
    def read_each(cls, values: Mapping[str, object], owner: str | None = None) -> Self:
        """Like `read`, without checking constraints."""
        unknown_name = next((name for name in values if name not in cls.model_fields), None)
        if unknown_name is not None:
            raise UsageError(cls.describe_unknown(unknown_name, owner))
        cls.require_all(values)
        try:
            return cls(**values)
        except ValidationError as error:
            raise UsageError(_one_line(error)) from None

    @classmethod
    def require_all(cls, names_given: Container[str]) -> None:
        """Raise a UsageError if a parameter without a default is missing."""
        missing = [name for name, field in cls.model_fields.items() if field.is_required() and name not in names_given]
        if missing:
            names = " ".join(f"{name}=…" for name in cls.model_fields)
            raise UsageError(f"{cls.owner} needs {', '.join(missing)} as well; its parameters are: {names}")

    @classmethod
    def describe_unknown(cls, name: str, owner: str | None = None) -> str:
        """Return the error message for an unknown parameter name."""
        names = list(cls.model_fields)
        if not names:
            return f"{owner or cls.owner} takes no parameters, so not {name}"
        return f"{cls.owner} has no parameter {name}{nearest(name, names)}; it has: {', '.join(names)}"

    @classmethod
    def derive(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Fill in parameters that follow from others; numbers or arrays of them."""
        return values

    def complete_values(self) -> dict[str, Any]:
        """Return all parameters, with derived ones filled in."""
        return self.derive({name: getattr(self, name) for name in type(self).model_fields})

    def given_values(self) -> dict[str, Any]:
        """Return the parameters that have a value."""
        return {name: value for name in type(self).model_fields if (value := getattr(self, name)) is not None}

    def as_json(self) -> dict[str, int | str]:
        """Return the parameters as they are printed and stored: integers, and exact decimals as text."""
        return {name: format_value(value) for name, value in self.given_values().items()}

    def non_default_values(self) -> dict[str, int | str]:
        """Return the parameters that differ from their defaults."""
        defaults = {name: field.default for name, field in type(self).model_fields.items()}
        return {name: value for name, value in self.as_json().items() if getattr(self, name) != defaults[name]}


def format_value(value: Any) -> int | str:
    """Return a value as it is printed and stored: an integer, or exact text for a rational."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return format_exact(value) if isinstance(value, Fraction) else value


def is_absent(value: Any) -> bool:
    """Whether an optional parameter, or a column of it, is missing."""
    return value is None or (getattr(value, "shape", None) == () and value.item() is None)


NEAR = {3: 0.5, 6: 0.65}
"""The similarity required for a suggestion, for names with fewer letters than the key."""
LONG_NEAR = 0.72
MAX_LISTED = 20
"""The maximum number of names listed in an error."""
MAX_BESIDE = 8
"""The same if a similar name is suggested."""
LISTED_BY = {
    **{kind: f"separatrix list {kind}s" for kind in ("mechanism", "construction", "claim", "task")},
    "schema": "separatrix schema",
}
"""The commands that list the names."""


def nearest(name: str, names: list[str]) -> str:
    """Return a suggestion to append to an error about `name`, or an empty text if no name is similar.

    >>> nearest("sofmax", ["softmax", "linear"]), nearest("flash", ["gla", "linear"])
    (' (did you mean softmax?)', '')
    """
    cutoff = next((share for length, share in NEAR.items() if len(name) < length), LONG_NEAR)
    close = get_close_matches(name.lower(), [known_name.lower() for known_name in names], n=1, cutoff=cutoff)
    match = next((known_name for known_name in names if close and known_name.lower() == close[0]), None)
    return f" (did you mean {match}?)" if match else ""


def find_known(kind: str, name: str, available: Mapping[str, Value], example: str) -> Value:
    """Return the entry called `name`, or raise a UsageError that lists the available names."""
    if not isinstance(name, str):
        raise UsageError(f"{name!r} is not the name of a {kind}; write for example {example!r}")
    require_known(kind, name, available)
    return available[name]


def require_known(kind: str, name: str, available: Iterable[str]) -> None:
    """Raise a UsageError that lists the available names, unless `name` is among them.

    >>> require_known("engine", "dens", ["closed", "dense"])
    Traceback (most recent call last):
    separatrix.core.errors.UsageError: there is no engine dens (did you mean dense?); there are: closed, dense
    """
    if name in (names := list(dict.fromkeys(available))):
        return
    near = nearest(name, names)
    is_long = len(names) > (MAX_BESIDE if near else MAX_LISTED)
    command = LISTED_BY.get(kind) if is_long else None
    there_are = f"{command} has all {len(names)}" if command else f"there are: {', '.join(names)}"
    complaint = f"there is no {kind} {name}{near}" if name.strip() else f"no {kind} is given"
    raise UsageError(f"{complaint}; {there_are}")


def _one_line(error: ValidationError) -> str:
    first = error.errors()[0]
    context = first.get("ctx", {})
    name = ".".join(str(part) for part in first["loc"])
    if first["type"] == "literal_error":
        return f"{name}={first['input']} is not one of {context['expected'].replace(chr(39), '')}"
    return f"{name}={first['input']}: {first['msg']}"
