"""Axes as they are typed, `a1=0.5:1.5:400`, `n=1e3:1e18:400:log` or `n=1e3,1e4,1e6`, and their exact values.

From Python a list or a NumPy array is an axis, too: it is read as the values written with commas, or as the
range whose exact values it has but for rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from separatrix.core.numbers import format_exact, parse_exact, parse_integer
from separatrix.core.parameters import Parameters, UsageError
from separatrix.core.parameters.grid import is_whole

FARTHEST = 10**300
"""Floats, and with them pictures, end here."""
MOST_POINTS = 10**6
DIGITS = 6
"""Values on a logarithmic axis are rounded to so many significant digits, more where the axis is fine."""
WIDE = 100
"""What spans this factor is shown, and searched, evenly in its logarithm, unless it is typed otherwise."""
ROUNDED = Fraction(1, 2**51)
"""Floats that are meant to be evenly spaced are off by so much of the largest, or less."""
LONGEST_SHOWN = 60
LISTS = (list, tuple, range)
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
    listed: tuple[Number, ...] = ()
    """The values, where they were written one by one."""

    @property
    def spelled(self) -> str:
        """`name=start:stop...`, as it was typed."""
        return f"{self.name}={self.text}"

    def points(self, count: int) -> tuple[Number, ...]:
        """So many values from end to end; of a whole parameter fewer, where there are no more."""
        return self.listed or _points(self.start, self.stop, self.whole, self.log, count)


@lru_cache(maxsize=64)
def _points(start: Number, stop: Number, whole: bool, log: bool, count: int) -> tuple[Number, ...]:
    """Values from end to end; the axes of a map stay the same while something else is dragged."""
    steps = count - 1
    inner: Iterator[Number]
    if log:
        inner = (_log_value(start, stop, i, steps) for i in range(1, steps))
    else:
        inner = (start + (stop - start) * Fraction(i, steps) for i in range(1, steps))
    values = [start, *(round(value) if whole else value for value in inner), stop]
    return tuple(dict.fromkeys(values))


def _log_value(start: Number, stop: Number, place: int, steps: int) -> Fraction:
    low, high = math.log10(start), math.log10(stop)
    digits = max(DIGITS, math.ceil(math.log10(steps / (high - low))) + 2)
    exponent = low + (high - low) * (place / steps)
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


def is_several(value: object) -> bool:
    """Whether a parameter's value is a range, values with commas, a list or an array."""
    if isinstance(value, str):
        return ":" in value or "," in value
    return isinstance(value, LISTS) or getattr(value, "shape", ()) != ()


def split_axes(parameters: Mapping[str, object]) -> tuple[dict[str, str], dict[str, object]]:
    """The parameters whose values are ranges or several values, as they are typed, and those that are fixed.

    >>> split_axes({"n": [1000, 1e6], "a1": np.linspace(0.5, 1.5, 3), "d": 102})
    ({'n': '1000,1000000', 'a1': '0.5:1.5:3'}, {'d': 102})
    """
    axes = {name: _typed(name, value) for name, value in parameters.items() if is_several(value)}
    return axes, {name: value for name, value in parameters.items() if name not in axes}


def _typed(name: str, value: Any) -> str:
    """An axis as it is typed on the command line."""
    if isinstance(value, str):
        return value
    if len(getattr(value, "shape", (0,))) > 1:
        raise UsageError(f"{name} has {len(value.shape)} dimensions; an axis is a list of numbers")
    values = list(value) if isinstance(value, LISTS) else np.asarray(value).tolist()
    if not values:
        raise UsageError(f"{name} has no values; an axis needs at least 2")
    if len(values) > MOST_POINTS:
        raise UsageError(f"{name} has {len(values):,} points, more than {MOST_POINTS:,}; 400 fill a screen")
    exact = [parse_exact(each, name) for each in values]
    written = [format_exact(each) for each in exact]
    if _are_rounded_range(exact):
        return f"{written[0]}:{written[-1]}:{len(written)}"
    return ",".join(written) if len(written) > 1 else f"{written[0]},"


def _are_rounded_range(values: Sequence[Fraction]) -> bool:
    """Whether these are the values of a range but for the rounding of floats, as `linspace` makes them."""
    steps, size = len(values) - 1, max(map(abs, values))
    if steps < 2 or all(value.denominator == 1 for value in values):
        return False
    meant = (values[0] + (values[-1] - values[0]) * Fraction(i, steps) for i in range(steps + 1))
    return all(abs(each - other) <= ROUNDED * size for each, other in zip(values, meant, strict=True))


def read_counted(model: type[Parameters], name: str, text: str, owner: str | None = None) -> tuple[Span, int]:
    """`start:stop:count`, `start:stop:count:log` or `one,other,…`; the count is to be judged against others.

    >>> from separatrix.constructions.spike import Spike
    >>> span, count = read_counted(Spike.schema, "n", "1e3:1e6:4:log")
    >>> span.points(count)
    (1000, 10000, 100000, 1000000)
    """
    if "," in text:
        return _listed(model, name, text, owner)
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


def _listed(model: type[Parameters], name: str, text: str, owner: str | None) -> tuple[Span, int]:
    """Values written one by one; those of a whole parameter are rounded between the ends, as in a range."""
    parts = [part for part in text.split(",") if part.strip()]
    if len(parts) < 2:
        points = "one point" if parts else "no points"
        raise UsageError(f"{name}={text} has {points}; an axis needs at least 2")
    span = _read(model, name, text, [parts[0], parts[-1]], [], owner)
    inner = [parse_exact(part, name) for part in parts[1:-1]]
    values = [span.start, *(round(value) if span.whole else value for value in inner), span.stop]
    for one, other in pairwise(values):
        if one > other:
            said = f"{format_exact(other)} after {format_exact(one)}"
            raise UsageError(
                f"{name}={_short(text)} has {said}; write the values of an axis in growing order"
            )
    distinct = tuple(dict.fromkeys(values))
    wide = span.start > 0 and span.stop >= WIDE * span.start
    return replace(span, log=wide, listed=distinct), len(distinct)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 1]}…"


def read_span(model: type[Parameters], name: str, text: str, owner: str | None = None) -> Span:
    """`start:stop`, `start:stop:log` or `start,stop`: a range to be searched."""
    parts = text.split("," if "," in text else ":")
    if len(parts) not in (2, 3) or parts[2:] not in ([], ["log"]):
        raise UsageError(
            f"{name}={text} is no range to search; write {name}=start:stop, and `scan` for how finely"
        )
    return _read(model, name, ":".join(parts), parts[:2], parts[2:], owner)


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
        how = "write its values in growing order" if "," in text else f"write {name}={turned}"
        raise UsageError(f"{name}={_short(text)} runs backwards; {how}")
    if start < -FARTHEST or stop > FARTHEST:
        raise UsageError(f"{name}={text} goes beyond 1e300, where axes end")
    if spacing and start <= 0:
        raise UsageError(
            f"{name}={text} starts at {format_exact(start)}; a logarithmic axis needs ends above 0"
        )
    return Span(name, start, stop, whole, bool(spacing), text)
