"""Gated linear attention: one gate per token and channel."""

from __future__ import annotations

from separatrix.mechanisms._base import Attended, Keys, Queries, Values
from separatrix.mechanisms.recurrent._base import State
from separatrix.mechanisms.recurrent._decay import LogGates, accumulated
from separatrix.mechanisms.recurrent._gated import GatedMechanism, GateParameters
from separatrix.tensors import Float, Tensor, functional, torch

TEMPERATURE = 16
"""The paper's: gates are `sigmoid(...)^(1/16)`, so that they start near 1."""


class GlaParameters(GateParameters):
    """Where the gates come from."""

    owner = "gla"


class Gla(GatedMechanism):
    """`S_t = diag(a_t) S_{t-1} + k_t v_tᵀ`, `o_t = q_t S_t`, with gates a_t in (0, 1]^width [rec].

    The paper's gates are `sigmoid(W x_t + bias)^(1/16)` with a learned W of low rank. Here gate=key sets
    `a_t = sigmoid(k_t)^(1/16)`, that is W = 1 on the key and no bias: trained models learn this map, and
    what holds for the fixed one need not hold for them. gate=0.9 is a constant; `log_gates` of shape
    (batch, heads, tokens, width) take the place of both.

    >>> from separatrix.mechanisms import mechanism_named
    >>> one = torch.ones(1, 1, 3, 1)
    >>> mechanism_named("gla")(one, one, one, causal=True, log_gates=0 * one).flatten().tolist()
    [1.0, 2.0, 3.0]
    """

    name = "gla"
    formula = "S_t = diag(a_t) S_{t-1} + k_t v_t^T, o_t = q_t S_t, a_t = sigmoid(k_t)^(1/16)"
    source = "[rec] arXiv 2312.06635, with gates that are not learned"
    schema = GlaParameters
    per_channel = True
    run = 256

    def key_gates(self, k: Float[Tensor, "*tokens width"]) -> Float[Tensor, "*tokens width"]:
        return functional.logsigmoid(k) / TEMPERATURE

    def gated_definition(self, q: Queries, k: Keys, v: Values, log_gates: LogGates) -> Attended:
        cumulative = accumulated(log_gates)
        span = cumulative[..., :, None, :] - cumulative[..., None, :, :]
        future = torch.ones(span.shape[-3:-1], dtype=torch.bool, device=k.device).triu(1)[..., None]
        kept = span.masked_fill(future, -torch.inf).exp().to(v.dtype)
        return torch.einsum("bhid,bhijd,bhjd->bhij", q, kept, k) @ v

    def gated_advance(
        self, state: State, q: Queries, k: Keys, v: Values, log_gates: LogGates
    ) -> tuple[State, Attended]:
        length = k.shape[-2]
        padding = (0, 0, 0, (1 << (length - 1).bit_length()) - length)
        q, k, v, log_gates = (functional.pad(x, padding) for x in (q, k, v, log_gates))
        cumulative = accumulated(log_gates)
        last = cumulative[..., -1:, :]
        earlier = (q * cumulative.to(v.dtype).exp()) @ state[0]
        written = (k * (last - cumulative).to(v.dtype).exp()).mT @ v
        after = last.to(v.dtype).exp().mT * state[0] + written
        return (after,), (earlier + _within(q, k, v, cumulative))[..., :length, :]


def _within(q: Queries, k: Keys, v: Values, cumulative: Float[Tensor, "batch heads keys width"]) -> Attended:
    """What the tokens of a chunk say to each other, by halves; their number is a power of two.

    The second half hears the first through `(q exp(L_i - L_mid)) (k exp(L_mid - L_j))ᵀ`, where mid is the
    last token of the first half: both exponents are at most 0, so nothing overflows or is divided by
    what underflowed. Then each half by itself, all at once; at the end every token hears itself.
    """
    out = (q * k).sum(-1, keepdim=True) * v
    half = 1
    while half < v.shape[-2]:
        queries, keys, values, logs = (_halves(x, half) for x in (q, k, v, cumulative))
        middle = logs[..., 0, -1:, :]
        heard = queries[..., 1, :, :] * (logs[..., 1, :, :] - middle).to(v.dtype).exp()
        said = keys[..., 0, :, :] * (middle - logs[..., 0, :, :]).to(v.dtype).exp()
        second = heard @ said.mT @ values[..., 0, :, :]
        out = out + torch.stack([torch.zeros_like(second), second], dim=-3).flatten(-4, -2)
        half *= 2
    return out


def _halves(
    x: Float[Tensor, "batch heads tokens width"], half: int
) -> Float[Tensor, "batch heads pairs 2 half width"]:
    return x.reshape(*x.shape[:-2], -1, 2, half, x.shape[-1])
