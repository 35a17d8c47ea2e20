"""Softmax over a window, linear attention over what is older."""

from __future__ import annotations

from typing import Any, ClassVar

from separatrix.core.parameters import Constraint, Natural, Parameters
from separatrix.core.tensors import Bool, Float, Tensor, functional, torch
from separatrix.mechanisms._base import Attended, Counts, Keys, Queries, Values, divided, form, widened
from separatrix.mechanisms._limits import least
from separatrix.mechanisms._places import Seen, which_present
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

Scores = Float[Tensor, "batch heads queries keys"]


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

    The state is the last `size` keys and values, which of them are there, and for what is older the sum of
    `phi(k) (v, 1)ᵀ`.

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
    minds_absence = True
    parameters: WindowLinearParameters

    @property
    def normalised(self) -> bool:
        return True

    @form
    def definition(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        check_lengths(self, q, k)
        there = which_present(more.get("present"), k)
        near, far = _in_sight(there[:, None], q.shape[-2], self.parameters.size)
        older = (elu_plus_one(q) @ elu_plus_one(k).mT).masked_fill(~far, 0)
        weights = _softmax_scores(q @ k.mT, near) + older
        return divided(weights, weights.sum(-1, keepdim=True)) @ v

    def init_state(self, q: Queries, v: Values) -> State:
        q, v = widened(q, v)
        return memory(q, v, more=1), q[..., :0, :], v[..., :0, :], v[:, :1, :0, :1]

    def example_state(self, tokens: int, k: Keys, v: Values) -> State:
        sums, *kept = self.init_state(k, v)
        full = min(tokens, self.parameters.size)
        return sums, *(x.new_zeros(()).expand(*x.shape[:-2], full, x.shape[-1]) for x in kept)

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
        q, k, v = (x[..., None, :] for x in (q_t, k_t, v_t))
        state, out = self.advance(state, q, k, v, present=there)
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
        """Every token reads the kept keys and those of the run, each as near, far or future.

        Where some are absent, elements of a batch keep different tokens, and have gaps before the first.
        """
        old, *kept = state
        here = torch.ones_like(v[:, :1, :, :1]) if present is None else present.to(v.dtype)
        keys, values, there = (torch.cat(pair, dim=-2) for pair in zip(kept, (k, v, here), strict=True))
        near, far = _in_sight(there[..., 0] > 0, q.shape[-2], self.parameters.size)
        values, leaving = _with_one(values), max(0, keys.shape[-2] - self.parameters.size)
        out = _softmax_scores(q @ keys.mT, near) @ values + elu_plus_one(q) @ old
        if leaving:
            scores = elu_plus_one(q) @ elu_plus_one(keys[..., :leaving, :]).mT
            out = out + scores.masked_fill(~far[..., :leaving], 0) @ values[..., :leaving, :]
        if not bool(there.all()):
            order = there.argsort(stable=True, dim=-2)
            keys, values, there = (x.gather(-2, order.expand(x.shape)) for x in (keys, values, there))
        if leaving:
            gone = values[..., :leaving, :] * there[..., :leaving, :]
            old = old + elu_plus_one(keys[..., :leaving, :]).mT @ gone
        state = (old, keys[..., leaving:, :], values[..., leaving:, :-1], there[..., leaving:, :])
        return state, divided(out[..., :-1], out[..., -1:])


def _in_sight(there: Bool[Tensor, "#batch 1 keys"], queries: int, size: int) -> tuple[Seen, Seen]:
    """Which keys are among the last `size` that are there, and which are older, for the last as queries."""
    keys = there.shape[-1]
    place = there.long().cumsum(-1)
    since = place[..., keys - queries :, None] - place[..., None, :]
    past = torch.ones(queries, keys, dtype=torch.bool, device=there.device).tril(keys - queries)
    past = past & there[..., None, :]
    return past & (since < min(size, keys)), past & (since >= min(size, keys))


def _softmax_scores(logits: Scores, near: Seen) -> Scores:
    """`exp(logit - largest)` of the keys that are near."""
    logits = logits.masked_fill(~near, -torch.inf)
    top = logits.amax(-1, keepdim=True)
    return (logits - top.masked_fill(top == -torch.inf, 0)).exp()


def _with_one(v: Tensor) -> Tensor:
    return functional.pad(v, (0, 1), value=1.0)
