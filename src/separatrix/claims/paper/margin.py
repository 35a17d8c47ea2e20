"""What survives a better threshold, the margin, and when number formats lose it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from separatrix.claims.paper.base import BASE
from separatrix.constructions.spike import Spike
from separatrix.core.parameters import Grid
from separatrix.exact.engines import closed
from separatrix.exact.verdicts import lost_from
from separatrix.mechanisms import mechanism_named

MECHANISMS = ("softmax", "power:beta=4", "taylor:order=2", "linear")
LAST_DECADE = 20


@dataclass(frozen=True)
class MarginCurve:
    """The relative margin of one mechanism over n, and where it is lost in number formats."""

    mechanism: str
    n: tuple[int, ...]
    margin: tuple[float, ...]
    relative: tuple[float, ...]
    """margin / v(D1) = 2^-bits."""
    lost: Mapping[str, int | None]
    relative_when_lost: Mapping[str, float]

    def at(self, n: int) -> float:
        """The margin at one of the curve's n, in units of sqrt(log n)."""
        return self.margin[self.n.index(n)]


def compute() -> tuple[MarginCurve, ...]:
    """Every mechanism from n = 100 to 10^20; powers of ten are always among the n."""
    decades = [10**i for i in range(2, LAST_DECADE + 1)]
    between = [100 * round(10 ** (i / 8)) for i in range(8 * (LAST_DECADE - 2))]
    n = sorted({*decades, *between})
    return tuple(_curve(mechanism, n) for mechanism in MECHANISMS)


def _curve(mechanism: str, n: list[int]) -> MarginCurve:
    attends = mechanism_named(mechanism)
    lost = lost_from(Spike.read(BASE), attends)
    ends = {name: size for name, size in lost.items() if size is not None}
    fixed = {name: value for name, value in BASE.items() if name != "n"}
    grid = closed.evaluate(Spike, attends, Grid(fixed, ({"n": [*n, *ends.values()]},)))
    relative = [float(x) for x in grid.margin / grid.v1]
    return MarginCurve(
        mechanism,
        tuple(n),
        tuple(float(x) for x in grid.margin[: len(n)]),
        tuple(relative[: len(n)]),
        lost,
        dict(zip(ends, relative[len(n) :], strict=True)),
    )
