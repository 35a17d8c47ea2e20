"""Margins and bits of the spike and of cross-attention as formulas in n, with their limits."""

from __future__ import annotations

import math
from dataclasses import dataclass

from separatrix.constructions.cross import Cross
from separatrix.constructions.spike import Spike
from separatrix.core.documents import Document
from separatrix.core.parameters.ranges import Number
from separatrix.exact.engines.outcome import significant_bits
from separatrix.exact.verdicts.question import Question
from separatrix.mechanisms import Linear, Mechanism, Power, Softmax

MAX_LOG_WEIGHT = 600.0
"""e to this power, times any amplitude, is still a float."""
Pair = tuple[float, float]
"""Numbers for D0 and D1."""


@dataclass(frozen=True)
class ClosedForm(Document):
    """A formula for a quantity, and its growth in the limit."""

    formula: str
    limit: str
    exponent: float | None
    """The exponent of the power law it tends to, if it tends to one."""
    tag: str = "[ours]"


@dataclass(frozen=True)
class _Shares:
    """The limits of the spike's contribution `a f`, f = w/(w+n-1), w its score over that of a key."""

    weight: str
    level: float
    exponent: float
    """The difference of the contributions in D1 and D0 tends to level * n^exponent."""
    limit: float
    """The limit of a1 f1."""
    condition: str = ""

    def margin(self) -> ClosedForm:
        """The contribution in D1 minus that in D0."""
        power = f" n^{self.exponent:.6g}" if self.exponent else ""
        formula = f"a1 f(a1) - a0 f(a0), f = w/(w+n-1), {self.weight}"
        return ClosedForm(formula, f"{self.level:.6g}{power}{self.condition}", self.exponent)

    def bits(self, r: float) -> ClosedForm:
        """log2(v1/margin) with v1 = r + a1 f1."""
        start = significant_bits(r + self.limit, self.level)
        rate = "" if self.exponent == -1 else f"{-self.exponent:.6g} "
        limit = f"{start:.6g} + {rate}log2 n{self.condition}" if self.exponent else f"{start:.6g}"
        formula = f"log2((b+c + a1 f(a1))/margin), f = w/(w+n-1), {self.weight}"
        return ClosedForm(formula, limit, None if self.exponent else 0.0)


def find_closed_form(question: Question, name: str, of: str, start: Number) -> ClosedForm | None:
    """Return the formula for a quantity as `name` grows from `start`, if one is known.

    The formulas are those of sections 3.8, 3.9 and 5 of the theory.
    """
    if of == "miss" and name == "m":
        return ClosedForm("1 - (1-p0)^m + q^m", "q^m, an exponential, where p0 = 0", None)
    if name != "n" or of not in ("margin", "bits") or question.kind not in (Spike, Cross):
        return None
    if question.fixed.get("form", "ones") != "ones":
        return None
    numbers = question.numbers({name: start})
    shares = _find_shares(question, question.mechanism({name: start}), numbers)
    if shares is None:
        return None
    return shares.margin() if of == "margin" else shares.bits(numbers["b"] + numbers["c"])


def _find_shares(question: Question, mechanism: Mechanism, numbers: dict[str, float]) -> _Shares | None:
    a, r = (numbers["a0"], numbers["a1"]), numbers["b"] + numbers["c"]
    if isinstance(mechanism, Softmax) and mechanism.parameters.temperature == 1:
        if question.kind is Cross:
            return _power_shares(a, (a[0] * numbers["r_Q"], a[1] * numbers["r_Q"]), "w = n^(a r_Q)")
        return _power_shares(a, (a[0] * (a[0] + r), a[1] * (a[1] + r)), "w = n^(a(a+b+c))")
    if isinstance(mechanism, Linear):
        return _constant_shares(a, r, 1.0, "w = (a+b+c)/(b+c)")
    if isinstance(mechanism, Power):
        return _constant_shares(a, r, float(mechanism.parameters.beta), "w = ((a+b+c)/(b+c))^beta")
    return None


def _power_shares(a: Pair, powers: Pair, weight: str) -> _Shares:
    """w = n^power: the spike keeps its share if the power is above 1, and loses it as n^(power-1) below."""
    if powers[1] < 1:
        return _Shares(weight, a[1], powers[1] - 1, 0.0)
    # At power 1 the spike has the weight n, and all other keys together n - 1: half each.
    d0, d1 = (x * (1.0 if power > 1 else 0.5 if power == 1 else 0.0) for x, power in zip(a, powers, strict=True))
    return _Shares(weight, d1 - d0, 0.0, d1)


def _constant_shares(a: Pair, r: float, beta: float, weight: str) -> _Shares | None:
    """w does not depend on n, so the share falls as w/n once n is far above w."""
    logs = [beta * math.log1p(x / r) for x in a]
    if max(logs) > MAX_LOG_WEIGHT:
        return None
    w0, w1 = map(math.exp, logs)
    return _Shares(weight, a[1] * w1 - a[0] * w0, -1.0, 0.0, f", n far above {w1:.3g}")
