"""Log-linear attention: the past in segments that double in length, each with a state and a weight."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar

from separatrix.core.numbers import format_exact
from separatrix.core.parameters import Constraint, Exact, Natural
from separatrix.core.tensors import Bool, Float, Int64, Tensor, torch
from separatrix.mechanisms._base import Attended, Counts, Keys, Queries, Values, form, widened
from separatrix.mechanisms._places import which_present
from separatrix.mechanisms._request import one_token, run_of_tokens
from separatrix.mechanisms.extras import HEAD_GATES, LEVEL_SCALES, Sizes
from separatrix.mechanisms.recurrent._base import Key, Output, Query, State, Value, check_lengths
from separatrix.mechanisms.recurrent._decay import accumulated
from separatrix.mechanisms.recurrent._gated import GatedMechanism, GateParameters

Places = Int64[Tensor, "*#any"]


class LogLinearParameters(GateParameters):
    """Where the gate comes from, how many levels there are, and the weight of each beside the one below."""

    owner = "log-linear"
    levels: Natural = 16
    share: Exact = Fraction(1, 2)
    constraints: ClassVar[tuple[Constraint, ...]] = (
        *GateParameters.constraints,
        Constraint(
            ("levels",),
            lambda p: 2 <= p.levels <= 53,
            lambda p: f"levels={p.levels} is out of range; levels must be between 2 and 53",
        ),
        Constraint(
            ("share",),
            lambda p: 0 <= p.share <= 1,
            lambda p: f"share={format_exact(p.share)} is out of range; share must be between 0 and 1",
        ),
    )


class LogLinear(GatedMechanism):
    """`o_t = sum_l λ_t^(l) q_t S_t^(l)`, each `S_t^(l)` the sum of `a_{s+1} ... a_t k_s v_sᵀ` over a segment.

    The segments are those of a Fenwick tree (arXiv 2506.04761). Counted from 0, token s is at level 0 of
    token t if it is t, else at level l if 2^(l-1) is the highest binary digit in which s and t differ: level
    l has 2^(l-1) tokens, and there are no more levels than t has digits. What would be above the last of
    `levels` is in the last, so that the state has a fixed size. In the paper, on Mamba-2, gates and weights
    are learned per token: `log_gates` of shape (batch, heads, tokens, 1), minus infinity for a reset, and λ,
    0 or more, as `level_scales` of shape (batch, heads, tokens, levels). Where they are not given, gate=key
    sets `a_t = exp(-softplus(mean of k_t))`, gate=0.9 a constant, and `λ^(l) = share^l`; share=1 is ssd. The
    paper's other form, on Gated DeltaNet, is left out. An absent token has no place.

    >>> from separatrix.mechanisms import mechanism_named
    >>> one = torch.ones(1, 1, 5, 1)
    >>> mechanism_named("log-linear:gate=1")(one, one, one, causal=True).flatten().tolist()
    [1.0, 1.5, 1.5, 2.0, 1.5]
    """

    name = "log-linear"
    formula = (
        "o_t = sum_l share^l q_t S_t^(l), S_t^(l) the sum of a_{s+1} ... a_t k_s v_s^T over Fenwick segment l"
    )
    source = "[rec] arXiv 2506.04761, with gate and weights that are not learned"
    schema = LogLinearParameters
    parameters: LogLinearParameters
    extras = (HEAD_GATES, LEVEL_SCALES)
    minds_absence = True
    run = 64

    def sizes(self, q: Queries, k: Keys, v: Values) -> Sizes:
        return replace(super().sizes(q, k, v), rank=self.parameters.levels)

    def default_scales(self, k: Keys) -> Float[Tensor, "batch heads keys levels"]:
        """The weights that the parameter `share` stands for."""
        levels = torch.arange(self.parameters.levels, dtype=k.dtype, device=k.device)
        return (float(self.parameters.share) ** levels).expand(*k.shape[:-1], -1)

    @form
    def definition(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        check_lengths(self, q, k)
        place = (which_present(more.get("present"), k).long().cumsum(-1) - 1).clamp(min=0)
        level = self._level(place[:, :, None], place[:, None, :])
        scales = _chosen(more["level_scales"].to(v), level)
        return (q @ k.mT * accumulated(more["log_gates"], v.dtype).between()[..., 0] * scales) @ v

    def init_state(self, q: Queries, v: Values) -> State:
        """A sum for each level but the first, and how many tokens were read."""
        q, v = widened(q, v)
        sums = v.new_zeros(*q.shape[:-2], self.parameters.levels - 1, q.shape[-1], v.shape[-1])
        return sums, torch.zeros(q.shape[0], dtype=torch.long, device=q.device)

    @one_token
    def step(
        self,
        state: State,
        q_t: Query,
        k_t: Key,
        v_t: Value,
        present: Bool[Tensor, "batch 1 1"] | None = None,
        **extras_t: Any,
    ) -> tuple[State, Output]:
        there = None if present is None else present[..., None, :]
        given = {name: x[..., None, :] for name, x in extras_t.items()}
        q, k, v = (x[..., None, :] for x in (q_t, k_t, v_t))
        state, out = self.advance(state, q, k, v, present=there, **given)
        return state, out[..., 0, :]

    @run_of_tokens
    def advance(
        self,
        state: State,
        q: Queries,
        k: Keys,
        v: Values,
        present: Bool[Tensor, "batch 1 keys 1"] | None = None,
        **extras: Any,
    ) -> tuple[State, Attended]:
        """Tokens of the run hear each other by their levels, and what is older through the sums.

        A sum at level l before the run is at level max(l, m) of a token that differs from the first of the
        run at level m: segments only ever grow.
        """
        sums, first = state
        there = first.new_ones(1, k.shape[-2]) if present is None else present[:, 0, :, 0].long()
        place, last = (first[:, None] + there.cumsum(-1) - 1).clamp(min=0), first + there.sum(-1)
        kept, scales = accumulated(extras["log_gates"], v.dtype), extras["level_scales"].to(v)
        near = _chosen(scales, self._level(place[:, :, None], place[:, None, :]))
        out = (q @ k.mT * kept.between()[..., 0] * near) @ v
        deep = min(self.parameters.levels - 1, int(last.max()).bit_length())
        old, level = sums[..., :deep, :, :], torch.arange(1, deep + 1, device=k.device)
        far = kept.whole * _chosen(scales, self._level(place, first[:, None])[..., None].maximum(level))
        asking = (far[..., None] * q[..., None, :]).flatten(-2)
        out = out + asking @ old.flatten(-3, -2)
        moved = self._level(last, first)[:, None, None].maximum(level) == level[:, None]
        added = self._level(place, last[:, None])[:, None, :] == level[:, None]
        new = (moved[:, None].to(v) @ old.flatten(-2)).reshape(old.shape)
        said = added[:, None, :, :, None] * (k * kept.rest)[..., None, :, :]
        new = kept.whole[..., -1:, :, None] * new + said.mT @ v[..., None, :, :]
        return (torch.cat([new, sums[..., deep:, :, :]], dim=-3), last), out

    def _level(self, x: Places, y: Places) -> Places:
        """At which level a token at one place is of a later one at the other: the digits of x xor y."""
        digits: Tensor = torch.frexp((x ^ y).double()).exponent
        return digits.long().clamp(max=self.parameters.levels - 1)


def _chosen(
    scales: Float[Tensor, "batch heads keys levels"], level: Int64[Tensor, "#batch keys chosen"]
) -> Float[Tensor, "batch heads keys chosen"]:
    """The weights of each token at these levels."""
    return scales.gather(-1, level[:, None].expand(*scales.shape[:-1], -1))
