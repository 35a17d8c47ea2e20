"""Exhaustive enumeration of positions and sign vectors on dense tokens, a reference for small points."""

from __future__ import annotations

from separatrix.constructions import Construction, Tokens
from separatrix.core.tensors import Float, Tensor, torch
from separatrix.exact.engines.enumerated import sign_vectors
from separatrix.exact.outputs.attention import TokenBatch, View, rounding
from separatrix.mechanisms import Mechanism


def distinguish(construction: Construction, mechanism: Mechanism) -> tuple[float, float]:
    """Return bounds of P(tells apart); they differ if a pre-activation is too close to the threshold."""
    ends = [_at(construction, mechanism, place) for place in range(construction.n)]
    low, high = (sum(values) / construction.n for values in zip(*ends, strict=True))
    return low, high


def peaks(construction: Construction, mechanism: Mechanism, place: int) -> Float[Tensor, "label signs"]:
    """Return the largest pre-activation per label and sign vector, with the special token at `place`."""
    signs = torch.tensor(sign_vectors(construction.signs), dtype=torch.float64)

    def project(tokens: Tokens) -> Tensor:
        return signs.mT if tokens.values is None else tokens.values @ signs.mT

    token_sets = [construction.dense(label, place, torch.float64) for label in (0, 1)]
    return torch.stack([View(mechanism, x, len(signs)).peaks(project, signs) for x in token_sets])


def _at(construction: Construction, mechanism: Mechanism, place: int) -> tuple[float, float]:
    over = peaks(construction, mechanism, place) - construction.threshold
    sets = [construction.dense(label, place, torch.float64) for label in (0, 1)]
    slack = max(rounding(mechanism, TokenBatch.of([tokens]), construction) for tokens in sets)
    surely, possibly = over > slack, over > -slack
    m = construction.m

    def chance(d0: Tensor, d1: Tensor) -> float:
        """(1-p0)^m - q^m."""
        silent, neither = (float((~x).double().mean()) for x in (d0, d0 | d1))
        return silent**m - neither**m

    if torch.equal(surely, possibly):
        return (chance(*surely),) * 2
    return chance(possibly[0], surely[1]), chance(surely[0], possibly[1])
