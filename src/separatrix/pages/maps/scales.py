"""What the colours of a map stand for, and the lines over them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from separatrix.analysis.maps import Map
from separatrix.analysis.maps.quantities import PROBABILITIES, QUANTITIES, quantity_label
from separatrix.core.numbers.formats import SIGNIFICANT_BITS, TORCH_NAMES
from separatrix.pages.commands import spell_number

Array = np.ndarray[Any, Any]

MANY_DECADES = 1e3
"""A margin that spans more than this factor is coloured by its logarithm."""
MIN_SPREAD = 0.05
"""Where probabilities differ by less, a panel would have a single colour; it shows the margin instead."""
UNITS = {"a0", "a1", "b", "c", "r_Q"}
"""Parameters in units of √(log n)."""
FORMAT_LEVELS = {f"{TORCH_NAMES[name]}, {bits} bits": bits for name, bits in SIGNIFICANT_BITS.items()}
"""The lines over a map of bits beyond which a number format has too few of them."""
SEQUENTIAL, DIVERGING = "cividis", "RdBu"
"""Ramps that colour-blind people can read: from little to much, and from less through none to more."""


@dataclass(frozen=True)
class ColourScale:
    """The numbers that colours stand for."""

    label: str
    low: float
    high: float
    ramp: str = SEQUENTIAL
    log: bool = False
    """Whether `low` and `high` are logarithms, by which numbers are coloured."""

    def shade(self, values: Array) -> Array:
        """Return the numbers between `low` and `high` that are coloured; NaN where there is no colour."""
        with np.errstate(divide="ignore", invalid="ignore"):
            numbers = np.log10(values) if self.log else values
        return np.where(np.isfinite(numbers), numbers, np.nan)


def margin_scale_if_flat(probabilities: Array, margin: Array) -> ColourScale | None:
    """Return a scale of margins if probabilities would have a single colour and margins would not."""
    finite = probabilities[np.isfinite(probabilities)]
    if not finite.size or float(finite.max() - finite.min()) >= MIN_SPREAD:
        return None
    varies = float(np.nanmax(margin, initial=-np.inf)) > float(np.nanmin(margin, initial=np.inf))
    return margin_scale(margin) if varies else None


def margin_scale(margin: Array) -> ColourScale | None:
    """Return a scale of margins, of their logarithm if they span decades; None if none is positive."""
    positive = margin[np.isfinite(margin) & (margin > 0)]
    if not positive.size:
        return None
    low, high = float(positive.min()), float(positive.max())
    if high > MANY_DECADES * low:
        return ColourScale(QUANTITIES["margin"], float(np.log10(low)), float(np.log10(high)), log=True)
    return ColourScale(QUANTITIES["margin"], low, high if high > low else low + 1)


def margin_title(mechanism: str, probabilities: Array) -> str:
    """Return the title of a panel that shows the margin.

    >>> margin_title("linear", np.array([0.0, 0.004])), margin_title("linear", np.array([0.0, np.nan]))
    ('linear, margin (P ≤ 0.004)', 'linear, margin (P = 0)')
    """
    finite = probabilities[np.isfinite(probabilities)]
    low, high = float(finite.min()), float(finite.max())
    if low == high:
        return f"{mechanism}, margin (P = {spell_number(high, 2)})"
    range_text = f"P ≤ {spell_number(high, 2)}" if high <= 0.5 else f"P ≥ {spell_number(low, 2)}"
    return f"{mechanism}, margin ({range_text})"


def quantity_scale(result: Map) -> ColourScale:
    """Return one scale for all panels: 0 to 1 for probabilities, around 0 for differences, else the range."""
    name = quantity_label(result.quantity)
    values = np.concatenate([layer.values[np.isfinite(layer.values)] for layer in result.panels])
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
    if result.difference:
        reach = 1.0 if result.quantity in PROBABILITIES else max(abs(low), abs(high)) or 1.0
        return ColourScale(f"difference of {name}", -reach, reach, DIVERGING)
    if result.quantity in PROBABILITIES:
        return ColourScale(name, 0.0, 1.0)
    if result.quantity == "margin" and low > 0 and (scale := margin_scale(values)) is not None:
        return scale
    return ColourScale(name, low, high if high > low else low + 1)


def quantity_levels(result: Map) -> dict[str, float]:
    """Return the values of the quantity at which a line is drawn, by its name."""
    if result.difference:
        return {}
    if result.quantity in PROBABILITIES:
        return {"P = 1/2": 0.5}
    return {name: float(bits) for name, bits in FORMAT_LEVELS.items()} if result.quantity == "bits" else {}


def axis_label(name: str) -> str:
    """Return a parameter with its unit."""
    return f"{name}, in units of √(log n)" if name in UNITS else name
