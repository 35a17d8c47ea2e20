"""Amplitudes as float64 numbers whose sums are exact.

The thresholds of the closed form are full of ties (b/(d-2) times a whole number against 0.1), and
0.1 is no float. So all amplitudes of a grid are multiplied by their common denominator: they become
integers, and sums of integers below 2^53 are exact in float64.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from separatrix.constructions import Amplitudes

Array = np.ndarray[Any, Any]
WHOLE = 2.0**52


@dataclass(frozen=True)
class ScaledAmplitudes:
    """Amplitudes in float64, times a common factor; `exact` if they are integers."""

    a: tuple[Array, Array]
    b: Array
    c: Array
    tau: Array
    exact: bool


def scale(amplitudes: Amplitudes, blocks: Array) -> ScaledAmplitudes:
    """Convert object arrays of rationals to integers, if these and their sums stay below 2^53."""
    columns = [*amplitudes.a, amplitudes.b, amplitudes.c, amplitudes.tau]
    columns = [np.asarray(column, dtype=object) for column in columns]
    common = 1
    for column in columns:
        for value in column.flat:
            common = math.lcm(common, Fraction(value).denominator)
            if common > WHOLE:  # too large already; lcm of long fractions would only get slower
                break
    largest = sum(max(abs(value) for value in column.flat) for column in columns)
    # A threshold is a sum of at most blocks + 3 times each amplitude.
    exact = common * largest * (int(blocks.max()) + 3) < WHOLE
    factor = common if exact else 1
    a0, a1, b, c, tau = (_floats(column, factor) for column in columns)
    return ScaledAmplitudes((a0, a1), b, c, tau, bool(exact))


def scale_each(amplitudes: Amplitudes, blocks: Array) -> tuple[ScaledAmplitudes, list[bool]]:
    """Like `scale`, with a separate factor for each point. Also return which points have integers."""
    columns = [*amplitudes.a, amplitudes.b, amplitudes.c, amplitudes.tau]
    columns = [np.broadcast_to(np.asarray(column, dtype=object), blocks.shape) for column in columns]
    columns_scaled, are_integers = np.empty((len(columns), *blocks.shape)), []
    for index, (point, size) in enumerate(zip(zip(*columns, strict=True), blocks, strict=True)):
        common = math.lcm(*(Fraction(value).denominator for value in point))
        are_integers.append(bool(common * sum(map(abs, point)) * (int(size) + 3) < WHOLE))
        columns_scaled[:, index] = [float(value * (common if are_integers[-1] else 1)) for value in point]
    a0, a1, b, c, tau = columns_scaled
    return ScaledAmplitudes((a0, a1), b, c, tau, True), are_integers


def _floats(column: Array, factor: int) -> Array:
    return np.array([float(value * factor) for value in column.flat]).reshape(column.shape)


def float_values(columns: dict[str, Array]) -> dict[str, Any]:
    """Convert every numeric column to float64; text columns are unchanged."""
    return {
        name: column.item() if column.shape == () and isinstance(column.item(), str) else _floats(column, 1)
        for name, column in columns.items()
    }


__all__ = ["ScaledAmplitudes", "float_values", "scale", "scale_each"]
