"""Scalable softmax: sharper for longer inputs."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar

from separatrix.core.numbers import format_exact
from separatrix.core.parameters import Constraint, Exact, Parameters
from separatrix.core.tensors import torch
from separatrix.mechanisms._base import Attended, Counts, Keys, Queries, Values, form
from separatrix.mechanisms.kernels._streamed import Copies, Logits, StreamedMechanism, softmax_of
from separatrix.mechanisms.kernels.softmax import Softmax


class LogNSoftmaxParameters(Parameters):
    """What log n is multiplied by."""

    owner = "logn-softmax"
    scale: Exact = Fraction(1)
    constraints: ClassVar[tuple[Constraint, ...]] = (
        Constraint(
            ("scale",),
            lambda p: 0 <= p.scale <= 1000,
            lambda p: f"scale={format_exact(p.scale)} is out of range; scale must be between 0 and 1000",
        ),
    )


class LogNSoftmax(StreamedMechanism):
    """`f = softmax(scale log(n) <q,k>)`, n the number of keys the query sees (arXiv 2501.19399).

    Softmax with bounded logits spreads over n keys; a logit that grows like log n does not. A query
    that sees one token copies it, and one that sees none (all counts 0) gets zeros.

    >>> from separatrix.mechanisms import mechanism_named
    >>> logits = torch.tensor([1.0, 0.0, 0.0, 0.0]).reshape(1, 1, 4, 1)
    >>> weight = mechanism_named("logn-softmax")(torch.ones(1, 1, 1, 1), logits, logits)
    >>> round(weight.item(), 4)  # 4 / (4 + 3)
    0.5714
    """

    name = "logn-softmax"
    formula = "exp(scale log(n) <q,k>) / sum exp(scale log(n) <q,k>)"
    source = "[rec] scalable softmax, arXiv 2501.19399, without its learned scale"
    schema = LogNSoftmaxParameters
    parameters: LogNSoftmaxParameters

    def weights(self, logits: Logits, copies: Copies) -> Logits:
        n = copies.sum(-1, keepdim=True).clamp(min=1)
        return softmax_of(float(self.parameters.scale) * n.log() * logits, copies)

    @form
    def __call__(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        """torch's fused softmax of scaled queries; counts, places and gaps go through the definition."""
        if counts is not None or more:
            return super().__call__(q, k, v, counts, causal, **more)
        n = torch.full((q.shape[-2], 1), float(k.shape[-2]), dtype=q.dtype, device=q.device)
        if causal:
            n = torch.arange(1, len(n) + 1, dtype=q.dtype, device=q.device)[:, None].minimum(n)
        return Softmax()(float(self.parameters.scale) * n.log() * q, k, v, causal=causal)
