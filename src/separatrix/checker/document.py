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


def fields(value: Any, place: str, names: Collection[str]) -> dict[str, Any]:
    """Require an object with exactly these fields."""
    require(isinstance(value, dict), f"{place} is not an object")
    for name in names:
        require(name in value, f"{place} lacks the field {name}")
    for name in value:
        quoted_name = name if isinstance(name, str) and _PLAIN_NAME.fullmatch(name) else "with an odd name"
        require(name in names, f"{place} has the unknown field {quoted_name}")
    return dict(value)


def header(document: Any, name: str, version: int, names: Collection[str]) -> dict[str, Any]:
    """Require a certificate of this format and version, with exactly these fields and those of every certificate."""
    # Another version has other fields, so that it is examined first.
    is_format = isinstance(document, dict) and type(document.get("format")) is str and document["format"] == name
    require(is_format, f"format is not {name}")
    is_known = type(document.get("version")) is int and document["version"] == version
    require(is_known, f"version is not {version}, the one this checker knows; make it again with --certificate")
    body = fields(document, "the certificate", ("format", "version", "construction", "mechanism", *names, "sha256"))
    require(type(body["sha256"]) is str, "sha256 is not text")
    return body


def entries(value: Any, place: str, count: int | None = None, most: int | None = None) -> list[Any]:
    """Require a list with `count` entries, or with 1 to `most`."""
    require(isinstance(value, list), f"{place} is not a list")
    require(count is None or len(value) == count, f"{place} has {len(value)} entries instead of {count}")
    require(most is None or 1 <= len(value) <= most, f"{place} is not a list of 1 to {most} entries")
    return list(value)


def integer(value: Any, place: str, low: int, high: int | None = None) -> int:
    """Require an integer from low to high; booleans are rejected."""
    # isinstance would accept true, which is an int in Python.
    require(type(value) is int, f"{place} is not a whole number")
    require(value >= low, f"{place} is less than {low}")
    require(high is None or value <= high, f"{place} is more than {high}")
    require(value.bit_length() <= MOST_BITS, f"{place} has more than {MOST_DIGITS} digits")
    return int(value)


def probability(value: Any, place: str) -> float:
    """Require a float from 0 to 1."""
    require(type(value) is float, f"{place} is not a floating-point number")
    require(0 <= value <= 1, f"{place} does not lie between 0 and 1")
    require(math.copysign(1, value) > 0, f"{place} is written as minus zero")
    return float(value)


def word(value: object, place: str, words: Collection[str]) -> str:
    """Require one of the words."""
    require(type(value) is str and value in words, f"{place} is not one of: {', '.join(words)}")
    return str(value)


def between(value: object, place: str, high: Fraction | int) -> Fraction:
    """Parse a rational strictly between 0 and `high`."""
    number = exact(value, place, MOST_DIGITS)
    require(0 < number < high, f"{place} does not lie between 0 and {high}")
    return number


def exact(value: Any, place: str, longest: int = LONGEST) -> Fraction:
    """Parse a rational: a decimal without redundant zeros, or a fraction in lowest terms."""
    require(type(value) is str, f"{place} is not an exact number written as text")
    require(len(value) <= longest, f"{place} is longer than {longest} characters")
    if match := _DECIMAL.fullmatch(value):
        places = match["places"] or ""
        value_read = Fraction(digits(match["whole"] + places), 10 ** len(places))
    elif match := _RATIO.fullmatch(value):
        top, bottom = digits(match["top"]), digits(match["bottom"])
        value_read = Fraction(top, bottom)
        require(bottom > 1 and value_read.denominator == bottom, f"{place} is not in lowest terms")
    else:
        raise Malformed(f"{place} is not an exact decimal or fraction")
    require(value_read != 0 or not match["sign"], f"{place} is written as minus zero")
    return -value_read if match["sign"] else value_read
