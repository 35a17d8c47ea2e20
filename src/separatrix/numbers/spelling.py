"""Numbers as people read them; what is to be read by a program, or typed again, keeps its digits."""

from __future__ import annotations

import math

RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def for_people(x: float, digits: int = 6) -> str:
    """A number rounded to so many significant digits, with its power of ten written as one.

    >>> for_people(57412345678, 3), for_people(1.6556e-06), for_people(1e40), for_people(0.25)
    ('5.74×10¹⁰', '1.6556×10⁻⁶', '10⁴⁰', '0.25')
    """
    if math.isinf(x):
        return "∞" if x > 0 else "-∞"
    mantissa, e, exponent = f"{x:.{digits}g}".partition("e")
    if not e:
        return mantissa
    power = f"10{str(int(exponent)).translate(RAISED)}"
    sign = mantissa.removesuffix("1")
    return f"{sign}{power}" if sign in ("", "-") else f"{mantissa}×{power}"


def whole_for_people(n: int, digits: int = 3) -> str:
    """A whole number: below a million with all its digits, above it rounded.

    >>> whole_for_people(9300), whole_for_people(449_000_100)
    ('9300', '4.49×10⁸')
    """
    return str(n) if abs(n) < 10**6 else for_people(n, digits)
