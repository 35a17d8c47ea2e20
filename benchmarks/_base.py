"""A measurement against what was promised."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Measurement:
    """One line of the table."""

    what: str
    measured: float
    unit: str
    wanted: float
    at_most: bool
    """Whether `wanted` is an upper bound; else a lower one."""

    @property
    def met(self) -> bool:
        """Whether the promise is kept."""
        return self.measured <= self.wanted if self.at_most else self.measured >= self.wanted


def at_most(what: str, measured: float, unit: str, wanted: float) -> Measurement:
    """A promise not to exceed."""
    return Measurement(what, measured, unit, wanted, True)


def at_least(what: str, measured: float, unit: str, wanted: float) -> Measurement:
    """A promise to reach."""
    return Measurement(what, measured, unit, wanted, False)


def seconds(run: Callable[[], object], repeats: int = 5) -> float:
    """The best of a few runs, after one to warm up: what the machine can do when left alone."""
    run()
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


def ratio(slow: Callable[[], object], fast: Callable[[], object], repeats: int = 5) -> float:
    """How many times as long the one takes as the other, run in turns: the median of the pairs."""
    pairs = [(seconds(slow, 1), seconds(fast, 1)) for _ in range(repeats)]
    return median(one / other for one, other in pairs)


def require(agreement: bool, what: str) -> None:
    """No number is printed for a computation that is wrong."""
    if not agreement:
        raise SystemExit(f"not timed, because it is wrong: {what}")
