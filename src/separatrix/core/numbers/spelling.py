"""Numbers formatted for people; output for programs keeps all digits."""

from __future__ import annotations

import math
import re

RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def for_people(x: float, digits: int = 6) -> str:
    """Format a number with this many significant digits, with powers of ten as in 4.5×10⁸.

    >>> for_people(57412345678, 3), for_people(1.6556e-06), for_people(1e40), for_people(0.25)
    ('5.74×10¹⁰', '1.6556×10⁻⁶', '10⁴⁰', '0.25')
    """
    if math.isinf(x):
        return "∞" if x > 0 else "-∞"
    mantissa, e, exponent = f"{x:.{digits}g}".partition("e")
    if not e:
        return mantissa
    return _with_power(mantissa, int(exponent))


def _with_power(mantissa: str, exponent: int) -> str:
    power = f"10{str(exponent).translate(RAISED)}"
    sign = mantissa.removesuffix("1")
    return f"{sign}{power}" if sign in ("", "-") else f"{mantissa}×{power}"


NOTATION = re.compile(r"(?<![\w.:])(-?\d+(?:\.\d+)?)e([+-]?\d+)(?![.:]?\w)")
"""A number in scientific notation, except in axes such as 1e3:1e9:7."""


def powers_for_people(text: str) -> str:
    """Rewrite numbers such as 8.0e-16 in a text for people.

    >>> powers_for_people("error 8.0e-16, allowed 1e-12; 0e+00 at n = 1e3. 1e3:1e9:7:log")
    'error 8×10⁻¹⁶, allowed 10⁻¹²; 0 at n = 10³. 1e3:1e9:7:log'
    """

    def rewrite(match: re.Match[str]) -> str:
        mantissa, exponent = match[1].removesuffix(".0"), int(match[2])
        if float(mantissa) == 0:
            return "0"
        return _with_power(mantissa, exponent)

    return NOTATION.sub(rewrite, text)


def whole_for_people(n: int, digits: int = 3) -> str:
    """Format an integer: with all digits below a million, rounded above.

    >>> whole_for_people(9300), whole_for_people(449_000_100)
    ('9300', '4.49×10⁸')
    """
    return str(n) if abs(n) < 10**6 else for_people(n, digits)


def round_up_for_people(n: int, digits: int = 3) -> str:
    """Format a positive integer of any size: with all digits below 10^12, rounded up above.

    >>> round_up_for_people(449_000_100), round_up_for_people(10**18), round_up_for_people(9_991 * 10**400)
    ('449000100', '10¹⁸', '10⁴⁰⁴')
    """
    if n < 10**12:
        return str(n)
    exponent = math.floor(math.log10(n))
    leading = -(-n // 10 ** (exponent - digits + 1))
    if leading == 10**digits:
        leading, exponent = leading // 10, exponent + 1
    mantissa = f"{leading / 10 ** (digits - 1):.{digits - 1}f}".rstrip("0").rstrip(".")
    return _with_power(mantissa, exponent)
