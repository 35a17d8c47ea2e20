"""Every sign vector of a reader that has few signs: all are tried, so probabilities are exact fractions.

`in_floats` attends in float64, by the mechanism's own counted form, whatever the mechanism; what comes too
close to the threshold is handed on or refused, never guessed. `in_balls` is for scalar kernels: it adds
up scores as rationals and balls, as the closed forms do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

from separatrix.constructions import ExactConstruction, Label
from separatrix.core.tensors import Float, Tensor, torch
from separatrix.exact.engines.outcome import EngineRefusal, Neuron, Outcome, summed_up
from separatrix.exact.outputs.attention import attend, float_margin
from separatrix.exact.outputs.floats import SLACK
from separatrix.exact.outputs.kernels import kernel_rows
from separatrix.mechanisms import Mechanism

MOST_SIGNS = 12
"""Readers with more signs have too many sign vectors to try them all."""
NUDGE = 2.0**-46
"""Queries and keys are nudged by up to 64 units of rounding, to see what rounding does to the answer."""
NUDGES = 6
SAFETY = 4
"""What a nudge moves is multiplied by this; rounding itself is some sixty times smaller."""
LOST = 1e-6
"""Relative to what is added up: an answer known no better than this has no margin to speak of, and a margin
below it has lost digits that kernels can give exactly."""


class TooCloseToCall(EngineRefusal):
    """Float64 cannot tell on which side of the threshold a pre-activation lies."""


def sign_vectors(signs: int) -> list[tuple[int, ...]]:
    """All sign vectors of that length.

    >>> sign_vectors(2)
    [(1, 1), (1, -1), (-1, 1), (-1, -1)]
    """
    if signs > MOST_SIGNS:
        raise EngineRefusal(
            f"the reader has {signs} signs, too many to try all 2^{signs} vectors", ("grouped",)
        )
    return list(product((1, -1), repeat=signs))


def in_floats(construction: ExactConstruction, mechanism: Mechanism) -> Outcome:
    """All sign vectors, attention in float64; what rounding leaves open is handed on, or said to be open."""
    if not mechanism.takes_counts:
        raise EngineRefusal(f"{mechanism.spelled} does not take counts", ("dense",))
    vectors = sign_vectors(construction.signs)
    labels = [_attended(construction, mechanism, label) for label in (0, 1)]
    found = [each.fires(vectors, construction.threshold) for each in labels]
    evidence = f"all {len(vectors)} sign vectors, attention in float64"
    close = sum(fires.count(None) for fires in found)
    if close:
        try:
            proved = in_balls(construction, mechanism)
        except EngineRefusal:
            proved = None
        if proved is not None and isinstance(proved.p0, Fraction):
            return replace(proved, engine="closed", evidence=f"{evidence}, {close} ties decided exactly")
        if not any(each.lost for each in labels):
            reason = f"{close} pre-activations are too close to the threshold for float64"
            raise TooCloseToCall(reason, ("grouped",))
        evidence = f"{evidence}, which loses its digits here: {close} comparisons open"
    outcome = summed_up(construction.m, *_bounds(found), close, *_margin(construction, mechanism, labels))
    return replace(outcome, engine="closed", evidence=evidence)


def _margin(
    construction: ExactConstruction, mechanism: Mechanism, labels: Sequence[_Attended]
) -> tuple[float, float, float]:
    """v0, v1 and v1 - v0, that of kernels by rationals and balls where the two nearly cancel."""
    if any(label.lost for label in labels):
        return math.nan, math.nan, math.nan
    v0, v1 = (float(label.rows.sum(-1).amax()) for label in labels)
    size = max(float(label.carried.amax()) for label in labels)
    if abs(v1 - v0) <= LOST * size:
        with suppress(EngineRefusal):
            v0, v1, margin = map(float, kernel_rows(construction, mechanism).margin())
            return v0, v1, margin
    return v0, v1, float_margin(v0, v1, size)


def in_balls(construction: ExactConstruction, mechanism: Mechanism) -> Outcome:
    """All sign vectors, scores in rationals and balls."""
    rows = kernel_rows(construction, mechanism)
    vectors = sign_vectors(construction.signs)
    found = [[rows.fires(label, signs) for signs in vectors] for label in (0, 1)]
    undecided = sum(fires.count(None) for fires in found)
    low, high = _bounds(found)
    outcome = summed_up(construction.m, low, high, undecided, *rows.margin())
    return replace(outcome, evidence=f"all {1 << construction.signs} sign vectors, {outcome.evidence}")


@dataclass(frozen=True)
class _Attended:
    """What each row of one label receives in float64, and how far that may be off."""

    rows: Float[Tensor, "rows features"]
    carried: Float[Tensor, " rows"]
    """The sizes of what was added up, added up."""
    sizes: Float[Tensor, " rows"]
    """As `carried`, and the largest value besides: what a weight that is off would add."""
    errors: Float[Tensor, " rows"]
    """The errors of a pre-activation, whatever the signs."""

    @property
    def lost(self) -> bool:
        """Whether too few digits are left to speak of margins."""
        return not bool((self.errors <= LOST * self.sizes).all())

    def fires(self, vectors: Sequence[Sequence[int]], threshold: float) -> list[bool | None]:
        """For each sign vector whether some row fires; None where rounding leaves it open."""
        over = self.rows @ torch.tensor(vectors, dtype=torch.float64).mT - threshold
        slack = (self.errors + SLACK * (self.sizes + abs(threshold)))[:, None]
        surely, never = (over > slack).any(0), (over < -slack).all(0)
        return [
            True if yes else False if no else None
            for yes, no in zip(surely.tolist(), never.tolist(), strict=True)
        ]


def _attended(construction: ExactConstruction, mechanism: Mechanism, label: Label) -> _Attended:
    """Attention in float64, with queries and keys as they are and nudged.

    Nobody has bounded the rounding of every mechanism, so it is measured. What nudged tokens move shows
    how much the formula magnifies rounding; weights that should sum to 1 show what the program lost.
    """
    tokens = construction.groups(label, torch.float64)
    assert tokens.values is not None
    assert tokens.counts is not None
    values = torch.cat([tokens.values, tokens.values.abs(), torch.ones(len(tokens.values), 1)], dim=-1)
    queries, keys = _nudged(tokens.queries), _nudged(tokens.keys)
    repeats = len(keys), 1, 1
    out = attend(mechanism, queries, keys, values.repeat(repeats), tokens.counts.repeat(len(keys), 1))
    if not bool(out[0].isfinite().all()):
        raise EngineRefusal(
            f"{mechanism.spelled} cannot bear these tokens: its scores overflow or divide by zero"
        )
    signs = construction.signs
    carried = out[0, :, signs:-1].abs().sum(-1)
    sizes = carried + tokens.values.abs().amax()
    moved = (out[1:, :, :signs] - out[:1, :, :signs]).abs().amax(0).sum(-1)
    missing = (out[..., -1] - 1).abs().amax(0) if mechanism.normalised else 0.0
    return _Attended(out[0, :, :signs], carried, sizes, SAFETY * (moved + missing * sizes))


def _nudged(tokens: Float[Tensor, "tokens width"]) -> Float[Tensor, "nudges tokens width"]:
    """The tokens as they are, and NUDGES times with every coordinate nudged, equal tokens alike."""
    distinct, which = torch.unique(tokens, dim=0, return_inverse=True)
    random = torch.rand(
        NUDGES, *distinct.shape, generator=torch.Generator().manual_seed(0), dtype=tokens.dtype
    )
    return torch.cat([tokens[None], tokens * (1 + NUDGE * (2 * random - 1))[:, which]])


def _bounds(found: Sequence[Sequence[bool | None]]) -> tuple[Neuron, Neuron]:
    """The least and the largest that each probability can be; equal where everything is decided."""
    lows, highs = (
        [[fires in kinds for fires in each] for each in found] for kinds in ((True,), (True, None))
    )
    low, high = _neuron(lows[0], lows[1]), _neuron(highs[0], highs[1])
    # `only` is largest when D1 is generous and D0 is not
    return (
        replace(low, only=_neuron(highs[0], lows[1]).only),
        replace(high, only=_neuron(lows[0], highs[1]).only),
    )


def _neuron(d0: Sequence[bool], d1: Sequence[bool]) -> Neuron:
    """The shares of the sign vectors on which D0 fires, D1 fires, and D1 alone."""
    alone = (one and not other for other, one in zip(d0, d1, strict=True))
    return Neuron(_share(d0), _share(d1), Fraction(sum(alone), len(d0)))


def _share(fires: Iterable[bool]) -> Fraction:
    fires = list(fires)
    return Fraction(sum(fires), len(fires))
