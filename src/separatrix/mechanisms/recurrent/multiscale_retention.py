"""Multi-scale retention: each head forgets at a rate of its own, and rows are kept from growing."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator

from separatrix.core.numbers import format_exact, parse_exact
from separatrix.core.parameters import Constraint, Flag, Parameters
from separatrix.core.tensors import Bool, Float, Tensor, functional, torch
from separatrix.mechanisms._base import Attended, Counts, Keys, Queries, Values, form
from separatrix.mechanisms._places import which_present
from separatrix.mechanisms._request import one_token, run_of_tokens
from separatrix.mechanisms.extras import DECAY
from separatrix.mechanisms.recurrent._base import (
    Key,
    Output,
    Query,
    RecurrentMechanism,
    State,
    Value,
    check_lengths,
    memory,
    outer,
    read,
)
from separatrix.mechanisms.recurrent._decay import accumulated


def _decay(value: object) -> Fraction | str:
    return "scales" if value == "scales" else parse_exact(value, "decay")


class MultiscaleRetentionParameters(Parameters):
    """What heads keep from one token to the next, and whether rows are normalised."""

    owner = "multiscale-retention"
    decay: Annotated[Fraction | str, BeforeValidator(_decay)] = "scales"
    normalised: Flag = True
    constraints: ClassVar[tuple[Constraint, ...]] = (
        Constraint(
            ("decay",),
            lambda p: p.decay == "scales" or 0 < p.decay <= 1,
            lambda p: (
                f"decay={format_exact(p.decay)} is out of range; decay must be scales, or above 0, up to 1"
            ),
        ),
    )


class MultiscaleRetention(RecurrentMechanism):
    """`sum_j r_ij v_j / max(|sum_j r_ij|, 1)`, `r_ij = <q_i,k_j> d^(i-j) / sqrt(width (1 + ... + d^i))`.

    Head h = 0, 1, ... keeps `d = 1 - 2^(-5-h)` from token to token, as in RetNet (arXiv 2307.08621); with
    decay=0.9 all keep that, and `decay` of shape (heads,) is given instead. The three normalisations are the
    paper's: of logits by the root of the width, of decays by the root of their sum, of rows by the size of
    theirs, through which gradients flow here as elsewhere (its program lets none through). Without them,
    normalised=no, it is retention with a decay for each head. The paper turns queries and keys by their
    places, rotary:inner=multiscale-retention, and brings each head's output to one size, as layers do. An
    absent token does not decay what is kept.

    The state is the sum of `k (v, 1)ᵀ` and that of the decays.

    >>> from separatrix.mechanisms import mechanism_named
    >>> one = torch.ones(1, 1, 3, 1)
    >>> mechanism_named("multiscale-retention:decay=1")(one, one, one, causal=True).flatten().tolist()
    [1.0, 1.0, 1.0]
    """

    name = "multiscale-retention"
    formula = (
        "sum_j r_ij v_j / max(|sum_j r_ij|, 1), r_ij = <q_i,k_j> d_h^(i-j) / sqrt(width sum_j d_h^(i-j))"
    )
    source = "[rec] RetNet, arXiv 2307.08621"
    schema = MultiscaleRetentionParameters
    parameters: MultiscaleRetentionParameters
    extras = (replace(DECAY, default=lambda mechanism, q, k, v: mechanism.default_decays(k)),)
    minds_absence = True

    def default_decays(self, k: Keys) -> Float[Tensor, " heads"]:
        """Those of the paper or the parameter, in float64: they are close to 1."""
        heads = torch.arange(k.shape[1], dtype=torch.float64, device=k.device)
        if isinstance(self.parameters.decay, Fraction):
            return torch.full_like(heads, float(self.parameters.decay))
        return 1 - 2.0 ** (-5 - heads)

    @form
    def definition(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        check_lengths(self, q, k)
        there = which_present(more.get("present"), k)
        place = there.double().cumsum(-1)
        distance = (place[:, None, :, None] - place[:, None, None, :]).clamp(min=0)
        kept: Tensor = (more["decay"].double()[:, None, None] ** distance).tril()
        if not self.parameters.normalised:
            return (q @ k.mT * kept.to(v)) @ v
        sums = (kept * there[:, None, None, :]).sum(-1, keepdim=True)
        rows = q @ k.mT * (kept / (k.shape[-1] * sums.clamp(min=1)).sqrt()).to(v)
        return rows / rows.sum(-1, keepdim=True).abs().clamp(min=1) @ v

    def init_state(self, q: Queries, v: Values) -> State:
        sums = memory(q, v, more=1)
        return sums, sums.new_zeros(*sums.shape[:2], 1)

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
        decay = extras_t["decay"].to(v_t)[:, None]
        here = torch.ones_like(decay) if present is None else present.to(v_t)
        kept = decay if present is None else decay.where(present, 1)
        sums = kept[..., None] * state[0] + outer(k_t, _with_one(v_t))
        total = kept * state[1] + here
        return (sums, total), self._normalised(read(sums, q_t), total, q_t)

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
        log_gates, here = (
            extras["decay"].double().log()[:, None, None].expand(*k.shape[:-1], 1),
            k[..., :1] * 0 + 1,
        )
        if present is not None:
            log_gates, here = log_gates.where(present, 0), present.to(v)
        kept = accumulated(log_gates, v.dtype)
        decay, whole = kept.between()[..., 0], kept.whole
        values = _with_one(v)
        found = whole * (q @ state[0]) + (q @ k.mT * decay) @ values
        total = whole * state[1][..., None, :] + decay @ here
        after = whole[..., -1:, :] * state[0] + (k * decay[..., -1, :, None]).mT @ values
        return (after, total[..., -1, :]), self._normalised(found, total, q)

    def _normalised(self, found: Tensor, total: Tensor, q: Tensor) -> Tensor:
        """What was read, the sum of its row in the last place, over the root of the decays and the row."""
        if not self.parameters.normalised:
            return found[..., :-1]
        rows = found / (q.shape[-1] * total.clamp(min=1)).sqrt()
        return rows[..., :-1] / rows[..., -1:].abs().clamp(min=1)


def _with_one(v: Tensor) -> Tensor:
    return functional.pad(v, (0, 1), value=1.0)
