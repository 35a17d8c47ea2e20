"""Theory 3.9, bits: the n past which a number format no longer tells the labels apart."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction

from separatrix.claims._base import Finding, Point, claim
from separatrix.claims._tools import BASE, Points, Setting, on_grid, point, short, spike
from separatrix.core.numbers.formats import SIGNIFICANT_BITS, TORCH_NAMES
from separatrix.core.tensors import torch
from separatrix.exact.engines import dense
from separatrix.exact.verdicts import lost_from
from separatrix.exact.verdicts.lost_formats import LARGEST as MAX_SEARCHED_N
from separatrix.mechanisms import Linear, Mechanism, Softmax

WIDE: Setting = {**BASE, "n": 1000}
NARROW: Setting = {**BASE, "n": 1000, "d": 12, "b": "0.5", "c": "0.3"}
"""Parameters where the difference is lost in both 16-bit formats at an n that dense tokens reach."""
LARGEST_RUN = 40_000
LARGEST_CLAIMED_N = 10**40
"""The statement on softmax reaches up to here, and so must the search."""


@claim("number-formats", "3.9", "ours")
def number_formats() -> Finding:
    """Linear needs log2(v1/margin) significant bits, so in bf16, fp16, fp32 and fp64 each the difference is
    lost from some n on; with softmax and a1(a1+b+c) > 1 it is not, as far as n = 1e40.

    Linear: by bits, by the closed form of 3.8 rounded to the format at that n and at the one before, and by
    running the format on either side where n allows. Softmax: none found, and by its closed form none at any
    power of ten.
    """
    points = Points()
    for setting in (WIDE, NARROW):
        found = lost_from(spike(setting), Linear())
        points += [linear_point(setting, name, n) for name, n in found.items()]
    points += [softmax_point(name, n) for name, n in lost_from(spike(NARROW), Softmax()).items()]
    points.add({"largest_n": MAX_SEARCHED_N}, MAX_SEARCHED_N >= LARGEST_CLAIMED_N)
    first = ", ".join(f"{each.measured['lost_from']} ({each.parameters['format']})" for each in points[:4])
    ran = sum("differs_at_half" in each.measured for each in points)
    return points.conclude(
        f"linear's is lost from n = {first}; {ran} cases run on all tokens in the format differ at n/2 and "
        f"not at 2n; for softmax no such n was found up to {short(MAX_SEARCHED_N)}",
        f"{points.smallest('bits_past'):.1f} to {points.largest('bits_past'):.1f} bits past the format's",
    )


def linear_point(setting: Setting, name: str, n: int | None) -> Point:
    """Holds if n is where the bits run out, and dense tokens in this format say so too."""
    parameters = {**setting, "mechanism": "linear", "format": name}
    if n is None:
        return point(parameters, False, lost_from="none found")
    past = float(on_grid(Linear(), {**setting, "n": n}).bits) - SIGNIFICANT_BITS[name]
    holds = -0.01 <= past <= 1.01  # half a unit in the last place is 2^-p to 2^-(p+1) of the number
    bits, before = SIGNIFICANT_BITS[name], n - (setting["d"] - 2)
    is_first = is_lost(setting, bits, n, linear_weight) and not is_lost(setting, bits, before, linear_weight)
    holds = holds and is_first
    measured: Setting = {"lost_from": short(n), "is_first": is_first, "bits_past": past}
    if 2 * n <= LARGEST_RUN:
        half, double = (apart(Linear(), setting, name, size) for size in (n // 2, 2 * n))
        holds = holds and half and not double
        measured |= {"differs_at_half": half, "differs_at_double": double}
    return point(parameters, holds, **measured)


Weight = Callable[[Fraction, Fraction, int], Fraction]
"""The weight f(j3,j3) of the spike in its own row, from a, r = b + c and n."""


def linear_weight(a: Fraction, r: Fraction, n: int) -> Fraction:
    """f = R/(R + (n-1) r) with R = a + r."""
    return (a + r) / (a + n * r)


def softmax_weight(a: Fraction, r: Fraction, n: int) -> Fraction:
    """f = 1/(1 + (n-1) n^{-aR}) with R = a + r, to 80 digits."""
    exponent = a * (a + r)
    with localcontext(prec=80):
        power = Decimal(n) ** (Decimal(exponent.numerator) / exponent.denominator)
        return 1 / (1 + (n - 1) / Fraction(power))


def is_lost(setting: Setting, bits: int, n: int, weight: Weight) -> bool:
    """Whether the two pre-activations are one number of so many bits, by the closed form of theory 3.8.

    The spike adds a f to what both labels share, r = b + c, all in units of sqrt(log n).
    """
    with localcontext(prec=80):
        unit = Fraction(Decimal(n).ln().sqrt())
    r = Fraction(setting["b"]) + Fraction(setting["c"])
    shared = round_half_even(r * unit, bits)
    added = [a * weight(a, r, n) * unit for a in map(Fraction, (setting["a0"], setting["a1"]))]
    return len({round_half_even(shared + each, bits) for each in added}) == 1


def round_half_even(x: Fraction, bits: int) -> Fraction:
    """A positive number to so many significant bits.

    >>> round_half_even(Fraction(9), 3), round_half_even(Fraction(11, 8), 3)
    (Fraction(8, 1), Fraction(3, 2))
    """
    exponent = x.numerator.bit_length() - x.denominator.bit_length() - bits
    while x / Fraction(2) ** exponent >= 2**bits:
        exponent += 1
    return round(x / Fraction(2) ** exponent) * Fraction(2) ** exponent


def softmax_point(name: str, n: int | None) -> Point:
    """Holds if there is no such n, and dense tokens differ at an n where a 16-bit linear one does not.

    By the closed form the labels differ at every power of ten from 1e3 to 1e40, too.
    """
    differs = apart(Softmax(), NARROW, name, 4000)
    decades = [10**e for e in range(3, 41)]
    lost = [n for n in decades if is_lost(NARROW, SIGNIFICANT_BITS[name], n, softmax_weight)]
    parameters = {**NARROW, "mechanism": "softmax", "format": name}
    return point(
        parameters,
        n is None and differs and not lost,
        lost_from="none found" if n is None else str(n),
        differs_at_4000=differs,
        powers_of_ten_lost=len(lost),
    )


def apart(mechanism: Mechanism, setting: Setting, name: str, n: int) -> bool:
    """Whether D0 and D1 give different pre-activations with every step in the format."""
    dtype: torch.dtype = getattr(torch, TORCH_NAMES[name])
    made = spike(setting, n=n - n % (setting["d"] - 2))
    return dense.probe(made, mechanism, 0, dtype) != dense.probe(made, mechanism, 1, dtype)
