"""Power laws of noisy values: a straight line through their logarithms, and a test of its curvature."""

from __future__ import annotations

import math

import numpy as np
import scipy

from separatrix.analysis.laws.powerlaw import MIN_ERROR, RIVALS, Array, Form, Law, Numbers, exact_law, fit_form, predict

SIGNIFICANCE = 0.01
"""The probability with which a true power law is rejected."""
MIN_AIC_DIFFERENCE = 10.0
"""A difference in AIC that decides which form fits better."""


def noisy_law(x: Numbers, y: Numbers, sd: Numbers | None = None, confidence: float = 0.95) -> Law:
    """Return the law of values whose logarithms have Gaussian noise of these standard deviations.

    Without `sd` the noise is the same everywhere, and its size is estimated from the scatter.
    """
    abscissae, ordinates = np.log(np.asarray(x, dtype=float)), np.log(np.asarray(y, dtype=float))
    weights = np.ones(len(ordinates)) if sd is None else 1 / np.maximum(np.asarray(sd, dtype=float), 1e-12) ** 2
    line, parabola = _Polynomial(abscissae, ordinates, weights, 1), _Polynomial(abscissae, ordinates, weights, 2)
    slope, error = float(line.coefficients[1]), math.sqrt(line.covariance[1, 1])
    freedom, quantile = len(ordinates) - 2, (1 + confidence) / 2
    if sd is None:
        uncertainty = float(scipy.stats.t.ppf(quantile, freedom)) * error * math.sqrt(line.squares / freedom)
        test, p = _test_by_scatter(line.squares, parabola.squares, len(ordinates))
    else:
        uncertainty = float(scipy.stats.norm.ppf(quantile)) * error
        test, p = _test_by_sd(line.squares, parabola.squares, freedom)
    is_straight = None if p is None else p >= SIGNIFICANCE
    form = _find_rival(x, y, weights, sd is not None) if is_straight is False else None
    if is_straight is None:
        reason = "too few points to tell a bend from noise of unknown size; it takes 4 or more"
    elif is_straight:
        form = Form.power_law(slope, uncertainty, *line.centre)
        reason = f"no bend beyond its noise ({test}, p = {p:.2g}; rejected below {SIGNIFICANCE})"
    else:
        comparison = "" if form is None else f"; {form.comparison}"
        reason = f"it bends more than its noise allows ({test}, p = {p:.1g} < {SIGNIFICANCE}){comparison}"
    size = "that is known" if sd is not None else "seen in the scatter"
    middles, slopes = abscissae[:-1] + np.diff(abscissae) / 2, np.diff(ordinates) / np.diff(abscissae)
    return Law(
        slope,
        (slope - uncertainty, slope + uncertainty),
        f"a {100 * confidence:.6g}% confidence interval of a straight line's slope, from the noise {size}",
        is_straight,
        reason,
        form,
        tuple((math.exp(at), float(local)) for at, local in zip(middles, slopes, strict=True)),
        float(x[0]) if is_straight else None,
    )


def uncertain_law(x: Numbers, y: Numbers, confidence: float = 0.95) -> Law:
    """Return the law of values that may be noisy: as exact values if their local slopes settle."""
    exact = exact_law(x, y, MIN_ERROR)
    return exact if exact.power_law or exact.form is not None else noisy_law(x, y, None, confidence)


class _Polynomial:
    """A polynomial in log x, by weighted least squares."""

    def __init__(self, abscissae: Array, ordinates: Array, weights: Array, degree: int) -> None:
        # About its weighted mean log x is uncorrelated with the level, and the centre lies on the line.
        middle = float(np.average(abscissae, weights=weights))
        columns = np.vander(abscissae - middle, degree + 1, increasing=True)
        self.covariance: Array = np.linalg.inv(columns.T @ (weights[:, None] * columns))
        self.coefficients: Array = self.covariance @ (columns.T @ (weights * ordinates))
        self.squares = float((weights * (ordinates - columns @ self.coefficients) ** 2).sum())
        self.centre = math.exp(middle), math.exp(self.coefficients[0])


def _test_by_scatter(line: float, parabola: float, points: int) -> tuple[str, float | None]:
    """F-test of a quadratic term; None without degrees of freedom for the noise."""
    freedom = points - 3
    if freedom < 1:
        return "", None
    if line <= points * MIN_ERROR**2:
        return "a straight line but for rounding", 1.0
    # A parabola through every value leaves no squares: the ratio is then huge, not undefined.
    ratio = (line - parabola) / max(parabola / freedom, 1e-300)
    return f"F-test of a quadratic term, F(1, {freedom}) = {ratio:.3g}", float(scipy.stats.f.sf(ratio, 1, freedom))


def _test_by_sd(line: float, parabola: float, freedom: int) -> tuple[str, float]:
    """Chi-squared tests of a quadratic term and of all residuals, each at half the level."""
    # Two tests: the parabola has more power against bends, the residuals see other shapes.
    quadratic = float(scipy.stats.chi2.sf(max(line - parabola, 0.0), 1))
    p = 2 * min(quadratic, float(scipy.stats.chi2.sf(line, freedom)))
    return f"chi-squared = {line:.3g} with {freedom} degrees of freedom", min(p, 1.0)


def _find_rival(x: Numbers, y: Numbers, weights: Array, has_sd: bool) -> Form | None:
    """Return the form with the lowest AIC, if it is clearly lower than that of a power law."""
    scores = {name: _aic(name, x, y, weights, has_sd) for name in ("power law", *RIVALS)}
    name = min(scores, key=lambda name: scores[name])
    gain = scores["power law"] - scores[name]
    if name == "power law" or gain < MIN_AIC_DIFFERENCE:
        return None
    return fit_form(name, x, y, f"better, AIC lower by {gain:.3g}", weights)


def _aic(name: str, x: Numbers, y: Numbers, weights: Array, has_sd: bool) -> float:
    """Akaike's criterion up to a constant; every form has two constants of its own."""
    predictions = predict(name, x, y, weights)
    if not (np.isfinite(predictions).all() and (predictions > 0).all()):
        return math.inf
    squares = float((weights * (np.log(np.asarray(y, dtype=float)) - np.log(predictions)) ** 2).sum())
    # Noise of known size enters the likelihood as it is; of unknown size it is estimated from the squares.
    return squares if has_sd else len(predictions) * math.log(max(squares, 1e-300))
