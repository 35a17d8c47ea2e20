"""Theory 6.5 and 6.6, the scale of logits: bounded ones thin out, and how fast they must grow."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

from flint import arb, ctx

from separatrix.claims._base import Finding, Point, Points, claim
from separatrix.claims._tools import certified_crossing, example, judge, limit_in_log, relative_error, short
from separatrix.constructions.dispersion import Dispersion
from separatrix.core.tensors import torch
from separatrix.exact.engines import dense
from separatrix.exact.outputs.attention import probe_peak
from separatrix.exact.outputs.proved import ends, proved_outputs
from separatrix.mechanisms import Mechanism, Softmax, mechanism_named

DISPERSION_SIZES = tuple(10**e for e in (1, 3, 6, 12, 18))
MAX_DENSE_N = 1000
"""Up to this n repairs are also run on all tokens."""
REPAIRS = ("logn-softmax", "topk:k=1", "hardmax")


@claim("dispersion", "6.5", "rec")
def thin() -> Finding:
    """With logits that do not grow with n, softmax gives the largest one between 1/n and e^gap/n (arXiv
    2410.01104): attention thins out like 1/n.

    The weight of the largest logit between 1/n and e^gap/n, and equal to e^gap/(e^gap + n-1), in balls.
    """
    points = Points(weight_point(gap, n) for gap, n in product((1, 3, 10), DISPERSION_SIZES))
    return points.conclude(
        "n f lies between 1 and e^gap for gaps 1, 3, 10, n = 10 to 1e18 (proved in balls): "
        f"{points.n_f.min:.2f} to {points.n_f.max:.0f}",
        f"n f reaches {points.share.max:.6f} of e^gap, and is {points.n_f.min:.2f} or more",
    )


def weight_point(gap: int, n: int) -> Point:
    """Check that 1 <= n f <= e^gap, both proved, and that f is e^gap/(e^gap + n-1)."""
    low, high = proved_outputs(example(Dispersion, gap=gap, n=n), Softmax()).reading(1, (Fraction(1),))
    with ctx.workprec(512):
        limit, _ = ends(arb(gap).exp())
        f_low, f_high = ends(arb(gap).exp() / (arb(gap).exp() + n - 1))
    # Both pairs enclose f, so that each has its lower end below the other's upper end.
    error = float(max(high - f_low, f_high - low) / f_low)
    holds = 1 <= n * low <= n * high <= limit and low <= f_high and f_low <= high and error < 1e-30
    return Point({"gap": gap, "n": n}, holds, n_f=float(n * low), share=float(n * high / limit), error=error)


@claim("dispersion-blind", "6.5", "ours")
def blind() -> Finding:
    """So softmax, which reads the token of the largest logit at small n, is blind from the first n above
    e^gap + 1 on (tau = 1/2).

    The certified words on either side of n = e^gap + 1, and far beyond.
    """
    points = Points()
    last_read = {gap: math.floor(math.exp(gap)) + 1 for gap in (1, 3, 5, 10, 20)}
    for gap, last in last_read.items():
        constructions = [example(Dispersion, gap=gap, n=n) for n in (last, last + 1, 10**18)]
        words = [judge(construction, "softmax", "certified").word for construction in constructions]
        points.add({"gap": gap, "n": last}, words == ["distinguishes", "blind", "blind"], words=", ".join(words))
    starts = ", ".join(f"{short(last + 1)} (gap {gap})" for gap, last in last_read.items())
    return points.conclude(
        f"certified: softmax distinguishes up to the n before and is blind from n = {starts}; f falls with n",
        "exact to 1 token: the two words are those of neighbouring n",
    )


@claim("dispersion-repaired", "6.5", "rec")
def sharper() -> Finding:
    """A temperature that falls like 1/log n, or keeping the largest logit alone, repairs it.

    Inside: repairs at gaps above 1, at small n on all tokens as well, and softmax with such a temperature.
    Outside: temperature log n with a gap below 1.
    """
    inside = Points(repair_point(*case) for case in product(REPAIRS, ("3/2", "3"), DISPERSION_SIZES))
    inside += [temperature_point(*case) for case in product(("3/2", "3"), DISPERSION_SIZES)]
    outside = Points(repair_point("logn-softmax", "1/2", n) for n in DISPERSION_SIZES[1:])
    return inside.conclude_where(
        outside,
        "the gap is above 1 for a temperature of 1/log n (its weight is 1/(1+(n-1)n^{-gap})); any gap will "
        "do for hardmax and topk:k=1",
        f"{', '.join(REPAIRS)} distinguish at n = 10 to 1e18, P = {inside.distinguish.min:.5f} or more; "
        f"logn-softmax with a gap of 1/2 is blind, P at most {outside.distinguish.max:.2g}",
        f"weight {inside.weight.min:.3f} or more, needed 1/2; with a gap of 1/2 it is "
        f"{outside.weight.max:.2g} or less from n = 1000",
    )


def repair_point(name: str, gap: str, n: int) -> Point:
    """Check that the repaired mechanism distinguishes, and gives the token the weight of theory 6.5."""
    construction = example(Dispersion, gap=gap, n=n)
    answer = judge(construction, name)
    expected = 1 / (1 + (n - 1) * float(n) ** -float(Fraction(gap))) if name == "logn-softmax" else 1.0
    error = _weight_error(construction, mechanism_named(name), answer.outcome.v1, expected)
    holds, outcome = answer.word == "distinguishes" and error < 1e-9, answer.outcome
    results = {"distinguish": outcome.distinguish, "weight": outcome.v1, "engine": outcome.engine}
    return Point({"mechanism": name, "gap": gap, "n": n}, holds, **results)


def temperature_point(gap: str, n: int) -> Point:
    """Check that softmax with a temperature of about 1/log n gives the token most of the weight.

    The weight is 1/(1 + (n-1) e^{-gap/temperature}).
    """
    temperature = Fraction(1 / math.log(n)).limit_denominator(1000)
    construction, mechanism = example(Dispersion, gap=gap, n=n), Softmax(temperature=temperature)
    expected = 1 / (1 + (n - 1) * math.exp(-float(Fraction(gap) / temperature)))
    weight = probe_peak(mechanism, construction.token_groups(1, torch.float64))
    error = _weight_error(construction, mechanism, weight, expected)
    parameters = {"mechanism": "softmax", "temperature": temperature, "gap": gap, "n": n}
    return Point(parameters, weight > 0.5 and error < 1e-9, weight=weight)


def _weight_error(construction: Dispersion, mechanism: Mechanism, weight: float, expected: float) -> float:
    """Return the error of the token's weight, on groups of equal tokens and, at small n, on all tokens.

    All tokens go through the mechanism's fast form.
    """
    weights = [weight]
    if construction.n <= MAX_DENSE_N:
        weights.append(dense.probe(construction, mechanism, 1, torch.float64))
    return max(relative_error(w, expected) for w in weights)


RHOS = ("0", "1/4", "3/4")
CRITICAL_SIZES = tuple(10**e for e in (3, 6, 30, 100))
TAU = Fraction(1, 10)
MAX_GAMMA_ERROR = 1e-5


@claim("critical-scaling", "6.6", "rec")
def critical_scaling() -> Finding:
    """Tokens of inner product rho, logits gamma log n (arXiv 2510.05554): softmax comes to find a token as
    gamma passes gamma_c = 1/(1-rho), in the limit of large n; at finite n and small tau earlier.

    Where P passes 1/2 in gamma, both ends proved, at growing n and extrapolated in 1/log n.
    """
    points = Points()
    for rho in RHOS:
        limit = 1 / (1 - float(Fraction(rho)))
        crossings = Points(gamma_point(rho, n, limit) for n in CRITICAL_SIZES)
        estimate = limit_in_log(CRITICAL_SIZES, crossings.gamma)
        away, rises = abs(estimate / limit - 1), crossings.gamma == sorted(set(crossings.gamma))
        crossings.add({"rho": rho}, rises and away < MAX_GAMMA_ERROR, extrapolated=estimate, away=away)
        points += crossings
    return points.conclude(
        "P passes 1/2 in gamma where (n-1)n^{-gamma(1-rho)} = 1/tau - 1 (both ends certified, off by "
        f"{points.error.max:.0e}), n = 1e3 to 1e100, and tends to 1/(1-rho) for rho = {', '.join(RHOS)}",
        f"limit off by {points.away.max:.0e}; {points.below.max:.0%} lower at n = 1000 with tau = 0.1",
    )


def gamma_point(rho: str, n: int, limit: float) -> Point:
    """Check that there is a single certified crossing, below the limit, and where the closed form has it."""
    gamma = certified_crossing("critical", gamma=f"{limit / 4}:{2 * limit}", rho=rho, n=n, tau=TAU)
    expected = limit * (math.log(n - 1) - math.log(1 / TAU - 1)) / math.log(n)
    error = abs(gamma / expected - 1)
    holds = error < 1e-8 and gamma < limit
    return Point({"rho": rho, "n": n, "tau": TAU}, holds, gamma=gamma, error=error, below=1 - gamma / limit)
