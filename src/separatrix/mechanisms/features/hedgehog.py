"""Hedgehog: exponentials of both signs."""

from __future__ import annotations

from separatrix.core.parameters import Flag
from separatrix.core.tensors import Float, Tensor, torch
from separatrix.mechanisms._base import Keys, Queries
from separatrix.mechanisms.extras import KEY_MAP, QUERY_MAP
from separatrix.mechanisms.features._base import (
    FeatureParameters,
    LogFeatureMechanism,
    Scaled,
    Side,
    Tokens,
)

Weight = Float[Tensor, "*heads features width"]


class HedgehogParameters(FeatureParameters):
    """Whether each half is a softmax over its features."""

    owner = "hedgehog"
    softmax: Flag = False


class Hedgehog(LogFeatureMechanism):
    """`phi(x) = [exp(Wx), exp(-Wx)]`; with softmax=yes `[softmax(Wx), softmax(-Wx)]` [rec].

    W is one map for queries and another for keys, per head: `W_q` and `W_k`, of shape (heads, width, width),
    the identity if they are not given. `Hedgehog.weighted` has one more W for both, also of another shape: a
    `torch.nn.Parameter` trains. In public code W is trained to mimic softmax and starts at the identity,
    with a bias that is not here. The softmax is over features, of each half by itself, as in the reference
    code of LoLCATs; flash-linear-attention takes one over both halves, of 2 (Wx + b).

    >>> x = torch.tensor([[0.0, 1.0]]).reshape(1, 1, 1, 2)
    >>> Hedgehog(softmax="yes").features(x, "key").sum().item()
    2.0
    >>> weight = torch.nn.Parameter(torch.eye(2))
    >>> Hedgehog.weighted(weight)(x, x, x).sum().requires_grad
    True
    """

    name = "hedgehog"
    formula = "<phi(q),phi(k)> / sum <phi(q),phi(k)>, phi(x) = [exp(Wx), exp(-Wx)]"
    source = "[rec] Hedgehog, arXiv 2402.04347, its two maps the identity if not given, and no bias"
    schema = HedgehogParameters
    parameters: HedgehogParameters
    extras = (QUERY_MAP, KEY_MAP)

    weight: Tensor | None = None

    @classmethod
    def weighted(cls, weight: Weight, **parameters: object) -> Hedgehog:
        """Hedgehog with this W."""
        made = cls(**parameters)
        made.weight = weight
        return made

    @property
    def held_weights(self) -> dict[str, Tensor]:
        return {} if self.weight is None else {"W": self.weight}

    def mapped(self, q: Queries, k: Keys, extras: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        return q @ extras["W_q"].to(q).mT, k @ extras["W_k"].to(k).mT

    def scaled(self, x: Tokens, side: Side) -> Scaled:
        if self.weight is not None:
            x = x @ self.weight.to(x).mT
        halves = [x, -x]
        if self.parameters.softmax:
            halves = [half.log_softmax(-1) for half in halves]
        return None, torch.cat(halves, dim=-1)
