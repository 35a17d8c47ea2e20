"""Theory 3.4, the separation theorem: its conclusion, and the hypotheses it needs."""

from __future__ import annotations

import math
from collections.abc import Collection
from fractions import Fraction
from itertools import product

import numpy as np

from separatrix.claims._base import DELTA, Array, Finding, Point, Points, Setting, claim
from separatrix.claims._tools import first_settled, on_grid, prove_for_ever, relative_error, short, spike
from separatrix.constructions.theorem import SIGNS, WIDTH, Unit, hypotheses, sufficient_n
from separatrix.exact.engines import certified
from separatrix.exact.proofs import certify_uniformly
from separatrix.exact.proofs.uniform import prove_uniformly, theorem_ranges
from separatrix.mechanisms import Linear, Softmax

THEOREM_SETTINGS: tuple[Setting, ...] = (
    {"a0": "0.01", "a1": "1.2", "b": "0.2", "c": "0.1"},
    {"a0": "0.05", "a1": "0.7", "b": "0.5", "c": "0.4"},
    {"a0": "0.1", "a1": "1.5", "b": "0.5", "c": "1"},
    {"a0": "0.1", "a1": "2", "b": "0.1", "c": "0.5"},
    {"a0": "0.05", "a1": "0.87", "b": "0.2", "c": "0.1"},
    {"a0": "0.05", "a1": "0.62", "b": "0.5", "c": "0.51"},
)
"""From comfortable to hardly admissible: the last has a1(a1+b+c) = 1.01 and a1 - b = 0.12."""
THEOREM_DELTAS = (0.1, 0.01, 1e-6)
MAX_FAILURE_ERROR = 1e-12
"""Relative error allowed between the float64 engine and certified fractions."""
BLOCK_SIZES = [10**e for e in range(296)]
"""Every power of ten: the least that is stated is the least of them all."""


def failures(setting: Setting, sizes: list[int]) -> dict[str, Array]:
    """Return the exact probabilities of the four events that must not happen."""
    softmax, linear = (on_grid(mechanism, setting, n=sizes) for mechanism in (Softmax(), Linear()))
    # (1-p1)^m by logarithms, accurate for small p1; p1 = 1 gives exp(-inf) = 0.
    with np.errstate(divide="ignore"):
        silent = np.exp(softmax.m * np.log1p(-softmax.p1))
    return {
        "softmax_fires_on_D0": softmax.fire_d0,
        "softmax_silent_on_D1": silent,
        "linear_fires_on_D0": linear.fire_d0,
        "linear_fires_on_D1": linear.fire_d1,
    }


def largest_failure(setting: Setting, sizes: list[int]) -> Array:
    """Return the largest of the four probabilities at each size."""
    return np.asarray(np.maximum.reduce(list(failures(setting, sizes).values())))


def failure_error(setting: Setting, n: int) -> float:
    """Return the largest relative error of `failures` at n.

    The expected values follow from certified fractions: a network of m neurons fires with probability
    1 - (1-p)^m and is silent with probability (1-p)^m.
    """
    m, construction = setting["m"], spike(setting, n=n)
    softmax, linear = (certified.count(construction, mechanism).low for mechanism in (Softmax(), Linear()))
    d0, d1, linear_d0, linear_d1 = ((1 - Fraction(p)) ** m for p in (softmax.p0, softmax.p1, linear.p0, linear.p1))
    expected = (1 - d0, d1, 1 - linear_d0, 1 - linear_d1)
    return relative_error([float(p[0]) for p in failures(setting, [n]).values()], expected)


def literal_signs(delta: float) -> int:
    """Return the least m with m >= log(1/delta)/log(4/3), written out and not taken from the package."""
    return math.ceil(math.log(1 / delta) / math.log(4 / 3))


def literal_width(b: float, m: int, delta: float) -> int:
    """Return the least d with d - 2 >= 200 b² log(4m/delta), written out and not taken from the package."""
    return 2 + math.ceil(200 * b * b * math.log(4 * m / delta))


def admissible(setting: Setting, delta: float) -> Setting:
    """Return the setting with the least d and m that the theorem needs, unless it has its own."""
    m = literal_signs(delta)
    return {"d": literal_width(float(setting["b"]), m, delta), "m": m, **setting}


def violated_hypotheses(setting: Setting) -> list[str]:
    """Return the hypotheses that the package says do not hold at delta = DELTA."""
    return [name for name, holds in hypotheses(setting, DELTA).items() if not holds]


def are_hypotheses_sharp(setting: Setting, delta: float) -> bool:
    """Return whether the package accepts the least d and m that the theorem needs, and rejects one less.

    `setting` has these d and m.
    """
    narrower = hypotheses({**setting, "d": setting["d"] - 1}, delta)
    fewer = hypotheses({**setting, "m": setting["m"] - 1}, delta)
    return all(hypotheses(setting, delta).values()) and not narrower[WIDTH] and not fewer[SIGNS]


@claim("theorem", "3.4", "rec")
def theorem() -> Finding:
    """If a1(a1+b+c) > 1, a0(a0+b+c) < 1, a1-b > 0.1, d-2 >= 200 b² log(4m/delta) and m >=
    log(1/delta)/log(4/3), then for large n, with probability 1-O(delta), softmax fires on D1 and not on D0,
    and linear fires on neither.

    For each setting the least power of ten from which on, as n/(d-2), all four failures stay below delta.
    The hypotheses hold at the least d and m, and not with one less; at two settings the failures are compared
    with certified fractions.
    """
    points = Points(theorem_point(*case) for case in product(THEOREM_SETTINGS, THEOREM_DELTAS))
    points += [fractions_point(setting, DELTA) for setting in THEOREM_SETTINGS[:2]]
    verify_bounds(points)
    return points.conclude(
        f"each of the four failures has probability {points.largest_over_delta.max:.2f} delta or less as n "
        f"grows; of all powers of ten up to 1e295, n/(d-2) has to reach {points.from_blocks_of.min:.0f} at "
        f"best and {points.from_blocks_of.max:.0e} at worst (a1(a1+b+c) = 1.01, a1-b = 0.12)",
        f"the constant in O(delta) is {points.largest_over_delta.max:.2f} here",
    )


def verify_bounds(points: Points) -> None:
    """Add the bounds U1 and U2 from the sufficient n on: they have to keep every failure at delta or less."""
    for setting, delta in product(THEOREM_SETTINGS, THEOREM_DELTAS):
        setting = admissible(setting, delta)
        n, m = sufficient_n(setting, delta), setting["m"]
        for mechanism in ("softmax", "linear"):
            proof = prove_uniformly(mechanism, theorem_ranges(mechanism, setting), setting, start=n)
            fires, silent = -math.expm1(m * math.log1p(-proof.p_at_most)), (1 - (proof.triples or 8) / 8) ** m
            results = {"fires_at_most": fires, "silent_at_most": silent}
            points.verify(certify_uniformly(proof), max(fires, silent) <= delta, **results)


def theorem_point(setting: Setting, delta: float) -> Point:
    """Check that the hypotheses hold and that, from some n on, every failure is at most delta."""
    setting = admissible(setting, delta)
    sizes = [(setting["d"] - 2) * t for t in BLOCK_SIZES]
    probabilities = failures(setting, sizes)
    worst = np.maximum.reduce(list(probabilities.values()))
    first = first_settled(worst <= delta)
    holds = first < len(sizes) and are_hypotheses_sharp(setting, delta)
    results: Setting = {name: float(p[-1]) for name, p in probabilities.items()}
    if holds:
        results |= {"from_n": short(sizes[first]), "from_blocks_of": float(BLOCK_SIZES[first])}
    return Point({**setting, "delta": delta}, holds, largest_over_delta=worst[-1] / delta, **results)


def fractions_point(setting: Setting, delta: float) -> Point:
    """Check the failures at blocks of 10 and of 10^6 tokens against certified fractions."""
    setting = admissible(setting, delta)
    error = max(failure_error(setting, (setting["d"] - 2) * size) for size in (10, 10**6))
    return Point({**setting, "delta": delta}, error < MAX_FAILURE_ERROR, error=error)


FACTORS = (1, 2, 10, 10**3, 10**6, 10**12, 10**18)
"""How far beyond the sufficient n the failures are computed."""


@claim("theorem-from-n", "3.4", "ours")
def theorem_from_n() -> Finding:
    """Under the theorem's hypotheses each of the four failures has probability delta or less for every n with
    a1 n^(1-a1(a1+b+c)) < a1-b-0.1 and, for w = n^(a0(a0+b+c))/(n-1) and a = a0 as well as w =
    (a1+b+c)/(a1+b+c+(n-1)(b+c)) and a = a1, (a+b) w + 2b/(n-1) <= 0.1 - b sqrt(2 log(m/delta)/(d-2)).

    The least such n is checked against the inequalities, and the failures are computed from there on. The
    least n of either unit alone is compared with a search through every n.
    """
    points = Points(from_n_point(*case) for case in product(THEOREM_SETTINGS, THEOREM_DELTAS))
    points += [fractions_point(setting, DELTA) for setting in THEOREM_SETTINGS[:2]]
    points += [softmax_n_point(*case) for case in product(SOFTMAX_SETTINGS, (0.1, 0.01))]
    points += [searched_n_point(unit) for unit in ("softmax", "linear")]
    verify_bounds(points)
    return points.conclude(
        f"from the least such n on, {FACTORS[-1]:.0e} times as far, every failure is "
        f"{points.largest_over_delta.max:.2f} delta or less; at the tightest point one exceeds delta at "
        f"{points.fails_below_share.min:.2g} of that n",
        f"largest failure {points.largest_over_delta.max:.2f} delta",
    )


def from_n_point(setting: Setting, delta: float) -> Point:
    """Check that n is the least that meets the inequalities, and that no failure exceeds delta from it on."""
    setting = admissible(setting, delta)
    n, step = sufficient_n(setting, delta), setting["d"] - 2
    if n is None:
        return Point({**setting, "delta": delta}, False, proved_from="none")
    worst = largest_failure(setting, [n * factor for factor in FACTORS])
    # The smaller n is as close as floats can tell the two apart.
    before = n - max(step, n // 10**6)
    is_enough = are_hypotheses_sharp(setting, delta) and inequality_slack(setting, n, delta) >= -1e-12
    is_least = is_enough and (before < 3 or inequality_slack(setting, before, delta) < 0)
    # A look below n, for the slack only: the theorem says nothing there.
    below = [max(n // step * k // 100, 1) * step for k in range(1, 100)]
    exceeds = largest_failure(setting, below) > delta
    results: Setting = {"proved_from": short(n), "largest_over_delta": worst.max() / delta}
    if exceeds.any():
        results["fails_below_share"] = max(np.array(below)[exceeds]) / n
    return Point({**setting, "delta": delta}, bool(is_least and (worst <= delta).all()), **results)


SOFTMAX_SETTINGS: tuple[Setting, ...] = (
    {"a0": "0.5", "a1": "2", "b": "0.1", "c": "0.7"},
    {"a0": "0.5", "a1": "3", "b": "0.5", "c": "0.7"},
)
"""Settings with a large a0, at which the inequality on D0 decides the least n of softmax."""


def softmax_n_point(setting: Setting, delta: float) -> Point:
    """Check that softmax's least n meets softmax's own two inequalities and that n - (d-2) does not."""
    setting = admissible(setting, delta)
    n, step = sufficient_n(setting, delta, ["softmax"]), setting["d"] - 2
    if n is None:
        return Point({**setting, "delta": delta}, False, softmax_proved_from="none")
    slacks = [inequality_slack(setting, size, delta, ["softmax"]) for size in (n, n - step)]
    return Point({**setting, "delta": delta}, slacks[0] >= 0 > slacks[1], softmax_proved_from=short(n))


_NARROW: Setting = {"a0": "0.3", "a1": "1.2", "b": "0.01", "d": 4, "m": 17}
SEARCHED: tuple[Setting, ...] = tuple({**_NARROW, "c": f"0.{hundredths}"} for hundredths in range(20, 60))
"""Settings with blocks of two tokens: the least n are small, and one token more or less shows in many."""
MAX_SEARCHED_N = 500


def searched_n_point(unit: Unit) -> Point:
    """Check one unit's least n at all `SEARCHED` against the least of all n that meets the inequalities."""
    expected = [
        next(n for n in range(4, MAX_SEARCHED_N, 2) if inequality_slack(setting, n, DELTA, [unit]) >= 0)
        for setting in SEARCHED
    ]
    sizes = [sufficient_n(setting, DELTA, [unit]) for setting in SEARCHED]
    wrong = sum(x != y for x, y in zip(sizes, expected, strict=True))
    parameters = {**SEARCHED[0], "c": "0.2:0.59", "delta": DELTA, "unit": unit}
    return Point(parameters, wrong == 0, smallest_n=min(expected), largest_n=max(expected), wrong=wrong)


def inequality_slack(setting: Setting, n: int, delta: float, units: Collection[Unit] = ("softmax", "linear")) -> float:
    """Return the smallest slack of the inequalities of these units, each as it stands in the theory.

    The first two are softmax's, the third is linear attention's; below 0 one fails.
    """
    a0, a1, b, c = (float(setting[name]) for name in ("a0", "a1", "b", "c"))
    log_n = math.log(n)
    room = 0.1 - b * math.sqrt(2 * math.log(setting["m"] / delta) / (setting["d"] - 2))
    # Powers of n by logarithms: n may be too large for a float.
    softmax = math.exp(a0 * (a0 + b + c) * log_n - math.log(n - 1))
    linear = (a1 + b + c) / (a1 + b + c + (n - 1) * (b + c))
    on_d1 = a1 - b - 0.1 - a1 * math.exp((1 - a1 * (a1 + b + c)) * log_n)
    on_d0, on_both = (room - (a + b) * weight - 2 * b / (n - 1) for a, weight in ((a0, softmax), (a1, linear)))
    return min({"softmax": min(on_d1, on_d0), "linear": on_both}[unit] for unit in units)


WITHOUT: tuple[tuple[str, Setting], ...] = (
    ("a1(a1+b+c) > 1", {"a0": "0.05", "a1": "0.8", "b": "0.2", "c": "0.1"}),
    ("a0(a0+b+c) < 1", {"a0": "0.9", "a1": "1.2", "b": "0.2", "c": "0.1"}),
    ("a1 - b > 0.1", {"a0": "0.05", "a1": "0.75", "b": "0.7", "c": "0.7"}),
    ("a1 - b > 0.1", {"a0": "0.05", "a1": "0.8", "b": "0.7", "c": "0.7"}),
    ("d - 2 >= 200 b² log(4m/delta)", {"a0": "0.05", "a1": "1.2", "b": "0.2", "c": "0.1", "d": 6}),
    ("m >= log(1/delta)/log(4/3)", {"a0": "0.05", "a1": "1.2", "b": "0.2", "c": "0.1", "m": 2}),
)
"""Points that violate one hypothesis each; a1 - b is below 0.1 at one point, and equal to it at another."""
AT_EQUALITY: tuple[tuple[str, Setting], ...] = (
    ("a1(a1+b+c) > 1", {"a0": "0.05", "a1": "0.5", "b": "0.2", "c": "1.3"}),
    ("a0(a0+b+c) < 1", {"a0": "0.5", "a1": "0.8", "b": "0.2", "c": "1.3"}),
    ("a1 - b > 0.1", {"a0": "0.05", "a1": "0.8", "b": "0.7", "c": "0.7"}),
)
"""Points where the two sides of a strict inequality are equal, so that it does not hold."""


@claim("hypotheses-needed", "3.4", "ours")
def hypotheses_needed() -> Finding:
    """No hypothesis of the theorem is idle: without any one of them there are parameters where the conclusion
    fails.

    Without one hypothesis, some failure is far more likely than delta. The failures are compared with
    certified fractions; and where both sides of a strict inequality are equal, it does not hold.
    """
    points = Points(equality_point(*case) for case in AT_EQUALITY)
    points += [violation_point(*case) for case in WITHOUT]
    for _, setting in WITHOUT:
        setting = admissible({**setting, "n": (admissible(setting, DELTA)["d"] - 2) * 10**15}, DELTA)
        certificate, neurons = prove_for_ever("softmax", setting)
        m = setting["m"]
        worst = min(float(max(1 - (1 - p.p0) ** m, (1 - p.p1) ** m)) for p in neurons)
        points.verify(certificate, worst > 5 * DELTA, for_ever=worst)
    return points.conclude(
        "for each hypothesis there are parameters that violate it alone, and there a failure has "
        f"probability {points.probability.min:.2g} or more at delta = {DELTA}",
        f"failure {points.probability.min / DELTA:.0f} delta or more",
    )


def violation_point(hypothesis: str, setting: Setting) -> Point:
    """Check that a failure is far more likely than delta at a point that violates this hypothesis alone."""
    setting = admissible(setting, DELTA)
    n = (setting["d"] - 2) * 10**15
    worst, failure = max((float(p[0]), name) for name, p in failures(setting, [n]).items())
    error = failure_error(setting, n)
    holds = violated_hypotheses(setting) == [hypothesis] and worst > 5 * DELTA and error < MAX_FAILURE_ERROR
    results = {"without": hypothesis, "failure": failure, "probability": worst, "error": error}
    return Point({**setting, "delta": DELTA}, holds, **results)


def equality_point(name: str, setting: Setting) -> Point:
    """Check that a strict inequality is rejected, and it alone, where its two sides are equal."""
    setting = admissible(setting, DELTA)
    a0, a1, b, c = (Fraction(setting[parameter]) for parameter in ("a0", "a1", "b", "c"))
    slacks = {
        "a1(a1+b+c) > 1": a1 * (a1 + b + c) - 1,
        "a0(a0+b+c) < 1": 1 - a0 * (a0 + b + c),
        "a1 - b > 0.1": a1 - b - Fraction(1, 10),
    }
    violations = violated_hypotheses(setting)
    holds = slacks[name] == 0 and violations == [name]
    return Point({**setting, "delta": DELTA}, holds, equal_in=name, violated=", ".join(violations))
