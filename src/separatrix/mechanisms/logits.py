"""What a callable makes of the inner products <q, k> before it weighs keys by them, measured.

Mechanisms here take logits as plain inner products. A callable may scale them, as torch's attention does by
1/sqrt(width), which makes it blind where the same attention without the scale is not.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import isclose, sqrt
from typing import Any

from separatrix.mechanisms import observed
from separatrix.mechanisms._places import Causality
from separatrix.mechanisms.custom import CustomMechanism
from separatrix.mechanisms.how_called import SQRT
from separatrix.tensors import Tensor, torch

WIDTHS = (16, 64)
"""Widths at which logits are measured where any will do."""
PAIRS = 8
SAME = 1e-5


@dataclass(frozen=True)
class LogitScale:
    """By how much logits are more or less than <q, k>."""

    factor: float
    """At `width`."""
    width: int
    by_width: bool
    """Whether the factor is 1/sqrt(width) at every width tried."""

    @property
    def undone_by(self) -> str:
        """The scale that undoes it."""
        return SQRT if self.by_width else f"{1 / self.factor:.6g}"

    def as_json(self) -> dict[str, Any]:
        """As `assess --json` prints it."""
        return {**asdict(self), "undone_by": self.undone_by}

    @property
    def what(self) -> str:
        """What it does to logits, without a full stop."""
        if not self.by_width:
            return f"At width {self.width} its logits are {self.factor:.4g} <q, k>"
        factor = f"at width {self.width} they are {self.factor:.4g} <q, k>"
        return f"It divides its logits by sqrt(width): {factor}"

    @property
    def words(self) -> str:
        """Two sentences for the first line of a card."""
        return f"{self.what}. What follows is with that; --scale {self.undone_by} undoes it."


def logit_scale(mechanism: CustomMechanism) -> LogitScale | None:
    """The scale of the logits, where it is seen and not 1.

    >>> from separatrix.mechanisms.custom import wrap
    >>> halved = wrap(lambda q, k, v: (q @ k.mT / 2).softmax(-1) @ v)
    >>> logit_scale(halved).undone_by
    '2'
    """
    fixed = mechanism.fixed_width
    widths = WIDTHS if fixed is None else (fixed,)
    factors = [softmax_factor(mechanism, width) for width in widths]
    known = [(width, each) for width, each in zip(widths, factors, strict=True) if each is not None]
    if len(known) < len(widths):
        scaled = fixed is None and scaled_by_width(mechanism)
        return LogitScale(1 / sqrt(WIDTHS[-1]), WIDTHS[-1], True) if scaled else None
    if all(isclose(each, 1, rel_tol=SAME) for _, each in known):
        return None
    width, factor = known[-1]
    by_width = width > 1 and all(isclose(each * sqrt(size), 1, rel_tol=SAME) for size, each in known)
    return LogitScale(factor, width, by_width)


def softmax_factor(mechanism: CustomMechanism, width: int) -> float | None:
    """The x for which keys are weighed by exp(x <q, k>), if they are: seen on pairs of keys."""
    drawn = torch.Generator().manual_seed(11)
    q = torch.rand(PAIRS, 1, 1, width, generator=drawn, dtype=torch.float64) + 0.1
    k = torch.randn(PAIRS, 1, 2, width, generator=drawn, dtype=torch.float64) / sqrt(width)
    v = torch.tensor([0.0, 1.0], dtype=torch.float64)[None, None, :, None].expand(PAIRS, -1, -1, -1)
    try:
        weight = _usual(mechanism, q.expand(-1, -1, 2, -1), k, v)[:, 0, -1, 0]
    except Exception:  # whatever a stranger raises: nothing is seen
        return None
    logits = (q @ k.mT)[:, 0, 0]
    found = weight.logit() / (logits[:, 1] - logits[:, 0])
    middle = found.median().item()
    alike = bool(((found - middle).abs() <= SAME * abs(middle)).all()) and middle > 0
    return middle if alike else None


def scaled_by_width(mechanism: CustomMechanism) -> bool:
    """Whether zeros beside queries and keys change the result, unless queries grow with sqrt(width)."""
    q, k, v = observed.tokens(observed.Sizes(WIDTHS[0], None, mechanism.fixed_heads))
    more = (0, WIDTHS[1] - WIDTHS[0])
    wide_q, wide_k = (torch.nn.functional.pad(x, more) for x in (q, k))
    grown = sqrt(WIDTHS[1] / WIDTHS[0])
    try:
        expected, wide = _usual(mechanism, q, k, v), _usual(mechanism, wide_q, wide_k, v)
        return not observed.alike(wide, expected) and observed.alike(
            _usual(mechanism, grown * wide_q, wide_k, v), expected
        )
    except Exception:
        return False


def _usual(mechanism: CustomMechanism, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    with torch.no_grad():
        return mechanism.fitted(q, k, v, causal=mechanism.causality is Causality.ALWAYS)
