"""Gated linear attention: one gate per token and channel."""

from __future__ import annotations

from typing import Any

from separatrix.core.tensors import Float, Tensor, functional, torch
from separatrix.mechanisms._methods import advance_method, attention_method
from separatrix.mechanisms._recompute import is_transformed
from separatrix.mechanisms._types import Attended, CallOptions, Keys, Queries, Values
from separatrix.mechanisms.extras import CHANNEL_GATES
from separatrix.mechanisms.recurrent._base import State
from separatrix.mechanisms.recurrent._decay import Decays, accumulate_gates, pad_to_power_of_two
from separatrix.mechanisms.recurrent._gated import GatedSums

TEMPERATURE = 16
"""The paper's: gates are `sigmoid(...)^(1/16)`, so that they start near 1."""
MAX_MILD_DECAY = 12.0
"""Logarithm of the largest decay of a channel within a block whose overlaps are one product."""
MILD_BLOCK = 16
"""Tokens of these blocks if a whole run decays by more."""


class Gla(GatedSums):
    """`S_t = diag(a_t) S_{t-1} + k_t v_tᵀ`, `o_t = q_t S_t`, with gates a_t in [0, 1]^width [rec].

    The paper's gates are `sigmoid(W x_t + bias)^(1/16)` with a learned W of low rank. `log_gates` of shape
    (batch, heads, tokens, width) are these gates, from any source; a log of minus infinity is a reset. If
    they are not given, gate=key sets `a_t = sigmoid(k_t)^(1/16)`, that is W = 1 on the key and no bias (a
    statement about this map need not hold for a learned one), and gate=0.9 a constant.

    >>> from separatrix.mechanisms import mechanism_named
    >>> one = torch.ones(1, 1, 3, 1)
    >>> mechanism_named("gla")(one, one, one, causal=True, log_gates=0 * one).flatten().tolist()
    [1.0, 2.0, 3.0]
    """

    name = "gla"
    formula = "S_t = diag(a_t) S_{t-1} + k_t v_t^T, o_t = q_t S_t, a_t = sigmoid(k_t)^(1/16)"
    source = "[rec] arXiv 2312.06635, with gates that are not learned"
    extras = (CHANNEL_GATES,)
    run = 256

    def key_gates(self, k: Float[Tensor, "*tokens width"]) -> Float[Tensor, "*tokens width"]:
        return functional.logsigmoid(k) / TEMPERATURE

    @attention_method
    def definition(self, q: Queries, k: Keys, v: Values, options: CallOptions, **extras: Any) -> Attended:
        decays = accumulate_gates(extras["log_gates"], v.dtype).pairwise()
        return torch.einsum("bhid,bhijd,bhjd->bhij", q, decays, k) @ v

    @advance_method
    def advance(self, state: State, q: Queries, k: Keys, v: Values, **extras: Any) -> tuple[State, Attended]:
        length = k.shape[-2]
        q, k, v, log_gates = pad_to_power_of_two(q, k, v, extras["log_gates"])
        decays = accumulate_gates(log_gates, v.dtype)
        from_start = decays.from_start()
        out = (q * from_start) @ state[0] + decayed_overlaps(q, k, decays) @ v
        after = from_start[..., -1:, :].mT * state[0] + (k * decays.to_end()).mT @ v
        return (after,), out[..., :length, :]


def decayed_overlaps(q: Queries, k: Keys, decays: Decays) -> Float[Tensor, "batch heads queries keys"]:
    """Return `sum_c q_ic k_jc exp(L_ic - L_jc)` for j up to i, else 0, of 2^m tokens.

    By halves: the second half reads the first through `(q exp(L_i - L_mid)) (k exp(L_mid - L_j))ᵀ`, where mid
    is the last token of the first half. Both exponents are at most 0, so nothing overflows or is divided by
    an underflow. Blocks that decay little are computed as a whole, see `_mild_length`; there, keys above 1e33
    overflow in float32.
    """
    length = _mild_length(decays)
    overlaps = (q * k).sum(-1)[..., None, None] if length == 1 else _mild_blocks(q, k, decays, length)
    while length < k.shape[-2]:
        later_q, earlier_k = _halve(q, length)[..., 1, :, :], _halve(k, length)[..., 0, :, :]
        logs = _halve(decays.logs, length).unbind(-3)
        resets = (None, None) if decays.resets is None else _halve(decays.resets, length).unbind(-3)
        earlier, later = (Decays(log, reset, decays.dtype) for log, reset in zip(logs, resets, strict=True))
        middle = earlier.part(slice(-1, None))
        across = (later_q * later.since(middle)) @ (earlier_k * middle.since(earlier)).mT
        first, second = overlaps.reshape(*overlaps.shape[:-3], -1, 2, length, length).unbind(-3)
        above, below = torch.cat([first, torch.zeros_like(across)], -1), torch.cat([across, second], -1)
        overlaps, length = torch.cat([above, below], dim=-2), 2 * length
    return overlaps[..., 0, :, :]


def _mild_length(decays: Decays) -> int:
    """Return the length of blocks in which no channel decays below `exp(-12)`: all tokens, 16, or 1.

    Tracing needs control flow that does not depend on numbers, hence 1 there.
    """
    if decays.resets is not None or is_transformed():
        return 1
    tokens, logs = decays.logs.shape[-2], decays.logs.detach()
    for length in (tokens, MILD_BLOCK):
        # Logs only fall, so that the first and the last token of a block differ most.
        if 1 < length <= tokens and bool(
            (logs[..., ::length, :] - logs[..., length - 1 :: length, :]).amax() <= MAX_MILD_DECAY
        ):
            return length
    return 1


def _mild_blocks(q: Queries, k: Keys, decays: Decays, length: int) -> Float[Tensor, "batch heads blocks length length"]:
    """Return the overlaps within blocks, by one product each: `(q exp(L_i - L_0)) (k exp(L_0 - L_j))ᵀ`.

    L_0 is that of a block's first token, so that no token depends on a gate after it. The second exponent is
    positive, but at most MAX_MILD_DECAY, so that rounding errors are multiplied by little.
    """
    logs, q, k = (x.reshape(*x.shape[:-2], -1, length, x.shape[-1]) for x in (decays.logs, q, k))
    falls = (logs - logs[..., :1, :]).to(decays.dtype)
    return ((q * falls.exp()) @ (k * (-falls).exp()).mT).tril_()


def _halve(x: Tensor, length: int) -> Tensor:
    """Reshape (batch, heads, tokens, width) to (batch, heads, pairs, 2, length, width)."""
    return x.reshape(*x.shape[:-2], -1, 2, length, x.shape[-1])
