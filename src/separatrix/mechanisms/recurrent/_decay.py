"""Decays between the tokens of a chunk, from differences of logs.

A product of gates underflows, and dividing by one that has gives nothing back. Differences of
cumulative logs do not, as long as they are masked before `exp`; they are taken in float64, since a
single gate near 0 would leave float32 sums no digits for the gates after it. A gate that is 0, a reset, has
no log to add: resets are counted, and nothing is left of what was written before one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from separatrix.core.tensors import Float, Int64, Tensor, torch
from separatrix.mechanisms._base import Attended, Keys, Queries, Values

LogGates = Float[Tensor, "#batch heads keys channels"]
"""Logs of gates in [0, 1]: one for each channel of the key, or a single one."""

SHUT = -746.0
"""`exp` of less is 0 in float64."""


def log_exact(x: Fraction) -> float:
    """`log x`, also where x itself is below the floats."""
    return math.log(x.numerator) - math.log(x.denominator)


@dataclass(frozen=True)
class Kept:
    """What is left at one token of what another wrote: `exp(L_i - L_j)`, 0 if there was a reset between."""

    logs: Float[Tensor, "batch heads *tokens channels"]
    """`L_t`, the sum of the log gates up to and with t, in float64."""
    resets: Int64[Tensor, "batch heads *tokens channels"] | None
    """How many gates up to and with t were shut; None if none was."""
    dtype: torch.dtype

    @property
    def whole(self) -> Float[Tensor, "batch heads *tokens channels"]:
        """Of what was there before the first token."""
        kept = self.logs.to(self.dtype).exp()
        return kept if self.resets is None else kept.where(self.resets == 0, 0)

    @property
    def rest(self) -> Float[Tensor, "batch heads *tokens channels"]:
        """At the last token, of what each wrote."""
        return self.part(slice(-1, None)).since(self)

    def part(self, places: slice) -> Kept:
        """Some of the tokens."""
        resets = None if self.resets is None else self.resets[..., places, :]
        return Kept(self.logs[..., places, :], resets, self.dtype)

    def since(self, earlier: Kept) -> Tensor:
        """At these tokens, of what earlier ones wrote, wherever they are one to one, or one is alone."""
        kept = (self.logs - earlier.logs).to(self.dtype).exp()
        if self.resets is None or earlier.resets is None:
            return kept
        return kept.where(self.resets == earlier.resets, 0)

    def between(self) -> Float[Tensor, "batch heads keys keys channels"]:
        """At i, of what j wrote; 0 for j after i."""
        span = self.logs[..., :, None, :] - self.logs[..., None, :, :]
        unseen = torch.ones(span.shape[-3:-1], dtype=torch.bool, device=span.device).triu(1)[..., None]
        if self.resets is not None:
            unseen = unseen | (self.resets[..., :, None, :] != self.resets[..., None, :, :])
        return span.to(self.dtype).masked_fill(unseen, -torch.inf).exp()


def accumulated(log_gates: LogGates, dtype: torch.dtype) -> Kept:
    """What is left between tokens that have these gates."""
    shut = log_gates.detach() < SHUT
    # A compiler cannot look at numbers: it gets the form that is right for all.
    if not torch.compiler.is_compiling() and not bool(shut.any()):
        return Kept(log_gates.double().cumsum(-2), None, dtype)
    return Kept(log_gates.double().masked_fill(shut, 0).cumsum(-2), shut.long().cumsum(-2), dtype)


def gated(
    log_gate_t: Float[Tensor, "batch heads channels"], state: Float[Tensor, "batch heads width features"]
) -> Float[Tensor, "batch heads width features"]:
    """What one gate leaves of the state."""
    return log_gate_t.to(state.dtype).exp()[..., None] * state


def scalar_advance(
    state: Float[Tensor, "batch heads width features"], q: Queries, k: Keys, v: Values, log_gates: LogGates
) -> tuple[Float[Tensor, "batch heads width features"], Attended]:
    """A chunk of `S_t = a_t S_{t-1} + k_t v_tᵀ`, `o_t = q_t S_t`, with one gate per token."""
    kept = accumulated(log_gates, v.dtype)
    decay, whole = kept.between()[..., 0], kept.whole
    out = whole * (q @ state) + (q @ k.mT * decay) @ v
    return whole[..., -1:, :] * state + (k * decay[..., -1, :, None]).mT @ v, out
