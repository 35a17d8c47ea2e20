"""Every place and every sign vector, tried on literal tokens: what small points are checked against."""

from __future__ import annotations

from separatrix.constructions import Construction, Tokens
from separatrix.core.tensors import Float, Tensor, torch
from separatrix.exact.engines.enumerated import sign_vectors
from separatrix.exact.outputs.attention import TokenBatch, View, rounding
from separatrix.mechanisms import Mechanism


def distinguish(construction: Construction, mechanism: Mechanism) -> tuple[float, float]:
    """P(tells apart) between two ends, which differ where a pre-activation is too close to call.

    >>> from separatrix.constructions.plain import Plain
    >>> from separatrix.mechanisms import mechanism_named
    >>> distinguish(Plain.read({"n": 6, "m": 1}), mechanism_named("softmax"))
    (0.25, 0.25)
    """
    ends = [_at(construction, mechanism, place) for place in range(construction.n)]
    low, high = (sum(each) / construction.n for each in zip(*ends, strict=True))
    return low, high


def peaks(construction: Construction, mechanism: Mechanism, place: int) -> Float[Tensor, "label signs"]:
    """The largest pre-activation of D0 and D1 for every sign vector, the special token at `place`."""
    signs = torch.tensor(sign_vectors(construction.signs), dtype=torch.float64)

    def projected(tokens: Tokens) -> Tensor:
        return signs.mT if tokens.values is None else tokens.values @ signs.mT

    found = [construction.dense(label, place, torch.float64) for label in (0, 1)]
    return torch.stack([View(mechanism, x, len(signs)).peaks(projected, signs) for x in found])


def _at(construction: Construction, mechanism: Mechanism, place: int) -> tuple[float, float]:
    over = peaks(construction, mechanism, place) - construction.threshold
    sets = [construction.dense(label, place, torch.float64) for label in (0, 1)]
    slack = max(rounding(mechanism, TokenBatch.of([each]), construction) for each in sets)
    surely, possibly = over > slack, over > -slack
    m = construction.m

    def chance(d0: Tensor, d1: Tensor) -> float:
        """(1-p0)^m - q^m."""
        silent, neither = (float((~x).double().mean()) for x in (d0, d0 | d1))
        return silent**m - neither**m

    if torch.equal(surely, possibly):
        return (chance(*surely),) * 2
    return chance(possibly[0], surely[1]), chance(surely[0], possibly[1])
