"""Log-linear attention: the past in segments that double in length, each with a state and a weight."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from separatrix.core.parameters import exact, natural
from separatrix.core.tensors import Float, Int64, Tensor, torch
from separatrix.mechanisms._methods import advance_method, attention_method, upcast
from separatrix.mechanisms._positions import presence_mask
from separatrix.mechanisms._types import Attended, CallOptions, Keys, Queries, Values
from separatrix.mechanisms.extras import HEAD_GATES, LEVEL_SCALES, TokenSizes
from separatrix.mechanisms.recurrent._base import RunPresence, State
from separatrix.mechanisms.recurrent._decay import accumulate_gates, scalar_decays
from separatrix.mechanisms.recurrent._gated import GatedMechanism

Positions = Int64[Tensor, "*#any"]


class LogLinear(GatedMechanism):
    """`o_t = sum_l λ_t^(l) q_t S_t^(l)`, each `S_t^(l)` the sum of `a_{s+1} ... a_t k_s v_sᵀ` over a segment.

    The segments are those of a Fenwick tree (arXiv 2506.04761). Counted from 0, token s is at level 0 of
    token t if it is t, else at level l if 2^(l-1) is the highest binary digit in which s and t differ: level
    l has 2^(l-1) tokens, and there are no more levels than t has digits. Levels above the last of `levels`
    are merged into it, so that the state has a fixed size. In the paper, on Mamba-2, gates and weights are
    learned per token: `log_gates` of shape (batch, heads, tokens, 1), minus infinity for a reset, and λ, 0 or
    more, as `level_scales` of shape (batch, heads, tokens, levels). If they are not given, gate=key sets `a_t
    = exp(-softplus(mean of k_t))`, gate=0.9 a constant, and `λ^(l) = share^l`; share=1 is ssd. The paper's
    other form, on Gated DeltaNet, is left out. An absent token has no position.

    >>> from separatrix.mechanisms import mechanism_named
    >>> one = torch.ones(1, 1, 5, 1)
    >>> mechanism_named("log-linear:gate=1")(one, one, one, causal=True).flatten().tolist()
    [1.0, 1.5, 1.5, 2.0, 1.5]
    """

    name = "log-linear"
    formula = "o_t = sum_l share^l q_t S_t^(l), S_t^(l) the sum of a_{s+1} ... a_t k_s v_s^T over Fenwick segment l"
    source = "[rec] arXiv 2506.04761, with gate and weights that are not learned"
    extras = (HEAD_GATES, LEVEL_SCALES)
    step_takes_present = True
    run = 64
    levels: int = natural(16, at_least=2, at_most=53)
    """The number of levels."""
    share: Fraction = exact(Fraction(1, 2), at_least=0, at_most=1)
    """The weight of each level relative to the one below."""

    def sizes(self, q: Queries, k: Keys, v: Values) -> TokenSizes:
        return replace(super().sizes(q, k, v), rank=self.levels)

    def default_scales(self, k: Keys) -> Float[Tensor, "batch heads keys levels"]:
        """Return the weights for the parameter `share`."""
        levels = torch.arange(self.levels, dtype=k.dtype, device=k.device)
        return (float(self.share) ** levels).expand(*k.shape[:-1], -1)

    @attention_method
    def definition(self, q: Queries, k: Keys, v: Values, options: CallOptions, **extras: Any) -> Attended:
        position = (presence_mask(options.present, k).long().cumsum(-1) - 1).clamp(min=0)
        scales = _select(extras["level_scales"].to(v), self._level(position[:, :, None], position[:, None, :]))
        return (q @ k.mT * scalar_decays(extras["log_gates"], v.dtype)[1] * scales) @ v

    def init_state(self, q: Queries, v: Values) -> State:
        """Return a sum for each level but the first, and the number of tokens read."""
        q, v = upcast(q, v)
        sums = v.new_zeros(*q.shape[:-2], self.levels - 1, q.shape[-1], v.shape[-1])
        return sums, torch.zeros(q.shape[0], dtype=torch.long, device=q.device)

    @advance_method
    def advance(
        self, state: State, q: Queries, k: Keys, v: Values, present: RunPresence | None = None, **extras: Any
    ) -> tuple[State, Attended]:
        """Read tokens of the run by their levels, and older ones through the sums.

        A sum at level l before the run is at level max(l, m) of a token that differs from the first of the
        run at level m: segments only ever grow.
        """
        sums, first = state
        counts = first.new_ones(1, k.shape[-2]) if present is None else present[:, 0, :, 0].long()
        position, last = (first[:, None] + counts.cumsum(-1) - 1).clamp(min=0), first + counts.sum(-1)
        decays, scales = accumulate_gates(extras["log_gates"], v.dtype), extras["level_scales"].to(v)
        from_start = decays.from_start()
        near_scales = _select(scales, self._level(position[:, :, None], position[:, None, :]))
        out = (q @ k.mT * decays.pairwise()[..., 0] * near_scales) @ v
        # Positions so far have no more digits than this, so sums of higher levels are still 0.
        depth = min(self.levels - 1, int(last.max()).bit_length())
        old, level = sums[..., :depth, :, :], torch.arange(1, depth + 1, device=k.device)
        old_levels = self._level(position, first[:, None])[..., None].maximum(level)
        level_q = (from_start * _select(scales, old_levels))[..., None] * q[..., None, :]
        out = out + level_q.flatten(-2) @ old.flatten(-3, -2)
        merges = self._level(last, first)[:, None, None].maximum(level) == level[:, None]
        joins = self._level(position, last[:, None])[:, None, :] == level[:, None]
        new = (merges[:, None].to(v) @ old.flatten(-2)).reshape(old.shape)
        level_k = joins[:, None, :, :, None] * (k * decays.to_end())[..., None, :, :]
        new = from_start[..., -1:, :, None] * new + level_k.mT @ v[..., None, :, :]
        return (torch.cat([new, sums[..., depth:, :, :]], dim=-3), last), out

    def _level(self, x: Positions, y: Positions) -> Positions:
        """Return the level of one position for a later one: the number of binary digits of x xor y."""
        # The exponent of a float64 counts the digits of whole numbers up to 2^53: at most 53 levels.
        digits: Tensor = torch.frexp((x ^ y).double()).exponent
        return digits.long().clamp(max=self.levels - 1)


def _select(
    scales: Float[Tensor, "batch heads keys levels"], level: Int64[Tensor, "#batch keys columns"]
) -> Float[Tensor, "batch heads keys columns"]:
    """Return the weights of each token at these levels."""
    return scales.gather(-1, level[:, None].expand(*scales.shape[:-1], -1))
