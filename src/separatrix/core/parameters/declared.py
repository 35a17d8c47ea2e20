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
from typing import Annotated, Any, ClassVar, Literal, cast

from pydantic import create_model

from separatrix.core.numbers.exact import format_exact, parse_exact
from separatrix.core.parameters.model import Constraint, Exact, Flag, Natural, Parameters, parse_as

REQUIRED: Any = ...
Number = Fraction | int


class Declared:
    """A declared parameter. On an instance, its value; one that was not given is derived from the others."""

    def __init__(self, kind: Any, default: Any, **limits: Any) -> None:
        """`limits` are arguments of `limit`."""
        self.kind, self.default, self.limits = kind, default, limits

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        value = getattr(instance.parameters, self.name)
        return instance.parameters.complete_values()[self.name] if value is None else value


def limit(
    name: str,
    low: Number | None = None,
    high: Number | None = None,
    *,
    excludes_low: bool = False,
    word: str | None = None,
) -> Constraint:
    """Return the constraint that a parameter lies between two numbers; None for no end.

    The ends are allowed, except the lower one if `excludes_low`. `word` is allowed instead of a number.
    """

    def holds(values: Any) -> Any:
        # The values may be arrays, one for each point of a grid; `&` works for both.
        value = getattr(values, name)
        if word is not None and isinstance(value, str):
            return True
        above = low is None or (value > low if excludes_low else value >= low)
        return above & (value <= high if high is not None else True)

    def message(values: Any) -> str:
        value = format_exact(getattr(values, name))
        limits = _describe_limits(low, high, excludes_low)
        permitted = limits if word is None else f"{word}, or {limits}"
        return f"{name}={value} is out of range; {name} must be {permitted}"

    return Constraint((name,), holds, message)


def _describe_limits(low: Number | None, high: Number | None, excludes_low: bool) -> str:
    ends = [_short(end) for end in (low, high) if end is not None]
    if low is None:
        return f"{ends[0]} or less"
    if excludes_low:
        return ", up to ".join(["above " + ends[0], *ends[1:]])
    return " to ".join(ends) if high is not None else f"{ends[0]} or more"


def natural(default: int | None = REQUIRED, *, at_least: int | None = None, at_most: int | None = None) -> Any:
    """Declare a whole number of any size; `1e18` is one."""
    return Declared(Natural if default is not None else Natural | None, default, low=at_least, high=at_most)


def random_seed() -> Any:
    """Declare the seed of a generator of random numbers."""
    return natural(0, at_least=0, at_most=2**63 - 1)


def exact(
    default: str | Number | None = REQUIRED,
    *,
    at_least: Number | None = None,
    above: Number | None = None,
    at_most: Number | None = None,
    word: str | None = None,
) -> Any:
    """Declare a rational number, which is read exactly as it is written: 0.1 is 1/10.

    `above` is a lower limit that is not itself allowed; `word` is a word that may be given instead.
    """
    value = default
    if isinstance(default, str | int | Fraction) and default != word:
        value = Fraction(default)

    def parse(value: object, name: str) -> Fraction | str:
        return word if word is not None and value == word else parse_exact(value, name)

    kind: Any = Exact if word is None else Annotated[Fraction | str, parse_as(parse)]
    low, excludes_low = (at_least, False) if above is None else (above, True)
    kind = kind if default is not None else kind | None
    return Declared(kind, value, low=low, high=at_most, excludes_low=excludes_low, word=word)


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
        # Not getattr: a subclass must not find the schema of its base, which lacks its own parameters.
        schema = owner.__dict__.get("_schema")
        if schema is None:
            schema = owner._schema = _build(owner)
        return cast("type[Parameters]", schema)


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
    parameters: dict[str, Declared] = {}
    # From the base to the subclass: later declarations replace earlier ones, and keep their position.
    for base in reversed(owner.__mro__):
        for name, value in vars(base).items():
            if isinstance(value, Declared):
                parameters[name] = value
            else:
                parameters.pop(name, None)  # a subclass that fixes a parameter no longer takes it
    fields: dict[str, Any] = {name: (parameter.kind, parameter.default) for name, parameter in parameters.items()}
    schema = create_model(f"{owner.__name__}Parameters", __base__=Parameters, **fields)
    limits = [
        limit(name, **parameter.limits)
        for name, parameter in parameters.items()
        if any(parameter.limits.get(end) is not None for end in ("low", "high"))
    ]
    schema.owner = owner.owner_name or owner.name
    schema.constraints = (*limits, *owner.relations)
    schema.derive = owner.fill_derived  # type: ignore[method-assign]
    # Pickle finds a class by this path: parameters are sent to worker processes.
    schema.__module__, schema.__qualname__ = owner.__module__, f"{owner.__qualname__}.schema"
    return schema


def _short(value: Number) -> str:
    """Write a limit as people do: in full, as a power of two, or with an exponent.

    >>> [_short(value) for value in (2, 10**6, 2**20, 2**63 - 1, Fraction(-1, 10**12))]
    ['2', '1e6', '2^20', '2^63 - 1', '-1e-12']
    """
    if value == 0 or 10**-3 <= abs(float(value)) < 10**6:
        return format_exact(value)
    if isinstance(value, int):
        for less, ending in ((0, ""), (1, " - 1")):
            if value > 0 and (value + less).bit_count() == 1:
                return f"2^{(value + less).bit_length() - 1}{ending}"
    mantissa, exponent = f"{float(value):.0e}".split("e")
    return f"{mantissa}e{int(exponent)}"
