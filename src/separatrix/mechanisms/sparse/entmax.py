"""Entmax: between softmax and sparsemax."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import torch

from separatrix.mechanisms.kernels._streamed import Copies, Logits, PerRow, StreamedMechanism, over
from separatrix.mechanisms.sparse.sparsemax import below_top
from separatrix.parameters import Constraint, Exact, Parameters, format_exact

STEPS = 100
"""Newton steps at most; about log n of them are needed."""
ULPS = 16
"""A step this small, in units of rounding, is the last."""


class EntmaxParameters(Parameters):
    """How sparse: towards 1 it is softmax, at 2 sparsemax."""

    owner = "entmax"
    alpha: Exact = Fraction(3, 2)
    constraints: ClassVar[tuple[Constraint, ...]] = (
        Constraint(
            ("alpha",),
            lambda p: 1 + Fraction(1, 10**6) <= p.alpha <= 2,
            lambda p: f"alpha={format_exact(p.alpha)} is out of range; alpha must be 1.000001 to 2",
        ),
    )


class Entmax(StreamedMechanism):
    """`f = max((alpha-1) <q,k> - tau, 0)^(1/(alpha-1))`, tau such that `<f,1> = 1` (arXiv 1905.05702).

    With a = alpha - 1 and tau = a s - 1 this is `(1 + a (<q,k> - s))^(1/a)`, which tends to
    `exp(<q,k> - s)`: written so, nothing is lost near softmax. A key that stands for c tokens gets c
    times the weight of one; that is found in float64, good for c^(alpha-1) up to about 10^10 (sparsemax
    itself has no such limit). A query that sees nothing (all counts 0) gets zeros.

    >>> from separatrix.mechanisms import mechanism_named
    >>> logits = torch.tensor([2.0, 0.0, -2.0]).reshape(1, 1, 3, 1)
    >>> mechanism_named("entmax")(torch.ones(1, 1, 1, 1), logits, torch.eye(3)[None, None]).flatten()
    tensor([1., 0., 0.])
    """

    name = "entmax"
    formula = "max((alpha-1) <q,k> - tau, 0)^(1/(alpha-1)), tau such that they sum to 1"
    source = "[rec] arXiv 1905.05702"
    family = "sparse"
    schema = EntmaxParameters
    parameters: EntmaxParameters

    def weights(self, logits: Logits, copies: Copies) -> Logits:
        a, dtype = float(self.parameters.alpha - 1), logits.dtype
        if bool((copies > 1).any()):
            logits, copies = logits.double(), copies.double()
        z = below_top(logits, copies)
        s = _root(z.detach(), copies, a)
        # From a root taken for a constant, two Newton steps carry first and second derivatives.
        for _ in range(2):
            s = s + _newton_step(z - s, copies, a)
        return (copies * _power(z - s, a)[0]).to(dtype)


def _power(x: Logits, a: float) -> tuple[Logits, Logits]:
    """`(1 + a x)^(1/a)` and its derivative; both 0 where 1 + a x is not positive."""
    inside = 1 + a * x > 0
    ax = (a * x).where(inside, 0)
    power = (ax.log1p() / a).exp()
    return power.where(inside, 0), (power / (1 + ax)).where(inside, 0)


def _newton_step(x: Logits, copies: Copies, a: float) -> PerRow:
    """What to add to s so that the weights sum to 1, to first order."""
    weights, slopes = ((copies * part).sum(-1, keepdim=True) for part in _power(x, a))
    return over(weights - 1, slopes)


def _root(z: Logits, copies: Copies, a: float) -> PerRow:
    """s, by Newton's method from below, where all weight is on the top key.

    The sum of the weights is convex in s, so no step goes too far, and (sum - 1) times the slope falls
    at least fourfold each time: 100 steps are enough for any number of tokens up to 10^18.
    """
    fewest = copies.where(copies > 0, torch.inf).amin(-1, keepdim=True)
    low = -torch.expm1(-a * fewest.where(fewest.isfinite(), 1).log()) / a
    s = low.expand(*z.shape[:-1], 1)
    for _ in range(STEPS):
        step = _newton_step(z - s, copies, a).clamp(min=0)
        s = s + step
        if bool((step <= ULPS * torch.finfo(z.dtype).eps * (1 + s.abs())).all()):
            break
    return s
