"""The hypotheses of the separation theorem (theory 3.4), and from which n its conclusion is proved."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from fractions import Fraction
from typing import Any, Literal

from flint import arb, ctx

from separatrix.core.numbers.logforms import rational

Unit = Literal["softmax", "linear"]
WIDTH, SIGNS = "d - 2 >= 200 b² log(4m/delta)", "m >= log(1/delta)/log(4/3)"
MAX_N_BITS = 4096
"""The search for a sufficient n ends at 2 to this power."""
PRECISION_BITS = 256


def enough_signs(delta: float | Fraction) -> int:
    """The least m the theorem asks for, at any delta above 0: the least with (3/4)^m <= delta.

    >>> enough_signs(0.01), enough_signs(Fraction(1, 10**400)), enough_signs(Fraction(27, 64))
    (17, 3202, 3)
    """
    exact = Fraction(delta)
    m = max(math.ceil(-_log(exact) / math.log(4 / 3)) - 1, 0)
    while 3**m * exact.denominator > exact.numerator * 4**m:  # the logarithms are rounded, this is not
        m += 1
    return m


def asked_width(b: float, m: int, delta: float | Fraction) -> float:
    """What the theorem asks d - 2 to reach."""
    return 200 * b * b * (math.log(4 * m) - _log(delta))


def _log(x: float | Fraction) -> float:
    """The logarithm, also of a fraction that is too small for a float."""
    exact = Fraction(x)
    return math.log(exact.numerator) - math.log(exact.denominator)


def enough_width(b: float, m: int, delta: float | Fraction) -> int:
    """The least d the theorem asks for."""
    return 2 + math.ceil(asked_width(b, m, delta))


def hypotheses(setting: Mapping[str, Any], delta: float | Fraction) -> dict[str, bool]:
    """The theorem's five conditions on the parameters, besides tau = c + 0.1 and form ones."""
    a0, a1, b, c = (Fraction(setting[name]) for name in ("a0", "a1", "b", "c"))
    return {
        "a1(a1+b+c) > 1": a1 * (a1 + b + c) > 1,
        "a0(a0+b+c) < 1": a0 * (a0 + b + c) < 1,
        "a1 - b > 0.1": a1 - b > Fraction(1, 10),
        WIDTH: setting["d"] >= enough_width(float(b), setting["m"], delta),
        SIGNS: setting["m"] >= enough_signs(delta),
    }


def sufficient_n(
    setting: Mapping[str, Any], delta: float | Fraction, units: Collection[Unit] = ("softmax", "linear")
) -> int | None:
    """A multiple of d - 2 from which on every failure of these units is proved to be at most delta.

    It is the least n that meets the inequalities of theory 3.4 ("From which n"): the first two are softmax's,
    the third linear attention's, and each holds for every larger n as well. The conclusion may be true below
    it. None if there is no such n below 2^MAX_N_BITS, or if a hypothesis fails.

    >>> setting = {"d": 102, "m": 17, "a0": "0.01", "a1": "1.2", "b": "0.2", "c": "0.1"}
    >>> sufficient_n(setting, 0.01), sufficient_n(setting, 0.01, ["softmax"])
    (400, 100)
    """
    if not all(hypotheses(setting, delta).values()):
        return None
    step = int(setting["d"]) - 2
    blocks = 1
    while step * blocks < 3 or not _is_sufficient(setting, step * blocks, delta, units):
        blocks *= 2
        if (step * blocks).bit_length() > MAX_N_BITS:
            return None
    low, high = blocks // 2, blocks  # not sufficient, or 0; sufficient
    while high - low > 1:
        middle = (low + high) // 2
        if step * middle >= 3 and _is_sufficient(setting, step * middle, delta, units):
            high = middle
        else:
            low = middle
    return step * high


def _is_sufficient(
    setting: Mapping[str, Any], n: int, delta: float | Fraction, units: Collection[Unit]
) -> bool:
    """Whether the inequalities hold at n, decided in balls: True is a proof."""
    bits = ctx.prec
    ctx.prec = PRECISION_BITS + n.bit_length()
    try:
        a0, a1, b, c = (arb(rational(Fraction(setting[name]))) for name in ("a0", "a1", "b", "c"))
        r, one, tenth = b + c, arb(1), arb(1) / 10
        size, others = arb(n), arb(n - 1)
        certainty = (arb(setting["m"]) / arb(rational(Fraction(delta)))).log()
        room = tenth - b * (2 * certainty / (int(setting["d"]) - 2)).sqrt()
        if "softmax" in units:
            on_d0 = (a0 + b) * size ** (a0 * (a0 + r)) / others
            lost_on_d1 = a1 * size ** (one - a1 * (a1 + r))  # the weight that the spike's row gives to others
            if not (on_d0 + 2 * b / others <= room and lost_on_d1 < a1 - b - tenth):
                return False
        if "linear" in units:
            on_d1 = (a1 + b) * (a1 + r) / (a1 + r + others * r)  # more than on D0, since a1 > a0
            if not on_d1 + 2 * b / others <= room:
                return False
        return True
    finally:
        ctx.prec = bits
