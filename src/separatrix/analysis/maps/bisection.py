"""Where a step function changes sides: every change a scan shows, narrowed down by sections."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from separatrix.core.parameters.ranges import Number


@dataclass(frozen=True)
class LevelReading:
    """P at one value of the parameter, and on which side of the level it lies."""

    value: Number
    p: float
    side: int | None
    """The sign of P - level, 0 where P is the level exactly; None if the evidence leaves it open."""
    certified: bool = False
    """Whether the side is proved."""


SideChange = tuple[LevelReading, LevelReading]
"""Two readings on different sides."""


@dataclass(frozen=True)
class Bisection:
    """How to read, where between two values to read next, and when to stop."""

    read: Callable[[Sequence[Number]], list[LevelReading]]
    between: Callable[[Number, Number], list[Number]]
    """Values strictly between two; none where they are close enough."""

    def changes(self, readings: Sequence[LevelReading]) -> Iterator[SideChange]:
        """Every change of side among readings in order, narrowed down.

        If finer readings show several changes where there seemed to be one, all of them are found.
        """
        for stretch in _stretches(readings):
            places = [v for one, other in _gaps(stretch) for v in self.between(one.value, other.value)]
            if places:
                yield from self.changes(sorted([*stretch, *self.read(places)], key=lambda each: each.value))
            else:
                yield stretch[0], stretch[-1]


def _stretches(readings: Sequence[LevelReading]) -> Iterator[list[LevelReading]]:
    """From a decided reading to the next one on the other side, with the open ones between them."""
    last: int | None = None
    for i, reading in enumerate(readings):
        if reading.side is None:
            continue
        if last is not None and readings[last].side != reading.side:
            yield list(readings[last : i + 1])
        last = i


def _gaps(stretch: list[LevelReading]) -> list[SideChange]:
    """Where to look closer: between the two, or from either to the open readings nearest to it."""
    if len(stretch) == 2:
        return [(stretch[0], stretch[1])]
    return [(stretch[0], stretch[1]), (stretch[-2], stretch[-1])]


def sections(low: Fraction, high: Fraction, count: int) -> list[Number]:
    """So many short decimals between two rationals, about evenly spaced.

    >>> sections(Fraction(0), Fraction(1), 3)
    [Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)]
    """
    width = (high - low) / (count + 1)
    scale = 1
    while scale * width < 4:
        scale *= 10
    rounded = (Fraction(round((low + width * i) * scale), scale) for i in range(1, count + 1))
    return [value for value in dict.fromkeys(rounded) if low < value < high]


def whole_sections(low: int, high: int, step: int, count: int) -> list[Number]:
    """At most so many multiples of `step` strictly between two of them.

    >>> whole_sections(100, 500, 100, 9), whole_sections(3, 11, 1, 1)
    ([200, 300, 400], [7])
    """
    first, last = low // step + 1, -(-high // step) - 1
    inside = last - first + 1
    if inside <= count:
        return [step * i for i in range(first, last + 1)]
    return [step * (first + inside * i // (count + 1)) for i in range(1, count + 1)]
