"""Hedgehog: exponentials of both signs."""

from __future__ import annotations

from separatrix.core.parameters import flag
from separatrix.core.tensors import Float, Tensor, torch
from separatrix.mechanisms._types import Keys, Queries
from separatrix.mechanisms.extras import KEY_MAP, QUERY_MAP
from separatrix.mechanisms.features._base import LogFeatureMechanism, Side, Tokens
from separatrix.mechanisms.features._memory import ScaledFeatures


class Hedgehog(LogFeatureMechanism):
    """`phi(x) = [exp(Wx), exp(-Wx)]`; with softmax=yes `[softmax(Wx), softmax(-Wx)]` [rec].

    W is one map for queries and another for keys, per head: `W_q` and `W_k`, of shape (heads, width, width),
    the identity if they are not given. `Hedgehog.with_weight` has one more W for both, also of another shape:
    a `torch.nn.Parameter` trains. In public code W is trained to mimic softmax and starts at the identity,
    with a bias that is not here. The softmax is over the features of each half, as in the reference code of
    LoLCATs; flash-linear-attention uses one over both halves, of 2 (Wx + b).

    >>> x = torch.tensor([[0.0, 1.0]]).reshape(1, 1, 1, 2)
    >>> Hedgehog(softmax="yes").compute_features(x, "key").sum().item()
    2.0
    >>> weight = torch.nn.Parameter(torch.eye(2))
    >>> Hedgehog.with_weight(weight)(x, x, x).sum().requires_grad
    True
    """

    name = "hedgehog"
    formula = "<phi(q),phi(k)> / sum <phi(q),phi(k)>, phi(x) = [exp(Wx), exp(-Wx)]"
    source = "[rec] Hedgehog, arXiv 2402.04347, its two maps the identity if not given, and no bias"
    extras = (QUERY_MAP, KEY_MAP)
    softmax: bool = flag(False)
    """Whether each half is a softmax over its features."""
    weight: Tensor | None = None

    @classmethod
    def with_weight(cls, weight: Float[Tensor, "*heads features width"], **parameters: object) -> Hedgehog:
        """Return Hedgehog with this W."""
        mechanism = cls(**parameters)
        mechanism.weight = weight
        return mechanism

    @property
    def held_weights(self) -> dict[str, Tensor]:
        return {} if self.weight is None else {"W": self.weight}

    def map_tokens(self, q: Queries, k: Keys, extras: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        return q @ extras["W_q"].to(q).mT, k @ extras["W_k"].to(k).mT

    def scale_features(self, x: Tokens, side: Side) -> ScaledFeatures:
        if self.weight is not None:
            x = x @ self.weight.to(x).mT
        # As logarithms: exponentials of large tokens would overflow before rows are divided by their sums.
        halves = [x.log_softmax(-1), (-x).log_softmax(-1)] if self.softmax else [x, -x]
        return ScaledFeatures(None, torch.cat(halves, dim=-1))
