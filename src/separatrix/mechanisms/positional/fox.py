"""Forgetting attention: softmax over logits that fade as gates close between key and query."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from separatrix.core.tensors import Float, Tensor, functional, torch
from separatrix.mechanisms._base import Keys, Present
from separatrix.mechanisms.extras import FORGET_GATES
from separatrix.mechanisms.positional._fading import FadingMechanism
from separatrix.mechanisms.recurrent._decay import Kept, accumulated, log_exact
from separatrix.mechanisms.recurrent._gated import GateParameters


class FoxParameters(GateParameters):
    """Where the gate comes from."""

    owner = "fox"


class Fox(FadingMechanism):
    """`f_ij = softmax_j(<q_i,k_j> + log a_{j+1} + ... + log a_i)` over j up to i, with gates a in [0, 1].

    In the Forgetting Transformer (arXiv 2503.02130) each head has the gate `sigmoid(<w,x> + b)` of a token:
    `log_gates` of shape (batch, heads, tokens, 1), minus infinity for a reset, before which nothing is seen.
    Where none are given, gate=key sets `a_t = sigmoid(mean of k_t)`, and gate=0.9 a constant, which is ALiBi
    with the slope -log 0.9. Gates of 1 are softmax. An absent token forgets nothing.

    >>> from separatrix.mechanisms import mechanism_named
    >>> zero, v = torch.zeros(1, 1, 2, 1), torch.tensor([3.0, 0.0]).reshape(1, 1, 2, 1)
    >>> mechanism_named("fox:gate=0.5")(zero, zero, v, causal=True).flatten()
    tensor([3., 1.])
    """

    name = "fox"
    formula = "softmax(<q_i,k_j> + log a_{j+1} + ... + log a_i) over j <= i, a_t = sigmoid(mean k_t)"
    source = "[rec] arXiv 2503.02130, with a gate that is not learned"
    schema = FoxParameters
    parameters: FoxParameters
    extras = (FORGET_GATES,)

    def default_gates(self, k: Keys) -> Float[Tensor, "batch heads keys 1"]:
        """Logs of the gates that the parameter `gate` stands for."""
        gate = self.parameters.gate
        if isinstance(gate, Fraction):
            return k.new_full((*k.shape[:-1], 1), log_exact(gate), dtype=torch.float64)
        return functional.logsigmoid(k.mean(-1, keepdim=True))

    def kept(self, k: Keys, present: Present | None, extras: dict[str, Any]) -> Kept:
        return accumulated(extras["log_gates"], k.dtype)
