"""Softmax attention."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

from separatrix.core.numbers import format_exact
from separatrix.core.numbers.logforms import Flint, LogForm, rational
from separatrix.core.parameters import Constraint, Exact, Parameters
from separatrix.core.tensors import Float, Tensor, functional, torch
from separatrix.mechanisms._base import (
    Attended,
    Counts,
    Floats,
    Keys,
    Queries,
    ScoreMechanism,
    Values,
    by_blocks_of_queries,
    form,
    seen_keys,
)

LANES = 16
"""Widths are padded to a multiple of this, which torch's CPU kernel handles fastest."""


class SoftmaxParameters(Parameters):
    """What logits are divided by."""

    owner = "softmax"
    temperature: Exact = Fraction(1)
    constraints: ClassVar[tuple[Constraint, ...]] = (
        Constraint(
            ("temperature",),
            lambda p: Fraction(1, 10**6) <= p.temperature <= 10**6,
            lambda p: f"temperature={format_exact(p.temperature)} is out of range; it must be 1e-6 to 1e6",
        ),
    )


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
    schema = SoftmaxParameters
    parameters: SoftmaxParameters
    accumulates = False

    @property
    def _temperature(self) -> float:
        return float(self.parameters.temperature)

    def score(self, logits: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return (logits / self._temperature).exp()

    def log_ratio(self, base: Floats, step: Floats) -> Floats:
        return step / self._temperature

    def ratio(self, base: LogForm, step: LogForm) -> Flint:
        return (1 / rational(self.parameters.temperature) * step).exp()

    @form
    def definition(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        logits = q @ k.mT / self._temperature
        if counts is not None:
            logits = logits + counts.log()[..., None, :]
        seen = seen_keys(range(q.shape[-2]), k, causal, **more)
        if seen is None:
            return logits.softmax(-1) @ v
        blind = ~seen.any(-1, keepdim=True)
        return logits.where(seen | blind, -torch.inf).softmax(-1).masked_fill(blind, 0) @ v

    @form
    def __call__(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        """torch's fused kernel, at one common width: with unequal widths it would fill n-by-n memory.

        Counts enter as one more column, `<(q, 1), (k, log count)>`, since a mask would be n-by-n too. Places
        and gaps need a mask, and are taken a block of queries at a time.
        """
        features = v.shape[-1]
        if counts is not None:
            q = functional.pad(q, (0, 1), value=1.0)
            logs = self._temperature * counts.log().expand(k.shape[:-1])
            k = torch.cat([k, logs[..., None].to(k.dtype)], dim=-1)
        if max(q.shape[-1], features) != min(q.shape[-1], features):
            width = -(-max(q.shape[-1], features) // LANES) * LANES
            q, k, v = (functional.pad(x, (0, width - x.shape[-1])) for x in (q, k, v))
        scale = 1 / self._temperature
        if not more:
            found = functional.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale)
            return found[..., :features]
        return by_blocks_of_queries(partial(_masked_rows, causal, scale, more), q, k, v)[..., :features]


def _masked_rows(
    causal: bool, scale: float, places: dict[str, Any], rows: range, q: Tensor, k: Tensor, v: Tensor
) -> Tensor:
    """What the queries of these rows read."""
    return masked_softmax(q, k, v, seen_keys(rows, k, causal, **places), scale)


def masked_softmax(q: Queries, k: Keys, v: Values, seen: Tensor | None, scale: float = 1.0) -> Attended:
    """torch's fused softmax over the keys in sight, and zeros for a query that sees none."""
    if seen is None:
        return functional.scaled_dot_product_attention(q, k, v, scale=scale)
    blind = ~seen.any(-1, keepdim=True)
    found = functional.scaled_dot_product_attention(q, k, v, attn_mask=seen | blind, scale=scale)
    return found.masked_fill(blind, 0)
