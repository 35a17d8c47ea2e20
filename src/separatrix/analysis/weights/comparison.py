"""Compare weight matrices of linear attention on the spike."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from separatrix.analysis.weights.result import AmplitudeError, WeightChoice, Weights
from separatrix.constructions import construction_named
from separatrix.constructions.reference import read_with_defaults
from separatrix.constructions.spike import Spike
from separatrix.core.errors import UsageError
from separatrix.core.numbers import format_exact, parse_exact
from separatrix.core.numbers.spelling import for_people
from separatrix.core.parameters import all_parameters
from separatrix.exact.engines import solve
from separatrix.exact.verdicts import DELTA, Verdict
from separatrix.exact.verdicts.verdict import OPTIONS, parse_delta
from separatrix.exact.verdicts.words import word_for
from separatrix.exact.weights import BlockScores, LinearReading, SpikePoint, UnnormalisedRow, read_linear
from separatrix.exact.weights.bounds import (
    RankOneBound,
    UniformBound,
    rank_one_bound,
    robust_weights,
    signed_weights,
    uniform_bound,
    unnormalised_ratio,
    weights_with_amplitude,
    weights_with_n,
)
from separatrix.mechanisms import Linear, mechanism_named

ETA = Fraction(1, 4)
"""Robust weights have no negative score for amplitudes up to (1 + ETA) a1."""
THETAS = tuple(Fraction(digit, 10**power) for power in (1, 2, 3, 4) for digit in range(1, 10))
"""Strengths of 11ᵀ among which the one with the best bound is chosen."""
USUAL_THETA = Fraction(6, 100)
"""The strength if none has a bound."""
BLOCK_SHARES = tuple(Fraction(share, 20) for share in (1, 2, 3, 4, 5, 6, 8, 10, 13, 16))
"""Scores of the own block over those of all blocks among which the one with the largest P is chosen."""
USUAL_SHARE = Fraction(1, 4)
"""The share for tokens wider than MAX_TRIED_WIDTH, where each P takes long."""
MAX_TRIED_WIDTH = 5000
FACTORS = Fraction(99, 100), Fraction(101, 100)
"""Amplitudes of D1, over the one that the weights were made for, at which they are tried."""
NEAR_POLE = Fraction(1, 1000)
"""The sum of scores, over that of their absolute values, of the signed example."""


@dataclass(frozen=True)
class Candidate:
    """A weight matrix before it is read."""

    name: str
    weights: str
    scores: BlockScores
    numbers: Mapping[str, Fraction]
    needs: tuple[str, ...]
    price: str
    bound: str = ""


def weights(
    construction: str = "spike",
    mechanism: Any = "linear",
    parameters: Mapping[str, object] | None = None,
    *,
    theta: object = None,
    eta: object = ETA,
    delta: object = DELTA,
    progress: Callable[[str], None] = lambda _: None,
    **named: object,
) -> Weights:
    """Compare weight matrices X of linear attention on the spike: could others save it, and at which price?

    Attention, margin and P are exact fractions.

    **Arguments:**

    - `construction`, `mechanism`: `"spike"` and `"linear"`; nothing is known for others.
    - `parameters`, `named`, `delta`: as for `verdict`.
    - `theta`: the strength of 11ᵀ in the weights that depend on n; the one with the best proved bound unless
      given.
    - `eta`: the robust weights have no negative score for any amplitude up to (1 + eta) a1.
    - `progress`: called with a description of each step.

    >>> result = weights("spike", "linear")
    >>> [(choice.name, round(choice.distinguish, 4)) for choice in result.choices][:3]
    [('ones', 0.0), ('identity', 0.9568), ('diagonal-plus-ones', 0.9998)]
    >>> result.choice("diagonal-plus-ones").attention[1]
    Fraction(4, 5)
    """
    kind = construction_named(construction)
    if kind is not Spike or not (mechanism == Linear.name or isinstance(mechanism, Linear)):
        name = mechanism if isinstance(mechanism, str) else getattr(mechanism, "spelled", repr(mechanism))
        raise UsageError(
            f"weights are compared for linear on spike, not for {name} on {kind.name}; "
            "write: separatrix weights spike linear"
        )
    values = all_parameters(parameters, named, kind.schema.model_fields, OPTIONS)
    if values.get("form", "ones") != "ones":
        raise UsageError(f"form={values['form']} is itself a choice of weights, and among those compared; leave it out")
    tolerance = parse_delta(delta)
    point, taken = read_with_defaults(kind, values)
    assert isinstance(point, Spike)
    exact_point = SpikePoint.of(point)
    strength, reserve = _parse_options(theta, eta)
    progress("softmax with X = 11ᵀ")
    softmax = mechanism_named("softmax")
    reference = Verdict(point, softmax, solve(point, softmax), tolerance, None, taken)
    choices, refusals = [], []
    for candidate in _candidates(exact_point, strength, reserve):
        progress(candidate.name)
        try:
            choices.append(_read(candidate, exact_point, tolerance))
        except UnnormalisedRow as refusal:
            refusals.append(f"{candidate.name}: no answer at this point; {refusal}.")
    statements = (*_statements(exact_point, reserve), *refusals)
    return Weights(reference, Linear(), tuple(choices), unnormalised_ratio(exact_point), statements)


def _parse_options(theta: object, eta: object) -> tuple[Fraction | None, Fraction]:
    strength = None if theta is None else parse_exact(theta, "theta")
    reserve = parse_exact(eta, "eta")
    if strength is not None and not 0 < strength <= 10**6:
        raise UsageError(f"theta={theta} is out of range; it must be above 0 and at most 1e6")
    if not 0 < reserve <= 10**6:
        raise UsageError(f"eta={eta} is out of range; it must be above 0 and at most 1e6")
    return strength, reserve


def _candidates(point: SpikePoint, theta: Fraction | None, eta: Fraction) -> Iterator[Candidate]:
    one, zero = Fraction(1), Fraction(0)
    ones = BlockScores.diagonal_plus_ones(point, zero, one)
    yield Candidate("ones", "11ᵀ", ones, {}, (), "none: the paper's weights")
    identity = BlockScores.diagonal_plus_ones(point, one, zero)
    yield Candidate("identity", "I", identity, {}, (), "the weight of the spike falls with the size of blocks")
    yield _rank_one(point)
    yield _with_n(point, theta)
    amplitude = {"1/a1": 1 / point.a[1], "1/c": 1 / point.c}
    text = "w vᵀ + e1 e1ᵀ, w = (-1/a1, 0, .., 1/c), v = (0, .., 1/c)"
    exact = weights_with_amplitude(point)
    yield Candidate("exact-amplitude", text, exact, amplitude, ("a1",), "a1 has to be known exactly for large n")
    yield _robust(point, eta)
    yield _signed(point)


def _rank_one(point: SpikePoint) -> Candidate:
    bound = rank_one_bound(point)
    ratio = -(point.c**2) / (point.row_sums[1] * point.r)
    scores = BlockScores.diagonal_plus_ones(point, Fraction(1), ratio)
    text = "" if bound is None else _rank_one_text(bound)
    numbers, price = {"beta": ratio}, "attention on the spike of order 1/t, t = n/(d-2)"
    return Candidate("diagonal-plus-ones", "I + beta 11ᵀ", scores, numbers, ("a1",), price, text)


def _rank_one_text(bound: RankOneBound) -> str:
    best, ratio = for_people(float(bound.bound)), for_people(float(bound.beta_over_alpha))
    return (
        f"alpha I + beta 11ᵀ with scores >= 0 gives the spike at most {best} in its own row, "
        f"attained at beta/alpha = {ratio}"
    )


def _with_n(point: SpikePoint, theta: Fraction | None) -> Candidate:
    tried = [(strength, uniform_bound(point, strength)) for strength in (THETAS if theta is None else (theta,))]
    proved = [bound for _, bound in tried if bound is not None]
    best = max(proved, key=lambda bound: bound.bound, default=None)
    strength = best.theta if best is not None else theta or USUAL_THETA
    scores = weights_with_n(point, strength)
    text = "" if best is None else _uniform_text(best)
    return Candidate("with-n", "e1 e1ᵀ + (theta/n) 11ᵀ", scores, {"theta": strength}, ("n",), "X depends on n", text)


def _uniform_text(bound: UniformBound) -> str:
    # Rounded down: the text is a lower bound, too.
    digits = f"{int(bound.bound * 10**6) / 10**6:.6f}"
    return f"P >= {digits} for every n >= {bound.n} and d >= {bound.d} with theta = {format_exact(bound.theta)}"


def _robust(point: SpikePoint, eta: Fraction) -> Candidate:
    """Choose the strength of the own block with the largest P."""

    def probability(share: Fraction) -> float:
        return read_linear(robust_weights(point, eta, share * (point.d - 2)), point).outcome.distinguish

    share = max(BLOCK_SHARES, key=probability) if point.d <= MAX_TRIED_WIDTH else USUAL_SHARE
    block = share * (point.d - 2)
    text = "ed edᵀ/c² - e1 edᵀ/(c (1+eta) a1) + block I/b² on the blocks"
    numbers = {"eta": eta, "block": block}
    price = "attends to the spike's block: the margin falls like 1/n; a1 has to be known within a factor"
    return Candidate("robust", text, robust_weights(point, eta, block), numbers, ("d", "a1"), price)


def _signed(point: SpikePoint) -> Candidate:
    """Return weights near the pole of their normaliser, at which no bound holds."""
    size = point.a[1] ** 2 + point.b**2 + point.c**2
    scores = signed_weights(point, NEAR_POLE * size)
    beta = scores.pair - 1
    price = "scores of both signs that nearly cancel: any error in n or a1 changes the margin"
    return Candidate("signed", "I + beta 11ᵀ", scores, {"beta": beta}, ("n", "d", "a1"), price)


def _read(candidate: Candidate, point: SpikePoint, delta: Fraction) -> WeightChoice:
    reading = read_linear(candidate.scores, point)
    errors = tuple(_with_amplitude(candidate.scores, point, factor) for factor in FACTORS)
    return WeightChoice(
        candidate.name,
        candidate.weights,
        candidate.numbers,
        candidate.needs,
        candidate.price,
        reading,
        word_for(reading.outcome, point.m, delta),
        candidate.bound,
        errors,
    )


def _with_amplitude(scores: BlockScores, point: SpikePoint, factor: Fraction) -> AmplitudeError:
    changed = replace(point, a=(point.a[0], point.a[1] * factor))
    try:
        reading: LinearReading = read_linear(scores, changed)
    except UnnormalisedRow:
        return AmplitudeError(factor, None, None, None)
    return AmplitudeError(factor, reading.own[1], reading.margin, reading.outcome.distinguish)


def _statements(point: SpikePoint, eta: Fraction) -> Iterator[str]:
    yield (
        f"Weights that do not depend on n, with scores >= 0 for every amplitude up to {format_exact(1 + eta)} a1: "
        "either the weight of the spike is at most a constant over n in every row of D1 (d fixed), or some row "
        "of D0 and of D1 attends to the spike alone"
        + (
            f", and then P <= (7/8)^m = {for_people(float(Fraction(7, 8) ** min(point.m, 10_000)), 4)}. "
            if point.a[0] + point.b > point.tau - point.c
            else ". "
        )
        + "The first case does not make linear attention blind: the attention to blocks can still change (robust)."
    )
    yield (
        "With scores of both signs the margin has no bound: the normaliser has a pole (signed). A bound needs "
        "scores >= 0, or |sum| >= kappa sum |scores|, which gives margin <= (a0 + a1)/kappa."
    )
    limit = point.row_sums[1] / point.row_sums[0]
    yield (
        f"Without the normaliser, linear attention with X = 11ᵀ has v(D1)/v(D0) = "
        f"{for_people(float(unnormalised_ratio(point)))}, with the limit (a1+b+c)/(a0+b+c) = "
        f"{for_people(float(limit))}: the normaliser loses the spike, not linearity."
    )
    s0, s1 = (a * total for a, total in zip(point.a, point.row_sums, strict=True))
    upper = "" if s0 == 0 else f" < {for_people(float(1 / s0))}"
    if s0 < s1:
        yield (
            "Normalised linear attention does not change if X is multiplied by a number g. Softmax does: with "
            "X = g 11ᵀ and growing n, the spike's row attends to the spike alone in D1 and not to it in D0 where "
            f"{for_people(float(1 / s1))} < g{upper}."
        )
