"""Whether values follow a power law when they carry noise: a line through them, and a test of its bend."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy

from separatrix.analysis.laws.functional_forms import RIVALS, Form, fitted, predicted
from separatrix.analysis.laws.powerlaw import ROUNDING, Law, exact_law

Array = np.ndarray[Any, Any]

LEVEL = 0.01
"""A power law that is one is rejected with this probability."""
CLEAR = 10.0
"""A difference in AIC that settles which form fits better."""


def noisy_law(
    x: Sequence[float], y: Sequence[float], sd: Sequence[float] | None = None, confidence: float = 0.95
) -> Law:
    """The law of values whose logarithms have Gaussian noise of these standard deviations.

    Without `sd` the noise is the same everywhere, and its size is taken from the scatter itself.
    """
    across, up = np.log(np.asarray(x, dtype=float)), np.log(np.asarray(y, dtype=float))
    weights = np.ones(len(up)) if sd is None else 1 / np.maximum(np.asarray(sd, dtype=float), 1e-12) ** 2
    line, bend = _Fit(across, up, weights, 1), _Fit(across, up, weights, 2)
    slope, error = line.coefficients[1], math.sqrt(line.covariance[1, 1])
    left = len(up) - 2
    if sd is None:
        reach = float(scipy.stats.t.ppf((1 + confidence) / 2, left)) * error * math.sqrt(line.squares / left)
        test, p = _bend_by_scatter(line.squares, bend.squares, len(up))
    else:
        reach = float(scipy.stats.norm.ppf((1 + confidence) / 2)) * error
        test, p = _bend_by_sd(line.squares, bend.squares, left)
    straight = None if p is None else p >= LEVEL
    size = "that is known" if sd is not None else "seen in the scatter"
    rival = _rival(x, y, weights, sd is not None) if straight is False else None
    middles = across[:-1] + np.diff(across) / 2
    slopes = np.diff(up) / np.diff(across)
    if straight is False:
        better = "" if rival is None else f"; {rival.described}"
        reason = f"it bends more than its noise allows ({test}, p = {p:.1g} < {LEVEL}){better}"
    elif straight is None:
        reason = "too few points to tell a bend from noise of unknown size; it takes 4 or more"
    else:
        reason = f"no bend beyond its noise ({test}, p = {p:.2g}; rejected below {LEVEL})"
    return Law(
        float(slope),
        (float(slope - reach), float(slope + reach)),
        f"a {100 * confidence:.6g}% confidence interval of a straight line's slope, from the noise {size}",
        straight,
        reason,
        Form.power(float(slope), reach, *line.centre) if straight else rival,
        tuple((math.exp(at), float(each)) for at, each in zip(middles, slopes, strict=True)),
        float(x[0]) if straight else None,
    )


def uncertain_law(x: Sequence[float], y: Sequence[float], confidence: float = 0.95) -> Law:
    """The law of values that may or may not scatter: settled local slopes are taken at their word."""
    exact = exact_law(x, y, ROUNDING)
    return exact if exact.power_law or exact.form is not None else noisy_law(x, y, None, confidence)


class _Fit:
    """A polynomial in log x, by weighted least squares."""

    def __init__(self, across: Array, up: Array, weights: Array, degree: int) -> None:
        middle = float(np.average(across, weights=weights))
        columns = np.vander(across - middle, degree + 1, increasing=True)
        self.covariance: Array = np.linalg.inv(columns.T @ (weights[:, None] * columns))
        self.coefficients: Array = self.covariance @ (columns.T @ (weights * up))
        self.squares = float((weights * (up - columns @ self.coefficients) ** 2).sum())
        self.centre = math.exp(middle), math.exp(self.coefficients[0])


def _bend_by_scatter(line: float, bend: float, points: int) -> tuple[str, float | None]:
    """An F-test of a quadratic term; None where nothing is left to estimate the noise from."""
    left = points - 3
    if left < 1:
        return "", None
    if line <= points * ROUNDING**2:
        return "a straight line but for rounding", 1.0
    ratio = (line - bend) / max(bend / left, 1e-300)
    return f"F-test of a quadratic term, F(1, {left}) = {ratio:.3g}", float(scipy.stats.f.sf(ratio, 1, left))


def _bend_by_sd(line: float, bend: float, left: int) -> tuple[str, float]:
    """The worse of two tests, of a quadratic term and of all that is left over, each at half the level."""
    p = 2 * min(float(scipy.stats.chi2.sf(max(line - bend, 0.0), 1)), float(scipy.stats.chi2.sf(line, left)))
    return f"chi-squared = {line:.3g} with {left} degrees of freedom", min(p, 1.0)


def _rival(x: Sequence[float], y: Sequence[float], weights: Array, known: bool) -> Form | None:
    """The form with the lowest AIC, if it is clearly lower than the power law's."""
    found = {name: _aic(name, x, y, weights, known) for name in ("power law", *RIVALS)}
    name = min(found, key=lambda each: found[each])
    better = found["power law"] - found[name]
    if name == "power law" or better < CLEAR:
        return None
    return fitted(name, x, y, f"better, AIC lower by {better:.3g}", weights)


def _aic(name: str, x: Sequence[float], y: Sequence[float], weights: Array, known: bool) -> float:
    """Akaike's criterion up to a constant; every form has two constants of its own."""
    made = predicted(name, x, y, weights)
    if not (np.isfinite(made).all() and (made > 0).all()):
        return math.inf
    squares = float((weights * (np.log(np.asarray(y, dtype=float)) - np.log(made)) ** 2).sum())
    return squares if known else len(made) * math.log(max(squares, 1e-300))
