"""Number formats: their significant bits, and rounding to nearest, ties to even."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

SIGNIFICANT_BITS = {"bf16": 8, "fp16": 11, "fp32": 24, "fp64": 53}
TORCH_NAMES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "fp64": "float64"}
LEAST_EXPONENT = {"bf16": -126, "fp16": -14, "fp32": -126, "fp64": -1022}
"""The least exponent of a number that is not subnormal."""


def round_to_format(x: Array, name: str) -> Array:
    """Round float64 numbers to a narrower format.

    >>> round_to_format(np.array([1 / 3, 1e-9, 7e4]), "fp16").tolist()
    [0.333251953125, 0.0, inf]
    """
    bits, least = SIGNIFICANT_BITS[name], LEAST_EXPONENT[name]
    last = last_place(x, name)
    # Dividing by a power of two is exact, and np.round rounds ties to even, as IEEE formats do.
    nearest = np.round(x / last) * last
    largest = (2.0 - 2.0 ** (1 - bits)) * 2.0 ** (1 - least)
    result: Array = np.where(np.abs(nearest) > largest, np.copysign(np.inf, x), nearest)
    return result


def last_place(x: Array, name: str) -> Array:
    """Return the unit in the last place at x."""
    exponent = np.frexp(x)[1] - 1
    # Below the least normal exponent the spacing stays constant: these are the subnormal numbers.
    place: Array = np.ldexp(1.0, np.maximum(exponent, LEAST_EXPONENT[name]) - SIGNIFICANT_BITS[name] + 1)
    return place


def bit_of_difference(value: float, difference: float) -> int:
    """Return the first significant bit of a number, counted from 1, that a difference changes.

    >>> bit_of_difference(1.5, 2.0**-7), bit_of_difference(1.5, 1.0), bit_of_difference(0.1, 3.0)
    (8, 1, 1)
    """
    return max(1, math.frexp(value)[1] - math.frexp(difference)[1] + 1)


def round_to(x: Fraction, bits: int) -> Fraction:
    """Round x to `bits` significant bits, ties to even, with unlimited exponents.

    >>> round_to(Fraction(1, 3), 8)
    Fraction(171, 512)
    """
    if x == 0:
        return x
    exponent = abs(x.numerator).bit_length() - x.denominator.bit_length()
    # The difference of bit lengths is floor(log2|x|) or one more.
    if abs(x) < Fraction(2) ** exponent:
        exponent -= 1
    ulp = Fraction(2) ** (exponent - bits + 1)
    return round(x / ulp) * ulp
