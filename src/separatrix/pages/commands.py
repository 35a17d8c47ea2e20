"""Commands that print a number of a page again, and the spelling of their parameters."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from separatrix.core.numbers import format_exact
from separatrix.core.numbers.spelling import RAISED


@dataclass(frozen=True)
class Command:
    """A command line and the number that it prints."""

    line: str
    prints: str

    @property
    def arguments(self) -> list[str]:
        """The words after `separatrix`."""
        return shlex.split(self.line)[1:]


def verdict_command(mechanism: str, parameters: Mapping[str, object], prints: str, options: str = "") -> Command:
    """Return `separatrix verdict spike …` at a point.

    >>> verdict_command("linear", {"n": 10**18, "a1": Fraction(6, 5)}, "P = 0").line
    'separatrix verdict spike linear n=1e18 a1=1.2'
    """
    words = " ".join(f"{name}={spell_value(value)}" for name, value in parameters.items())
    return Command(f"separatrix verdict spike {mechanism} {words} {options}".strip(), prints)


def reproduce_command(prints: str) -> Command:
    """Return the command that writes the report of the reproduction."""
    return Command("separatrix reproduce --out reproduction", prints)


def spell_value(value: object) -> str:
    """Return a parameter as it is typed: 1e18, 0.1, 2/3.

    >>> spell_value(10**18), spell_value(200000), spell_value(1000), spell_value(Fraction(2, 3))
    ('1e18', '2e5', '1000', '2/3')
    """
    text = format_exact(value) if isinstance(value, int | Fraction) else str(value)
    digits = text.rstrip("0")
    zeros = len(text) - len(digits)
    return f"{digits}e{zeros}" if digits.isdecimal() and zeros >= 5 else text


def spell_number(value: float, digits: int = 4) -> str:
    """Return a number for a sentence: plain where that is short, else with a power of ten.

    >>> spell_number(0.999755), spell_number(1.6556e-06), spell_number(343000000000000000)
    ('0.9998', '1.656×10⁻⁶', '3.43×10¹⁷')
    >>> spell_number(9300, 3), spell_number(0.0)
    ('9,300', '0')
    """
    if value == 0 or 1e-3 <= abs(value) < 1e6:
        return f"{value:.{digits}g}" if abs(value) < min(10**digits, 10**4) else f"{value:,.0f}"
    mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    power = f"10{str(int(exponent)).translate(RAISED)}"
    return power if mantissa == "1" else f"{mantissa}×{power}"
