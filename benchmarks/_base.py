"""Measurements, the promises that they are compared with, and how times are taken."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from statistics import median

MIN_SECONDS = 1.0
"""A ratio of times is measured for at least this long: short runs need many pairs for a steady median."""
MAX_PAIRS = 200


class WrongResult(Exception):
    """The computation to be timed gives a wrong result, so it has no time worth printing."""


@dataclass(frozen=True)
class Measurement:
    """One line of the table."""

    what: str
    measured: float
    """NaN if the measurement failed."""
    unit: str
    wanted: float
    at_most: bool
    """Whether `wanted` is an upper bound; else a lower one."""
    failure: str = ""
    """Why there is no number; empty if there is one."""

    @property
    def met(self) -> bool:
        """Whether the promise is kept. A failed measurement keeps none: no comparison with NaN holds."""
        return self.measured <= self.wanted if self.at_most else self.measured >= self.wanted


@dataclass(frozen=True)
class Failure:
    """Lines that could not be measured, and why."""

    what: str
    failure: str


Line = Measurement | Failure


def attempt(what: str, lines: Callable[[], Iterable[Line]]) -> Iterator[Line]:
    """Some lines of a suite; if they raise, a `Failure` that names them, and the suite goes on."""
    try:
        yield from lines()
    except Exception as error:
        yield Failure(what, describe(error))


def at_most(what: str, measured: float | Callable[[], float], unit: str, wanted: float) -> Measurement:
    """A promise not to exceed. A measurement given as a function may fail without ending its suite."""
    return _compare(what, measured, unit, wanted, at_most=True)


def at_least(what: str, measured: float | Callable[[], float], unit: str, wanted: float) -> Measurement:
    """A promise to reach. A measurement given as a function may fail without ending its suite."""
    return _compare(what, measured, unit, wanted, at_most=False)


def _compare(
    what: str, measured: float | Callable[[], float], unit: str, wanted: float, *, at_most: bool
) -> Measurement:
    try:
        value = measured() if callable(measured) else measured
    except Exception as error:
        return Measurement(what, math.nan, unit, wanted, at_most, describe(error))
    return Measurement(what, value, unit, wanted, at_most)


def describe(error: BaseException) -> str:
    """An exception in one line: its type, and the last line of its message that says anything."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if isinstance(error, WrongResult):
        return " ".join(lines)
    return f"{type(error).__name__}: {lines[-1]}" if lines else type(error).__name__


def describe_exit(code: int | None) -> str:
    """How a process ended, from its exit code, which is negative for a signal."""
    if code is None or code >= 0:
        return f"its process ended with exit code {code}"
    name = signal.Signals(-code).name
    hint = "; the system kills a process that takes too much memory" if name == "SIGKILL" else ""
    return f"its process was ended by {name}{hint}"


def seconds(run: Callable[[], object], repeats: int = 5) -> float:
    """The best of a few runs, after one to warm up: what the machine can do when left alone."""
    run()
    return min(_time(run) for _ in range(repeats))


def ratio(slow: Callable[[], object], fast: Callable[[], object], repeats: int = 5) -> float:
    """How many times as long `slow` takes as `fast`: the median over pairs of runs in turn.

    Both are warmed up before every timed run, so that neither finds the caches full of the other's data. The
    order within a pair alternates, so that a machine that gets slower or faster favours neither.
    """
    pairs: list[float] = []
    started = time.perf_counter()
    while len(pairs) < repeats or (time.perf_counter() - started < MIN_SECONDS and len(pairs) < MAX_PAIRS):
        if len(pairs) % 2:
            other, one = seconds(fast, 1), seconds(slow, 1)
        else:
            one, other = seconds(slow, 1), seconds(fast, 1)
        pairs.append(one / other)
    return median(pairs)


def _time(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def require(agreement: bool, what: str) -> None:
    """No number is printed for a computation that is wrong."""
    if not agreement:
        raise WrongResult(f"not timed, because it is wrong: {what}")
