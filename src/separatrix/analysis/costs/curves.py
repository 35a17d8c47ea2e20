"""Measured costs of mechanisms as documents; this module does not import torch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

from separatrix.core.documents import Document, Hidden
from separatrix.core.result import Result, Row


class Cost(NamedTuple):
    """The cost at one length."""

    length: int
    seconds: float
    peak_bytes: int
    flops: int
    state_bytes: int


@dataclass(frozen=True)
class CostCurve(Document):
    """The cost of a mechanism on this machine, at each length."""

    mechanism: str
    width: int
    lengths: tuple[int, ...]
    seconds: tuple[float, ...]
    peak_bytes: tuple[int, ...]
    flops: tuple[int, ...]
    state_bytes: tuple[int, ...]
    """Bytes that must be kept after this many tokens to decode the next one."""
    state_is: str
    """The content of `state_bytes`: a state of fixed size, or a cache of keys and values."""
    faster_than_softmax_from: int | None = None
    """The least measured length from which on it is faster than softmax in the same run; None: never."""

    @property
    def costs(self) -> list[Cost]:
        """The cost at each length."""
        columns = (self.lengths, self.seconds, self.peak_bytes, self.flops, self.state_bytes)
        return [Cost(*row) for row in zip(*columns, strict=True)]

    def crossover(self, reference: CostCurve) -> int | None:
        """Return the least measured length from which on this one is faster than `reference`.

        None if it is not. Only lengths measured for both are compared: nothing is extrapolated.
        """
        seconds = dict(zip(reference.lengths, reference.seconds, strict=True))
        start = None
        for cost in reversed([cost for cost in self.costs if cost.length in seconds]):
            if cost.seconds >= seconds[cost.length]:
                break
            start = cost.length
        return start


@dataclass(frozen=True)
class Disagreement(Document):
    """A mechanism that is not timed, because it is wrong or fails."""

    mechanism: str
    disagreement: str
    """The reason."""
    faster_than_softmax_from: None = None


MeasuredCost = CostCurve | Disagreement
"""The cost of a mechanism, or the reason why it is not timed."""


@dataclass(frozen=True, repr=False)
class Bench(Result):
    """The costs of mechanisms in one run, and the cost of softmax in the same run for comparison."""

    kind: ClassVar[str] = "bench"
    columns: ClassVar[tuple[str, ...]] = ("mechanism", *Cost._fields, "faster_than_softmax_from")
    items: ClassVar[tuple[str, Any] | None] = ("costs", MeasuredCost)
    costs: tuple[MeasuredCost, ...]
    softmax: Hidden[MeasuredCost]

    @property
    def curves(self) -> list[CostCurve]:
        """The mechanisms that were timed."""
        return [cost for cost in self.costs if isinstance(cost, CostCurve)]

    @property
    def summary(self) -> str:
        """The mechanisms that were timed, and the longest length."""
        longest = max((length for curve in self.curves for length in curve.lengths), default=0)
        untimed_count = len(self.costs) - len(self.curves)
        suffix = f"; {untimed_count} not timed" if untimed_count else ""
        return f"cost up to n = {longest:,} of {', '.join(curve.mechanism for curve in self.curves)}{suffix}"

    def rows(self) -> list[Row]:
        """One row for each mechanism and length; those that were not timed have none."""
        return [
            {"mechanism": curve.mechanism, **cost._asdict(), "faster_than_softmax_from": curve.faster_than_softmax_from}
            for curve in self.curves
            for cost in curve.costs
        ]


def compare_with_softmax(cost: MeasuredCost, softmax: MeasuredCost) -> MeasuredCost:
    """Return a cost with the length from which on it is faster than softmax, if both were timed."""
    if isinstance(cost, Disagreement) or isinstance(softmax, Disagreement):
        return cost
    return replace(cost, faster_than_softmax_from=cost.crossover(softmax))
