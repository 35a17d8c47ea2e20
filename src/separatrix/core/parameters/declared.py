"""Parameters declared as attributes of the class that they belong to.

>>> class Window(Parametrised):
...     name = "window"
...     size: int = natural(64, at_least=1)
>>> Window.schema.read({"size": "1e3"}).size
1000
>>> Window.schema.read({"size": 0})
Traceback (most recent call last):
separatrix.core.errors.UsageError: size=0 is out of range; size must be 1 or more
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar, Literal, cast

from pydantic import create_model

from separatrix.core.numbers.exact import format_exact
from separatrix.core.parameters.model import Constraint, Exact, Flag, Natural, Parameters

REQUIRED: Any = ...
Number = Fraction | int


class Declared:
    """A declared parameter. On an instance, its value; one that was not given is derived from the others."""

    def __init__(
        self, kind: Any, default: Any, low: Number | None = None, high: Number | None = None
    ) -> None:
        self.kind, self.default, self.low, self.high = kind, default, low, high

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        value = getattr(instance.parameters, self.name)
        return instance.parameters.filled()[self.name] if value is None else value

    def bounds(self) -> tuple[Constraint, ...]:
        """Return the constraint that keeps the parameter within its limits, if it has any."""
        return () if self.low is None and self.high is None else (limit(self.name, self.low, self.high),)


def limit(name: str, low: Number | None = None, high: Number | None = None) -> Constraint:
    """Return the constraint that a parameter lies between two numbers, ends included; None for no end."""

    def holds(values: Any) -> Any:
        # The values may be arrays, one for each point of a grid; `&` works for both.
        value = getattr(values, name)
        return (value >= low if low is not None else True) & (value <= high if high is not None else True)

    def message(values: Any) -> str:
        limits = " to ".join(_short(end) for end in (low, high) if end is not None)
        more = " or less" if low is None else " or more" if high is None else ""
        given = format_exact(getattr(values, name))
        return f"{name}={given} is out of range; {name} must be {limits}{more}"

    return Constraint((name,), holds, message)


def natural(
    default: int | None = REQUIRED, *, at_least: int | None = None, at_most: int | None = None
) -> Any:
    """Declare a whole number of any size; `1e18` is one."""
    return Declared(Natural if default is not None else Natural | None, default, at_least, at_most)


def exact(
    default: str | Number | None = REQUIRED, *, at_least: Number | None = None, at_most: Number | None = None
) -> Any:
    """Declare a rational number, which is read exactly as it is written: 0.1 is 1/10."""
    value = Fraction(default) if isinstance(default, str | int | Fraction) else default
    return Declared(Exact if default is not None else Exact | None, value, at_least, at_most)


def flag(default: bool) -> Any:
    """Declare a parameter that is yes or no."""
    return Declared(Flag, default)


def choice(*words: str, default: str = REQUIRED) -> Any:
    """Declare a parameter that is one of a few words."""
    return Declared(Literal[words], default)


def text(default: str | None = REQUIRED) -> Any:
    """Declare a parameter that is text, which `relations` may restrict."""
    return Declared(str if default is not None else str | None, default)


class _Schema:
    """Builds the parameter set of a class when it is first needed, which keeps imports fast."""

    def __get__(self, instance: object | None, owner: type[Parametrised]) -> type[Parameters]:
        known = owner.__dict__.get("_schema")
        if known is None:
            known = owner._schema = _build(owner)
        return cast("type[Parameters]", known)


class Parametrised:
    """A class whose parameters are declared as attributes; `parameters` of an instance holds their values."""

    name: ClassVar[str]
    owner_name: ClassVar[str] = ""
    """The name in error messages, where it differs from `name`."""
    relations: ClassVar[tuple[Constraint, ...]] = ()
    """Constraints between parameters."""
    schema: ClassVar[type[Parameters]] = cast("type[Parameters]", _Schema())
    _schema: ClassVar[type[Parameters]]
    parameters: Any

    @classmethod
    def fill_derived(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Fill in parameters that follow from others; the values are numbers, or arrays of them."""
        return values


def _build(owner: type[Parametrised]) -> type[Parameters]:
    declared: dict[str, Declared] = {}
    for base in reversed(owner.__mro__):
        for name, value in vars(base).items():
            if isinstance(value, Declared):
                declared[name] = value
            else:
                declared.pop(name, None)  # a subclass that fixes a parameter no longer takes it
    fields: dict[str, Any] = {name: (each.kind, each.default) for name, each in declared.items()}
    schema = create_model(f"{owner.__name__}Parameters", __base__=Parameters, **fields)
    bounds = [bound for each in declared.values() for bound in each.bounds()]
    schema.owner = owner.owner_name or owner.name
    schema.constraints = (*bounds, *owner.relations)
    schema.derive = owner.fill_derived  # type: ignore[method-assign]
    # Pickle finds a class by this path: parameters are sent to worker processes.
    schema.__module__, schema.__qualname__ = owner.__module__, f"{owner.__qualname__}.schema"
    return schema


def _short(value: Number) -> str:
    plain = value == 0 or Fraction(1, 1000) <= value < 10**6
    return format_exact(value) if plain else f"{float(value):.0e}"
