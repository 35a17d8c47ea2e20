"""Numbers as the user wrote them: decimals and fractions are exact rationals."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from numbers import Rational, Real

from separatrix.core.errors import UsageError

MOST_DIGITS = 4000
"""Longer numbers are refused: they are slips (`1e99999999`), and would only exhaust memory."""
MOST_BITS = 13_300
"""Whole numbers of at most MOST_DIGITS digits have no more bits than this."""

_NUMBER = re.compile(
    r"""[+-]? (?: (?P<ratio>\d+/\d+) | (?P<digits>\d+(?:_\d+)*\.?\d*|\.\d+) (?:e(?P<exponent>[+-]?\d+))? )""",
    re.VERBOSE | re.ASCII | re.IGNORECASE,
)
_RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹⁻"
_POWER = re.compile(
    rf"(?P<base>\d+)(?:(?:\^|\*\*)(?P<power>-?\d+)|(?P<raised>⁻?[{_RAISED[:-1]}]+))", re.ASCII
)
_NOT_FINITE = {"inf", "+inf", "-inf", "infinity", "+infinity", "-infinity", "nan", "+nan", "-nan"}


def parse_exact(value: object, name: str = "value") -> Fraction:
    """The rational that `value` spells; a float counts as the decimal it prints as.

    >>> parse_exact("0.1"), parse_exact("2/6"), parse_exact(0.1), parse_exact("1e3"), parse_exact("2^10")
    (Fraction(1, 10), Fraction(1, 3), Fraction(1, 10), Fraction(1000, 1), Fraction(1024, 1))
    """
    if isinstance(value, bool) or not isinstance(value, str | Real | Decimal):
        raise UsageError(f"{name}={value!r} is not a number")
    if isinstance(value, Rational):
        parts = int(value.numerator), int(value.denominator)
        if any(part.bit_length() > MOST_BITS for part in parts):
            raise UsageError(f"{name} has more than {MOST_DIGITS} digits")
        return Fraction(*parts)
    text = str(value).strip()
    if text.lower() in _NOT_FINITE:
        raise UsageError(f"{name}={text} is not a finite number")
    if (power := _POWER.fullmatch(text)) is not None:
        return _raised(power, name)
    spelled = _NUMBER.fullmatch(text)
    if spelled is None:
        raise UsageError(f"{name}={text} is not a number{_advice(text, name)}")
    exponent, written = spelled["exponent"] or "0", spelled["ratio"] or spelled["digits"]
    if len(exponent) > 6 or len(written) + abs(int(exponent)) > MOST_DIGITS + len("0."):
        raise _too_long(text, name)
    try:
        return Fraction(text.replace("_", ""))
    except ZeroDivisionError:
        raise UsageError(f"{name}={text} divides by zero") from None


def _raised(spelled: re.Match[str], name: str) -> Fraction:
    """A power of whole numbers, as 10^18, 2**20 or 10¹⁸; one that is too long is never computed."""
    text, base = spelled[0], spelled["base"]
    power = spelled["power"] or spelled["raised"].translate(str.maketrans(_RAISED, "0123456789-"))
    if len(power) > 6 or len(base) > MOST_DIGITS:
        raise _too_long(text, name)
    whole, times = int(base), int(power)
    if (whole.bit_length() - 1) * abs(times) > MOST_BITS or (whole ** abs(times)).bit_length() > MOST_BITS:
        raise _too_long(text, name)
    try:
        return Fraction(whole) ** times
    except ZeroDivisionError:
        raise UsageError(f"{name}={text} divides by zero") from None


def _too_long(text: str, name: str) -> UsageError:
    return UsageError(f"{name}={text[:20]}{'…' * (len(text) > 20)} has more than {MOST_DIGITS} digits")


def _advice(text: str, name: str) -> str:
    """How to write what has commas, or a letter for a thousand or more.

    >>> _advice("131,072", "n"), _advice("128k", "n"), _advice("many", "n")
    ('; write n=131072', '; write n=128000, or n=131072 if it is 128 times 1024', '')
    """
    if re.fullmatch(r"\d{1,3}(,\d{3})+", text, re.ASCII):
        return f"; write {name}={text.replace(',', '')}"
    power = {"k": 1, "m": 2, "g": 3}.get(text[-1:].lower(), 0)
    if not power or not re.fullmatch(r"\d{1,6}", text[:-1], re.ASCII):
        return ""
    many = int(text[:-1])
    times = "1024" if power == 1 else f"1024^{power}"
    return (
        f"; write {name}={many * 1000**power}, or {name}={many * 1024**power} if it is {many} times {times}"
    )


def parse_integer(value: object, name: str = "value") -> int:
    """The integer that `value` spells, however large.

    >>> parse_integer("1e18")
    1000000000000000000
    """
    exact = parse_exact(value, name)
    if exact.denominator != 1:
        raise UsageError(f"{name}={value} is not a whole number")
    return exact.numerator


def format_exact(value: Fraction | int) -> str:
    """The shortest exact spelling: a decimal where it terminates, else a fraction.

    >>> format_exact(Fraction(1, 8)), format_exact(Fraction(1, 3)), format_exact(10**18)
    ('0.125', '1/3', '1000000000000000000')
    """
    value = Fraction(value)
    places, rest = 0, value.denominator
    while rest % 10 == 0:
        places, rest = places + 1, rest // 10
    while rest % 2 == 0:
        places, rest = places + 1, rest // 2
    while rest % 5 == 0:
        places, rest = places + 1, rest // 5
    if rest != 1:
        return str(value)
    if places == 0:
        return str(value.numerator)
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[:-places]}.{digits[-places:]}"
