"""Differential attention: one softmax minus another."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from separatrix.core.parameters import exact
from separatrix.core.tensors import Tensor
from separatrix.mechanisms._base import Mechanism
from separatrix.mechanisms._methods import attention_method
from separatrix.mechanisms._types import Attended, CallOptions, Keys, Queries, Values
from separatrix.mechanisms.extras import DIFFERENCE
from separatrix.mechanisms.kernels.softmax import Softmax


class Differential(Mechanism):
    """`f = softmax(<q_1,k_1>) - lam softmax(<q_2,k_2>)`, where q = (q_1, q_2) and k = (k_1, k_2).

    The Differential Transformer (arXiv 2410.05258) learns lam, one for a layer: `lam` of shape (heads,). An
    odd width gives the first half one channel more. The weights of a row add up to 1 - lam. Compared with the
    authors' program, left out are the division of logits by the root of the width of a half (a layer divides
    by that of a head, smaller by sqrt(2): give it `scale`), rotary positions of each half (a layer rotates
    the head as one), and the root-mean-square norm of each head's output (a layer has it) times 1 less the
    constant in lam.

    >>> import torch
    >>> from separatrix.mechanisms import mechanism_named
    >>> x = torch.ones(1, 1, 3, 2)
    >>> round(mechanism_named("differential")(x, x, x)[0, 0, 0, 0].item(), 6)
    0.2
    """

    name = "differential"
    formula = "softmax(<q_1,k_1>) - lam softmax(<q_2,k_2>), q = (q_1, q_2), k = (k_1, k_2)"
    source = "[rec] arXiv 2410.05258, with a lam that is not learned"
    family = "hybrid"
    extras = (DIFFERENCE,)
    takes_first = True
    takes_present = True
    lam: Fraction = exact(Fraction(4, 5), at_least=-(10**6), at_most=10**6)
    """The share of the second softmax that is subtracted."""

    @property
    def is_normalised(self) -> bool:
        return self.lam == 0

    @attention_method
    def definition(self, q: Queries, k: Keys, v: Values, options: CallOptions, **extras: Any) -> Attended:
        return _subtract(Softmax().definition, q, k, v, options, extras["lam"])

    @attention_method
    def __call__(self, q: Queries, k: Keys, v: Values, options: CallOptions, **extras: Any) -> Attended:
        """Compute the fast form of softmax, twice."""
        return _subtract(Softmax(), q, k, v, options, extras["lam"])


def _subtract(
    softmax: Callable[..., Tensor], q: Tensor, k: Tensor, v: Tensor, options: CallOptions, lam: Tensor
) -> Tensor:
    """Subtract the softmax of the second half of the channels from that of the first."""
    middle = -(-q.shape[-1] // 2)
    first, second = (
        softmax(q[..., part], k[..., part], v, options.counts, options.causal, **options.positions())
        for part in (slice(middle), slice(middle, None))
    )
    return first - lam.to(v)[:, None, None] * second
