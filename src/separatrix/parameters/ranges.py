"""Axes as they are typed, `a1=0.5:1.5:400` or `n=1e3:1e18:400:log`, and the exact values they stand for."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from separatrix.numbers import format_exact, parse_exact, parse_integer
from separatrix.parameters import Parameters, UsageError
from separatrix.parameters.grid import is_whole

FARTHEST = 10**300
"""Floats, and with them pictures, end here."""
MOST_POINTS = 10**6
DIGITS = 6
"""Values on a logarithmic axis are rounded to so many significant digits, more where the axis is fine."""
EXAMPLE = "a1=0.5:1.5:100 or n=1e3:1e9:100:log"

Number = int | Fraction
"""An integer for a whole parameter, else a rational."""


@dataclass(frozen=True)
class Span:
    """The two ends of an axis or of a search, and how what lies between is spaced."""

    name: str
    start: Number
    stop: Number
    whole: bool
    log: bool
    text: str
    """The text as it was typed."""

    @property
    def spelled(self) -> str:
        """`name=start:stop...`, as it was typed."""
        return f"{self.name}={self.text}"

    def points(self, count: int) -> tuple[Number, ...]:
        """So many values from end to end; of a whole parameter fewer, where there are no more."""
        if self.log:
            inner = [self._log_value(Fraction(i, count - 1), count) for i in range(1, count - 1)]
        else:
            inner = [
                self.start + (self.stop - self.start) * Fraction(i, count - 1) for i in range(1, count - 1)
            ]
        values = [self.start, *(round(value) if self.whole else value for value in inner), self.stop]
        return tuple(dict.fromkeys(values))

    def _log_value(self, share: Fraction, count: int) -> Fraction:
        low, high = math.log10(self.start), math.log10(self.stop)
        digits = max(DIGITS, math.ceil(math.log10((count - 1) / (high - low))) + 2)
        exponent = low + (high - low) * float(share)
        scale = math.floor(exponent)
        return Fraction(f"{10 ** (exponent - scale):.{min(digits, 15)}g}") * Fraction(10) ** scale


@dataclass(frozen=True)
class Axis:
    """A parameter and the exact values it takes."""

    span: Span
    values: tuple[Number, ...]

    @property
    def name(self) -> str:
        """The parameter."""
        return self.span.name

    @property
    def log(self) -> bool:
        """Whether the values are evenly spaced in their logarithm."""
        return self.span.log

    @property
    def floats(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """The values for a picture."""
        return np.array([float(value) for value in self.values])


def is_axis(value: object) -> bool:
    """Whether a parameter's value spells a range."""
    return isinstance(value, str) and ":" in value


def split_axes(parameters: Mapping[str, object]) -> tuple[dict[str, str], dict[str, object]]:
    """The parameters whose values spell ranges, and those that are fixed."""
    axes = {name: str(value) for name, value in parameters.items() if is_axis(value)}
    return axes, {name: value for name, value in parameters.items() if name not in axes}


def read_counted(model: type[Parameters], name: str, text: str, owner: str | None = None) -> tuple[Span, int]:
    """`start:stop:count` or `start:stop:count:log`, with the count still to be judged against others.

    >>> from separatrix.constructions.spike import Spike
    >>> span, count = read_counted(Spike.schema, "n", "1e3:1e6:4:log")
    >>> span.points(count)
    (1000, 10000, 100000, 1000000)
    """
    parts = text.split(":")
    if len(parts) not in (3, 4):
        raise UsageError(f"{name}={text} is no axis; write {name}=start:stop:count, for example {EXAMPLE}")
    try:
        count = parse_integer(parts[2], name)
    except UsageError:
        count = -1
    if count < 0:
        raise UsageError(f"{name}={text}: the count {parts[2]} is not a whole number of points")
    if count > MOST_POINTS:
        raise UsageError(f"{name}={text} has {parts[2]} points, more than {MOST_POINTS:,}; 400 fill a screen")
    if count < 2:
        points = "one point" if count == 1 else "no points"
        raise UsageError(f"{name}={text} has {points}; an axis needs at least 2")
    return _read(model, name, text, parts[:2], parts[3:], owner), count


def read_span(model: type[Parameters], name: str, text: str, owner: str | None = None) -> Span:
    """`start:stop` or `start:stop:log`, a range to be searched."""
    parts = text.split(":")
    if len(parts) not in (2, 3) or parts[2:] not in ([], ["log"]):
        raise UsageError(
            f"{name}={text} is no range to search; write {name}=start:stop, and `scan` for how finely"
        )
    return _read(model, name, text, parts[:2], parts[2:], owner)


def _read(
    model: type[Parameters], name: str, text: str, ends: list[str], spacing: list[str], owner: str | None
) -> Span:
    if name not in model.model_fields:
        raise UsageError(model.unknown(name, owner))
    whole = is_whole(model, name)
    read: Callable[[str, str], Number] = parse_integer if whole else parse_exact
    start, stop = read(ends[0], name), read(ends[1], name)
    if spacing not in ([], ["log"]):
        raise UsageError(f"{name}={text} ends in {spacing[0]}; the only word that can stand there is log")
    if start == stop:
        raise UsageError(f"{name}={text} has no length; give two different ends, or write {name}={ends[0]}")
    if start > stop:
        turned = ":".join((ends[1], ends[0], *text.split(":")[2:]))
        raise UsageError(f"{name}={text} runs backwards; write {name}={turned}")
    if start < -FARTHEST or stop > FARTHEST:
        raise UsageError(f"{name}={text} goes beyond 1e300, where axes end")
    if spacing and start <= 0:
        raise UsageError(
            f"{name}={text} starts at {format_exact(start)}; a logarithmic axis needs ends above 0"
        )
    return Span(name, start, stop, whole, bool(spacing), text)
