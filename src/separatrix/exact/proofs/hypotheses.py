"""The hypotheses of the shape lemma, and the lines of firing thresholds of a point that satisfies them."""

from __future__ import annotations

from flint import fmpq, fmpq_poly

from separatrix.constructions import Construction, Label, Presence, QueryRow
from separatrix.constructions.cross import Cross
from separatrix.constructions.spike import Spike
from separatrix.core.errors import EngineRefusal
from separatrix.core.numbers import format_exact
from separatrix.core.numbers.logforms import MOST_BITS, power, rational
from separatrix.exact.engines.certified import TRIPLES
from separatrix.exact.proofs.lines import FiringLine
from separatrix.exact.proofs.sums import PowerSum, constant
from separatrix.mechanisms import Linear, Mechanism, Power, Softmax, Taylor

MAX_ORDER = 12
"""The largest order of Taylor attention; the derivatives to examine grow with its square."""
MAX_TAYLOR_BITS = 1 << 13
"""The most bits of the highest power of a logit; the checker reads no longer ones."""
CONSTRUCTIONS = "spike or cross"
MECHANISMS = f"softmax (any temperature), linear, power (integer beta) or taylor (order at most {MAX_ORDER})"
INSTEAD = "separatrix verdict answers at one n"
LABELS: tuple[Label, Label] = (0, 1)


def _require_mechanism(mechanism: Mechanism) -> None:
    """Raise an EngineRefusal that names the hypothesis on the mechanism that fails, if one does."""
    if type(mechanism) not in (Softmax, Linear, Power, Taylor):
        raise _open(f"it needs {MECHANISMS}, not {mechanism.spelled}")
    if isinstance(mechanism, Power) and mechanism.beta.denominator != 1:
        raise _open(f"it needs an integer beta, not {format_exact(mechanism.beta)}")
    if isinstance(mechanism, Taylor) and mechanism.order > MAX_ORDER:
        raise _open(f"it needs an order of at most {MAX_ORDER}, not {mechanism.order}")


def _open(reason: str) -> EngineRefusal:
    return EngineRefusal(f"open: no proof for every n is known here: {reason}; {INSTEAD}")


def firing_lines(point: Construction, mechanism: Mechanism) -> tuple[FiringLine, ...]:
    """Return T(t) for every label, sign triple and kind of row, from the point's n on.

    Raise an EngineRefusal that names the hypothesis of the shape lemma that fails, if one does.
    """
    other_construction = _open(f"it needs the construction {CONSTRUCTIONS}, not {point.name}")
    if not isinstance(point, Spike | Cross):
        raise other_construction
    _require_mechanism(mechanism)
    values = {
        name: value if isinstance(value, str) else rational(value)
        for name, value in point.parameters.complete_values().items()
    }
    model = point.block_model(values, lambda _: fmpq(1))  # logits in units of log n
    if model is None:  # a variant of these constructions without a closed form, such as rough
        raise other_construction
    return tuple(
        _line(point, mechanism, label, signs, row, own_sign)
        for label in LABELS
        for signs in TRIPLES
        for row in model.rows[label]
        for own_sign in ((1, -1) if row.presence is Presence.OTHER else (0,))
    )


def _line(
    point: Spike | Cross, mechanism: Mechanism, label: Label, signs: tuple[int, int, int], row: QueryRow, own_sign: int
) -> FiringLine:
    """Return the line of one kind of row; docs/proofs.md has the formula."""
    block_count, blocks = point.d - 2, point.d - 3
    a, b, c, tau = (rational(x) for x in ((point.a0, point.a1)[label], point.b, point.c, point.tau))
    y_1, y_block, y_d = signs
    common_part = c * y_d - tau
    mu = b * y_block + common_part
    spike, mate, own, ordinary = (_score(mechanism, row.base, step) for step in (row.spike, row.mate, row.own, fmpq(0)))
    of_one_token = ((a * y_1 + mu) * spike + -mu * mate).shifted(fmpq(-1))  # 1/t = block_count/n
    numerator = fmpq(block_count) * of_one_token + mu * mate
    if own_sign:
        numerator, blocks = numerator + (b * own_sign + common_part) * own, blocks - 1
    base = blocks * common_part - b * (point.d - 3 + own_sign)
    start = max(point.block_size, 2) if row.presence is Presence.MATES else point.block_size
    return FiringLine(label, signs, row.name, own_sign, block_count, numerator, ordinary, base, 2 * b, start)


def _score(mechanism: Mechanism, base: fmpq, step: fmpq) -> PowerSum:
    """Return the score at the logit (base + step) log n, in a unit that depends on the row alone."""
    if isinstance(mechanism, Softmax):
        return constant(fmpq(1)).shifted(step / rational(mechanism.temperature))
    logit = base + step
    if isinstance(mechanism, Taylor):
        if mechanism.order * logit.height_bits() > MAX_TAYLOR_BITS:
            raise _open(f"with {mechanism.spelled} it needs amplitudes of fewer digits")
        coefficients = [fmpq(1)]
        for i in range(1, mechanism.order + 1):
            coefficients.append(coefficients[-1] * logit / i)
        return constant(fmpq_poly(coefficients))
    score = power(logit / base, rational(mechanism.beta) if isinstance(mechanism, Power) else fmpq(1))
    if not isinstance(score, fmpq):
        raise _open(f"it needs quotients of scores of at most {MOST_BITS:,} bits")
    return constant(score)
