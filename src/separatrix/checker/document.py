"""A certificate as a file: what may stand in it, and nothing else.

Files come from strangers. Sizes are bounded before anything is computed with them, and no text of
the file is repeated in a message unless it is a plain short name.
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
"""Whole numbers are at most MOST_DIGITS digits long, which is this many bits."""
LONGEST = 1 << 17
"""Characters in a fraction; the longest true ones are k/2^200003."""

_DECIMAL = re.compile(r"(?P<sign>-?)(?P<whole>0|[1-9][0-9]*)(?:\.(?P<places>[0-9]*[1-9]))?")
_RATIO = re.compile(r"(?P<sign>-?)(?P<top>[1-9][0-9]*)/(?P<bottom>[1-9][0-9]*)")
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,30}")


class Malformed(Exception):
    """What is wrong with the certificate's form, in one line."""


def read_file(path: Path) -> object:
    """The JSON value in a file, or a UsageError that names the file."""
    data = read_whole(path, MOST_BYTES, "a certificate")
    try:
        return json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=_float,
            parse_constant=_constant,
        )
    except Malformed as fault:
        raise UsageError(f"{path} is no certificate: {fault}") from None
    except RecursionError:
        raise UsageError(f"{path} is no certificate: it is nested too deeply") from None
    except ValueError:
        raise UsageError(f"{path} is no certificate: it is not JSON") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Malformed("a field is given twice")
    return found


def _integer(text: str) -> int:
    if len(text) > MOST_DIGITS + 1:
        raise Malformed(f"a number has more than {MOST_DIGITS} digits")
    value = digits(text.removeprefix("-"))
    if text == "-0":
        raise Malformed("a number is written as -0")
    return -value if text.startswith("-") else value


def _float(text: str) -> float:
    """Only the shortest spelling, so that the text says no more than the number."""
    value = float(text)
    if not math.isfinite(value) or repr(value) != text:
        raise Malformed("a number is not written in its shortest form")
    return value


def _constant(_: str) -> NoReturn:
    raise Malformed("a number is not finite")


def digits(text: str) -> int:
    """The integer of a row of digits; Python itself refuses more than 4300 at once."""
    if len(text) <= 600:
        return int(text)
    low = len(text) // 2
    shift: int = 10**low
    return digits(text[:-low]) * shift + digits(text[-low:])


def fields(value: object, where: str, names: Collection[str]) -> dict[str, Any]:
    """An object with these fields and no others."""
    if not isinstance(value, dict):
        raise Malformed(f"{where} is not an object")
    for name in names:
        if name not in value:
            raise Malformed(f"{where} lacks the field {name}")
    for name in value:
        if name not in names:
            shown = name if isinstance(name, str) and _PLAIN_NAME.fullmatch(name) else "with an odd name"
            raise Malformed(f"{where} has the unknown field {shown}")
    return value


def entries(value: object, where: str, count: int) -> list[Any]:
    """A list of so many entries."""
    if not isinstance(value, list):
        raise Malformed(f"{where} is not a list")
    if len(value) != count:
        raise Malformed(f"{where} has {len(value)} entries instead of {count}")
    return value


def whole(value: object, where: str, low: int, high: int | None = None) -> int:
    """An integer from low to high; true and false are none."""
    if type(value) is not int:
        raise Malformed(f"{where} is not a whole number")
    if value < low:
        raise Malformed(f"{where} is less than {low}")
    if high is not None and value > high:
        raise Malformed(f"{where} is more than {high}")
    if value.bit_length() > MOST_BITS:
        raise Malformed(f"{where} has more than {MOST_DIGITS} digits")
    return value


def probability(value: object, where: str) -> float:
    """A float from 0 to 1."""
    if type(value) is not float:
        raise Malformed(f"{where} is not a floating-point number")
    if not 0 <= value <= 1:
        raise Malformed(f"{where} does not lie between 0 and 1")
    if math.copysign(1, value) < 0:
        raise Malformed(f"{where} is written as minus zero")
    return value


def word(value: object, where: str, words: Collection[str]) -> str:
    """One of the words."""
    if type(value) is not str or value not in words:
        raise Malformed(f"{where} is not one of: {', '.join(words)}")
    return value


def exact(value: object, where: str, longest: int = LONGEST) -> Fraction:
    """A rational as text: a decimal without needless zeros, or a fraction in lowest terms."""
    if type(value) is not str:
        raise Malformed(f"{where} is not an exact number written as text")
    if len(value) > longest:
        raise Malformed(f"{where} is longer than {longest} characters")
    if spelled := _DECIMAL.fullmatch(value):
        places = spelled["places"] or ""
        found = Fraction(digits(spelled["whole"] + places), 10 ** len(places))
    elif spelled := _RATIO.fullmatch(value):
        top, bottom = digits(spelled["top"]), digits(spelled["bottom"])
        found = Fraction(top, bottom)
        if bottom == 1 or found.denominator != bottom:
            raise Malformed(f"{where} is not in lowest terms")
    else:
        raise Malformed(f"{where} is not an exact decimal or fraction")
    if found == 0 and spelled["sign"]:
        raise Malformed(f"{where} is written as minus zero")
    return -found if spelled["sign"] else found
