"""Sums over the features of keys, which queries read."""

from __future__ import annotations

from typing import NamedTuple

from separatrix.core.tensors import Float, Tensor, torch
from separatrix.mechanisms._blocks import divide
from separatrix.mechanisms._running_sums import append_ones, read_running_sums
from separatrix.mechanisms._types import Counts, Keys

MAX_EXCESS = 40.0
"""How far, in logarithms, keys of one run may exceed the reference; more, and the run is halved."""

Multiplicity = Float[Tensor, "*#heads keys 1"]
MemoryTensors = tuple[Tensor, Tensor | None]
"""The sums of a `FeatureMemory`, and its reference if features have logarithms."""


class ScaledFeatures(NamedTuple):
    """Features as `factors * exp(logs)`; None is a factor of 1 or a logarithm of 0."""

    factors: Tensor | None
    logs: Tensor | None = None

    def product(self) -> Tensor:
        """Return the features themselves."""
        factors, logs = self
        if logs is None:
            assert factors is not None
            return factors
        return logs.exp() if factors is None else factors * logs.exp()

    def first_token(self) -> ScaledFeatures:
        """Return the features of the first token alone."""
        return ScaledFeatures(*(None if x is None else x[..., :1, :] for x in self))

    def without_absent(self, multiplicity: Multiplicity | None) -> ScaledFeatures:
        """Lower the logarithms of keys of multiplicity 0, so that they are no reference for others."""
        if self.logs is None or multiplicity is None:
            return self
        # Finite, since the difference of two infinities is not a number; a quarter leaves room for sums.
        lowest = torch.finfo(self.logs.dtype).min / 4
        return self._replace(logs=self.logs.masked_fill(multiplicity == 0, lowest))


def multiplicity_of(k: Keys, counts: Counts | None, present: Tensor | None) -> Multiplicity | None:
    """Return the count of each key, 0 for absent keys; None if all are 1."""
    if present is None:
        return None if counts is None else counts.to(k.dtype)[..., None]
    multiplicity = present[:, None, :, None].to(k.dtype)
    return multiplicity if counts is None else multiplicity * counts.to(k.dtype)[..., None]


class FeatureMemory:
    """`sum phi(k)ᵀ v` over the keys so far, each feature in units of `exp(reference)`.

    To divide rows by the sum of their scores, values get a column of ones. References are constants in
    differentiation: results do not depend on them. The reference is always that of a key already added, so a
    normaliser of positive features never vanishes.
    """

    def __init__(self, divides: bool, sums: Tensor, reference: Tensor | None) -> None:
        self.divides, self.sums = divides, sums
        self.reference = None if reference is None else reference.detach()

    @classmethod
    def empty(cls, key: ScaledFeatures, values: int, divides: bool = True) -> FeatureMemory:
        """Return an empty memory for keys of this shape."""
        x = key.logs if key.factors is None else key.factors
        assert x is not None
        sums = x.new_zeros(*x.shape[:-2], x.shape[-1], values + divides)
        reference = None if key.logs is None else torch.full_like(key.logs[..., :1, :], -torch.inf)
        return cls(divides, sums, reference)

    @property
    def tensors(self) -> MemoryTensors:
        """The sums and the reference."""
        return self.sums, self.reference

    def raise_reference(self, key: ScaledFeatures) -> None:
        """Raise the reference to the logarithms of these keys at least."""
        if key.logs is not None:
            self._rescale(key.logs.detach().amax(-2, keepdim=True))

    def _rescale(self, lowest: Tensor) -> None:
        if self.reference is None:
            return
        reference = torch.maximum(self.reference, lowest)
        # At most 1, since the reference only rises: sums cannot overflow here.
        scale = (self.reference - reference).exp().mT
        self.sums, self.reference = self.sums * scale, reference

    def is_exceeded_by(self, key: ScaledFeatures) -> bool:
        """Return whether keys exceed the reference by more than a sum can bear."""
        if self.reference is None or key.logs is None:
            return False
        return bool((key.logs.detach() - self.reference).amax() > MAX_EXCESS)

    def scale_keys(self, key: ScaledFeatures, multiplicity: Tensor | None = None) -> Tensor:
        """Return phi(k) in units of the reference, times the multiplicity of each key."""
        if key.logs is not None and self.reference is not None:
            key = key._replace(logs=key.logs - self.reference)
        phi = key.product()
        return phi if multiplicity is None else phi * multiplicity

    def scale_queries(self, query: ScaledFeatures) -> tuple[Tensor, Tensor | None]:
        """Return phi(q) and a logarithm: phi(q) phi(k)ᵀ, times its exp, is the score.

        Logarithms are measured against their own log-sum-exp, which cancels if rows are divided by their
        sums.
        """
        if query.logs is None or self.reference is None:
            return query._replace(logs=None).product(), None
        logs = query.logs + self.reference
        phi = logs.softmax(-1) if query.factors is None else logs.softmax(-1) * query.factors
        return phi, None if self.divides else logs.logsumexp(-1, keepdim=True)

    def add(self, keys: Tensor, values: Tensor) -> None:
        """Add scaled keys and their values."""
        sums = keys.mT @ values
        if self.divides:
            sums = torch.cat([sums, keys.sum(-2)[..., None]], dim=-1)
        self.sums = self.sums + sums

    def merge(self, other: FeatureMemory) -> None:
        """Add the keys of another memory."""
        if other.reference is not None and self.reference is not None:
            self._rescale(other.reference)
            other._rescale(self.reference)
        self.sums = self.sums + other.sums

    def read(self, phi: Tensor, top: Tensor | None) -> Tensor:
        """Return the outputs of scaled queries."""
        if not self.divides:
            read = phi @ self.sums
            return read if top is None else read * top.exp()
        # Two products, since one with a single column more takes half as long again.
        return divide(phi @ self.sums[..., :-1].contiguous(), phi @ self.sums[..., -1:].contiguous())

    def read_and_add(
        self, phi: Tensor, top: Tensor | None, keys: Tensor, values: Tensor, chunk: int, scores: Tensor | None = None
    ) -> Tensor:
        """Add keys one by one, and read after each; scores within chunks may be given."""
        values = append_ones(values) if self.divides else values
        self.sums, read = read_running_sums(self.sums, phi, keys, values, chunk, scores)
        if self.divides:
            return divide(read[..., :-1], read[..., -1:])
        return read if top is None else read * top.exp()
