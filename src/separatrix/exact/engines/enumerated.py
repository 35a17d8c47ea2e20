"""Enumeration of all sign vectors, for readers with few signs: the probabilities are exact fractions.

`in_floats` computes attention in float64 for any mechanism that accepts counts; a pre-activation too close to
the threshold is decided exactly or refused, never guessed. `in_balls` is for scalar kernels and adds up
scores as rationals and balls.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

from separatrix.constructions import ExactConstruction, Label
from separatrix.core.tensors import Float, Tensor, torch
from separatrix.exact.engines.outcome import EngineRefusal, Neuron, Outcome, combine_neurons
from separatrix.exact.outputs.attention import attend, float_margin
from separatrix.exact.outputs.floats import SLACK
from separatrix.exact.outputs.kernels import kernel_rows
from separatrix.mechanisms import Mechanism

MOST_SIGNS = 12
"""Readers with more signs have too many sign vectors to enumerate."""
NUDGE = 2.0**-46
"""Queries and keys are perturbed by up to 64 units of rounding to measure its effect on the output."""
NUDGES = 6
SAFETY = 4
"""The safety factor for the measured effect; rounding itself is about sixty times smaller."""
LOST = 1e-6
"""The relative error above which no margin is reported, and below which a margin is computed exactly."""


class TooCloseToCall(EngineRefusal):
    """Float64 cannot decide on which side of the threshold a pre-activation lies."""


def sign_vectors(signs: int) -> list[tuple[int, ...]]:
    """Return all sign vectors of this length.

    >>> sign_vectors(2)
    [(1, 1), (1, -1), (-1, 1), (-1, -1)]
    """
    if signs > MOST_SIGNS:
        raise EngineRefusal(f"the reader has {signs} signs, too many to try all 2^{signs} vectors", ("grouped",))
    return list(product((1, -1), repeat=signs))


def in_floats(construction: ExactConstruction, mechanism: Mechanism) -> Outcome:
    """Enumerate sign vectors with attention in float64; comparisons left open by rounding are reported."""
    if not mechanism.takes_counts:
        raise EngineRefusal(f"{mechanism.spelled} does not accept counts", ("dense",))
    vectors = sign_vectors(construction.signs)
    labels = [_measure_attention(construction, mechanism, label) for label in (0, 1)]
    firing = [label.fires(vectors, construction.threshold) for label in labels]
    evidence = f"all {len(vectors)} sign vectors, attention in float64"
    open_count = sum(fires.count(None) for fires in firing)
    if open_count:
        try:
            exact_outcome = in_balls(construction, mechanism)
        except EngineRefusal:
            exact_outcome = None
        # p0 is a fraction only if no open comparison changes it.
        if exact_outcome is not None and isinstance(exact_outcome.p0, Fraction):
            return replace(exact_outcome, engine="closed", evidence=f"{evidence}, {open_count} ties decided exactly")
        if not any(label.has_lost_digits for label in labels):
            reason = f"{open_count} pre-activations are too close to the threshold for float64"
            raise TooCloseToCall(reason, ("grouped",))
        evidence = f"{evidence}, which loses precision here: {open_count} comparisons open"
    outcome = combine_neurons(construction.m, *_bounds(firing), open_count, *_margin(construction, mechanism, labels))
    return replace(outcome, engine="closed", evidence=evidence)


def _margin(
    construction: ExactConstruction, mechanism: Mechanism, labels: Sequence[_Attended]
) -> tuple[float, float, float]:
    """Return v0, v1 and v1 - v0; by rationals and balls for kernels if the two nearly cancel."""
    if any(label.has_lost_digits for label in labels):
        return math.nan, math.nan, math.nan
    v0, v1 = (float(label.rows.sum(-1).amax()) for label in labels)
    size = max(float(label.absolute_sums.amax()) for label in labels)
    # Float64 leaves such a difference few digits, so it is computed from exact scores, if there are any.
    if abs(v1 - v0) <= LOST * size:
        with suppress(EngineRefusal):
            v0, v1, margin = map(float, kernel_rows(construction, mechanism).margin())
            return v0, v1, margin
    return v0, v1, float_margin(v0, v1, size)


def in_balls(construction: ExactConstruction, mechanism: Mechanism) -> Outcome:
    """Enumerate sign vectors with scores in rationals and balls."""
    rows = kernel_rows(construction, mechanism)
    vectors = sign_vectors(construction.signs)
    firing = [[rows.fires(label, signs) for signs in vectors] for label in (0, 1)]
    undecided_count = sum(fires.count(None) for fires in firing)
    low, high = _bounds(firing)
    outcome = combine_neurons(construction.m, low, high, undecided_count, *rows.margin())
    return replace(outcome, evidence=f"all {1 << construction.signs} sign vectors, {outcome.evidence}")


@dataclass(frozen=True)
class _Attended:
    """Attention outputs of one label in float64, with error bounds."""

    rows: Float[Tensor, "rows features"]
    absolute_sums: Float[Tensor, " rows"]
    """The sum of the absolute values that were added up."""
    sizes: Float[Tensor, " rows"]
    """`absolute_sums` plus the largest value, which bounds the effect of an error in a weight."""
    errors: Float[Tensor, " rows"]
    """Bounds on the error of a pre-activation, for all signs."""

    @property
    def has_lost_digits(self) -> bool:
        """Whether too few digits are left for a margin."""
        return not bool((self.errors <= LOST * self.sizes).all())

    def fires(self, vectors: Sequence[Sequence[int]], threshold: float) -> list[bool | None]:
        """Return for each sign vector whether a row fires; None if rounding leaves it open."""
        over = self.rows @ torch.tensor(vectors, dtype=torch.float64).mT - threshold
        slack = (self.errors + SLACK * (self.sizes + abs(threshold)))[:, None]
        # Never firing needs every row below the threshold, surely firing only one above it.
        surely, never = (over > slack).any(0), (over < -slack).all(0)
        return [True if yes else False if no else None for yes, no in zip(surely.tolist(), never.tolist(), strict=True)]


def _measure_attention(construction: ExactConstruction, mechanism: Mechanism, label: Label) -> _Attended:
    """Compute attention in float64 with the original and with perturbed queries and keys.

    The rounding error of an arbitrary mechanism has no known bound, so it is measured: the effect of
    perturbed tokens shows how much the formula amplifies rounding, and weights that should add up to 1 show
    the error of the implementation.
    """
    tokens = construction.token_groups(label, torch.float64)
    assert tokens.values is not None
    assert tokens.counts is not None
    # Besides the values: their absolute values give the size of the sums, ones the sum of the weights.
    values = torch.cat([tokens.values, tokens.values.abs(), torch.ones(len(tokens.values), 1)], dim=-1)
    queries, keys = _nudge(tokens.queries), _nudge(tokens.keys)
    repeats = len(keys), 1, 1
    out = attend(mechanism, queries, keys, values.repeat(repeats), tokens.counts.repeat(len(keys), 1))
    if not bool(out[0].isfinite().all()):
        raise EngineRefusal(f"{mechanism.spelled} cannot handle these tokens: its scores overflow or divide by zero")
    signs = construction.signs
    absolute_sums = out[0, :, signs:-1].abs().sum(-1)
    sizes = absolute_sums + tokens.values.abs().amax()
    shifts = (out[1:, :, :signs] - out[:1, :, :signs]).abs().amax(0).sum(-1)
    missing = (out[..., -1] - 1).abs().amax(0) if mechanism.is_normalised else 0.0
    return _Attended(out[0, :, :signs], absolute_sums, sizes, SAFETY * (shifts + missing * sizes))


def _nudge(tokens: Float[Tensor, "tokens width"]) -> Float[Tensor, "nudges tokens width"]:
    """Return the tokens and NUDGES perturbed copies; equal tokens are perturbed equally."""
    # Mechanisms may compare tokens, so perturbing equal ones differently would break real ties.
    distinct, inverse = torch.unique(tokens, dim=0, return_inverse=True)
    random = torch.rand(NUDGES, *distinct.shape, generator=torch.Generator().manual_seed(0), dtype=tokens.dtype)
    return torch.cat([tokens[None], tokens * (1 + NUDGE * (2 * random - 1))[:, inverse]])


def _bounds(firing: Sequence[Sequence[bool | None]]) -> tuple[Neuron, Neuron]:
    """Return lower and upper bounds of the probabilities; equal if every comparison is decided."""
    lows, highs = ([[fires in kinds for fires in label] for label in firing] for kinds in ((True,), (True, None)))
    low, high = _neuron(lows[0], lows[1]), _neuron(highs[0], highs[1])
    # `only` is largest if open comparisons fire on D1 and not on D0.
    return (replace(low, only=_neuron(highs[0], lows[1]).only), replace(high, only=_neuron(lows[0], highs[1]).only))


def _neuron(d0: Sequence[bool], d1: Sequence[bool]) -> Neuron:
    """Return the shares of sign vectors that fire on D0, on D1, and on D1 only."""
    only_d1 = (fires_d1 and not fires_d0 for fires_d0, fires_d1 in zip(d0, d1, strict=True))
    return Neuron(*(Fraction(sum(fires), len(d0)) for fires in (d0, d1, only_d1)))
