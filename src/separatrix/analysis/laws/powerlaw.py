"""Whether values follow a power law y = A x^p, and with what exponent: for values that carry no noise.

Exact values scatter around nothing, so what a straight line leaves over is the law's own shape. Local
slopes (of log y against log x between neighbouring points) are looked at instead: those of a power law
are equal, those of one with corrections, A x^p (1 + B x^-q), approach p geometrically, those of a
logarithm or an exponential do neither. Slopes that settle at the pace of x^p (log x)^b, which is 1/log x,
show no power law, however little they move: far out that is next to nothing. Slopes that settle as slowly
as those of A x^p (1 + B/log x) are extrapolated in 1/log x as well. What counts as moving is set by how
accurately the values are known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from separatrix.analysis.laws.functional_forms import Form, best_form, late_form
from separatrix.core.numbers.spelling import for_people

Array = np.ndarray[Any, Any]

TOLERANCE = 0.01
"""A power law's local slope has at most this far to go at the end of the range."""
STEADY = TOLERANCE / 10
"""Local slopes that differ by no more than this are the same."""
SLOWEST_CORRECTION = 0.5
"""Corrections to a power law are expected to fall at least like x to the minus this."""
KNOTS = 7
"""Slopes are taken between so many points, about evenly spaced in log x: closer ones tell nothing more."""
FEWEST = 3
"""Points without which a slope has nothing to be compared with."""
ROUNDING = 1e-9
"""Slopes this close are equal to anybody."""
CLEARLY = 8
"""Slopes that move by so many times what rounding can explain do move."""


@dataclass(frozen=True)
class Law:
    """How y grows with x."""

    exponent: float
    """The limit of the local slopes, or the fitted slope; where it is no power law, the slope at the end."""
    interval: tuple[float, float]
    interval_is: str
    """What the interval is, in words."""
    power_law: bool | None
    """None where the points cannot tell."""
    reason: str
    form: Form | None
    """A form that fits well: the power law if it is one, else perhaps a logarithm or an exponential."""
    slopes: tuple[tuple[float, float], ...]
    """Local slopes, each with the x in the middle of its step."""
    since: float | None
    """The x from which on every local slope is within the tolerance of the exponent."""

    @property
    def name(self) -> str:
        """`power law`, `constant` or the form that fits better; else `not a power law` or `cannot tell`."""
        if self.form is not None and (self.form.name != "power law" or self.power_law):
            return self.form.name
        return {True: "power law", False: "not a power law", None: "cannot tell"}[self.power_law]

    @property
    def spelled(self) -> str:
        """The exponent with the digits its interval leaves; in brackets the last slope, of what is no power.

        >>> exact_law([10, 100, 1000], [1, 10, 100]).spelled
        '1.0000 ± 10⁻⁹'
        >>> exact_law([10, 100, 1000, 10000], [1, 2, 3, 4]).spelled
        '(0.12)'
        """
        reach = (self.interval[1] - self.interval[0]) / 2
        digits = min(max(2, 1 - math.floor(math.log10(reach))), 4) if 0 < reach < math.inf else 2
        number = shown(self.exponent, digits).lstrip("+")
        return (
            f"{number} ± {for_people(reach, 1)}"
            if self.power_law is not False
            else f"({shown(self.exponent, 2).lstrip('+')})"
        )


def exact_law(x: Sequence[float], y: Sequence[float], accuracy: float = 1e-14) -> Law:
    """The law of values without noise, each known to the relative `accuracy`.

    >>> law = exact_law([1e3, 1e4, 1e5, 1e6], [3 / n + 40 / n**2 for n in (1e3, 1e4, 1e5, 1e6)])
    >>> law.power_law, round(law.exponent, 4)
    (True, -1.0)
    >>> exact_law([10, 100, 1000, 10000], [1, 2, 3, 4]).form.name
    'logarithm'
    """
    across, up = np.log(np.asarray(x, dtype=float)), np.log(np.asarray(y, dtype=float))
    knots = _knots(across)
    steps = np.diff(across[knots])
    slopes, middles = np.diff(up[knots]) / steps, across[knots][:-1] + steps / 2
    unsure = min(ROUNDING + 2 * accuracy / float(steps.min()), STEADY)
    end = _settled(across[knots], slopes, unsure)
    rival = best_form(x, y) or (late_form(x, y) if end is None or end.open else None)
    seen = tuple((math.exp(at), float(slope)) for at, slope in zip(middles, slopes, strict=True))
    if end is None or end.open or rival is not None:
        recent = slopes[-max(2, int((middles > across[-1] - math.log(10)).sum())) :]
        return Law(
            float(slopes[-1]),
            (float(recent.min()), float(recent.max())),
            "the spread of the local slopes at the end of the range, which keep moving",
            None if end is not None and end.few and not end.far and rival is None else False,
            _why_not(slopes, end, rival),
            rival,
            seen,
            None,
        )
    near = np.abs(slopes - end.limit) <= TOLERANCE
    first = int(np.flatnonzero(~near)[-1]) + 1 if not near.all() else 0
    return Law(
        end.limit,
        (end.limit - end.reach, end.limit + end.reach),
        "not a confidence interval, since nothing here is noisy: the distance from the last local slope to "
        "the limit, or how far the last point moved that limit, whichever is more",
        True,
        _why(slopes, end, unsure),
        Form.power(end.limit, end.reach, float(x[-1]), float(y[-1])),
        seen,
        float(x[knots[min(first, len(slopes) - 1)]]),
    )


def _knots(across: Array) -> list[int]:
    """The first point, the last, and those between nearest to even spacing."""
    wanted = np.linspace(across[0], across[-1], min(KNOTS, len(across)))
    found = sorted({int(np.abs(across - place).argmin()) for place in wanted})
    return found if len(found) >= FEWEST else [0, len(across) // 2, len(across) - 1]


@dataclass(frozen=True)
class _End:
    """Where local slopes tend to, and how far from it the last of them may be."""

    limit: float
    reach: float
    slow: bool
    """Whether they settle no faster than 1/(log x)^3, so that powers of log x may be at work."""
    logarithmic: bool = False
    """Whether they settle at the pace of 1/log x, as those of a power of log x do."""
    few: bool = False
    """Whether there are too few of them to show how fast they settle."""

    @property
    def far(self) -> bool:
        """Whether the last slope is too far from the limit."""
        return self.reach > TOLERANCE

    @property
    def open(self) -> bool:
        """Whether the values leave the limit open."""
        return self.far or self.logarithmic or self.few


def _settled(ends: Array, slopes: Array, unsure: float) -> _End | None:
    """Where the last local slopes tend to; None where they do not settle. `ends` are those of their steps."""
    at = (ends[:-1] + ends[1:]) / 2
    recent, places = slopes[-3:], at[-3:]
    last = float(recent[-1])
    steady = np.ptp(recent) <= unsure or _died_out(places, recent, unsure)
    limit = last if steady else _geometric(places, recent)
    if limit is None and np.ptp(recent) > STEADY:
        return None
    limit = last if limit is None else limit
    reach = max(abs(limit - last), _moved(at, slopes, limit), unsure)
    moved = last - float(recent[-2])
    if abs(moved) <= CLEARLY * unsure:
        return _End(limit, reach, slow=False)
    few = len(slopes) < FEWEST
    if not few and not _at_pace(ends[-4:], recent, 3.0):
        return _End(limit, reach, slow=False)
    slowly = last + moved * float(places[-2] / (places[-1] - places[-2]))
    reach = max(reach, abs(slowly - last), abs(slowly - limit))
    return _End(limit, reach, not few, not few and _at_pace(ends[-4:], recent, 1.5), few)


def _died_out(at: Array, slopes: Array, unsure: float) -> bool:
    """Whether a correction that falls at least like x^-SLOWEST_CORRECTION would be lost in rounding."""
    if len(slopes) < 3:
        return False
    (before, after), step = np.abs(np.diff(slopes)), float(at[-1] - at[-2])
    return bool(max(after, before * math.exp(-SLOWEST_CORRECTION * step)) <= unsure)


def _moved(at: Array, slopes: Array, limit: float) -> float:
    """How far the limit moved with the last point: much, where slopes do not approach it evenly."""
    if len(slopes) < 4:
        return 0.0
    before = _geometric(at[-4:-1], slopes[-4:-1])
    return abs(limit - float(slopes[-2] if before is None else before))


def _geometric(at: Array, slopes: Array) -> float | None:
    """The p of three slopes p + C x^-k: Aitken's extrapolation, for steps that may be uneven."""
    if len(slopes) < 3:
        return None
    (before, after), (h1, h2) = np.diff(slopes), np.diff(at)
    if before * after <= 0:
        return None
    ratio = after / before

    def excess(k: float) -> float:
        return float(math.exp(-k * h1) * math.expm1(-k * h2) / math.expm1(-k * h1) - ratio)

    slowest, fastest = 1e-6 / (h1 + h2), 500 / h1
    if excess(slowest) <= 0:
        return None
    if excess(fastest) >= 0:
        return float(slopes[-1])
    k = float(scipy.optimize.brentq(excess, slowest, fastest, xtol=1e-12))
    return float(slopes[-1] + after / math.expm1(min(k * h2, 700.0)))


def _at_pace(ends: Array, slopes: Array, power: float) -> bool:
    """Whether slopes settle no faster than p + C/(log x)^power, in the mean over each of their steps."""
    if ends[0] <= 0:
        return False
    (before, after), (first, second) = np.diff(slopes), np.diff(np.diff(ends ** (1 - power)) / np.diff(ends))
    return bool(before * after > 0 and after / before >= second / first)


def _why(slopes: Array, end: _End, unsure: float) -> str:
    if np.ptp(slopes) <= unsure:
        return f"all {len(slopes)} local slopes are equal"
    told = f"the last is {shown(float(slopes[-1]))}, {for_people(end.reach, 1)} or less from their limit"
    return f"local slopes settle: {told} (tolerance {TOLERANCE})"


def _why_not(slopes: Array, end: _End | None, rival: Form | None) -> str:
    first, last = (shown(float(slopes[i])) for i in (0, -1))
    moved = f"local slopes go from {first} to {last}"
    if rival is not None:
        return f"{moved}; {rival.described}"
    if end is None:
        return f"{moved} and do not settle" if len(slopes) > 2 else f"{moved}: too few to show a limit"
    if end.few and not end.far:
        return f"{moved}: too few to show whether they settle; take more points"
    if end.logarithmic:
        return f"{moved} and may have {end.reach:.2g} to go, at the pace of powers of a logarithm"
    slow = ", no faster than with powers of a logarithm" if end.slow else ""
    return f"{moved} and may have {end.reach:.2g} to go{slow} (tolerance {TOLERANCE})"


def shown(slope: float, digits: int = 4) -> str:
    """A slope with its sign, and no sign for 0.

    >>> shown(-0.99999), shown(1e-7), shown(0.25)
    ('-1.0000', '0.0000', '+0.2500')
    """
    text = f"{slope:+.{digits}f}"
    return text[1:] if float(text) == 0 else text
