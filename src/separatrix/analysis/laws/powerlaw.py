"""Power laws y = A x^p and their exponents, for values without noise, and other forms of growth.

Exact values have no scatter, so the residuals of a straight line are no noise. Instead, local slopes (of log y
against log x between neighbouring points) are examined: those of a power law are equal; those of a power law with
corrections, A x^p (1 + B x^-q), approach p geometrically; those of a logarithm or an exponential do neither. The
slopes of x^p (log x)^b approach p like 1/log x. At large x they hardly change, but slopes that settle at this pace
show no power law. Slopes that settle as slowly as those of A x^p (1 + B/log x) are extrapolated in 1/log x as well.
Changes of a slope count only if they exceed what the accuracy of the values can explain.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from separatrix.core.documents import Document, Hidden, shown_as
from separatrix.core.numbers.spelling import for_people

Array = np.ndarray[Any, Any]
Numbers = Sequence[float]

RIVALS = ("logarithm", "exponential", "power of log")
"""The forms that are compared with a power law."""
MAX_FORM_ERROR = 0.01
"""A form fits well if no value is off by more than this share."""
MIN_IMPROVEMENT = 10
"""Another form is preferred if it comes this many times closer than the best power law."""
MAX_FLAT_EXPONENT = 5e-3
"""An exponent this small is that of a constant."""
MIN_LATE_POINTS = 4
"""The form of the second half of the values is examined only if it has this many points."""
MAX_PRINTED_EXPONENT = 700.0
"""e to a larger power overflows float64; it is printed as e^…."""
NEGLIGIBLE_ERROR = 1e-9
"""A power law this close needs no rival."""
TOLERANCE = 0.01
"""The largest distance of a power law's last local slope from its limit."""
MAX_STEADY_SPREAD = TOLERANCE / 10
"""Slopes without an extrapolated limit have settled if their spread is at most this."""
SLOWEST_CORRECTION = 0.5
"""Corrections to a power law are expected to fall at least like x to the minus this."""
MAX_KNOTS = 7
"""Slopes are taken between this many points, about evenly spaced in log x: closer ones add nothing."""
MIN_POINTS = 3
"""With fewer points a slope cannot be compared with another."""
MIN_ERROR = 1e-9
"""The assumed relative error of a value, and the error of a slope, are at least this."""
LIMIT_INTERVAL = (
    "not a confidence interval, since nothing here is noisy: the distance from the last local slope to "
    "the limit, or how far the last point moved that limit, whichever is more"
)
CLEAR_MOVEMENT = 8
"""A slope moves if it changes by this many times what rounding can explain."""


@dataclass(frozen=True)
class Form:
    """A formula with its two constants."""

    name: str
    """power law, constant, or one of RIVALS."""
    formula: str
    """The formula, with `x` for the variable."""
    constants: tuple[float, float]
    comparison: str = ""
    """How well it fits in comparison with a power law, as a clause."""

    @classmethod
    def power_law(cls, exponent: float, uncertainty: float, x: float, y: float) -> Form:
        """Return the power law of this exponent, known to `uncertainty` either way, through one point."""
        if abs(exponent) <= max(uncertainty, MAX_FLAT_EXPONENT):
            return cls("constant", f"{y:.6g}", (y, exponent))
        scale = math.exp(math.log(y) - exponent * math.log(x))
        return cls("power law", f"{scale:.6g} x^{exponent:.6g}", (scale, exponent))


def find_better_form(x: Numbers, y: Numbers) -> Form | None:
    """Return the form that fits much better than any power law, if one does; for values without noise."""
    power_error = largest_error("power law", x, y)
    if power_error <= NEGLIGIBLE_ERROR:
        return None
    errors = {name: largest_error(name, x, y) for name in RIVALS}
    # Below the negligible error rounding would decide: the first of the forms is as good as the others.
    name = min(errors, key=lambda name: max(errors[name], NEGLIGIBLE_ERROR))
    if errors[name] > min(MAX_FORM_ERROR, power_error / MIN_IMPROVEMENT):
        return None
    comparison = f"within {errors[name]:.1g} of every value, the best power law within {power_error:.2g}"
    return fit_form(name, x, y, comparison)


def find_late_form(x: Numbers, y: Numbers) -> Form | None:
    """Return the better form of the second half of the values, whose first half has another shape."""
    middle = len(x) // 2
    form = find_better_form(x[middle:], y[middle:]) if len(x) - middle >= MIN_LATE_POINTS else None
    if form is None:
        return None
    return replace(form, comparison=form.comparison.replace(" fits ", f" fits from {x[middle]:.6g} on "))


def largest_error(name: str, x: Numbers, y: Numbers) -> float:
    """Return the largest share by which the fitted form misses a value."""
    predictions = predict(name, x, y)
    if not np.isfinite(predictions).all():
        return math.inf
    return float(np.abs(predictions / np.asarray(y, dtype=float) - 1).max())


def predict(name: str, x: Numbers, y: Numbers, weights: Array | None = None) -> Array:
    """Return the values of the form with the best constants; not finite where it is undefined."""
    # The logarithm of log x exists beyond x = 1 only.
    if name == "power of log" and min(x) <= 1:
        return np.full(len(x), math.inf)
    abscissae, _ = _straight_coordinates(name, x, y)
    constant, rate = _fit_constants(name, x, y, weights)
    line: Array = constant + rate * abscissae
    # An exponential that overflows is an infinite error, so that the form is not chosen.
    with np.errstate(over="ignore"):
        return line if name == "logarithm" else np.exp(line)


def fit_form(name: str, x: Numbers, y: Numbers, comparison: str, weights: Array | None = None) -> Form:
    """Fit one of the rivals; `comparison` describes how it compares with a power law."""
    constant, rate = _fit_constants(name, x, y, weights)
    if name == "logarithm":
        sign = "+" if rate >= 0 else "-"
        formula = f"{constant:.6g} {sign} {abs(rate) * math.log(2):.6g} log2 x"
    else:
        head = f"{math.exp(constant):.6g}" if abs(constant) < MAX_PRINTED_EXPONENT else f"e^{constant:.6g}"
        tail = f"* {math.exp(rate):.6g}^x" if name == "exponential" else f"(log x)^{rate:.6g}"
        formula = f"{head} {tail}"
    article = "an" if name == "exponential" else "a"
    return Form(name, formula, (constant, rate), f"{article} {name} fits {comparison}")


def _straight_coordinates(name: str, x: Numbers, y: Numbers) -> tuple[Array, Array]:
    """Return the coordinates in which the form is a straight line."""
    abscissae, ordinates = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if name == "logarithm":
        return np.log(abscissae), ordinates
    if name == "exponential":
        return abscissae, np.log(ordinates)
    return (np.log(abscissae) if name == "power law" else np.log(np.log(abscissae))), np.log(ordinates)


def _fit_constants(name: str, x: Numbers, y: Numbers, weights: Array | None) -> tuple[float, float]:
    """Minimise the squares of relative errors, weighted by one over their variance."""
    abscissae, ordinates = _straight_coordinates(name, x, y)
    # A logarithm is fitted to y itself, the others to log y: only the first needs dividing by y.
    scale = np.asarray(y, dtype=float) if name == "logarithm" else np.ones(len(ordinates))
    row_weights = (np.ones(len(ordinates)) if weights is None else np.sqrt(weights)) * (scale.min() / scale)
    centre = abscissae.mean()  # centred columns are nearly orthogonal, so that lstsq loses no digits
    columns = np.stack([np.ones(len(ordinates)), abscissae - centre], axis=1) * row_weights[:, None]
    (level, rate), *_ = np.linalg.lstsq(columns, ordinates * row_weights, rcond=None)
    return float(level - rate * centre), float(rate)


@dataclass(frozen=True)
class Law(Document):
    """The growth of y with x."""

    exponent: float
    """The limit of the local slopes, or the fitted slope; without a power law, the last slope."""
    interval: tuple[float, float]
    interval_is: str
    """The meaning of the interval."""
    power_law: bool | None
    """Null if the points do not decide it."""
    reason: str
    form: Hidden[Form | None]
    """A form that fits well: the power law if it is one, else perhaps a logarithm or an exponential."""
    slopes: Hidden[tuple[tuple[float, float], ...]]
    """Pairs of the x in the middle of a step and the local slope over this step."""
    since: float | None
    """The x from which on every local slope is within the tolerance of the exponent."""

    @shown_as("form")
    def form_name(self) -> str | None:
        """The name of a form that fits well."""
        return None if self.form is None else self.form.name

    @property
    def name(self) -> str:
        """`power law`, `constant` or the form that fits better; else `not a power law` or `cannot tell`."""
        if self.form is not None and (self.form.name != "power law" or self.power_law):
            return self.form.name
        return {True: "power law", False: "not a power law", None: "cannot tell"}[self.power_law]

    @property
    def exponent_text(self) -> str:
        """The exponent with the digits its interval leaves; the last slope in brackets if it is no power law.

        >>> exact_law([10, 100, 1000], [1, 10, 100]).exponent_text
        '1.0000 ± 10⁻⁹'
        >>> exact_law([10, 100, 1000, 10000], [1, 2, 3, 4]).exponent_text
        '(0.12)'
        """
        if self.power_law is False:
            return f"({format_slope(self.exponent, 2).lstrip('+')})"
        uncertainty = (self.interval[1] - self.interval[0]) / 2
        digits = min(max(2, 1 - math.floor(math.log10(uncertainty))), 4) if 0 < uncertainty < math.inf else 2
        return f"{format_slope(self.exponent, digits).lstrip('+')} ± {for_people(uncertainty, 1)}"


def exact_law(x: Numbers, y: Numbers, accuracy: float = 1e-14) -> Law:
    """Return the law of values without noise, each known to the relative `accuracy`.

    >>> law = exact_law([1e3, 1e4, 1e5, 1e6], [3 / n + 40 / n**2 for n in (1e3, 1e4, 1e5, 1e6)])
    >>> law.power_law, round(law.exponent, 4)
    (True, -1.0)
    >>> exact_law([10, 100, 1000, 10000], [1, 2, 3, 4]).form.name
    'logarithm'
    """
    abscissae, ordinates = np.log(np.asarray(x, dtype=float)), np.log(np.asarray(y, dtype=float))
    # The first point, the last, and those between that are nearest to even spacing.
    spacing = np.linspace(abscissae[0], abscissae[-1], min(MAX_KNOTS, len(abscissae)))
    knots = sorted({int(np.abs(abscissae - place).argmin()) for place in spacing})
    knots = knots if len(knots) >= MIN_POINTS else [0, len(abscissae) // 2, len(abscissae) - 1]
    steps = np.diff(abscissae[knots])
    slopes, middles = np.diff(ordinates[knots]) / steps, abscissae[knots][:-1] + steps / 2
    # Both ends of a step may be off by the accuracy, which changes the slope by twice as much over the step.
    slope_error = min(MIN_ERROR + 2 * accuracy / float(steps.min()), MAX_STEADY_SPREAD)
    slope_limit = _find_limit(abscissae[knots], slopes, slope_error)
    rival = find_better_form(x, y) or (find_late_form(x, y) if slope_limit is None or slope_limit.is_open else None)
    local = tuple((math.exp(at), float(slope)) for at, slope in zip(middles, slopes, strict=True))
    if slope_limit is None or slope_limit.is_open or rival is not None:
        # The last decade, or at least the last two slopes.
        recent = slopes[-max(2, int((middles > abscissae[-1] - math.log(10)).sum())) :]
        interval, reason = (float(recent.min()), float(recent.max())), _explain_rejection(slopes, slope_limit, rival)
        meaning = "the spread of the local slopes at the end of the range, which keep moving"
        is_unclear = rival is None and slope_limit is not None and slope_limit.is_unclear and not slope_limit.is_far
        return Law(float(slopes[-1]), interval, meaning, None if is_unclear else False, reason, rival, local, None)
    exponent, uncertainty = slope_limit.limit, slope_limit.uncertainty
    near = np.abs(slopes - exponent) <= TOLERANCE
    first = int(np.flatnonzero(~near)[-1]) + 1 if not near.all() else 0
    form = Form.power_law(exponent, uncertainty, float(x[-1]), float(y[-1]))
    interval, since = (exponent - uncertainty, exponent + uncertainty), float(x[knots[min(first, len(slopes) - 1)]])
    reason = _explain_power_law(slopes, slope_limit, slope_error)
    return Law(exponent, interval, LIMIT_INTERVAL, True, reason, form, local, since)


@dataclass(frozen=True)
class _SlopeLimit:
    """The limit of local slopes, and how far from it the last of them may be."""

    limit: float
    uncertainty: float
    is_slow: bool = False
    """Whether they settle no faster than 1/(log x)^3, so that powers of log x may be involved."""
    is_logarithmic: bool = False
    """Whether they settle at the pace of 1/log x, as those of a power of log x do."""
    is_unclear: bool = False
    """Whether there are too few of them to show how fast they settle."""

    @property
    def is_far(self) -> bool:
        """Whether the last slope is too far from the limit."""
        return self.uncertainty > TOLERANCE

    @property
    def is_open(self) -> bool:
        """Whether the values do not determine the limit."""
        return self.is_far or self.is_logarithmic or self.is_unclear


def _find_limit(ends: Array, slopes: Array, slope_error: float) -> _SlopeLimit | None:
    """Return the limit of the last local slopes; None if they do not settle. `ends` bound their steps."""
    at = (ends[:-1] + ends[1:]) / 2
    recent, places = slopes[-3:], at[-3:]
    last = float(recent[-1])
    steady = np.ptp(recent) <= slope_error or _is_correction_lost(places, recent, slope_error)
    limit = last if steady else _extrapolate(places, recent)
    if limit is None and np.ptp(recent) > MAX_STEADY_SPREAD:
        return None
    limit = last if limit is None else limit
    uncertainty = max(abs(limit - last), _limit_change(at, slopes, limit), slope_error)
    change = last - float(recent[-2])
    if abs(change) <= CLEAR_MOVEMENT * slope_error:
        return _SlopeLimit(limit, uncertainty)
    is_unclear = len(slopes) < MIN_POINTS
    if not is_unclear and not _settles_slowly(ends[-4:], recent, 3.0):
        return _SlopeLimit(limit, uncertainty)
    # The limit if the slopes are p + C/log x.
    slow_limit = last + change * float(places[-2] / (places[-1] - places[-2]))
    uncertainty = max(uncertainty, abs(slow_limit - last), abs(slow_limit - limit))
    is_logarithmic = not is_unclear and _settles_slowly(ends[-4:], recent, 1.5)
    return _SlopeLimit(limit, uncertainty, not is_unclear, is_logarithmic, is_unclear)


def _is_correction_lost(at: Array, slopes: Array, slope_error: float) -> bool:
    """Whether a correction that falls at least like x^-SLOWEST_CORRECTION would be lost in rounding."""
    if len(slopes) < 3:
        return False
    (before, after), step = np.abs(np.diff(slopes)), float(at[-1] - at[-2])
    return bool(max(after, before * math.exp(-SLOWEST_CORRECTION * step)) <= slope_error)


def _limit_change(at: Array, slopes: Array, limit: float) -> float:
    """Return how far the last point moved the limit: much, if slopes do not approach it evenly."""
    if len(slopes) < 4:
        return 0.0
    before = _extrapolate(at[-4:-1], slopes[-4:-1])
    return abs(limit - float(slopes[-2] if before is None else before))


def _extrapolate(at: Array, slopes: Array) -> float | None:
    """Return the p of three slopes p + C x^-k: Aitken's extrapolation, for steps that may be uneven."""
    if len(slopes) < 3:
        return None
    (before, after), (h1, h2) = np.diff(slopes), np.diff(at)
    if before * after <= 0:
        return None
    ratio = after / before

    def excess(k: float) -> float:
        return float(math.exp(-k * h1) * math.expm1(-k * h2) / math.expm1(-k * h1) - ratio)

    # Slopes below the slowest pace do not settle; beyond the fastest, nothing of the correction is left.
    slowest, fastest = 1e-6 / (h1 + h2), 500 / h1
    if excess(slowest) <= 0:
        return None
    if excess(fastest) >= 0:
        return float(slopes[-1])
    k = float(scipy.optimize.brentq(excess, slowest, fastest, xtol=1e-12))
    return float(slopes[-1] + after / math.expm1(min(k * h2, 700.0)))


def _settles_slowly(ends: Array, slopes: Array, power: float) -> bool:
    """Whether slopes settle no faster than p + C/(log x)^power, in the mean over each of their steps."""
    if ends[0] <= 0:
        return False
    (before, after), (first, second) = np.diff(slopes), np.diff(np.diff(ends ** (1 - power)) / np.diff(ends))
    return bool(before * after > 0 and after / before >= second / first)


def _explain_power_law(slopes: Array, slope_limit: _SlopeLimit, slope_error: float) -> str:
    if np.ptp(slopes) <= slope_error:
        return f"all {len(slopes)} local slopes are equal"
    last, distance = format_slope(float(slopes[-1])), for_people(slope_limit.uncertainty, 1)
    limit = f"{distance} or less from their limit (tolerance {TOLERANCE})"
    return f"local slopes settle: the last is {last}, {limit}"


def _explain_rejection(slopes: Array, slope_limit: _SlopeLimit | None, rival: Form | None) -> str:
    first, last = (format_slope(float(slopes[i])) for i in (0, -1))
    change = f"local slopes go from {first} to {last}"
    if rival is not None:
        return f"{change}; {rival.comparison}"
    if slope_limit is None:
        return f"{change} and do not settle" if len(slopes) > 2 else f"{change}: too few to show a limit"
    if slope_limit.is_unclear and not slope_limit.is_far:
        return f"{change}: too few to show whether they settle; take more points"
    if slope_limit.is_logarithmic:
        return f"{change} and may have {slope_limit.uncertainty:.2g} to go, at the pace of powers of a logarithm"
    slow = ", no faster than with powers of a logarithm" if slope_limit.is_slow else ""
    return f"{change} and may have {slope_limit.uncertainty:.2g} to go{slow} (tolerance {TOLERANCE})"


def format_slope(slope: float, digits: int = 4) -> str:
    """Return a slope with its sign, and no sign for 0.

    >>> format_slope(-0.99999), format_slope(1e-7), format_slope(0.25)
    ('-1.0000', '0.0000', '+0.2500')
    """
    text = f"{slope:+.{digits}f}"
    return text[1:] if float(text) == 0 else text
