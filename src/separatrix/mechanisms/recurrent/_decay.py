"""Decays between the tokens of a chunk, from differences of logs.

A product of gates underflows, and dividing by one that has gives nothing back. Differences of
cumulative logs do not, as long as they are masked before `exp`; they are taken in float64, since a
single gate near 0 would leave float32 sums no digits for the gates after it.
"""

from __future__ import annotations

import math
from fractions import Fraction

from separatrix.mechanisms._base import Attended, Keys, Queries, Values
from separatrix.tensors import Float, Tensor, torch

LogGates = Float[Tensor, "batch heads keys channels"]
"""Logs of gates in (0, 1]: one for each channel of the key, or a single one."""


def log_exact(x: Fraction) -> float:
    """`log x`, also where x itself is below the floats."""
    return math.log(x.numerator) - math.log(x.denominator)


def accumulated(log_gates: LogGates) -> Float[Tensor, "batch heads keys channels"]:
    """`L_t`, the sum of the log gates up to and with t, in float64."""
    return log_gates.double().cumsum(-2)


def between(
    cumulative: Float[Tensor, "batch heads keys 1"], dtype: torch.dtype
) -> Float[Tensor, "batch heads keys keys"]:
    """`exp(L_i - L_j)`, what is left at i of what was written at j; 0 for j after i."""
    span = cumulative - cumulative.mT
    future = torch.ones_like(span, dtype=torch.bool).triu(1)
    return span.to(dtype).masked_fill(future, -torch.inf).exp()


def scalar_advance(
    state: Float[Tensor, "batch heads width features"], q: Queries, k: Keys, v: Values, log_gates: LogGates
) -> tuple[Float[Tensor, "batch heads width features"], Attended]:
    """A chunk of `S_t = a_t S_{t-1} + k_t v_tᵀ`, `o_t = q_t S_t`, with one gate per token."""
    cumulative = accumulated(log_gates)
    decay = between(cumulative, v.dtype)
    whole = cumulative.to(v.dtype).exp()
    out = whole * (q @ state) + (q @ k.mT * decay) @ v
    return whole[..., -1:, :] * state + (k * decay[..., -1, :, None]).mT @ v, out
