"""Exact numbers: decimals and fractions as the user wrote them."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from numbers import Rational, Real

from separatrix.core.errors import UsageError

MOST_DIGITS = 4000
"""Longer numbers are rejected: they are typing errors (`1e99999999`) and would exhaust memory."""
MOST_BITS = 13_300
"""The maximum number of bits of an integer with MOST_DIGITS digits."""

_NUMBER = re.compile(
    r"""[+-]? (?: (?P<ratio>\d+/\d+) | (?P<digits>\d+(?:_\d+)*\.?\d*|\.\d+) (?:e(?P<exponent>[+-]?\d+))? )""",
    re.VERBOSE | re.ASCII | re.IGNORECASE,
)
_RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹⁻"
_POWER = re.compile(rf"(?P<base>\d+)(?:(?:\^|\*\*)(?P<power>-?\d+)|(?P<raised>⁻?[{_RAISED[:-1]}]+))", re.ASCII)
_NOT_FINITE = {"inf", "+inf", "-inf", "infinity", "+infinity", "-infinity", "nan", "+nan", "-nan"}


def parse_exact(value: object, name: str = "value") -> Fraction:
    """Parse a rational number; a float is read as the decimal that it prints as.

    >>> parse_exact("0.1"), parse_exact("2/6"), parse_exact(0.1), parse_exact("1e3"), parse_exact("2^10")
    (Fraction(1, 10), Fraction(1, 3), Fraction(1, 10), Fraction(1000, 1), Fraction(1024, 1))
    """
    if isinstance(value, bool) or not isinstance(value, str | Real | Decimal):
        raise UsageError(f"{name}={value!r} is not a number")
    # A float falls through to its text: 0.1 means 1/10, not the binary fraction nearest to it.
    if isinstance(value, Rational):
        parts = int(value.numerator), int(value.denominator)
        if any(part.bit_length() > MOST_BITS for part in parts):
            raise UsageError(f"{name} has more than {MOST_DIGITS} digits")
        return Fraction(*parts)
    text = str(value).strip()
    if text.lower() in _NOT_FINITE:
        raise UsageError(f"{name}={text} is not a finite number")
    if (power := _POWER.fullmatch(text)) is not None:
        return _parse_power(power, name)
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise UsageError(f"{name}={text} is not a number{_advice(text, name)}")
    exponent, digits = match["exponent"] or "0", match["ratio"] or match["digits"]
    # Checked on the text: Fraction would compute 10**exponent before anyone could refuse it.
    if len(exponent) > 6 or len(digits) + abs(int(exponent)) > MOST_DIGITS + len("0."):
        raise _too_long(text, name)
    try:
        return Fraction(text.replace("_", ""))
    except ZeroDivisionError:
        raise UsageError(f"{name}={text} divides by zero") from None


def _parse_power(match: re.Match[str], name: str) -> Fraction:
    """Parse a power of integers such as 10^18, 2**20 or 10¹⁸; oversized powers are not computed."""
    text, base = match[0], match["base"]
    power = match["power"] or match["raised"].translate(str.maketrans(_RAISED, "0123456789-"))
    if len(power) > 6 or len(base) > MOST_DIGITS:
        raise _too_long(text, name)
    base_value, exponent = int(base), int(power)
    # The first test is a lower bound of the length and costs nothing; it keeps the second one small.
    if (base_value.bit_length() - 1) * abs(exponent) > MOST_BITS or (
        base_value ** abs(exponent)
    ).bit_length() > MOST_BITS:
        raise _too_long(text, name)
    try:
        return Fraction(base_value) ** exponent
    except ZeroDivisionError:
        raise UsageError(f"{name}={text} divides by zero") from None


def _too_long(text: str, name: str) -> UsageError:
    return UsageError(f"{name}={text[:20]}{'…' * (len(text) > 20)} has more than {MOST_DIGITS} digits")


def _advice(text: str, name: str) -> str:
    """Suggest how to write a number with commas, or with a letter for thousands.

    >>> _advice("131,072", "n"), _advice("128k", "n"), _advice("many", "n")
    ('; write n=131072', '; write n=128000, or n=131072 if it is 128 times 1024', '')
    """
    if re.fullmatch(r"\d{1,3}(,\d{3})+", text, re.ASCII):
        return f"; write {name}={text.replace(',', '')}"
    power = {"k": 1, "m": 2, "g": 3}.get(text[-1:].lower(), 0)
    if not power or not re.fullmatch(r"\d{1,6}", text[:-1], re.ASCII):
        return ""
    count = int(text[:-1])
    times = "1024" if power == 1 else f"1024^{power}"
    decimal, binary = count * 1000**power, count * 1024**power
    return f"; write {name}={decimal}, or {name}={binary} if it is {count} times {times}"


def parse_integer(value: object, name: str = "value") -> int:
    """Parse an integer of any size.

    >>> parse_integer("1e18")
    1000000000000000000
    """
    exact = parse_exact(value, name)
    if exact.denominator != 1:
        raise UsageError(f"{name}={value} is not a whole number")
    return exact.numerator


def format_exact(value: Fraction | int) -> str:
    """Return the shortest exact text: a decimal if it terminates, otherwise a fraction.

    >>> format_exact(Fraction(1, 8)), format_exact(Fraction(1, 3)), format_exact(10**18)
    ('0.125', '1/3', '1000000000000000000')
    """
    value = Fraction(value)
    places, remainder = 0, value.denominator
    # 10, then 2, then 5: a decimal needs max(twos, fives) places, and each pair shares one.
    for factor in (10, 2, 5):
        while remainder % factor == 0:
            places, remainder = places + 1, remainder // factor
    if remainder != 1:
        return str(value)
    if places == 0:
        return str(value.numerator)
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[:-places]}.{digits[-places:]}"
