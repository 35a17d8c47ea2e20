"""Forgetting attention: softmax over logits that fade as gates close between key and query."""

from __future__ import annotations

from typing import Any

from separatrix.core.tensors import Float, Tensor, functional
from separatrix.mechanisms._types import Keys, Present
from separatrix.mechanisms.extras import FORGET_GATES
from separatrix.mechanisms.positional._fading import FadingMechanism
from separatrix.mechanisms.recurrent._decay import Decays, accumulate_gates
from separatrix.mechanisms.recurrent._gated import WithGates


class Fox(WithGates, FadingMechanism):
    """`f_ij = softmax_j(<q_i,k_j> + log a_{j+1} + ... + log a_i)` over j up to i, with gates a in [0, 1].

    In the Forgetting Transformer (arXiv 2503.02130) each head has the gate `sigmoid(<w,x> + b)` of a token:
    `log_gates` of shape (batch, heads, tokens, 1), minus infinity for a reset, before which nothing is seen.
    If they are not given, gate=key sets `a_t = sigmoid(mean of k_t)`, and gate=0.9 a constant, which is ALiBi
    with the slope -log 0.9. Gates of 1 are softmax. An absent token forgets nothing.

    >>> import torch
    >>> from separatrix.mechanisms import mechanism_named
    >>> zero, v = torch.zeros(1, 1, 2, 1), torch.tensor([3.0, 0.0]).reshape(1, 1, 2, 1)
    >>> mechanism_named("fox:gate=0.5")(zero, zero, v, causal=True).flatten()
    tensor([3., 1.])
    """

    name = "fox"
    formula = "softmax(<q_i,k_j> + log a_{j+1} + ... + log a_i) over j <= i, a_t = sigmoid(mean k_t)"
    source = "[rec] arXiv 2503.02130, with a gate that is not learned"
    extras = (FORGET_GATES,)

    def key_gates(self, k: Float[Tensor, "*tokens width"]) -> Float[Tensor, "*tokens 1"]:
        return functional.logsigmoid(k.mean(-1, keepdim=True))

    def decays(self, k: Keys, present: Present | None, extras: dict[str, Any]) -> Decays:
        return accumulate_gates(extras["log_gates"], k.dtype)
