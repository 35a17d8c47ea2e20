"""Every sign vector of a reader that has few signs: all are tried, so probabilities are exact fractions.

`exact` attends in float64, by the mechanism's own counted form, whatever the mechanism; what comes too
close to the threshold is handed on or refused, never guessed. `certified` is for scalar kernels: it adds
up scores as rationals and balls, as the closed forms do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.constructions import ExactConstruction, Label
from separatrix.engines._base import EngineRefusal, Outcome
from separatrix.engines.neurons import Neuron, summed_up
from separatrix.engines.sampling import attend
from separatrix.engines.scores import KernelRows
from separatrix.mechanisms import Mechanism, ScoreMechanism

MOST_SIGNS = 12
"""Readers with more signs have too many sign vectors to try them all."""
SLACK = 1e-9
"""How far float64 attention may be off, relative to what is added up, generously."""


class TooCloseToCall(EngineRefusal):
    """Float64 cannot tell on which side of the threshold a pre-activation lies."""


def sign_vectors(signs: int) -> list[tuple[int, ...]]:
    """All of that length.

    >>> sign_vectors(2)
    [(1, 1), (1, -1), (-1, 1), (-1, -1)]
    """
    if signs > MOST_SIGNS:
        raise EngineRefusal(
            f"the reader has {signs} signs, too many to try all 2^{signs} vectors; use --engine grouped"
        )
    return list(product((1, -1), repeat=signs))


def exact(construction: ExactConstruction, mechanism: Mechanism) -> Outcome:
    """All sign vectors, attention in float64."""
    if not mechanism.takes_counts:
        raise EngineRefusal(f"{mechanism.spelled} does not take counts; use --engine dense")
    signs = torch.tensor(sign_vectors(construction.signs), dtype=torch.float64)
    fires: list[list[bool]] = []
    peaks: list[float] = []
    close = 0
    for label in (0, 1):
        rows, size = _attended(construction, mechanism, label)
        over = (rows @ signs.mT).amax(0) - construction.threshold
        close += int((over.abs() <= SLACK * (size + abs(construction.threshold))).sum())
        fires.append((over > 0).tolist())
        peaks.append(float(rows.sum(-1).amax()))
    evidence = f"all {len(signs)} sign vectors, attention in float64"
    if close:
        try:
            found = certified(construction, mechanism)
        except EngineRefusal:
            found = None
        if found is None or not isinstance(found.p0, Fraction):
            raise TooCloseToCall(
                f"{close} pre-activations are too close to the threshold for float64; use --engine grouped"
            )
        return replace(found, engine="exact", evidence=f"{evidence}, {close} ties decided exactly")
    neuron = _neuron(fires[0], fires[1])
    outcome = summed_up(construction.m, neuron, neuron, 0, peaks[0], peaks[1] - peaks[0])
    return replace(outcome, engine="exact", evidence=evidence)


def certified(construction: ExactConstruction, mechanism: Mechanism) -> Outcome:
    """All sign vectors, scores in rationals and balls."""
    rows = kernel_rows(construction, mechanism)
    lows: list[list[bool]] = []
    highs: list[list[bool]] = []
    undecided = 0
    for label in (0, 1):
        found = [rows.fires(label, signs) for signs in sign_vectors(construction.signs)]
        undecided += found.count(None)
        lows.append([fires is True for fires in found])
        highs.append([fires is not False for fires in found])
    low, high = _neuron(lows[0], lows[1]), _neuron(highs[0], highs[1])
    if undecided:  # `only` is largest when D1 is generous and D0 is not
        low = replace(low, only=_neuron(highs[0], lows[1]).only)
        high = replace(high, only=_neuron(lows[0], highs[1]).only)
    v0, margin = rows.margin()
    outcome = summed_up(construction.m, low, high, undecided, v0, margin)
    return replace(outcome, evidence=f"all {1 << construction.signs} sign vectors, {outcome.evidence}")


def same_rows(construction: ExactConstruction, mechanism: Mechanism) -> bool:
    """Whether attention provably gives both labels the same rows: then no reader tells them apart."""
    return kernel_rows(construction, mechanism).same()


def kernel_rows(construction: ExactConstruction, mechanism: Mechanism) -> KernelRows:
    """The rows of both labels as sums of exact scores."""
    if not isinstance(mechanism, ScoreMechanism):
        raise EngineRefusal(
            f"{mechanism.spelled} has no scalar kernel, so nothing to certify; use --engine exact"
        )
    if not construction.rational:
        raise EngineRefusal(f"the tokens of {construction.name} are not rational; use --engine exact")
    return KernelRows(construction, mechanism)


def _attended(
    construction: ExactConstruction, mechanism: Mechanism, label: Label
) -> tuple[Float[Tensor, "rows features"], float]:
    """What each row receives, and the size of what was added up for it."""
    tokens = construction.groups(label, torch.float64)
    assert tokens.values is not None
    assert tokens.counts is not None
    values = torch.cat([tokens.values, tokens.values.abs()], dim=-1)
    out = attend(mechanism, tokens.queries[None], tokens.keys[None], values[None], tokens.counts[None])[0]
    if not bool(out.isfinite().all()):
        raise EngineRefusal(
            f"{mechanism.spelled} cannot bear these tokens: its scores overflow or divide by zero"
        )
    sizes = out[:, construction.signs :].abs().sum(-1)
    return out[:, : construction.signs], float(sizes.amax() + tokens.values.abs().amax())


def _neuron(d0: Sequence[bool], d1: Sequence[bool]) -> Neuron:
    """The shares of the sign vectors on which D0 fires, D1 fires, and D1 alone."""
    alone = (one and not other for other, one in zip(d0, d1, strict=True))
    return Neuron(_share(d0), _share(d1), Fraction(sum(alone), len(d0)))


def _share(fires: Iterable[bool]) -> Fraction:
    fires = list(fires)
    return Fraction(sum(fires), len(fires))
