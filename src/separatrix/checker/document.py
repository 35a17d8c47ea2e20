"""Strict parsing of certificate files.

Files are untrusted. Sizes are bounded before anything is computed with them, and messages quote no text of
the file except plain short names.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

from separatrix.core.errors import UsageError
from separatrix.core.files.reading import read_whole

MOST_BYTES = 1 << 23
MOST_DIGITS = 4000
MOST_BITS = 13_300
"""The number of bits of an integer with MOST_DIGITS digits."""
LONGEST = 1 << 17
"""The maximum number of characters of a fraction; the longest valid ones are k/2^200003."""

_DECIMAL = re.compile(r"(?P<sign>-?)(?P<whole>0|[1-9][0-9]*)(?:\.(?P<places>[0-9]*[1-9]))?")
_RATIO = re.compile(r"(?P<sign>-?)(?P<top>[1-9][0-9]*)/(?P<bottom>[1-9][0-9]*)")
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,30}")


class Malformed(Exception):
    """The certificate is malformed; the message is one line."""


def require(holds: bool, fault: str) -> None:
    """Raise Malformed unless a requirement holds."""
    if not holds:
        raise Malformed(fault)


def read_file(path: Path) -> object:
    """Return the JSON value in a file, or raise a UsageError that names the file."""
    try:
        return parse_json(read_whole(path, MOST_BYTES, "a certificate"))
    except Malformed as fault:
        raise UsageError(f"{path} is no certificate: {fault}") from None


def parse_json(data: bytes) -> object:
    """Return the JSON value of UTF-8 text, or raise Malformed."""
    try:
        return json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=_float,
            parse_constant=_constant,
        )
    except RecursionError:
        raise Malformed("it is nested too deeply") from None
    except ValueError:
        raise Malformed("it is not JSON") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # JSON parsers disagree on which of two equal names counts, so a reader might see another value.
    values = dict(pairs)
    if len(values) < len(pairs):
        raise Malformed("a field is given twice")
    return values


def _integer(text: str) -> int:
    if len(text) > MOST_DIGITS + 1:
        raise Malformed(f"a number has more than {MOST_DIGITS} digits")
    value = digits(text.removeprefix("-"))
    # Python reads -0 as 0, so that two texts would stand for one value.
    if text == "-0":
        raise Malformed("a number is written as -0")
    return -value if text.startswith("-") else value


def _float(text: str) -> float:
    """Parse a float in its shortest form only, so that equal numbers have equal text."""
    value = float(text)
    if not math.isfinite(value) or repr(value) != text:
        raise Malformed("a number is not written in its shortest form")
    return value


def _constant(_: str) -> NoReturn:
    raise Malformed("a number is not finite")


def digits(text: str) -> int:
    """Return the integer of a digit string; Python itself refuses more than 4300 digits at once."""
    if len(text) <= 600:
        return int(text)
    # Halving keeps the products balanced, which Python multiplies in less than quadratic time.
    low = len(text) // 2
    shift: int = 10**low
    return digits(text[:-low]) * shift + digits(text[-low:])


def fields(value: object, place: str, names: Collection[str]) -> dict[str, Any]:
    """Require an object with exactly these fields."""
    if not isinstance(value, dict):
        raise Malformed(f"{place} is not an object")
    for name in names:
        if name not in value:
            raise Malformed(f"{place} lacks the field {name}")
    for name in value:
        if name not in names:
            quoted_name = name if isinstance(name, str) and _PLAIN_NAME.fullmatch(name) else "with an odd name"
            raise Malformed(f"{place} has the unknown field {quoted_name}")
    return value


def entries(value: object, place: str, count: int) -> list[Any]:
    """Require a list with `count` entries."""
    if not isinstance(value, list):
        raise Malformed(f"{place} is not a list")
    if len(value) != count:
        raise Malformed(f"{place} has {len(value)} entries instead of {count}")
    return value


def integer(value: object, place: str, low: int, high: int | None = None) -> int:
    """Require an integer from low to high; booleans are rejected."""
    # isinstance would accept true, which is an int in Python.
    if type(value) is not int:
        raise Malformed(f"{place} is not a whole number")
    if value < low:
        raise Malformed(f"{place} is less than {low}")
    if high is not None and value > high:
        raise Malformed(f"{place} is more than {high}")
    if value.bit_length() > MOST_BITS:
        raise Malformed(f"{place} has more than {MOST_DIGITS} digits")
    return value


def probability(value: object, place: str) -> float:
    """Require a float from 0 to 1."""
    if type(value) is not float:
        raise Malformed(f"{place} is not a floating-point number")
    if not 0 <= value <= 1:
        raise Malformed(f"{place} does not lie between 0 and 1")
    if math.copysign(1, value) < 0:
        raise Malformed(f"{place} is written as minus zero")
    return value


def word(value: object, place: str, words: Collection[str]) -> str:
    """Require one of the words."""
    if type(value) is not str or value not in words:
        raise Malformed(f"{place} is not one of: {', '.join(words)}")
    return value


def exact(value: object, place: str, longest: int = LONGEST) -> Fraction:
    """Parse a rational: a decimal without redundant zeros, or a fraction in lowest terms."""
    if type(value) is not str:
        raise Malformed(f"{place} is not an exact number written as text")
    if len(value) > longest:
        raise Malformed(f"{place} is longer than {longest} characters")
    if match := _DECIMAL.fullmatch(value):
        places = match["places"] or ""
        value_read = Fraction(digits(match["whole"] + places), 10 ** len(places))
    elif match := _RATIO.fullmatch(value):
        top, bottom = digits(match["top"]), digits(match["bottom"])
        value_read = Fraction(top, bottom)
        if bottom == 1 or value_read.denominator != bottom:
            raise Malformed(f"{place} is not in lowest terms")
    else:
        raise Malformed(f"{place} is not an exact decimal or fraction")
    if value_read == 0 and match["sign"]:
        raise Malformed(f"{place} is written as minus zero")
    return -value_read if match["sign"] else value_read
