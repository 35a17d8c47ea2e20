"""The hypotheses of the shape lemma, and the lines of firing thresholds of a point that satisfies them."""

from __future__ import annotations

from collections.abc import Iterator

from flint import fmpq

from separatrix.constructions import Construction, Label
from separatrix.constructions.spike import Spike
from separatrix.core.errors import EngineRefusal
from separatrix.core.numbers import format_exact
from separatrix.core.numbers.logforms import rational
from separatrix.exact.engines.certified import TRIPLES
from separatrix.exact.proofs.lines import FiringLine
from separatrix.exact.proofs.ratios import ConstantRatio, PowerRatio, Ratio
from separatrix.mechanisms import Linear, Mechanism, Power, Softmax

MECHANISMS = "softmax (any temperature), linear and power (integer beta)"
INSTEAD = "separatrix verdict answers at one n"
LABELS: tuple[Label, Label] = (0, 1)


def require_hypotheses(construction: type[Construction] | Construction, mechanism: Mechanism) -> None:
    """Raise an EngineRefusal that names the hypothesis of the shape lemma that fails, if one does."""
    if construction.name != Spike.name:
        raise _open(f"it needs the construction {Spike.name}, not {construction.name}")
    if isinstance(construction, Spike) and construction.form != "ones":
        reason = "with form=identity the numerator has several powers of n, and not the one of the shape lemma"
        raise _open(f"it needs form=ones; {reason}")
    if type(mechanism) not in (Softmax, Linear, Power):
        raise _open(f"it needs {MECHANISMS}, not {mechanism.spelled}")
    if isinstance(mechanism, Power) and mechanism.beta.denominator != 1:
        raise _open(f"it needs an integer beta, not {format_exact(mechanism.beta)}")


def _open(reason: str) -> EngineRefusal:
    return EngineRefusal(f"open: no proof for every n is known here: {reason}; {INSTEAD}")


def firing_lines(point: Spike, mechanism: Mechanism) -> tuple[FiringLine, ...]:
    """Return T(t) for every label, sign triple and kind of row, from the point's n on."""
    return tuple(_lines(point, mechanism))


def _lines(point: Spike, mechanism: Mechanism) -> Iterator[FiringLine]:
    columns, blocks = point.d - 2, point.d - 3
    b, c, tau = rational(point.b), rational(point.c), rational(point.tau)
    for label in LABELS:
        a = rational((point.a0, point.a1)[label])
        for signs in TRIPLES:
            y_1, y_k, y_d = signs
            mu = b * y_k + c * y_d - tau
            base = mu - b * blocks + blocks * (c * y_d - tau)
            for row, ratio in _ratios(mechanism, a, b + c):
                yield FiringLine(label, signs, row, ratio, columns, a * y_1 + mu, mu, base, 2 * b, point.block_size)


def _ratios(mechanism: Mechanism, a: fmpq, r: fmpq) -> Iterator[tuple[str, Ratio]]:
    """Yield rho for every kind of row: the logits of the spike and of ordinary tokens differ by `a` times a row sum."""
    if isinstance(mechanism, Softmax):
        temperature = rational(mechanism.temperature)
        for row, row_sum in (("spike", a + r), ("other", r)):
            exponent = a * row_sum / temperature
            yield row, PowerRatio(exponent) if exponent else ConstantRatio(fmpq(1))
        return
    beta = mechanism.beta.numerator if isinstance(mechanism, Power) else 1
    yield "every", ConstantRatio(((a + r) / r) ** beta)
