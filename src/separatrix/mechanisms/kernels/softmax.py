"""Softmax attention."""

from __future__ import annotations

from fractions import Fraction

from separatrix.core.numbers.logforms import Flint, LogForm, rational
from separatrix.core.parameters import exact
from separatrix.core.tensors import Float, Tensor, functional, torch
from separatrix.mechanisms._base import ScoreMechanism
from separatrix.mechanisms._blocks import attend_by_blocks
from separatrix.mechanisms._methods import attention_method
from separatrix.mechanisms._types import Attended, CallOptions, Floats, Keys, Queries, Values

LANES = 16
"""Widths are padded to a multiple of this, which torch's CPU kernel handles fastest."""


class Softmax(ScoreMechanism):
    """`u = exp(<q,k> / temperature)`, `f = u / <u,1>` [paper, at temperature 1].

    >>> from separatrix.mechanisms import mechanism_named
    >>> one = torch.ones(1, 1, 1, 1)
    >>> mechanism_named("softmax")(one, one, 3 * one).item()
    3.0
    """

    name = "softmax"
    formula = "exp(<q,k>/temperature) / sum exp(<q,k>/temperature)"
    source = "[paper] arXiv 2310.11685; Vaswani et al. 2017, without 1/sqrt(width)"
    temperature: Fraction = exact(1, at_least=Fraction(1, 10**6), at_most=10**6)
    """Divides the logits."""
    # torch's fused kernel accumulates 16-bit numbers in float32 by itself.
    accumulates = False

    def score(self, logits: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return (logits / float(self.temperature)).exp()

    def log_ratio(self, base: Floats, step: Floats) -> Floats:
        return step / float(self.temperature)

    def ratio(self, base: LogForm, step: LogForm) -> Flint:
        return (1 / rational(self.temperature) * step).exp()

    @attention_method
    def definition(self, q: Queries, k: Keys, v: Values, options: CallOptions) -> Attended:
        logits = q @ k.mT / float(self.temperature)
        if options.counts is not None:
            logits = logits + options.counts.log()[..., None, :]
        visible = options.visible_keys(range(q.shape[-2]), k)
        if visible is None:
            return logits.softmax(-1) @ v
        # The softmax of a row without keys is not a number: such a row sees all keys, and is then set to 0.
        blind = ~visible.any(-1, keepdim=True)
        return logits.where(visible | blind, -torch.inf).softmax(-1).masked_fill(blind, 0) @ v

    @attention_method
    def __call__(self, q: Queries, k: Keys, v: Values, options: CallOptions) -> Attended:
        """Use torch's fused kernel, at one common width: with unequal widths it would fill n-by-n memory.

        Counts enter as one more column, `<(q, 1), (k, log count)>`, since a mask would be n-by-n too.
        Positions and absent keys need a mask, and are computed a block of queries at a time.
        """
        features, temperature = v.shape[-1], float(self.temperature)
        if options.counts is not None:
            q = functional.pad(q, (0, 1), value=1.0)
            # The kernel divides all logits by the temperature, which must not change the counts.
            logs = temperature * options.counts.log().expand(k.shape[:-1])
            k = torch.cat([k, logs[..., None].to(k.dtype)], dim=-1)
        if q.shape[-1] != features:
            width = -(-max(q.shape[-1], features) // LANES) * LANES
            q, k, v = (functional.pad(x, (0, width - x.shape[-1])) for x in (q, k, v))
        scale = 1 / temperature
        if not options.positions():
            out = functional.scaled_dot_product_attention(q, k, v, is_causal=options.causal, scale=scale)
            return out[..., :features]

        def attend(rows: range, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return masked_softmax(q, k, v, options.visible_keys(rows, k), scale)

        return attend_by_blocks(attend, q, k, v)[..., :features]


def masked_softmax(q: Queries, k: Keys, v: Values, visible: Tensor | None, scale: float = 1.0) -> Attended:
    """Apply torch's fused softmax to the visible keys; a query that sees none gets zeros."""
    if visible is None:
        return functional.scaled_dot_product_attention(q, k, v, scale=scale)
    blind = ~visible.any(-1, keepdim=True)
    out = functional.scaled_dot_product_attention(q, k, v, attn_mask=visible | blind, scale=scale)
    return out.masked_fill(blind, 0)
