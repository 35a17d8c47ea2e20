"""The hypotheses of the separation theorem (theory 3.4), and an n from which its conclusion is proved."""

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


def required_signs(delta: float | Fraction) -> int:
    """Return the least m that the theorem needs, for any delta above 0: the least with (3/4)^m <= delta.

    >>> required_signs(0.01), required_signs(Fraction(1, 10**400)), required_signs(Fraction(27, 64))
    (17, 3202, 3)
    """
    exact = Fraction(delta)
    # The logarithms are rounded, so the start is one below; the comparison of integers is exact.
    m = max(math.ceil(-_log(exact) / math.log(4 / 3)) - 1, 0)
    while 3**m * exact.denominator > exact.numerator * 4**m:
        m += 1
    return m


def required_blocks(b: float, m: int, delta: float | Fraction) -> float:
    """Return the number of blocks that the theorem needs: the lower bound on d - 2."""
    return 200 * b * b * (math.log(4 * m) - _log(delta))


def _log(x: float | Fraction) -> float:
    """Return the logarithm, also of a fraction that is too small for a float."""
    exact = Fraction(x)
    return math.log(exact.numerator) - math.log(exact.denominator)


def required_width(b: float, m: int, delta: float | Fraction) -> int:
    """Return the least d that the theorem needs."""
    return 2 + math.ceil(required_blocks(b, m, delta))


def hypotheses(setting: Mapping[str, Any], delta: float | Fraction) -> dict[str, bool]:
    """Return which of the theorem's five conditions hold; tau = c + 0.1 and form ones are assumed."""
    a0, a1, b, c = (Fraction(setting[name]) for name in ("a0", "a1", "b", "c"))
    return {
        "a1(a1+b+c) > 1": a1 * (a1 + b + c) > 1,
        "a0(a0+b+c) < 1": a0 * (a0 + b + c) < 1,
        "a1 - b > 0.1": a1 - b > Fraction(1, 10),
        WIDTH: setting["d"] >= required_width(float(b), setting["m"], delta),
        SIGNS: setting["m"] >= required_signs(delta),
    }


def sufficient_n(
    setting: Mapping[str, Any], delta: float | Fraction, units: Collection[Unit] = ("softmax", "linear")
) -> int | None:
    """Return a multiple of d - 2 from which on every failure of these units is proved to be at most delta.

    It is the least n that meets the inequalities of theory 3.4 ("From which n"): the first two are softmax's,
    the third linear attention's, and each holds for every larger n as well. The conclusion may be true below
    it. The result is None if there is no such n below 2^MAX_N_BITS, or if a hypothesis fails.

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
    # Bisection: `low` is 0 or not sufficient, `high` is sufficient.
    low, high = blocks // 2, blocks
    while high - low > 1:
        middle = (low + high) // 2
        if step * middle >= 3 and _is_sufficient(setting, step * middle, delta, units):
            high = middle
        else:
            low = middle
    return step * high


def _is_sufficient(setting: Mapping[str, Any], n: int, delta: float | Fraction, units: Collection[Unit]) -> bool:
    """Return whether the inequalities hold at n, decided in balls: True is a proof."""
    # n has bit_length bits of its own: with fewer, n - 1 would be rounded to n.
    with ctx.workprec(PRECISION_BITS + n.bit_length()):
        a0, a1, b, c = (arb(rational(Fraction(setting[name]))) for name in ("a0", "a1", "b", "c"))
        r, tenth = b + c, arb(1) / 10
        size, other_count = arb(n), arb(n - 1)
        certainty = (arb(setting["m"]) / arb(rational(Fraction(delta)))).log()
        room = tenth - b * (2 * certainty / (int(setting["d"]) - 2)).sqrt()
        if "softmax" in units:
            on_d0 = (a0 + b) * size ** (a0 * (a0 + r)) / other_count
            # The share of the spike that its row loses to the other tokens.
            lost_on_d1 = a1 * size ** (1 - a1 * (a1 + r))
            if not (on_d0 + 2 * b / other_count <= room and lost_on_d1 < a1 - b - tenth):
                return False
        if "linear" in units:
            # D0 needs no check of its own: a0 < a1 makes its pre-activation smaller.
            on_d1 = (a1 + b) * (a1 + r) / (a1 + r + other_count * r)
            if not on_d1 + 2 * b / other_count <= room:
                return False
        return True
