"""Softmax over a window, linear attention over what is older."""

from __future__ import annotations

from typing import Any, ClassVar

from separatrix.mechanisms._base import Attended, Counts, Keys, Queries, Values, form, widened
from separatrix.mechanisms._limits import least
from separatrix.mechanisms._request import one_token, run_of_tokens
from separatrix.mechanisms.features.elu import elu_plus_one
from separatrix.mechanisms.recurrent._base import (
    Key,
    Output,
    Query,
    RecurrentMechanism,
    State,
    Value,
    check_lengths,
    memory,
)
from separatrix.parameters import Constraint, Natural, Parameters
from separatrix.tensors import Tensor, functional, torch


class WindowLinearParameters(Parameters):
    """How many of the last tokens, the present one among them, are read by softmax."""

    owner = "window-linear"
    size: Natural = 64
    constraints: ClassVar[tuple[Constraint, ...]] = (least("size", 1),)


class WindowLinear(RecurrentMechanism):
    """Weights `exp(<q,k> - c)` in the window, `<phi(q), phi(k)>` before it, one sum below both [rec].

    The window is the last `size` tokens, the present one among them; c is the largest logit in it, so its
    best key always has weight 1, as in the reference code of LoLCATs. There the feature map phi and a
    factor on the window are learned; here `phi(x) = elu(x) + 1` (arXiv 2006.16236), which is positive and
    cannot overflow, and the factor is 1. A window of all tokens is causal softmax.

    The state is the last `size` keys and values, and for what is older the sum of `phi(k) (v, 1)ᵀ`.

    >>> from separatrix.mechanisms import mechanism_named
    >>> zero = torch.zeros(1, 1, 3, 1)
    >>> v = torch.tensor([6.0, 2.0, 4.0]).reshape(1, 1, 3, 1)
    >>> mechanism_named("window-linear:size=2")(zero, zero, v, causal=True).flatten().tolist()
    [6.0, 4.0, 4.0]
    """

    name = "window-linear"
    formula = "u / sum u, u = exp(<q,k> - max) in the window, <phi(q), phi(k)> before it"
    source = "[rec] arXiv 2410.10254, with a feature map that is not learned"
    family = "hybrid"
    schema = WindowLinearParameters
    takes_present = False
    parameters: WindowLinearParameters

    @property
    def normalised(self) -> bool:
        return True

    @form
    def definition(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        check_lengths(self, q, k)
        past = torch.ones(k.shape[-2], k.shape[-2], dtype=torch.bool, device=k.device).tril()
        older = past.tril(-self.parameters.size)
        logits = (q @ k.mT).masked_fill(~past | older, -torch.inf)
        near = (logits - logits.amax(-1, keepdim=True)).exp()
        far = (elu_plus_one(q) @ elu_plus_one(k).mT).masked_fill(~older, 0)
        weights = near + far
        return weights / weights.sum(-1, keepdim=True) @ v

    def init_state(self, q: Queries, v: Values) -> State:
        q, v = widened(q, v)
        return memory(q, v, more=1), q[..., :0, :], v[..., :0, :]

    @one_token
    def step(self, state: State, q_t: Query, k_t: Key, v_t: Value, **extras_t: Any) -> tuple[State, Output]:
        state, out = self.advance(state, q_t[..., None, :], k_t[..., None, :], v_t[..., None, :])
        return state, out[..., 0, :]

    @run_of_tokens
    def advance(self, state: State, q: Queries, k: Keys, v: Values, **extras: Any) -> tuple[State, Attended]:
        """Every token reads the kept keys and those of the run, each as near, far or future."""
        old, kept_keys, kept_values = state
        keys, values = torch.cat([kept_keys, k], dim=-2), _with_one(torch.cat([kept_values, v], dim=-2))
        kept, size = kept_keys.shape[-2], self.parameters.size
        past = torch.ones(q.shape[-2], keys.shape[-2], dtype=torch.bool, device=k.device).tril(kept)
        older = past.tril(kept - size)
        logits = (q @ keys.mT).masked_fill(~past | older, -torch.inf)
        near = (logits - logits.amax(-1, keepdim=True)).exp()
        out = near @ values + elu_plus_one(q) @ old
        leaving = max(0, keys.shape[-2] - size)
        if leaving:
            features, gone = elu_plus_one(keys[..., :leaving, :]), values[..., :leaving, :]
            far = (elu_plus_one(q) @ features.mT).masked_fill(~older[:, :leaving], 0)
            out, old = out + far @ gone, old + features.mT @ gone
        state = (old, keys[..., leaving:, :], values[..., leaving:, :-1])
        return state, out[..., :-1] / out[..., -1:]


def _with_one(v: Tensor) -> Tensor:
    return functional.pad(v, (0, 1), value=1.0)
