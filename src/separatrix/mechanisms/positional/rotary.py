"""Rotary positions, for any mechanism: queries and keys are turned by their places."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar

from separatrix.core.numbers import format_exact
from separatrix.core.parameters import Constraint, Exact
from separatrix.core.tensors import Float, Int64, Tensor, torch
from separatrix.mechanisms._base import Attended, Counts, Keys, Present, Queries, Values, form, widened
from separatrix.mechanisms.decoding import Answered, Kept, Past, fill_missing_extras, positions_of
from separatrix.mechanisms.positional._around import AroundAnother, AroundParameters


class RotaryParameters(AroundParameters):
    """Which mechanism reads the turned tokens, and how slowly the slowest pair turns."""

    owner = "rotary"
    base: Exact = Fraction(10_000)
    constraints: ClassVar[tuple[Constraint, ...]] = (
        Constraint(
            ("base",),
            lambda p: 1 <= p.base <= 10**12,
            lambda p: f"base={format_exact(p.base)} is out of range; base must be between 1 and 1e12",
        ),
    )


class Rotary(AroundAnother):
    """The mechanism `inner` on `R_i q_i` and `R_j k_j`: logits are `<q_i, R_{j-i} k_j>` (arXiv 2104.09864).

    R_t turns channels 2c and 2c + 1 by the angle `t base^(-2c/width)`, where t is the place of the token
    among those present; of an odd width the last channel stays. `inner` is any mechanism, with one parameter
    at most as in rotary:inner=power:beta=4. Its extras are taken, too; where none are given they come from
    the keys before they are turned. Logits have both signs then, which not every kernel bears.

    >>> from separatrix.mechanisms import mechanism_named
    >>> turned(torch.tensor([[[[1.0, 0.0], [1.0, 0.0]]]]), first=0)[0, 0, 1]
    tensor([0.5403, 0.8415])
    >>> mechanism_named("rotary:inner=gla").causality.name
    'ALWAYS'
    """

    name = "rotary"
    formula = "another mechanism on R_i q_i and R_j k_j, R_t turning pairs of channels by t base^(-2c/width)"
    source = "[rec] RoFormer, arXiv 2104.09864"
    schema = RotaryParameters
    parameters: RotaryParameters

    def __init__(self, /, **parameters: object) -> None:
        super().__init__(**parameters)
        vars(self).update(causality=self.inner.causality)

    def sensitivity(self, q: Queries, k: Keys, causal: bool = False, order: int = 0) -> float:
        return self.inner.sensitivity(*self._turned(q, k, {}), causal, order)

    @form
    def definition(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        return self.inner.definition(*self._turned(q, k, more), v, causal=causal, **more)

    @form
    def __call__(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        """The fast form of the other mechanism."""
        return self.inner(*self._turned(q, k, more), v, causal=causal, **more)

    @property
    def fixed_state(self) -> bool:
        return self.inner.fixed_state

    def readable(self, tokens: int, stream: str = "keys") -> tuple[range, ...]:
        return self.inner.readable(tokens, stream)

    def kept_after(self, tokens: int, heads: int, width: int, features: int, dtype: torch.dtype) -> Kept:
        return self.inner.kept_after(tokens, heads, width, features, dtype)

    def decode(
        self,
        past: Past | None,
        q: Queries,
        k: Keys,
        v: Values,
        present: Present | None = None,
        *,
        skipped: int = 0,
        **extras: Any,
    ) -> tuple[Answered, Past]:
        """Tokens are turned once, as they are read; what the inner mechanism keeps is then enough."""
        extras = fill_missing_extras(self, q, k, v, extras)
        places, base = positions_of(past, k, present), float(self.parameters.base)
        q, k = (turned(widened(x)[0], places, base).to(x.dtype) for x in (q, k))
        return self.inner.decode(past, q, k, v, present, skipped=skipped, **extras)

    def _turned(self, q: Queries, k: Keys, more: dict[str, Any]) -> tuple[Queries, Keys]:
        base = float(self.parameters.base)
        return turned(q, more.get("first", 0), base), turned(k, 0, base)


def turned(
    x: Float[Tensor, "batch heads tokens width"],
    first: int | Int64[Tensor, "batch tokens"],
    base: float = 1e4,
) -> Float[Tensor, "batch heads tokens width"]:
    """Tokens from place `first` on, or at these places, each pair of channels turned by angle times place."""
    pairs, width = x.shape[-1] // 2, x.shape[-1]
    if isinstance(first, int):
        places = torch.arange(first, first + x.shape[-2], dtype=torch.float64, device=x.device)[None]
    else:
        places = first.double()
    speeds = base ** (-2 * torch.arange(pairs, dtype=torch.float64, device=x.device) / width)
    angles = places[:, None, :, None] * speeds
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    one, two = x[..., 0 : 2 * pairs : 2], x[..., 1 : 2 * pairs : 2]
    both = torch.stack([cos * one - sin * two, sin * one + cos * two], dim=-1).flatten(-2)
    return torch.cat([both, x[..., 2 * pairs :]], dim=-1)
