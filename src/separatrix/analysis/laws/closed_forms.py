"""Margins and bits of the spike and of cross-attention as formulas in n, and what they tend to."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from separatrix.constructions.cross import Cross
from separatrix.constructions.spike import Spike
from separatrix.core.parameters.ranges import Number
from separatrix.exact.engines.outcome import significant_bits
from separatrix.exact.verdicts.question import Question
from separatrix.mechanisms import Linear, Mechanism, Power, Softmax

LARGEST_EXPONENT = 600.0
"""e to this, times any amplitude, is still a float."""


@dataclass(frozen=True)
class ClosedForm:
    """A formula for a quantity, and how it grows in the end."""

    formula: str
    tag: str
    limit: str
    exponent: float | None
    """The exponent of the power law it tends to, if it tends to one."""
    at: Callable[[float], float] | None
    """The formula in float64, where it is one of n alone."""


@dataclass(frozen=True)
class _Shares:
    """What the spike adds in D0 and in D1: `a f`, f = w/(w+n-1), w its score over that of another key."""

    weight: str
    parts: Callable[[float], tuple[float, float]]
    level: float
    exponent: float
    """Their difference tends to level * n^exponent."""
    kept: float
    """What a1 f1 itself tends to."""
    when: str = ""

    def margin(self) -> ClosedForm:
        """The margin: what the spike adds in D1 less what it adds in D0."""

        def at(n: float) -> float:
            none, one = self.parts(n)
            return one - none

        power = f" n^{self.exponent:.6g}" if self.exponent else ""
        formula = f"a1 f(a1) - a0 f(a0), f = w/(w+n-1), {self.weight}"
        return ClosedForm(formula, "[ours]", f"{self.level:.6g}{power}{self.when}", self.exponent, at)

    def bits(self, r: float) -> ClosedForm:
        """log2(v1/margin) with v1 = r + a1 f1."""

        def at(n: float) -> float:
            none, one = self.parts(n)
            return significant_bits(r + one, one - none)

        start = significant_bits(r + self.kept, self.level)
        rate = "" if self.exponent == -1 else f"{-self.exponent:.6g} "
        limit = f"{start:.6g} + {rate}log2 n{self.when}" if self.exponent else f"{start:.6g}"
        formula = f"log2((b+c + a1 f(a1))/margin), f = w/(w+n-1), {self.weight}"
        return ClosedForm(formula, "[ours]", limit, None if self.exponent else 0.0, at)


def closed_form(asked: Question, name: str, of: str, start: Number) -> ClosedForm | None:
    """The formula for this quantity as `name` grows from `start`, if one is known (theory 3.8, 3.9 and 5)."""
    if of == "miss" and name == "m":
        return ClosedForm("1 - (1-p0)^m + q^m", "[ours]", "q^m, an exponential, where p0 = 0", None, None)
    if name != "n" or of not in ("margin", "bits") or asked.kind not in (Spike, Cross):
        return None
    if asked.fixed.get("form", "ones") != "ones":
        return None
    given = asked.numbers({name: start})
    shares = _shares(asked, asked.mechanism({name: start}), given)
    if shares is None:
        return None
    return shares.margin() if of == "margin" else shares.bits(given["b"] + given["c"])


def _shares(asked: Question, mechanism: Mechanism, given: dict[str, float]) -> _Shares | None:
    a, r = (given["a0"], given["a1"]), given["b"] + given["c"]
    if isinstance(mechanism, Softmax) and mechanism.parameters.temperature == 1:
        if asked.kind is Cross:
            return _growing(a, (a[0] * given["r_Q"], a[1] * given["r_Q"]), "w = n^(a r_Q)")
        return _growing(a, (a[0] * (a[0] + r), a[1] * (a[1] + r)), "w = n^(a(a+b+c))")
    if isinstance(mechanism, Linear):
        return _fixed(a, r, 1.0, "w = (a+b+c)/(b+c)")
    if isinstance(mechanism, Power):
        return _fixed(a, r, float(mechanism.parameters.beta), "w = ((a+b+c)/(b+c))^beta")
    return None


def _growing(a: tuple[float, float], powers: tuple[float, float], weight: str) -> _Shares:
    """w = n^power: the spike keeps its share if the power is above 1, and loses it as n^(power-1) below."""

    def parts(n: float) -> tuple[float, float]:
        none, one = (
            x / (1 + (n - 1) * math.exp(-power * math.log(n))) for x, power in zip(a, powers, strict=True)
        )
        return none, one

    none, one = (
        x * (1.0 if power > 1 else 0.5 if power == 1 else 0.0) for x, power in zip(a, powers, strict=True)
    )
    if powers[1] < 1:
        return _Shares(weight, parts, a[1], powers[1] - 1, 0.0)
    return _Shares(weight, parts, one - none, 0.0, one)


def _fixed(a: tuple[float, float], r: float, beta: float, weight: str) -> _Shares | None:
    """w does not depend on n, so the share falls as w/n once n is far above w."""
    heights = [beta * math.log1p(x / r) for x in a]
    if max(heights) > LARGEST_EXPONENT:
        return None
    w0, w1 = map(math.exp, heights)

    def parts(n: float) -> tuple[float, float]:
        return a[0] * w0 / (w0 + n - 1), a[1] * w1 / (w1 + n - 1)

    return _Shares(weight, parts, a[1] * w1 - a[0] * w0, -1.0, 0.0, f", n far above {w1:.3g}")
