"""Sigmoid attention: every key is judged alone."""

from __future__ import annotations

from typing import ClassVar

from separatrix.core.numbers import format_exact
from separatrix.core.parameters import Constraint, Exact, Parameters
from separatrix.core.tensors import torch
from separatrix.mechanisms.kernels._streamed import Copies, Logits, StreamedMechanism


class SigmoidParameters(Parameters):
    """What is added to the logits; -log n when it is not given."""

    owner = "sigmoid"
    bias: Exact | None = None
    constraints: ClassVar[tuple[Constraint, ...]] = (
        Constraint(
            ("bias",),
            lambda p: abs(p.bias) <= 10**6,
            lambda p: f"bias={format_exact(p.bias)} is out of range; bias must be between -1e6 and 1e6",
        ),
    )


class Sigmoid(StreamedMechanism):
    """`f = sigmoid(<q,k> + bias)`, not normalised; bias = -log n by default (arXiv 2409.04431).

    n is the number of keys the query sees; with it, equal small logits get weights of about 1/n. A
    query that sees nothing (all counts 0) gets zeros.

    >>> from separatrix.mechanisms import mechanism_named
    >>> one = torch.ones(1, 1, 1, 1)
    >>> mechanism_named("sigmoid")(0 * one, one, one).item()
    0.5
    """

    name = "sigmoid"
    formula = "sigmoid(<q,k> + bias), bias = -log n unless given"
    source = "[rec] arXiv 2409.04431"
    schema = SigmoidParameters
    parameters: SigmoidParameters

    @property
    def normalised(self) -> bool:
        return False

    def weights(self, logits: Logits, copies: Copies) -> Logits:
        n = copies.sum(-1, keepdim=True).clamp(min=1)
        bias = self.parameters.bias
        return copies * torch.sigmoid(logits + (-n.log() if bias is None else float(bias)))
