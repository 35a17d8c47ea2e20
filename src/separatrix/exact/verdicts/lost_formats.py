"""The n from which a number format no longer distinguishes the two labels.

Tokens are stored in the format, attention is computed exactly on them, and the pre-activation is rounded to
the format: the best that an implementation in this format can do. The part that both labels share (b + c, in
units of sqrt(log n)) is then a number of the format, and the contribution of the spike is lost once it is
below half a unit in the last place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from flint import arb, ctx, fmpq

from separatrix.constructions import Construction
from separatrix.core.numbers.formats import SIGNIFICANT_BITS, round_to
from separatrix.core.numbers.logforms import Flint
from separatrix.exact.outputs.kernels import rational_model, spike_weights, with_kernel
from separatrix.mechanisms import Mechanism, ScoreMechanism

LARGEST = 10**40
"""The largest n that is searched."""
PER_DECADE = 2


def lost_from(construction: Construction, mechanism: Mechanism) -> dict[str, int | None]:
    """Return for each format the least admissible n from which both labels round to the same number.

    None if they still differ at n = 10^40.
    """
    step, kernel = construction.step, with_kernel(mechanism)
    preactivations_at = lru_cache(maxsize=None)(lambda multiple: _preactivations(construction, kernel, multiple * step))

    def search(bits: int) -> int | None:
        least = _last_change(
            lambda multiple: _round_equal(preactivations_at(multiple), bits), -(-3 // step), LARGEST // step
        )
        return None if least is None else least * step

    return {name: search(bits) for name, bits in SIGNIFICANT_BITS.items()}


def lost_at(construction: Construction, mechanism: Mechanism) -> dict[str, bool]:
    """Return for each format whether both labels round to the same number at this n."""
    preactivations = _preactivations(construction, with_kernel(mechanism), construction.n)
    return {name: _round_equal(preactivations, bits) for name, bits in SIGNIFICANT_BITS.items()}


def _last_change(holds: Callable[[int], bool], first: int, top: int) -> int | None:
    """Return the least multiple from which `holds` is true: a logarithmic grid, then bisection."""
    if not holds(top):
        return None
    # Rounding makes equality come and go near the limit: the search goes down from the top, so that every n
    # of the grid above the answer is equal, too.
    good = below = top
    while good > first and holds(below := max(first, int(good / 10 ** (1 / PER_DECADE)))):
        good = below
    while good - below > 1:
        middle = (good + below) // 2
        below, good = (below, middle) if holds(middle) else (middle, good)
    return good


@dataclass(frozen=True)
class _Preactivations:
    """The part that both labels share, and the contribution of the spike in D0 and D1."""

    offset: Fraction
    increments: tuple[Fraction, Fraction]


def _preactivations(construction: Construction, mechanism: ScoreMechanism, n: int) -> _Preactivations:
    with ctx.workprec(160):
        model = rational_model(construction, n)
        unit = arb(1) if construction.unit == 1 else arb(n).log().sqrt()
        peaks = [max(spike_weights(mechanism, model, label).values(), key=float) for label in (0, 1)]
        increments = [_middle(a * peak * unit) for a, peak in zip(model.probe.a, peaks, strict=True)]
        return _Preactivations(_middle(model.probe.offset * unit), (increments[0], increments[1]))


def _round_equal(preactivations: _Preactivations, bits: int) -> bool:
    """Whether both labels round to the same number with `bits` significant bits."""
    common = round_to(preactivations.offset, bits)
    d0, d1 = (round_to(common + increment, bits) for increment in preactivations.increments)
    return d0 == d1


def _middle(x: Flint) -> Fraction:
    if isinstance(x, fmpq):
        return Fraction(int(x.p), int(x.q))
    mantissa, exponent = x.mid().man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
