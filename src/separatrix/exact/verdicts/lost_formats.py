"""The n past which a number format no longer tells the two labels apart.

Tokens are stored in the format, attention is computed exactly on them, and the pre-activation is
rounded to the format: the best any implementation in that format can do. What both labels share
(b + c, in units of sqrt(log n)) is then a number of the format, and what the spike adds is lost once
it is below half a unit in its last place.
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
"""Where the search ends: of a format in which the labels still differ here it is said that none was found."""
PER_DECADE = 2


def lost_from(construction: Construction, mechanism: Mechanism) -> dict[str, int | None]:
    """For each format the least admissible n from which on both labels round to the same number.

    None: they still differ at n = 10^40.
    """
    step, kernel = construction.step, with_kernel(mechanism)
    seen = lru_cache(maxsize=None)(lambda multiple: _preactivations(construction, kernel, multiple * step))

    def search(bits: int) -> int | None:
        least = _last_change(lambda multiple: _same(seen(multiple), bits), -(-3 // step), LARGEST // step)
        return None if least is None else least * step

    return {name: search(bits) for name, bits in SIGNIFICANT_BITS.items()}


def lost_at(construction: Construction, mechanism: Mechanism) -> dict[str, bool]:
    """For each format whether both labels round to the same number at this n, by the rule of `lost_from`."""
    found = _preactivations(construction, with_kernel(mechanism), construction.n)
    return {name: _same(found, bits) for name, bits in SIGNIFICANT_BITS.items()}


def _last_change(same: Callable[[int], bool], first: int, top: int) -> int | None:
    """The least multiple from which on `same` holds: down a logarithmic grid, then by bisection."""
    if not same(top):
        return None
    good = below = top
    while good > first and same(below := max(first, int(good / 10 ** (1 / PER_DECADE)))):
        good = below
    while good - below > 1:
        middle = (good + below) // 2
        below, good = (below, middle) if same(middle) else (middle, good)
    return good


@dataclass(frozen=True)
class _Preactivations:
    """What both labels share, and what the spike adds to it in D0 and in D1."""

    shared: Fraction
    added: tuple[Fraction, Fraction]


def _preactivations(construction: Construction, mechanism: ScoreMechanism, n: int) -> _Preactivations:
    with ctx.workprec(160):
        model = rational_model(construction, n)
        unit = arb(1) if construction.unit == 1 else arb(n).log().sqrt()
        peaks = [max(spike_weights(mechanism, model, label).values(), key=float) for label in (0, 1)]
        added = [_middle(a * peak * unit) for a, peak in zip(model.probe.a, peaks, strict=True)]
        return _Preactivations(_middle(model.probe.offset * unit), (added[0], added[1]))


def _same(preactivations: _Preactivations, bits: int) -> bool:
    """Whether both labels round to the same number of `bits` bits."""
    shared = round_to(preactivations.shared, bits)
    one, other = (round_to(shared + added, bits) for added in preactivations.added)
    return one == other


def _middle(x: Flint) -> Fraction:
    if isinstance(x, fmpq):
        return Fraction(int(x.p), int(x.q))
    mantissa, exponent = x.mid().man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
