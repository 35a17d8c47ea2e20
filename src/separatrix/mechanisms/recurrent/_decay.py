"""Decays between the tokens of a chunk, from differences of logs.

A product of gates underflows, and dividing by one that has underflowed gives nothing back. Differences of
cumulative logs do not, as long as they are masked before `exp`; they are computed in float64, since a single
gate near 0 would leave float32 sums no digits for the gates after it. A gate of 0, a reset, has no finite
log: resets are counted, and what was written before one is multiplied by 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from separatrix.core.tensors import Float, Int64, Tensor, functional, torch
from separatrix.mechanisms._types import Attended, Keys, Queries, Values

LogGates = Float[Tensor, "#batch heads keys channels"]
"""Logs of gates in [0, 1]: one for each channel of the key, or a single one."""

MIN_LOG = -746.0
"""`exp` of less is 0 in float64."""


def log_exact(x: Fraction) -> float:
    """Return `log x`, also if x itself is below the floats."""
    return math.log(x.numerator) - math.log(x.denominator)


@dataclass(frozen=True)
class Decays:
    """The decay from one token to another: `exp(L_i - L_j)`, 0 if there was a reset between."""

    logs: Float[Tensor, "batch heads *tokens channels"]
    """`L_t`, the sum of the log gates up to and with t, in float64."""
    resets: Int64[Tensor, "batch heads *tokens channels"] | None
    """The number of resets up to and with t; None if there was none."""
    dtype: torch.dtype

    def from_start(self) -> Float[Tensor, "batch heads *tokens channels"]:
        """Return the decay of the state before the first token, at each token."""
        decay = self.logs.to(self.dtype).exp()
        return decay if self.resets is None else decay.where(self.resets == 0, 0)

    def to_end(self) -> Float[Tensor, "batch heads *tokens channels"]:
        """Return the decay of each token, at the last one."""
        return self.part(slice(-1, None)).since(self)

    def part(self, positions: slice) -> Decays:
        """Select some of the tokens."""
        resets = None if self.resets is None else self.resets[..., positions, :]
        return Decays(self.logs[..., positions, :], resets, self.dtype)

    def since(self, earlier: Decays) -> Tensor:
        """Return the decay of earlier tokens at these; both have the same number, or one has one."""
        # Rounded after the difference, which is small even where the sums are large.
        decay = (self.logs - earlier.logs).to(self.dtype).exp()
        if self.resets is None or earlier.resets is None:
            return decay
        return decay.where(self.resets == earlier.resets, 0)

    def pairwise(self) -> Float[Tensor, "batch heads keys keys channels"]:
        """Return the decay of token j at token i; 0 for j after i."""
        span = self.logs[..., :, None, :] - self.logs[..., None, :, :]
        is_hidden = torch.ones(span.shape[-3:-1], dtype=torch.bool, device=span.device).triu(1)[..., None]
        if self.resets is not None:
            is_hidden = is_hidden | (self.resets[..., :, None, :] != self.resets[..., None, :, :])
        # Masked before `exp`: spans of later tokens are positive, and may overflow.
        return span.to(self.dtype).masked_fill(is_hidden, -torch.inf).exp()


def accumulate_gates(log_gates: LogGates, dtype: torch.dtype) -> Decays:
    """Return the decays between tokens with these gates."""
    is_reset = log_gates.detach() < MIN_LOG
    # A compiler cannot look at numbers: it gets the form that is right for all.
    if not torch.compiler.is_compiling() and not bool(is_reset.any()):
        return Decays(log_gates.double().cumsum(-2), None, dtype)
    return Decays(log_gates.double().masked_fill(is_reset, 0).cumsum(-2), is_reset.long().cumsum(-2), dtype)


def scalar_decays(
    log_gates: LogGates, dtype: torch.dtype
) -> tuple[Float[Tensor, "#batch heads keys 1"], Float[Tensor, "#batch heads keys keys"]]:
    """Return the decays from the start and between all tokens, for one gate per token."""
    decays = accumulate_gates(log_gates, dtype)
    return decays.from_start(), decays.pairwise()[..., 0]


def decay_state(
    log_gate_t: Float[Tensor, "batch heads channels"], state: Float[Tensor, "batch heads width features"]
) -> Float[Tensor, "batch heads width features"]:
    """Apply one gate to the state."""
    return log_gate_t.to(state.dtype).exp()[..., None] * state


def advance_scalar(
    state: Float[Tensor, "batch heads width features"],
    q: Queries,
    k: Keys,
    v: Values,
    from_start: Tensor,
    pair_decays: Tensor,
) -> tuple[Float[Tensor, "batch heads width features"], Attended]:
    """Read a run of `S_t = a_t S_{t-1} + k_t v_tᵀ`, `o_t = q_t S_t`, given its `scalar_decays`."""
    out = from_start * (q @ state) + (q @ k.mT * pair_decays) @ v
    return from_start[..., -1:, :] * state + (k * pair_decays[..., -1, :, None]).mT @ v, out


def pad_to_power_of_two(*tensors: Tensor) -> list[Tensor]:
    """Append tokens of zeros, so that `decayed_overlaps` can halve their number."""
    length = tensors[0].shape[-2]
    return [functional.pad(x, (0, 0, 0, (1 << (length - 1).bit_length()) - length)) for x in tensors]
