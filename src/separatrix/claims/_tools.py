"""What the checks share: points, how a status follows from them, and where a probability crosses."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from separatrix.analysis.maps import boundary
from separatrix.claims._base import ClaimStatus, Finding, Point
from separatrix.constructions import Construction
from separatrix.constructions.spike import Spike
from separatrix.core.numbers import format_exact
from separatrix.core.parameters import Grid
from separatrix.exact.engines import Sampling, solve
from separatrix.exact.engines.closed import ProbabilityGrid, evaluate
from separatrix.exact.verdicts import DELTA as TOLERANCE
from separatrix.exact.verdicts import Verdict
from separatrix.mechanisms import Mechanism, mechanism_named

Array = np.ndarray[Any, Any]
Made = TypeVar("Made", bound=Construction)

Setting = dict[str, Any]
"""Parameters by name: integers, and decimals as text."""
BASE: Setting = {"a0": "0.01", "a1": "1.2", "b": "0.2", "c": "0.1", "d": 102, "m": 12}
"""The parameters of the reference numbers."""
DELTA = 0.01
"""P >= 1 - DELTA distinguishes, P <= DELTA is blind."""


def point(parameters: Mapping[str, object], holds: bool, **measured: object) -> Point:
    """A point fit for JSON: exact decimals as text, and no NaN."""
    return Point({k: _parameter(v) for k, v in parameters.items()}, bool(holds), _measured(measured))


class Points(list[Point]):
    """The points that a check tried, and what was measured there."""

    def add(self, parameters: Mapping[str, object], holds: bool, **measured: object) -> None:
        """Append a point fit for JSON."""
        self.append(point(parameters, holds, **measured))

    def values(self, *names: str) -> list[float]:
        """What was measured under these names, where it is a number."""
        found = (each.measured.get(name) for each in self for name in names)
        return [float(value) for value in found if isinstance(value, int | float)]

    def largest(self, *names: str) -> float:
        """The largest of `values`; NaN where nothing was measured."""
        return max(self.values(*names), default=math.nan)

    def smallest(self, *names: str) -> float:
        """The smallest of `values`; NaN where nothing was measured."""
        return min(self.values(*names), default=math.nan)

    def conclude(self, summary: str, slack: str) -> Finding:
        """Holds when every point does, fails otherwise; no point at all is a failure too."""
        bad = sum(not each.holds for each in self)
        if bad or not self:
            return Finding(
                ClaimStatus.FAILS, f"{bad} of {len(self)} points fail: {summary}", slack, tuple(self)
            )
        return Finding(ClaimStatus.HOLDS, summary, slack, tuple(self))

    def conclude_where(self, outside: Sequence[Point], where: str, summary: str, slack: str) -> Finding:
        """As `conclude` for these points inside a condition; those outside decide whether it is needed."""
        within = self.conclude(summary, slack)
        status = within.status
        if status is ClaimStatus.HOLDS and not all(each.holds for each in outside):
            status = ClaimStatus.ONLY_WHERE
        shown = where if status is ClaimStatus.ONLY_WHERE else ""
        return Finding(status, within.summary, slack, (*self, *outside), shown)


def spike(setting: Setting, **more: object) -> Spike:
    """The spike construction with one sign vector unless the setting says otherwise."""
    return Spike(Spike.schema.read({"m": 1, **setting, **more}))


def example(kind: type[Made], **changes: object) -> Made:
    """The construction at its reference point, with changes."""
    return kind(kind.schema.read({**kind.example, **changes}))


def judged(
    made: Construction, mechanism: str, engine: str = "auto", sampling: Sampling | None = None
) -> Verdict:
    """What the fixed reader makes of a point, through the mechanism of that name."""
    attends = mechanism_named(mechanism)
    return Verdict(made, attends, solve(made, attends, engine, sampling), TOLERANCE)


def on_grid(
    mechanism: Mechanism,
    fixed: Mapping[str, object],
    construction: type[Construction] = Spike,
    **axis: Sequence[object],
) -> ProbabilityGrid:
    """The closed engine along one axis; columns given together vary together."""
    kept = {name: value for name, value in fixed.items() if name not in axis}
    return evaluate(construction, mechanism, Grid(kept, (axis,) if axis else ()))


def crossing(
    probability: Callable[[list[Fraction]], Array],
    low: object,
    high: object,
    cells: int = 32,
    rounds: int = 4,
) -> float:
    """Where `probability` first reaches 1/2 on its way up, to 1/cells^rounds of the range; or NaN."""
    left, right = Fraction(str(low)), Fraction(str(high))
    for _ in range(rounds):
        places = [left + (right - left) * Fraction(i, cells) for i in range(cells + 1)]
        first = int(np.argmax(np.asarray(probability(places)) >= 1 / 2))
        if first == 0:
            return math.nan
        left, right = places[first - 1], places[first]
    return float(right)


def certified_crossing(construction: str, **asked: object) -> float:
    """The one place where softmax's P passes 1/2, both ends proved; NaN where there is no such place."""
    found = boundary(construction, "softmax", {"m": 12, **asked}, scan=15, tolerance="1e-9").crossings
    return found[0].middle if len(found) == 1 and found[0].certified else math.nan


def settled(good: Array) -> int:
    """The first index from which on all are good; as many as there are if the last is not."""
    bad = np.flatnonzero(~good)
    return int(bad[-1]) + 1 if len(bad) else 0


def limit_in_log(sizes: Sequence[int], values: Sequence[float]) -> float:
    """The limit of values that approach it like 1/log n, from the last two; NaN where one is missing."""
    if len(values) < len(sizes):
        return math.nan
    (one, other), (early, late) = (math.log(n) for n in sizes[-2:]), values[-2:]
    return (late * other - early * one) / (other - one)


def relative_error(found: float, expected: float) -> float:
    """|found - expected| / |expected|."""
    return abs(found - expected) / abs(expected)


def short(n: int) -> str:
    """A size as it is written in a summary.

    >>> short(9300), short(10**18), short(3 * 10**12 + 1)
    ('9300', '1e18', '3.0e12')
    """
    digits = str(n)
    if n < 10**5:
        return digits
    mantissa = "1" if n == 10 ** (len(digits) - 1) else f"{digits[0]}.{digits[1]}"
    return f"{mantissa}e{len(digits) - 1}"


def _parameter(value: object) -> int | str:
    if isinstance(value, Fraction | float):
        return format_exact(Fraction(str(value)))
    if isinstance(value, int | np.integer):
        whole = int(value)
        return whole if whole < 2**53 else _with_exponent(whole)
    return str(value)


def _with_exponent(n: int) -> str:
    """An integer too large for JSON readers, exactly."""
    digits = str(n)
    significant = digits.rstrip("0")
    return f"{significant}e{len(digits) - len(significant)}"


def _measured(values: Mapping[str, object]) -> dict[str, float | int | str]:
    return {name: _finite(value) for name, value in values.items()}


def _finite(value: object) -> float | int | str:
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating | np.ndarray):
        number = float(value)
        return number if math.isfinite(number) else str(number)
    return str(value)
