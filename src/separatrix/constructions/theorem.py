"""What the separation theorem (theory 3.4) asks of a spike, and whether a point has it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from separatrix.constructions._base import Construction
from separatrix.constructions.spike import Spike

WIDTH, SIGNS = "d - 2 >= 200 b² log(4m/delta)", "m >= log(1/delta)/log(4/3)"


def enough_signs(delta: float | Fraction) -> int:
    """The least m the theorem asks for, at any delta above 0.

    >>> enough_signs(0.01), enough_signs(Fraction(1, 10**400))
    (17, 3202)
    """
    return math.ceil(-_log(delta) / math.log(4 / 3))


def asked_width(b: float, m: int, delta: float | Fraction) -> float:
    """What the theorem asks d - 2 to reach."""
    return 200 * b * b * (math.log(4 * m) - _log(delta))


def _log(x: float | Fraction) -> float:
    """Of a fraction, too, that no float is near to."""
    exact = Fraction(x)
    return math.log(exact.numerator) - math.log(exact.denominator)


def enough_width(b: float, m: int, delta: float | Fraction) -> int:
    """The least d the theorem asks for."""
    return 2 + math.ceil(asked_width(b, m, delta))


def hypotheses(setting: Mapping[str, Any], delta: float | Fraction) -> dict[str, bool]:
    """The theorem's five conditions."""
    a0, a1, b, c = (Fraction(setting[name]) for name in ("a0", "a1", "b", "c"))
    return {
        "a1(a1+b+c) > 1": a1 * (a1 + b + c) > 1,
        "a0(a0+b+c) < 1": a0 * (a0 + b + c) < 1,
        "a1 - b > 0.1": a1 - b > Fraction(1, 10),
        WIDTH: setting["d"] >= enough_width(float(b), setting["m"], delta),
        SIGNS: setting["m"] >= enough_signs(delta),
    }


def standing_in_theorem(point: Construction, delta: Fraction) -> str:
    """Whether the theorem speaks of a point, in a sentence; nothing where it is not about its kind.

    >>> spike = Spike.read({**Spike.example, "m": 17})
    >>> standing_in_theorem(spike, Fraction(1, 100))
    "The theorem's hypotheses hold here for this delta; it speaks of large n."
    """
    if not _is_its_kind(point):
        return ""
    return outside_theorem(point, delta) or (
        "The theorem's hypotheses hold here for this delta; it speaks of large n."
    )


def _is_its_kind(point: Construction) -> bool:
    return isinstance(point, Spike) and point.parameters.shown().get("form") == "ones"


def outside_theorem(point: Construction, delta: Fraction) -> str:
    """What the theorem asks for that a point has not, in a sentence; nothing where it is of another kind.

    >>> outside_theorem(Spike.read(Spike.example), Fraction(1, 100))
    'Outside the theorem for this delta, which asks for m >= 17; computed all the same.'
    """
    if not _is_its_kind(point):
        return ""
    shown = point.parameters.shown()
    m = int(shown["m"])
    setting = {**shown, "d": int(shown["d"]), "m": m}
    least = {
        WIDTH: f"d >= {enough_width(float(Fraction(shown['b'])), m, delta)}",
        SIGNS: f"m >= {enough_signs(delta)}",
    }
    held = hypotheses(setting, delta)
    missing = [least.get(name, name) for name, holds in held.items() if not holds]
    if not missing:
        return ""
    return (
        f"Outside the theorem for this delta, which asks for {' and '.join(missing)}; computed all the same."
    )
