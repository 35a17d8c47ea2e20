"""Gated linear attention: one gate per token and channel."""

from __future__ import annotations

from typing import Any

from separatrix.core.tensors import Float, Tensor, functional, torch
from separatrix.mechanisms._base import Attended, Counts, Keys, Queries, Values, form
from separatrix.mechanisms._recomputed import is_transformed
from separatrix.mechanisms._request import one_token, run_of_tokens
from separatrix.mechanisms.extras import CHANNEL_GATES
from separatrix.mechanisms.recurrent._base import Key, Output, Query, State, Value, check_lengths, outer, read
from separatrix.mechanisms.recurrent._decay import Kept, accumulated, gated
from separatrix.mechanisms.recurrent._gated import GatedMechanism, GateParameters

TEMPERATURE = 16
"""The paper's: gates are `sigmoid(...)^(1/16)`, so that they start near 1."""

MILD = 12.0
"""Logarithm of the most that any channel may fade within a block whose overlaps are one product."""
MILD_BLOCK = 16
"""Tokens of such blocks where a whole run fades by more."""


class GlaParameters(GateParameters):
    """Where the gates come from."""

    owner = "gla"


class Gla(GatedMechanism):
    """`S_t = diag(a_t) S_{t-1} + k_t v_tᵀ`, `o_t = q_t S_t`, with gates a_t in [0, 1]^width [rec].

    The paper's gates are `sigmoid(W x_t + bias)^(1/16)` with a learned W of low rank. `log_gates` of shape
    (batch, heads, tokens, width) are such gates, from wherever they come; a log of minus infinity is a
    reset. Where none are given, gate=key sets `a_t = sigmoid(k_t)^(1/16)`, that is W = 1 on the key and no
    bias (what holds for this map need not hold for a learned one), and gate=0.9 a constant.

    >>> from separatrix.mechanisms import mechanism_named
    >>> one = torch.ones(1, 1, 3, 1)
    >>> mechanism_named("gla")(one, one, one, causal=True, log_gates=0 * one).flatten().tolist()
    [1.0, 2.0, 3.0]
    """

    name = "gla"
    formula = "S_t = diag(a_t) S_{t-1} + k_t v_t^T, o_t = q_t S_t, a_t = sigmoid(k_t)^(1/16)"
    source = "[rec] arXiv 2312.06635, with gates that are not learned"
    schema = GlaParameters
    extras = (CHANNEL_GATES,)
    run = 256

    def key_gates(self, k: Float[Tensor, "*tokens width"]) -> Float[Tensor, "*tokens width"]:
        return functional.logsigmoid(k) / TEMPERATURE

    @form
    def definition(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        check_lengths(self, q, k)
        kept = accumulated(more["log_gates"], v.dtype).between()
        return torch.einsum("bhid,bhijd,bhjd->bhij", q, kept, k) @ v

    @one_token
    def step(self, state: State, q_t: Query, k_t: Key, v_t: Value, **extras_t: Any) -> tuple[State, Output]:
        state = (gated(extras_t["log_gates"], state[0]) + outer(k_t, v_t),)
        return state, read(state[0], q_t)

    @run_of_tokens
    def advance(self, state: State, q: Queries, k: Keys, v: Values, **extras: Any) -> tuple[State, Attended]:
        length = k.shape[-2]
        padding = (0, 0, 0, (1 << (length - 1).bit_length()) - length)
        q, k, v, log_gates = (functional.pad(x, padding) for x in (q, k, v, extras["log_gates"]))
        kept = accumulated(log_gates, v.dtype)
        whole = kept.whole
        after = whole[..., -1:, :].mT * state[0] + (k * kept.rest).mT @ v
        return (after,), ((q * whole) @ state[0] + faded_overlaps(q, k, kept) @ v)[..., :length, :]


def faded_overlaps(q: Queries, k: Keys, kept: Kept) -> Float[Tensor, "batch heads queries keys"]:
    """`sum_c q_ic k_jc exp(L_ic - L_jc)` for j up to i, else 0; the number of tokens is a power of two.

    By halves: the second half hears the first through `(q exp(L_i - L_mid)) (k exp(L_mid - L_j))ᵀ`, where mid
    is the last token of the first half. Both exponents are at most 0, so nothing overflows or is divided by
    what underflowed. Blocks in which little fades are computed whole, see `_mild_length`; there, keys above
    1e33 overflow in float32.
    """
    half = _mild_length(kept)
    found = (q * k).sum(-1)[..., None, None] if half == 1 else _mild_blocks(q, k, kept, half)
    while half < k.shape[-2]:
        heard, said = _halves(q, half)[..., 1, :, :], _halves(k, half)[..., 0, :, :]
        logs = _halves(kept.logs, half).unbind(-3)
        resets = (None, None) if kept.resets is None else _halves(kept.resets, half).unbind(-3)
        earlier, later = (Kept(log, reset, kept.dtype) for log, reset in zip(logs, resets, strict=True))
        middle = earlier.part(slice(-1, None))
        across = (heard * later.since(middle)) @ (said * middle.since(earlier)).mT
        first, second = found.reshape(*found.shape[:-3], -1, 2, half, half).unbind(-3)
        above, below = torch.cat([first, torch.zeros_like(across)], -1), torch.cat([across, second], -1)
        found, half = torch.cat([above, below], dim=-2), 2 * half
    return found[..., 0, :, :]


def _mild_length(kept: Kept) -> int:
    """The length of blocks in which no channel fades by more than `exp(-MILD)`: all tokens, 16, or 1.

    Tracing needs control flow that does not depend on numbers, hence 1 there.
    """
    if kept.resets is not None or is_transformed():
        return 1
    tokens, logs = kept.logs.shape[-2], kept.logs.detach()
    for length in (tokens, MILD_BLOCK):
        # Logs only fall, so that the first and the last token of a block differ most.
        if 1 < length <= tokens and bool(
            (logs[..., ::length, :] - logs[..., length - 1 :: length, :]).amax() <= MILD
        ):
            return length
    return 1


def _mild_blocks(
    q: Queries, k: Keys, kept: Kept, length: int
) -> Float[Tensor, "batch heads blocks length length"]:
    """The overlaps within blocks, by one product each: `(q exp(L_i - L_0)) (k exp(L_0 - L_j))ᵀ`.

    L_0 is that of a block's first token, so that no token depends on a gate after it. The second exponent is
    positive, but at most MILD, so that rounding is multiplied by little.
    """
    blocks = (*k.shape[:-2], -1, length)
    logs = kept.logs.reshape(*kept.logs.shape[:-2], -1, length, kept.logs.shape[-1])
    fading = (logs - logs[..., :1, :]).to(kept.dtype)
    queries, keys = q.reshape(*blocks, q.shape[-1]) * fading.exp(), k.reshape(*blocks, k.shape[-1])
    return (queries @ (keys * (-fading).exp()).mT).tril_()


def _halves(x: Tensor, half: int) -> Tensor:
    """(batch, heads, tokens, width) as (batch, heads, pairs, 2, half, width)."""
    return x.reshape(*x.shape[:-2], -1, 2, half, x.shape[-1])
