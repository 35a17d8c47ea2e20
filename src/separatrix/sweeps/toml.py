"""The data in a TOML text, with limits on what may stand in it before anything is made of it."""

from __future__ import annotations

import tomllib
from decimal import Decimal, InvalidOperation
from typing import Any

from separatrix.numbers.exact import MOST_BITS, MOST_DIGITS
from separatrix.sweeps.complaints import PlanError
from separatrix.sweeps.lines import DEEPEST, statements

TOO_LONG = f"a number has more than {MOST_DIGITS} digits"


def read_toml(text: str, where: str) -> dict[str, Any]:
    """What a TOML text says, decimals with the digits they are written with; or a PlanError."""
    deep = next((each for each in statements(text) if each.depth > DEEPEST), None)
    if deep is not None:
        raise PlanError(
            where, [(deep.line, f"this is nested more than {DEEPEST} deep, too deeply for a plan")]
        )
    try:
        data = _parsed(text)
    except tomllib.TOMLDecodeError as error:
        what, _, place = str(error).rpartition(" (at ")
        digits = "".join(filter(str.isdigit, place.partition(",")[0]))
        raise PlanError(where, [(int(digits or text.count("\n") + 1), what or str(error))]) from None
    except ValueError:
        found = next((each.line for each in statements(text) if _is_too_long(each.text)), 1)
        raise PlanError(where, [(found, TOO_LONG)]) from None
    return data


def _parsed(text: str) -> dict[str, Any]:
    data = tomllib.loads(text, parse_float=_decimal)
    _require_short(data)
    return data


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ValueError(TOO_LONG) from None


def _require_short(data: Any) -> None:
    """Refuse whole numbers that have too many digits to be printed."""
    if isinstance(data, int) and data.bit_length() > MOST_BITS:
        raise ValueError(TOO_LONG)
    if isinstance(data, dict | list):
        for each in data.values() if isinstance(data, dict) else data:
            _require_short(each)


def _is_too_long(statement: str) -> bool:
    try:
        _parsed(statement)
    except ValueError:
        return True
    return False
