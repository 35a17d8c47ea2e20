"""ALiBi: softmax over logits that fall with the distance."""

from __future__ import annotations

from typing import Any

from separatrix.mechanisms._base import Keys
from separatrix.mechanisms.extras import SLOPES
from separatrix.mechanisms.positional._fading import FadingMechanism
from separatrix.mechanisms.recurrent._decay import LogGates
from separatrix.tensors import Float, Tensor, torch


class Alibi(FadingMechanism):
    """`f_ij = softmax_j(<q_i,k_j> - slope_h (i - j))` over j up to i, one slope a head (arXiv 2108.12409).

    Head h = 1, ..., heads has the slope `2^(-8h/heads)`, as the paper has it for powers of two (its program
    takes others from the next powers); `slopes` of shape (heads,), 0 or more, are given instead. It is fox
    with the constant gate `exp(-slope)`, and slopes of 0 are softmax. Absent tokens are no distance.

    >>> from separatrix.mechanisms import mechanism_named
    >>> zero, v = torch.zeros(1, 1, 2, 1), torch.tensor([3.0, 0.0]).reshape(1, 1, 2, 1)
    >>> mechanism_named("alibi")(zero, zero, v, causal=True, slopes=torch.tensor([2.0]).log()).flatten()
    tensor([3., 1.])
    """

    name = "alibi"
    formula = "softmax(<q_i,k_j> - slope_h (i - j)) over j <= i, slope_h = 2^(-8h/heads)"
    source = "[rec] arXiv 2108.12409"
    extras = (SLOPES,)

    def default_slopes(self, k: Keys) -> Float[Tensor, " heads"]:
        """Those of the paper, in float64."""
        heads = k.shape[1]
        return 2.0 ** (-8 * torch.arange(1, heads + 1, dtype=torch.float64, device=k.device) / heads)

    def gates(self, k: Keys, extras: dict[str, Any]) -> LogGates:
        slopes: Tensor = extras["slopes"]
        return -slopes.double()[:, None, None].expand(*k.shape[:-1], 1)
