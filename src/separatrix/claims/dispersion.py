"""Theory 6.5, dispersion: bounded logits thin out."""

from __future__ import annotations

import math
from fractions import Fraction

from flint import arb, ctx

from separatrix.claims._base import Finding, Point, claim
from separatrix.claims._tools import Points, example, judged, point, relative_error, short
from separatrix.constructions.dispersion import Dispersion
from separatrix.core.tensors import torch
from separatrix.exact.engines import dense
from separatrix.exact.outputs.attention import probe_peak
from separatrix.exact.outputs.proved import ends, proved_outputs
from separatrix.mechanisms import Softmax, mechanism_named

GAPS = (1, 3, 10)
SIZES = tuple(10**e for e in (1, 3, 6, 12, 18))
LARGEST_RUN = 1000
"""Up to this n repairs are run on all tokens, too."""
REPAIRS = ("logn-softmax", "topk:k=1", "hardmax")


@claim("dispersion", "6.5", "rec")
def thin() -> Finding:
    """With logits that do not grow with n, softmax gives the largest one between 1/n and e^gap/n (arXiv
    2410.01104): attention thins out like 1/n.

    The weight of the largest logit between 1/n and e^gap/n, and equal to e^gap/(e^gap + n-1), in balls.
    """
    points = Points(weight_point(gap, n) for gap in GAPS for n in SIZES)
    return points.conclude(
        f"n f lies between 1 and e^gap for gaps {', '.join(map(str, GAPS))}, n = 10 to 1e18 (proved in "
        f"balls): {points.smallest('n_f'):.2f} to {points.largest('n_f'):.0f}",
        f"n f reaches {points.largest('share'):.6f} of e^gap, and is {points.smallest('n_f'):.2f} or more",
    )


def weight_point(gap: int, n: int) -> Point:
    """Holds if 1 <= n f <= e^gap, both proved, and f is e^gap/(e^gap + n-1)."""
    low, high = proved_outputs(example(Dispersion, gap=gap, n=n), Softmax()).reading(1, (Fraction(1),))
    with ctx.workprec(512):
        most, _ = ends(arb(gap).exp())
        least_f, most_f = ends(arb(gap).exp() / (arb(gap).exp() + n - 1))
    # Both pairs enclose f, so that each has its lower end below the other's upper end.
    error = float(max(high - least_f, most_f - low) / least_f)
    holds = 1 <= n * low <= n * high <= most and low <= most_f and least_f <= high and error < 1e-30
    return point({"gap": gap, "n": n}, holds, n_f=float(n * low), share=float(n * high / most), error=error)


@claim("dispersion-blind", "6.5", "ours")
def blind() -> Finding:
    """So softmax, which reads the token of the largest logit at small n, is blind from the first n above
    e^gap + 1 on (tau = 1/2).

    The certified words on either side of n = e^gap + 1, and far beyond.
    """
    points, starts = Points(), []
    for gap in (1, 3, 5, 10, 20):
        last = math.floor(math.exp(gap)) + 1
        words = [softmax_word(gap, n) for n in (last, last + 1, 10**18)]
        holds = words == ["distinguishes", "blind", "blind"]
        points.add({"gap": gap, "n": last}, holds, words=", ".join(words))
        starts.append(f"{short(last + 1)} (gap {gap})")
    return points.conclude(
        f"certified: softmax distinguishes up to the n before and is blind from n = {', '.join(starts)}; f "
        "falls with n",
        "exact to 1 token: the two words are those of neighbouring n",
    )


def softmax_word(gap: int, n: int) -> str:
    """The certified verdict on softmax."""
    return judged(example(Dispersion, gap=gap, n=n), "softmax", "certified").word


@claim("dispersion-repaired", "6.5", "rec")
def repaired() -> Finding:
    """A temperature that falls like 1/log n, or keeping the largest logit alone, repairs it.

    Inside: repairs at gaps above 1, at small n on all tokens as well, and softmax with such a temperature.
    Outside: temperature log n with a gap below 1.
    """
    inside = Points(repair_point(each, gap, n) for each in REPAIRS for gap in ("3/2", "3") for n in SIZES)
    inside += [temperature_point(gap, n) for gap in ("3/2", "3") for n in SIZES]
    outside = Points(repair_point("logn-softmax", "1/2", n) for n in SIZES[1:])
    return inside.conclude_where(
        outside,
        "the gap is above 1 for a temperature of 1/log n (its weight is 1/(1+(n-1)n^{-gap})); any gap will "
        "do for hardmax and topk:k=1",
        f"{', '.join(REPAIRS)} distinguish at n = 10 to 1e18, P = {inside.smallest('distinguish'):.5f} or "
        f"more; logn-softmax with a gap of 1/2 is blind, P at most {outside.largest('distinguish'):.2g}",
        f"weight {inside.smallest('weight'):.3f} or more, needed 1/2; with a gap of 1/2 it is "
        f"{outside.largest('weight'):.2g} or less from n = 1000",
    )


def repair_point(mechanism: str, gap: str, n: int) -> Point:
    """Holds if the repaired mechanism distinguishes, and gives the token the weight of theory 6.5.

    The weight is that of groups of equal tokens; up to n = 1000 it is also read off all n tokens, which go
    through the mechanism's fast form.
    """
    made = example(Dispersion, gap=gap, n=n)
    found = judged(made, mechanism)
    outcome = found.outcome
    expected = 1 / (1 + (n - 1) * float(n) ** -float(Fraction(gap))) if mechanism == "logn-softmax" else 1.0
    weights = [outcome.v1]
    if n <= LARGEST_RUN:
        weights.append(dense.probe(made, mechanism_named(mechanism), 1, torch.float64))
    error = max(relative_error(weight, expected) for weight in weights)
    return point(
        {"mechanism": mechanism, "gap": gap, "n": n},
        found.word == "distinguishes" and error < 1e-9,
        distinguish=outcome.distinguish,
        weight=outcome.v1,
        engine=outcome.engine,
    )


def temperature_point(gap: str, n: int) -> Point:
    """Holds if softmax with a temperature of about 1/log n gives the token most of the weight.

    The weight is 1/(1 + (n-1) e^{-gap/temperature}), on groups of equal tokens with their counts and, at
    small n, on all tokens.
    """
    temperature = Fraction(1 / math.log(n)).limit_denominator(1000)
    made, mechanism = example(Dispersion, gap=gap, n=n), Softmax(temperature=temperature)
    expected = 1 / (1 + (n - 1) * math.exp(-float(Fraction(gap) / temperature)))
    weights = [probe_peak(mechanism, made.token_groups(1, torch.float64))]
    if n <= LARGEST_RUN:
        weights.append(dense.probe(made, mechanism, 1, torch.float64))
    error = max(relative_error(weight, expected) for weight in weights)
    parameters = {"mechanism": "softmax", "temperature": temperature, "gap": gap, "n": n}
    return point(parameters, min(weights) > 0.5 and error < 1e-9, weight=min(weights))
