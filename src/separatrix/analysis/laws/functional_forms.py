"""Forms of two constants that values may have instead of a power law: logarithms, exponentials."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

RIVALS = ("logarithm", "exponential", "power of log")
WELL = 0.01
"""A form fits well if no value is off by more than this share."""
BETTER = 10
"""How many times closer than the best power law another form must come to be preferred."""
FLAT = 5e-3
"""An exponent this small is that of a constant."""
FEWEST_LATE = 4
"""Points without which a part of the values shows no form."""
LARGEST_EXPONENT = 700.0
PERFECT = 1e-9
"""A power law this close needs no rival."""


@dataclass(frozen=True)
class Form:
    """A formula with its two constants."""

    name: str
    """power law, constant, or one of RIVALS."""
    formula: str
    """With `x` for the variable."""
    constants: tuple[float, float]
    advantage: str = ""
    """How much better than a power law it fits, in words."""

    @property
    def described(self) -> str:
        """How it compares with a power law, as a clause."""
        return f"{'an' if self.name[0] in 'aeiou' else 'a'} {self.name} fits {self.advantage}"

    @classmethod
    def power(cls, exponent: float, reach: float, x: float, y: float) -> Form:
        """The power law through one point of this exponent, known to `reach` either way."""
        if abs(exponent) <= max(reach, FLAT):
            return cls("constant", f"{y:.6g}", (y, exponent))
        scale = math.exp(math.log(y) - exponent * math.log(x))
        return cls("power law", f"{scale:.6g} x^{exponent:.6g}", (scale, exponent))


def best_form(x: Sequence[float], y: Sequence[float]) -> Form | None:
    """The form that fits much better than any power law, if one does; for values without noise."""
    power = off("power law", x, y)
    if power <= PERFECT:
        return None
    found = {name: off(name, x, y) for name in RIVALS}
    name = min(found, key=lambda each: max(found[each], PERFECT))
    if found[name] > min(WELL, power / BETTER):
        return None
    told = f"within {found[name]:.1g} of every value, the best power law within {power:.2g}"
    return fitted(name, x, y, told)


def late_form(x: Sequence[float], y: Sequence[float]) -> Form | None:
    """The best form of the second half of the values alone, where the first has another shape."""
    half = len(x) // 2
    if len(x) - half < FEWEST_LATE:
        return None
    found = best_form(x[half:], y[half:])
    return None if found is None else replace(found, advantage=f"from {x[half]:.6g} on {found.advantage}")


def off(name: str, x: Sequence[float], y: Sequence[float]) -> float:
    """The largest share by which the fitted form misses a value."""
    wanted = np.asarray(y, dtype=float)
    made = predicted(name, x, y)
    return float(np.abs(made / wanted - 1).max()) if np.isfinite(made).all() else math.inf


def predicted(name: str, x: Sequence[float], y: Sequence[float], weights: Array | None = None) -> Array:
    """What the form with the best constants gives at every x; not finite where it has no meaning."""
    if name == "power of log" and min(x) <= 1:
        return np.full(len(x), math.inf)
    across, _ = _axes(name, x, y)
    constant, rate = _constants(name, x, y, weights)
    line: Array = constant + rate * across
    with np.errstate(over="ignore"):
        return line if name == "logarithm" else np.exp(line)


def fitted(
    name: str, x: Sequence[float], y: Sequence[float], advantage: str = "", weights: Array | None = None
) -> Form:
    """One of the rivals with its constants."""
    constant, rate = _constants(name, x, y, weights)
    if name == "logarithm":
        sign = "+" if rate >= 0 else "-"
        formula = f"{constant:.6g} {sign} {abs(rate) * math.log(2):.6g} log2 x"
    else:
        head = f"{math.exp(constant):.6g}" if abs(constant) < LARGEST_EXPONENT else f"e^{constant:.6g}"
        tail = f"* {math.exp(rate):.6g}^x" if name == "exponential" else f"(log x)^{rate:.6g}"
        formula = f"{head} {tail}"
    return Form(name, formula, (constant, rate), advantage)


def _axes(name: str, x: Sequence[float], y: Sequence[float]) -> tuple[Array, Array]:
    """On which axes the form is a straight line."""
    across, up = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if name == "logarithm":
        return np.log(across), up
    if name == "exponential":
        return across, np.log(up)
    return (np.log(across) if name == "power law" else np.log(np.log(across))), np.log(up)


def _constants(
    name: str, x: Sequence[float], y: Sequence[float], weights: Array | None
) -> tuple[float, float]:
    """By least squares of what a value is off in proportion, weighted by one over its variance."""
    across, up = _axes(name, x, y)
    scale = np.asarray(y, dtype=float) if name == "logarithm" else np.ones(len(up))
    trust = (np.ones(len(up)) if weights is None else np.sqrt(weights)) * (scale.min() / scale)
    centre = across.mean()
    columns = np.stack([np.ones(len(up)), across - centre], axis=1) * trust[:, None]
    (level, rate), *_ = np.linalg.lstsq(columns, up * trust, rcond=None)
    return float(level - rate * centre), float(rate)
