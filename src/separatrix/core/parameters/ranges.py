"""Axes as they are typed, `a1=0.5:1.5:400`, `n=1e3:1e18:400:log` or `n=1e3,1e4,1e6`, and their exact values.

In Python, a list or a NumPy array is an axis, too: it is read as comma-separated values, or as the range
whose values it has up to rounding.
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

from separatrix.core.documents import Document, Hidden, shown
from separatrix.core.numbers import format_exact, parse_exact, parse_integer
from separatrix.core.parameters import Parameters, UsageError
from separatrix.core.parameters.grid import is_whole

FARTHEST = 10**300
"""The limit of axes, close to the largest float."""
MOST_POINTS = 10**6
DIGITS = 6
"""Significant digits of values on a logarithmic axis; fine axes have more."""
WIDE = 100
"""Axes that span this factor are logarithmic by default."""
ROUNDED = Fraction(1, 2**51)
"""The rounding error of evenly spaced floats, relative to the largest."""
LONGEST_SHOWN = 60
LISTS = (list, tuple, range)
EXAMPLE = "a1=0.5:1.5:100 or n=1e3:1e9:100:log"

Number = int | Fraction
"""An integer for integer parameters, otherwise a rational."""


@dataclass(frozen=True)
class Span:
    """The ends of an axis or of a search range, and the spacing between them."""

    name: str
    start: Number
    stop: Number
    whole: bool
    log: bool
    text: str
    """The text as typed."""
    listed: tuple[Number, ...] = ()
    """The values, if they were listed individually."""

    @property
    def spelled(self) -> str:
        """The axis as typed, `name=start:stop...`."""
        return f"{self.name}={self.text}"

    def points(self, count: int) -> tuple[Number, ...]:
        """Return `count` values from end to end; fewer if an integer parameter has no more."""
        return self.listed or _points(self.start, self.stop, self.whole, self.log, count)


@lru_cache(maxsize=64)
def _points(start: Number, stop: Number, is_integer: bool, log: bool, count: int) -> tuple[Number, ...]:
    """Return values from end to end. Cached, since the axes of a map stay while a slider moves."""
    steps = count - 1
    inner: Iterator[Number]
    if log:
        inner = (_log_value(start, stop, i, steps) for i in range(1, steps))
    else:
        inner = (start + (stop - start) * Fraction(i, steps) for i in range(1, steps))
    # The ends are kept as given: rounding a logarithm could move them beyond what was asked.
    values = [start, *(round(value) if is_integer else value for value in inner), stop]
    return tuple(dict.fromkeys(values))


def _log_value(start: Number, stop: Number, place: int, steps: int) -> Fraction:
    low, high = math.log10(start), math.log10(stop)
    # The relative distance of neighbours is of order (high - low)/steps; two more digits keep them apart.
    digits = max(DIGITS, math.ceil(math.log10(steps / (high - low))) + 2)
    exponent = low + (high - low) * (place / steps)
    scale = math.floor(exponent)
    return Fraction(f"{10 ** (exponent - scale):.{min(digits, 15)}g}") * Fraction(10) ** scale


@dataclass(frozen=True)
class Axis(Document):
    """A parameter and its exact values."""

    span: Hidden[Span]
    values: tuple[Number, ...]

    @shown
    def name(self) -> str:
        """The parameter."""
        return self.span.name

    @shown
    def log(self) -> bool:
        """Whether the values are evenly spaced in their logarithm."""
        return self.span.log

    @property
    def floats(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """The values as floats, for figures."""
        return np.array([float(value) for value in self.values])


def is_axis(value: object) -> bool:
    """Whether a value is a range such as 0.5:1.5:100."""
    return isinstance(value, str) and ":" in value


def is_several(value: object) -> bool:
    """Whether a value is a range, comma-separated values, a list or an array."""
    if isinstance(value, str):
        return ":" in value or "," in value
    return isinstance(value, LISTS) or getattr(value, "shape", ()) != ()


def split_axes(parameters: Mapping[str, object]) -> tuple[dict[str, str], dict[str, object]]:
    """Separate parameters that are axes, as typed, from those that are fixed.

    >>> split_axes({"n": [1000, 1e6], "a1": np.linspace(0.5, 1.5, 3), "d": 102})
    ({'n': '1000,1000000', 'a1': '0.5:1.5:3'}, {'d': 102})
    """
    axes = {name: _format_axis(name, value) for name, value in parameters.items() if is_several(value)}
    return axes, {name: value for name, value in parameters.items() if name not in axes}


def _format_axis(name: str, value: Any) -> str:
    """Return an axis as it is typed on the command line."""
    if isinstance(value, str):
        return value
    if len(getattr(value, "shape", (0,))) > 1:
        raise UsageError(f"{name} has {len(value.shape)} dimensions; an axis is a list of numbers")
    values = list(value) if isinstance(value, LISTS) else np.asarray(value).tolist()
    if not values:
        raise UsageError(f"{name} has no values; an axis needs at least 2")
    if len(values) > MOST_POINTS:
        raise UsageError(f"{name} has {len(values):,} points, more than {MOST_POINTS:,}; 400 fill a screen")
    exact = [parse_exact(value, name) for value in values]
    texts = [format_exact(value) for value in exact]
    if _are_rounded_range(exact):
        return f"{texts[0]}:{texts[-1]}:{len(texts)}"
    return ",".join(texts) if len(texts) > 1 else f"{texts[0]},"


def _are_rounded_range(values: Sequence[Fraction]) -> bool:
    """Whether the values are a range up to float rounding, as `linspace` returns them."""
    steps, size = len(values) - 1, max(map(abs, values))
    if steps < 2 or all(value.denominator == 1 for value in values):
        return False
    ideal = (values[0] + (values[-1] - values[0]) * Fraction(i, steps) for i in range(steps + 1))
    return all(abs(value - target) <= ROUNDED * size for value, target in zip(values, ideal, strict=True))


def read_counted(model: type[Parameters], name: str, text: str) -> tuple[Span, int]:
    """Parse `start:stop:count`, `start:stop:count:log` or `first,second,…`, and return the span and count.

    >>> from separatrix.constructions.spike import Spike
    >>> span, count = read_counted(Spike.schema, "n", "1e3:1e6:4:log")
    >>> span.points(count)
    (1000, 10000, 100000, 1000000)
    """
    if "," in text:
        return _read_listed(model, name, text)
    parts = text.split(":")
    if len(parts) not in (3, 4):
        raise UsageError(f"{name}={text} is not an axis; write {name}=start:stop:count, for example {EXAMPLE}")
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
    return _read(model, name, text, parts[:2], parts[3:]), count


def _read_listed(model: type[Parameters], name: str, text: str) -> tuple[Span, int]:
    """Parse individual values; those of an integer parameter are rounded, as in a range."""
    parts = [part for part in text.split(",") if part.strip()]
    if len(parts) < 2:
        points = "one point" if parts else "no points"
        raise UsageError(f"{name}={text} has {points}; an axis needs at least 2")
    span = _read(model, name, text, [parts[0], parts[-1]], [])
    inner = [parse_exact(part, name) for part in parts[1:-1]]
    values = [span.start, *(round(value) if span.whole else value for value in inner), span.stop]
    for previous, value in pairwise(values):
        if previous > value:
            order = f"{format_exact(value)} after {format_exact(previous)}"
            raise UsageError(f"{name}={_short(text)} has {order}; write the values of an axis in growing order")
    distinct = tuple(dict.fromkeys(values))
    wide = span.start > 0 and span.stop >= WIDE * span.start
    return replace(span, log=wide, listed=distinct), len(distinct)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 1]}…"


def read_span(model: type[Parameters], name: str, text: str) -> Span:
    """Parse a search range: `start:stop`, `start:stop:log` or `start,stop`."""
    parts = text.split("," if "," in text else ":")
    if len(parts) not in (2, 3) or parts[2:] not in ([], ["log"]):
        raise UsageError(f"{name}={text} is not a search range; write {name}=start:stop, and `scan` for how finely")
    return _read(model, name, ":".join(parts), parts[:2], parts[2:])


def _read(model: type[Parameters], name: str, text: str, ends: list[str], spacing: list[str]) -> Span:
    if name not in model.model_fields:
        raise UsageError(model.describe_unknown(name))
    is_integer = is_whole(model, name)
    read: Callable[[str, str], Number] = parse_integer if is_integer else parse_exact
    start, stop = read(ends[0], name), read(ends[1], name)
    if spacing not in ([], ["log"]):
        raise UsageError(f"{name}={text} ends in {spacing[0]}; the only word that can stand there is log")
    if start == stop:
        raise UsageError(f"{name}={text} has no length; give two different ends, or write {name}={ends[0]}")
    if start > stop:
        reversed_text = ":".join((ends[1], ends[0], *text.split(":")[2:]))
        advice = "write its values in growing order" if "," in text else f"write {name}={reversed_text}"
        raise UsageError(f"{name}={_short(text)} runs backwards; {advice}")
    if start < -FARTHEST or stop > FARTHEST:
        raise UsageError(f"{name}={text} goes beyond 1e300, where axes end")
    if spacing and start <= 0:
        raise UsageError(f"{name}={text} starts at {format_exact(start)}; a logarithmic axis needs ends above 0")
    return Span(name, start, stop, is_integer, bool(spacing), text)
