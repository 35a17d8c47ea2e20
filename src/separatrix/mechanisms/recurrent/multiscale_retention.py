"""Multi-scale retention: each head forgets at a rate of its own, and rows are normalised."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from separatrix.core.parameters import exact, flag
from separatrix.core.tensors import torch
from separatrix.mechanisms._methods import advance_method, attention_method
from separatrix.mechanisms._positions import presence_mask
from separatrix.mechanisms._running_sums import append_ones
from separatrix.mechanisms._types import Attended, CallOptions, Keys, Queries, Values
from separatrix.mechanisms.extras import DECAY
from separatrix.mechanisms.recurrent._base import RecurrentMechanism, RunPresence, State, zero_state
from separatrix.mechanisms.recurrent._decay import advance_scalar, scalar_decays
from separatrix.mechanisms.recurrent.retention import Decay, decay_gates, decay_powers


class MultiscaleRetention(RecurrentMechanism):
    """`sum_j r_ij v_j / max(|sum_j r_ij|, 1)`, `r_ij = <q_i,k_j> d^(i-j) / sqrt(width (1 + ... + d^i))`.

    Head h = 0, 1, ... has the decay `d = 1 - 2^(-5-h)`, as in RetNet (arXiv 2307.08621); with decay=0.9 all
    heads have that, and `decay` of shape (heads,) replaces it. The three normalisations are the paper's: of
    logits by the root of the width, of decays by the root of their sum, of rows by the size of theirs,
    through which gradients flow here as elsewhere (in its program they do not). Without them, normalised=no,
    it is retention with a decay for each head. The paper rotates queries and keys by their positions,
    rotary:inner=multiscale-retention, and normalises each head's output, as layers do. An absent token does
    not decay the state.

    The state is the sum of `k (v, 1)ᵀ` and that of the decays.

    >>> from separatrix.mechanisms import mechanism_named
    >>> one = torch.ones(1, 1, 3, 1)
    >>> mechanism_named("multiscale-retention:decay=1")(one, one, one, causal=True).flatten().tolist()
    [1.0, 1.0, 1.0]
    """

    name = "multiscale-retention"
    formula = "sum_j r_ij v_j / max(|sum_j r_ij|, 1), r_ij = <q_i,k_j> d_h^(i-j) / sqrt(width sum_j d_h^(i-j))"
    source = "[rec] RetNet, arXiv 2307.08621"
    extras = (DECAY,)
    step_takes_present = True
    decay: Fraction | str = exact("scales", above=0, at_most=1, word="scales")
    """The share of the state that is left after one token; scales: one per head, as in the paper."""
    normalised: bool = flag(True)
    """Whether rows are normalised."""

    def default_decays(self, k: Keys) -> Decay:
        """Return the decays of the paper or the parameter, in float64: they are close to 1."""
        heads = torch.arange(k.shape[1], dtype=torch.float64, device=k.device)
        if isinstance(self.decay, Fraction):
            return torch.full_like(heads, float(self.decay))
        return 1 - 2.0 ** (-5 - heads)

    @attention_method
    def definition(self, q: Queries, k: Keys, v: Values, options: CallOptions, **extras: Any) -> Attended:
        powers = decay_powers(extras["decay"], k, options.present)
        if not self.normalised:
            return (q @ k.mT * powers.to(v)) @ v
        sums = (powers * presence_mask(options.present, k)[:, None, None, :]).sum(-1, keepdim=True)
        # Sums are at least d^0 = 1, or 0 in a row without a present token, which must not be divided by 0.
        rows = q @ k.mT * (powers / (k.shape[-1] * sums.clamp(min=1)).sqrt()).to(v)
        return rows / rows.sum(-1, keepdim=True).abs().clamp(min=1) @ v

    def init_state(self, q: Queries, v: Values) -> State:
        sums = zero_state(q, v, columns=1)
        return sums, sums.new_zeros(*sums.shape[:2], 1)

    @advance_method
    def advance(
        self, state: State, q: Queries, k: Keys, v: Values, present: RunPresence | None = None, **extras: Any
    ) -> tuple[State, Attended]:
        from_start, pair_decays = scalar_decays(decay_gates(extras["decay"], k, present), v.dtype)
        sums, out = advance_scalar(state[0], q, k, append_ones(v), from_start, pair_decays)
        counts = torch.ones_like(v[..., :1]) if present is None else present.to(v)
        total = from_start * state[1][..., None, :] + pair_decays @ counts
        if self.normalised:
            out = out / (q.shape[-1] * total.clamp(min=1)).sqrt()
            out = out / out[..., -1:].abs().clamp(min=1)
        return (sums, total[..., -1, :]), out[..., :-1]
