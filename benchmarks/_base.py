"""Measurements, their limits, and functions that measure time."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from statistics import median

MIN_SECONDS = 1.0
"""The minimum time to measure a ratio: short runs need many pairs for a stable median."""
MAX_PAIRS = 200


class WrongResult(Exception):
    """The computation to be timed has a wrong result, so its time is meaningless."""


@dataclass(frozen=True)
class Measurement:
    """One line of the table."""

    title: str
    measured: float
    """NaN if the measurement failed."""
    unit: str
    wanted: float
    at_most: bool
    """Whether `wanted` is an upper limit; otherwise it is a lower limit."""
    failure: str = ""
    """The reason why there is no number; empty if there is one."""

    @property
    def met(self) -> bool:
        """Whether the measurement is within its limit; false for a failed one, whose value is NaN."""
        return self.measured <= self.wanted if self.at_most else self.measured >= self.wanted


@dataclass(frozen=True)
class Failure:
    """Lines that could not be measured, with the reason."""

    title: str
    failure: str


@dataclass(frozen=True)
class Skipped:
    """A line that needs a program which is not installed; not a failure."""

    title: str
    reason: str


Line = Measurement | Failure | Skipped


def attempt(title: str, lines: Callable[[], Iterable[Line]]) -> Iterator[Line]:
    """Yield lines of a suite; if they raise, yield a `Failure` instead, so that the suite continues."""
    try:
        yield from lines()
    except Exception as error:
        yield Failure(title, describe(error))


def at_most(title: str, measured: float | Callable[[], float], unit: str, wanted: float) -> Measurement:
    """Compare with an upper limit. A measurement given as a function may fail without ending its suite."""
    return _compare(title, measured, unit, wanted, at_most=True)


def at_least(title: str, measured: float | Callable[[], float], unit: str, wanted: float) -> Measurement:
    """Compare with a lower limit. A measurement given as a function may fail without ending its suite."""
    return _compare(title, measured, unit, wanted, at_most=False)


def _compare(
    title: str, measured: float | Callable[[], float], unit: str, wanted: float, *, at_most: bool
) -> Measurement:
    try:
        value = measured() if callable(measured) else measured
    except Exception as error:
        return Measurement(title, math.nan, unit, wanted, at_most, describe(error))
    return Measurement(title, value, unit, wanted, at_most)


def describe(error: BaseException) -> str:
    """Return an exception as one line: its type and the last non-empty line of its message."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if isinstance(error, WrongResult):
        return " ".join(lines)
    return f"{type(error).__name__}: {lines[-1]}" if lines else type(error).__name__


def describe_exit(code: int | None) -> str:
    """Describe how a process ended. Its exit code is negative for a signal."""
    if code is None or code >= 0:
        return f"its process ended with exit code {code}"
    name = signal.Signals(-code).name
    hint = "; the system kills a process that takes too much memory" if name == "SIGKILL" else ""
    return f"its process was ended by {name}{hint}"


def seconds(run: Callable[[], object], repeats: int = 5) -> float:
    """Return the minimum over a few runs after a warm-up run.

    The minimum is the least affected by other programs on the machine.
    """
    run()
    return min(_time(run) for _ in range(repeats))


def ratio(slow: Callable[[], object], fast: Callable[[], object], repeats: int = 5) -> float:
    """Return the time of `slow` relative to `fast`: the median over alternating pairs of runs.

    Both are warmed up before every timed run, because the other one fills the caches with its data. The order
    within a pair alternates, so that a gradual change of the machine's speed affects both equally.
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


def require(agreement: bool, title: str) -> None:
    """Raise an error if the computation is wrong, so that no number is printed for it."""
    if not agreement:
        raise WrongResult(f"not timed, because it is wrong: {title}")
