"""Softmax over a window, linear attention over older tokens."""

from __future__ import annotations

from typing import Any

from separatrix.core.parameters import natural
from separatrix.core.tensors import Bool, Float, Tensor, torch
from separatrix.mechanisms._blocks import divide
from separatrix.mechanisms._methods import advance_method, attention_method, upcast
from separatrix.mechanisms._positions import presence_mask
from separatrix.mechanisms._running_sums import append_ones
from separatrix.mechanisms._types import Attended, CallOptions, Keys, Queries, Values, Visible
from separatrix.mechanisms.features.elu import elu_plus_one
from separatrix.mechanisms.recurrent._base import RecurrentMechanism, RunPresence, State, zero_state

Scores = Float[Tensor, "batch heads queries keys"]


class WindowLinear(RecurrentMechanism):
    """Weights `exp(<q,k> - c)` in the window, `<phi(q), phi(k)>` before it, over their common sum [rec].

    The window is the last `size` tokens, the current one included; c is the largest logit in it, so its best
    key always has weight 1, as in the reference code of LoLCATs. There the feature map phi and a factor on
    the window are learned; here `phi(x) = elu(x) + 1` (arXiv 2006.16236), which is positive and cannot
    overflow, and the factor is 1. A window of all tokens is causal softmax.

    The state is the last `size` keys and values, their presence, and for older tokens the sum of `phi(k) (v,
    1)ᵀ`.

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
    step_takes_present = True
    is_normalised = True
    size: int = natural(64, at_least=1)
    """The number of last tokens, the current one included, that softmax reads."""

    @attention_method
    def definition(self, q: Queries, k: Keys, v: Values, options: CallOptions) -> Attended:
        near, far = _split_visible(presence_mask(options.present, k)[:, None], q.shape[-2], self.size)
        old_scores = (elu_plus_one(q) @ elu_plus_one(k).mT).masked_fill(~far, 0)
        weights = _softmax_scores(q @ k.mT, near) + old_scores
        return divide(weights, weights.sum(-1, keepdim=True)) @ v

    def init_state(self, q: Queries, v: Values) -> State:
        q, v = upcast(q, v)
        return zero_state(q, v, columns=1), q[..., :0, :], v[..., :0, :], v[:, :1, :0, :1]

    def example_state(self, tokens: int, k: Keys, v: Values) -> State:
        sums, *window = self.init_state(k, v)
        length = min(tokens, self.size)
        return sums, *(x.new_zeros(()).expand(*x.shape[:-2], length, x.shape[-1]) for x in window)

    @advance_method
    def advance(
        self, state: State, q: Queries, k: Keys, v: Values, present: RunPresence | None = None, **extras: Any
    ) -> tuple[State, Attended]:
        """Let every token read the keys of the state and of the run, each as near, far or future.

        With absent tokens, batch elements keep different tokens, and have gaps before the first.
        """
        sums, *window = state
        new_present = torch.ones_like(v[:, :1, :, :1]) if present is None else present.to(v.dtype)
        new = (k, v, new_present)
        keys, values, is_present = (torch.cat(pair, dim=-2) for pair in zip(window, new, strict=True))
        near, far = _split_visible(is_present[..., 0] > 0, q.shape[-2], self.size)
        values, leaving = append_ones(values), max(0, keys.shape[-2] - self.size)
        out = _softmax_scores(q @ keys.mT, near) @ values + elu_plus_one(q) @ sums
        if leaving:
            scores = elu_plus_one(q) @ elu_plus_one(keys[..., :leaving, :]).mT
            out = out + scores.masked_fill(~far[..., :leaving], 0) @ values[..., :leaving, :]
        if not bool(is_present.all()):
            # Absent tokens move to the front, to leave the window before any that is present.
            order = is_present.argsort(stable=True, dim=-2)
            keys, values, is_present = (x.gather(-2, order.expand(x.shape)) for x in (keys, values, is_present))
        if leaving:
            leaving_values = values[..., :leaving, :] * is_present[..., :leaving, :]
            sums = sums + elu_plus_one(keys[..., :leaving, :]).mT @ leaving_values
        state = (sums, keys[..., leaving:, :], values[..., leaving:, :-1], is_present[..., leaving:, :])
        return state, divide(out[..., :-1], out[..., -1:])


def _split_visible(present: Bool[Tensor, "#batch 1 keys"], queries: int, size: int) -> tuple[Visible, Visible]:
    """Return which keys are among the last `size` present ones, and which are older, for the last queries."""
    keys = present.shape[-1]
    position = present.long().cumsum(-1)
    distance = position[..., keys - queries :, None] - position[..., None, :]
    past = torch.ones(queries, keys, dtype=torch.bool, device=present.device).tril(keys - queries)
    past = past & present[..., None, :]
    return past & (distance < min(size, keys)), past & (distance >= min(size, keys))


def _softmax_scores(logits: Scores, near: Visible) -> Scores:
    """Return `exp(logit - largest)` of the near keys."""
    logits = logits.masked_fill(~near, -torch.inf)
    top = logits.amax(-1, keepdim=True)
    # A row without near keys has no largest logit, and infinity minus infinity is not a number.
    return (logits - top.masked_fill(top == -torch.inf, 0)).exp()
